"""`tertulia serve`: run the server."""

import asyncio
import hashlib
import logging
import math
import os
import resource
import shutil
import socket
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, urlsplit

import msgspec
import typer

from tertulia.app import logs
from tertulia.app.bootstrap import Bootstrap
from tertulia.app.config import ignored_file, load, of_services
from tertulia.app.first_run import setup_address
from tertulia.app.serving.http_server import Certificates, Server
from tertulia.app.serving.listening import opened, with_port_of
from tertulia.app.serving.process import Plan, become_supervisor
from tertulia.app.serving.worker import (
    READY,
    Control,
    Counts,
    Report,
    WorkerPlace,
    notify,
    take_place,
    usable_cores,
)
from tertulia.cli.errors import CommandFailed
from tertulia.cli.options import ConfigFile, DatabaseUrl, DataDir
from tertulia.service.config import AUTO, Config, WorkerConfig
from tertulia.service.garbage import collect_rarely, return_freed_memory
from tertulia.service.mailing import FOLDER
from tertulia.store import file_modes
from tertulia.store.store import database_at
from tertulia.wire.http.node import HttpNode
from tertulia.wire.protocol.connections import RESERVE, ConnectionLimits

if TYPE_CHECKING:
    from tertulia.demo import Resident

EXAMPLE = (
    "Example: `tertulia serve --data-dir data --port 9991`\n\n"
    "Try it out: `tertulia serve --demo --data-dir demo`"
)
logger = logging.getLogger("tertulia.mail")

LOOPBACK = "127.0.0.1"
_UNKNOWN_SITE = "https://(the address of your proxy)"
MANY_FILES = 1_000_000
OTHER_FILES = 100
"""The number of open files other than connections."""


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
            help="Serve a demo organization, created in an empty directory, and print how to"
            " sign in. Listens only on this machine unless you use --host.",
        ),
    ] = False,
    unix_socket: Annotated[
        str | None,
        typer.Option(
            "--unix-socket",
            metavar="PATH",
            help="Listen on a Unix socket at this path, behind a reverse proxy, instead of a"
            " host and port.",
        ),
    ] = None,
    tls_cert: Annotated[
        str | None,
        typer.Option(
            "--tls-cert", metavar="FILE", help="Use TLS with the certificate in this PEM file."
        ),
    ] = None,
    tls_key: Annotated[
        str | None,
        typer.Option(
            "--tls-key",
            metavar="FILE",
            help="Private key of the certificate, if it's in a separate file.",
        ),
    ] = None,
    workers: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="Number of worker processes, or `auto` for one per core.",
        ),
    ] = None,
    dev: Annotated[
        bool | None,
        typer.Option(
            "--dev",
            help="Turn on sign-in without a password, for development. Never"
            " use it on a public server.",
        ),
    ] = None,
) -> None:
    """Run the server until SIGTERM or Ctrl-C.

    If there's no organization yet, the server prints the address of a page where you create it. The
    address contains a setup code. Once the organization exists, the same process serves it.

    To stop, the server answers waiting clients, finishes what it has begun, and exits with code 0.
    A second signal stops it immediately. Acknowledged changes are never lost.

    With several workers, SIGHUP replaces them one by one, with the installed version and the
    current settings. Clients don't notice. With one process, SIGHUP reloads the certificate, which
    the server also does by itself when the file changes.

    A socket passed by systemd overrides host, port, and path. The server notifies systemd when it's
    ready.
    """
    flags = {
        "data_dir": data_dir,
        "host": LOOPBACK if demo and host is None else host,
        "port": port,
        "database_url": database_url,
        "unix_socket": unix_socket,
        "tls_cert": tls_cert,
        "tls_key": tls_key,
        "workers": workers,
        "dev": dev,
    }
    place = take_place(os.environ)
    settings = load(flags, file=config)
    if settings.log_format == "json":  # Errors from here on are JSON, too.
        logs.begin(settings.log_level, settings.log_format, None if place is None else place.number)
    if place is not None:
        _work(settings, place, demo=demo)
        return
    if ignored := ignored_file(settings, config):
        logging.getLogger("tertulia.settings").warning(
            "%s is ignored, because --config is given: %s", ignored, config
        )
    _certificates(settings)  # Fail early if they can't be used.
    with opened(settings, os.environ) as (listener, path):
        residents = _residents_apart(settings) if demo else []
        with database_at(settings.data_path, settings.database_url).served() as lock:
            # Links in emails need the port, because no request tells it.
            settings = msgspec.structs.replace(settings, port=with_port_of(listener, settings))
            processes = usable_cores() if settings.workers == AUTO else int(settings.workers)
            if processes > 1:
                if residents is None:  # Otherwise, each worker would create the demo.
                    run(_prepare(settings))
                _supervise(settings, processes, listener, path, lock)
            run(_serve(settings, listener, _limits(settings), residents))


def _certificates(settings: Config) -> Certificates | None:
    """Load the certificates if TLS is on. Raise ConfigError if they can't be used."""
    return Certificates(settings.tls_cert, settings.tls_key) if settings.tls_cert else None


def _supervise(
    settings: Config,
    workers: int,
    listener: socket.socket,
    path: str | None,
    lock: int | None,
) -> None:
    """Become the supervisor of the workers. Never returns."""
    become_supervisor(
        Plan(
            workers=workers,
            command=[sys.executable, *sys.orig_argv[1:]],
            installation=_installation(settings),
            python_path=os.environ.get("PYTHONPATH"),
            listener=listener.fileno(),
            path=path,
            lock=lock,
            drain_seconds=settings.drain_seconds,
            log_level=settings.log_level,
            log_format=settings.log_format,
        )
    )


def _installation(settings: Config) -> str:
    """Return a text that identifies the database and data directory. It doesn't contain the
    password, which may change, and whose hash in the list of processes would let others guess
    it."""
    url = urlsplit(settings.database_url)
    login, _, host = url.netloc.rpartition("@")
    query = [pair for pair in parse_qsl(url.query) if "password" not in pair[0]]
    named = (str(settings.data_path.resolve()), url.scheme, login.partition(":")[0], host)
    return hashlib.sha256(repr((*named, url.path, query)).encode()).hexdigest()


def _work(settings: Config, place: WorkerPlace, *, demo: bool) -> None:
    """Serve as one of several workers."""
    if _installation(settings) != place.installation:
        raise CommandFailed(
            "The database or the data directory isn't the one that the other workers use. Stop"
            " the server and start it again."
        )
    control = Control(place.control)
    counts = Counts(place.counts, place.slot)
    with socket.socket(fileno=place.listener) as listener:
        port = with_port_of(listener, settings)
        given = {**msgspec.structs.asdict(settings), "port": port}
        config = WorkerConfig(**given, worker=place.number, bus=Path(place.bus))
        residents = None if demo else ()
        run(_serve(config, listener, _limits(config, place.of), residents, (control, counts)))
    if control.is_lost:
        shutil.rmtree(
            place.bus, ignore_errors=True
        )  # The supervisor, which otherwise does it, is gone.


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine, on uvloop if it's installed."""
    try:
        import uvloop
    except ImportError:
        asyncio.run(main)
        return
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main)


async def _prepare(settings: Config) -> None:
    await _residents(settings)


async def _serve(
    settings: Config,
    listener: socket.socket,
    limits: ConnectionLimits,
    residents: "Sequence[Resident] | None",
    shared: tuple[Control, Counts] | None = None,
) -> None:
    """Serve. `residents` are the demo's accounts; None creates the demo or looks them up."""
    if residents is None:
        residents = await _residents(settings)
    is_first = settings.worker in (None, 0)

    def say(*lines: str) -> None:
        text = "\n".join(lines)
        if shared is not None:
            shared[0].report(Report(ready=text))
        else:
            logs.announce(text, settings.log_format)
            notify(READY, f"STATUS={lines[0]}")

    def ready(address: str) -> None:
        if bootstrap.code:
            site = _UNKNOWN_SITE if address.startswith("unix:") else address
            setup = setup_address(settings.external_url or site, bootstrap.code)
            say(f"Tertulia is waiting at {address}", *_invited(setup))
        else:
            say(f"Tertulia is ready at {address}", *_introduced(residents, address))

    def on_ready(node: HttpNode) -> None:
        if not settings.smtp_host and is_first:
            logger.info(
                "emails are written to a directory; set smtp_host to send them",
                extra={"fields": {"directory": settings.data_path / FOLDER}},
            )
        if server is not None and server.started:
            say(f"Tertulia is ready at {server.address}")
        collect_rarely()

    logs.begin(settings.log_level, settings.log_format, settings.worker)
    return_freed_memory()
    if is_first:
        _warn_if_exposed(settings)
        _log_ignored_variables()
    server: Server | None = None
    bootstrap = Bootstrap(on_ready)
    addresses = [resident.address for resident in residents]
    async with bootstrap.opened(settings, _report, addresses):
        server = Server(
            bootstrap,
            settings,
            listener,
            limits,
            ready,
            certificates=_certificates(settings),
            shared=shared,
        )
        await server.serve([listener])
    if bootstrap.outdated:
        raise CommandFailed(bootstrap.outdated)


def _report(line: str) -> None:
    """Report progress before the server is ready, such as of a migration."""
    if logs.are_json():
        logging.getLogger("tertulia.serving").info("%s", line)
    else:
        typer.echo(line, err=True)


def _limits(settings: Config, workers: int = 1) -> ConnectionLimits:
    """Return the connection limits of one worker. All workers share the limit per address."""
    return ConnectionLimits(
        most=max(_files_allowed() - OTHER_FILES - 2 * RESERVE, 1),
        of_one_address=math.ceil(settings.connections_per_address / workers),
        trusted=settings.proxy_trusted,
        least_rate=settings.least_bytes_per_second,
    )


def _warn_if_exposed(settings: Config) -> None:
    """Warn if others can read the data directory. Modes aren't changed, because they may be
    intended."""
    if not settings.data_path.exists():
        return
    by_everybody, _ = file_modes.exposed(settings.data_path)
    if by_everybody:
        logging.getLogger("tertulia.files").warning(
            "everyone on this machine can read the data directory",
            extra={"fields": {"mend": file_modes.remedy(settings.data_path).strip("`")}},
        )


def _log_ignored_variables() -> None:
    if ignored := of_services(os.environ):
        logging.getLogger("tertulia.settings").info(
            "ignoring environment variables that Kubernetes sets for a Service",
            extra={"fields": {"variables": " ".join(ignored)}},
        )


def _files_allowed() -> int:
    """Raise the limit of open files, which include connections, as far as allowed, and return
    it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY:
        hard = MANY_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _residents_apart(settings: Config) -> "Sequence[Resident] | None":
    from tertulia.demo import prepared_apart

    return prepared_apart(settings)


async def _residents(settings: Config) -> "Sequence[Resident]":
    from tertulia.demo import prepared  # Imported here: only a demo needs it.

    return await prepared(settings)


def _invited(setup: str) -> list[str]:
    """Return lines that explain how to create the organization."""
    return [
        "",
        "There's no organization yet. To create it and your account, open",
        f"  {setup}",
        "",
        "or run `tertulia init`. To try out a demo instead, run `tertulia serve --demo` with a",
        "separate --data-dir.",
    ]


def _introduced(residents: "Sequence[Resident]", address: str) -> list[str]:
    """Return lines that explain how to sign in to the demo."""
    if not residents:
        return []
    first = residents[0]
    return [
        "",
        "This is a demo. Open the address in a browser and choose an account, or sign in with",
        "any Zulip client as one of:",
        *(f"  {r.role.name.lower():<10} {r.address:<20} {r.password}" for r in residents),
        "",
        "To connect a program, save this as ~/.zuliprc:",
        "  [api]",
        f"  email={first.address}",
        f"  key={first.api_key}",
        f"  site={address}",
        "or send a request:",
        f"  curl -u {first.address}:{first.api_key} \\",
        f"    '{address}/api/v1/messages?anchor=newest&num_before=5&num_after=0'",
        "",
        "Press Ctrl-C to stop.",
    ]
