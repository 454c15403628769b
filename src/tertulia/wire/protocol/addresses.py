"""Addresses that the connection limit doesn't apply to: those of this machine and of reverse
proxies."""

from collections.abc import Callable
from typing import Final, cast

from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from tertulia.wire.http.peers import address_of_host, is_listed


def trusting(listed: str) -> Callable[[str], bool]:
    """Return a function that checks whether an address is this machine's or in a comma-separated
    list of addresses and networks, or `*` for all."""
    is_in_list = is_listed(listed)
    known: dict[str, bool] = {}

    def trusts(host: str) -> bool:
        if host not in known:
            if len(known) >= 1000:
                known.clear()
            known[host] = _is_own(host) or is_in_list(host)
        return known[host]

    return trusts


def is_loopback(host: str) -> bool:
    address = address_of_host(host)
    return address is not None and address.is_loopback


def unmapped(host: str) -> str:
    """Return the IPv4 address that a dual-stack listener sees as `::ffff:192.0.2.1`. Other
    addresses are unchanged."""
    return str(address_of_host(host)) if host.startswith("::ffff:") else host


def _is_own(host: str) -> bool:
    address = address_of_host(host)
    return address is None or address.is_loopback


_NAME: Final = "unix:"
"""Stands for the client of a Unix socket. No proxy could report it as an address."""


class SocketProxy:
    """Middleware that trusts X-Forwarded-For and X-Forwarded-Proto from anyone who can open the
    Unix socket."""

    def __init__(self, app: ASGIApp, trusted: str) -> None:
        """`trusted` lists more proxies, which are in front of the socket's proxy."""
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
