"""Notifications between processes on one machine. Processes that serve from one SQLite file share a
directory with a socket per listener, and a pipe that a writer rings when it releases the file
(`LocalBus`). Nodes on PostgreSQL use a socket each (`PeerSocket`). Messages may be lost if a
reader's queue is full."""

import asyncio
import contextlib
import fcntl
import io
import os
import secrets
import selectors
import socket
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from tertulia.store import file_modes
from tertulia.store.broadcast import MAX_BYTES

_BELL: Final = "free"
_ALONE: Final = "alone"
_LOCK_SECONDS: Final = 1.0
"""Seconds between two attempts to lock."""
_SUFFIX: Final = ".socket"
_GROWN: Final = b"+"
_PEER_MESSAGES: Final = b"!"
_DATAGRAM: Final = 32 * 1024
"""The most bytes of messages to peers that are sent together, so that few of them fill a reader's
queue."""
_LARGEST: Final = 2 * _DATAGRAM + 8 * MAX_BYTES
"""The most bytes of a datagram: a text has up to `MAX_BYTES`, and is encoded again here."""
_FRESH_SECONDS: Final = 1.0
"""The number of seconds for which the list of listeners is reused while the directory looks
unchanged."""
_PATIENCE_SECONDS: Final = 0.1
"""The number of seconds for which a message to peers waits for slow readers in total."""
_PAUSE_SECONDS: Final = 0.005

_peer_messages = msgspec.json.Decoder(list[str])


class LocalBus:
    """One process's connection to the bus. Thread-safe."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._own: set[str] = set()
        self._others: Sequence[str] = ()
        self._listed: tuple[float, int] = (float("-inf"), 0)
        """The time when the other processes were listed, and the directory's modification time
        then."""
        self._sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._sender.setblocking(False)
        self._bell = _opened_bell(directory)

    def tell_growth(self, seq: int) -> None:
        """Notify the listeners that the log has this entry. Never blocks."""
        for name in self._listeners():
            self._send(name, b"%b%d" % (_GROWN, seq))

    def send_to_peers(self, messages: Iterable[str]) -> None:
        """Send the messages to the other processes. Takes up to `_PATIENCE_SECONDS`."""
        ends = time.monotonic() + _PATIENCE_SECONDS
        for datagram in _datagrams(messages):
            for name in self._listeners():
                while not self._send(name, datagram) and time.monotonic() < ends:
                    time.sleep(_PAUSE_SECONDS)  # A sender isn't notified when there is room again.

    def _send(self, name: str, datagram: bytes) -> bool:
        """Return False if the listener's queue is full."""
        try:
            self._sender.sendto(datagram, str(self._directory / name))
        except BlockingIOError:
            return False
        except ConnectionRefusedError:  # Its process was killed.
            with contextlib.suppress(FileNotFoundError):
                (self._directory / name).unlink()
        except OSError:
            return True
        return True

    def _listeners(self) -> Sequence[str]:
        try:
            changed = self._directory.stat().st_mtime_ns
            now = time.monotonic()
            if changed != self._listed[1] or now - self._listed[0] > _FRESH_SECONDS:
                names = os.listdir(self._directory)
                self._others = [n for n in names if n.endswith(_SUFFIX) and n not in self._own]
                self._listed = now, changed
        except OSError:  # The server is being stopped.
            return ()
        return self._others

    def listener(self) -> "Listener":
        """Return a new listener."""
        name = f"{os.getpid()}-{secrets.token_hex(4)}{_SUFFIX}"
        self._own.add(name)
        self._listed = (float("-inf"), 0)
        return Listener(self._directory / name)

    def ring(self) -> None:
        """Tell waiting writers that the file is free."""
        with contextlib.suppress(OSError):  # It already rings, or nobody listens.
            self._bell.write(b".")

    def wait_for_bell(self, seconds: float) -> None:
        """Return when a writer rings, or after `seconds`."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._bell, selectors.EVENT_READ)
            selector.select(max(seconds, 0))
        self._bell.read(65536)  # This reads nothing if another process was first.

    @contextlib.contextmanager
    def alone(self, goes_on: Callable[[], bool]) -> Iterator[bool]:
        """Keep other processes out for the duration of the context, after waiting for them. Yields
        False, without a lock, once `goes_on` returns False."""
        lock = os.open(self._directory / _ALONE, os.O_RDWR | os.O_CREAT, file_modes.FILE)
        try:
            while not (is_alone := _is_locked(lock)) and goes_on():
                time.sleep(_LOCK_SECONDS)  # A blocking lock couldn't be interrupted.
            yield is_alone
        finally:
            os.close(lock)

    def close(self) -> None:
        self._sender.close()
        self._bell.close()


def _opened_bell(directory: Path) -> io.FileIO:
    bell = directory / _BELL
    with contextlib.suppress(FileExistsError):
        os.mkfifo(bell, file_modes.FILE)
    # Opened for reading and writing, so that the other end always exists.
    return io.FileIO(os.open(bell, os.O_RDWR | os.O_NONBLOCK), "r+")


class Listener:
    """Receives messages from the other processes. Used by one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        self._socket.setblocking(False)
        self._socket.bind(str(path))
        self._woken, self._waker = socket.socketpair()

    def hear(
        self,
        seconds: float,
        on_growth: Callable[[int | None], None],
        on_peer_message: Callable[[str], None],
    ) -> None:
        """Pass on everything that arrives within `seconds`, or until `wake`."""
        ends = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            selector.register(self._socket, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            is_over = False
            while not is_over:
                left = ends - time.monotonic()
                is_over = left <= 0
                ready = {key.fileobj for key, _ in selector.select(max(left, 0))}
                if self._woken in ready:
                    return
                if self._socket in ready:
                    self._take(on_growth, on_peer_message)

    def _take(
        self, on_growth: Callable[[int | None], None], on_peer_message: Callable[[str], None]
    ) -> None:
        """Read all waiting datagrams. Of several log positions, only the highest is passed on."""
        grown = 0
        with contextlib.suppress(BlockingIOError):
            while datagram := self._socket.recv(_LARGEST):
                if datagram.startswith(_GROWN):
                    grown = max(grown, int(datagram[1:]))
                    continue
                for message in _peer_messages.decode(datagram[1:]):
                    on_peer_message(message)
        if grown:
            on_growth(grown)

    def wake(self) -> None:
        """End `hear`, now and in the future. Thread-safe."""
        self._waker.close()

    def close(self) -> None:
        self._path.unlink(missing_ok=True)
        for channel in (self._socket, self._woken, self._waker):
            channel.close()


def _is_locked(descriptor: int) -> bool:
    """Try to lock the file without blocking."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _datagrams(messages: Iterable[str]) -> Iterable[bytes]:
    """Group the messages into datagrams."""
    together: list[bytes] = []
    size = 0
    for message in messages:
        encoded = msgspec.json.encode(message)
        if together and size + len(encoded) > _DATAGRAM:
            yield _datagram(together)
            together, size = [], 0
        together.append(encoded)
        size += len(encoded)
    if together:
        yield _datagram(together)


def _datagram(encoded: Sequence[bytes]) -> bytes:
    return b"%b[%b]" % (_PEER_MESSAGES, b",".join(encoded))


MAX_DATAGRAM: Final = 64 * 1024
"""The most bytes of a datagram."""
_BATCH_SIZE: Final = 50
"""Datagrams read before the event loop continues."""
_QUEUE: Final = 4 << 20
"""Bytes of the socket's buffers, as far as the system allows."""


class PeerSocket:
    """One node's socket. Used on the event loop."""

    def __init__(self, directory: Path, name: str, on_datagram: Callable[[bytes], None]) -> None:
        """Other nodes send to `name`. Raise OSError if the socket can't be created, or if other
        users can enter the directory."""
        self._directory = directory
        self._on_datagram = on_datagram
        self._loop = asyncio.get_running_loop()
        file_modes.directory(directory)
        status = directory.lstat()
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.getuid()
            or status.st_mode & 0o077
        ):
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
        """Send a datagram to a node. Return False if it certainly won't arrive."""
        try:
            self._socket.sendto(datagram, str(self._directory / name))
        except OSError:  # The node ended, is on another machine, or is too busy to read.
            return False
        return True

    def close(self) -> None:
        self._loop.remove_reader(self._socket.fileno())
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _readable(self) -> None:
        with contextlib.suppress(BlockingIOError):
            for _ in range(_BATCH_SIZE):
                self._on_datagram(self._socket.recv(2 * MAX_DATAGRAM))

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


def peer_directory() -> Path:
    """Return the directory for sockets of this user's nodes on this machine."""
    return Path(tempfile.gettempdir()) / f"tertulia-{os.getuid()}"
