"""The messages that users have read or flagged, and readers' relations to messages."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.messages import Flag
from tertulia.store import bitmaps
from tertulia.store.codec import (
    CHUNK_BITS,
)
from tertulia.store.database import Connection


class Relation(Struct, frozen=True):
    """A reader's relation to a message that they received."""

    flags: Flag = Flag(0)
    read: bool = False


def relations(connection: Connection, user_id: int, ids: Iterable[int]) -> dict[int, Relation]:
    wanted = list(ids)
    if not wanted:
        return {}
    dialect = connection.dialect
    chunks = dialect.array({mid >> CHUNK_BITS for mid in wanted})
    marks = _marks(
        connection,
        user_id,
        (dialect.among("message_id"), dialect.array(wanted)),
        (dialect.among("chunk"), chunks),
    )
    return {mid: marks.relation(mid) for mid in wanted}


def relations_of_people(
    connection: Connection, user_ids: Iterable[int], ids: Iterable[int]
) -> tuple[dict[int, dict[int, Flag]], "dict[int, MessageMarks]"]:
    """Return the flags of these users on each message, and the marks of each user. Takes three
    queries for any number of users."""
    dialect, wanted, users = connection.dialect, sorted(set(ids)), sorted(set(user_ids))
    flags: dict[int, dict[int, Flag]] = {message_id: {} for message_id in wanted}
    marks: dict[int, dict[int, int]] = {user_id: {} for user_id in users}
    # Use the index by message, because most people have flags on many other messages.
    for user_id, message_id, value in connection.query(
        "SELECT user_id, message_id, flags FROM message_flags"
        f" WHERE {dialect.among('message_id')} AND {dialect.among('+user_id')}",
        (dialect.array(wanted), dialect.array(users)),
    ):
        flags[message_id][user_id] = Flag(value)
        marks[user_id][message_id] = value
    chunks = dialect.array({message_id >> CHUNK_BITS for message_id in wanted})
    result: dict[str, dict[int, BitMap]] = {bitmaps.READ: {}, bitmaps.RECORDS: {}}
    for table, of_user in result.items():
        for user_id, bitmap in connection.query(
            f"SELECT user_id, bitmap FROM {table}"
            f" WHERE {dialect.among('chunk')} AND {dialect.among('user_id')}",
            (chunks, dialect.array(users)),
        ):
            of_user[user_id] = of_user.get(user_id, BitMap()) | bitmaps.bitmap_of(bitmap)
    return flags, {
        user_id: MessageMarks(
            marks[user_id],
            *(result[table].get(user_id, BitMap()) for table in (bitmaps.READ, bitmaps.RECORDS)),
        )
        for user_id in users
    }


class MessageMarks(Struct, frozen=True):
    """A reader's marks, read state and flags, on some messages."""

    flags: dict[int, int]
    """Flags by message, without records in `moved`."""
    read: BitMap
    moved: BitMap = BitMap()
    """Messages that the reader has a record of because they were moved."""

    def relation(self, message_id: int) -> Relation:
        flags = self.flags.get(message_id, 0)
        if message_id in self.moved:
            flags |= Flag.RECORD
        return Relation(Flag(flags) if flags else _NO_FLAG, message_id in self.read)


_NO_FLAG = Flag(0)


def marks_since(connection: Connection, user_id: int, first: int) -> MessageMarks:
    """Return the user's marks on messages from that ID on."""
    return _marks(
        connection, user_id, ("message_id >= ?", first), ("chunk >= ?", first >> CHUNK_BITS)
    )


def _marks(
    connection: Connection, user_id: int, messages: tuple[str, Any], chunks: tuple[str, Any]
) -> MessageMarks:
    """Return the user's marks on messages. Takes conditions on their IDs and on rows of bitmaps,
    each with its parameter."""
    flags: dict[int, int] = {}
    result: dict[str, list[BitMap]] = {bitmaps.READ: [], bitmaps.RECORDS: []}
    of_chunk, chunk = chunks
    # One query, because a round trip costs more.
    for table, number, value, bitmap in connection.query(
        "SELECT 'message_flags', message_id, flags, NULL FROM message_flags"
        f" WHERE user_id = ? AND {messages[0]}"
        + "".join(
            f" UNION ALL SELECT '{table}', chunk, 0, bitmap FROM {table}"
            f" WHERE user_id = ? AND {of_chunk}"
            for table in result
        ),
        (user_id, messages[1], user_id, chunk, user_id, chunk),
    ):
        if bitmap is None:
            flags[number] = value
        else:
            result[table].append(bitmaps.bitmap_of(bitmap))
    return MessageMarks(
        flags,
        *(BitMap.union(BitMap(), *result[table]) for table in (bitmaps.READ, bitmaps.RECORDS)),
    )


Marked = tuple[BitMap, dict[Flag, BitMap]]
"""The messages that a user has read, and the messages with each flag."""


def marks_of_users(connection: Connection, user_ids: Sequence[int]) -> dict[int, Marked]:
    """Return everything that each user has read and flagged."""
    dialect = connection.dialect
    users = dialect.array(user_ids)
    by_flags: dict[int, dict[int, list[int]]] = {user: defaultdict(list) for user in user_ids}
    for user_id, message_id, flags in connection.query(
        f"SELECT user_id, message_id, flags FROM message_flags WHERE {dialect.among('user_id')}",
        (users,),
    ):
        by_flags[user_id][flags].append(message_id)
    read = bitmaps.by_user(connection, bitmaps.READ, user_ids)
    records = bitmaps.by_user(connection, bitmaps.RECORDS, user_ids)
    result: dict[int, Marked] = {}
    for user_id in user_ids:
        flagged: dict[Flag, BitMap] = defaultdict(BitMap)
        for value, ids in by_flags[user_id].items():
            for flag in Flag(value):
                flagged[flag].update(ids)
        if records[user_id]:
            flagged[Flag.RECORD] |= records[user_id]
        result[user_id] = read[user_id], dict(flagged)
    return result


def flags_of(connection: Connection, message_id: int) -> dict[int, Flag]:
    """Return all users' flags on the message."""
    rows = connection.query(
        "SELECT user_id, flags FROM message_flags WHERE message_id = ?", (message_id,)
    )
    flags = {user_id: Flag(value) for user_id, value in rows}
    for user_id in bitmaps.users_with(connection, bitmaps.RECORDS, message_id):
        flags[user_id] = flags.get(user_id, Flag(0)) | Flag.RECORD
    return flags


def read_by(connection: Connection, message_id: int, user_ids: Sequence[int]) -> list[int]:
    """Return the users among `user_ids` who have read the message."""
    return bitmaps.users_with(connection, bitmaps.READ, message_id, user_ids)


def flags_on(connection: Connection, message_ids: Sequence[int]) -> dict[int, dict[int, Flag]]:
    """Return all users' flags on the messages, by user and message."""
    dialect = connection.dialect
    result: dict[int, dict[int, Flag]] = defaultdict(dict)
    for user_id, message_id, flags in connection.query(
        f"SELECT user_id, message_id, flags FROM message_flags WHERE {dialect.among('message_id')}",
        (dialect.array(message_ids),),
    ):
        result[user_id][message_id] = Flag(flags)
    return result


Records = list[tuple[BitMap, tuple[int, ...]]]
"""Messages with the users who have a record of exactly these."""


def records_on(
    connection: Connection, message_ids: Sequence[int]
) -> tuple[frozenset[int], Records]:
    """Return the users with flags on these messages, and who has a record of which."""
    dialect = connection.dialect
    records = bitmaps.users_with_any(connection, bitmaps.RECORDS, BitMap(message_ids))
    holders = set(records)
    for user_id, message_id, flags in connection.query(
        f"SELECT user_id, message_id, flags FROM message_flags WHERE {dialect.among('message_id')}",
        (dialect.array(message_ids),),
    ):
        holders.add(user_id)
        if flags & Flag.RECORD:
            records.setdefault(user_id, BitMap()).add(message_id)
    alike: dict[bytes, tuple[BitMap, list[int]]] = {}
    for user_id, ids in sorted(records.items()):
        ids.run_optimize()
        alike.setdefault(ids.serialize(), (ids, []))[1].append(user_id)
    return frozenset(holders), [(ids, tuple(users)) for ids, users in alike.values()]


def holders(connection: Connection, message_id: int) -> tuple[int, ...]:
    """Return the users who have a record of a message although it wasn't delivered to them."""
    rows = connection.query(
        "SELECT user_id FROM message_flags WHERE message_id = ?"
        f" AND (flags & {int(Flag.RECORD)}) != 0",
        (message_id,),
    )
    moved = bitmaps.users_with(connection, bitmaps.RECORDS, message_id)
    return tuple(sorted({*moved, *(user_id for (user_id,) in rows)}))


def have_read(connection: Connection, message_id: int, user_ids: Iterable[int]) -> list[int]:
    dialect = connection.dialect
    rows = connection.query(
        "SELECT user_id, bitmap FROM read_state"
        f" WHERE {dialect.among('user_id')} AND chunk = ? ORDER BY user_id",
        (dialect.array(user_ids), message_id >> CHUNK_BITS),
    )
    return [u for u, bitmap in rows if message_id in BitMap.deserialize(bytes(bitmap))]
