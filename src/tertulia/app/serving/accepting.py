"""Accepting connections from a socket that several workers share, so that each has its part.

They all wait at one socket, so none of its connections is lost when one of them leaves, or waits
for one that stands still. But whoever wakes first would take all that come together. So a worker
that has more connections than another one lets the others go first. Decision 0025 has the figures.
"""

import asyncio
import contextlib
import logging
import socket
import time
from collections.abc import Callable, Coroutine
from typing import Final

from tertulia.app.serving.worker import Counts
from tertulia.wire.protocol.handshakes import Handshake, Handshakes

logger = logging.getLogger("tertulia.http")

AT_ONCE: Final = 4
"""Connections that are accepted before the others are looked at again."""
_YIELD_SECONDS: Final = 0.005
"""For so long others may go first. What they have not taken by then is accepted."""
_AGREE_SECONDS: Final = 2.0
"""For so long a server that leaves lets those whom it accepted agree upon TLS."""
_TROUBLE_SECONDS: Final = 1.0
"""Between a failure to accept, for want of files, and the next attempt."""


def has_more(own: int, least: int | None) -> bool:
    """Whether a worker with so many connections has too many beside one with the `least`."""
    return least is not None and own - least > AT_ONCE + least // 32


class Acceptor:
    """Takes the place of an `asyncio.Server`."""

    def __init__(
        self,
        listener: socket.socket,
        counts: Counts | None,
        protocol: Callable[[], asyncio.Protocol],
        connections: Callable[[], int],
        handshakes: Handshakes | None = None,
    ) -> None:
        """`connections` says how many this worker has. Without `counts`, it shares with nobody.
        With `handshakes`, TLS is spoken, by which connections come to their protocol."""
        self._listener = listener
        self._counts = counts
        self._protocol = protocol
        self._connections = connections
        self._handshakes = handshakes
        self._unfinished: set[Handshake] = set()
        self._opening: set[asyncio.Task[object]] = set()
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begin. OSError where nobody can listen at the socket's address."""
        self._listener.listen(2048)
        self._listener.setblocking(False)
        self.tell()
        self._resume()

    def tell(self) -> None:
        """Tell the other workers how many connections there are. To be called several times a
        second."""
        if not self._is_closed and self._counts is not None:
            self._counts.tell(self._own, time.monotonic())

    @property
    def _own(self) -> int:
        if self._handshakes is not None:
            return self._connections()  # Among which are those that are not agreed yet.
        return self._connections() + len(self._opening)

    def _resume(self) -> None:
        self._timer = None
        asyncio.get_running_loop().add_reader(self._listener, self._on_readable)

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener)
        self._timer = loop.call_later(seconds, then)

    def _on_readable(self) -> None:
        counts = self._counts
        if counts is not None and has_more(self._own, counts.least(time.monotonic())):
            self._pause(_YIELD_SECONDS, self._go_on)
        else:
            self._accept()

    def _go_on(self) -> None:
        self._resume()
        self._accept()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                break
            except OSError as error:
                logger.error("can't accept connections: %s", error)
                self._pause(_TROUBLE_SECONDS, self._resume)
                break
            opening = self._opened(connection, address)
            if opening is None:
                continue
            task = asyncio.get_running_loop().create_task(opening)
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        self.tell()

    def _opened(
        self, connection: socket.socket, address: object
    ) -> Coroutine[object, object, None] | None:
        """What lets the protocol begin on the connection; None where that was refused."""
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # It is gone already.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._handshakes is None:
            return self._open(connection)
        handshake = self._handshakes.begin(connection, address)
        return None if handshake is None else self._agree(self._handshakes, handshake)

    async def _open(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # It is gone already.
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self._protocol, connection)

    async def _agree(self, handshakes: Handshakes, handshake: Handshake) -> None:
        self._unfinished.add(handshake)
        try:
            await handshakes.finish(handshake)
        finally:
            self._unfinished.discard(handshake)

    def close(self) -> None:
        """Accept no more: the other workers do."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._counts is not None:
            self._counts.withdraw()
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Return when those that were accepted are open. Who does not agree upon TLS meanwhile is
        not waited for."""
        if self._opening:
            await asyncio.wait(self._opening, timeout=_AGREE_SECONDS)
        for handshake in self._unfinished:
            handshake.give_up()
        if self._opening:
            await asyncio.wait(self._opening, timeout=_AGREE_SECONDS)
