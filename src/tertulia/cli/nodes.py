"""`tertulia nodes`: which nodes serve, and asking one to leave."""

import contextlib
import datetime
import time
from collections.abc import Iterator
from typing import Annotated, Any

import msgspec
import typer
from msgspec import Struct

from tertulia.app.config import load
from tertulia.app.founding import founded_database
from tertulia.cli.commands import done, show
from tertulia.cli.errors import Failed, UsageError
from tertulia.cli.options import AsJson, ConfigFile, DatabaseUrl, DataDir, finite
from tertulia.cli.tables import table
from tertulia.service.membership import WORKER
from tertulia.store import history, installation, nodes
from tertulia.store.database import Connection
from tertulia.store.migrations import require_usable
from tertulia.store.nodes import ListedNode

EXAMPLE = "Example: `tertulia nodes --data-dir data`"
EXAMPLE_DRAIN = "Example: `tertulia nodes drain chat-2 --wait 120 --data-dir data`"
EXAMPLE_FORGET = "Example: `tertulia nodes forget chat-2 --data-dir data`"
_LOOK_SECONDS = 0.5

app = typer.Typer(
    help="List nodes with their version, lag, and state; drain or forget a node.",
    invoke_without_command=True,
    rich_markup_mode="markdown",
)

Name = Annotated[
    str,
    typer.Argument(
        help="Name of a node, as shown by `tertulia nodes`, or of a server, for all"
        " of its processes."
    ),
]


class NodeShown(Struct, frozen=True, kw_only=True):
    """A node, as `--json` shows it. Times are UNIX seconds."""

    name: str
    state: str
    """starting, serving, draining, stale or gone."""
    host: str
    pid: int
    version: str
    schema_version: int
    log_format: int
    position: int
    lag_entries: int
    lag_seconds: float
    waiting_polls: int
    queues: int
    clock_ahead: float
    started_at: float
    seen_at: float
    asked_to_leave: bool


def shown(node: ListedNode) -> NodeShown:
    """The node, as it is shown."""
    entry, figures = node.entry, node.figures
    return NodeShown(
        name=node.name,
        state=node.state,
        host=entry.host,
        pid=entry.pid,
        version=entry.version,
        schema_version=entry.schema_version,
        log_format=entry.log_format,
        position=figures.position,
        lag_entries=figures.lag_entries,
        lag_seconds=figures.lag_seconds,
        waiting_polls=figures.waiting_polls,
        queues=figures.queues,
        clock_ahead=figures.clock_ahead,
        started_at=round(node.started_at, 3),
        seen_at=round(node.seen_at, 3),
        asked_to_leave=node.wanted == nodes.DRAIN,
    )


@app.callback()
def nodes_(
    context: typer.Context,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List nodes with their version, state, and lag."""
    if context.invoked_subcommand is None:
        list_nodes(data_dir, database_url, config, as_json)
    elif as_json or any((data_dir, database_url, config)):
        raise UsageError(f"Put options after `{context.invoked_subcommand}`.")


def list_nodes(
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """List nodes with their version, state, and lag.

    Each node reports its status every few seconds. A node that stopped without shutting down is
    shown as gone for a day.
    """
    with _opened(data_dir, database_url, config) as connection:
        found = nodes.listed(connection)
        head = history.head(connection)
        applied = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
    if as_json:
        answer: dict[str, Any] = {
            "schema_version": applied,
            "required_schema_version": head.schema_version,
            "log_format": head.log_format,
            "head": head.seq,
            "nodes": [shown(node) for node in found],
        }
        typer.echo(msgspec.json.encode(answer).decode())
        return
    if not found:
        typer.echo("No nodes are running.")
        return
    for line in table(_HEADINGS, map(_row, found)):
        typer.echo(line)


def drain(
    name: Name,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            callback=finite,
            help="Seconds to wait until the node is gone; 0 returns immediately.",
        ),
    ] = 0,
    as_json: AsJson = False,
) -> None:
    """Ask a node to leave: its /ready returns 503, so that load balancers stop sending requests to
    it.

    The node notices within seconds. To undo this, restart the node. The exit code is 1 if the node
    doesn't exist, or if it's still running after --wait.
    """
    with _opened(data_dir, database_url, config, readonly=False) as connection:
        asked = [node.name for node in _named(connection, name) if node.is_living]
        if not asked:
            raise Failed(f"Node '{name}' isn't running. `tertulia nodes` lists all nodes.")
        for one in asked:
            nodes.ask(connection, one, nodes.DRAIN)
        if not as_json or not wait:
            show(done(f"Asked to leave: {', '.join(asked)}"), as_json=as_json)
        if not wait:
            return
        until = time.monotonic() + wait
        left = asked
        while left and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)  # Only the list tells that a node has gone.
            living = {node.name for node in nodes.listed(connection) if node.is_living}
            left = [one for one in asked if one in living]
        if left:
            raise Failed(f"Still running after {wait:g} s: {', '.join(left)}")
        show(done("Gone."), as_json=as_json)


def forget(
    name: Name,
    data_dir: DataDir = None,
    database_url: DatabaseUrl = None,
    config: ConfigFile = None,
    as_json: AsJson = False,
) -> None:
    """Remove a node that's gone from the list. This happens by itself after a day."""
    with _opened(data_dir, database_url, config, readonly=False) as connection:
        if not nodes.forget(connection, name):
            raise Failed(f"No node named '{name}' is gone. `tertulia nodes` lists all nodes.")
    show(done(f"Removed {name} from the list."), as_json=as_json)


app.command("list", epilog=EXAMPLE)(list_nodes)
app.command("drain", epilog=EXAMPLE_DRAIN)(drain)
app.command("forget", epilog=EXAMPLE_FORGET)(forget)


@contextlib.contextmanager
def _opened(
    data_dir: DataDir, database_url: DatabaseUrl, config: ConfigFile, *, readonly: bool = True
) -> Iterator[Connection]:
    settings = load({"data_dir": data_dir, "database_url": database_url}, file=config)
    with founded_database(settings, readonly=readonly) as connection:
        require_usable(connection)
        yield connection


def _named(connection: Connection, name: str) -> list[ListedNode]:
    found = nodes.listed(connection)
    exact = [node for node in found if node.name == name]
    return exact or [node for node in found if node.name.startswith(f"{name}{WORKER}")]


_HEADINGS = ("NAME", "STATE", "VERSION", "LAG", "POLLS", "QUEUES", "STARTED", "PROCESS")


def _row(node: ListedNode) -> tuple[str, ...]:
    entry, figures = node.entry, node.figures
    state: str = node.state
    if not node.is_living:
        state = f"gone since {_at(node.seen_at)}"
    elif node.wanted == nodes.DRAIN and figures.state != "draining":
        state += ", asked to leave"
    return (
        node.name,
        state,
        entry.version,
        f"{figures.lag_entries} ({figures.lag_seconds:g} s)" if figures.lag_seconds else "0",
        str(figures.waiting_polls),
        str(figures.queues),
        _at(node.started_at),
        f"{entry.pid} on {entry.host}",
    )


def _at(seconds: float) -> str:
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
