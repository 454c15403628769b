"""Connections of a load generator: raw sockets with one epoll.

A generator must use less processor time than the server, so requests are prepared bytes, and only
the end of a response is searched.
"""

import select
import socket
import sys
from collections.abc import Callable

from bench.api import HOST, OK, BadAnswer, end_of

_SOURCES = 16
"""The number of client addresses. Each has its own ports."""
_CHUNK = 1 << 18


class Loop:
    """Waits for any connection with data."""

    def __init__(self) -> None:
        self._epoll = select.epoll()
        self._readers: dict[int, Callable[[], None]] = {}

    def watch(self, descriptor: int, readable: Callable[[], None]) -> None:
        """Call the function when the socket is readable."""
        self._readers[descriptor] = readable
        self._epoll.register(descriptor, select.EPOLLIN)

    def forget(self, descriptor: int) -> None:
        """Stop waiting for the socket."""
        del self._readers[descriptor]
        self._epoll.unregister(descriptor)

    def turn(self, timeout: float = 30.0) -> bool:
        """Wait for data and handle it. Return whether there was any."""
        readers = self._readers
        results = self._epoll.poll(timeout, 4096)
        for descriptor, _ in results:
            # An earlier handler may have closed it.
            if readable := readers.get(descriptor):
                readable()
        return bool(results)

    def until(self, done: Callable[[], bool], patience: float = 60.0) -> None:
        """Run until the condition is true. Raises BadAnswer if nothing arrives for this many
        seconds."""
        while not done():
            if not self.turn(patience):
                raise BadAnswer(f"no answer within {patience:.0f} seconds")


class Connection:
    """A keep-alive connection with one request at a time."""

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
        """`expected` are the accepted statuses. Any other raises BadAnswer."""
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
        """Send the request, and call `heard` with the complete response."""
        self._heard = heard
        if self._socket.send(request) != len(request):
            raise BadAnswer("the server does not read what it is asked")

    def answer(self, request: bytes) -> bytes:
        """Return the response, handling others in the meantime."""
        results: list[bytes] = []
        self.ask(request, results.append)
        self._loop.until(lambda: bool(results))
        return results[0]

    def close(self) -> None:
        """Close the connection."""
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
