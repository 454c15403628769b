"""Cookies of sessions, and of browsers that an account was signed in with before."""

import contextlib
import secrets
from collections.abc import Iterable, Iterator, Mapping
from http.cookies import SimpleCookie
from typing import Final

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.domain.accounts import sessions
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.sessions import LIFETIME, Session
from tertulia.model.users import Credential, User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.links import Links
from tertulia.wire.http.authentication import csrf_token, session_in, session_of
from tertulia.wire.http.node import HttpNode
from tertulia.wire.http.request_head import (
    CSRF_COOKIE,
    DEVICE_COOKIE,
    SESSION_COOKIE,
    cookie_name,
    first_of_each,
    site_of,
)

_CHALLENGE: Final = b"www-authenticate"
_FORGET: Final = (b"clear-site-data", b'"storage"')
"""Clears what our pages stored in the browser (drafts, for example), for privacy from its next
user."""
DEVICE_SECONDS: Final = 365 * 86400
"""How long a browser is known as one of an account's after it was last used for it."""
_DEVICE: Final = "device"
_DEVICE_ACCOUNTS: Final = 5
"""Accounts that one browser can be known for: people share computers."""


def give(node: HttpNode, request: Request, session: Session, token: str) -> None:
    """Set the session's cookies with the response to the request."""
    credential = node.state.credentials[session.user_id]
    request.state.cookies = kept(
        node.config, node.vault, request, session, token, credential, node.clock()
    )


def take_away(node: HttpNode, request: Request) -> None:
    """Delete the session's cookies with the response to the request. The device cookie stays."""
    request.state.cookies = [
        _cookie(node.config, request, name, "", 0) for name in (SESSION_COOKIE, CSRF_COOKIE)
    ]


def forget(request: Request) -> None:
    """Have the browser clear what our pages stored in it, with the response to the request. Only
    for requests that are proved to come from our pages, not from another site (CSRF)."""
    request.state.is_to_forget = True


def kept(
    config: Config,
    vault: Vault,
    request: Request,
    session: Session,
    token: str,
    credential: Credential,
    now: float,
) -> list[str]:
    """The cookies of a session, and the device cookie."""
    return [
        _cookie(config, request, SESSION_COOKIE, token, LIFETIME),
        _cookie(config, request, CSRF_COOKIE, csrf_token(vault, session), LIFETIME),
        _device_cookie(config, vault, request, credential, now),
    ]


# Devices: browsers that an account was signed in with before


def device_of(node: HttpNode, request: Request, user: User) -> str | None:
    """The device ID of the browser, if the account was signed in with it and still has the same
    password; else None."""
    mark = Links.password_mark(node.state.credentials[user.id])
    for text in _devices(node.config, node.vault, request, node.clock()):
        user_id, known_mark, device = text.split(":")
        if user_id == str(user.id) and known_mark == mark:
            return device
    return None


def know_device(node: HttpNode, request: Request, user_id: int) -> None:
    """Set a device cookie for the account's new password."""
    credential = node.state.credentials[user_id]
    cookie = _device_cookie(node.config, node.vault, request, credential, node.clock())
    request.state.cookies = [*getattr(request.state, "cookies", ()), cookie]


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
    """Middleware: adds the cookies that endpoints set to responses, renews those of sessions in use
    from time to time, and keeps browsers from showing a dialogue for a name and a password."""

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
                if message["status"] == 401 and asked_by_browser(first_of_each(scope["headers"])):
                    message["headers"] = without_dialogue(401, message["headers"])
                if "cookies" in state or "is_to_forget" in state:
                    message["headers"] = [
                        *message["headers"],
                        *((b"set-cookie", cookie.encode()) for cookie in state.get("cookies", ())),
                        *([_FORGET] if "is_to_forget" in state else ()),
                    ]
            await send(message)

        await self._app(scope, receive, sending)

    async def _renew(self, request: Request) -> None:
        """Record that a session is in use, and renew its cookies, if that was not done for a
        while."""
        node, session = self._node, session_in(request.scope)
        if session is None or hasattr(request.state, "cookies"):
            return
        if not sessions.is_stale(session, node.clock()) or session_of(node, request) is None:
            return
        with contextlib.suppress(Refused, Unavailable):
            await node.log.submit(None, sessions.use, session.id)
            give(node, request, session, request.cookies[cookie_name(node.config, SESSION_COOKIE)])


def without_dialogue(
    status: int, headers: Iterable[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    """The headers of a response to a browser. A 401 with `Basic` would make it ask for a name and a
    password, which an API key is not; our pages show where to sign in."""
    if status != 401:
        return list(headers)
    return [
        (name, b'Session realm="tertulia"' if name == _CHALLENGE else value)
        for name, value in headers
    ]


def asked_by_browser(asked: Mapping[bytes, bytes]) -> bool:
    """Whether a request with these headers was sent by a browser."""
    return b"sec-fetch-mode" in asked or asked.get(b"user-agent", b"").startswith(b"Mozilla/")
