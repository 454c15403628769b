"""Users' message sets as compressed bitmaps, in rows of 2^16 messages."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pyroaring import BitMap

from tertulia.store.codec import CHUNK_BITS
from tertulia.store.database import Connection, Query
from tertulia.store.dialect import Dialect

READ: Final = "read_state"
"""The table of messages that users have read."""
RECORDS: Final = "record_state"
"""The table of messages that users keep because they were moved. A record of a single message is a
flag (`Flag.RECORD`)."""

Chunks = Mapping[int, BitMap]
"""Messages by the number of their row."""


def by_chunk(ids: BitMap) -> Chunks:
    result: dict[int, BitMap] = {}
    before = 0
    while before < len(ids):
        chunk = ids[before] >> CHUNK_BITS
        end = (chunk + 1) << CHUNK_BITS
        result[chunk] = ids & BitMap(range(chunk << CHUNK_BITS, end))
        before += len(result[chunk])
    return result


def write(
    connection: Connection, table: str, marks: Mapping[int, Sequence[tuple[Chunks, bool]]]
) -> None:
    """Add messages to users' bitmaps or remove them, in order."""
    for chunk, users in _users_by_chunk(marks).items():
        rows = connection.query(*_question(connection.dialect, table, chunk, users))
        present = {user: bytes(stored) for user, stored in rows}
        # Thousands of users may have equal rows and get equal changes.
        known: dict[tuple[Any, ...], bytes | None] = {}
        put = []
        for user in users:
            stored = present.get(user)
            key = (stored, *map(id, marks[user]))
            if key not in known:
                known[key] = _marked(stored, chunk, marks[user])
            bitmap = known[key]
            if bitmap is not None and bitmap != stored:
                put.append((user, chunk, bitmap))
        connection.run_many(
            f"INSERT INTO {table} (user_id, chunk, bitmap) VALUES (?, ?, ?)"
            " ON CONFLICT (user_id, chunk) DO UPDATE SET bitmap = excluded.bitmap",
            put,
        )


def _marked(stored: bytes | None, chunk: int, marks: Iterable[tuple[Chunks, bool]]) -> bytes | None:
    """Return a user's row after these changes, or None if it stays missing."""
    bitmap = BitMap() if stored is None else bitmap_of(stored)
    for chunks, added in marks:
        if chunk in chunks:
            bitmap = bitmap | chunks[chunk] if added else bitmap - chunks[chunk]
    if stored is None and not bitmap:
        return None
    bitmap.run_optimize()
    return bytes(bitmap.serialize())


def prefetch_queries(
    dialect: Dialect, table: str, marks: Mapping[int, Sequence[tuple[Chunks, bool]]]
) -> list[Query]:
    """Return the queries that `write` will run."""
    return [
        _question(dialect, table, chunk, users) for chunk, users in _users_by_chunk(marks).items()
    ]


def _users_by_chunk(
    marks: Mapping[int, Sequence[tuple[Chunks, bool]]],
) -> dict[int, set[int]]:
    result: dict[int, set[int]] = defaultdict(set)
    for user, marked in marks.items():
        for chunks, _ in marked:
            for chunk in chunks:
                result[chunk].add(user)
    return result


def remove(connection: Connection, table: str, ids: Iterable[int]) -> None:
    """Remove messages from all users' bitmaps."""
    for chunk, gone in by_chunk(BitMap(ids)).items():
        put = [
            ((bitmap - gone).serialize(), user, chunk)
            for user, bitmap in rows_of_chunk(connection, table, chunk)
            if bitmap.intersect(gone)
        ]
        if put:
            connection.run_many(
                f"UPDATE {table} SET bitmap = ? WHERE user_id = ? AND chunk = ?", put
            )


def by_user(connection: Connection, table: str, user_ids: Sequence[int]) -> dict[int, BitMap]:
    """Return each user's messages."""
    dialect = connection.dialect
    result = {user: BitMap() for user in user_ids}
    for user, bitmap in connection.query(
        f"SELECT user_id, bitmap FROM {table} WHERE {dialect.among('user_id')}",
        (dialect.array(user_ids),),
    ):
        result[user] |= bitmap_of(bitmap)
    return result


def users_with(
    connection: Connection, table: str, message_id: int, users: Iterable[int] | None = None
) -> list[int]:
    """Return the users who have the message, ascending, among all or the given ones."""
    rows = rows_of_chunk(connection, table, message_id >> CHUNK_BITS, users)
    return sorted(user for user, bitmap in rows if message_id in bitmap)


def users_with_any(connection: Connection, table: str, ids: BitMap) -> dict[int, BitMap]:
    """Return the users who have any of the messages, each with those."""
    result: dict[int, BitMap] = {}
    for chunk, some in by_chunk(ids).items():
        for user, bitmap in rows_of_chunk(connection, table, chunk):
            common = bitmap & some
            if common:
                result[user] = result[user] | common if user in result else common
    return result


def rows_of_chunk(
    connection: Connection, table: str, chunk: int, users: Iterable[int] | None = None
) -> list[tuple[int, BitMap]]:
    """Return the users who have messages in a row of 2^16, with these."""
    rows = connection.query(*_question(connection.dialect, table, chunk, users))
    return [(user, bitmap_of(bitmap)) for user, bitmap in rows]


def _question(
    dialect: Dialect, table: str, chunk: int, users: Iterable[int] | None = None
) -> Query:
    where, parameters = "chunk = ?", list[Any]([chunk])
    if users is not None:
        where += f" AND {dialect.among('user_id')}"
        parameters.append(dialect.array(sorted(users)))
    return Query(f"SELECT user_id, bitmap FROM {table} WHERE {where}", parameters)


def bitmap_of(stored: bytes) -> BitMap:
    return BitMap.deserialize(bytes(stored))
