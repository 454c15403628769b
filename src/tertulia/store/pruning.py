"""Forgetting the log's beginning, and the checkpoint that stands in its place.

A checkpoint is what the tables were at one entry of the log, so that what the log makes of them
since can still be compared with what they are. Nothing is forgotten beyond it.
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
from tertulia.store.database import Connection, Database

ROWS: Final = 2000
"""Rows of a checkpoint written in one transaction, so that others can write in between."""
_AT: Final = "checkpoint"
"""The fact that says which checkpoint counts: its number, and the entry it was made at."""
_WAIT: Final = "erasures"
"""The fact that says since when, in UNIX seconds, the erasures up to an entry wait to be forgotten.
"""
_making: Final = threading.Lock()
"""Held by the thread that makes a checkpoint: two would delete each other's rows."""


class AccountErasure(Struct, frozen=True):
    """An account was deleted with what was of its person."""

    seq: int
    """The entry that says so."""
    user_id: int
    address: str
    """The one that the account had; empty where that is not known."""


def prune(connection: Connection, until: int, limit: int) -> bool:
    """Delete the log's oldest entries, at most so many, up to that one. Returns whether there are
    more.

    Only a beginning is ever taken: the log stays without gaps.
    """
    ((first,),) = connection.query("SELECT MIN(seq) FROM log")
    if first is None or first > until:
        return False
    last = min(first + limit - 1, until)
    connection.run("DELETE FROM log WHERE seq <= ?", (last,))
    connection.run("UPDATE head SET pruned = ? WHERE id = 1", (last,))
    return bool(last < until)


def first_since(connection: Connection, moment: float, after: int, until: int) -> int | None:
    """The first of these entries (`after` < seq <= `until`) that is not older than that UNIX time.
    (Times may go back where the clock did.)"""
    ((found,),) = connection.query(
        "SELECT MIN(seq) FROM log WHERE seq > ? AND seq <= ? AND at >= ?", (after, until, moment)
    )
    return None if found is None else int(found)


def erasures(connection: Connection, after: int, until: int) -> list[AccountErasure]:
    """The deletions among these entries (`after` < seq <= `until`), in order."""
    rows = connection.query(
        "SELECT seq, at, actor_id, change FROM log WHERE seq > ? AND seq <= ?"
        " AND change LIKE '%\"is_deleted\":true%' ORDER BY seq",
        (after, until),
    )
    return [
        AccountErasure(entry.seq, entry.change.user_id, str(entry.change.was.get("address", "")))
        for entry in (decode_entry(*row) for row in rows)
        if isinstance(entry.change, UserChanged)
    ]


def wait(connection: Connection) -> tuple[float, int] | None:
    """Since when, in UNIX seconds, the erasures up to an entry wait to be forgotten, and that
    entry. None where nothing has begun to wait."""
    fact = installation.value(connection, _WAIT)
    if fact is None:
        return None
    at, seq = fact.split()
    return float(at), int(seq)


def put_wait(connection: Connection, since: tuple[float, int] | None) -> None:
    """Store what `wait` returns from now on."""
    if since is None:
        installation.forget(connection, _WAIT)
    else:
        installation.put(connection, _WAIT, f"{since[0]!r} {since[1]}")


def checkpoint_at(connection: Connection) -> int:
    """The entry at which the checkpoint was made; 0 where there is none."""
    return _current(connection)[1]


def checkpoint(connection: Connection) -> tuple[int, dict[str, list[Any]]]:
    """The entry at which the checkpoint was made, and its records by table; 0 and no records where
    there is none."""
    number, seq = _current(connection)
    found: dict[str, list[Any]] = {}
    for noun in NOUNS:
        rows = connection.query(
            "SELECT doc FROM checkpoints WHERE number = ? AND noun = ?", (number, noun.table)
        )
        found[noun.table] = [decode_record(noun, doc) for (doc,) in rows]
    return seq, found


def make_checkpoint(
    database: Database,
    goes_on: Callable[[], bool] = lambda: True,
    *,
    until: int | None = None,
) -> None:
    """Make a checkpoint of the tables as they are now, in place of the present one; with `until`,
    only where the present one was made before that entry. Takes a while, in which others can write;
    stops early, with nothing changed, when `goes_on` returns False.

    Processes make one at a time: DatabaseUnavailable where another one takes too long.
    """
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
    source, target = database.connect(readonly=True), database.connect(readonly=False)
    try:
        for statement in target.dialect.claim_checkpoint:
            target.run(statement)
        source.run(source.dialect.begin_read)
        ((seq,),) = source.query("SELECT seq FROM head WHERE id = 1")
        before, made_at = _current(source)
        number = before + 1
        # The rows of an attempt that did not finish.
        _delete(target, "number <> ?", before)
        if until is not None and made_at >= until:
            return
        # Not the database's own count, which begins anew where a backup was restored.
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
    """Delete rows of `checkpoints`, a part at a time."""
    while ids := connection.query(
        f"SELECT id FROM checkpoints WHERE {condition} ORDER BY id LIMIT {ROWS}", (number,)
    ):
        first, last = ids[0][0], ids[-1][0]
        delete = f"DELETE FROM checkpoints WHERE id >= ? AND id <= ? AND {condition}"
        _in_transaction(connection, partial(connection.run, delete, (first, last, number)))


def _in_transaction(connection: Connection, function: Callable[[], Any]) -> None:
    """Call the function in a transaction, and then leave the database to others for as long."""
    began = time.monotonic()
    connection.run("BEGIN IMMEDIATE" if connection.dialect.name == "sqlite" else "BEGIN")
    try:
        function()
    except BaseException:
        connection.run("ROLLBACK")
        raise
    connection.run("COMMIT")
    # Only this thread sleeps. Writers that wait for an SQLite file look now and then whether it is
    # free, and would hardly ever find it so between two transactions of ours.
    time.sleep(time.monotonic() - began)
