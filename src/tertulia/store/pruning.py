"""Pruning the log's beginning, and the checkpoint that replaces it.

A checkpoint is a copy of the records at one log entry. Later entries can still be replayed on it
and compared with the tables. The log isn't pruned beyond it.
"""

import itertools
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from msgspec import Struct

from tertulia.model.changes import UserChanged
from tertulia.model.nouns import NOUNS
from tertulia.store import installation
from tertulia.store.codec import decode_entry, decode_record
from tertulia.store.database import UPKEEP, Connection, Database

ROWS: Final = 2000
"""The number of rows per transaction, so that others can write in between."""
_AT: Final = "checkpoint"
"""The fact with the checkpoint's number and log entry."""
_WAIT: Final = "erasures"
"""The fact with the time (UNIX seconds) since when erasures up to an entry wait for pruning."""
_making: Final = threading.Lock()
"""Held by the thread that makes a checkpoint, because two threads would delete each other's
rows."""


class PendingErasure(Struct, frozen=True):
    """An account was deleted with its personal data."""

    seq: int
    """The log entry."""
    user_id: int
    address: str
    """The account's email address, or "" if unknown."""


def prune(connection: Connection, until: int, limit: int) -> bool:
    """Delete up to `limit` of the oldest entries, up to `until`. Return whether there are more. The
    log stays without gaps."""
    ((first,),) = connection.query("SELECT MIN(seq) FROM log")
    if first is None or first > until:
        return False
    last = min(first + limit - 1, until)
    connection.run("DELETE FROM log WHERE seq <= ?", (last,))
    connection.run("UPDATE head SET pruned = ? WHERE id = 1", (last,))
    return bool(last < until)


def first_since(connection: Connection, timestamp: float, after: int, until: int) -> int | None:
    """Return the first entry with `after` < seq <= `until` that isn't older than a UNIX time.
    (Times can go back.)"""
    ((result,),) = connection.query(
        "SELECT MIN(seq) FROM log WHERE seq > ? AND seq <= ? AND at >= ?", (after, until, timestamp)
    )
    return None if result is None else int(result)


def erasures(connection: Connection, after: int, until: int) -> list[PendingErasure]:
    """Return the erasures with `after` < seq <= `until`, in order."""
    rows = connection.query(
        "SELECT seq, at, actor_id, change FROM log WHERE seq > ? AND seq <= ?"
        " AND change LIKE '%\"is_deleted\":true%' ORDER BY seq",
        (after, until),
    )
    return [
        PendingErasure(entry.seq, entry.change.user_id, str(entry.change.was.get("address", "")))
        for entry in (decode_entry(*row) for row in rows)
        if isinstance(entry.change, UserChanged)
    ]


def wait(connection: Connection) -> tuple[float, int] | None:
    """Return the time since when (UNIX seconds) erasures wait for pruning, and their last entry;
    None if none wait."""
    fact = installation.value(connection, _WAIT)
    if fact is None:
        return None
    at, seq = fact.split()
    return float(at), int(seq)


def put_wait(connection: Connection, since: tuple[float, int] | None) -> None:
    """Store the value of `wait`."""
    if since is None:
        installation.forget(connection, _WAIT)
    else:
        installation.put(connection, _WAIT, f"{since[0]!r} {since[1]}")


def checkpoint_at(connection: Connection) -> int:
    """Return the checkpoint's log entry, or 0."""
    return _current(connection)[1]


def checkpoint(connection: Connection) -> tuple[int, dict[str, list[Any]]]:
    """Return the checkpoint's log entry and records by table, or 0 and no records."""
    number, seq = _current(connection)
    result: dict[str, list[Any]] = {}
    for noun in NOUNS:
        rows = connection.query(
            "SELECT doc FROM checkpoints WHERE number = ? AND noun = ?", (number, noun.table)
        )
        result[noun.table] = [decode_record(noun, doc) for (doc,) in rows]
    return seq, result


def make_checkpoint(
    database: Database,
    goes_on: Callable[[], bool] = lambda: True,
    *,
    until: int | None = None,
) -> None:
    """Replace the checkpoint with the current tables; with `until`, only if it is older than that
    entry. Others can write in the meantime. Stops without effect once `goes_on` returns False.
    Raise DatabaseUnavailable if another process takes too long."""
    while not _making.acquire(timeout=1):
        if not goes_on():
            return
    try:
        with database.making_checkpoint(goes_on) as is_alone:
            if is_alone:
                _make_checkpoint(database, goes_on, until)
    finally:
        _making.release()


def _make_checkpoint(database: Database, goes_on: Callable[[], bool], until: int | None) -> None:
    source = database.connect(readonly=True)
    target = database.connect(readonly=False, limits=UPKEEP)
    try:
        for statement in target.dialect.claim_checkpoint:
            target.run(statement)
        source.run(source.dialect.begin_read)
        ((seq,),) = source.query("SELECT seq FROM head WHERE id = 1")
        before, made_at = _current(source)
        number = before + 1
        # Delete the rows of an attempt that didn't finish.
        _delete(target, "number <> ?", before)
        if until is not None and made_at >= until:
            return
        # The database's own sequence restarts after a restore.
        ((last_id,),) = target.query("SELECT COALESCE(MAX(id), 0) FROM checkpoints")
        ids = itertools.count(last_id + 1)
        for noun in NOUNS:
            rows: list[tuple[int, int, str, str]] = []
            for (doc,) in source.scan(f"SELECT doc FROM {noun.table}"):
                rows.append((next(ids), number, noun.table, doc))
                if len(rows) == ROWS:
                    _insert(target, rows)
                    rows = []
                    if not goes_on():
                        return
            _insert(target, rows)
            if not goes_on():
                return
        _in_transaction(target, lambda: installation.put(target, _AT, f"{number} {seq}"))
        _delete(target, "number <> ?", number)
    finally:
        source.close()
        target.close()


def _current(connection: Connection) -> tuple[int, int]:
    number, _, seq = (installation.value(connection, _AT) or "0 0").partition(" ")
    return int(number), int(seq)


def _insert(connection: Connection, rows: list[tuple[int, int, str, str]]) -> None:
    statement = "INSERT INTO checkpoints (id, number, noun, doc) VALUES (?, ?, ?, ?)"
    if rows:
        _in_transaction(connection, lambda: connection.run_many(statement, rows))


def _delete(connection: Connection, condition: str, number: int) -> None:
    """Delete rows of `checkpoints` in several transactions."""
    while ids := connection.query(
        f"SELECT id FROM checkpoints WHERE {condition} ORDER BY id LIMIT {ROWS}", (number,)
    ):
        first, last = ids[0][0], ids[-1][0]
        delete = f"DELETE FROM checkpoints WHERE id >= ? AND id <= ? AND {condition}"
        _in_transaction(connection, partial(connection.run, delete, (first, last, number)))


def _in_transaction(connection: Connection, function: Callable[[], Any]) -> None:
    """Call the function in a transaction, and then pause for as long as that took, so that others
    can use the database."""
    began = time.monotonic()
    connection.run("BEGIN IMMEDIATE" if connection.dialect.name == "sqlite" else "BEGIN")
    try:
        function()
    except BaseException:
        connection.run("ROLLBACK")
        raise
    connection.run("COMMIT")
    # Writers that wait for an SQLite file poll it, and would hardly ever find it free otherwise.
    time.sleep(time.monotonic() - began)
