"""`tertulia serve`: the server itself."""

import asyncio
import contextlib
import errno
import gc
import ipaddress
import logging
import os
import resource
import signal
import socket
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
import uvicorn

from tertulia.app import logs
from tertulia.app.bootstrap import Bootstrap
from tertulia.app.config import load
from tertulia.app.first_run import setup_address
from tertulia.cli.errors import Failed
from tertulia.cli.options import ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import Config
from tertulia.service.mailing import FOLDER
from tertulia.store import file_modes
from tertulia.store.store import database_at
from tertulia.wire.http.node import HttpNode
from tertulia.wire.protocol.connections import RESERVE, Connections, Limits
from tertulia.wire.protocol.gauges import Gauges
from tertulia.wire.protocol.http1 import TertuliaHttp
from tertulia.wire.protocol.load import Load

if TYPE_CHECKING:
    from tertulia.demo import Resident

EXAMPLE = (
    "Example: `tertulia serve --data-dir data --port 9991`\n\n"
    "To look around: `tertulia serve --demo --data-dir demo`"
)
logger = logging.getLogger("tertulia.mail")

LOOPBACK = "127.0.0.1"
KEEP_ALIVE_SECONDS = 75
"""Seconds that an idle connection is kept open: longer than proxies do, which otherwise might send
a request just when it is closed."""
MANY_FILES = 1_000_000
OTHER_FILES = 100
"""Files that may be open besides connections."""
GRACE_SECONDS = 10
"""How long requests in progress may take when the server is told to stop."""


def serve(
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0 picks one.")] = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo",
            help="Serve a small made-up organization, created in an empty directory, and print how"
            " to sign in. Listens on this machine alone unless --host says otherwise.",
        ),
    ] = False,
    dev: Annotated[
        bool | None,
        typer.Option("--dev", help="Sign-in without a password, for development. Never in public."),
    ] = None,
) -> None:
    """Serve the organization until SIGTERM or Ctrl-C.

    Where there is none yet, a page to create it is served, at an address that is printed with a
    code in it; when it is filled in, the same process serves the organization.

    Then waiting clients are answered, what was begun is finished, and the exit code is 0. A second
    signal ends at once; nothing that was acknowledged is lost either way.
    """
    flags = {
        "data_dir": data_dir,
        "host": LOOPBACK if demo and host is None else host,
        "port": port,
        "database_url": database_url,
        "dev": dev,
    }
    settings = load(flags, file=config)
    with (
        contextlib.closing(_bound(settings.host, settings.port)) as listener,
        database_at(settings.data_path, settings.database_url).served(),
    ):
        # The host of links in mails, which come from no request.
        settings = msgspec.structs.replace(settings, port=listener.getsockname()[1])
        run(_serve(settings, listener, demo=demo))


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on the faster event loop where there is one."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def _serve(settings: Config, listener: socket.socket, *, demo: bool) -> None:
    residents = await _residents(settings) if demo else []

    def say(*lines: str) -> None:
        typer.echo("\n".join(lines))
        sys.stdout.flush()

    def ready(address: str) -> None:
        if bootstrap.code:
            setup = setup_address(settings.external_url or address, bootstrap.code)
            say(f"Tertulia is waiting at {address}", *_invited(setup))
        else:
            say(f"Tertulia is ready at {address}", *_introduced(residents, address))

    def on_ready(node: HttpNode) -> None:
        if not settings.smtp_host:
            logger.info(
                "mails are written to a directory, set smtp_host to send them",
                extra={"fields": {"directory": settings.data_path / FOLDER}},
            )
        if server is not None and server.started:
            say(f"Tertulia is ready at {address_of(listener)}")
        _spare_the_collector()

    logs.begin(settings.log_level, settings.log_format)
    _warn_if_exposed(settings)
    server: Server | None = None
    bootstrap = Bootstrap(on_ready)
    addresses = [resident.address for resident in residents]
    async with bootstrap.opened(settings, lambda line: typer.echo(line, err=True), addresses):
        server = Server(bootstrap, settings, listener, ready)
        await server.serve([listener])
    if bootstrap.outdated:
        raise Failed(bootstrap.outdated)


def _limits(settings: Config) -> Limits:
    return Limits(
        most=max(_files_allowed() - OTHER_FILES - 2 * RESERVE, 1),
        of_one_address=settings.connections_per_address,
        trusted=settings.proxy_trusted,
        least_rate=settings.least_bytes_per_second,
    )


def _warn_if_exposed(settings: Config) -> None:
    """Warn if others can read the files in the data directory. Their modes are not changed:
    somebody may mean it so."""
    if not settings.data_path.exists():
        return
    by_everybody, _ = file_modes.exposed(settings.data_path)
    if by_everybody:
        logging.getLogger("tertulia.files").warning(
            "everybody on this machine can read the data directory",
            extra={"fields": {"mend": file_modes.remedy(settings.data_path).strip("`")}},
        )


def _files_allowed() -> int:
    """How many files the process may have open, a connection being one: as many as it is let."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = MANY_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


async def _residents(settings: Config) -> "Sequence[Resident]":
    from tertulia.demo import prepared  # Its content is loaded for a demonstration only.

    return await prepared(settings)


def _invited(setup: str) -> list[str]:
    """How to create the organization."""
    return [
        "",
        "There is no organization here yet. Create it, and your account in it, at",
        f"  {setup}",
        "",
        "or with `tertulia init`. To look around in one that is made up: `tertulia serve --demo`",
        "and a --data-dir of its own.",
    ]


def _spare_the_collector() -> None:
    """Exempt what is loaded by now from garbage collection: it lives as long as the process, and
    each pass over it takes a tenth of a second with 5,000 users."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def _introduced(residents: "Sequence[Resident]", address: str) -> list[str]:
    """How to sign in to the demonstration."""
    if not residents:
        return []
    first = residents[0]
    return [
        "",
        "This is a demonstration. Open the address in a browser and choose who to be, or sign in",
        "with any client of Zulip as one of",
        *(f"  {r.role.name.lower():<10} {r.address:<20} {r.password}" for r in residents),
        "",
        "A program can begin with this file, ~/.zuliprc:",
        "  [api]",
        f"  email={first.address}",
        f"  key={first.api_key}",
        f"  site={address}",
        "or with a request:",
        f"  curl -u {first.address}:{first.api_key} \\",
        f"    '{address}/api/v1/messages?anchor=newest&num_before=5&num_after=0'",
        "",
        "Ctrl-C ends it.",
    ]


def _bound(host: str, port: int) -> socket.socket:
    """A socket with that address, on which nobody listens yet. Failed where there is none."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise Failed(f"Cannot listen on {host}: {error.strerror}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        listener.close()
        raise _cannot_listen(host, port, error) from None
    return listener


def _cannot_listen(host: str, port: int, error: OSError) -> Failed:
    if error.errno == errno.EADDRINUSE:
        return Failed(
            f"Port {port} of {host} is in use by another program. Stop that, or choose another"
            " port with --port."
        )
    return Failed(f"Cannot listen on port {port} of {host}: {error.strerror}.")


def address_of(listener: socket.socket) -> str:
    """The address by which a browser on this machine reaches the socket."""
    host, port = listener.getsockname()[:2]
    if ipaddress.ip_address(host).is_unspecified:
        host = "::1" if ":" in host else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class Server(uvicorn.Server):
    """The HTTP server: reports when it is ready, and answers waiting polls before it stops."""

    def __init__(
        self,
        bootstrap: Bootstrap,
        settings: Config,
        listener: socket.socket,
        ready: Callable[[str], None],
    ) -> None:
        load, connections = Load(settings.longest_wait_ms / 1000), Connections(_limits(settings))
        super().__init__(
            uvicorn.Config(
                bootstrap,
                http=partial(  # type: ignore[arg-type]  # makes one
                    TertuliaHttp,
                    lambda: bootstrap.polls,
                    load,
                    connections,
                ),
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=True,
                forwarded_allow_ips=settings.proxy_trusted,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=GRACE_SECONDS,
            )
        )
        bootstrap.broken = self._end
        bootstrap.observe(Gauges(load, connections))
        self._house = bootstrap
        self._listener = listener
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        try:
            await super().startup(sockets)
        except OSError as error:
            host, port = self._listener.getsockname()[:2]
            raise _cannot_listen(host, port, error) from None
        self._ready(address_of(self._listener))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Close the listeners first: clients whose polls are answered would connect again.
        for server in self.servers:
            server.close()
        await self._house.close()
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """The first signal shuts the server down gracefully, with exit code 0. The second ends the
        process."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {
            number: signal.signal(number, self.handle_exit)
            for number in (signal.SIGINT, signal.SIGTERM)
        }
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self) -> None:
        self.should_exit = True

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(128 + sig)
        self.should_exit = True
