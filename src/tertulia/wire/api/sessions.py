"""No event tells of sessions: a browser knows its own, and polls of one that ends, end."""

from typing import Annotated, Final

from msgspec import Meta, Struct

from tertulia.domain.accounts import sessions, signing_out
from tertulia.model import changes
from tertulia.model.sessions import Session
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.http import sign_in
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.parameters import Int, NoParams, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class SignIn(Params, kw_only=True, frozen=True):
    """Signing in with a browser."""

    username: Annotated[str, Meta(description="The account's e-mail address.")]
    password: Annotated[str, Meta(description="Its password.")]


class SignedIn(ApiResponse, kw_only=True):
    """Who is signed in now; the cookies come beside it."""

    user_id: int
    email: str


async def begin_session(call: Call, params: SignIn) -> SignedIn:
    """Sign in for a session: the response sets its cookies."""
    node, request = call.node, call.request
    require_own_page(node.config, request)
    checked = await sign_in.by_password(node, request, params.username, params.password)
    await sign_in.sign_in(node, request, checked.user, checked)
    return SignedIn(user_id=checked.user.id, email=checked.user.address)


class ConfirmPassword(Params, kw_only=True, frozen=True):
    """The password again."""

    password: Annotated[str, Meta(description="That of the caller's account.")]


async def confirm_password(call: Call, params: ConfirmPassword) -> ApiResponse:
    """Give the password again in a browser that was signed in a while ago, where something else
    was refused with PASSWORD_CONFIRMATION_REQUIRED. With an API key it changes nothing."""
    await sign_in.require_own_password(call, params.password, "Incorrect password.")
    if call.session_id is not None:
        await call.submit(sessions.confirm, call.session_id)
    return ApiResponse()


class SessionObject(Struct, kw_only=True):
    """A browser in which the caller is signed in."""

    id: int
    created_at: int
    last_used_at: Annotated[
        int, Meta(description="To within a few hours; for the one that asks, now.")
    ]
    agent: Annotated[str, Meta(description="The browser, by its User-Agent header.")]
    current: Annotated[bool, Meta(description="Whether it is the one that asks.")]


class Sessions(ApiResponse, kw_only=True):
    """The newest first."""

    sessions: list[SessionObject]


async def get_sessions(call: Call, params: NoParams) -> Sessions:
    """The caller's sessions."""
    found = call.consider(sessions.own, call.node.config.session_seconds)
    return Sessions(sessions=[_shown(call, one) for one in found])


def _shown(call: Call, session: Session) -> SessionObject:
    is_current = session.id == call.session_id
    return SessionObject(
        id=session.id,
        created_at=session.created_at,
        last_used_at=int(call.now) if is_current else session.used_at,
        agent=session.agent,
        current=is_current,
    )


class EndSession(Params, kw_only=True, frozen=True):
    """A session to end."""

    session_id: Annotated[Int, Path()]


async def end_session(call: Call, params: EndSession) -> ApiResponse:
    """Sign out one of the caller's browsers."""
    if params.session_id == call.session_id:
        await sign_in.sign_out(call.node, call.request)
    else:
        await call.submit(signing_out.end, params.session_id)
    return ApiResponse()


async def end_other_sessions(call: Call, params: NoParams) -> ApiResponse:
    """Sign out all of the caller's browsers but the one that asks."""
    await call.submit(signing_out.end_others, call.session_id)
    return ApiResponse()


PROJECTIONS: Final[Projections] = (
    unseen(changes.SessionBegun),
    unseen(changes.SessionUsed),
    unseen(changes.SessionConfirmed),
    unseen(changes.SessionsEnded),
)
