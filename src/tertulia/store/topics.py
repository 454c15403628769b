"""Topics as the database has them, and the messages in each."""

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
"""Messages with the times when their topic was renamed as a whole."""


RENAME_COLUMNS = (
    "messages.id, renames.seq, renames.at, renames.user_id, CAST(NULL AS TEXT),"
    " CAST(NULL AS TEXT), renames.was_topic, renames.topic, CAST(NULL AS BIGINT),"
    " CAST(NULL AS BIGINT)"
)
"""Of these, what `EDIT_COLUMNS` has."""


_ids_decoder = msgspec.json.Decoder(list[int])
TopicMessage = tuple[int, int, str, bool]
"""A message of a topic: ID, when it was sent, the topic as it is spelled, whether it mentions
everybody."""


_OF_TOPIC = f"SELECT id, sent_at, {TOPIC_NAME}, mentions_all FROM messages WHERE {OF_TOPIC}"


def _line(row: tuple[Any, ...]) -> TopicMessage:
    return row[0], row[1], row[2], bool(row[3])


def ids_of_topic(
    connection: Connection, channel_id: int, key: str, since: float | None = None
) -> tuple[BitMap, BitMap | None]:
    """All messages of a topic; and those that were sent at that UNIX time or later, where it is
    given. Read as one value, they cost a fraction of a row for each."""

    def found(more: str, *values: Any) -> BitMap:
        ((ids,),) = connection.query(
            f"SELECT {connection.dialect.collected('id')} FROM messages WHERE {OF_TOPIC}{more}",
            (channel_id, key, *values),
        )
        return BitMap(_ids_decoder.decode(ids or "[]"))

    return found(""), None if since is None else found(" AND sent_at >= ?", since)


def newest_of_topic(
    connection: Connection,
    channel_id: int,
    key: str,
    ranges: Sequence[tuple[int, int]],
    limit: int,
) -> list[int]:
    """The newest messages of a topic with after < id <= until for one of the ranges, ascending, at
    most so many."""
    found: list[int] = []
    for after, until in reversed(ranges):
        rows = connection.query(
            f"SELECT id FROM messages WHERE {OF_TOPIC} AND id > ? AND id <= ?"
            f" ORDER BY id DESC LIMIT {limit - len(found)}",
            (channel_id, key, after, until),
        )
        found += [row[0] for row in rows]
        if len(found) == limit:
            break
    return found[::-1]


def count_renames(connection: Connection, channel_id: int, key: str) -> int:
    """How often a topic was renamed as a whole, as far as that is kept."""
    ((count,),) = connection.query(
        f"SELECT COUNT(*) FROM topic_renames WHERE {OF_TOPIC}", (channel_id, key)
    )
    return int(count)


def some_of_topic(
    connection: Connection, channel_id: int, key: str, ids: Sequence[int]
) -> list[TopicMessage]:
    """These messages of a topic, and the newest that is none of them, ascending."""
    dialect = connection.dialect
    wanted = dialect.array(ids)
    found = connection.query(f"{_OF_TOPIC} AND {dialect.among('id')}", (channel_id, key, wanted))
    found += connection.query(
        f"{_OF_TOPIC} AND NOT ({dialect.among('id')}) ORDER BY id DESC LIMIT 1",
        (channel_id, key, wanted),
    )
    return sorted(_line(row) for row in found)


def newest_by_topic(
    connection: Connection,
    channel_id: int,
    keys: Sequence[str],
    spans: Sequence[tuple[int, int | None]],
) -> dict[str, int]:
    """Return the newest message of each of the topics, by its key, among those with
    after < id <= until for one of the spans `(after, until)`, which are ascending."""
    dialect = connection.dialect
    found: dict[str, int] = {}
    left = set(keys)
    for after, until in reversed(spans):
        if not left:
            break
        # A look into the index for each topic, however many messages it has.
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
        found.update((key, newest) for key, newest in rows if newest)
        left -= found.keys()
    return found


def topic_senders(connection: Connection, channel_id: int, topic_key: str) -> frozenset[int]:
    """Everybody who wrote in a topic."""
    rows = connection.query(
        f"SELECT DISTINCT sender_id FROM messages WHERE {OF_TOPIC}",
        (channel_id, topic_key),
    )
    return frozenset(sender for (sender,) in rows)


class LivelyTopic(Struct, frozen=True, kw_only=True):
    """A topic in which something was written."""

    channel_id: int
    key: str
    count: int
    """Messages."""
    sender_ids: tuple[int, ...]
    """Who wrote them, ascending."""
    first_id: int


LIVELY = 300
"""Topics that count as lively, at most."""


LIVELY_MESSAGES = 100_000
"""The newest messages by which it is decided which topics are lively."""


def lively_topics(connection: Connection, since: float) -> list[LivelyTopic]:
    """Return the topics with messages since that UNIX time: first those in which most people wrote,
    of these those with most messages. Of a time with more than `LIVELY_MESSAGES` messages, the
    newest of them count."""
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
    """The IDs of a topic's messages from that one on, ascending, at most so many."""
    rows = connection.query(
        f"SELECT id FROM messages WHERE {OF_TOPIC} AND id >= ? ORDER BY id LIMIT {int(limit)}",
        (channel_id, key, first_id),
    )
    return [int(message_id) for (message_id,) in rows]
