"""`tertulia nodes`: list nodes, drain one, or forget one that is gone."""

import contextlib
import datetime
import time
from collections.abc import Iterator
from typing import Annotated, Any, Final

import typer

from tertulia.app.founding import founded_database
from tertulia.cli.commands import Printed, add_default_command, configured, done, show
from tertulia.cli.errors import CommandFailed
from tertulia.cli.options import finite
from tertulia.cli.tables import table
from tertulia.service.config import Config
from tertulia.service.membership import WORKER
from tertulia.store import installation
from tertulia.store import nodes as store
from tertulia.store.database import Connection
from tertulia.store.nodes import ListedNode
from tertulia.store.schema_upgrade import require_usable

_LOOK_SECONDS: Final = 0.5
nodes = typer.Typer(
    name="nodes",
    help="List nodes with their version, lag, and state; drain or forget a node.",
    rich_markup_mode="markdown",
)
Name = Annotated[
    str,
    typer.Argument(
        help="Name of a node, as shown by `tertulia nodes`, or of a server, for all"
        " of its processes."
    ),
]


@configured
def list_nodes(config: Config) -> Printed:
    """List nodes with their version, state, and lag.

    Each node reports its status every few seconds. A node that stopped without shutting down is
    shown as gone for a day.
    """
    with _opened(config) as connection:
        listed = store.list_nodes(connection)
        head = installation.head_position(connection)
        applied = int(installation.value(connection, installation.SCHEMA_VERSION) or 0)
    answer = {
        "schema_version": applied,
        "required_schema_version": head.schema_version,
        "log_format": head.log_format,
        "head": head.seq,
        "nodes": list(map(_shown, listed)),
    }
    lines = table(_HEADINGS, map(_row, listed)) if listed else ["No nodes are running."]
    return Printed(answer, lines)


def _shown(node: ListedNode) -> dict[str, Any]:
    entry, figures = node.entry, node.figures
    return {
        "name": node.name,
        "state": node.state,
        "host": entry.host,
        "pid": entry.pid,
        "version": entry.version,
        "schema_version": entry.schema_version,
        "log_format": entry.log_format,
        "position": figures.position,
        "lag_entries": figures.lag_entries,
        "lag_seconds": figures.lag_seconds,
        "waiting_polls": figures.waiting_polls,
        "queues": figures.queues,
        "clock_ahead": figures.clock_ahead,
        "started_at": round(node.started_at, 3),
        "seen_at": round(node.seen_at, 3),
        "asked_to_leave": node.wanted == store.DRAIN,
    }


@configured
def drain(
    config: Config,
    name: Name,
    as_json: bool,
    wait: Annotated[
        float,
        typer.Option(
            metavar="SECONDS",
            min=0,
            callback=finite,
            help="Seconds to wait until the node is gone; 0 returns immediately.",
        ),
    ] = 0,
) -> None:
    """Ask a node to leave: its /ready returns 503, so that load balancers stop sending requests to
    it.

    The node notices within seconds. To undo this, restart the node. The exit code is 1 if the node
    doesn't exist, or if it's still running after --wait.
    """
    with _opened(config, readonly=False) as connection:
        asked = [node.name for node in _named(connection, name) if node.is_living]
        if not asked:
            raise CommandFailed(f"Node '{name}' isn't running. `tertulia nodes` lists all nodes.")
        for text in asked:
            store.request(connection, text, store.DRAIN)
        if not as_json or not wait:
            show(done(f"Asked to leave: {', '.join(asked)}"), as_json=as_json)
        if not wait:
            return
        until = time.monotonic() + wait
        left = asked
        while left and time.monotonic() < until:
            time.sleep(_LOOK_SECONDS)  # A node that leaves is removed from the list.
            living = {node.name for node in store.list_nodes(connection) if node.is_living}
            left = [text for text in asked if text in living]
        if left:
            raise CommandFailed(f"Still running after {wait:g} s: {', '.join(left)}")
        show(done("Gone."), as_json=as_json)


@configured
def forget(config: Config, name: Name) -> Printed:
    """Remove a node that's gone from the list. This happens by itself after a day."""
    with _opened(config, readonly=False) as connection:
        if not store.forget(connection, name):
            raise CommandFailed(
                f"No node named '{name}' is gone. `tertulia nodes` lists all nodes."
            )
    return done(f"Removed {name} from the list.")


add_default_command(nodes, list_nodes, "Example: `tertulia nodes --data-dir data`")
for name, run, example in (
    ("drain", drain, "drain chat-2 --wait 120"),
    ("forget", forget, "forget chat-2"),
):
    nodes.command(name, epilog=f"Example: `tertulia nodes {example} --data-dir data`")(run)


@contextlib.contextmanager
def _opened(config: Config, *, readonly: bool = True) -> Iterator[Connection]:
    with founded_database(config, readonly=readonly) as connection:
        require_usable(connection)
        yield connection


def _named(connection: Connection, name: str) -> list[ListedNode]:
    listed = store.list_nodes(connection)
    exact = [node for node in listed if node.name == name]
    return exact or [node for node in listed if node.name.startswith(f"{name}{WORKER}")]


_HEADINGS = ("NAME", "STATE", "VERSION", "LAG", "POLLS", "QUEUES", "STARTED", "PROCESS")


def _row(node: ListedNode) -> tuple[str, ...]:
    entry, figures = node.entry, node.figures
    state: str = node.state
    if not node.is_living:
        state = f"gone since {_at(node.seen_at)}"
    elif node.wanted == store.DRAIN and figures.state != "draining":
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
