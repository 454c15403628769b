"""Facts about the installation, the lock of a server on SQLite, and the position of the log."""

import contextlib
import fcntl
import os
import secrets
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tertulia.store import file_modes, log_formats, migrations
from tertulia.store.database import Connection, DatabaseError, TextRow

SCHEMA_VERSION = "schema_version"
SECRET = "secret"  # noqa: S105 (the key of the fingerprint, not the secret)

IMPORT = "import"
"""The progress and report of the newest import, as JSON."""
LIVE_IMPORT = "import_live"
"""The progress and report of a live move."""
CHANNEL = "channel"
"""The key of a random word in the name of PostgreSQL's notification channel, so that other users
of the server can't guess the channel."""


def value(connection: Connection, key: str) -> str | None:
    rows = connection.query("SELECT value FROM installation WHERE key = ?", (key,))
    return str(rows[0][0]) if rows else None


def values(connection: Connection, prefix: str) -> dict[str, str]:
    """Return the facts whose keys begin with `prefix`."""
    rows = connection.query("SELECT key, value FROM installation")
    return {str(key): str(value) for key, value in rows if str(key).startswith(prefix)}


def put(connection: Connection, key: str, value: str) -> None:
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?)"
        " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        (key, value),
    )


def put_once(connection: Connection, key: str, text: str) -> str:
    """Store the value unless the key exists. Return the stored value."""
    connection.run(
        "INSERT INTO installation (key, value) VALUES (?, ?) ON CONFLICT (key) DO NOTHING",
        (key, text),
    )
    return str(connection.query("SELECT value FROM installation WHERE key = ?", (key,))[0][0])


def forget(connection: Connection, key: str) -> None:
    connection.run("DELETE FROM installation WHERE key = ?", (key,))


def forget_all(connection: Connection, prefix: str) -> None:
    """Delete the facts whose keys begin with `prefix`."""
    for key in values(connection, prefix):
        forget(connection, key)


def is_founded(connection: Connection) -> bool:
    """Return whether the database, of any version, has an organization."""
    return value(connection, SCHEMA_VERSION) is not None and bool(
        connection.query("SELECT 1 FROM head WHERE seq > 0")
    )


_TRIES = 20
_PAUSE_SECONDS = 0.05
"""Seconds between two attempts. Commands that check for a server hold the lock briefly."""


def this_process() -> str:
    """Describe this process for other processes' error messages."""
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextlib.contextmanager
def exclusive_server(database: Path) -> Iterator[int]:
    """Be the only server of the file, and yield the lock's descriptor. Child processes that inherit
    it hold the lock too, until the last of them ends. Raise DatabaseError if there is a server."""
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
    """Describe another process that serves from the file, or return None."""
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
    """Try to lock the file without blocking."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace") or "another process"


class HistoryChanged(DatabaseError):
    """The log no longer has the known entry, so it is a different history."""

    def __init__(self, known: "Position", head: "Head") -> None:
        self.head = head
        super().__init__(
            f"The log went back in time: entry {known.seq} of history {known.history} isn't"
            f" in it. The log ends at entry {head.seq} of history {head.history}."
        )


class HistoryPruned(DatabaseError):
    """The log has the same history, but entries after the known one were pruned."""

    def __init__(self, known: "Position", head: "Head") -> None:
        self.head = head
        super().__init__(
            f"The log was pruned up to entry {head.pruned}, which is after entry {known.seq}."
        )


class NewerDatabase(DatabaseError):
    """A newer version changed the database or wrote what this one can't read."""


class Position(Struct, frozen=True):
    """A log entry. `history` and `batch` distinguish it from one with the same number in another
    history."""

    history: str
    seq: int
    batch: str
    """The batch that it was committed with, or "" for entries of version 0.1."""


class Head(Struct, frozen=True):
    """The end of the log."""

    seq: int
    pruned: int
    """The newest pruned entry, or 0."""
    history: str
    batch: str
    """The batch of the newest entry."""
    noted: str
    """The newest batch without entries."""
    schema_version: int
    """The schema version that a program must know. Migrations beyond it can be ignored by older
    programs."""
    log_format: int
    """The newest log format that may be written."""

    @property
    def position(self) -> Position:
        return Position(self.history, self.seq, self.batch)


def new_id() -> str:
    return secrets.token_hex(8)


HEAD_COLUMNS = "seq, pruned, history, batch, noted, schema_version, log_format"
"""The columns of the log's head, in the order of `Head`."""


def head_position(connection: Connection) -> Head:
    (row,) = connection.query(f"SELECT {HEAD_COLUMNS} FROM head WHERE id = 1")
    return Head(*row)


def head_of(row: TextRow) -> Head:
    """Decode `HEAD_COLUMNS` as text."""
    seq, pruned, name, batch, noted, version, log_format = (
        str(item or b"", "utf-8") for item in row
    )
    return Head(int(seq), int(pruned), name, batch, noted, int(version), int(log_format))


def require_known(head: Head) -> None:
    """Raise NewerDatabase if a newer version changed the database incompatibly, or may write
    what this one can't read."""
    require_known_schema(head.schema_version)
    if head.log_format > log_formats.LOG_FORMAT:
        raise NewerDatabase(
            f"The log has format {head.log_format}, but this version of Tertulia supports"
            f" formats up to {log_formats.LOG_FORMAT}. The log was written by a newer version."
            " Install that version or a later one."
        )


def require_known_schema(version: int) -> None:
    """Raise NewerDatabase if this version doesn't know the schema version."""
    newest = len(migrations.MIGRATIONS)
    if version > newest:
        raise NewerDatabase(
            f"The database has schema version {version}, but this version of Tertulia supports"
            f" versions up to {newest}. The database was written by a newer version. Install that"
            " version or a later one, or restore a backup from before the upgrade. Nothing was"
            " changed."
        )


def batch_of(connection: Connection, seq: int) -> str | None:
    """Return an entry's batch, or None if the log doesn't have it."""
    rows = connection.query("SELECT batch FROM log WHERE seq = ?", (seq,))
    return str(rows[0][0]) if rows else None


def continues_history(connection: Connection, head: Head, known: Position) -> bool:
    """Return whether the log still has the known entry, which is assumed if it was pruned."""
    if head.history != known.history or head.seq < known.seq:
        return False
    if head.seq == known.seq:
        return head.batch == known.batch
    return known.seq <= head.pruned or batch_of(connection, known.seq) == known.batch


def renew_history(connection: Connection) -> None:
    """Give the log a new identity, which ends all event queues."""
    connection.run("UPDATE head SET history = ? WHERE id = 1", (new_id(),))
    connection.run("DELETE FROM queues")


def is_lost(connection: Connection, known: Position) -> bool:
    """Return whether the log went back in time and hasn't been given a new identity yet."""
    head = head_position(connection)
    return head.history == known.history and not continues_history(connection, head, known)


def renew_where_lost(connection: Connection, known: Position) -> None:
    """Renew the history if the known entry `is_lost`."""
    if is_lost(connection, known):
        renew_history(connection)
