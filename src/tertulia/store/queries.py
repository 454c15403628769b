"""Reading records, readers' messages and event queues. (The log: `log_entries`; searches:
`message_search`.)"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model import narrow
from tertulia.model.messages import Flag, Message
from tertulia.model.nouns import NOUNS
from tertulia.model.queues import QueueRecord
from tertulia.store import bitmaps
from tertulia.store.codec import CHUNK_BITS, MESSAGE_COLUMNS, OF_TOPIC, decode_record, message_of
from tertulia.store.database import Connection
from tertulia.store.writing import PresenceSeen

_queue_decoder = msgspec.json.Decoder(QueueRecord)
_ids_decoder = msgspec.json.Decoder(list[int])


class Relation(Struct, frozen=True):
    """One reader's relation to one message, beyond having received it."""

    flags: Flag = Flag(0)
    read: bool = False


def records(connection: Connection) -> dict[str, list[Any]]:
    """All records of all nouns, by table."""
    return {noun.table: records_of(connection, noun.table) for noun in NOUNS}


def records_of(connection: Connection, table: str) -> list[Any]:
    """All records of one noun."""
    (noun,) = (noun for noun in NOUNS if noun.table == table)
    rows = connection.query(f"SELECT doc FROM {noun.table}")
    return [decode_record(noun, doc) for (doc,) in rows]


def messages(connection: Connection, ids: Sequence[int], *, texts: bool = True) -> list[Message]:
    """Those of the messages that exist, ascending; without `texts`, what they say is left out."""
    dialect = connection.dialect
    columns = MESSAGE_COLUMNS
    if not texts:
        columns = columns.replace("messages.content, messages.rendered", "'', ''")
    rows = connection.query(
        f"SELECT {columns} FROM messages WHERE {dialect.among('messages.id')} ORDER BY messages.id",
        (dialect.array(ids),),
    )
    return [message_of(row) for row in rows]


def channels_of(connection: Connection, ids: Sequence[int]) -> dict[int, int | None]:
    """Where those of the messages are that exist: the channel, or None for direct messages."""
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT id, channel_id FROM messages WHERE {dialect.among('id')}", (dialect.array(ids),)
    )
    return dict(rows)


def text_sizes(connection: Connection, message_ids: Iterable[int]) -> dict[int, int]:
    """Return the bytes of content and HTML of those of the messages that exist."""
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
    """Return the newest messages with after < id <= until, ascending, and whether these are all:
    at most `limit`, and only as many as have `most_bytes` of content and HTML together."""
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
    """The newest messages before one in its conversation, ascending, at most so many."""
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


def relations(connection: Connection, user_id: int, ids: Iterable[int]) -> dict[int, Relation]:
    """The user's relation to each of the messages."""
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
    """The sparse flags that these users have on each of the messages, by message and user; and the
    marks of each of them on these. It takes three queries, however many they are."""
    dialect, wanted, users = connection.dialect, sorted(set(ids)), sorted(set(user_ids))
    flags: dict[int, dict[int, Flag]] = {message_id: {} for message_id in wanted}
    own: dict[int, dict[int, int]] = {user_id: {} for user_id in users}
    # (By the messages' index: most people have flags on very many others.)
    for user_id, message_id, value in connection.query(
        "SELECT user_id, message_id, flags FROM message_flags"
        f" WHERE {dialect.among('message_id')} AND {dialect.among('+user_id')}",
        (dialect.array(wanted), dialect.array(users)),
    ):
        flags[message_id][user_id] = Flag(value)
        own[user_id][message_id] = value
    chunks = dialect.array({message_id >> CHUNK_BITS for message_id in wanted})
    found: dict[str, dict[int, BitMap]] = {bitmaps.READ: {}, bitmaps.RECORDS: {}}
    for table, of_user in found.items():
        for user_id, bitmap in connection.query(
            f"SELECT user_id, bitmap FROM {table}"
            f" WHERE {dialect.among('chunk')} AND {dialect.among('user_id')}",
            (chunks, dialect.array(users)),
        ):
            of_user[user_id] = of_user.get(user_id, BitMap()) | bitmaps.bitmap_of(bitmap)
    return flags, {
        user_id: MessageMarks(
            own[user_id],
            *(found[table].get(user_id, BitMap()) for table in (bitmaps.READ, bitmaps.RECORDS)),
        )
        for user_id in users
    }


class MessageMarks(Struct, frozen=True):
    """What one reader has done with some messages, and what has been done with them for the reader:
    enough to tell the relation to each of them."""

    flags: dict[int, int]
    """By message. What a record of the reader's own was moved with is in `moved`."""
    read: BitMap
    moved: BitMap = BitMap()
    """Messages of which the reader has a record because they were moved."""

    def relation(self, message_id: int) -> Relation:
        """The reader's relation to one of the messages."""
        flags = self.flags.get(message_id, 0)
        if message_id in self.moved:
            flags |= Flag.RECORD
        return Relation(Flag(flags) if flags else _NO_FLAG, message_id in self.read)


_NO_FLAG = Flag(0)


def marks_since(connection: Connection, user_id: int, first: int) -> MessageMarks:
    """The user's marks on all messages from that one on."""
    return _marks(
        connection, user_id, ("message_id >= ?", first), ("chunk >= ?", first >> CHUNK_BITS)
    )


def _marks(
    connection: Connection, user_id: int, messages: tuple[str, Any], chunks: tuple[str, Any]
) -> MessageMarks:
    """The user's marks on messages: a condition on their IDs and one on the rows of bitmaps that
    they are in, each with its parameter."""
    flags: dict[int, int] = {}
    found: dict[str, list[BitMap]] = {bitmaps.READ: [], bitmaps.RECORDS: []}
    of_chunk, chunk = chunks
    # One query for all: each costs a way to the database.
    for table, number, value, bitmap in connection.query(
        "SELECT 'message_flags', message_id, flags, NULL FROM message_flags"
        f" WHERE user_id = ? AND {messages[0]}"
        + "".join(
            f" UNION ALL SELECT '{table}', chunk, 0, bitmap FROM {table}"
            f" WHERE user_id = ? AND {of_chunk}"
            for table in found
        ),
        (user_id, messages[1], user_id, chunk, user_id, chunk),
    ):
        if bitmap is None:
            flags[number] = value
        else:
            found[table].append(bitmaps.bitmap_of(bitmap))
    return MessageMarks(
        flags,
        *(BitMap.union(BitMap(), *found[table]) for table in (bitmaps.READ, bitmaps.RECORDS)),
    )


Marked = tuple[BitMap, dict[Flag, BitMap]]
"""What a user has read, and the messages with each of their sparse flags."""


def marks_of_users(connection: Connection, user_ids: Sequence[int]) -> dict[int, Marked]:
    """Return all that each of the users has read, and the messages with each of their sparse
    flags."""
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
    found: dict[int, Marked] = {}
    for user_id in user_ids:
        flagged: dict[Flag, BitMap] = defaultdict(BitMap)
        for value, ids in by_flags[user_id].items():
            for flag in Flag(value):
                flagged[flag].update(ids)
        if records[user_id]:
            flagged[Flag.RECORD] |= records[user_id]
        found[user_id] = read[user_id], dict(flagged)
    return found


class ChannelIds(Struct):
    """The IDs of a channel's messages."""

    all: BitMap
    topics: dict[str, BitMap]
    """By topic key."""
    wildcards: BitMap
    """Those that mention everybody."""


def channel_messages(connection: Connection, channel_ids: Sequence[int]) -> dict[int, ChannelIds]:
    """The IDs of the channels' messages, of all of these channels."""
    found = {channel_id: ChannelIds(BitMap(), {}, BitMap()) for channel_id in channel_ids}
    dialect = connection.dialect
    # An index covers the columns: no row of `messages` is read.
    for channel_id, key, ids in connection.query(
        "SELECT topics.channel_id, topics.key,"
        f" (SELECT {dialect.collected('id')} FROM messages WHERE topic_id = topics.id)"
        f" FROM message_topics AS topics WHERE {dialect.among('topics.channel_id')}",
        (dialect.array(channel_ids),),
    ):
        of_topic = BitMap(_ids_decoder.decode(ids or "[]"))
        found[channel_id].topics[key] = of_topic
        found[channel_id].all |= of_topic
    for channel_id, mid in connection.query(
        "SELECT channel_id, id FROM messages"
        f" WHERE mentions_all = 1 AND {dialect.among('+channel_id')}",
        (dialect.array(channel_ids),),
    ):
        found[channel_id].wildcards.add(mid)
    return found


def direct_messages(connection: Connection, direct_ids: Sequence[int]) -> dict[int, BitMap]:
    """The IDs of the messages of direct conversations."""
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT direct_id, {dialect.collected('id')} FROM messages"
        f" WHERE {dialect.among('direct_id')} GROUP BY direct_id",
        (dialect.array(direct_ids),),
    )
    found = {direct_id: BitMap(_ids_decoder.decode(ids)) for direct_id, ids in rows}
    return {direct_id: found.get(direct_id, BitMap()) for direct_id in direct_ids}


def first_at_or_after(connection: Connection, moment: float) -> int | None:
    """The oldest message sent at that UNIX time or later."""
    rows = connection.query(
        "SELECT id FROM messages WHERE sent_at >= ? ORDER BY sent_at, id LIMIT 1", (moment,)
    )
    return rows[0][0] if rows else None


def queue(connection: Connection, queue_id: str) -> tuple[QueueRecord, int] | None:
    """A queue as it was registered, and when it was last seen (UNIX seconds)."""
    rows = connection.query("SELECT doc, seen_at FROM queues WHERE id = ?", (queue_id,))
    return (_queue_decoder.decode(rows[0][0]), rows[0][1]) if rows else None


def idle_queues(connection: Connection, now: float, started: float, spared: float) -> list[str]:
    """The queues that were not seen for their timeout and `spared` seconds more. The time before
    `started` does not count. UNIX seconds."""
    rows = connection.query(
        "SELECT id, doc, seen_at FROM queues WHERE seen_at <= ?", (int(now - spared),)
    )
    return [
        queue_id
        for queue_id, doc, seen_at in rows
        if now - max(seen_at, started) >= _queue_decoder.decode(doc).idle_timeout + spared
    ]


def surplus_queues(connection: Connection, most: int) -> list[str]:
    """Of users with more than `most` queues, those that were not seen for longest, beyond so
    many."""
    rows = connection.query(
        "SELECT id FROM (SELECT id, ROW_NUMBER() OVER"
        " (PARTITION BY user_id ORDER BY seen_at DESC, id) AS place FROM queues WHERE user_id IN"
        " (SELECT user_id FROM queues GROUP BY user_id HAVING COUNT(*) > ?)) AS own"
        " WHERE place > ?",
        (most, most),
    )
    return [queue_id for (queue_id,) in rows]


def presence(connection: Connection) -> list[PresenceSeen]:
    """When each user was last present, as last written."""
    rows = connection.query("SELECT user_id, active_at, idle_at FROM presence")
    return [PresenceSeen(*row) for row in rows]


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


def users_since(connection: Connection, day: int) -> int:
    """How many users gave input to a client on that day (of UNIX time) or later."""
    rows = connection.query("SELECT COUNT(DISTINCT user_id) FROM usage_days WHERE day >= ?", (day,))
    return int(rows[0][0])


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
    first_id = first_at_or_after(connection, since)
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
