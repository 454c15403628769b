"""The socket that a server listens on (for an address or a path, or passed by systemd), and
accepting its connections."""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import socket
import stat
import time
from collections.abc import Callable, Coroutine, Iterator, MutableMapping
from typing import Final

from tertulia.app.serving.worker import Counts
from tertulia.service.config import Config
from tertulia.wire.protocol.connections import TlsHandshake, TlsHandshakes

_FIRST_PASSED: Final = 3
"""The file descriptor of the first socket that systemd passes."""
_LONGEST_PATH: Final = 107
"""The most bytes of a socket's path."""
_BACKLOG: Final = 2048
_LOOK_SECONDS: Final = 5.0
"""The number of seconds that the server at a socket's path has to accept a connection."""


class CannotListen(Exception):
    """The server can't listen on the address. `str(error)` is the reason."""


@contextlib.contextmanager
def opened(
    settings: Config, environment: MutableMapping[str, str]
) -> Iterator[tuple[socket.socket, str | None]]:
    """Yield the socket, and its path if it's created here and deleted afterwards. The socket is the
    one that systemd passed (and whose variables are removed from the environment), or one for the
    settings' path or address. Raise CannotListen."""
    socket_path = None
    listener = _passed(environment)
    if listener is None and settings.unix_socket:
        socket_path = settings.unix_socket
        listener = _at_path(socket_path, int(settings.unix_socket_mode, 8))
    with contextlib.closing(listener or bound(settings.host, settings.port)) as listener:
        try:
            yield listener, socket_path
        finally:
            if socket_path is not None:
                with contextlib.suppress(OSError):
                    os.unlink(socket_path)


def _passed(environment: MutableMapping[str, str]) -> socket.socket | None:
    number, process = environment.get("LISTEN_FDS"), environment.get("LISTEN_PID")
    for name in ("LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"):
        environment.pop(name, None)
    if number is None or process != str(os.getpid()):
        return None
    if number != "1":
        raise CannotListen(
            f"systemd passed {number} sockets, but the server listens on one. Keep only one"
            " Listen… line in the .socket unit."
        )
    try:
        listener = socket.socket(fileno=_FIRST_PASSED)
        is_right = (
            listener.type == socket.SOCK_STREAM
            and listener.family in {socket.AF_INET, socket.AF_INET6, socket.AF_UNIX}
            and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        )
    except OSError as error:
        raise CannotListen(
            f"The passed file descriptor isn't a socket: {error.strerror}."
        ) from None
    if not is_right:
        raise CannotListen(
            "The socket passed by systemd doesn't accept connections. The .socket unit needs"
            " ListenStream= and Accept=no."
        )
    os.set_inheritable(_FIRST_PASSED, False)
    return listener


def _at_path(path: str, mode: int) -> socket.socket:
    if len(os.fsencode(path)) > _LONGEST_PATH:
        raise CannotListen(
            f"Can't listen on {path}: the path of a socket can have up to {_LONGEST_PATH} bytes."
        )
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _clear(path)
        before = os.umask(0o777 & ~mode)
        try:
            listener.bind(path)
        finally:
            os.umask(before)
        # From here on the path is taken, and clients that connect wait until the server is ready.
        listener.listen(_BACKLOG)
    except CannotListen:
        listener.close()
        raise
    except OSError as error:
        listener.close()
        raise CannotListen(f"Can't listen on {path}: {error.strerror}.") from None
    return listener


def _clear(path: str) -> None:
    """Delete the socket of a killed server. Raise CannotListen if another file or server is at the
    path."""
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(status.st_mode):
        raise CannotListen(f"Can't listen on {path}: it exists and isn't a socket.")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(_LOOK_SECONDS)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except TimeoutError:
            pass
    raise CannotListen(
        f"The socket {path} is in use by another program. Stop that program, or choose another path"
        " with --unix-socket."
    )


def path_of(listener: socket.socket) -> str | None:
    """Return the socket's path; None for a network socket."""
    if listener.family != socket.AF_UNIX:
        return None
    name = listener.getsockname()
    return name if isinstance(name, str) else "@" + os.fsdecode(name[1:])


def with_port_of(listener: socket.socket, settings: Config) -> int:
    """Return the socket's port; the settings' port for a Unix socket."""
    if listener.family == socket.AF_UNIX:
        return settings.port
    port: int = listener.getsockname()[1]
    return port


def address_of(listener: socket.socket, *, is_secure: bool = False) -> str:
    """Return the URL by which a browser on this machine reaches the socket, or its path."""
    path = path_of(listener)
    if path is not None:
        return f"unix:{path}"
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    scheme = "https" if is_secure else "http"
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that is bound but doesn't listen yet. Raise CannotListen."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise CannotListen(f"Can't listen on {host}: {error.strerror}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_bind(host, port, error) from None
    return listener


def cannot_listen(listener: socket.socket, error: OSError) -> CannotListen:
    """Return the error for a bound socket that can't listen."""
    if (path := path_of(listener)) is not None:
        return CannotListen(f"Can't listen on {path}: {error.strerror}.")
    host, port = listener.getsockname()[:2]
    return _cannot_bind(host, port, error)


def _cannot_bind(host: str, port: int, error: OSError) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(
            f"Port {port} of {host} is in use by another program. Stop that program, or choose"
            " another port with --port."
        )
    return CannotListen(f"Can't listen on port {port} of {host}: {error.strerror}.")


logger = logging.getLogger("tertulia.http")

BATCH_SIZE: Final = 4
"""The number of connections that are accepted before other workers get a chance."""
_YIELD_SECONDS: Final = 0.005
"""The number of seconds for which other workers can go first."""
_AGREE_SECONDS: Final = 2.0
"""The number of seconds for which a stopping server waits for TLS handshakes."""
_TROUBLE_SECONDS: Final = 1.0
"""The pause in seconds after accepting failed, for lack of file descriptors."""


def has_more(connections: int, least: int | None) -> bool:
    """Whether a worker with `connections` connections has too many compared to the `least` of
    another."""
    return least is not None and connections - least > BATCH_SIZE + least // 32


class Acceptor:
    """Accepts connections in place of an `asyncio.Server`, balanced among workers."""

    def __init__(
        self,
        listener: socket.socket,
        counts: Counts | None,
        protocol: Callable[[], asyncio.Protocol],
        connections: Callable[[], int],
        handshakes: TlsHandshakes | None = None,
    ) -> None:
        """Create an acceptor. `connections` returns this worker's number of connections. `counts`
        shares it with other workers. With `handshakes`, TLS is used."""
        self._listener = listener
        self._counts = counts
        self._protocol = protocol
        self._connections = connections
        self._handshakes = handshakes
        self._unfinished: set[TlsHandshake] = set()
        self._opening: set[asyncio.Task[object]] = set()
        self._is_closed = False
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Start accepting. Raise OSError if the socket can't listen."""
        self._listener.listen(2048)
        self._listener.setblocking(False)
        self.tell()
        self._resume()

    def tell(self) -> None:
        """Update the number of connections for the other workers. Call this several times per
        second."""
        if not self._is_closed and self._counts is not None:
            self._counts.tell(self._own, time.monotonic())

    @property
    def _own(self) -> int:
        if self._handshakes is not None:
            return (
                self._connections()
            )  # These include connections whose TLS handshake isn't finished.
        return self._connections() + len(self._opening)

    def _resume(self) -> None:
        self._timer = None
        asyncio.get_running_loop().add_reader(self._listener, self._on_readable)

    def _pause(self, seconds: float, then: Callable[[], None]) -> None:
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener)
        self._timer = loop.call_later(seconds, then)

    def _on_readable(self) -> None:
        counts = self._counts
        if counts is not None and has_more(self._own, counts.least(time.monotonic())):
            self._pause(_YIELD_SECONDS, self._go_on)
        else:
            self._accept()

    def _go_on(self) -> None:
        self._resume()
        self._accept()

    def _accept(self) -> None:
        for _ in range(BATCH_SIZE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, ConnectionAbortedError):
                break
            except OSError as error:
                logger.error("can't accept connections: %s", error)
                self._pause(_TROUBLE_SECONDS, self._resume)
                break
            opening = self._opened(connection, address)
            if opening is None:
                continue
            task = asyncio.get_running_loop().create_task(opening)
            self._opening.add(task)
            task.add_done_callback(self._opening.discard)
        self.tell()

    def _opened(
        self, connection: socket.socket, address: object
    ) -> Coroutine[object, object, None] | None:
        """Return a coroutine that starts the protocol; None if the connection was refused."""
        connection.setblocking(False)
        if connection.family != socket.AF_UNIX:
            with contextlib.suppress(OSError):  # It is gone already.
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._handshakes is None:
            return self._open(connection)
        handshake = self._handshakes.begin(connection, address)
        return None if handshake is None else self._agree(self._handshakes, handshake)

    async def _open(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError):  # It is gone already.
            loop = asyncio.get_running_loop()
            await loop.connect_accepted_socket(self._protocol, connection)

    async def _agree(self, handshakes: TlsHandshakes, handshake: TlsHandshake) -> None:
        self._unfinished.add(handshake)
        try:
            await handshakes.finish(handshake)
        finally:
            self._unfinished.discard(handshake)

    def close(self) -> None:
        """Stop accepting, and leave new connections to the other workers."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._counts is not None:
            self._counts.withdraw()
        if self._timer is not None:
            self._timer.cancel()
        asyncio.get_running_loop().remove_reader(self._listener)

    async def wait_closed(self) -> None:
        """Return when accepted connections are open, or their TLS handshake took too long."""
        if self._opening:
            await asyncio.wait(self._opening, timeout=_AGREE_SECONDS)
        for handshake in self._unfinished:
            handshake.give_up()
        if self._opening:
            await asyncio.wait(self._opening, timeout=_AGREE_SECONDS)
