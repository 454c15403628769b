"""Requests over raw sockets: one connection, one request at a time."""

import asyncio
import time
from collections.abc import Callable
from typing import Any

from bench.api import body_of, end_of

LOST = 0
"""The status of a request whose connection was closed before the response."""
FRESH_SECONDS = 2.0
Answered = Callable[[int, bytes], None]


class Connection(asyncio.Protocol):
    """A keep-alive connection."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._buffer = bytearray()
        self._end = 0
        self._answered: Answered | None = None
        self._used_at = time.monotonic()

    @classmethod
    async def to(cls, port: int) -> "Connection":
        """Connect to this machine."""
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, "127.0.0.1", port))[1]

    @property
    def is_fresh(self) -> bool:
        """Return whether the connection is certainly open. Servers close connections that were idle
        for some seconds, possibly just when the next request is sent."""
        quiet = time.monotonic() - self._used_at
        return quiet < FRESH_SECONDS and not self._transport.is_closing()

    def ask(self, asked: str, answered: Answered) -> None:
        """Send a request. `answered` is called with the response's status and body."""
        if self._transport.is_closing():
            answered(LOST, b"")
            return
        self._answered = answered
        self._transport.write(asked.encode())

    async def answer(self, asked: str) -> tuple[int, bytes]:
        """Send a request, and return the response's status and body."""
        future: asyncio.Future[tuple[int, bytes]] = asyncio.get_running_loop().create_future()
        self.ask(asked, lambda status, body: future.set_result((status, body)))
        return await future

    def drop(self) -> None:
        """Close the connection without waiting."""
        self._answered = None
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        self._finish(LOST, str(error or "closed by the server").encode())

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._end = self._end or end_of(self._buffer, None)
        if self._end and len(self._buffer) >= self._end:
            status, body = int(self._buffer[9:12]), body_of(bytes(self._buffer))
            self._buffer.clear()
            self._end = 0
            self._finish(status, body)

    def _finish(self, status: int, body: bytes) -> None:
        answered, self._answered = self._answered, None
        self._used_at = time.monotonic()
        if answered is not None:
            answered(status, body)
