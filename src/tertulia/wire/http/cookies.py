"""Cookies of sessions and devices, and the middleware that sends them."""

import contextlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from http.cookies import SimpleCookie
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.domain.accounts import access_keys, sessions
from tertulia.model.access_keys import AccessKey
from tertulia.model.errors import (
    Refused,
    Unavailable,
)
from tertulia.model.sessions import LIFETIME, Session
from tertulia.model.users import Credential, User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.links import Links
from tertulia.wire.http.authentication import (
    access_key_in,
    csrf_token,
    session_in,
    session_of,
)
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import (
    CSRF_COOKIE,
    DEVICE_COOKIE,
    SESSION_COOKIE,
    client_address,
    cookie_name,
    first_of_each,
    site_of,
)

_CHALLENGE: Final = b"www-authenticate"
_FORGET: Final = (b"clear-site-data", b'"storage"')
"""Clears data that Tertulia's pages stored in the browser, such as drafts, so that its next user
doesn't see them."""
DEVICE_SECONDS: Final = 365 * 86400
"""How long a browser counts as a user's device after it was last used to sign in."""
_DEVICE: Final = "device"
_DEVICE_ACCOUNTS: Final = 5
"""The most accounts that a browser is remembered for, because people share computers."""


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
    """Set cookies with the response, replacing earlier ones of the same names."""
    new = {cookie.partition("=")[0] for cookie in cookies}
    before = getattr(request.state, "cookies", ())
    kept = (cookie for cookie in before if cookie.partition("=")[0] not in new)
    request.state.cookies = [*kept, *cookies]


def clear_site_data(request: Request) -> None:
    """Make the browser clear the data that Tertulia's pages stored, with the response. Call this
    only for requests that are proven to come from Tertulia's pages (CSRF)."""
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
    """Set a cookie that scripts can't read with the response, or delete it (0 seconds). The last
    value for a name counts."""
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
    """Middleware that sends the cookies that endpoints set, renews sessions in use, and prevents
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
        """Record, at intervals, that the access key is in use."""
        node = self._node
        if access_keys.is_stale(key, node.clock()):
            address = client_address(request)
            with contextlib.suppress(Refused, Unavailable):
                await node.log.submit(None, access_keys.use, key.id, address)

    async def _renew(self, request: Request) -> None:
        """Record, at intervals, that the session is in use, and renew its cookies."""
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
    """Return a response's headers without `Basic` in a 401: browsers would open a dialog for a name
    and a password, but an API key is expected."""
    if status != 401:
        return list(headers)
    return [
        (name, b'Session realm="tertulia"' if name == _CHALLENGE else value)
        for name, value in headers
    ]


def is_from_browser(asked: Mapping[bytes, bytes]) -> bool:
    return b"sec-fetch-mode" in asked or asked.get(b"user-agent", b"").startswith(b"Mozilla/")
