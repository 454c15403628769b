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
from collections.abc import Callable
from typing import Final

from tertulia.app.serving.worker import Counts

logger = logging.getLogger("tertulia.http")

AT_ONCE: Final = 4
"""Connections that are accepted before the others are looked at again."""
_YIELD_SECONDS: Final = 0.005
"""For so long others may go first. What they have not taken by then is accepted."""
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
        counts: Counts,
        protocol: Callable[[], asyncio.Protocol],
        connections: Callable[[], int],
    ) -> None:
        """`connections` says how many this worker has."""
        self._listener = listener
        self._counts = counts
        self._protocol = protocol
        self._connections = connections
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
        if not self._is_closed:
            self._counts.tell(self._own, time.monotonic())

    @property
    def _own(self) -> int:
        return self._connections() + len(self._opening)

    def _resume(self) -> None:
        self._timer = None
        asyncio.get_running_loop().add_reader(self._listener, self._on_readable)

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener)
        self._timer = loop.call_later(seconds, then)

    def _on_readable(self) -> None:
        if has_more(self._own, self._counts.least(time.monotonic())):
            self._pause(_YIELD_SECONDS, self._go_on)
        else:
            self._accept()

    def _go_on(self) -> None:
        self._resume()
        self._accept()

    def _accept(self) -> None:
        for _ in range(AT_ONCE):
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                break
            except OSError as error:
                logger.error("no connection can be accepted: %s", error)
                self._pause(_TROUBLE_SECONDS, self._resume)
                break
            task = asyncio.get_running_loop().create_task(self._open(connection))
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        self.tell()

    async def _open(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # It is gone already.
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self._protocol, connection)

    def close(self) -> None:
        """Accept no more: the other workers do."""
        if self._is_closed:
            return
        self._is_closed = True
        self._counts.withdraw()
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Return when those that were accepted are open."""
        if self._opening:
            await asyncio.wait(self._opening)
