"""Authenticating requests by their Authorization header or session cookie."""

import base64
import contextlib
import hmac
import logging
import re
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import Scope

from tertulia.domain.accounts import access_keys, second_factors
from tertulia.domain.accounts.access_keys import NO_KEYS, Needs
from tertulia.model.access_keys import AccessKey
from tertulia.model.errors import (
    AccountDeactivated,
    NotAuthenticated,
    OrganizationDeactivated,
    WrongApiKey,
)
from tertulia.model.sessions import Session
from tertulia.model.users import ReachedUser, User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, key_digest
from tertulia.wire.http import audit
from tertulia.wire.http.errors import BadAuthorization, CsrfFailed
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import (
    SESSION_COOKIE,
    cookie_name,
    header,
)

logger = logging.getLogger("tertulia.http")

CSRF_HEADER: Final = "x-csrf-token"
WEBSITE: Final = "website"
"""The client name of requests that use a session cookie."""
KNOWN_HEADERS: Final = 10_000
"""The most Authorization headers whose parsed form is cached. The key is checked each time."""
USUAL_HEADER: Final = 400
"""The longest Authorization header that is cached, in characters."""
_SHOWN: Final = 200
"""The longest host that is logged, in characters."""
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})


def authenticate(node: HttpNode, request: Request, needs: Needs = NO_KEYS) -> User:
    """Return the user whose credentials the request has, which can be an access key with the
    capabilities in `needs`.

    Raises NotAuthenticated, BadAuthorization, WrongApiKey, KeyInsufficient, AccountDeactivated,
    OrganizationDeactivated, and CsrfFailed.
    """
    user = authenticated(node, request, needs)
    if user is None:
        raise NotAuthenticated("You need to sign in to do this.")
    return user


def authenticated(node: HttpNode, request: Request, needs: Needs = NO_KEYS) -> User | None:
    """Like `authenticate`, but return None for a request without credentials. An expired session
    counts as none, because browsers send its cookie unasked."""
    authorization = header(request.scope["headers"], b"authorization")
    if authorization is not None:
        user, key = _identified(node, authorization)
        if key is not None:
            access_keys.require(key, needs)
            request.state.access_key = key
        return user
    session = session_of(node, request)
    if session is None:
        return None
    if request.method not in _SAFE:
        require_own_page(node.config, request)
        require_csrf_token(node.vault, session, request.headers.get(CSRF_HEADER, ""))
    request.state.session = session
    return owner_of_session(node, session)


def session_in(scope: Scope) -> Session | None:
    """Return the session that authenticated the request; None for an API key or an anonymous
    request."""
    session: Session | None = scope["state"].get("session")
    return session


def access_key_in(scope: Scope) -> AccessKey | None:
    """Return the access key that authenticated the request; None for the account's own API key, a
    session, or an anonymous request."""
    key: AccessKey | None = scope["state"].get("access_key")
    return key


def within_reach(request: Request, user: User | None) -> User | None:
    """Return the user that the request was authenticated for, within the reach of its access
    key."""
    key = access_key_in(request.scope)
    return user if user is None or key is None else ReachedUser.of(user, key.reach)


def by_header(node: HttpNode, authorization: str) -> User:
    """Return the user whose own API key is in an Authorization header. Raises as `authenticate`,
    and KeyInsufficient for an access key."""
    user, key = _identified(node, authorization)
    if key is not None:
        access_keys.require(key, NO_KEYS)
    return user


def _identified(node: HttpNode, authorization: str) -> tuple[User, AccessKey | None]:
    """Return the user that an Authorization header identifies, and the access key in it, if it has
    one instead of the account's own key."""
    is_usual = len(authorization) <= USUAL_HEADER
    named, hashed = (known_header if is_usual else _named_in)(authorization)
    user, key = _with_key(node, hashed)
    if named != user.address.casefold() and not named.startswith(f"user{user.id}@"):
        raise WrongApiKey("The API key is invalid.")
    return _active(node, user), key


def _named_in(authorization: str) -> tuple[str, str]:
    """Return the email address in the header and the digest of its API key."""
    named, api_key = basic_credentials(authorization)
    return named, key_digest(api_key)


def basic_credentials(authorization: str) -> tuple[str, str]:
    """Return the email address and the API key in the header. Raises NotAuthenticated,
    BadAuthorization."""
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
    return email.strip().casefold(), api_key


known_header = lru_cache(maxsize=KNOWN_HEADERS)(_named_in)


def owner_of_key(node: HttpNode, request: Request, api_key: str, needs: Needs = NO_KEYS) -> User:
    """Return the user with this API key, for URLs that contain only a key. Raises WrongApiKey,
    KeyInsufficient, AccountDeactivated."""
    user, key = _with_key(node, key_digest(api_key))
    if key is not None:
        access_keys.require(key, needs)
        request.state.access_key = key
    return _active(node, user)


def _with_key(node: HttpNode, hashed: str) -> tuple[User, AccessKey | None]:
    state = node.state
    user_id = state.credentials.by_key_digest.get(hashed)
    if user_id is not None and hmac.compare_digest(state.credentials[user_id].key_digest, hashed):
        user = state.users[user_id]
        if not state.realm.account_api_keys and not user.is_bot:
            raise WrongApiKey(
                "This organization doesn't accept personal API keys. Sign in to this app again,"
                " or create a key for it in your settings."
            )
        return user, None
    key = _access_key(node, hashed)
    if key is None or not key.opens_api:
        raise WrongApiKey("The API key is invalid.")
    return state.users[key.user_id], key


def _access_key(node: HttpNode, hashed: str) -> AccessKey | None:
    """Return the unexpired access key with this digest, if any."""
    keys = node.state.access_keys
    key = keys.get(keys.by_digest.get(hashed))
    if key is None or not hmac.compare_digest(key.digest, hashed) or not key.lasts(node.clock()):
        return None
    return key


def _active(node: HttpNode, user: User) -> User:
    if not user.is_active:
        raise AccountDeactivated("This account is deactivated.")
    require_open(node)
    return user


def require_open(node: HttpNode) -> None:
    """Raise OrganizationDeactivated if the organization is deactivated."""
    if node.state.realm.deactivated:
        raise OrganizationDeactivated("This organization is deactivated.")


def record_refused_key(node: HttpNode, request: Request) -> None:
    """Record in the audit log that the request's API key was refused, for the account that it
    named."""
    user_id = None
    with contextlib.suppress(NotAuthenticated, BadAuthorization):
        named, _ = basic_credentials(header(request.scope["headers"], b"authorization") or "")
        user = node.state.user_with_address(named)
        if user is None and (numbered := re.match(r"user(\d{1,15})@", named)):
            user = node.state.users.get(int(numbered[1]))
        user_id = None if user is None else user.id
    audit.record(request, "key_refused", user_id=user_id)


def agent_of(node: HttpNode, request: Request) -> AccessKey:
    """Return the access key in the request's `Authorization: Bearer KEY` header.

    Raises NotAuthenticated, WrongApiKey, AccountDeactivated, OrganizationDeactivated.
    """
    authorization = header(request.scope["headers"], b"authorization")
    if not authorization:
        raise NotAuthenticated("This endpoint requires an access key as a Bearer token.")
    scheme, _, api_key = authorization.partition(" ")
    if scheme.lower() != "bearer":
        raise NotAuthenticated("This endpoint accepts only access keys, as Bearer tokens.")
    key = _access_key(node, key_digest(api_key.strip()))
    if key is None:
        raise WrongApiKey("The key is invalid, or it has expired.")
    _active(node, node.state.users[key.user_id])
    request.state.access_key = key
    return key


def session_of(node: HttpNode, request: Request) -> Session | None:
    """Return the unexpired session that the request's cookie identifies, if any."""
    token = request.cookies.get(cookie_name(node.config, SESSION_COOKIE))
    return session_with(node, key_digest(token)) if token else None


def session_with(node: HttpNode, hashed: str) -> Session | None:
    """Return the unexpired session whose token has this digest, if any."""
    state = node.state
    session = state.sessions.get(state.sessions.by_digest.get(hashed))
    if session is None or not hmac.compare_digest(session.digest, hashed):
        return None
    now = node.clock()
    if not session.lasts(now, node.config.session_seconds):
        return None
    return None if second_factors.ends_session(state, session, now) else session


def owner_of_session(node: HttpNode, session: Session) -> User:
    """Return the session's user. Raises AccountDeactivated, OrganizationDeactivated."""
    return _active(node, node.state.users[session.user_id])


def csrf_token(vault: Vault, session: Session) -> str:
    """Return the token that Tertulia's pages send with the session cookie, and that no other site
    can know."""
    return vault.token("csrf", session.id, session.digest)


def require_csrf_token(vault: Vault, session: Session, sent: str) -> None:
    """Raise CsrfFailed unless `sent` is the session's token."""
    if not hmac.compare_digest(csrf_token(vault, session).encode(), sent.encode()):
        raise CsrfFailed("The request doesn't come from a page of this server. Reload the page.")


def require_own_page(config: Config, request: Request) -> None:
    """Raise CsrfFailed if the browser reports that a page of another server sent the request."""
    site = request.headers.get("sec-fetch-site", "none")
    if site not in {"same-origin", "none"}:
        raise CsrfFailed("The request comes from a page on another server.")
    origin = request.headers.get("origin")
    if origin is None or _host_in(origin) in (hosts := _own_hosts(config, request)):
        return
    # Usually because a proxy doesn't pass on the Host header.
    page, server = origin[:_SHOWN], " or ".join(sorted(hosts))[:_SHOWN]
    fields = {"page": page, "server": server}
    logger.warning(
        "refused a page of another server; check that the proxy passes on the Host header",
        extra={"fields": fields},
    )
    raise CsrfFailed(
        f"The request comes from a page on another server: the page is at {page}, but this"
        f" server was reached as {server}. If both are the same server, make sure that its"
        " proxy passes on the Host header, or set external_url."
    )


def _own_hosts(config: Config, request: Request) -> set[str]:
    """Return the names of this server. Schemes are ignored, because a proxy may have removed
    TLS."""
    hosts = {request.headers.get("host", ""), _host_in(config.external_url)}
    return {host.lower() for host in hosts if host}


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""
