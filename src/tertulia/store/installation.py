"""Facts about this installation, beside the organization: the schema's version, the secret's
fingerprint."""

import contextlib
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tertulia.store import file_modes
from tertulia.store.database import Connection, DatabaseError, TextRow

SCHEMA_VERSION = "schema_version"
SECRET = "secret"  # noqa: S105 (the key of the fingerprint, not the secret)

CHANNEL = "channel"
"""The key of a random word that the name is made of by which nodes hear of each other: whoever may
connect to a PostgreSQL may listen and speak there to whatever they know the name of."""


def value(connection: Connection, key: str) -> str | None:
    """The value that was put under the key."""
    rows = connection.query("SELECT value FROM installation WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def values(connection: Connection, prefix: str) -> dict[str, str]:
    """What was put under keys that begin so, by key."""
    rows = connection.query("SELECT key, value FROM installation")
    return {str(key): str(value) for key, value in rows if str(key).startswith(prefix)}


def put(connection: Connection, key: str, value: str) -> None:
    """Put the value under the key, inside the transaction that is open."""
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def put_once(connection: Connection, key: str, text: str) -> str:
    """Put the value under the key, unless there is one, inside the transaction that is open.
    Returns the one that there is now."""
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        (key, text),
    )
    return str(connection.query("SELECT value FROM installation WHERE key = ?", (key,))[0][0])


def forget(connection: Connection, key: str) -> None:
    """Take away what was put under the key, inside the transaction that is open."""
    connection.run("DELETE FROM installation WHERE key = ?", (key,))


def is_founded(connection: Connection) -> bool:
    """Whether the database, which may be of an older version, has an organization."""
    return value(connection, SCHEMA_VERSION) is not None and bool(
        connection.query("SELECT 1 FROM head WHERE seq > 0")
    )


_TRIES = 20
_PAUSE_SECONDS = 0.05
"""Between two tries: a command that looks whether a server runs holds the lock for a moment."""


def this_process() -> str:
    """This process, as errors of other processes name it."""
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextlib.contextmanager
def exclusive_server(database: Path) -> Iterator[int]:
    """Be the only server on the file for the time of the context; the lock's descriptor. Whoever
    inherits it holds the lock as well: it ends with the last of these processes, however they end.
    DatabaseError where there is a server already."""
    path = _lock_of(database)
    file_modes.directory(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for attempt in range(_TRIES):
            if _is_locked(descriptor, fcntl.LOCK_EX):
                break
            if attempt == _TRIES - 1:
                raise DatabaseError(
                    f"A server is already using {database}: {_holder(descriptor)}. Only one"
                    " server can use an SQLite database, although it can have several"
                    " workers. Stop that server first, or use PostgreSQL."
                )
            time.sleep(_PAUSE_SECONDS)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, this_process().encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def running_server(database: Path) -> str | None:
    """The process that serves from the file, other than this one; None where none does."""
    try:
        descriptor = os.open(_lock_of(database), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if _is_locked(descriptor, fcntl.LOCK_SH):
            return None
        holder = _holder(descriptor)
        return None if holder == this_process() else holder
    finally:
        os.close(descriptor)


def _lock_of(database: Path) -> Path:
    return database.with_name(f"{database.name}.lock")


def _is_locked(descriptor: int, kind: int) -> bool:
    """Try to lock the file; whether that succeeded."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace") or "another process"


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


def head_position(connection: Connection) -> Head:
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


def continues_history(connection: Connection, found: Head, known: Position) -> bool:
    """Whether the log still has the known entry. Where that is pruned, it is taken for granted."""
    if found.history != known.history or found.seq < known.seq:
        return False
    if found.seq == known.seq:
        return found.batch == known.batch
    return known.seq <= found.pruned or batch_of(connection, known.seq) == known.batch


def renew_history(connection: Connection) -> None:
    """Give the log a new identity, inside the transaction that is open. This ends the event queues:
    their cursors are of another history."""
    connection.run("UPDATE head SET history = ? WHERE id = 1", (new_id(),))
    connection.run("DELETE FROM queues")


def is_lost(connection: Connection, known: Position) -> bool:
    """Whether the log went back in time, and nobody has given it a new identity yet."""
    found = head_position(connection)
    return found.history == known.history and not continues_history(connection, found, known)


def renew_where_lost(connection: Connection, known: Position) -> None:
    """`renew` where the known entry `is_lost`, inside the transaction that is open."""
    if is_lost(connection, known):
        renew_history(connection)
