"""An HTTP client for URLs that users choose.

It connects only to public addresses, which it resolves once and checks. It sends no cookies, and no
credentials except a token that the caller gives. It limits sizes, times, and numbers of requests.
"""

import asyncio
import contextlib
import importlib.util
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from tertulia import __version__
from tertulia.model.errors import Unavailable
from tertulia.outbound.addresses import Address, Network, embedded, is_elsewhere, parsed
from tertulia.outbound.http_responses import (
    NotAllowed,
    NotFetched,
    NotModified,
    StreamedResponse,
    WebResponse,
    seconds_to_wait,
)
from tertulia.outbound.http_targets import WEB_PORTS, HttpTarget, host_of, joined, target_of
from tertulia.store import authorities

if TYPE_CHECKING:
    import ssl

    import httpcore

    from tertulia.outbound.http_connection import HttpConnection

MAX_REDIRECTS: Final = 5
MAX_CONCURRENT: Final = 16
"""The default limit of requests at the same time."""
_SILENT_SECONDS: Final = 10.0
"""The longest pause in a response, in seconds."""
OWN_SECONDS: Final = 300.0
"""The number of seconds for which the addresses of this server's own name are cached."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_GONE: Final = frozenset({404, 410})
"""Statuses with which a service says that a URL no longer exists."""
KEPT: Final = 32
"""The most idle connections."""
IDLE_SECONDS: Final = 30.0
"""The number of seconds for which an idle connection is kept."""

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]


CHECK_SECONDS: Final = 2.0
"""The number of seconds for which `Web.require_allowed` waits for a host's addresses."""


class _Broken(NotFetched):
    """The connection ended, or its data isn't a response."""


class Web:
    """Sends requests to other servers.

    `site` is this server's own URL. It's named in requests, and requests to it or to another name
    of this machine are refused. `resolve` looks up a host's addresses, and `may_ask` decides which
    of them are allowed; by default, these are the system's resolver and public addresses of other
    machines. Addresses in `networks` are always allowed. `ports` are the allowed ports; None allows
    all.

    At most `max_concurrent` requests run at a time; others wait up to their own timeout. A server
    that sends nothing for `silent_seconds` is given up.

    With `keeps`, connections that `send` used are kept for further requests to the same origin. If
    a kept connection turns out to be closed, the request is sent again, so it may arrive twice. The
    same happens after a 404 or 410 on a kept connection, which may belong to an earlier request.
    """

    def __init__(
        self,
        site: str = "",
        *,
        resolve: Resolver | None = None,
        may_ask: Callable[[Address], bool] = is_elsewhere,
        ports: Collection[int] | None = WEB_PORTS,
        networks: Sequence[Network] = (),
        max_concurrent: int = MAX_CONCURRENT,
        keeps: bool = False,
        silent_seconds: float = _SILENT_SECONDS,
    ) -> None:
        self._agent = f"Mozilla/5.0 (compatible; Tertulia/{__version__}; +{site})"
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="resolver")
        self._resolve = resolve or self._look_up
        self._may_ask = may_ask
        self._ports = None if ports is None else frozenset(ports)
        self._networks = tuple(networks)
        self._site = site
        self._own: tuple[float, frozenset[Address]] = (0.0, frozenset())
        """The time until which the addresses of the own host are cached, and the addresses."""
        self._free = asyncio.Semaphore(max_concurrent)
        self._tls: ssl.SSLContext | None = None
        self._keeps = keeps
        self._silent_seconds = silent_seconds
        self._is_closed = False
        self._idle: list[HttpConnection] = []
        """Idle connections that can be used again, the newest last."""
        self._in_use: set[HttpConnection] = set()

    @asynccontextmanager
    async def opened(
        self,
        url: str,
        *,
        accept: str,
        seconds: float,
        since: Mapping[str, str] | None = None,
        bearer: str = "",
    ) -> AsyncIterator[StreamedResponse]:
        """Send a GET request, and yield the response after redirects.

        `since` are headers of a conditional request. `bearer` is a token that only the URL's own
        origin gets, not another one that it redirects to. Raise NotFetched, also within the context
        if the body ends early or takes longer than `seconds`; NotModified; and Unavailable if no
        other request ended within `seconds`.
        """
        async with self._place(seconds):
            try:
                async with asyncio.timeout(seconds):
                    headers = {"Accept": accept, **(since or {})}
                    async with self._get(url, headers, bearer) as answer:
                        yield answer
            except TimeoutError:
                raise NotFetched("it took too long") from None

    async def require_allowed(self, url: str) -> None:
        """Raise NotAllowed if a request to the URL would be refused for its host's addresses. A
        host whose addresses aren't found within `CHECK_SECONDS` passes: each request checks them
        again."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                target = self._target(url)
                await self._addresses(target.host, target.origin.port)
        except NotAllowed:
            raise
        except (NotFetched, TimeoutError):
            return

    async def send(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        seconds: float,
        limit: int,
        method: str = "POST",
    ) -> WebResponse:
        """Send the body, and return the response, with up to `limit` bytes. Redirects aren't
        followed. Raise NotFetched if there is no complete response within `seconds`, and
        Unavailable if no other request ended within `seconds`."""
        try:
            async with self._place(seconds), asyncio.timeout(seconds):
                target = self._target(url)
                if (connection := self._taken(target)) is not None:
                    with contextlib.suppress(_Broken):  # The server has just closed it.
                        reply = await self._sent(connection, target, method, headers, body, limit)
                        if reply.status not in _GONE:
                            return reply
                connection = await self._connected(target)
                return await self._sent(connection, target, method, headers, body, limit)
        except TimeoutError:
            raise NotFetched("it took too long") from None

    @asynccontextmanager
    async def posted(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float
    ) -> AsyncIterator[StreamedResponse]:
        """Send the body, and yield the response. Redirects aren't followed. Raise as `opened`, also
        for a status other than 200."""
        async with self._place(seconds):
            try:
                async with asyncio.timeout(seconds):
                    target = self._target(url)
                    connection = await self._connected(target)
                    sent = {"Content-Length": str(len(body)), **headers}
                    async with self._response(connection, target, "POST", sent, body) as response:
                        received = _headers_of(response)
                        if response.status != 200:
                            raise NotFetched(
                                f"it responded with status {response.status}",
                                response.status,
                                seconds_to_wait(received),
                            )
                        yield StreamedResponse(url, received, response.aiter_stream)
            except TimeoutError:
                raise NotFetched("it took too long") from None

    async def _sent(
        self,
        connection: "HttpConnection",
        target: HttpTarget,
        method: str,
        headers: Mapping[str, str],
        body: bytes,
        limit: int,
    ) -> WebResponse:
        headers = {"Accept": "application/json", "Content-Length": str(len(body)), **headers}
        async with self._response(connection, target, method, headers, body) as response:
            received = _headers_of(response)
            content = await StreamedResponse(target.url, received, response.aiter_stream).content(
                limit
            )
        if self._keeps:
            self._keep(connection)
        return WebResponse(response.status, received, content)

    @asynccontextmanager
    async def _place(self, seconds: float) -> AsyncIterator[None]:
        """Hold one of the `max_concurrent` slots, after waiting for it. Raise Unavailable."""
        try:
            async with asyncio.timeout(seconds):
                await self._free.acquire()
        except TimeoutError:
            raise Unavailable(
                "Too many requests to other servers are in progress. Try again."
            ) from None
        try:
            yield
        finally:
            self._free.release()

    async def close(self) -> None:
        self._is_closed = True
        for connection in (*self._idle, *self._in_use):
            self._end(connection)
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _taken(self, target: HttpTarget) -> "HttpConnection | None":
        """Return an idle connection to the target's origin that can be used, if any."""
        for connection in reversed(self._idle):
            if connection.origin == target.origin:
                if connection.is_free:
                    self._forget(connection)
                    return connection
                self._end(connection)
        return None

    def _keep(self, connection: "HttpConnection") -> None:
        if self._is_closed or not connection.is_free:
            connection.end()
            return
        if len(self._idle) >= KEPT:
            self._end(self._idle[0])
        loop = asyncio.get_running_loop()
        connection.timer = loop.call_later(IDLE_SECONDS, self._end, connection)
        self._idle.append(connection)

    def _forget(self, connection: "HttpConnection") -> None:
        if connection in self._idle:
            self._idle.remove(connection)
        if connection.timer is not None:
            connection.timer.cancel()

    def _end(self, connection: "HttpConnection") -> None:
        self._forget(connection)
        connection.end()

    async def _connected(self, target: HttpTarget) -> "HttpConnection":
        """Return a new connection to one of the addresses of the target's host."""
        from tertulia.outbound import http_connection

        note_what_is_missing()
        addresses = await self._addresses(target.host, target.origin.port)
        tls = await self._tls_context() if target.origin.scheme == b"https" else None
        try:
            return await http_connection.connected(target.origin, addresses, tls)
        except http_connection.ERRORS as error:
            raise NotFetched(_reason(error)) from None

    @asynccontextmanager
    async def _get(
        self, url: str, headers: Mapping[str, str], bearer: str
    ) -> AsyncIterator[StreamedResponse]:
        first = self._target(url).origin
        for _ in range(MAX_REDIRECTS + 1):
            target = self._target(url)
            connection = await self._connected(target)
            is_first = bool(bearer) and target.origin == first
            sent = {**headers, "Authorization": f"Bearer {bearer}"} if is_first else headers
            async with self._response(connection, target, "GET", sent) as response:
                received = _headers_of(response)
                if response.status in _REDIRECTS and "location" in received:
                    url = joined(url, received["location"])
                    continue
                if response.status == 304:
                    raise NotModified("it hasn't changed", response.status)
                if response.status != 200:
                    raise NotFetched(
                        f"the server responded with status {response.status}",
                        response.status,
                        seconds_to_wait(received),
                    )
                if received.get("content-encoding", "identity") != "identity":
                    raise NotFetched("the response is compressed, although that wasn't requested")
                yield StreamedResponse(url, received, response.aiter_stream)
                return
        raise NotFetched("there are too many redirects")

    @asynccontextmanager
    async def _response(
        self,
        connection: "HttpConnection",
        target: HttpTarget,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> "AsyncIterator[httpcore.Response]":
        """Send one request, and yield the response. The connection is closed with the context
        unless it's kept."""
        import httpcore

        from tertulia.outbound import http_connection

        keeps = self._keeps and method == "POST"
        lines = {
            "Host": target.authority,
            "User-Agent": self._agent,
            "Accept-Encoding": "identity",
            **({} if keeps else {"Connection": "close"}),
            **headers,
        }
        request = httpcore.Request(
            method,
            httpcore.URL(
                scheme=target.origin.scheme,
                host=target.origin.host,
                port=target.origin.port,
                target=target.path,
            ),
            headers=[(name.encode(), value.encode()) for name, value in lines.items()],
            content=body,
            extensions={"timeout": {"read": self._silent_seconds, "write": _SILENT_SECONDS}},
        )
        self._in_use.add(connection)
        try:
            async with connection.response(request) as response:
                yield response
        except (httpcore.NetworkError, httpcore.RemoteProtocolError) as error:
            raise _Broken(_reason(error)) from error
        except http_connection.ERRORS as error:
            raise NotFetched(_reason(error)) from error
        finally:
            self._in_use.discard(connection)
            if not keeps:
                connection.end()

    def _target(self, url: str) -> HttpTarget:
        """Return the target of a URL. Raise NotFetched if it isn't allowed."""
        target = target_of(url)
        if self._ports is not None and target.origin.port not in self._ports:
            raise NotFetched(f"port {target.origin.port} isn't a standard web port")
        return target

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        """Return the host's addresses. Raise NotFetched if one of them isn't allowed."""
        literal = parsed(host)
        try:
            addresses = [literal] if literal is not None else await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise NotFetched(f"the host wasn't found: {error}") from None
        own_host = host_of(self._site)
        is_own = host.rstrip(".") == own_host
        own_addresses = set(addresses) if is_own else await self._own_addresses(own_host)
        for address in addresses:
            if any(address in network for network in self._networks):
                continue
            # Don't reveal addresses of names in the private network.
            said = f"{address}" if literal is not None else "the host"
            if not self._may_ask(address):
                raise NotAllowed(f"{said} isn't on the public internet")
            if address in own_addresses or embedded(address) in own_addresses:
                raise NotAllowed(f"{said} is this server")
        return list(addresses)

    async def _own_addresses(self, host: str) -> Set[Address]:
        """Return the addresses of this server's own host."""
        until, result = self._own
        if not host or time.monotonic() < until:
            return result
        literal = parsed(host)
        if literal is not None:
            result = frozenset({literal})
        else:
            # If the lookup fails, keep the previous addresses.
            with contextlib.suppress(OSError, UnicodeError):
                result = frozenset(await self._resolve(host, 443))
        self._own = (time.monotonic() + OWN_SECONDS, result)
        return result

    async def _look_up(self, host: str, port: int) -> Sequence[Address]:
        import socket

        def look_up() -> list[Address]:
            lines = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            addresses = (parsed(str(line[4][0])) for line in lines)
            return list(dict.fromkeys(item for item in addresses if item is not None))

        return await asyncio.get_running_loop().run_in_executor(self._threads, look_up)

    async def _tls_context(self) -> "ssl.SSLContext":
        if self._tls is None:
            self._tls = await asyncio.to_thread(authorities.client_context, "http/1.1")
        return self._tls


def note_what_is_missing() -> None:
    """Mark `sniffio` as missing. httpcore tries to import it several times per request, and each
    failing search of all directories takes a fifth of a request's time."""
    if "sniffio" not in sys.modules and importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # "not there": see `import`


def _headers_of(response: "httpcore.Response") -> dict[str, str]:
    """Return the headers by their names in lowercase, with the last value of each."""
    return {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers
    }


def _reason(error: Exception) -> str:
    """Return the error in words for the owners of bots and feeds."""
    import httpcore

    match error:
        case httpcore.TimeoutException():
            return "it took too long"
        case httpcore.ConnectError():
            return str(error)
        case httpcore.NetworkError():
            return "the connection was lost"
        case _:
            return f"the response isn't valid HTTP: {error}"
