"""Updating the search indexes of messages and topics."""

from collections.abc import Callable, Iterable, Sequence

from tertulia.model.numbers import counted
from tertulia.store.database import Connection

_BATCH = 5000

Searchable = tuple[int, str, int | None, int | None]
"""A message's ID, content, channel and direct conversation."""
_COLUMNS = "id, content, channel_id, direct_id"


def add(connection: Connection, messages: Iterable[Searchable]) -> None:
    dialect = connection.dialect
    connection.run_many(
        dialect.search_insert,
        [
            dialect.search_row(message_id, content, place_of(channel_id, direct_id))
            for message_id, content, channel_id, direct_id in messages
        ],
    )


def place_of(channel_id: int | None, direct_id: int | None) -> int:
    return -(direct_id or 0) if channel_id is None else channel_id


def move(connection: Connection, message_ids: Sequence[int], channel_id: int) -> None:
    """Index messages in another channel."""
    dialect = connection.dialect
    if dialect.search_move:
        connection.run(dialect.search_move, (channel_id, dialect.array(message_ids)))


def remove(connection: Connection, message_ids: Sequence[int]) -> None:
    dialect = connection.dialect
    connection.run(dialect.search_delete(), (dialect.array(message_ids),))


def refresh(connection: Connection, message_ids: Sequence[int]) -> None:
    """Index messages again."""
    dialect = connection.dialect
    remove(connection, message_ids)
    rows = connection.query(
        f"SELECT {_COLUMNS} FROM messages WHERE {dialect.among('id')}",
        (dialect.array(message_ids),),
    )
    add(connection, ((row[0], row[1], row[2], row[3]) for row in rows))


def add_all(connection: Connection, report: Callable[[str], None]) -> None:
    """Fill the empty index."""
    ((count,),) = connection.query("SELECT COUNT(*) FROM messages")
    done, last = 0, 0
    while rows := connection.query(
        f"SELECT {_COLUMNS} FROM messages WHERE id > ? ORDER BY id LIMIT {_BATCH}", (last,)
    ):
        add(connection, ((row[0], row[1], row[2], row[3]) for row in rows))
        done, last = done + len(rows), rows[-1][0]
        if done % (_BATCH * 20) == 0 or done == count:
            report(f"Made {done:,} of {counted(count, 'message')} searchable")
    for statement in connection.dialect.search_tidying:
        connection.run(statement)


def add_topics(connection: Connection, places: Iterable[tuple[int, str]]) -> None:
    """Add topics, each with its channel and key, unless the index has them. The words of a topic's
    key are those of all spellings."""
    dialect = connection.dialect
    connection.run_many(
        dialect.topic_search_insert,
        [(dialect.search_row(0, key, 0)[1], channel_id, key) for channel_id, key in places],
    )


def remove_topic(connection: Connection, channel_id: int, key: str) -> None:
    connection.run(connection.dialect.topic_search_delete, (channel_id, key))


def add_all_topics(connection: Connection, report: Callable[[str], None]) -> None:
    """Fill the empty index of topics."""
    places = connection.query("SELECT channel_id, key FROM message_topics")
    add_topics(connection, ((channel_id, key) for channel_id, key in places))
