"""Reading the state, the log, readers' messages and event queues. (Searches: `message_search`.)"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model import narrow
from tertulia.model.changes import (
    AnyChange,
    Entry,
    MessageEdited,
    MessageSent,
    MessagesMoved,
    SubmessageAdded,
)
from tertulia.model.changes.editing import Arrival
from tertulia.model.messages import Flag, Message, Submessage
from tertulia.model.nouns import NOUNS
from tertulia.model.queues import QueueRecord
from tertulia.store import bitmaps, editing, history
from tertulia.store.codec import (
    BLANK,
    MESSAGE_COLUMNS,
    decode_entry,
    decode_record,
    message_of,
    with_records,
)
from tertulia.store.database import Connection
from tertulia.store.history import Head, HistoryChanged, HistoryPruned, Position
from tertulia.store.migrations import require_known
from tertulia.store.writing import PresenceSeen

_queue_decoder = msgspec.json.Decoder(QueueRecord)
_ids_decoder = msgspec.json.Decoder(list[int])


class Relation(Struct, frozen=True):
    """One reader's relation to one message, beyond having received it."""

    flags: Flag = Flag(0)
    read: bool = False


def head(connection: Connection) -> int:
    """The log's newest sequence number."""
    ((seq,),) = connection.query("SELECT seq FROM head WHERE id = 1")
    return int(seq)


def pruned(connection: Connection) -> int:
    """The newest sequence number that the log does not have any more; 0 where it has all."""
    ((seq,),) = connection.query("SELECT pruned FROM head WHERE id = 1")
    return int(seq)


class Growth(Struct, frozen=True):
    """What the log has beyond a position."""

    head: Head
    entries: list[Entry]
    position: Position
    """The position of the last of the entries."""

    @property
    def is_all(self) -> bool:
        """Whether the entries reach to the log's end."""
        return self.position.seq == self.head.seq


def growth(connection: Connection, after: Position, limit: int) -> Growth:
    """The log's entries after one, at most so many. HistoryChanged where the log does not have
    that one any more, HistoryPruned where one after it is pruned, NewerDatabase where a newer
    program writes it."""
    end = history.head(connection)
    require_known(end)
    if not history.continues(connection, end, after):
        raise HistoryChanged(after, end)
    if end.seq == after.seq:
        return Growth(end, [], after)
    if after.seq < end.pruned:
        raise HistoryPruned(after, end)
    found = entries(connection, after.seq, limit)
    last = found[-1].seq
    batch = end.batch if last == end.seq else history.batch_of(connection, last)
    return Growth(end, found, Position(end.history, last, batch or ""))


def records(connection: Connection) -> dict[str, list[Any]]:
    """All records of all nouns, by table."""
    return {noun.table: records_of(connection, noun.table) for noun in NOUNS}


def records_of(connection: Connection, table: str) -> list[Any]:
    """All records of one noun."""
    (noun,) = (noun for noun in NOUNS if noun.table == table)
    rows = connection.query(f"SELECT doc FROM {noun.table}")
    return [decode_record(noun, doc) for (doc,) in rows]


def entries(
    connection: Connection, after: int, limit: int, until: int | None = None
) -> list[Entry]:
    """The log's entries after one, in order, at most so many, with the messages' content."""
    rows = connection.query(
        "SELECT seq, at, actor_id, change FROM log WHERE seq > ? AND seq <= ?"
        f" ORDER BY seq LIMIT {int(limit)}",
        (after, 2**62 if until is None else until),
    )
    found = _with_own_texts(connection, [decode_entry(*row) for row in rows])
    ids = [e.change.message.id for e in found if isinstance(e.change, MessageSent | MessageEdited)]
    parts = [
        part.id
        for e in found
        if isinstance(e.change, MessageSent | SubmessageAdded)
        and (part := _submessage_in(e.change)) is not None
    ]
    for entry in found:
        if isinstance(entry.change, MessagesMoved):
            ids += [one.message_id for one in entry.change.arrivals]
            parts += [part.id for one in entry.change.arrivals for part in one.submessages]
    if not ids and not parts:
        return found
    edited = [e.seq for e in found if isinstance(e.change, MessageEdited)]
    words = _Words(
        messages={message.id: message for message in messages(connection, ids)},
        before=editing.contents_before(connection, edited) if edited else {},
        parts=_submessage_contents(connection, parts),
    )
    return [
        Entry(entry.seq, entry.at, entry.actor_id, _filled(entry.change, entry.seq, words))
        for entry in found
    ]


def _with_own_texts(connection: Connection, found: list[Entry]) -> list[Entry]:
    """The entries, with the texts of people's own records as they are now; what has been deleted
    since has none."""
    wanted: dict[str, set[int]] = defaultdict(set)

    def want(table: str, record: Any) -> Any:
        wanted[table].add(record.id)
        return record

    for entry in found:
        with_records(entry.change, want)
    if not wanted:
        return found
    known = {
        table: {record.id: record for record in _records_named(connection, table, ids)}
        for table, ids in wanted.items()
    }

    def filled(table: str, record: Any) -> Any:
        now = known[table].get(record.id)
        if now is None:
            return record
        texts = {name: getattr(now, name) for name in BLANK[table]}
        return msgspec.structs.replace(record, **texts)

    return [
        Entry(entry.seq, entry.at, entry.actor_id, with_records(entry.change, filled))
        for entry in found
    ]


def _records_named(connection: Connection, table: str, ids: Iterable[int]) -> list[Any]:
    (noun,) = (noun for noun in NOUNS if noun.table == table)
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT doc FROM {table} WHERE {dialect.among('id')}", (dialect.array(ids),)
    )
    return [decode_record(noun, doc) for (doc,) in rows]


class _Words(Struct):
    """What people wrote, which the log has no copy of."""

    messages: Mapping[int, Message]
    """As they are now."""
    before: Mapping[int, tuple[str, str]]
    """What a message said before an entry: source and HTML."""
    parts: Mapping[int, str]
    """The contents of submessages."""


def _submessage_in(change: MessageSent | SubmessageAdded) -> Submessage | None:
    return change.widget if isinstance(change, MessageSent) else change.submessage


def _filled(change: AnyChange, seq: int, words: _Words) -> AnyChange:
    """The change with what people wrote."""
    replace = msgspec.structs.replace
    if isinstance(change, SubmessageAdded):
        content = words.parts.get(change.submessage.id)
        if content is None:
            return replace(change, gone=True)
        return replace(change, submessage=replace(change.submessage, content=content))
    if isinstance(change, MessagesMoved):
        return replace(
            change, arrivals=tuple(_arrival_filled(change, one, words) for one in change.arrivals)
        )
    if not isinstance(change, MessageSent | MessageEdited):
        return change
    if isinstance(change, MessageEdited) and seq in words.before:
        content, rendered = words.before[seq]
        change = replace(change, was_content=content, was_rendered=rendered)
    present = words.messages.get(change.message.id)
    if present is None:
        return replace(change, gone=True)
    message = replace(change.message, content=present.content, rendered=present.rendered)
    moved_to = present.channel_id if present.channel_id != message.channel_id else None
    change = replace(change, message=message, moved_to=moved_to)
    if isinstance(change, MessageSent) and change.widget is not None:
        widget = replace(change.widget, content=words.parts[change.widget.id])
        change = replace(change, widget=widget)
    return change


def _arrival_filled(change: MessagesMoved, arrival: Arrival, words: _Words) -> Arrival:
    replace = msgspec.structs.replace
    present = words.messages.get(arrival.message_id)
    if present is None:
        return replace(arrival, message=None, submessages=())
    is_elsewhere = present.channel_id != change.new_channel_id
    return replace(
        arrival,
        message=replace(present, channel_id=change.new_channel_id, topic=change.new_topic),
        moved_to=present.channel_id if is_elsewhere else None,
        submessages=tuple(
            replace(part, content=words.parts[part.id]) for part in arrival.submessages
        ),
    )


def _submessage_contents(connection: Connection, ids: Sequence[int]) -> dict[int, str]:
    if not ids:
        return {}
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT id, content FROM submessages WHERE {dialect.among('id')}", (dialect.array(ids),)
    )
    return dict(rows)


def messages(connection: Connection, ids: Sequence[int]) -> list[Message]:
    """Those of the messages that exist, ascending."""
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT {MESSAGE_COLUMNS} FROM messages WHERE {dialect.among('messages.id')}"
        " ORDER BY messages.id",
        (dialect.array(ids),),
    )
    return [message_of(row) for row in rows]


def relations(connection: Connection, user_id: int, ids: Iterable[int]) -> dict[int, Relation]:
    """The user's relation to each of the messages."""
    wanted = list(ids)
    if not wanted:
        return {}
    dialect = connection.dialect
    flags: dict[int, int] = dict(
        connection.query(
            "SELECT message_id, flags FROM message_flags"
            f" WHERE user_id = ? AND {dialect.among('message_id')}",
            (user_id, dialect.array(wanted)),
        )
    )
    for mid in bitmaps.of_user(connection, bitmaps.RECORDS, user_id, wanted) & BitMap(wanted):
        flags[mid] = flags.get(mid, 0) | Flag.RECORD
    read = bitmaps.of_user(connection, bitmaps.READ, user_id, wanted)
    none = Flag(0)
    return {
        mid: Relation(Flag(flags[mid]) if mid in flags else none, mid in read) for mid in wanted
    }


def reader(connection: Connection, user_id: int) -> tuple[BitMap, dict[Flag, BitMap]]:
    """All that the user has read, and the messages with each of their sparse flags."""
    read = bitmaps.of_user(connection, bitmaps.READ, user_id)
    rows = connection.query(
        "SELECT message_id, flags FROM message_flags WHERE user_id = ?", (user_id,)
    )
    by_flags: dict[int, list[int]] = defaultdict(list)
    for mid, flags in rows:
        by_flags[flags].append(mid)
    flagged: dict[Flag, BitMap] = defaultdict(BitMap)
    for flags, ids in by_flags.items():
        for flag in Flag(flags):
            flagged[flag].update(ids)
    if records := bitmaps.of_user(connection, bitmaps.RECORDS, user_id):
        flagged[Flag.RECORD] |= records
    return read, dict(flagged)


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
        f"SELECT channel_id, topic_key, {dialect.collected('id')} FROM messages"
        f" WHERE {dialect.among('channel_id')} GROUP BY channel_id, topic_key",
        (dialect.array(channel_ids),),
    ):
        of_topic = BitMap(_ids_decoder.decode(ids))
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


def presence(connection: Connection) -> list[PresenceSeen]:
    """When each user was last present, as last written."""
    rows = connection.query("SELECT user_id, active_at, idle_at FROM presence")
    return [PresenceSeen(*row) for row in rows]


def newest_by_topic(
    connection: Connection, channel_id: int, spans: Iterable[tuple[int, int | None]]
) -> dict[str, int]:
    """The newest message of each topic, by its key, among those with after < id <= until for one
    of the spans `(after, until)`."""
    either, parameters = [], [channel_id]
    for after, until in spans:
        either.append("(id > ? AND id <= ?)")
        parameters += [after, narrow.LARGEST if until is None else until]
    if not either:
        return {}
    rows = connection.query(
        "SELECT topic_key, MAX(id) FROM messages WHERE channel_id = ?"
        f" AND ({' OR '.join(either)}) GROUP BY topic_key",
        parameters,
    )
    return dict(rows)


def users_since(connection: Connection, day: int) -> int:
    """How many users gave input to a client on that day (of UNIX time) or later."""
    rows = connection.query("SELECT COUNT(DISTINCT user_id) FROM usage_days WHERE day >= ?", (day,))
    return int(rows[0][0])


def topic_senders(connection: Connection, channel_id: int, topic_key: str) -> frozenset[int]:
    """Everybody who wrote in a topic."""
    rows = connection.query(
        "SELECT DISTINCT sender_id FROM messages WHERE channel_id = ? AND topic_key = ?",
        (channel_id, topic_key),
    )
    return frozenset(sender for (sender,) in rows)


def recent_sends(connection: Connection, entries: int) -> list[AnyChange]:
    """The messages that were sent with a local ID among so many of the log's newest entries, oldest
    first, with their present content."""
    rows = connection.query(
        "SELECT seq, at, actor_id, change FROM log"
        " WHERE seq > (SELECT seq FROM head WHERE id = 1) - ? AND change LIKE '%\"local_id\"%'"
        " ORDER BY seq",
        (entries,),
    )
    found = [decode_entry(*row).change for row in rows]
    sent = [change for change in found if isinstance(change, MessageSent)]
    known = {one.id: one for one in messages(connection, [s.message.id for s in sent])}
    replace = msgspec.structs.replace
    return [
        replace(change, message=replace(change.message, content=known[change.message.id].content))
        for change in sent
        if change.message.id in known
    ]
