"""Asking other servers where somebody else says which: the server's HTTP client.

Who writes a link decides what the server asks for, so it may ask for nothing that they could not
ask for themselves: only machines on the internet, whose address is looked up once, examined, and
connected to; without credentials and cookies; with bounds to size, time and number.
"""

import asyncio
import contextlib
import importlib.util
import sys
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
    Sequence,
    Set,
)
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin, urlsplit

from tertulia import __version__
from tertulia.model.errors import Unavailable
from tertulia.outbound.addresses import Address, Network, embedded, is_elsewhere, parsed
from tertulia.outbound.http_line import HttpLine, LineFailed, TooLarge
from tertulia.outbound.kept_connections import KeptConnections, KeptHost

if TYPE_CHECKING:
    import ssl

    import httpx

MAX_REDIRECTS: Final = 5
MAX_URL: Final = 2000
"""Characters of an address that is asked for."""
AT_ONCE: Final = 16
"""Answers that are awaited at once, unless more are wanted."""
_CONNECT_SECONDS: Final = 5.0
_SILENT_SECONDS: Final = 10.0
"""So long an answer may pause."""
_PORTS: Final = {"http": 80, "https": 443}
WEB_PORTS: Final = frozenset(_PORTS.values())
"""What answers on others is not meant for everybody, and may not speak HTTP."""
OWN_SECONDS: Final = 300.0
"""How long the addresses of this server's own name are cached."""
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_NOTHING_THERE: Final = frozenset({404, 410})
"""Answers after which an address is forgotten."""

Resolver = Callable[[str, int], Awaitable[Sequence[Address]]]


CHECK_SECONDS: Final = 2.0
"""How long `Web.require_allowed` waits for a host's addresses."""


class NotFetched(Exception):
    """It could not be had. `str(error)` says why, for the log."""

    def __init__(self, reason: str, status: int = 0, wait: float = 0.0) -> None:
        """`status` is that of the answer, where there was one, and `wait` for how many seconds it
        asks to be left alone."""
        super().__init__(reason)
        self.status = status
        self.wait = wait


class NotAllowed(NotFetched):
    """The host has an address that this server does not connect to."""


class NotModified(NotFetched):
    """It is what it was when it was last had, as the request said."""


class _Doubtful(Exception):
    """The answer may be one to what was sent before on the connection."""


@dataclass(frozen=True)
class Answer:
    """What a server answered."""

    url: str
    """Where it was in the end."""
    headers: Mapping[str, str]
    _chunks: Callable[[], AsyncIterator[bytes]]

    @property
    def media_type(self) -> str:
        """What the server says that it is, in small letters and without parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()

    async def beginning(self, size: int) -> bytes:
        """The first bytes, at most so many."""
        found = bytearray()
        async for chunk in self._chunks():
            found += chunk
            if len(found) >= size:
                break
        return bytes(found[:size])

    async def content(self, limit: int) -> bytes:
        """All of it. NotFetched where it is more than the limit."""
        length = self.headers.get("content-length", "")
        if length.isdecimal() and int(length[:20]) > limit:
            raise NotFetched("it is too large")
        found = await self.beginning(limit + 1)
        if len(found) > limit:
            raise NotFetched("it is too large")
        return found


@dataclass(frozen=True)
class Reply:
    """What a server said to what was sent to it."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Web:
    """Fetches what is on other servers, or sends to them. `site` is this server's own address:
    requests say that they come from it, and it is not asked itself, nor is another name of the same
    machine.

    `resolve` looks a host's addresses up, and `may_ask` says which of them may be connected to:
    without them, the system's resolver and public addresses of other machines. `ports` are those
    that may be connected to; None for all. Addresses in `networks` may be connected to in any case.
    `at_once` answers are awaited at the same time; later requests wait for their turn, for as long
    as they themselves may take. With `keeps`, connections are kept by which something is sent, for
    hosts to which the same is sent time and again: what finds that its connection has just ended is
    sent once more, so that it may arrive twice. So is what is answered by 404 or 410 on a used
    connection, by one of its own: that may be what a server said to something else, as a second
    answer.
    """

    def __init__(
        self,
        site: str = "",
        *,
        resolve: Resolver | None = None,
        may_ask: Callable[[Address], bool] = is_elsewhere,
        ports: Collection[int] | None = WEB_PORTS,
        networks: Sequence[Network] = (),
        at_once: int = AT_ONCE,
        keeps: bool = False,
    ) -> None:
        self._agent = f"Mozilla/5.0 (compatible; Tertulia/{__version__}; +{site})"
        self._threads = ThreadPoolExecutor(8, thread_name_prefix="resolver")
        self._resolve = resolve or self._look_up
        self._may_ask = may_ask
        self._ports = None if ports is None else frozenset(ports)
        self._networks = tuple(networks)
        self._site = site
        self._own: tuple[float, frozenset[Address]] = (0.0, frozenset())
        """Until when the addresses of the own host are cached, and these."""
        self._free = asyncio.Semaphore(at_once)
        self._tls: ssl.SSLContext | None = None
        self._kept = KeptConnections() if keeps else None

    @asynccontextmanager
    async def opened(
        self, url: str, *, accept: str, seconds: float, since: Mapping[str, str] | None = None
    ) -> AsyncIterator[Answer]:
        """The answer to a GET of the URL, after redirections, for the time of the context. `since`
        are headers that say which version of it is known.

        Raises NotFetched: also inside of the context, where the answer does not go on, and where
        all of it takes longer than so many seconds. NotModified where the known version is the
        newest; Unavailable where nobody was asked, because others took all places for as long.
        """
        async with self._place(seconds):
            try:
                async with asyncio.timeout(seconds):
                    async with self._get(url, {"Accept": accept, **(since or {})}) as answer:
                        yield answer
            except TimeoutError:
                raise NotFetched("it took too long") from None

    async def require_allowed(self, url: str) -> None:
        """Raise NotAllowed if a request to the URL would be refused for its host's addresses. A
        host whose addresses aren't found within `CHECK_SECONDS` passes: each request checks them
        again."""
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                host, port, _ = self._split(url)
                await self._addresses(host, port)
        except NotAllowed:
            raise
        except (NotFetched, TimeoutError):
            return

    async def send(
        self, url: str, body: bytes, headers: Mapping[str, str], *, seconds: float, limit: int
    ) -> Reply:
        """Send the body by POST, and read the answer, of no more than so many bytes. Nobody is
        followed elsewhere. NotFetched where there is no whole answer in so many seconds;
        Unavailable where nothing was sent, because others took all places for as long."""
        import httpx

        try:
            async with self._place(seconds), asyncio.timeout(seconds):
                sent = {"Accept": "application/json", **headers}
                if self._kept is None:
                    return await self._sent(url, sent, body, limit)
                try:
                    return await self._sent_kept(self._kept, url, sent, body, limit)
                except _Doubtful:
                    return await self._sent(url, sent, body, limit)
        except TimeoutError:
            raise NotFetched("it took too long") from None
        except LineFailed as error:
            raise NotFetched(str(error)) from error
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
            raise NotFetched(_reason(error)) from error

    async def _sent_kept(
        self,
        connections: KeptConnections,
        url: str,
        headers: Mapping[str, str],
        body: bytes,
        limit: int,
    ) -> Reply:
        """By one of these connections. _Doubtful where the answer may be another's."""
        host, port, is_secure = self._place_of(url)
        request = self._request_of(url, headers, body)
        async with connections.of(host, port, is_secure=is_secure) as kept:
            if kept is None:
                return await self._sent(url, headers, body, limit)
            if (line := kept.take()) is not None:
                try:
                    reply = await _asked(kept, line, request, limit)
                except TooLarge:
                    raise
                except LineFailed:
                    pass  # The other end has closed it at the moment of use.
                else:
                    if reply.status in _NOTHING_THERE:
                        raise _Doubtful
                    return reply
            line = await self._opened_line(kept, host, port, is_secure=is_secure)
            return await _asked(kept, line, request, limit)

    def _place_of(self, url: str) -> tuple[str, int, bool]:
        """The host, the port, and whether it is asked with TLS. NotFetched where it is not to be
        asked."""
        import httpx

        host, port, _ = self._split(url)
        return host, port, httpx.URL(url).scheme == "https"

    def _request_of(self, url: str, headers: Mapping[str, str], body: bytes) -> bytes:
        """A POST as it goes over the wire."""
        import httpx

        parts = httpx.URL(url)
        lines = [b"POST %b HTTP/1.1" % parts.raw_path]
        said = self._headers(parts.netloc.decode("ascii"), headers, keeps=True)
        for name, value in {**said, "Content-Length": str(len(body))}.items():
            line = f"{name}: {value}".encode()
            if b"\r" in line or b"\n" in line:
                raise ValueError(f"the {name} header must be a single line")
            lines.append(line)
        return b"\r\n".join([*lines, b"", body])

    async def _opened_line(
        self, kept: KeptHost, host: str, port: int, *, is_secure: bool
    ) -> HttpLine:
        """A new connection, to the first of the host's addresses that answers."""
        loop = asyncio.get_running_loop()
        trouble: Exception = NotFetched("the host has no address")
        for address in await kept.addresses(partial(self._addresses, host, port)):
            line = kept.new()
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await loop.create_connection(
                        lambda line=line: line,
                        str(address),
                        port,
                        ssl=self._tls_context() if is_secure else None,
                        # The name that the certificate must be for.
                        server_hostname=host if is_secure else None,
                    )
            except OSError as error:
                kept.give_back(line)
                trouble = NotFetched(_reason(error))
            except BaseException:
                kept.give_back(line)
                raise
            else:
                return line
        kept.forget_addresses()
        raise trouble

    async def _sent(self, url: str, headers: Mapping[str, str], body: bytes, limit: int) -> Reply:
        async with self._response(url, "POST", headers, body) as response:
            content = await Answer(url, response.headers, response.aiter_raw).content(limit)
        return Reply(response.status_code, response.headers, content)

    @asynccontextmanager
    async def _place(self, seconds: float) -> AsyncIterator[None]:
        """A place among those that await an answer. Unavailable where none was free in time."""
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
        """End all connections."""
        if self._kept is not None:
            await self._kept.close()
        self._threads.shutdown(wait=False, cancel_futures=True)

    @asynccontextmanager
    async def _get(self, url: str, headers: Mapping[str, str]) -> AsyncIterator[Answer]:
        import httpx  # Only where something is fetched: reading it takes a moment.

        for _ in range(MAX_REDIRECTS + 1):
            try:
                async with self._response(url, "GET", headers) as response:
                    if response.status_code in _REDIRECTS and "location" in response.headers:
                        url = _joined(url, response.headers["location"])
                        continue
                    status = response.status_code
                    if status == 304:
                        raise NotModified("it hasn't changed", status)
                    if status != 200:
                        wait = seconds_to_wait(response.headers)
                        raise NotFetched(f"the server responded with status {status}", status, wait)
                    if response.headers.get("content-encoding", "identity") != "identity":
                        raise NotFetched(
                            "the response is compressed, although that wasn't requested"
                        )
                    yield Answer(url, response.headers, response.aiter_raw)
                    return
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError) as error:
                raise NotFetched(_reason(error)) from error
        raise NotFetched("there are too many redirects")

    @asynccontextmanager
    async def _response(
        self,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
    ) -> "AsyncIterator[httpx.Response]":
        """The response to one request, by a connection of its own, which ends with the context."""
        transport = self._new_transport()
        try:
            response = await self._request(transport, url, method, headers, body)
            try:
                yield response
            finally:
                await response.aclose()
        finally:
            # Of what was cancelled the library may hold the connection until this.
            await transport.aclose()

    async def _request(
        self,
        transport: "httpx.AsyncHTTPTransport",
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> "httpx.Response":
        """One request, at the first of the host's addresses that answers."""
        import httpx

        host, port, authority = self._split(url)
        trouble: Exception = NotFetched("the host has no address")
        for address in await self._addresses(host, port):
            request = httpx.Request(
                method,
                httpx.URL(url).copy_with(host=str(address)),
                content=body,
                headers=self._headers(authority, headers, keeps=False),
                extensions={
                    # The name that the certificate must be for.
                    "sni_hostname": host,
                    "timeout": {
                        "connect": _CONNECT_SECONDS,
                        "read": _SILENT_SECONDS,
                        "write": _SILENT_SECONDS,
                        "pool": None,
                    },
                },
            )
            try:
                return await transport.handle_async_request(request)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                trouble = error
        raise trouble

    def _headers(
        self, authority: str, headers: Mapping[str, str], *, keeps: bool
    ) -> dict[str, str]:
        return {
            "Host": authority,
            "User-Agent": self._agent,
            "Accept-Encoding": "identity",
            **({} if keeps else {"Connection": "close"}),
            **headers,
        }

    def _split(self, url: str) -> tuple[str, int, str]:
        """The host, the port and the authority. NotFetched where it is not to be asked."""
        host, port, authority = _split_url(url)
        if self._ports is not None and port not in self._ports:
            raise NotFetched(f"port {port} isn't a standard web port")
        return host, port, authority

    async def _addresses(self, host: str, port: int) -> Sequence[Address]:
        """The host's addresses. NotFetched where one of them is not to be asked."""
        literal = parsed(host)
        try:
            found = [literal] if literal is not None else await self._resolve(host, port)
        except (OSError, UnicodeError) as error:
            raise NotFetched(f"the host wasn't found: {error}") from None
        own_host = _host_of(self._site)
        is_own = host.rstrip(".") == own_host
        own = set(found) if is_own else await self._own_addresses(own_host)
        for address in found:
            if any(address in network for network in self._networks):
                continue
            # Which address a name has within this network is not for whoever asks.
            said = f"{address}" if literal is not None else "the host"
            if not self._may_ask(address):
                raise NotAllowed(f"{said} isn't on the public internet")
            if address in own or embedded(address) in own:
                raise NotAllowed(f"{said} is this server")
        return list(found)

    async def _own_addresses(self, host: str) -> Set[Address]:
        """The addresses of this server's own host."""
        until, found = self._own
        if not host or time.monotonic() < until:
            return found
        literal = parsed(host)
        if literal is not None:
            found = frozenset({literal})
        else:
            # Names may not be found for a moment: then the addresses stay as they were.
            with contextlib.suppress(OSError, UnicodeError):
                found = frozenset(await self._resolve(host, 443))
        self._own = (time.monotonic() + OWN_SECONDS, found)
        return found

    async def _look_up(self, host: str, port: int) -> Sequence[Address]:
        import socket

        def look_up() -> list[Address]:
            lines = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found = (parsed(str(line[4][0])) for line in lines)
            return list(dict.fromkeys(one for one in found if one is not None))

        return await asyncio.get_running_loop().run_in_executor(self._threads, look_up)

    def _new_transport(self) -> "httpx.AsyncHTTPTransport":
        import httpx

        note_what_is_missing()
        limits = httpx.Limits(max_connections=1, max_keepalive_connections=0)
        # No proxy of the environment: it would do the looking up, after us.
        return httpx.AsyncHTTPTransport(verify=self._tls_context(), trust_env=False, limits=limits)

    def _tls_context(self) -> "ssl.SSLContext":
        import httpx

        if self._tls is None:
            self._tls = httpx.create_ssl_context(trust_env=False)
            self._tls.set_alpn_protocols(["http/1.1"])
        return self._tls


async def _asked(kept: KeptHost, line: HttpLine, request: bytes, limit: int) -> Reply:
    try:
        return Reply(*await line.ask(request, limit))
    finally:
        kept.give_back(line)


def note_what_is_missing() -> None:
    """httpcore asks for this package several times with each request. To find out that it is not
    there, Python looks through all directories each time: a fifth of what a request takes."""
    if "sniffio" not in sys.modules and importlib.util.find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # "not there": see `import`


def seconds_to_wait(headers: Mapping[str, str]) -> float:
    """For how many seconds the answer asks to be left alone; 0 where it says nothing of the kind,
    or says it by a date."""
    text = headers.get("retry-after", "")
    return float(text) if text.isdecimal() and len(text) < 6 else 0.0


def _split_url(url: str) -> tuple[str, int, str]:
    """The host, the port and the authority. NotFetched where it is not to be asked."""
    import httpx

    try:
        parts = httpx.URL(url)
    except httpx.InvalidURL:
        raise NotFetched("the URL isn't valid") from None
    if parts.scheme not in _PORTS or not parts.host or len(url) > MAX_URL:
        raise NotFetched("it isn't an http:// or https:// URL")
    if parts.userinfo:
        raise NotFetched("the URL contains a password")
    port = _PORTS[parts.scheme] if parts.port is None else parts.port
    host = parts.raw_host.decode("ascii").strip("[]")
    return host, port, parts.netloc.decode("ascii")


@lru_cache(4)
def _host_of(site: str) -> str:
    """The host of the server's own address, as it is asked for; empty where there is none."""
    import httpx

    try:
        return httpx.URL(site).raw_host.decode("ascii").strip("[]").rstrip(".") if site else ""
    except httpx.InvalidURL:
        return ""


def _reason(error: Exception) -> str:
    import httpx

    if isinstance(error, httpx.TimeoutException | TimeoutError):
        return "it took too long"
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _joined(url: str, location: str) -> str:
    try:
        found = urljoin(url, location)
        urlsplit(found)
    except ValueError:
        raise NotFetched("it redirects to an invalid URL") from None
    return found
