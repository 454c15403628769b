"""The nodes that serve from the database, which report every few seconds.

A node is alive as long as its row is fresh by the database's clock, so differing clocks don't
matter. Writing here takes no lock that a commit waits for.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.store.database import Connection

ALIVE_SECONDS: Final = 30.0
"""A node without a heartbeat for this long is considered gone."""
REMEMBERED_SECONDS: Final = 86_400.0
"""The number of seconds for which nodes that are gone are listed."""
DRAIN: Final = "drain"
"""The request to a node to stop serving."""


class NodeEntry(Struct, frozen=True, kw_only=True):
    """Properties of a node that stay the same while it runs."""

    run: str
    """A random ID of this run."""
    host: str
    pid: int
    pid_space: str = ""
    """The namespace of `pid`."""
    wanted_name: str = ""
    """The name without a suffix that makes it unique."""
    port: int = 0
    version: str
    schema_version: int
    """The number of migrations that the program knows."""
    log_format: int
    """The newest log format that the program knows."""
    settings: Mapping[str, str] = {}
    """Digests of settings that must be the same on all nodes."""


class SlowRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A slow request, without its content."""

    at: int
    """The time when it was answered, in UNIX seconds of the node's clock."""
    method: str
    route: str
    """The path as documented, such as `/api/v1/users/{user_id}`, or the beginning of a page's path.
    """
    user_id: int | None = None
    """The account; None if nobody was signed in."""
    status: int = 0
    """The HTTP status, or 0 without a response."""
    ms: int
    """Milliseconds until the response began, without waiting for the client."""
    database_ms: int = 0
    """The most milliseconds of it that were spent waiting for the database."""
    loop_ms: int = 0
    """Milliseconds by which the event loop was late."""


MAX_SLOW_REQUESTS: Final = 20
"""The newest slow requests kept per node."""


class NodeFigures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A node's last report."""

    state: str = "starting"
    """`starting`, `serving`, `draining`, `stale` (it doesn't know whether it is up to date, and
    refuses requests), or a state of a newer version."""
    position: int = 0
    """The newest log entry that it knows."""
    lag_entries: int = 0
    """The number of entries that it is behind the log's head."""
    lag_seconds: float = 0.0
    waiting_polls: int = 0
    queues: int = 0
    clock_ahead: float = 0.0
    """The number of seconds that its clock is ahead of the database's."""
    slow: tuple[SlowRequest, ...] = ()
    """The newest slow requests, oldest first."""


class ListedNode(Struct, frozen=True, kw_only=True):
    """A node in the list. Times are in UNIX seconds of the database's clock."""

    name: str
    entry: NodeEntry
    figures: NodeFigures
    started_at: float
    seen_at: float
    silent_seconds: float
    """Seconds since its last report."""
    wanted: str = ""
    """A request it hasn't fulfilled: `DRAIN` or ""."""

    @property
    def is_living(self) -> bool:
        return self.silent_seconds < ALIVE_SECONDS

    @property
    def state(self) -> str:
        """The reported state, or `gone` after `ALIVE_SECONDS` without a report."""
        return self.figures.state if self.is_living else "gone"


class HeartbeatReply(Struct, frozen=True):
    """The reply to a node's report."""

    wanted: str
    at: float
    """The database's time."""


def list_nodes(connection: Connection) -> list[ListedNode]:
    """Return all nodes by name, including those that are gone."""
    rows = connection.query(
        "SELECT name, entry, figures, started_at, seen_at, wanted,"
        f" {connection.dialect.now} - seen_at FROM nodes ORDER BY name"
    )
    return [
        ListedNode(
            name=name,
            entry=msgspec.json.decode(entry, type=NodeEntry),
            figures=msgspec.json.decode(figures, type=NodeFigures),
            started_at=started_at,
            seen_at=seen_at,
            silent_seconds=max(silent, 0.0),
            wanted=wanted,
        )
        for name, entry, figures, started_at, seen_at, wanted, silent in rows
    ]


def register(
    connection: Connection,
    name: str,
    entry: NodeEntry,
    figures: NodeFigures,
    makes_way: Callable[[ListedNode], bool],
) -> bool:
    """List a node unless its name is taken. Nodes for which `makes_way` returns True are removed
    first."""
    _clear(connection, makes_way)
    now = connection.dialect.now
    connection.run(
        "INSERT INTO nodes (name, run, started_at, seen_at, entry, figures, wanted)"
        f" VALUES (?, ?, {now}, {now}, ?, ?, '') ON CONFLICT DO NOTHING",
        (name, entry.run, _encoded(entry), _encoded(figures)),
    )
    return bool(connection.query("SELECT 1 FROM nodes WHERE run = ?", (entry.run,)))


def rename(
    connection: Connection, run: str, name: str, makes_way: Callable[[ListedNode], bool]
) -> bool:
    """Rename a node unless the name is taken. Nodes for which `makes_way` returns True are removed
    first."""
    _clear(connection, makes_way)
    return bool(
        connection.query(
            "UPDATE nodes SET name = ? WHERE run = ?"
            " AND NOT EXISTS (SELECT 1 FROM nodes AS other WHERE other.name = ?) RETURNING name",
            (name, run, name),
        )
    )


def _clear(connection: Connection, makes_way: Callable[[ListedNode], bool]) -> None:
    for other in list_nodes(connection):
        if makes_way(other):
            connection.run("DELETE FROM nodes WHERE run = ?", (other.entry.run,))


def heartbeat(connection: Connection, run: str, figures: NodeFigures) -> HeartbeatReply | None:
    """Store a node's report. Return None if it isn't listed."""
    rows = connection.query(
        f"UPDATE nodes SET seen_at = {connection.dialect.now}, figures = ? WHERE run = ?"
        " RETURNING wanted, seen_at",
        (_encoded(figures), run),
    )
    return HeartbeatReply(*rows[0]) if rows else None


def unregister(connection: Connection, run: str) -> None:
    connection.run("DELETE FROM nodes WHERE run = ?", (run,))


def request(connection: Connection, name: str, what: str) -> bool:
    """Make a request to a node. Return False if it isn't listed."""
    return bool(
        connection.query(
            "UPDATE nodes SET wanted = ? WHERE name = ? RETURNING name",
            (what, name),
        )
    )


def forget(connection: Connection, name: str) -> bool:
    """Delete a node that is gone. Return False if there isn't one with that name."""
    return bool(
        connection.query(
            f"DELETE FROM nodes WHERE name = ? AND {connection.dialect.now} - seen_at > ?"
            " RETURNING name",
            (name, ALIVE_SECONDS),
        )
    )


def forget_old(connection: Connection) -> None:
    """Delete nodes that have been gone for `REMEMBERED_SECONDS`."""
    connection.run(
        f"DELETE FROM nodes WHERE {connection.dialect.now} - seen_at > ?", (REMEMBERED_SECONDS,)
    )


def _encoded(struct: Struct) -> str:
    return msgspec.json.encode(struct).decode()
