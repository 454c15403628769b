"""Which history the log's entries belong to, and how far it goes.

A database can go back in time: a snapshot is put back, a replica that lagged takes over. Numbers of
entries are then given a second time, to something else. So the log has an identity, its history,
which is made anew when that happens; and an entry is known again by the batch that it came with.
"""

import secrets

from msgspec import Struct

from tertulia.store.database import Connection, DatabaseError, TextRow


class HistoryChanged(DatabaseError):
    """The log does not have the known entry any more: it is another history."""

    def __init__(self, known: "Position", head: "Head") -> None:
        self.head = head
        super().__init__(
            f"The log went back in time: entry {known.seq} of history {known.history} isn't"
            f" in it. The log ends at entry {head.seq} of history {head.history}."
        )


class HistoryPruned(DatabaseError):
    """The log has the same history, but entries after the known one are pruned."""

    def __init__(self, known: "Position", head: "Head") -> None:
        self.head = head
        super().__init__(
            f"The log was pruned up to entry {head.pruned}, which is after entry {known.seq}."
        )


class NewerDatabase(DatabaseError):
    """A newer program has changed the database, or written what this one cannot read."""


class Position(Struct, frozen=True):
    """An entry of the log. `history` and `batch` tell it from one with the same number in another
    history."""

    history: str
    seq: int
    batch: str
    """The batch that it was committed with; empty for entries from before there were batches."""


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
    """How many migrations a program must know at least. (More may have been made already, with
    which programs that do not know them work as well.)"""
    log_format: int
    """The newest format of the log in which something may be written."""

    @property
    def position(self) -> Position:
        return Position(self.history, self.seq, self.batch)


def new_id() -> str:
    """A random ID for a history or a batch."""
    return secrets.token_hex(8)


HEAD_COLUMNS = "seq, pruned, history, batch, noted, schema_version, log_format"
"""Of the table `head`, in the order of `Head`."""


def head(connection: Connection) -> Head:
    """The log's end."""
    (row,) = connection.query(f"SELECT {HEAD_COLUMNS} FROM head WHERE id = 1")
    return Head(*row)


def head_of(row: TextRow) -> Head:
    """The log's end, from `HEAD_COLUMNS` as text."""
    seq, pruned, name, batch, noted, version, log_format = (str(one or b"", "utf-8") for one in row)
    return Head(int(seq), int(pruned), name, batch, noted, int(version), int(log_format))


def batch_of(connection: Connection, seq: int) -> str | None:
    """The batch that an entry came with; None where the log does not have the entry."""
    rows = connection.query("SELECT batch FROM log WHERE seq = ?", (seq,))
    return str(rows[0][0]) if rows else None


def continues(connection: Connection, found: Head, known: Position) -> bool:
    """Whether the log still has the known entry. Where that is pruned, it is taken for granted."""
    if found.history != known.history or found.seq < known.seq:
        return False
    if found.seq == known.seq:
        return found.batch == known.batch
    return known.seq <= found.pruned or batch_of(connection, known.seq) == known.batch


def renew(connection: Connection) -> None:
    """Give the log a new identity, inside the transaction that is open. This ends the event queues:
    their cursors are of another history."""
    connection.run("UPDATE head SET history = ? WHERE id = 1", (new_id(),))
    connection.run("DELETE FROM queues")


def is_lost(connection: Connection, known: Position) -> bool:
    """Whether the log went back in time, and nobody has given it a new identity yet."""
    found = head(connection)
    return found.history == known.history and not continues(connection, found, known)


def renew_where_lost(connection: Connection, known: Position) -> None:
    """`renew` where the known entry `is_lost`, inside the transaction that is open."""
    if is_lost(connection, known):
        renew(connection)
