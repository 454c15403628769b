"""Who a request comes from: by its Authorization header, or by the cookie of a session."""

import base64
import hmac
import logging
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope

from tertulia.model.agents import AgentKey
from tertulia.model.errors import (
    AccountDeactivated,
    NotAuthenticated,
    OrganizationDeactivated,
    WrongApiKey,
)
from tertulia.model.sessions import Session
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, key_digest
from tertulia.wire.http.errors import BadAuthorization, CsrfFailed
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import SESSION_COOKIE, cookie_name, header

logger = logging.getLogger("tertulia.http")

CSRF_HEADER: Final = "x-csrf-token"
WEBSITE: Final = "website"
"""The name of the client that is signed in to by cookie."""
KNOWN_HEADERS: Final = 10_000
"""Authorization headers of which it is remembered whom they name and what their key's digest is: a
client sends the same one with each request. Whether that is an account's is looked at each time."""
USUAL_HEADER: Final = 400
"""Characters of an Authorization header that is remembered."""
_SHOWN: Final = 200
"""Characters that are said of a host."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def authenticate(node: HttpNode, request: Request) -> User:
    """The account that the request's credentials stand for.

    Raises NotAuthenticated, BadAuthorization, WrongApiKey, AccountDeactivated,
    OrganizationDeactivated, and CsrfFailed.
    """
    user = authenticated(node, request)
    if user is None:
        raise NotAuthenticated("You need to sign in to do this.")
    return user


def authenticated(node: HttpNode, request: Request) -> User | None:
    """The same; None where the request has no credentials. A session that is over is none: browsers
    send its cookie without being asked."""
    authorization = header(request.scope["headers"], b"authorization")
    if authorization is not None:
        return by_header(node, authorization)
    session = session_of(node, request)
    if session is None:
        return None
    if request.method not in _SAFE:
        require_own_page(node.config, request)
        require_csrf_token(node.vault, session, request.headers.get(CSRF_HEADER, ""))
    request.state.session = session
    return owner_of_session(node, session)


def session_in(scope: Scope) -> Session | None:
    """The session by which the request of that scope was authenticated; None for an API key, or
    nobody."""
    session: Session | None = scope["state"].get("session")
    return session


# By the header


def by_header(node: HttpNode, authorization: str) -> User:
    """The account that an Authorization header stands for. Raises as `authenticate`."""
    is_usual = len(authorization) <= USUAL_HEADER
    named, hashed = (known_header if is_usual else _named_in)(authorization)
    user = _with_key(node, hashed)
    if named != user.address.casefold() and not named.startswith(f"user{user.id}@"):
        raise WrongApiKey("The API key is invalid.")
    return _active(node, user)


def _named_in(authorization: str) -> tuple[str, str]:
    """The address that the header names, and the digest of its API key."""
    if not authorization:
        raise NotAuthenticated("The request doesn't have an Authorization header.")
    scheme, _, rest = authorization.partition(" ")
    if scheme.lower() != "basic":
        raise BadAuthorization("The Authorization header must use HTTP Basic authentication.")
    try:
        email, colon, api_key = (
            base64.b64decode(rest.strip(), validate=True).decode().partition(":")
        )
    except ValueError:
        raise NotAuthenticated("The Authorization header isn't valid.") from None
    if not colon:
        raise NotAuthenticated("The Authorization header isn't valid.")
    return email.strip().casefold(), key_digest(api_key)


known_header = lru_cache(maxsize=KNOWN_HEADERS)(_named_in)
"""The same of the headers that came last."""


def owner_of_key(node: HttpNode, api_key: str) -> User:
    """The account whose key it is: for addresses that carry a key and nothing else.

    Raises WrongApiKey, AccountDeactivated.
    """
    return _active(node, _with_key(node, key_digest(api_key)))


def _with_key(node: HttpNode, hashed: str) -> User:
    state = node.state
    user_id = state.credentials.by_key_digest.get(hashed)
    if user_id is None or not hmac.compare_digest(state.credentials[user_id].key_digest, hashed):
        raise WrongApiKey("The API key is invalid.")
    return state.users[user_id]


def _active(node: HttpNode, user: User) -> User:
    if not user.is_active:
        raise AccountDeactivated("This account is deactivated.")
    require_open(node)
    return user


def require_open(node: HttpNode) -> None:
    """OrganizationDeactivated where it is."""
    if node.state.realm.deactivated:
        raise OrganizationDeactivated("This organization is deactivated.")


# By the key of an agent


def agent_of(node: HttpNode, request: Request) -> AgentKey:
    """The key of an agent that came with the request: `Authorization: Bearer KEY`.

    Raises NotAuthenticated, WrongApiKey, AccountDeactivated, OrganizationDeactivated.
    """
    authorization = header(request.scope["headers"], b"authorization")
    if not authorization:
        raise NotAuthenticated("This endpoint requires an agent key as a Bearer token.")
    scheme, _, api_key = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated("This endpoint accepts only agent keys, as Bearer tokens.")
    state, hashed = node.state, key_digest(api_key.strip())
    key = state.agent_keys.get(state.agent_keys.by_digest.get(hashed))
    if key is None or not hmac.compare_digest(key.digest, hashed):
        raise WrongApiKey("The agent key is invalid.")
    _active(node, state.users[key.user_id])
    return key


# By the cookie


def session_of(node: HttpNode, request: Request) -> Session | None:
    """The session whose cookie came with the request, if it is not over."""
    token = request.cookies.get(cookie_name(node.config, SESSION_COOKIE))
    return session_with(node, key_digest(token)) if token else None


def session_with(node: HttpNode, hashed: str) -> Session | None:
    """The session whose token has that digest, if it is not over."""
    state = node.state
    session = state.sessions.get(state.sessions.by_digest.get(hashed))
    if session is None or not hmac.compare_digest(session.digest, hashed):
        return None
    return session if session.lasts(node.clock(), node.config.session_seconds) else None


def owner_of_session(node: HttpNode, session: Session) -> User:
    """The account that is signed in. Raises AccountDeactivated, OrganizationDeactivated."""
    return _active(node, node.state.users[session.user_id])


def csrf_token(vault: Vault, session: Session) -> str:
    """What a page of ours sends beside the session's cookie, and no other page can know."""
    return vault.token("csrf", session.id, session.digest)


def require_csrf_token(vault: Vault, session: Session, sent: str) -> None:
    """CsrfFailed unless that is the session's."""
    if not hmac.compare_digest(csrf_token(vault, session).encode(), sent.encode()):
        raise CsrfFailed("The request doesn't come from a page of this server. Reload the page.")


def require_own_page(config: Config, request: Request) -> None:
    """CsrfFailed where the browser says that the page which asks is another server's."""
    site = request.headers.get("sec-fetch-site", "none")
    if site not in {"same-origin", "none"}:
        raise CsrfFailed("The request comes from a page on another server.")
    origin = request.headers.get("origin")
    if origin is None or _host_in(origin) in (own := _own_hosts(config, request)):
        return
    # Mostly it is a proxy that does not pass on the name by which it was asked.
    page, server = origin[:_SHOWN], " or ".join(sorted(own))[:_SHOWN]
    fields = {"page": page, "server": server}
    logger.warning("a page is another server's, by its Host", extra={"fields": fields})
    raise CsrfFailed(
        f"The request comes from a page on another server: the page is at {page}, but this"
        f" server was reached as {server}. If both are the same server, make sure that its"
        " proxy passes on the Host header, or set external_url."
    )


def _own_hosts(config: Config, request: Request) -> set[str]:
    """By what names the server is known. The scheme is left out: a proxy may have taken it away."""
    own = {request.headers.get("host", ""), _host_in(config.external_url)}
    return {host.lower() for host in own if host}


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""
