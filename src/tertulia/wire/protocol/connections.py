"""The connections of a server: how many there may be, and how long each may keep it waiting.

One timer looks at all connections that keep the server waiting; the others cost nothing.
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
"""Connections beyond the limit, for requests about the server's health alone."""
SILENT_SECONDS: Final = 5.0
"""A connection on which nothing came or was taken for so long is closed where there is no room."""
_LOG_SECONDS: Final = 1.0
"""Between two lines of the log about addresses with too many connections."""


class Limits(Struct, frozen=True, kw_only=True):
    """What connections may take of the server."""

    most: int
    """How many may be open, `RESERVE` left out."""
    of_one_address: int = 0
    """How many of them to one address (of IPv6, to one network of 64 bits), and never more than
    half of all; 0 for any number."""
    trusted: str = ""
    """Addresses and networks for which that does not hold, separated by commas: reverse proxies,
    behind which are many. Nor does it hold for this machine's own."""
    head_seconds: float = 30.0
    """How long a request's line and headers may take, and a connection may last on which nobody
    asks."""
    body_seconds: float = 30.0
    """How long the server waits for a body at first;"""
    least_rate: int = 1024
    """and a second more for so many bytes that came, or that a client took of an answer. 0 for any
    number."""
    answer_seconds: float = 60.0
    """How long the server waits at first for a client to take an answer."""
    most_seconds: float = 120.0
    """How long it waits at most for a body or a client with which nothing goes on."""
    unsent: int = 256 * 1024 * 1024
    """Bytes of answers that may wait for their clients. Beyond that, connections are closed whose
    clients have taken nothing for a while."""
    sweep_seconds: float = 1.0


class Wait(Enum):
    """What a connection keeps the server waiting for."""

    NOTHING = auto()
    SERVER = auto()
    """The server does not read on, for now."""
    HEAD = auto()
    BODY = auto()
    ANSWER = auto()
    """That the client takes what was written."""


class Admission(Enum):
    """What becomes of a new connection."""

    WELCOME = auto()
    RESERVED = auto()
    """It may ask for the server's health, and nothing else."""
    FULL = auto()
    TOO_MANY = auto()
    """Its address has too many."""


class Connection(Protocol):
    """What is to be known of a connection here."""

    @property
    def waits_for(self) -> Wait: ...

    @property
    def turn(self) -> int:
        """How many requests have begun on it."""

    @property
    def received(self) -> int:
        """Bytes of bodies that came on it."""

    @property
    def sent(self) -> int:
        """Bytes that its client has taken, as far as is known."""

    @property
    def unsent(self) -> int:
        """Bytes that it has not."""

    def give_up(self) -> None:
        """Close it, whatever is still to be sent."""


class ClientTimeout:
    """How much longer the server waits for one connection."""

    __slots__ = ("_at", "_progress", "_turn", "left", "silent_since", "wait")

    def __init__(self, connection: Connection, limits: Limits, now: float) -> None:
        self._begin(connection, connection.waits_for, limits, now)

    def _begin(self, connection: Connection, wait: Wait, limits: Limits, now: float) -> None:
        self.wait = wait
        self.left = {Wait.HEAD: limits.head_seconds, Wait.ANSWER: limits.answer_seconds}.get(
            wait, limits.body_seconds
        )
        self.silent_since = self._at = now
        self._turn = connection.turn
        self._progress = _progress(connection, wait)

    def update(self, connection: Connection, limits: Limits, now: float) -> None:
        """See what has come since, or was taken."""
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

    def is_silent(self, connection: Connection, now: float) -> bool:
        """Whether nothing came for a while, or was taken, that is waited for."""
        return (
            now - self.silent_since >= SILENT_SECONDS
            and self.wait is not Wait.SERVER
            and connection.waits_for is self.wait
            and _progress(connection, self.wait) == self._progress
        )


def _progress(connection: Connection, wait: Wait) -> int:
    if wait is Wait.ANSWER:
        return connection.sent
    # A head has its time, however much of it comes.
    return connection.received if wait is Wait.BODY else 0


class Connections:
    """All connections of a server. To be used on its event loop."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.open = 0
        """How many there are."""
        self.is_leaving = False
        """Whether each is to end with its next answer."""
        self.turns = Turns()
        self._of: Counter[str] = Counter()
        """How many each address has, for which there is a bound."""
        self._most_of_one = min(limits.of_one_address, max(limits.most // 2, 1))
        self._is_trusted = trusting(limits.trusted)
        self._reserved: dict[Connection, None] = {}
        self._watched: dict[Connection, ClientTimeout] = {}
        """Those that keep the server waiting, and some that did until a moment ago."""
        self._silent: list[Connection] = []
        """Those that did so for long at the last sweep, the longest last."""
        self._timer: asyncio.TimerHandle | None = None
        self._logged_at = 0.0

    @property
    def watched(self) -> int:
        """How many keep the server waiting, or did until a moment ago."""
        return len(self._watched)

    def admit(self, connection: Connection, host: str | None) -> Admission:
        """Count a connection from that address, None for this machine's own. Whatever becomes of
        it, `lost` must follow."""
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
            # Requests about the health come at once.
            oldest = next(iter(self._reserved))
            del self._reserved[oldest]
            oldest.give_up()
        if self.open > self.limits.most + 2 * RESERVE:
            return Admission.FULL  # Those that were given up are not yet gone.
        self._reserved[connection] = None
        return Admission.RESERVED

    def replace(self, before: Connection, now: Connection) -> Admission:
        """What was admitted is another object from now on. Returns what became of it then."""
        self._watched.pop(before, None)
        if before not in self._reserved:
            return Admission.WELCOME
        # The oldest is the first.
        self._reserved = {now if one is before else one: None for one in self._reserved}
        return Admission.RESERVED

    def lost(self, connection: Connection, host: str | None) -> None:
        """The connection is no more."""
        self.open -= 1
        address = self._bounded(host)
        if address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address]
        self._reserved.pop(connection, None)
        self._watched.pop(connection, None)

    def watch(self, connection: Connection) -> None:
        """The connection may keep the server waiting: watch it until it does not."""
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
        silent: list[tuple[float, Connection]] = []
        unsent = 0
        for connection, patience in list(self._watched.items()):
            patience.update(connection, self.limits, now)
            if patience.wait is Wait.NOTHING:
                del self._watched[connection]
            elif patience.left < 0:
                connection.give_up()
            else:
                unsent += connection.unsent
                if patience.is_silent(connection, now):
                    silent.append((patience.silent_since, connection))
        silent.sort(key=lambda one: one[0], reverse=True)
        self._silent = [connection for _, connection in silent]
        while unsent > self.limits.unsent and self._silent:
            connection = self._silent.pop()
            if connection.unsent:
                unsent -= connection.unsent
                connection.give_up()

    def _has_made_room(self) -> bool:
        """Give up a silent connection, if there is one: that which is it for longest."""
        now = asyncio.get_running_loop().time()
        while self._silent:
            connection = self._silent.pop()
            patience = self._watched.get(connection)
            if patience is not None and patience.is_silent(connection, now):
                connection.give_up()
                return True
        return False

    def _bounded(self, host: str | None) -> str | None:
        """What counts as the address, where there is a bound for it."""
        if not self._most_of_one or host is None or self._is_trusted(host):
            return None
        return network_of(host)

    def _log_excess(self, address: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_SECONDS:
            self._logged_at = now
            fields = {"address": address, "most": self._most_of_one}
            logger.warning("an address has too many connections", extra={"fields": fields})


_FAREWELL_SECONDS: Final = 3600.0
"""For so long TLS itself would let a connection end. What ends sooner, the connections' own limits
say."""


class Handshake:
    """One such connection: a `tertulia.wire.protocol.connections.Connection`."""

    turn = received = sent = unsent = 0

    def __init__(self, plug: socket.socket, client: tuple[str, int] | None) -> None:
        self.plug = plug
        self.client = client
        """Address and port of the other end; None where it has none."""
        self.is_over = False
        """Whether it has become a connection, or never will."""

    @property
    def host(self) -> str | None:
        return self.client[0] if self.client else None

    @property
    def waits_for(self) -> Wait:
        return Wait.NOTHING if self.is_over else Wait.HEAD

    def give_up(self) -> None:
        """Close it: the handshake fails."""
        with contextlib.suppress(OSError):
            self.plug.shutdown(socket.SHUT_RDWR)


class Handshakes:
    """Makes secure connections of those that were accepted."""

    def __init__(
        self,
        connections: Connections,
        context: Callable[[], ssl.SSLContext],
        protocol: Callable[[Handshake], asyncio.Protocol],
    ) -> None:
        """`context` is asked anew for each; `protocol` makes what speaks on the connection, which
        takes the place of the handshake among the connections."""
        self._connections = connections
        self._context = context
        self._protocol = protocol

    def begin(self, plug: socket.socket, address: Any) -> Handshake | None:
        """Count a connection that was accepted from that address. None where there is no room: it
        is closed, without a word that its client could read."""
        client = (
            (unmapped(str(address[0])), int(address[1])) if isinstance(address, tuple) else None
        )
        handshake = Handshake(plug, client)
        admission = self._connections.admit(handshake, handshake.host)
        if admission in {Admission.TOO_MANY, Admission.FULL}:
            self._connections.lost(handshake, handshake.host)
            plug.close()
            return None
        self._connections.watch(handshake)
        return handshake

    async def finish(self, handshake: Handshake) -> None:
        """Let the two agree, and the protocol begin. Where that fails, the connection is gone."""
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):  # So are errors of TLS.
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
class Gauges:
    """See `tertulia.wire.http.node.ServerGauges`."""

    load: Load
    of_connections: Connections

    @property
    def connections(self) -> int:
        return self.of_connections.open

    @property
    def in_progress(self) -> int:
        return self.load.in_progress

    @property
    def refused(self) -> int:
        return self.load.all_refused
