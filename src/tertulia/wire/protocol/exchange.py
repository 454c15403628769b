"""Writing responses: the transport of a connection, and uvicorn's request cycle."""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import (
    HEADER_RE,
    HEADER_VALUE_RE,
    STATUS_LINE,
    RequestResponseCycle,
)

from tertulia.model.errors import Unavailable

_SMALL: Final = 64 * 1024
"""Largest body that is copied behind its head into one write, in bytes."""


class Outgoing:
    """A transport that sends a response's head together with what follows, and ignores writes after
    the client closed the connection (uvloop's own transport fails then).

    `on_response` is called when a response begins; `on_unsent_close` when the connection is closed
    before its client has taken everything or, if it is secure, before it confirmed the end of TLS:
    either can take forever.
    """

    __slots__ = (
        "_clock",
        "_head",
        "_is_secure",
        "_on_response",
        "_on_unsent_close",
        "_transport",
        "answered_at",
        "written",
    )

    def __init__(
        self,
        transport: asyncio.Transport,
        on_response: Callable[[], None],
        on_unsent_close: Callable[[], None],
        clock: Callable[[], float],
        *,
        is_secure: bool = False,
    ) -> None:
        self._transport = transport
        self._on_response = on_response
        self._on_unsent_close = on_unsent_close
        self._clock = clock
        self._is_secure = is_secure
        self._head = b""
        self.written = 0
        """The number of bytes passed to the transport."""
        self.answered_at = 0.0
        """The time when the last response was complete, by the clock."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    # Called for each request, so it avoids the slow `__getattr__`.

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Write data. A response's head is held back until its body comes."""
        if self._transport.is_closing():
            return
        if self._head:
            head, self._head = self._head, b""
            self.written += len(head) + len(data)
            if len(data) > _SMALL:
                self._transport.writelines((head, data))
            else:
                self._transport.write(head + data)
        elif data.startswith(b"HTTP/1.1 ") and data.endswith(b"\r\n\r\n") and data[9:10] != b"1":
            self._head = data
            self._on_response()
        else:
            self.written += len(data)
            self._transport.write(data)

    def write_whole(self, response: bytes) -> None:
        """Write a complete response, if no other is in progress, unless the connection is
        closing."""
        transport = self._transport
        if not transport.is_closing():
            self.written += len(response)
            transport.write(response)
            self.answered_at = self._clock()

    @property
    def in_kernel(self) -> int:
        """The number of bytes in the kernel's send buffer; 0 if unknown or after the connection was
        closed. The buffer takes new bytes only after many have been sent."""
        plug = self._transport.get_extra_info("socket")
        try:
            answer = fcntl.ioctl(plug.fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, AttributeError, ValueError):
            return 0
        return int.from_bytes(answer, sys.byteorder)

    def flush(self) -> None:
        """Write a head that has no body, because the response is complete."""
        if self._head:
            self.write(b"")
        self.answered_at = self._clock()

    def lost(self) -> None:
        """Drop references after the connection was lost, so that it's freed without the garbage
        collector."""
        self._head = b""
        self._on_response = self._on_unsent_close = _nothing

    def close(self) -> None:
        """Close the connection after everything was written."""
        self.flush()
        self._transport.close()
        if self._is_secure or self._transport.get_write_buffer_size():
            self._on_unsent_close()


def _nothing() -> None:
    """Do nothing."""


_FRAMING: Final = frozenset({b"content-length", b"transfer-encoding", b"connection"})
"""Headers that delimit the response or the connection."""


class AsgiExchange(RequestResponseCycle):
    """uvicorn's request cycle, with a fast path for the usual response head. Validating each header
    separately, as uvicorn does, takes longer than the rest of a response."""

    async def run_asgi(self, app: Any) -> None:
        async def answered(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app(scope, receive, send)
            except Exception as error:
                # Starlette wraps it if it would have sent an error response.
                is_away = isinstance(error, Unavailable) or isinstance(error.__cause__, Unavailable)
                if not (is_away and self.response_started):
                    raise
                # The response can only be aborted.
                self.disconnected = True
                self.transport.abort()

        await super().run_asgi(answered)

    async def send(self, message: Any) -> None:
        if (
            self.response_started
            or message["type"] != "http.response.start"
            or self.flow.write_paused
            or self.disconnected
            or not self._begin(message["status"], [*self.default_headers, *message["headers"]])
        ):
            await super().send(message)

    def _begin(self, status: int, headers: list[tuple[bytes, bytes]]) -> bool:
        """Write the head of a response with a content length. If anything is unusual, write nothing
        and return False."""
        framing = [header for header in headers if header[0] in _FRAMING]
        if len(framing) != 1 or framing[0][0] != b"content-length" or not framing[0][1].isdigit():
            return False
        if HEADER_RE.search(b"".join([name for name, _ in headers])) or HEADER_VALUE_RE.search(
            b"".join([value for _, value in headers])
        ):
            return False
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        end = b"\r\n" if self.keep_alive else b"connection: close\r\n\r\n"
        self.response_started = True
        self.waiting_for_100_continue = False
        self.chunked_encoding = False
        self.expected_content_length = int(framing[0][1])
        self.transport.write(STATUS_LINE[status] + lines + end)
        return True
