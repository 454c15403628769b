"""Sessions from one request to the next: the cookies that a browser is given and keeps."""

import contextlib
from collections.abc import Iterable
from http.cookies import SimpleCookie
from typing import Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tertulia.config import Config
from tertulia.domain import sessions
from tertulia.model.errors import Refused, Unavailable
from tertulia.model.sessions import LIFETIME, Session
from tertulia.wire.authentication import (
    CSRF_COOKIE,
    SESSION_COOKIE,
    csrf_token,
    session_of,
)
from tertulia.wire.call import Node
from tertulia.wire.hosts import site_of

_CHALLENGE: Final = b"www-authenticate"
_FORGET: Final = (b"clear-site-data", b'"storage"')
"""What our pages keep in a browser, drafts for example, is not for whoever uses it next."""


def give(node: Node, request: Request, session: Session, token: str) -> None:
    """Give the browser the session's cookies with the response to the request."""
    request.state.cookies = kept(node.config, request, token, csrf_token(node.vault, session))


def take_away(node: Node, request: Request) -> None:
    """Take the session's cookies away with the response to the request."""
    request.state.cookies = [
        _cookie(node.config, request, name, "", 0) for name in (SESSION_COOKIE, CSRF_COOKIE)
    ]
    request.state.is_signed_out = True


def kept(config: Config, request: Request, token: str, csrf: str) -> list[str]:
    """The cookies of a session."""
    return [
        _cookie(config, request, SESSION_COOKIE, token, LIFETIME),
        _cookie(config, request, CSRF_COOKIE, csrf, LIFETIME),
    ]


def _cookie(config: Config, request: Request, name: str, value: str, seconds: int) -> str:
    jar: SimpleCookie = SimpleCookie()
    jar[name] = value
    jar[name]["path"] = "/"
    jar[name]["max-age"] = seconds
    jar[name]["samesite"] = "Lax"
    # Scripts of our pages read the other one.
    jar[name]["httponly"] = name == SESSION_COOKIE
    jar[name]["secure"] = site_of(config, request).startswith("https:")
    return jar[name].OutputString()


class Keeper:
    """Sends the cookies that are to be given or taken away, gives those of a session that is in
    use anew from time to time, and keeps browsers from asking for a name and a key by
    themselves."""

    def __init__(self, node: Node, app: ASGIApp) -> None:
        self._node = node
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope.setdefault("state", {})

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                request = Request(scope)
                await self._renew(request)
                cookies = scope["state"].get("cookies", ())
                headers = message["headers"]
                if message["status"] == 401 and asked_by_browser(request.headers):
                    headers = without_dialogue(401, headers)
                message["headers"] = [
                    *headers,
                    *((b"set-cookie", cookie.encode()) for cookie in cookies),
                    *([_FORGET] if "is_signed_out" in scope["state"] else ()),
                ]
            await send(message)

        await self._app(scope, receive, sending)

    async def _renew(self, request: Request) -> None:
        """Write down that a session is in use, where that was not done for a while."""
        node, state = self._node, request.state
        session: Session | None = getattr(state, "session", None)
        if session is None or hasattr(state, "cookies"):
            return
        if not sessions.is_stale(session, node.clock()) or session_of(node, request) is None:
            return
        with contextlib.suppress(Refused, Unavailable):
            await node.log.submit(None, sessions.use, session.id)
            give(node, request, session, request.cookies[SESSION_COOKIE])


def without_dialogue(
    status: int, headers: Iterable[tuple[bytes, bytes]]
) -> list[tuple[bytes, bytes]]:
    """The headers of a response to a browser. On a challenge of a kind that they know, browsers ask
    people for a name and a password, which an API key is not; our pages show where to sign in."""
    if status != 401:
        return list(headers)
    return [
        (name, b'Session realm="tertulia"' if name == _CHALLENGE else value)
        for name, value in headers
    ]


def asked_by_browser(asked: Headers) -> bool:
    """Whether a request with these headers is a browser's."""
    return "sec-fetch-mode" in asked or asked.get("user-agent", "").startswith("Mozilla/")
