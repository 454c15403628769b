"""The nodes of one machine, which send each other datagrams.

Each has a socket in a directory that only their user can enter. Nothing depends on a datagram: one
may be lost, and its sender learns only of some losses.
"""

import asyncio
import contextlib
import os
import socket
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tertulia.store import file_modes

LARGEST: Final = 64 * 1024
"""Bytes that a datagram may have."""
_AT_ONCE: Final = 50
"""Datagrams that are read before others have their turn of the event loop."""
_QUEUE: Final = 4 << 20
"""Bytes that may wait to be read, as far as the system allows it."""


class Neighbours:
    """One node's socket. Used on the event loop alone."""

    def __init__(self, directory: Path, name: str, on_datagram: Callable[[bytes], None]) -> None:
        """`name` is by which others send to it. OSError where there can be no such socket, or
        others could enter the directory."""
        self._directory = directory
        self._on_datagram = on_datagram
        self._loop = asyncio.get_running_loop()
        file_modes.directory(directory)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise PermissionError(f"{directory} is not this user's alone")
        self._path = directory / name
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            self._socket.setblocking(False)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _QUEUE)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _QUEUE)
            self._forget_dead()
            self._socket.bind(str(self._path))
        except BaseException:
            self._socket.close()
            raise
        self._loop.add_reader(self._socket.fileno(), self._readable)

    def send(self, name: str, datagram: bytes) -> bool:
        """Send it to the node of that name. False where it certainly does not get it."""
        try:
            self._socket.sendto(datagram, str(self._directory / name))
        except OSError:  # It is gone, elsewhere, or too busy to read.
            return False
        return True

    def close(self) -> None:
        """Hear no more."""
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                self._on_datagram(self._socket.recv(2 * LARGEST))

    def _forget_dead(self) -> None:
        """Remove the sockets of nodes that were killed."""
        for path in self._directory.iterdir():
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
                try:
                    probe.connect(str(path))
                except ConnectionRefusedError:
                    path.unlink(missing_ok=True)
                except OSError:
                    continue


def meeting_place() -> Path:
    """The directory in which the nodes of this user on this machine find each other."""
    return Path(tempfile.gettempdir()) / f"tertulia-{os.getuid()}"
