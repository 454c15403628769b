"""Queries for records, messages, and event queues."""

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from typing import Any

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.change import Change
from tertulia.model.changes import Entry
from tertulia.model.messages import Message
from tertulia.model.nouns import NOUNS
from tertulia.model.queues import QueueRecord
from tertulia.store.codec import MESSAGE_COLUMNS, OF_TOPIC, decode_entry, decode_record, message_of
from tertulia.store.database import Connection
from tertulia.store.notes import PresenceSeen

_queue_decoder = msgspec.json.Decoder(QueueRecord)
_ids_decoder = msgspec.json.Decoder(list[int])


def records(connection: Connection) -> dict[str, list[Any]]:
    """Return all records by table."""
    return {noun.table: records_of(connection, noun.table) for noun in NOUNS}


def records_of(connection: Connection, table: str) -> list[Any]:
    (noun,) = (noun for noun in NOUNS if noun.table == table)
    rows = connection.query(f"SELECT doc FROM {noun.table}")
    return [decode_record(noun, doc) for (doc,) in rows]


@contextmanager
def scanned(connection: Connection, tables: Iterable[str]) -> Iterator[Mapping[str, Iterator[Any]]]:
    """Provide the tables' records, to be read in the context without having all in memory. Only
    inside a transaction."""
    with ExitStack() as stack:
        # If reading fails midway, the cursor is closed now, not when garbage is collected.
        yield {
            table: stack.enter_context(closing(_scanned_one(connection, table))) for table in tables
        }


def _scanned_one(connection: Connection, table: str) -> Generator[Any]:
    (noun,) = (noun for noun in NOUNS if noun.table == table)
    select = f"SELECT doc FROM {noun.table}"
    # On PostgreSQL, a cursor would take several round trips for each table.
    rows = connection.scan(select) if connection.exchanges is None else connection.query(select)
    for (doc,) in rows:
        yield decode_record(noun, doc)


def messages(connection: Connection, ids: Sequence[int], *, texts: bool = True) -> list[Message]:
    """Return the messages that exist, ascending, with or without their texts."""
    dialect = connection.dialect
    columns = MESSAGE_COLUMNS
    if not texts:
        columns = columns.replace("messages.content, messages.rendered", "'', ''")
    rows = connection.query(
        f"SELECT {columns} FROM messages WHERE {dialect.among('messages.id')} ORDER BY messages.id",
        (dialect.array(ids),),
    )
    return [message_of(row) for row in rows]


def count_messages(connection: Connection) -> int:
    ((count,),) = connection.query("SELECT COUNT(*) FROM messages")
    return int(count)


def pages_of_messages(connection: Connection, limit: int) -> Iterator[list[Message]]:
    """Yield all messages, ascending, `limit` at a time."""
    after = 0
    while rows := connection.query(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE messages.id > ? ORDER BY messages.id"
        f" LIMIT {int(limit)}",
        (after,),
    ):
        yield [message_of(row) for row in rows]
        after = rows[-1][0]


def places_between(
    connection: Connection, after: int, until: int, most: int
) -> list[tuple[int, int | None, int | None]]:
    """Return up to `most` messages with after < id <= until, ascending: their IDs, channels, and
    direct conversations."""
    return list(
        connection.query(
            "SELECT id, channel_id, direct_id FROM messages WHERE id > ? AND id <= ?"
            " ORDER BY id LIMIT ?",
            (after, until, most),
        )
    )


def channels_of(connection: Connection, ids: Sequence[int]) -> dict[int, int | None]:
    """Return the channel of each existing message, or None for direct messages."""
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT id, channel_id FROM messages WHERE {dialect.among('id')}", (dialect.array(ids),)
    )
    return dict(rows)


def text_sizes(connection: Connection, message_ids: Iterable[int]) -> dict[int, int]:
    """Return the bytes of content and HTML of each existing message."""
    dialect = connection.dialect
    return dict(
        connection.query(
            "SELECT id, OCTET_LENGTH(content) + OCTET_LENGTH(rendered) FROM messages"
            f" WHERE {dialect.among('id')}",
            (dialect.array(sorted(message_ids)),),
        )
    )


def newest_messages(
    connection: Connection, after: int, until: int, limit: int, most_bytes: int
) -> tuple[list[Message], bool]:
    """Return the newest messages with after < id <= until, ascending: at most `limit`, with up
    to `most_bytes` of texts. Also returns whether these are all."""
    sizes = connection.query(
        "SELECT id, OCTET_LENGTH(content) + OCTET_LENGTH(rendered) FROM messages"
        f" WHERE id > ? AND id <= ? ORDER BY id DESC LIMIT {int(limit)}",
        (after, until),
    )
    total, first = 0, until + 1
    for message_id, size in sizes:
        total += size
        if total > most_bytes:
            break
        first = message_id
    is_all = len(sizes) < limit and total <= most_bytes
    rows = connection.query(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE id >= ? AND id <= ? ORDER BY id",
        (first, until),
    )
    return [message_of(row) for row in rows], is_all


def before_in_conversation(connection: Connection, message: Message, limit: int) -> list[Message]:
    """Return up to `limit` messages right before one in its conversation, ascending."""
    channel_id, key, direct_id = message.conversation
    where, parameters = OF_TOPIC, tuple[Any, ...]((channel_id, key))
    if direct_id is not None:
        where, parameters = "direct_id = ?", (direct_id,)
    rows = connection.query(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {where} AND id < ?"
        f" ORDER BY id DESC LIMIT {int(limit)}",
        (*parameters, message.id),
    )
    return [message_of(row) for row in reversed(rows)]


class ChannelIds(Struct):
    all: BitMap
    topics: dict[str, BitMap]
    """Messages by topic key. The topics with the newest messages come last."""
    wildcards: BitMap
    """Messages that mention everyone."""


def channel_messages(connection: Connection, channel_ids: Sequence[int]) -> dict[int, ChannelIds]:
    """Return all message IDs of each channel."""
    result = {channel_id: ChannelIds(BitMap(), {}, BitMap()) for channel_id in channel_ids}
    dialect = connection.dialect
    # An index covers the columns, so no row of `messages` is read.
    for channel_id, key, ids in connection.query(
        "SELECT topics.channel_id, topics.key,"
        f" (SELECT {dialect.collected('id')} FROM messages WHERE topic_id = topics.id)"
        f" FROM message_topics AS topics WHERE {dialect.among('topics.channel_id')}",
        (dialect.array(channel_ids),),
    ):
        of_topic = BitMap(_ids_decoder.decode(ids or "[]"))
        result[channel_id].topics[key] = of_topic
        result[channel_id].all |= of_topic
    for item in result.values():
        item.topics = dict(sorted(item.topics.items(), key=_newest_of))
    for channel_id, mid in connection.query(
        "SELECT channel_id, id FROM messages"
        f" WHERE mentions_all = 1 AND {dialect.among('+channel_id')}",
        (dialect.array(channel_ids),),
    ):
        result[channel_id].wildcards.add(mid)
    return result


def _newest_of(topic: tuple[str, BitMap]) -> int:
    return topic[1].max() if topic[1] else 0


def direct_messages(connection: Connection, direct_ids: Sequence[int]) -> dict[int, BitMap]:
    """Return all message IDs of each direct conversation."""
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT direct_id, {dialect.collected('id')} FROM messages"
        f" WHERE {dialect.among('direct_id')} GROUP BY direct_id",
        (dialect.array(direct_ids),),
    )
    result = {direct_id: BitMap(_ids_decoder.decode(ids)) for direct_id, ids in rows}
    return {direct_id: result.get(direct_id, BitMap()) for direct_id in direct_ids}


def first_at_or_after(connection: Connection, timestamp: float) -> int | None:
    """Return the oldest message sent at or after a UNIX time."""
    rows = connection.query(
        "SELECT id FROM messages WHERE sent_at >= ? ORDER BY sent_at, id LIMIT 1", (timestamp,)
    )
    return rows[0][0] if rows else None


def queue(connection: Connection, queue_id: str) -> tuple[QueueRecord, int] | None:
    """Return a queue's registration and when it was last seen (UNIX seconds)."""
    rows = connection.query("SELECT doc, seen_at FROM queues WHERE id = ?", (queue_id,))
    return (_queue_decoder.decode(rows[0][0]), rows[0][1]) if rows else None


def idle_queues(connection: Connection, now: float, started: float, spared: float) -> list[str]:
    """Return queues not seen for their timeout plus `spared` seconds, ignoring the time before
    `started`."""
    rows = connection.query(
        "SELECT id, doc, seen_at FROM queues WHERE seen_at <= ?", (int(now - spared),)
    )
    return [
        queue_id
        for queue_id, doc, seen_at in rows
        if now - max(seen_at, started) >= _queue_decoder.decode(doc).idle_timeout + spared
    ]


def surplus_queues(connection: Connection, most: int) -> list[str]:
    """Return the queues of each user beyond the `most` that were seen last."""
    rows = connection.query(
        "SELECT id FROM (SELECT id, ROW_NUMBER() OVER"
        " (PARTITION BY user_id ORDER BY seen_at DESC, id) AS place FROM queues WHERE user_id IN"
        " (SELECT user_id FROM queues GROUP BY user_id HAVING COUNT(*) > ?)) AS own"
        " WHERE place > ?",
        (most, most),
    )
    return [queue_id for (queue_id,) in rows]


def presence(connection: Connection) -> list[PresenceSeen]:
    rows = connection.query("SELECT user_id, active_at, idle_at FROM presence")
    return [PresenceSeen(*row) for row in rows]


def users_since(connection: Connection, day: int) -> int:
    """Return the number of users who were active on or after a day of UNIX time."""
    rows = connection.query("SELECT COUNT(DISTINCT user_id) FROM usage_days WHERE day >= ?", (day,))
    return int(rows[0][0])


def recent_of(connection: Connection, kinds: Iterable[type[Change]], entries: int) -> list[Entry]:
    """Return the changes of these kinds, which have no texts, among the newest `entries`."""
    tags = [f'{{"type":"{kind.__struct_config__.tag}"%' for kind in kinds]
    return [
        decode_entry(*row)
        for row in connection.query(
            "SELECT seq, at, actor_id, change FROM log"
            " WHERE seq > (SELECT seq FROM head WHERE id = 1) - ?"
            f" AND ({' OR '.join(['change LIKE ?'] * len(tags))}) ORDER BY seq",
            (entries, *tags),
        )
    ]
