"""Which history the log's entries belong to, and how far it goes.

A database can go back in time: a snapshot is put back, a replica that lagged takes over. Numbers of
entries are then given a second time, to something else. So the log has an identity, its history,
which is made anew when that happens; and an entry is known again by the batch that it came with.
"""

import secrets
from typing import get_args

from msgspec import Struct

from tertulia.model.changes import AnyChange
from tertulia.store.database import Connection, DatabaseError

LOG_FORMAT = len(get_args(AnyChange))
"""How many kinds of changes the program knows. None is ever taken away, since old logs have it: a
program that knows more is newer."""


class HistoryChanged(DatabaseError):
    """The log does not have any more what was known to be in it: it is another history."""

    def __init__(self, known: "Position", head: "Head") -> None:
        self.head = head
        super().__init__(
            f"The log went back in time: entry {known.seq} of history {known.history} is not in"
            f" it, and it ends at {head.seq} of history {head.history}."
        )


class HistoryPruned(DatabaseError):
    """The log goes on from what was known to be in it, and a part of what came after is pruned."""

    def __init__(self, known: "Position", head: "Head") -> None:
        self.head = head
        super().__init__(f"The log was pruned up to {head.pruned}, beyond entry {known.seq}.")


class NewerDatabase(DatabaseError):
    """A newer program has changed the database, or written what this one cannot read."""


class Position(Struct, frozen=True):
    """An entry of the log, and by what it is told from one with the same number in another
    history."""

    history: str
    seq: int
    batch: str
    """What it was written with; empty for entries that are older than this."""


class Head(Struct, frozen=True):
    """The log's end."""

    seq: int
    pruned: int
    """The newest entry that the log does not have any more; 0 where it has all."""
    history: str
    batch: str
    """The batch that the newest entry came with."""
    noted: str
    """The newest batch that came without entries."""
    schema_version: int
    log_format: int

    @property
    def position(self) -> Position:
        return Position(self.history, self.seq, self.batch)


def new_id() -> str:
    """What a history or a batch is known by."""
    return secrets.token_hex(8)


def head(connection: Connection) -> Head:
    """The log's end."""
    (row,) = connection.query(
        "SELECT seq, pruned, history, batch, noted, schema_version, log_format FROM head"
        " WHERE id = 1"
    )
    return Head(*row)


def batch_of(connection: Connection, seq: int) -> str | None:
    """The batch that an entry came with; None where the log does not have the entry."""
    rows = connection.query("SELECT batch FROM log WHERE seq = ?", (seq,))
    return str(rows[0][0]) if rows else None


def continues(connection: Connection, found: Head, known: Position) -> bool:
    """Whether the log still has what was known, as far as it can be told: what is pruned is
    believed."""
    if found.history != known.history or found.seq < known.seq:
        return False
    if found.seq == known.seq:
        return found.batch == known.batch
    return known.seq <= found.pruned or batch_of(connection, known.seq) == known.batch


def renew(connection: Connection) -> None:
    """Give the log a new identity, inside the transaction that is open. The event queues are ended:
    what their clients have seen is of another history."""
    connection.run("UPDATE head SET history = ? WHERE id = 1", (new_id(),))
    connection.run("DELETE FROM queues")


def is_lost(connection: Connection, known: Position) -> bool:
    """Whether the log went back in time, and nobody has given it a new identity yet."""
    found = head(connection)
    return found.history == known.history and not continues(connection, found, known)


def renew_where_lost(connection: Connection, known: Position) -> None:
    """`renew` where that is so, inside the transaction that is open."""
    if is_lost(connection, known):
        renew(connection)
