"""Requests over raw sockets: one connection, one request at a time."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

LOST = 0
"""The status of a request whose connection was closed before the response."""
FRESH_SECONDS = 2.0
Answered = Callable[[int, bytes], None]


def request(method: str, target: str, authorization: str, **parameters: Any) -> bytes:
    """A request to a path below /api/v1. Values that aren't strings are sent as JSON."""
    texts = {n: v if isinstance(v, str) else json.dumps(v) for n, v in parameters.items()}
    form = urlencode(texts)
    if method == "GET" and form:
        target, form = f"{target}?{form}", ""
    head = f"{method} /api/v1{target} HTTP/1.1\r\nHost: localhost\r\n"
    head += f"Authorization: {authorization}\r\n"
    if form:
        head += "Content-Type: application/x-www-form-urlencoded\r\n"
    if method != "GET":
        head += f"Content-Length: {len(form)}\r\n"
    return f"{head}\r\n{form}".encode()


class Line(asyncio.Protocol):
    """A keep-alive connection."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._buffer = bytearray()
        self._body = 0
        self._end = 0
        self._answered: Answered | None = None
        self._used_at = time.monotonic()

    @classmethod
    async def to(cls, port: int) -> "Line":
        """Connect to this machine."""
        loop = asyncio.get_running_loop()
        return (await loop.create_connection(cls, "127.0.0.1", port))[1]

    @property
    def is_fresh(self) -> bool:
        """Whether the connection is surely open: servers close connections that were idle for some
        seconds, perhaps just when the next request is sent."""
        quiet = time.monotonic() - self._used_at
        return quiet < FRESH_SECONDS and not self._transport.is_closing()

    def ask(self, asked: bytes, answered: Answered) -> None:
        """Send a request. `answered` is called with the response's status and body."""
        if self._transport.is_closing():
            answered(LOST, b"")
            return
        self._answered = answered
        self._transport.write(asked)

    async def answer(self, asked: bytes) -> tuple[int, bytes]:
        """Send a request and return the response's status and body."""
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
        if not self._end:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            head = bytes(self._buffer[:end]).lower()
            at = head.find(b"content-length:")
            length = int(head[at + 15 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
            self._body = end + 4
            self._end = self._body + length
        if len(self._buffer) >= self._end:
            status = int(self._buffer[9:12])
            body = bytes(self._buffer[self._body : self._end])
            self._buffer.clear()
            self._end = 0
            self._finish(status, body)

    def _finish(self, status: int, body: bytes) -> None:
        answered, self._answered = self._answered, None
        self._used_at = time.monotonic()
        if answered is not None:
            answered(status, body)
