"""Who a request comes from: by its Authorization header, or by the cookie of a session."""

import base64
import hmac
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request

from tertulia.model.errors import (
    AccountDeactivated,
    NotAuthenticated,
    OrganizationDeactivated,
    WrongApiKey,
)
from tertulia.model.sessions import Session
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.vault import Vault, digest
from tertulia.wire.http.cookie_names import SESSION_COOKIE, cookie_name
from tertulia.wire.http.errors import BadAuthorization, CsrfFailed
from tertulia.wire.http.node import HttpNode

CSRF_HEADER: Final = "x-csrf-token"
WEBSITE: Final = "website"
"""The name of the client that is signed in to by cookie."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def authenticate(node: HttpNode, request: Request) -> User:
    """The account that the request's credentials stand for.

    Raises NotAuthenticated, BadAuthorization, WrongApiKey, AccountDeactivated,
    OrganizationDeactivated, and CsrfFailed.
    """
    user = authenticated(node, request)
    if user is None:
        raise NotAuthenticated("This needs an account: sign in first.")
    return user


def authenticated(node: HttpNode, request: Request) -> User | None:
    """The same; None where the request has no credentials. A session that is over is none: browsers
    send its cookie without being asked."""
    header = request.headers.get("authorization")
    if header is not None:
        return _by_header(node, header)
    session = session_of(node, request)
    if session is None:
        return None
    if request.method not in _SAFE:
        require_own_page(node.config, request)
        require_csrf_token(node.vault, session, request.headers.get(CSRF_HEADER, ""))
    request.state.session = session
    return _active(node, node.state.users[session.user_id])


# By the header


def _by_header(node: HttpNode, header: str) -> User:
    if not header:
        raise NotAuthenticated("There is no Authorization header with the request.")
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != "basic":
        raise BadAuthorization("Only HTTP Basic authentication is taken here.")
    try:
        email, colon, api_key = (
            base64.b64decode(rest.strip(), validate=True).decode().partition(":")
        )
    except ValueError:
        raise NotAuthenticated("The Authorization header cannot be read.") from None
    if not colon:
        raise NotAuthenticated("The Authorization header cannot be read.")
    named = email.strip().casefold()
    user = _with_key(node, api_key)
    if named != user.address.casefold() and not named.startswith(f"user{user.id}@"):
        raise WrongApiKey("The API key is not valid.")
    return _active(node, user)


def owner_of_key(node: HttpNode, api_key: str) -> User:
    """The account whose key it is: for addresses that carry a key and nothing else.

    Raises WrongApiKey, AccountDeactivated.
    """
    return _active(node, _with_key(node, api_key))


def _with_key(node: HttpNode, api_key: str) -> User:
    state = node.state
    hashed = digest(api_key)
    user_id = state.credentials.by_key_digest.get(hashed)
    if user_id is None or not hmac.compare_digest(state.credentials[user_id].key_digest, hashed):
        raise WrongApiKey("The API key is not valid.")
    return state.users[user_id]


def _active(node: HttpNode, user: User) -> User:
    if not user.is_active:
        raise AccountDeactivated("The account is deactivated.")
    require_open(node)
    return user


def require_open(node: HttpNode) -> None:
    """OrganizationDeactivated where it is."""
    if node.state.realm.deactivated:
        raise OrganizationDeactivated("The organization is deactivated.")


# By the cookie


def session_of(node: HttpNode, request: Request) -> Session | None:
    """The session whose cookie came with the request, if it is not over."""
    token = request.cookies.get(cookie_name(node.config, SESSION_COOKIE))
    if not token:
        return None
    state, hashed = node.state, digest(token)
    session = state.sessions.get(state.sessions.by_digest.get(hashed))
    if session is None or not hmac.compare_digest(session.digest, hashed):
        return None
    return session if session.lasts(node.clock(), node.config.session_seconds) else None


def csrf_token(vault: Vault, session: Session) -> str:
    """What a page of ours sends beside the session's cookie, and no other page can know."""
    return vault.token("csrf", session.id, session.digest)


def require_csrf_token(vault: Vault, session: Session, sent: str) -> None:
    """CsrfFailed unless that is the session's."""
    if not hmac.compare_digest(csrf_token(vault, session).encode(), sent.encode()):
        raise CsrfFailed("The request does not come from a page of this server: load it again.")


def require_own_page(config: Config, request: Request) -> None:
    """CsrfFailed where the browser says that the page which asks is another server's."""
    site = request.headers.get("sec-fetch-site", "none")
    origin = request.headers.get("origin")
    if site not in {"same-origin", "none"} or (
        origin is not None and _host_in(origin) not in _own_hosts(config, request)
    ):
        raise CsrfFailed("The request comes from a page of another server.")


def _own_hosts(config: Config, request: Request) -> set[str]:
    """The scheme is left out: a proxy may have taken it away."""
    own = {request.headers.get("host", ""), _host_in(config.external_url)}
    return {host.lower() for host in own if host}


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""
