"""Signing in: the password is looked at, and a browser gets its session."""

import secrets

from starlette.requests import Request

from tertulia.domain import sessions, signing_out
from tertulia.model.errors import AccountDeactivated, PasswordSignInDisabled, WrongPassword
from tertulia.model.sessions import Session
from tertulia.model.users import User
from tertulia.vault import digest
from tertulia.wire import keeping
from tertulia.wire.authentication import require_open, session_of
from tertulia.wire.call import Node
from tertulia.wire.pacing import who_tries


async def by_password(
    node: Node, request: Request, address: str, password: str
) -> tuple[User, str | None]:
    """The account that has the address and the password, and the password as it is kept.

    Raises PasswordSignInDisabled; TooManyTries; WrongPassword for either; and with the right one
    OrganizationDeactivated, AccountDeactivated.
    """
    if not node.state.realm.password_sign_in:
        raise PasswordSignInDisabled("Password sign-in is disabled in this organization.")
    who = who_tries(request)
    node.sign_ins.require(who, address)
    known = node.state.user_with_address(address)
    credential = node.state.credentials.get(known.id) if known else None
    is_right = await node.vault.is_password(credential, password)
    if not is_right or known is None or credential is None:
        raise WrongPassword("The address or the password is wrong.")
    node.sign_ins.succeeded(who, address)
    # The account may have changed while the password was checked.
    return require_usable(node, known.id), credential.password_hash


def require_usable(node: Node, user_id: int) -> User:
    """The account as it is now. OrganizationDeactivated, AccountDeactivated."""
    user = node.state.users[user_id]
    require_open(node)
    if not user.is_active:
        raise AccountDeactivated("The account is deactivated.")
    return user


def new_session(
    node: Node, request: Request, password_hash: str | None = None
) -> tuple[str, sessions.NewSession]:
    """A session to be, for the browser that sent the request, and its token. One that the browser
    has is to end."""
    token = secrets.token_urlsafe(32)
    before = session_of(node, request)
    new = sessions.NewSession(
        digest=digest(token),
        agent=request.headers.get("user-agent", ""),
        replaced_id=before.id if before else None,
        password_hash=password_hash,
    )
    return token, new


async def sign_in(
    node: Node, request: Request, user: User, password_hash: str | None = None
) -> Session:
    """Sign the browser in: it gets its cookies with the response. Raises as `sessions.begin`."""
    token, new = new_session(node, request, password_hash)
    session = await node.log.submit(user.id, sessions.begin, new)
    keeping.give(node, request, session, token)
    return session


async def sign_out(node: Node, request: Request) -> None:
    """End the browser's session, if it has one, and take its cookies away."""
    session = session_of(node, request)
    if session is not None:
        await node.log.submit(session.user_id, signing_out.end, session.id)
    keeping.take_away(node, request)
