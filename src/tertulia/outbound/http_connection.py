"""A connection to another server: the stream below httpcore, which speaks HTTP on it. A connection
is used again only if every byte that arrived belongs to the last response. Any other byte would be
taken for the response to the next request."""

import asyncio
import select
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import httpcore

from tertulia.outbound.addresses import Address

CONNECT_SECONDS: Final = 5.0
"""The timeout in seconds of connecting to one address, including TLS."""
MAX_HEAD: Final = 128 * 1024
"""The most bytes before a response's body."""
ERRORS = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError)
"""Errors raised while a request is sent or its response is read."""


class HttpConnection(httpcore.AsyncNetworkStream):
    """An open connection. One task at a time may use it."""

    timer: asyncio.TimerHandle | None = None
    """The timer that closes the connection if it stays idle."""

    def __init__(self, reader: "_Reader", writer: asyncio.StreamWriter, origin: httpcore.Origin):
        self.origin = origin
        self._reader = reader
        self._writer = writer
        self._http: httpcore.AsyncHTTP11Connection | None
        self._http = httpcore.AsyncHTTP11Connection(origin, self)
        self._started_at = 0
        """The number of bytes that had arrived before the last request."""
        self._head: bytearray | None = None
        """The bytes read since then; None while a body is read."""
        self._finished_at: int | None = None
        """The number of bytes that had arrived when the last response was complete."""

    @asynccontextmanager
    async def response(self, request: httpcore.Request) -> AsyncIterator[httpcore.Response]:
        """Send the request, and yield the response. Raise `ERRORS`. The connection is closed unless
        the body was read to its end and `is_free`."""
        http = self._http
        if http is None:
            raise httpcore.ReadError("the connection was closed")
        self._started_at, self._finished_at = self._reader.arrived, None
        head = self._head = bytearray()
        try:
            response = await http.handle_async_request(request)
            self._head = None
            yield response
            await response.aclose()
            length = _content_length(response)
            end = self._started_at + head.find(b"\r\n\r\n") + 4 + (length or 0)
            if length is not None and end == self._reader.arrived and http.is_idle():
                self._finished_at = end
        finally:
            if not self.is_free:
                self.end()

    @property
    def is_free(self) -> bool:
        """Whether another request can be sent: nothing arrived after the last response."""
        return (
            self._finished_at == self._reader.arrived
            and not self._writer.is_closing()
            and not _is_readable(self._writer)
        )

    def end(self) -> None:
        """Close the connection, whatever is in progress."""
        self._http = None  # It knows this one.
        self._writer.transport.abort()

    # Methods that httpcore calls

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            async with asyncio.timeout(timeout):
                data = await self._reader.read(max_bytes)
        except TimeoutError:
            raise httpcore.ReadTimeout from None
        except OSError as error:
            raise httpcore.ReadError(str(error)) from None
        if self._head is not None:
            self._head += data
            if len(self._head) > MAX_HEAD:
                raise httpcore.RemoteProtocolError("the response headers are too large")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._writer.write(buffer)
        try:
            async with asyncio.timeout(timeout):
                await self._writer.drain()
        except TimeoutError:
            raise httpcore.WriteTimeout from None
        except OSError as error:
            raise httpcore.WriteError(str(error)) from None

    async def aclose(self) -> None:
        self.end()

    def get_extra_info(self, info: str) -> Any:
        return None


async def connected(
    origin: httpcore.Origin, addresses: Sequence[Address], tls: ssl.SSLContext | None
) -> HttpConnection:
    """Connect to the first of the addresses that accepts. With TLS, the certificate must be for the
    origin's host. Raise httpcore.ConnectError."""
    loop = asyncio.get_running_loop()
    reason = "the host has no address"
    for address in addresses:
        reader = _Reader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                transport, _ = await loop.create_connection(
                    lambda protocol=protocol: protocol,
                    str(address),
                    origin.port,
                    ssl=tls,
                    server_hostname=origin.host.decode() if tls else None,
                )
        except TimeoutError:
            reason = "it took too long"
        except ssl.SSLCertVerificationError as error:
            reason = f"its certificate isn't valid: {error.verify_message}"
        except ConnectionRefusedError:
            reason = "it refused the connection"
        except OSError as error:
            reason = f"the connection failed: {error.strerror or error}"
        else:
            writer = asyncio.StreamWriter(transport, protocol, reader, loop)
            return HttpConnection(reader, writer, origin)
    raise httpcore.ConnectError(reason)


class _Reader(asyncio.StreamReader):
    """A reader that counts the bytes that arrived, read or not."""

    arrived = 0

    def feed_data(self, data: bytes) -> None:  # type: ignore[override]  # what it is given
        self.arrived += len(data)
        super().feed_data(data)


def _content_length(response: httpcore.Response) -> int | None:
    """Return the length of the body if it's known, without chunks; otherwise None."""
    if response.status == 204:
        return 0
    headers = {name.lower(): value for name, value in response.headers}
    length = headers.get(b"content-length", b"")
    return int(length) if length.isdigit() and b"transfer-encoding" not in headers else None


def _is_readable(writer: asyncio.StreamWriter) -> bool:
    """Whether data, or the end of the stream, has arrived that the event loop doesn't know about
    yet."""
    plug = writer.get_extra_info("socket")
    if plug is None or plug.fileno() < 0:
        return True
    poll = select.poll()
    poll.register(plug.fileno(), select.POLLIN)
    return bool(poll.poll(0))
