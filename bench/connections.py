"""Connections of a generator: raw sockets behind one epoll, nothing else.

A generator must cost less than what it asks. Requests are bytes that were made before; of an answer
no more is looked at than where it ends.
"""

import select
import socket
import sys
from collections.abc import Callable

from bench.asking import HOST, OK, BadAnswer, end_of

_SOURCES = 16
"""Addresses that connections come from: each has ports of its own."""
_CHUNK = 1 << 18


class Loop:
    """Waits for whichever connection has something to say."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, readable: Callable[[], None]) -> None:
        """Call it when there is something to read."""
        self._readers[descriptor] = readable
        self._epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """Wait for it no more."""
        del self._readers[descriptor]
        self._epoll.unregister(descriptor)

    def turn(self, timeout: float = 30.0) -> bool:
        """Wait for something, and do what is to be done. Whether there was anything."""
        readers = self._readers
        found = self._epoll.poll(timeout, 4096)
        for descriptor, _ in found:
            # What was read before may have closed it.
            if readable := readers.get(descriptor):
                readable()
        return bool(found)

    def until(self, done: Callable[[], bool], patience: float = 60.0) -> None:
        """Turn until it is done. BadAnswer where nothing at all comes for so many seconds."""
        while not done():
            if not self.turn(patience):
                raise BadAnswer(f"no answer within {patience:.0f} seconds")


class Connection:
    """One connection that is kept; one request at a time."""

    __slots__ = (
        "_descriptor",
        "_expected",
        "_heard",
        "_loop",
        "_needed",
        "_parts",
        "_size",
        "_socket",
    )

    def __init__(
        self, loop: Loop, port: int, number: int = 0, expected: frozenset[bytes] = frozenset({OK})
    ) -> None:
        """`expected` are the statuses of answers; any other ends it all."""
        self._expected = expected
        self._socket = socket.socket()
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if sys.platform == "linux":
            # All of 127.0.0.0/8 is this machine.
            self._socket.bind((f"127.0.0.{1 + number % _SOURCES}", 0))
        self._socket.connect((HOST, port))
        self._descriptor = self._socket.fileno()
        self._loop = loop
        self._parts: list[bytes] = []
        self._size = self._needed = 0
        self._heard: Callable[[bytes], None] = _nobody
        loop.watch(self._descriptor, self._readable)

    def ask(self, request: bytes, heard: Callable[[bytes], None]) -> None:
        """Send the request, and call `heard` with the whole answer."""
        self._heard = heard
        if self._socket.send(request) != len(request):
            raise BadAnswer("the server does not read what it is asked")

    def answer(self, request: bytes) -> bytes:
        """The answer, for those who can wait; others are heard meanwhile."""
        found: list[bytes] = []
        self.ask(request, found.append)
        self._loop.until(lambda: bool(found))
        return found[0]

    def close(self) -> None:
        """Hang up."""
        self._loop.forget(self._descriptor)
        self._socket.close()

    def _readable(self) -> None:
        data = self._socket.recv(_CHUNK)
        if not data:
            raise BadAnswer("the server closed a connection")
        if not self._parts:
            needed = end_of(data, self._expected)
            if needed == len(data):
                self._heard(data)
                return
            self._needed = needed
        self._parts.append(data)
        self._size += len(data)
        if not self._needed:
            self._parts = [b"".join(self._parts)]
            self._needed = end_of(self._parts[0], self._expected)
        if self._needed and self._size >= self._needed:
            data = b"".join(self._parts)
            self._parts, self._size, self._needed = [], 0, 0
            self._heard(data)


def _nobody(_: bytes) -> None:
    raise BadAnswer("an answer came that nobody asked for")
