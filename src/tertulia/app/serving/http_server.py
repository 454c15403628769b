"""The HTTP server of one process: starting, draining, and stopping."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Final, NoReturn

import uvicorn

from tertulia.app.bootstrap import Bootstrap
from tertulia.app.config import ConfigError
from tertulia.app.serving.listening import Acceptor, address_of, cannot_listen, path_of
from tertulia.app.serving.worker import STOPPING, Control, Counts, Report, notify
from tertulia.service.config import Config
from tertulia.wire.protocol.addresses import SocketProxy
from tertulia.wire.protocol.connections import (
    ConnectionLimits,
    Connections,
    HttpGauges,
    TlsHandshake,
    TlsHandshakes,
)
from tertulia.wire.protocol.http1 import TertuliaHttp
from tertulia.wire.protocol.load import Load

logger = logging.getLogger("tertulia.serving")

LOOK_SECONDS: Final = 10.0
"""The interval, in seconds, between checks whether the certificate's files changed."""

_Stamp = tuple[tuple[int, int, int], ...]


class Certificates:
    """The TLS certificate of new connections."""

    def __init__(self, certificate: str, key: str) -> None:
        """Load PEM files: the certificate chain, and its key, or an empty path if that is in the
        same file. Raise ConfigError if they are invalid."""
        self._certificate = certificate
        self._key = key
        self._seen = self._stamp()
        self.expires_at: float | None = None
        """The time when the certificate expires, in UNIX seconds."""
        self.context = self._loaded()

    def refresh(self, *, is_told: bool = False) -> None:
        """Reload the files if they changed or the operator asks (`is_told`). If they're invalid,
        log that and keep the previous ones. This reads files, so don't call it on the event
        loop."""
        seen = self._stamp()
        if seen == self._seen and not is_told:
            return
        self._seen = seen
        try:
            self.context = self._loaded()
        except ConfigError as error:
            fields = {"reason": str(error)}
            logger.error("could not load the new certificate", extra={"fields": fields})
        else:
            logger.info("loaded the certificate", extra={"fields": {"file": self._certificate}})

    def _stamp(self) -> _Stamp:
        """Return a value that changes with the files."""
        results = []
        for path in filter(None, (self._certificate, self._key)):
            try:
                is_now = os.stat(path)
            except OSError:
                results.append((0, 0, 0))
            else:
                results.append((is_now.st_ino, is_now.st_mtime_ns, is_now.st_size))
        return tuple(results)

    def _loaded(self) -> ssl.SSLContext:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.set_alpn_protocols(["http/1.1"])
        for name, path in (("tls_cert", self._certificate), ("tls_key", self._key)):
            try:
                with open(path or self._certificate, "rb"):
                    pass
            except OSError as error:
                raise ConfigError(f"Setting {name}: can't read {path}: {error.strerror}.") from None
        try:
            context.load_cert_chain(self._certificate, self._key or None, password=_encrypted)
        except ssl.SSLError as error:
            raise ConfigError(
                f"Setting tls_cert: {self._certificate} and {self._key or 'the key in it'} aren't a"
                f" certificate and its key ({_reason(error)})."
            ) from None
        except _Encrypted:
            raise ConfigError(
                "Setting tls_key: the key is encrypted with a password. Use a key without a"
                " password."
            ) from None
        except OSError as error:  # It was just removed.
            raise ConfigError(
                f"Setting tls_cert: can't read {self._certificate}: {error.strerror}."
            ) from None
        self.expires_at = _expiry(self._certificate)
        return context


def _expiry(certificate: str) -> float | None:
    """Return when the first certificate in the file expires, or None if that can't be read."""
    from cryptography import x509  # Imported here: only servers with TLS need it.

    try:
        loaded = x509.load_pem_x509_certificate(Path(certificate).read_bytes())
    except (OSError, ValueError):  # OpenSSL, which decides, could use it.
        return None
    return loaded.not_valid_after_utc.timestamp()


class _Encrypted(Exception):
    """The key is encrypted with a password."""


def _encrypted() -> NoReturn:
    raise _Encrypted


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or "not PEM").replace("_", " ").lower()


KEEP_ALIVE_SECONDS: Final = 75
"""The number of seconds for which an idle connection is kept open. It's longer than proxies keep
it, so that they don't send a request just when it's closed."""
FAREWELL_SECONDS: Final = 1
"""The number of seconds that clients have to close connections on which nothing is left to send."""
GRACE_SECONDS: Final = 10
"""The number of seconds that requests have after the server was told to stop."""
LEAVING_SECONDS: Final = 60
"""The same for a worker that is replaced, which nobody waits for."""
LINGER_SECONDS: Final = 5.0
"""The number of seconds for which a replaced worker keeps idle connections. Their next request
is answered, and the client told to reconnect. Closing them immediately could lose requests in
transit."""


class Server(uvicorn.Server):
    """An HTTP server that reports when it is ready, and stops without failing requests.

    It stops when told to, when its node drains, or when another worker replaces it. For
    `drain_seconds` it isn't ready, and ends each connection with its next response. Then it accepts
    no connections, answers waiting polls, and lets requests in progress finish.
    """

    def __init__(
        self,
        bootstrap: Bootstrap,
        settings: Config,
        listener: socket.socket,
        limits: ConnectionLimits,
        ready: Callable[[str], None],
        *,
        certificates: Certificates | None = None,
        shared: tuple[Control, Counts] | None = None,
    ) -> None:
        """Create the server. `ready` is called with the server's address when it serves requests.
        `certificates` enables TLS. A worker has `shared`: its connection to the supervisor, and the
        workers' connection counts."""
        self._connections = Connections(limits)
        load = Load(settings.longest_wait_ms / 1000)
        is_at_path = path_of(listener) is not None
        trusted = settings.proxy_trusted
        super().__init__(
            uvicorn.Config(
                SocketProxy(bootstrap, trusted) if is_at_path else bootstrap,
                http=partial(  # type: ignore[arg-type]  # makes one
                    TertuliaHttp,
                    lambda: bootstrap.polls,
                    load,
                    self._connections,
                ),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=not is_at_path,
                forwarded_allow_ips=trusted,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        bootstrap.broken = self._end
        bootstrap.draining = self._leave
        expires = (lambda: certificates.expires_at) if certificates else (lambda: None)
        bootstrap.observe(HttpGauges(load, self._connections, expires))
        self._house = bootstrap
        self._listener = listener
        self._ready = ready
        self._certificates = certificates
        self._certificate_watch: asyncio.Task[None] | None = None
        self._shared = shared
        self._acceptor: Acceptor | None = None
        self._pause = settings.drain_seconds
        """The time between not being ready and stopping."""
        self._is_replaced = shared is not None
        """Whether other workers accept connections when this one stops."""
        self._is_told = False
        self._loop: asyncio.AbstractEventLoop | None = None

    # Start

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            if self._accepts_itself:
                await super().startup([])
                self._accept()
            else:
                await super().startup(sockets)
        except OSError as error:
            raise cannot_listen(self._listener, error) from None
        if self._certificates is not None:
            watch = self._follow(self._certificates)
            self._certificate_watch = self._loop.create_task(watch)
        self._ready(self.address)
        node = self._house.node
        if node is not None and node.lifecycle.is_draining:
            # The node began to drain before this server was listening. (Not immediately, because
            # uvicorn doesn't shut down if it is stopped during startup.)
            self._loop.call_soon(self._leave)

    @property
    def address(self) -> str:
        """The server's address."""
        return address_of(self._listener, is_secure=self._certificates is not None)

    @property
    def _accepts_itself(self) -> bool:
        """Whether to accept connections without asyncio, which can't balance them among workers,
        doesn't support our Unix sockets, and doesn't report handshakes."""
        is_special = self._certificates is not None or path_of(self._listener) is not None
        return self._shared is not None or is_special

    def _accept(self) -> None:
        handshakes = None
        if (certificates := self._certificates) is not None:
            handshakes = TlsHandshakes(
                self._connections, lambda: certificates.context, self._secure_protocol
            )
        self._acceptor = Acceptor(
            self._listener,
            None if self._shared is None else self._shared[1],
            self._protocol,
            lambda: self._connections.open,
            handshakes,
        )
        self._acceptor.start()
        self.servers.append(self._acceptor)  # type: ignore[arg-type]  # is closed as one is
        if self._shared is not None:
            self._share(self._shared[0])

    def _share(self, control: Control) -> None:
        control.listen(
            on_leave=self._on_loop(self._make_way),
            on_stop=self._on_loop(self._stop_with_all),
            on_lost=self._on_loop(self._stop_at_once),
        )

    def _protocol(self) -> TertuliaHttp:
        made: TertuliaHttp = self.config.http_protocol_class(  # type: ignore[call-arg, assignment]  # as uvicorn does
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return made

    def _secure_protocol(self, handshake: TlsHandshake) -> asyncio.Protocol:
        made = self._protocol()
        made.handshake = handshake
        return made

    async def _follow(self, certificates: Certificates) -> None:
        """Reload the certificate whenever it has changed."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await asyncio.to_thread(certificates.refresh)

    def _reload(self) -> None:
        """Reload files, because the operator asks."""
        if self._certificates is None or self._loop is None:
            logger.info("no certificate to reload; settings are only read at startup")
            return
        self._loop.run_in_executor(None, partial(self._certificates.refresh, is_told=True))

    async def on_tick(self, counter: int) -> bool:
        if self._acceptor is not None:
            self._acceptor.tell()
        return await super().on_tick(counter)

    # Stop

    def _on_loop(self, function: Callable[[], None]) -> Callable[[], None]:
        """Return a function that calls this one on the event loop, for other threads and signal
        handlers."""

        def call() -> None:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(function)

        return call

    def _make_way(self) -> None:
        """Stop, because another worker has taken over."""
        self._pause = 0
        self._drain()

    def _stop_at_once(self) -> None:
        """Stop immediately, because the supervisor is gone."""
        self._pause, self._is_replaced = 0, False
        self._drain()

    def _stop_with_all(self) -> None:
        """Stop, because all workers stop."""
        self._is_replaced = False
        self._drain()

    def _drain(self) -> None:
        if self._connections.is_leaving and not self._pause:
            self._end()  # It's already stopping, with a pause.
        elif self._house.node is None:
            self._leave()
        else:
            self._house.node.lifecycle.drain()

    def _leave(self) -> None:
        """Stop taking on work."""
        if self._connections.is_leaving:
            return
        if self._shared is not None:
            self._shared[0].report(Report(leaving=True))
        else:
            notify(STOPPING)
        if not self._pause:
            self._end()
            return
        self._end_connections_softly()
        asyncio.get_running_loop().call_later(self._pause, self._end)

    def _end_connections_softly(self) -> None:
        """End each connection with the response to its current request, or the next one."""
        self._connections.is_leaving = True
        for connection in list(self.server_state.connections):
            if isinstance(connection, TertuliaHttp):
                connection.end_with_answer()

    def _end(self) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Close the listeners first, since clients whose polls are answered reconnect.
        for server in self.servers:
            server.close()
        if self._certificate_watch is not None:
            self._certificate_watch.cancel()
        if self._acceptor is not None:
            await self._acceptor.wait_closed()
        self._end_connections_softly()
        await self._house.close()
        if self._is_replaced:
            self.config.timeout_graceful_shutdown = LEAVING_SECONDS
            await self._linger()
        else:
            self._connections.is_stopping = True
        farewell = asyncio.get_running_loop().call_later(FAREWELL_SECONDS, self._end_silent)
        await super().shutdown(sockets)
        farewell.cancel()

    def _end_silent(self) -> None:
        """End connections that are closed except for the client's reply, which TLS waits for."""
        for connection in list(self.server_state.connections):
            if (
                isinstance(connection, TertuliaHttp)
                and connection.transport.is_closing()
                and not connection.unsent
            ):
                connection.give_up()

    async def _linger(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + LINGER_SECONDS
        while (  # noqa: ASYNC110 (nobody is told when a connection ends)
            self.server_state.connections and self._is_replaced and loop.time() < until
        ):
            await asyncio.sleep(0.1)

    # Signals

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals. The first one stops the server gracefully, with exit code 0. The second
        ends the process, or a worker's supervisor does. SIGHUP reloads the certificate, unless it
        comes from a closed terminal."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        if self._shared is None and not (sys.stdin and sys.stdin.isatty()):
            before[signal.SIGHUP] = signal.signal(signal.SIGHUP, self._on_hangup)
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _on_hangup(self, _: int, __: FrameType | None) -> None:
        self._on_loop(self._reload)()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._is_told and self._shared is None:
            os._exit(128 + sig)
        self._is_told = True
        if self._loop is None:
            self._end()
        else:
            self._on_loop(self._drain)()
