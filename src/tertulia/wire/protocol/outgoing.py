"""What goes out on a connection."""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable
from typing import Any, Final

_SMALL: Final = 64 * 1024
"""Bytes up to which a body is copied behind its head, and not written by itself."""


class Outgoing:
    """A transport that sends a response's head together with what follows it, and ignores what is
    written when the client has just gone (uvloop's own fails at that).

    `on_response` is called when a response begins, `on_unsent_close` when the connection is closed
    before its client has taken all that was written, or, where it is secure, has agreed to that:
    both may take for ever.
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
        """Bytes that were handed to the transport."""
        self.answered_at = 0.0
        """When the last response was complete, by the clock."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    # Asked for with each request, and so not left to `__getattr__`, which is called last.

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        return self._transport.get_write_buffer_size()

    def write(self, data: bytes) -> None:
        """Write, or keep the head of a response for its body."""
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
        """Write a whole response, where none is under way; unless the connection is closing."""
        transport = self._transport
        if not transport.is_closing():
            self.written += len(response)
            transport.write(response)
            self.answered_at = self._clock()

    @property
    def in_kernel(self) -> int:
        """Bytes that the kernel keeps for the client, of which it takes new ones only when many
        are gone. 0 where that cannot be told."""
        plug = self._transport.get_extra_info("socket")
        try:
            answer = fcntl.ioctl(plug.fileno(), termios.TIOCOUTQ, bytes(4))
        except (OSError, AttributeError):
            return 0
        return int.from_bytes(answer, sys.byteorder)

    def flush(self) -> None:
        """The response is complete: it may have no body."""
        if self._head:
            self.write(b"")
        self.answered_at = self._clock()

    def lost(self) -> None:
        """The connection is no more. (References to it are dropped, so that it is freed without the
        garbage collector.)"""
        self._head = b""
        self._on_response = self._on_unsent_close = _nothing

    def close(self) -> None:
        """Close, when everything is written."""
        self.flush()
        self._transport.close()
        if self._is_secure or self._transport.get_write_buffer_size():
            self._on_unsent_close()


def _nothing() -> None:
    """There is nothing to call any more."""
