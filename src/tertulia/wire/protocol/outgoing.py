"""What goes out on a connection."""

import asyncio
import fcntl
import sys
import termios
from collections.abc import Callable
from typing import Any, Final

_SMALL: Final = 64 * 1024
"""Bytes that are copied sooner than written by themselves."""


class Outgoing:
    """A transport on which a response's head goes out with what follows it, and that takes what is
    written when the client has just gone (uvloop's own makes a mistake of that).

    `began` is called when a response begins, `closing` when the connection is closed before its
    client has taken all that was written: that may take for ever.
    """

    __slots__ = ("_began", "_closing", "_head", "_transport", "written")

    def __init__(
        self,
        transport: asyncio.Transport,
        began: Callable[[], None],
        closing: Callable[[], None],
    ) -> None:
        self._transport = transport
        self._began = began
        self._closing = closing
        self._head = b""
        self.written = 0
        """Bytes that were handed to the transport."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

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
            self._began()
        else:
            self.written += len(data)
            self._transport.write(data)

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

    def lost(self) -> None:
        """The connection is no more. (Whatever knows of it lets go of it, or it would lie about in
        memory until all of that is gone through.)"""
        self._head = b""
        self._began = self._closing = _nothing

    def close(self) -> None:
        """Close, when everything is written."""
        self.flush()
        self._transport.close()
        if self._transport.get_write_buffer_size():
            self._closing()


def _nothing() -> None:
    """Nobody is told."""
