"""The nodes that serve from the database, as each says of itself every few seconds.

A node is known to be alive by its row, whose time is the database's, so that clocks which differ do
not matter. What is written here takes no lock that a commit waits for.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct

from tertulia.store.database import Connection

ALIVE_SECONDS: Final = 30.0
"""A node that has said nothing for so long counts as gone."""
REMEMBERED_SECONDS: Final = 86_400.0
"""Nodes that are gone are shown for so long, and then forgotten."""
DRAIN: Final = "drain"
"""What a node can be asked: to leave."""


class NodeEntry(Struct, frozen=True, kw_only=True):
    """What stays the same of a node as long as it runs."""

    run: str
    """A random ID of this process's time."""
    host: str
    pid: int
    pid_space: str = ""
    """Within which that number means this process."""
    wanted_name: str = ""
    """Its name, but for the ending where another node had that."""
    port: int = 0
    version: str
    schema_version: int
    """How many migrations the program knows."""
    log_format: int
    """The newest format of the log that it knows."""
    settings: Mapping[str, str] = {}
    """Those that must be the same on all nodes, each as a digest."""


class SlowRequest(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request that took long: what it was for, and nothing of what it said."""

    at: int
    """When it was answered, in UNIX seconds of the node's clock."""
    method: str
    route: str
    """The path as the interface names it, `/api/v1/users/{user_id}`; for pages, its beginning."""
    user_id: int | None = None
    """Who asked; None for somebody without an account."""
    status: int = 0
    """Of HTTP; 0 where no answer was begun."""
    ms: int
    """How long it took until its answer began, without what was waited for the client."""
    database_ms: int = 0
    """Of that, how long it waited for the database, at most."""
    loop_ms: int = 0
    """How late the event loop was meanwhile."""


MAX_SLOW_REQUESTS: Final = 20
"""Slow requests of a node that are kept: the latest."""


class NodeFigures(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a node is, as of its last word."""

    state: str = "starting"
    """`starting`, `serving`, `draining`, `stale`, or what a newer version calls it. `stale`: it
    cannot see whether it is up to date, and answers nothing."""
    position: int = 0
    """The newest entry that it knows."""
    lag_entries: int = 0
    """By how many entries it was behind the log's head."""
    lag_seconds: float = 0.0
    """For how long it was."""
    waiting_polls: int = 0
    queues: int = 0
    clock_ahead: float = 0.0
    """By how many seconds its clock is ahead of the database's."""
    slow: tuple[SlowRequest, ...] = ()
    """The latest, oldest first."""


class ListedNode(Struct, frozen=True, kw_only=True):
    """A node as it is listed. Times are UNIX seconds of the database's clock."""

    name: str
    entry: NodeEntry
    figures: NodeFigures
    started_at: float
    seen_at: float
    silent_seconds: float
    """How long ago it said something."""
    wanted: str = ""
    """What it was asked and has not done yet: `DRAIN`, or nothing."""

    @property
    def is_living(self) -> bool:
        return self.silent_seconds < ALIVE_SECONDS

    @property
    def state(self) -> str:
        """How it is; `gone` where it said nothing for `LIVING_SECONDS`, and did not take its
        leave."""
        return self.figures.state if self.is_living else "gone"


class HeartbeatReply(Struct, frozen=True):
    """What a node learns where it says how it is."""

    wanted: str
    at: float
    """The database's time."""


def list_nodes(connection: Connection) -> list[ListedNode]:
    """All nodes by name, those that are gone too."""
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
    """List a node by that name; False where another one has it. Those that make way for it are
    taken off the list."""
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
    """Give a node another name, if nobody has it who does not make way."""
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
    """Say how a node is. None where it is not listed (any more)."""
    rows = connection.query(
        f"UPDATE nodes SET seen_at = {connection.dialect.now}, figures = ? WHERE run = ?"
        " RETURNING wanted, seen_at",
        (_encoded(figures), run),
    )
    return HeartbeatReply(*rows[0]) if rows else None


def unregister(connection: Connection, run: str) -> None:
    """Take a node off the list."""
    connection.run("DELETE FROM nodes WHERE run = ?", (run,))


def request(connection: Connection, name: str, what: str) -> bool:
    """Ask a node for something, which it hears with its next word. False where there is none of
    that name."""
    return bool(
        connection.query(
            "UPDATE nodes SET wanted = ? WHERE name = ? RETURNING name",
            (what, name),
        )
    )


def forget(connection: Connection, name: str) -> bool:
    """Take a node that is gone off the list, by its name. False where there is none."""
    return bool(
        connection.query(
            f"DELETE FROM nodes WHERE name = ? AND {connection.dialect.now} - seen_at > ?"
            " RETURNING name",
            (name, ALIVE_SECONDS),
        )
    )


def forget_old(connection: Connection) -> None:
    """Forget those that have been gone for `REMEMBERED_SECONDS`."""
    connection.run(
        f"DELETE FROM nodes WHERE {connection.dialect.now} - seen_at > ?", (REMEMBERED_SECONDS,)
    )


def _encoded(struct: Struct) -> str:
    return msgspec.json.encode(struct).decode()
