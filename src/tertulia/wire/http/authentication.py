"""Authenticating requests by their Authorization header or session cookie, and setting session
cookies."""

import base64
import contextlib
import hmac
import logging
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from http.cookies import SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.domain.accounts import access_keys, second_factors, sessions
from tertulia.domain.accounts.access_keys import NO_KEYS, Needs
from tertulia.model.access_keys import AccessKey
from tertulia.model.errors import (
    AccountDeactivated,
    NotAuthenticated,
    OrganizationDeactivated,
    Refused,
    Unavailable,
    WrongApiKey,
)
from tertulia.model.sessions import LIFETIME, Session
from tertulia.model.users import Credential, ReachedUser, User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault, key_digest
from tertulia.service.links import Links
from tertulia.wire.http import audit
from tertulia.wire.http.errors import BadAuthorization, CsrfFailed
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import (
    CSRF_COOKIE,
    DEVICE_COOKIE,
    SESSION_COOKIE,
    client_address,
    cookie_name,
    first_of_each,
    header,
    site_of,
)

logger = logging.getLogger("tertulia.http")

CSRF_HEADER: Final = "x-csrf-token"
WEBSITE: Final = "website"
"""The client name of requests that use a session cookie."""
KNOWN_HEADERS: Final = 10_000
"""Authorization headers whose parsed form is cached. Whether the key is valid is checked each
time."""
USUAL_HEADER: Final = 400
"""The length, in characters, up to which an Authorization header is cached."""
_SHOWN: Final = 200
"""The length, in characters, up to which a host is logged."""
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
    """Return the user whom the request was authenticated for, within the reach of its access
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
                "This organization doesn't accept people's own API keys. Sign in to this app again,"
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
    """Return the token that our pages send along with the session cookie, and no other site can
    know."""
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
    if origin is None or _host_in(origin) in (own := _own_hosts(config, request)):
        return
    # Most often a proxy doesn't pass on the Host header.
    page, server = origin[:_SHOWN], " or ".join(sorted(own))[:_SHOWN]
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
    own = {request.headers.get("host", ""), _host_in(config.external_url)}
    return {host.lower() for host in own if host}


def _host_in(address: str) -> str:
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""


_CHALLENGE: Final = b"www-authenticate"
_FORGET: Final = (b"clear-site-data", b'"storage"')
"""Clears what our pages stored in the browser, such as drafts, from its next user."""
DEVICE_SECONDS: Final = 365 * 86400
"""How long a browser counts as a user's device after it was last used to sign in."""
_DEVICE: Final = "device"
_DEVICE_ACCOUNTS: Final = 5
"""The number of accounts that a browser is remembered for: people share computers."""


def set_session_cookies(node: HttpNode, request: Request, session: Session, token: str) -> None:
    """Add the session's cookies to the response."""
    credential = node.state.credentials[session.user_id]
    _set(
        request,
        *session_cookies(
            node.config, node.vault, request, session, token, credential, node.clock()
        ),
    )


def clear_session_cookies(node: HttpNode, request: Request) -> None:
    """Delete the session's cookies with the response. The device cookie stays."""
    names = (SESSION_COOKIE, CSRF_COOKIE)
    _set(request, *(_cookie(node.config, request, name, "", 0) for name in names))


def _set(request: Request, *cookies: str) -> None:
    """Set cookies with the response, in place of those that were set before under their names."""
    new = {cookie.partition("=")[0] for cookie in cookies}
    before = getattr(request.state, "cookies", ())
    kept = (cookie for cookie in before if cookie.partition("=")[0] not in new)
    request.state.cookies = [*kept, *cookies]


def clear_site_data(request: Request) -> None:
    """Make the browser clear what our pages stored, with the response. Call this only for requests
    that are proven to come from our pages (CSRF)."""
    request.state.is_to_forget = True


def session_cookies(
    config: Config,
    vault: Vault,
    request: Request,
    session: Session,
    token: str,
    credential: Credential,
    now: float,
) -> list[str]:
    """Return the `Set-Cookie` values of a session and its device."""
    return [
        _cookie(config, request, SESSION_COOKIE, token, LIFETIME),
        _cookie(config, request, CSRF_COOKIE, csrf_token(vault, session), LIFETIME),
        _device_cookie(config, vault, request, credential, now),
    ]


# Devices: browsers in which the account was signed in before


def device_id_of(node: HttpNode, request: Request, user: User) -> str | None:
    """Return the browser's device ID if the user signed in with it under their current password."""
    mark = Links.password_mark(node.state.credentials[user.id])
    for text in _devices(node.config, node.vault, request, node.clock()):
        user_id, known_mark, device = text.split(":")
        if user_id == str(user.id) and known_mark == mark:
            return device
    return None


def add_cookie(config: Config, request: Request, name: str, value: str, seconds: int) -> None:
    """Set a cookie that only this server reads with the response, or delete it (0 seconds). The one
    set last under a name counts."""
    _set(request, _cookie(config, request, name, value, seconds))


def set_device_cookie(node: HttpNode, request: Request, user_id: int) -> None:
    """Renew the device cookie after the account's password changed."""
    credential = node.state.credentials[user_id]
    cookie = _device_cookie(node.config, node.vault, request, credential, node.clock())
    _set(request, cookie)


def _device_cookie(
    config: Config, vault: Vault, request: Request, credential: Credential, now: float
) -> str:
    user_id, mark = str(credential.user_id), Links.password_mark(credential)
    known = list(_devices(config, vault, request, now))
    mine = [text.split(":")[2] for text in known if text.split(":")[0] == user_id]
    device = mine[0] if mine else secrets.token_hex(8)
    others = [text for text in known if text.split(":")[0] != user_id]
    texts = [f"{user_id}:{mark}:{device}", *others][:_DEVICE_ACCOUNTS]
    expires = int(now) + DEVICE_SECONDS
    value = "~".join(vault.ticket(_DEVICE, text, expires) for text in texts)
    return _cookie(config, request, DEVICE_COOKIE, value, DEVICE_SECONDS)


def _devices(config: Config, vault: Vault, request: Request, now: float) -> Iterator[str]:
    sent = request.cookies.get(cookie_name(config, DEVICE_COOKIE), "")
    for ticket in sent.split("~", _DEVICE_ACCOUNTS)[:_DEVICE_ACCOUNTS]:
        text = vault.text_of(_DEVICE, ticket, now)
        if text is not None:
            yield text


def _cookie(config: Config, request: Request, name: str, value: str, seconds: int) -> str:
    is_read_by_scripts = name == CSRF_COOKIE
    name = cookie_name(config, name)
    jar: SimpleCookie = SimpleCookie()
    jar[name] = value
    jar[name]["path"] = "/"
    jar[name]["max-age"] = seconds
    jar[name]["samesite"] = "Lax"
    jar[name]["httponly"] = not is_read_by_scripts
    jar[name]["secure"] = site_of(config, request).startswith("https:")
    return jar[name].OutputString()


class SessionCookies:
    """Middleware that sends the cookies that endpoints set, renews sessions in use, and keeps
    browsers from opening their password dialog."""

    def __init__(self, node: HttpNode, app: ASGIApp) -> None:
        self._node = node
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                state = scope["state"]
                if session_in(scope) is not None:
                    await self._renew(Request(scope))
                elif (key := access_key_in(scope)) is not None:
                    await self._note_use(key, Request(scope))
                if message["status"] == 401 and is_from_browser(first_of_each(scope["headers"])):
                    message["headers"] = without_basic_challenge(401, message["headers"])
                if "cookies" in state or "is_to_forget" in state:
                    message["headers"] = [
                        *message["headers"],
                        *((b"set-cookie", cookie.encode()) for cookie in state.get("cookies", ())),
                        *([_FORGET] if "is_to_forget" in state else ()),
                    ]
            await send(message)

        await self._app(scope, receive, sending)

    async def _note_use(self, key: AccessKey, request: Request) -> None:
        """Record that the access key is in use, at intervals."""
        node = self._node
        if access_keys.is_stale(key, node.clock()):
            address = client_address(request)
            with contextlib.suppress(Refused, Unavailable):
                await node.log.submit(None, access_keys.use, key.id, address)

    async def _renew(self, request: Request) -> None:
        """Record that the session is in use and renew its cookies, at intervals."""
        node, session = self._node, session_in(request.scope)
        if session is None or hasattr(request.state, "cookies"):
            return
        if not sessions.is_stale(session, node.clock()) or session_of(node, request) is None:
            return
        with contextlib.suppress(Refused, Unavailable):
            await node.log.submit(None, sessions.use, session.id, client_address(request))
            set_session_cookies(
                node, request, session, request.cookies[cookie_name(node.config, SESSION_COOKIE)]
            )


def without_basic_challenge(
    status: int, headers: Iterable[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    """Return the headers of a response to a browser, without `Basic` in a 401: it would open a
    dialog for a name and a password, where an API key is expected."""
    if status != 401:
        return list(headers)
    return [
        (name, b'Session realm="tertulia"' if name == _CHALLENGE else value)
        for name, value in headers
    ]


def is_from_browser(asked: Mapping[bytes, bytes]) -> bool:
    return b"sec-fetch-mode" in asked or asked.get(b"user-agent", b"").startswith(b"Mozilla/")
