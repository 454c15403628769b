"""The word of a proxy that comes by a socket's path, where nobody has an address."""

from typing import Final, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

_NAME: Final = "unix:"
"""Stands for whoever came by the path: it is no address that a proxy could tell of."""


class SocketProxy:
    """Takes X-Forwarded-For and X-Forwarded-Proto from whoever may open the socket, and lets the
    application know nothing of the name that they have meanwhile."""

    def __init__(self, app: ASGIApp, trusted: str) -> None:
        """`trusted` are addresses of more proxies, before that one."""
        self._app = app
        named = trusted if trusted == "*" else f"{trusted},{_NAME}"
        self._forwarded = cast(ASGIApp, ProxyHeadersMiddleware(self._unnamed, named))  # type: ignore[arg-type]  # uvicorn's own types of ASGI

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["client"] is None:
            scope["client"] = (_NAME, 0)
        await self._forwarded(scope, receive, send)

    async def _unnamed(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["client"] == (_NAME, 0):
            scope["client"] = None
        await self._app(scope, receive, send)
