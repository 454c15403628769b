"""A server's connections: how many may be open, and how long each may keep the server waiting.

One timer checks the connections that keep the server waiting. The others don't take any work.
"""

import asyncio
import contextlib
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, Final, Protocol

from msgspec import Struct

from tertulia.wire.http.request_head import network_of
from tertulia.wire.protocol.addresses import trusting, unmapped
from tertulia.wire.protocol.load import Load, Turns

logger = logging.getLogger("tertulia.http")

RESERVE: Final = 20
"""Connections beyond the limit that are accepted for health checks only."""
SILENT_SECONDS: Final = 5.0
"""If the server is full, a connection without any progress for this time is closed."""
STOP_SECONDS: Final = 3.0
"""The same while the server is stopping."""
_LOG_SECONDS: Final = 1.0
"""The interval between log lines about addresses with too many connections."""


class ConnectionLimits(Struct, frozen=True, kw_only=True):
    """Limits on what connections may use."""

    most: int
    """The number of open connections, without `RESERVE`."""
    of_one_address: int = 0
    """The most connections per address; an IPv6 /64 network counts as one. At most half of all; 0
    for no limit."""
    trusted: str = ""
    """Addresses and networks, separated by commas, that are exempt from this limit: reverse
    proxies. This machine's addresses are also exempt."""
    head_seconds: float = 30.0
    """How long a request's head may take, and how long a new connection may be silent."""
    body_seconds: float = 30.0
    """How long the server initially waits for a body."""
    least_rate: int = 1024
    """The number of bytes received or taken that extend a wait by one second; 0 if any progress
    does."""
    answer_seconds: float = 60.0
    """How long the server initially waits for a client to take a response."""
    most_seconds: float = 120.0
    """The longest wait for a body or a client without progress."""
    unsent: int = 256 * 1024 * 1024
    """The most bytes of responses that wait for clients. Above it, connections whose clients have
    taken nothing for a while are closed."""
    sweep_seconds: float = 1.0


class Wait(Enum):
    """The reason why the server waits for a connection."""

    NOTHING = auto()
    SERVER = auto()
    """The server itself has paused reading."""
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    """The client has to take the written data."""


class Admission(Enum):
    """The decision about a new connection."""

    WELCOME = auto()
    RESERVED = auto()
    """The connection may send one health check and nothing else."""
    FULL = auto()
    TOO_MANY = auto()
    """The address has too many connections."""


class WatchedConnection(Protocol):
    """A connection, as its limits see it."""

    @property
    def waits_for(self) -> Wait: ...

    @property
    def turn(self) -> int:
        """The number of requests that have begun."""

    @property
    def received(self) -> int:
        """The number of received bytes of bodies."""

    @property
    def sent(self) -> int:
        """The number of bytes that the client has taken, as far as is known."""

    @property
    def unsent(self) -> int:
        """The number of written bytes that the client hasn't taken."""

    def give_up(self) -> None:
        """Close the connection, even if data is unsent."""


class ClientTimeout:
    """The time left for a client to make progress."""

    __slots__ = ("_at", "_progress", "_turn", "left", "silent_since", "wait")

    def __init__(self, connection: WatchedConnection, limits: ConnectionLimits, now: float) -> None:
        self._begin(connection, connection.waits_for, limits, now)

    def _begin(
        self, connection: WatchedConnection, wait: Wait, limits: ConnectionLimits, now: float
    ) -> None:
        self.wait = wait
        self.left = {Wait.HEAD: limits.head_seconds, Wait.ANSWER: limits.answer_seconds}.get(
            wait, limits.body_seconds
        )
        self.silent_since = self._at = now
        self._turn = connection.turn
        self._progress = _progress(connection, wait)

    def update(self, connection: WatchedConnection, limits: ConnectionLimits, now: float) -> None:
        """Update the time left with the bytes received or taken since the last call."""
        wait = connection.waits_for
        if wait is not self.wait or (wait is not Wait.ANSWER and connection.turn != self._turn):
            self._begin(connection, wait, limits, now)
            return
        if wait is not Wait.SERVER:
            self.left -= now - self._at
        progress = _progress(connection, wait)
        if progress != self._progress:
            more = (progress - self._progress) / limits.least_rate if limits.least_rate else now
            self.left = min(self.left + more, limits.most_seconds)
            self.silent_since, self._progress = now, progress
        self._at = now

    def is_silent(self, connection: WatchedConnection, now: float, seconds: float) -> bool:
        """Return whether there has been no progress for this time."""
        return (
            now - self.silent_since >= seconds
            and self.wait is not Wait.SERVER
            and connection.waits_for is self.wait
            and _progress(connection, self.wait) == self._progress
        )


def _progress(connection: WatchedConnection, wait: Wait) -> int:
    if wait is Wait.ANSWER:
        return connection.sent
    # A head has a fixed time, regardless of its progress.
    return connection.received if wait is Wait.BODY else 0


class Connections:
    """All connections of a server. Use it on the server's event loop."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self.limits = limits
        self.open = 0
        """The number of open connections."""
        self.is_leaving = False
        """Whether each connection ends with its next response."""
        self.is_stopping = False
        """Whether connections without progress are closed."""
        self.turns = Turns()
        self._of: Counter[str] = Counter()
        """Connections per address, for addresses with a limit."""
        self._most_of_one = min(limits.of_one_address, max(limits.most // 2, 1))
        self._is_trusted = trusting(limits.trusted)
        self._reserved: dict[WatchedConnection, None] = {}
        self._watched: dict[WatchedConnection, ClientTimeout] = {}
        """Connections that the server waits for, or did at the last sweep."""
        self._silent: list[WatchedConnection] = []
        """Connections without progress at the last sweep. The longest silent one is last."""
        self._timer: asyncio.TimerHandle | None = None
        self._logged_at = 0.0

    @property
    def watched(self) -> int:
        """The number of watched connections."""
        return len(self._watched)

    def admit(self, connection: WatchedConnection, host: str | None) -> Admission:
        """Count a connection from an address (None for this machine), and decide whether it's
        accepted. Call `lost` in any case."""
        self.open += 1
        address = self._bounded(host)
        if address is not None:
            self._of[address] += 1
            if self._of[address] > self._most_of_one:
                self._log_excess(address)
                return Admission.TOO_MANY
        if self.open <= self.limits.most or self._has_made_room():
            return Admission.WELCOME
        if len(self._reserved) >= RESERVE:
            # Health checks are sent immediately, so an old reserved connection isn't one.
            oldest = next(iter(self._reserved))
            del self._reserved[oldest]
            oldest.give_up()
        if self.open > self.limits.most + 2 * RESERVE:
            return Admission.FULL  # Closed connections aren't gone yet.
        self._reserved[connection] = None
        return Admission.RESERVED

    def replace(self, before: WatchedConnection, now: WatchedConnection) -> Admission:
        """Replace an admitted connection with another object. Return its admission."""
        self._watched.pop(before, None)
        if before not in self._reserved:
            return Admission.WELCOME
        # Keep the order: the oldest is first.
        self._reserved = {now if item is before else item: None for item in self._reserved}
        return Admission.RESERVED

    def lost(self, connection: WatchedConnection, host: str | None) -> None:
        """Forget a closed connection."""
        self.open -= 1
        address = self._bounded(host)
        if address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]
        self._reserved.pop(connection, None)
        self._watched.pop(connection, None)

    def watch(self, connection: WatchedConnection) -> None:
        """Watch a connection until the server no longer waits for it."""
        if connection in self._watched:
            return
        loop = asyncio.get_running_loop()
        self._watched[connection] = ClientTimeout(connection, self.limits, loop.time())
        if self._timer is None:
            self._timer = loop.call_later(self.limits.sweep_seconds, self._sweep)

    def _sweep(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._review(loop.time())
        finally:
            self._timer = None
            if self._watched:
                self._timer = loop.call_later(self.limits.sweep_seconds, self._sweep)

    def _review(self, now: float) -> None:
        silent: list[tuple[float, WatchedConnection]] = []
        unsent = 0
        for connection, patience in list(self._watched.items()):
            patience.update(connection, self.limits, now)
            if patience.wait is Wait.NOTHING:
                del self._watched[connection]
            elif patience.left < 0 or (
                self.is_stopping and patience.is_silent(connection, now, STOP_SECONDS)
            ):
                connection.give_up()
            else:
                unsent += connection.unsent
                if patience.is_silent(connection, now, SILENT_SECONDS):
                    silent.append((patience.silent_since, connection))
        silent.sort(key=lambda item: item[0], reverse=True)
        self._silent = [connection for _, connection in silent]
        while unsent > self.limits.unsent and self._silent:
            connection = self._silent.pop()
            if connection.unsent:
                unsent -= connection.unsent
                connection.give_up()

    def _has_made_room(self) -> bool:
        """Close the connection that has been silent longest, if any."""
        now = asyncio.get_running_loop().time()
        while self._silent:
            connection = self._silent.pop()
            patience = self._watched.get(connection)
            if patience is not None and patience.is_silent(connection, now, SILENT_SECONDS):
                connection.give_up()
                return True
        return False

    def _bounded(self, host: str | None) -> str | None:
        """Return the key that an address is counted under, or None if it has no limit."""
        if not self._most_of_one or host is None or self._is_trusted(host):
            return None
        return network_of(host)

    def _log_excess(self, address: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            fields = {"address": address, "most": self._most_of_one}
            logger.warning("too many connections from one address", extra={"fields": fields})


_FAREWELL_SECONDS: Final = 3600.0
"""How long TLS itself may take to close a connection. The limits end it sooner."""


class TlsHandshake:
    """A connection during its TLS handshake."""

    turn = received = sent = unsent = 0

    def __init__(self, plug: socket.socket, client: tuple[str, int] | None) -> None:
        self.plug = plug
        self.client = client
        """The client's address and port; None for a Unix socket."""
        self.is_over = False
        """Whether the handshake succeeded or failed."""

    @property
    def host(self) -> str | None:
        return self.client[0] if self.client else None

    @property
    def waits_for(self) -> Wait:
        return Wait.NOTHING if self.is_over else Wait.HEAD

    def give_up(self) -> None:
        """Close the connection, so that the handshake fails."""
        with contextlib.suppress(OSError):
            self.plug.shutdown(socket.SHUT_RDWR)


class TlsHandshakes:
    """Performs the TLS handshakes of accepted connections."""

    def __init__(
        self,
        connections: Connections,
        context: Callable[[], ssl.SSLContext],
        protocol: Callable[[TlsHandshake], asyncio.Protocol],
    ) -> None:
        """`context` is called for each handshake. `protocol` makes the protocol that then replaces
        the handshake among the connections."""
        self._connections = connections
        self._context = context
        self._protocol = protocol

    def begin(self, plug: socket.socket, address: Any) -> TlsHandshake | None:
        """Count an accepted connection. If it isn't admitted, close it silently and return None."""
        client = (
            (unmapped(str(address[0])), int(address[1])) if isinstance(address, tuple) else None
        )
        handshake = TlsHandshake(plug, client)
        admission = self._connections.admit(handshake, handshake.host)
        if admission in {Admission.TOO_MANY, Admission.FULL}:
            self._connections.lost(handshake, handshake.host)
            plug.close()
            return None
        self._connections.watch(handshake)
        return handshake

    async def finish(self, handshake: TlsHandshake) -> None:
        """Perform the handshake and start the protocol. If that fails, the connection is closed."""
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):  # TLS errors are OSErrors too.
                await loop.connect_accepted_socket(
                    lambda: self._protocol(handshake),
                    handshake.plug,
                    ssl=self._context(),
                    ssl_handshake_timeout=self._connections.limits.head_seconds,
                    ssl_shutdown_timeout=_FAREWELL_SECONDS,
                )
        finally:
            if not handshake.is_over:
                handshake.is_over = True
                self._connections.lost(handshake, handshake.host)
                handshake.plug.close()


@dataclass(frozen=True)
class HttpGauges:
    """Implements `tertulia.wire.http.node.ServerGauges`."""

    load: Load
    of_connections: Connections
    certificate_expires: Callable[[], float | None] = lambda: None

    @property
    def connections(self) -> int:
        return self.of_connections.open

    @property
    def in_progress(self) -> int:
        return self.load.in_progress

    @property
    def refused(self) -> int:
        return self.load.all_refused

    @property
    def certificate_expires_at(self) -> float | None:
        return self.certificate_expires()
