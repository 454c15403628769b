"""Browser sessions. Changes to them don't create events."""

from typing import Annotated, Any, Final

import msgspec
from msgspec import Struct

from tertulia.domain.accounts import sessions, signing_out
from tertulia.model import changes
from tertulia.model.errors import Refused
from tertulia.model.sessions import Session
from tertulia.wire.api.projection import Projections, unseen
from tertulia.wire.api.server import Code
from tertulia.wire.http import sign_in
from tertulia.wire.http.authentication import require_own_page
from tertulia.wire.http.parameters import Doc, IntPath
from tertulia.wire.http.request_head import client_address
from tertulia.wire.http.routing import ApiResponse, Call


class SignedInResponse(ApiResponse, kw_only=True):
    """The signed-in account. The response also sets the session's cookies."""

    user_id: int
    email: str


async def begin_session(
    call: Call,
    username: Annotated[str, Doc("The account's email address.")],
    password: Annotated[str, Doc("The account's password.")],
    code: Code = None,
) -> SignedInResponse:
    """Sign in from a browser. The response sets the session's cookies.

    If the account has a second factor, a `code` is also needed. Without it, the error is
    SECOND_FACTOR_REQUIRED.
    """
    node, request = call.node, call.request
    require_own_page(node.config, request)
    with sign_in.naming_contact(node):
        checked = await sign_in.check_password(node, request, username, password)
    await sign_in.finish_with_code(node, request, checked, code)
    await sign_in.sign_in(node, request, checked.user, checked)
    return SignedInResponse(user_id=checked.user.id, email=checked.user.address)


async def confirm_password(
    call: Call,
    password: Annotated[str | None, Doc("Your account's password.")] = None,
    code: Annotated[
        str | None,
        Doc("A code of your authenticator app, or a recovery code, instead of the password."),
    ] = None,
    passkey: Annotated[
        dict[str, Any] | None,
        Doc(
            "The response of one of your passkeys, a `PublicKeyCredential` as JSON, instead of"
            " the password."
        ),
    ] = None,
    ticket: Annotated[str, Doc("With `passkey`: as POST /passkey_challenges returned it.")] = "",
) -> None:
    """Confirm in an older browser session that it's you.

    Do this after a request fails with PASSWORD_CONFIRMATION_REQUIRED, and then repeat the request.
    The error's `proofs` lists the ways in which your account can confirm. With an API key, it has
    no effect.
    """
    if [password, code, passkey].count(None) != 2:
        raise Refused("Send one of 'password', 'code', and 'passkey'.")
    if password is not None:
        await sign_in.require_password(call, password, "Incorrect password.")
    elif code is not None:
        await sign_in.use_code(call.node, call.request, call.user, code)
    else:
        from tertulia.service.passkeys import Answer  # Only if used.

        credential = msgspec.json.encode(passkey).decode()
        answer = Answer(ticket=ticket, credential=credential, site=call.url)
        await sign_in.use_passkey(call.node, call.request, answer, call.user)
    if call.session_id is not None:
        await call.submit(sessions.confirm, call.session_id)


class SessionObject(Struct, kw_only=True):
    """A browser session of yours."""

    id: int
    created_at: int
    last_used_at: Annotated[int, Doc("Accurate to a few hours. For the current session, now.")]
    agent: Annotated[str, Doc("The browser's User-Agent header.")]
    address: Annotated[
        str,
        Doc(
            "The IP address that it was last used from, stored when `last_used_at` is. Empty if"
            " unknown."
        ),
    ]
    method: Annotated[
        str, Doc("How you signed in, such as `password`. Empty for sessions of older versions.")
    ]
    current: Annotated[bool, Doc("Whether this request uses the session.")]


class SessionsResponse(ApiResponse, kw_only=True):
    """Your sessions, newest first."""

    sessions: list[SessionObject]


async def get_sessions(call: Call) -> SessionsResponse:
    """Get your active browser sessions."""
    listed = call.consider(sessions.list_own, call.node.config.session_seconds)
    return SessionsResponse(sessions=[_object(call, session) for session in listed])


def _object(call: Call, session: Session) -> SessionObject:
    is_current = session.id == call.session_id
    return SessionObject(
        id=session.id,
        created_at=session.created_at,
        last_used_at=int(call.now) if is_current else session.used_at,
        agent=session.agent,
        address=client_address(call.request) if is_current else session.address,
        method=session.method,
        current=is_current,
    )


async def end_session(call: Call, session_id: IntPath) -> None:
    """Sign out of one of your sessions."""
    if session_id == call.session_id:
        await sign_in.sign_out(call.node, call.request)
    else:
        await call.submit(signing_out.end, session_id)


async def end_other_sessions(call: Call) -> None:
    """Sign out of all of your other sessions."""
    await call.submit(signing_out.end_others, call.session_id)


PROJECTIONS: Final[Projections] = (
    unseen(changes.SessionBegun),
    unseen(changes.SessionUsed),
    unseen(changes.SessionConfirmed),
    unseen(changes.SessionsEnded),
)
