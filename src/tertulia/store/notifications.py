"""Notices that wait: of which messages people are to be told, and when.

A row is a message and the set of people who are to be told of it at one time, so there are as many
rows for ten people as for fifty thousand. How far the log was looked through is written down with
them, in one transaction: so each entry leaves its notices once.

One node at a time does this. It holds the cursor for a while, and says so again and again; what it
writes is written only while it holds it.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.store.database import Connection, Row

MAX_TOGETHER: Final = 500
"""Notices of one conversation that are told of together."""
_COLUMNS: Final = "message_id, due_at, gives_up_at, conversation, people"
_KEY: Final = "WHERE way = ? AND message_id = ? AND due_at = ? AND gives_up_at = ?"


class LeaseLost(Exception):
    """Another node holds the cursor."""


class PendingNotification(Struct, frozen=True, kw_only=True):
    """People who are to be told of a message. Times are in UNIX seconds."""

    message_id: int
    due_at: float
    gives_up_at: float
    """Who is still here then is not told any more."""
    conversation: str
    """What the messages of one conversation had in common when this was written."""
    people: BitMap


class CursorLease(Struct, frozen=True, kw_only=True):
    """What became of the wish to hold the cursor."""

    seq: int
    """Up to which entry the log was looked through."""
    goes_on: bool
    """Whether nobody else has held it since one did oneself."""
    other_until: float
    """Until when another one holds it, in UNIX seconds; 0 where one does oneself."""


def acquire(connection: Connection, holder: str, now: float, until: float) -> CursorLease:
    """Hold the cursor until then, where nobody else does."""
    ((before,),) = connection.query("SELECT holder FROM notice_cursor WHERE id = 1")
    connection.run(
        "UPDATE notice_cursor SET holder = ?, held_until = ?"
        " WHERE id = 1 AND (holder = ? OR held_until <= ?)",
        (holder, until, holder, now),
    )
    ((seq, present, held_until),) = connection.query(
        "SELECT seq, holder, held_until FROM notice_cursor WHERE id = 1"
    )
    is_own = present == holder
    return CursorLease(
        seq=seq,
        goes_on=is_own and before == holder,
        other_until=0.0 if is_own else float(held_until),
    )


def release(connection: Connection, holder: str, seq: int) -> None:
    """Let others hold the cursor at once, who begin after that entry."""
    connection.run(
        "UPDATE notice_cursor SET held_until = 0, seq = ? WHERE id = 1 AND holder = ?",
        (seq, holder),
    )


def require_lease(connection: Connection, holder: str) -> None:
    """NotHeld where another node holds the cursor, inside the transaction that is open."""
    ((present,),) = connection.query("SELECT holder FROM notice_cursor WHERE id = 1")
    if present != holder:
        raise LeaseLost


def advance(connection: Connection, holder: str, before: int, seq: int) -> None:
    """The log was looked through up to that entry, and `before` that up to another one, inside the
    transaction that is open. NotHeld where somebody else has held the cursor since."""
    require_lease(connection, holder)
    ((present,),) = connection.query("SELECT seq FROM notice_cursor WHERE id = 1")
    if present != before:
        raise LeaseLost
    connection.run("UPDATE notice_cursor SET seq = ? WHERE id = 1", (seq,))


def add(connection: Connection, way: str, notices: Sequence[PendingNotification]) -> None:
    """Add notices, inside the transaction that is open. Where there is one of the same message and
    the same times, the people are added to that."""
    if not notices:
        return
    dialect = connection.dialect
    people: dict[tuple[int, float, float], BitMap] = {
        (message_id, due_at, gives_up_at): _people(present)
        for message_id, due_at, gives_up_at, present in connection.query(
            "SELECT message_id, due_at, gives_up_at, people FROM notices"
            f" WHERE way = ? AND {dialect.among('message_id')}",
            (way, dialect.array({one.message_id for one in notices})),
        )
    }
    rows = {}
    for one in notices:
        key = one.message_id, one.due_at, one.gives_up_at
        people[key] = people.get(key, BitMap()) | one.people
        rows[key] = (way, *key, one.conversation, _stored(people[key]))
    connection.run_many(
        f"INSERT INTO notices (way, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (way, message_id, due_at, gives_up_at)"
        " DO UPDATE SET people = excluded.people",
        list(rows.values()),
    )


def remove_people(
    connection: Connection, way: str, notice: PendingNotification, people: BitMap
) -> None:
    """Take people out of a notice, and it away when nobody is left."""
    key = (way, notice.message_id, notice.due_at, notice.gives_up_at)
    for (present,) in connection.query(f"SELECT people FROM notices {_KEY}", key):
        left = _people(present) - people
        if left:
            connection.run(f"UPDATE notices SET people = ? {_KEY}", (_stored(left), *key))
        else:
            connection.run(f"DELETE FROM notices {_KEY}", key)


def due(connection: Connection, way: str, now: float, limit: int) -> list[PendingNotification]:
    """The notices that are due, at most so many, the first ones first; and all others of the
    conversations that they are about."""
    rows = connection.query(
        "SELECT DISTINCT conversation FROM (SELECT conversation FROM notices"
        " WHERE way = ? AND due_at <= ? ORDER BY due_at, message_id LIMIT ?) AS first",
        (way, now, limit),
    )
    found: list[PendingNotification] = []
    for (conversation,) in rows:
        found += of_conversation(connection, way, str(conversation))
    return found


def of_conversation(
    connection: Connection, way: str, conversation: str
) -> list[PendingNotification]:
    """The notices about one conversation that are due first, at most `GATHERED`."""
    return _notices(
        connection.query(
            f"SELECT {_COLUMNS} FROM notices WHERE way = ? AND conversation = ?"
            " ORDER BY due_at, message_id LIMIT ?",
            (way, conversation, MAX_TOGETHER),
        )
    )


def pending(connection: Connection, way: str) -> list[PendingNotification]:
    """All notices of one way, by message."""
    return _notices(
        connection.query(
            f"SELECT {_COLUMNS} FROM notices WHERE way = ? ORDER BY message_id, due_at", (way,)
        )
    )


def _people(stored: bytes) -> BitMap:
    return BitMap.deserialize(bytes(stored))


def _stored(people: BitMap) -> bytes:
    people.run_optimize()  # Of a channel's subscribers often all want to be told.
    return people.serialize()


def _notices(rows: Sequence[Row]) -> list[PendingNotification]:
    return [
        PendingNotification(
            message_id=message_id,
            due_at=due_at,
            gives_up_at=gives_up_at,
            conversation=conversation,
            people=_people(people),
        )
        for message_id, due_at, gives_up_at, conversation, people in rows
    ]


def next_due(connection: Connection, ways: Iterable[str]) -> float | None:
    """When the next notice of one of the ways is due; None where none waits."""
    found = [
        connection.query("SELECT MIN(due_at) FROM notices WHERE way = ?", (way,))[0][0]
        for way in ways
    ]
    return min((float(one) for one in found if one is not None), default=None)


def forget_people(connection: Connection, user_ids: Iterable[int]) -> None:
    """Take these accounts out of all notices, inside the transaction that is open."""
    gone = BitMap(user_ids)
    for (way,) in connection.query("SELECT DISTINCT way FROM notices"):
        for one in pending(connection, str(way)):
            if one.people.intersect(gone):
                remove_people(connection, str(way), one, gone)
