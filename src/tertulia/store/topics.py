"""Topics in the database, and the messages in each."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model import narrow
from tertulia.store import queries
from tertulia.store.codec import (
    OF_TOPIC,
    TOPIC_NAME,
)
from tertulia.store.database import Connection

RENAMES = (
    "messages JOIN topic_renames AS renames ON renames.topic_id = messages.topic_id"
    " AND renames.last_message_id >= messages.id AND renames.seq > messages.topic_since"
)
"""Messages with the renames of their whole topic."""


RENAME_COLUMNS = (
    "messages.id, renames.seq, renames.at, renames.user_id, CAST(NULL AS TEXT),"
    " CAST(NULL AS TEXT), renames.was_topic, renames.topic, CAST(NULL AS BIGINT),"
    " CAST(NULL AS BIGINT)"
)
"""The same columns as `EDIT_COLUMNS`."""


_ids_decoder = msgspec.json.Decoder(list[int])
TopicMessage = tuple[int, int, str, bool]
"""A message of a topic: ID, time sent, the topic as spelled, and whether it mentions everyone."""


_OF_TOPIC = f"SELECT id, sent_at, {TOPIC_NAME}, mentions_all FROM messages WHERE {OF_TOPIC}"


def _line(row: tuple[Any, ...]) -> TopicMessage:
    return row[0], row[1], row[2], bool(row[3])


def ids_of_topic(
    connection: Connection, channel_id: int, key: str, since: float | None = None
) -> tuple[BitMap, BitMap | None]:
    """Return all messages of a topic, and those sent at or after `since` (UNIX time) if it's given.
    They're read as one value, which costs a fraction of reading rows."""

    def ids_where(more: str, *values: Any) -> BitMap:
        ((ids,),) = connection.query(
            f"SELECT {connection.dialect.collected('id')} FROM messages WHERE {OF_TOPIC}{more}",
            (channel_id, key, *values),
        )
        return BitMap(_ids_decoder.decode(ids or "[]"))

    return ids_where(""), None if since is None else ids_where(" AND sent_at >= ?", since)


def newest_of_topic(
    connection: Connection,
    channel_id: int,
    key: str,
    ranges: Sequence[tuple[int, int]],
    limit: int,
) -> list[int]:
    """Return up to `limit` of the newest messages of a topic with after < id <= until for one of
    the ranges, ascending."""
    results: list[int] = []
    for after, until in reversed(ranges):
        rows = connection.query(
            f"SELECT id FROM messages WHERE {OF_TOPIC} AND id > ? AND id <= ?"
            f" ORDER BY id DESC LIMIT {limit - len(results)}",
            (channel_id, key, after, until),
        )
        results += [row[0] for row in rows]
        if len(results) == limit:
            break
    return results[::-1]


def ids_after(
    connection: Connection, channel_id: int, key: str, after: int, limit: int
) -> list[int]:
    """Return up to `limit` messages of a topic after an ID, ascending."""
    rows = connection.query(
        f"SELECT id FROM messages WHERE {OF_TOPIC} AND id > ? ORDER BY id LIMIT {int(limit)}",
        (channel_id, key, after),
    )
    return [row[0] for row in rows]


def ids_until(
    connection: Connection, channel_id: int, key: str, until: int, limit: int
) -> list[int]:
    """Return up to `limit` messages of a topic up to an ID, descending."""
    rows = connection.query(
        f"SELECT id FROM messages WHERE {OF_TOPIC} AND id <= ? ORDER BY id DESC LIMIT {int(limit)}",
        (channel_id, key, until),
    )
    return [row[0] for row in rows]


def count_renames(connection: Connection, channel_id: int, key: str) -> int:
    """Return the number of renames that are kept of a topic."""
    ((count,),) = connection.query(
        f"SELECT COUNT(*) FROM topic_renames WHERE {OF_TOPIC}", (channel_id, key)
    )
    return int(count)


def some_of_topic(
    connection: Connection, channel_id: int, key: str, ids: Sequence[int]
) -> list[TopicMessage]:
    """Return these messages of a topic, and its newest other message, ascending."""
    dialect = connection.dialect
    wanted = dialect.array(ids)
    results = connection.query(f"{_OF_TOPIC} AND {dialect.among('id')}", (channel_id, key, wanted))
    results += connection.query(
        f"{_OF_TOPIC} AND NOT ({dialect.among('id')}) ORDER BY id DESC LIMIT 1",
        (channel_id, key, wanted),
    )
    return sorted(_line(row) for row in results)


def newest_by_topic(
    connection: Connection,
    channel_id: int,
    keys: Sequence[str],
    spans: Sequence[tuple[int, int | None]],
) -> dict[str, int]:
    """Return the newest message of each topic, by key, with after < id <= until for one of the
    ascending spans."""
    dialect = connection.dialect
    result: dict[str, int] = {}
    left = set(keys)
    for after, until in reversed(spans):
        if not left:
            break
        # One index lookup per topic, however many messages it has.
        rows = connection.query(
            "SELECT key, (SELECT MAX(id) FROM messages WHERE topic_id = message_topics.id"
            " AND id > ? AND id <= ?) FROM message_topics"
            f" WHERE channel_id = ? AND {dialect.among('key')}",
            (
                after,
                narrow.LARGEST if until is None else until,
                channel_id,
                dialect.array(sorted(left)),
            ),
        )
        result.update((key, newest) for key, newest in rows if newest)
        left -= result.keys()
    return result


def topic_senders(connection: Connection, channel_id: int, topic_key: str) -> frozenset[int]:
    rows = connection.query(
        f"SELECT DISTINCT sender_id FROM messages WHERE {OF_TOPIC}",
        (channel_id, topic_key),
    )
    return frozenset(sender for (sender,) in rows)


class LivelyTopic(Struct, frozen=True, kw_only=True):
    """A topic with recent messages."""

    channel_id: int
    key: str
    count: int
    """The number of messages."""
    sender_ids: tuple[int, ...]
    """Ascending."""
    first_id: int


LIVELY = 300
"""The most topics that `lively_topics` returns."""


LIVELY_MESSAGES = 100_000
"""The newest messages that are considered."""


def lively_topics(connection: Connection, since: float) -> list[LivelyTopic]:
    """Return the topics with messages since a UNIX time, those with most senders first, and then
    those with most messages. Only the newest `LIVELY_MESSAGES` messages count."""
    first_id = queries.first_at_or_after(connection, since)
    if first_id is None:
        return []
    # The limit keeps the database from grouping along the index of topics, through all messages.
    rows = connection.query(
        "SELECT topics.channel_id, key, messages, people, first_id, senders FROM"
        " (SELECT topic_id, COUNT(*) AS messages, COUNT(DISTINCT sender_id) AS people,"
        f" MIN(id) AS first_id, {connection.dialect.collected('sender_id')} AS senders FROM"
        " (SELECT id, topic_id, sender_id FROM messages"
        " WHERE id >= ? AND sent_at >= ? AND topic_id IS NOT NULL"
        f" ORDER BY id DESC LIMIT {LIVELY_MESSAGES}) AS newest GROUP BY topic_id"
        " ORDER BY people DESC, messages DESC, first_id LIMIT ?) AS lively"
        " JOIN message_topics AS topics ON topics.id = topic_id"
        " ORDER BY people DESC, messages DESC, first_id",
        (first_id, since, LIVELY),
    )
    return [
        LivelyTopic(
            channel_id=channel_id,
            key=key,
            count=count,
            sender_ids=tuple(sorted(set(_ids_decoder.decode(senders)))),
            first_id=first_id,
        )
        for channel_id, key, count, _, first_id, senders in rows
    ]


def ids_in_topic(
    connection: Connection, channel_id: int, key: str, first_id: int, limit: int
) -> list[int]:
    """Return up to `limit` message IDs of a topic from `first_id` on, ascending."""
    rows = connection.query(
        f"SELECT id FROM messages WHERE {OF_TOPIC} AND id >= ? ORDER BY id LIMIT {int(limit)}",
        (channel_id, key, first_id),
    )
    return [int(message_id) for (message_id,) in rows]
