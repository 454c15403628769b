"""Pending notifications: messages that users are to be notified about, and when.

A row has a message and a set of users, so its cost doesn't grow with the audience. The position up
to which the log was processed is written in the same transaction, so each entry is processed once.
One node at a time holds the lease on that position.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct
from pyroaring import BitMap

from tertulia.store.database import Connection, Row

MAX_TOGETHER: Final = 500
"""The most notifications of one conversation that are sent together."""
_COLUMNS: Final = "message_id, due_at, gives_up_at, conversation, people"
_KEY: Final = "WHERE way = ? AND message_id = ? AND due_at = ? AND gives_up_at = ?"


class LeaseLost(Exception):
    """Another node holds the lease."""


class PendingNotification(Struct, frozen=True, kw_only=True):
    """People to notify about a message. Times are in UNIX seconds."""

    message_id: int
    due_at: float
    gives_up_at: float
    """The time when to give up: users who are still active then aren't notified."""
    conversation: str
    """The key of the message's conversation at the time of writing."""
    people: BitMap


class CursorLease(Struct, frozen=True, kw_only=True):
    """The result of `acquire`."""

    seq: int
    """The log was processed up to this entry."""
    goes_on: bool
    """Whether this node has held the lease without interruption."""
    other_until: float
    """The time until which another node holds the lease (UNIX seconds), or 0."""


def acquire(connection: Connection, holder: str, now: float, until: float) -> CursorLease:
    """Acquire or renew the lease, unless another node holds it."""
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
    """Release the lease to other nodes, which continue after that entry."""
    connection.run(
        "UPDATE notice_cursor SET held_until = 0, seq = ? WHERE id = 1 AND holder = ?",
        (seq, holder),
    )


def require_lease(connection: Connection, holder: str) -> None:
    """Raise LeaseLost if another node holds the lease."""
    ((present,),) = connection.query("SELECT holder FROM notice_cursor WHERE id = 1")
    if present != holder:
        raise LeaseLost


def advance(connection: Connection, holder: str, before: int, seq: int) -> None:
    """Record that the log was processed from `before` to `seq`. Raise LeaseLost if another node did
    it."""
    require_lease(connection, holder)
    ((present,),) = connection.query("SELECT seq FROM notice_cursor WHERE id = 1")
    if present != before:
        raise LeaseLost
    connection.run("UPDATE notice_cursor SET seq = ? WHERE id = 1", (seq,))


def add(connection: Connection, method: str, notifications: Sequence[PendingNotification]) -> None:
    """Add notifications. Users are added to an existing one of the same message and times."""
    if not notifications:
        return
    dialect = connection.dialect
    people: dict[tuple[int, float, float], BitMap] = {
        (message_id, due_at, gives_up_at): _people(present)
        for message_id, due_at, gives_up_at, present in connection.query(
            "SELECT message_id, due_at, gives_up_at, people FROM notices"
            f" WHERE way = ? AND {dialect.among('message_id')}",
            (method, dialect.array({notification.message_id for notification in notifications})),
        )
    }
    rows = {}
    for notification in notifications:
        key = notification.message_id, notification.due_at, notification.gives_up_at
        people[key] = people.get(key, BitMap()) | notification.people
        rows[key] = (method, *key, notification.conversation, _stored(people[key]))
    connection.run_many(
        f"INSERT INTO notices (way, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (way, message_id, due_at, gives_up_at)"
        " DO UPDATE SET people = excluded.people",
        list(rows.values()),
    )


def remove_people(
    connection: Connection, method: str, notification: PendingNotification, people: BitMap
) -> None:
    """Remove users from a notification, and delete it once it has none."""
    key = (method, notification.message_id, notification.due_at, notification.gives_up_at)
    for (present,) in connection.query(f"SELECT people FROM notices {_KEY}", key):
        left = _people(present) - people
        if left:
            connection.run(f"UPDATE notices SET people = ? {_KEY}", (_stored(left), *key))
        else:
            connection.run(f"DELETE FROM notices {_KEY}", key)


def due(connection: Connection, method: str, now: float, limit: int) -> list[PendingNotification]:
    """Return up to `limit` due notifications, earliest first, and all others of their
    conversations."""
    rows = connection.query(
        "SELECT DISTINCT conversation FROM (SELECT conversation FROM notices"
        " WHERE way = ? AND due_at <= ? ORDER BY due_at, message_id LIMIT ?) AS first",
        (method, now, limit),
    )
    result: list[PendingNotification] = []
    for (conversation,) in rows:
        result += of_conversation(connection, method, str(conversation))
    return result


def of_conversation(
    connection: Connection, method: str, conversation: str
) -> list[PendingNotification]:
    """Return the earliest notifications of a conversation, at most `MAX_TOGETHER`."""
    return _notices(
        connection.query(
            f"SELECT {_COLUMNS} FROM notices WHERE way = ? AND conversation = ?"
            " ORDER BY due_at, message_id LIMIT ?",
            (method, conversation, MAX_TOGETHER),
        )
    )


def pending(connection: Connection, method: str) -> list[PendingNotification]:
    return _notices(
        connection.query(
            f"SELECT {_COLUMNS} FROM notices WHERE way = ? ORDER BY message_id, due_at", (method,)
        )
    )


def _people(stored: bytes) -> BitMap:
    return BitMap.deserialize(bytes(stored))


def _stored(people: BitMap) -> bytes:
    people.run_optimize()  # Often, all subscribers of a channel want to be notified.
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
    results = [
        connection.query("SELECT MIN(due_at) FROM notices WHERE way = ?", (method,))[0][0]
        for method in ways
    ]
    return min((float(value) for value in results if value is not None), default=None)


def forget_people(connection: Connection, user_ids: Iterable[int]) -> None:
    """Remove accounts from all notifications."""
    gone = BitMap(user_ids)
    for (method,) in connection.query("SELECT DISTINCT way FROM notices"):
        for item in pending(connection, str(method)):
            if item.people.intersect(gone):
                remove_people(connection, str(method), item, gone)
