"""A server on loopback that answers polls in one of two ways, and raw connections to it."""

import asyncio
import base64
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

from tertulia.app.composition import asgi
from tertulia.app.serving.http_server import Certificates
from tertulia.app.serving.listening import Acceptor, bound
from tertulia.wire.http.request_head import Headers
from tertulia.wire.protocol.connections import (
    ConnectionLimits,
    Connections,
    TlsHandshake,
    TlsHandshakes,
)
from tertulia.wire.protocol.http1 import TertuliaHttp
from tertulia.wire.protocol.load import Load
from tertulia.wire.protocol.polling import PollConnection, Polls, RepeatedPoll, WaitingPoll
from tests.support import Organization, Person
from tests.tls import unverified

WAYS = ("below", "endpoint")
"""How polls are answered: by the protocol on the fast path, or by the endpoint."""
SECONDS = 60
"""Seconds after which a test fails."""
SERVER_SETTINGS = b"GET /api/v1/server_settings HTTP/1.1\r\nHost: chat.test\r\n\r\n"


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: list[tuple[str, str]]
    """In alphabetical order."""
    body: bytes

    @property
    def told(self) -> dict[str, Any]:
        """The decoded body."""
        decoded: dict[str, Any] = msgspec.json.decode(self.body)
        return decoded

    @property
    def events(self) -> list[dict[str, Any]]:
        """The events of a success."""
        assert (self.status, self.told["result"]) == (200, "success"), self.body
        found: list[dict[str, Any]] = self.told["events"]
        return found

    def header(self, name: str) -> str | None:
        return dict(self.headers).get(name)


class Line:
    """A client's connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    def write(self, data: bytes) -> None:
        """Send data. If the server has closed the connection, it's lost."""
        if not self._writer.is_closing():
            self._writer.write(data)

    async def read(self, method: str = "GET") -> Answer:
        """The next response."""
        async with asyncio.timeout(SECONDS):
            first, *lines = (await self._reader.readuntil(b"\r\n\r\n"))[:-4].decode().split("\r\n")
            named = (line.partition(": ")[::2] for line in lines)
            # The client's remaining limit decreases with each request.
            headers = sorted(
                (n.lower(), v) for n, v in named if not n.lower().startswith("x-ratelimit-")
            )
            length = 0 if method == "HEAD" else int(dict(headers).get("content-length", 0))
            return Answer(int(first.split()[1]), headers, await self._reader.readexactly(length))

    async def ask(self, data: bytes, method: str = "GET") -> Answer:
        """The response to a request."""
        self.write(data)
        return await self.read(method)

    async def ended(self) -> bytes:
        """Everything that arrives until the server closes the connection."""
        async with asyncio.timeout(SECONDS):
            try:
                return await self._reader.read()
            except ConnectionResetError:
                return b""

    def half_close(self) -> None:
        """Close the sending side."""
        self._writer.write_eof()

    def reset(self) -> None:
        """Reset the connection."""
        plug = self._writer.get_extra_info("socket")
        plug.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._writer.transport.abort()

    async def close(self) -> None:
        self._writer.close()
        with suppress(ConnectionError):
            await self._writer.wait_closed()


class CountedPolls(Polls):
    """Counts the polls that it started."""

    started = 0
    usual = 0
    """Polls that weren't parsed again."""

    def start(
        self, connection: PollConnection, headers: Headers, query: bytes
    ) -> WaitingPoll | None:
        poll = super().start(connection, headers, query)
        self.started += poll is not None
        return poll

    def start_usual(
        self, connection: PollConnection, usual: RepeatedPoll, last: bytes
    ) -> WaitingPoll | None:
        poll = super().start_usual(connection, usual, last)
        self.started += poll is not None
        self.usual += poll is not None
        return poll


class Loopback:
    """The server of an organization."""

    def __init__(
        self,
        org: Organization,
        way: str,
        load: Load | None = None,
        limits: ConnectionLimits | None = None,
        app: ASGIApp | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        """`app` answers instead of the organization's own application. With `certificates`, the
        server uses TLS."""
        self._certificates = certificates
        self.connections = Connections(limits or ConnectionLimits(most=1000))
        self.org = org
        self.load = load or Load(SECONDS)
        self.way = way
        self.polls = CountedPolls(org.node) if way == "below" else None
        self.state = ServerState()
        self.state.default_headers = [(b"date", b"Thu, 01 Jan 2026 00:00:00 GMT")]
        self._config = Config(app or asgi(org.node), ws="none", lifespan="off", log_config=None)
        self._config.load()
        self._port = 0
        self._ahead = 0.0
        self._lines: list[Line] = []

    @property
    def waiting(self) -> int:
        return self.org.node.delivery.waiting

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self._port

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Loopback"]:
        listener = bound("127.0.0.1", 0)
        self._port = listener.getsockname()[1]
        server: asyncio.Server | Acceptor
        if self._certificates is None:
            loop = asyncio.get_running_loop()
            server = await loop.create_server(self._protocol, sock=listener)
        else:
            server = self._acceptor(listener, self._certificates)
        try:
            yield self
        finally:
            server.close()
            for line in self._lines:
                await line.close()
            for connection in list(self.state.connections):
                connection.transport.abort()
            if self.state.tasks:
                await asyncio.wait(self.state.tasks)
            await server.wait_closed()
            listener.close()

    def _protocol(self, handshake: TlsHandshake | None = None) -> TertuliaHttp:
        made = TertuliaHttp(
            lambda: self.polls, self.load, self.connections, self._config, self.state, {}
        )
        made.handshake = handshake
        return made

    def _acceptor(self, listener: socket.socket, certificates: Certificates) -> Acceptor:
        handshakes = TlsHandshakes(self.connections, lambda: certificates.context, self._protocol)
        acceptor = Acceptor(
            listener, None, self._protocol, lambda: self.connections.open, handshakes
        )
        acceptor.start()
        return acceptor

    async def connect(self) -> Line:
        line = Line(
            *await asyncio.open_connection("127.0.0.1", self._port, ssl=self._client_context)
        )
        self._lines.append(line)
        return line

    @property
    def _client_context(self) -> ssl.SSLContext | None:
        return None if self._certificates is None else unverified()

    def pass_time(self, seconds: float) -> None:
        """Age the connections by this much, after received data has been processed."""
        for more in (0, seconds):
            self._ahead += more
            self.connections._review(asyncio.get_running_loop().time() + self._ahead)

    async def settle(self) -> None:
        """Return when the server has processed everything sent before. (Invalid HTTP is answered
        immediately, whatever else is pending.)"""
        for _ in range(3):
            line = await self.connect()
            assert (await line.ask(b"nonsense\r\n\r\n")).status == 400


@asynccontextmanager
async def serving(
    org: Organization, way: str, limits: ConnectionLimits | None = None
) -> AsyncIterator[Loopback]:
    """The organization on loopback."""
    async with Loopback(org, way, limits=limits).open() as server:
        yield server


def basic(person: Person) -> str:
    """The person's Authorization header."""
    return "Basic " + base64.b64encode(f"{person.email}:{person.api_key}".encode()).decode()


def request(
    target: str,
    person: Person | None = None,
    *more: str,
    method: str = "GET",
    version: str = "1.1",
    body: str = "",
) -> bytes:
    """A request to a path below `/api/v1`, with more header lines."""
    lines: Sequence[str] = (
        f"{method} /api/v1{target} HTTP/{version}",
        *(() if any(line.startswith("Host:") for line in more) else ("Host: chat.test",)),
        *(() if person is None else (f"Authorization: {basic(person)}",)),
        *more,
    )
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode("latin-1")


def poll(queue_id: str, last: int, person: Person | None, *more: str) -> bytes:
    """A plain poll."""
    return request(f"/events?queue_id={queue_id}&last_event_id={last}", person, *more)
