"""Reading the log, and completing its entries with texts from other tables."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.changes import (
    AnyChange,
    Entry,
    MessageEdited,
    MessageSent,
    MessagesMoved,
    OnMessage,
    SubmessageAdded,
)
from tertulia.model.edits import Arrival
from tertulia.model.messages import Message, Submessage
from tertulia.model.nouns import NOUNS
from tertulia.store import editing, installation, queries
from tertulia.store.codec import BLANK, NEEDS_TEXTS, decode_entry, decode_record, with_records
from tertulia.store.database import Connection, TextRow
from tertulia.store.installation import (
    Head,
    HistoryChanged,
    HistoryPruned,
    Position,
    require_known,
)

_ids_decoder = msgspec.json.Decoder(list[int])


def head(connection: Connection) -> int:
    ((seq,),) = connection.query("SELECT seq FROM head WHERE id = 1")
    return int(seq)


def pruned(connection: Connection) -> int:
    """Return the newest pruned sequence number, or 0."""
    ((seq,),) = connection.query("SELECT pruned FROM head WHERE id = 1")
    return int(seq)


class LogTail(Struct, frozen=True):
    """The log after a position."""

    head: Head
    entries: list[Entry]
    position: Position
    """The position of the last entry."""

    @property
    def is_all(self) -> bool:
        """Whether the entries reach the log's end."""
        return self.position.seq == self.head.seq


TAIL_BYTES = 8 * 1024 * 1024
"""The most bytes of content and HTML of the messages in one page of the log's tail."""


def read_tail(connection: Connection, after: Position, limit: int) -> LogTail:
    """Return the entries after a position: at most `limit`, with up to `TAIL_BYTES` of texts. Raise
    HistoryChanged if the log doesn't have that position, HistoryPruned if later entries were
    pruned, and NewerDatabase."""
    end = installation.head_position(connection)
    require_known(end)
    if not installation.continues_history(connection, end, after):
        raise HistoryChanged(after, end)
    if end.seq == after.seq:
        return LogTail(end, [], after)
    if after.seq < end.pruned:
        raise HistoryPruned(after, end)
    results = entries(connection, after.seq, limit, most_bytes=TAIL_BYTES)
    last = results[-1].seq
    batch = end.batch if last == end.seq else installation.batch_of(connection, last)
    return LogTail(end, results, Position(end.history, last, batch or ""))


def entries(
    connection: Connection,
    after: int,
    limit: int,
    until: int | None = None,
    most_bytes: int | None = None,
) -> list[Entry]:
    """Return the entries after a sequence number in order, with their texts: at most `limit`,
    with up to `most_bytes` of content and HTML, but at least one."""
    rows = connection.query(
        "SELECT seq, at, actor_id, change FROM log WHERE seq > ? AND seq <= ?"
        f" ORDER BY seq LIMIT {int(limit)}",
        (after, 2**62 if until is None else until),
    )
    entries = [decode_entry(*row) for row in rows]
    if most_bytes is not None:
        entries = _within(connection, entries, most_bytes)
    entries = _with_own_texts(connection, entries)
    ids = [
        e.change.message.id for e in entries if isinstance(e.change, MessageSent | MessageEdited)
    ]
    parts = [
        part.id
        for e in entries
        if isinstance(e.change, MessageSent | SubmessageAdded)
        and (part := _submessage_in(e.change)) is not None
    ]
    placed: list[int] = []
    left: dict[int, BitMap] = {}
    for entry in entries:
        if isinstance(entry.change, MessagesMoved):
            ids += [arrival.message_id for arrival in entry.change.arrivals]
            parts += [part.id for arrival in entry.change.arrivals for part in arrival.submessages]
            if entry.change.renames:
                left[entry.seq] = _left_topic(connection, entry.change.ids)
            placed += left.get(entry.seq, entry.change.message_ids)
        elif isinstance(entry.change, OnMessage):
            placed.append(entry.change.place.id)
    if not ids and not parts and not placed:
        return entries
    edited = {e.seq: e.change.message.id for e in entries if isinstance(e.change, MessageEdited)}
    words = _Words(
        messages={message.id: message for message in queries.messages(connection, ids)}
        if ids
        else {},
        before=(
            editing.contents_before(connection, list(edited.values()), list(edited))
            if edited
            else {}
        ),
        parts=_submessage_contents(connection, parts),
        channels=queries.channels_of(connection, placed) if placed else {},
        left=left,
    )
    return [
        Entry(entry.seq, entry.at, entry.actor_id, _filled(entry.change, entry.seq, words))
        for entry in entries
    ]


def _left_topic(connection: Connection, message_ids: BitMap) -> BitMap:
    """Return the messages that are no longer in the same topic as the newest one. Usually all still
    are, so few have to be looked up."""
    ((present,),) = connection.query(
        f"SELECT {connection.dialect.collected('id')} FROM messages WHERE topic_id ="
        " (SELECT topic_id FROM messages WHERE id = ?)",
        (message_ids.max(),),
    )
    return message_ids - BitMap(_ids_decoder.decode(present or "[]"))


def _within(connection: Connection, entries: list[Entry], most_bytes: int) -> list[Entry]:
    """Return the first entries, up to that many bytes of texts."""
    ids = {
        e.change.message.id for e in entries if isinstance(e.change, MessageSent | MessageEdited)
    }
    for entry in entries:
        if isinstance(entry.change, MessagesMoved):
            ids.update(arrival.message_id for arrival in entry.change.arrivals)
    sizes = queries.text_sizes(connection, ids)
    size = 0
    for index, entry in enumerate(entries):
        match entry.change:
            case MessageSent() | MessageEdited():
                size += sizes.get(entry.change.message.id, 0)
            case MessagesMoved():
                size += sum(sizes.get(arrival.message_id, 0) for arrival in entry.change.arrivals)
            case _:
                pass
        if index and size > most_bytes:
            return entries[:index]
    return entries


def _with_own_texts(connection: Connection, entries: list[Entry]) -> list[Entry]:
    """Add the current texts of drafts and similar records. Texts of deleted records stay empty."""
    wanted: dict[str, set[int]] = defaultdict(set)

    def want(table: str, record: Any) -> Any:
        wanted[table].add(record.id)
        return record

    for entry in entries:
        with_records(entry.change, want)
    if not wanted:
        return entries
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
        for entry in entries
    ]


def _records_named(connection: Connection, table: str, ids: Iterable[int]) -> list[Any]:
    (noun,) = (noun for noun in NOUNS if noun.table == table)
    dialect = connection.dialect
    rows = connection.query(
        f"SELECT doc FROM {table} WHERE {dialect.among('id')}", (dialect.array(ids),)
    )
    return [decode_record(noun, doc) for (doc,) in rows]


class _Words(Struct):
    """Texts that the log doesn't have."""

    messages: Mapping[int, Message]
    """The messages as they are now."""
    before: Mapping[int, tuple[str, str]]
    """Messages' previous source and HTML, by entry."""
    parts: Mapping[int, str]
    """Contents of submessages."""
    channels: Mapping[int, int | None]
    """The messages' current channels."""
    left: Mapping[int, BitMap]
    """Messages that have left a renamed topic since, by the entry that renamed it."""


def _submessage_in(change: MessageSent | SubmessageAdded) -> Submessage | None:
    return change.widget if isinstance(change, MessageSent) else change.submessage


def _filled(change: AnyChange, seq: int, words: _Words) -> AnyChange:
    replace = msgspec.structs.replace
    if isinstance(change, OnMessage):
        place = change.place
        if place.id not in words.channels:
            return replace(change, gone=True)
        if (channel_id := words.channels[place.id]) != place.channel_id:
            change = replace(change, moved_to=channel_id)
        if isinstance(change, SubmessageAdded):
            content = words.parts.get(change.submessage.id)
            if content is None:
                return replace(change, gone=True)
            change = replace(change, submessage=replace(change.submessage, content=content))
        return change
    if isinstance(change, MessagesMoved):
        ids = words.left.get(seq, change.message_ids)
        now_at: dict[int | None, BitMap] = defaultdict(BitMap)
        for message_id in ids:
            if (at := words.channels.get(message_id)) != change.new_channel_id:
                now_at[at].add(message_id)
        return replace(
            change,
            arrivals=tuple(_arrival_filled(change, arrival, words) for arrival in change.arrivals),
            moved_on=tuple((at, some.serialize()) for at, some in now_at.items()),
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
    return replace(
        arrival,
        message=replace(present, channel_id=change.new_channel_id, topic=change.new_topic),
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


def recent_sends(connection: Connection, entries: int) -> list[AnyChange]:
    """Return the sends with a queue ID and a local ID among the newest `entries`, oldest first.
    Only those of version 0.1, without a request digest, have their content."""
    rows = connection.query(
        "SELECT seq, at, actor_id, change FROM log"
        " WHERE seq > (SELECT seq FROM head WHERE id = 1) - ?"
        " AND change LIKE '%\"local_id\"%' ORDER BY seq",
        (entries,),
    )
    changes = [decode_entry(*row).change for row in rows]
    return [
        _with_content(connection, change) for change in changes if isinstance(change, MessageSent)
    ]


def _with_content(connection: Connection, sent: MessageSent) -> MessageSent:
    if sent.request_digest:
        return sent
    messages = queries.messages(connection, [sent.message.id])
    content = messages[0].content if messages else ""
    replace = msgspec.structs.replace
    return replace(sent, message=replace(sent.message, content=content))


TAIL_LIMIT: Final = 1000
"""The most rows that are read."""
TAIL_QUERY: Final = f"""
    SELECT log.seq, log.batch, log.at, log.actor_id,
        CASE WHEN log.batch = newest.batch THEN log.change END,
        said.content, said.rendered, said.channel_id
    FROM (SELECT batch FROM head WHERE id = 1 AND batch <> ?) AS newest
    CROSS JOIN log
    LEFT JOIN LATERAL (
        SELECT content, rendered, channel_id FROM messages WHERE messages.id = CASE
            WHEN log.batch = newest.batch AND log.change LIKE '{{"type":"message_sent",%'
            THEN CAST(CAST(log.change AS json) -> 'message' ->> 'id' AS BIGINT)
        END
        OFFSET 0
    ) AS said ON TRUE
    WHERE log.seq >= ? ORDER BY log.seq LIMIT {TAIL_LIMIT}
"""
"""A query for the entries from a sequence number on, or for none if the head's batch is the given
one. Parameters: batch and number. Run it after locking the head, because each statement sees what
was committed when it began."""


def tail_from_rows(head: Head, rows: Sequence[TextRow], known: Position) -> LogTail | None:
    """Decode the tail from the query's rows, or return None if they don't have all of it."""
    if head.position == known:
        return LogTail(head, [], known)
    if head.history != known.history or head.seq < known.seq or len(rows) >= TAIL_LIMIT:
        return None
    entries: list[Entry] = []
    before: TextRow | None = None
    for row in rows:
        seq = int(row[0] or 0)
        if seq == known.seq:
            before = row
        elif seq > known.seq:
            if row[4] is None:
                return None
            entry = decode_entry(
                seq,
                float(row[2] or 0),
                None if row[3] is None else int(row[3]),
                row[4].decode(),
            )
            change = _complete(entry.change, row)
            if change is None:
                return None
            entries.append(Entry(seq, entry.at, entry.actor_id, change))
    is_continued = before is not None and (before[1] or b"").decode() == known.batch
    if not is_continued or not entries or entries[-1].seq != head.seq:
        return None
    if entries[0].seq != known.seq + 1:
        return None
    return LogTail(head, entries, head.position)


def _complete(change: AnyChange, row: TextRow) -> AnyChange | None:
    """Add the texts, or return None if the row doesn't have them."""
    if not isinstance(change, NEEDS_TEXTS):
        return change
    if not isinstance(change, MessageSent) or change.widget is not None:
        return None
    _, _, _, _, _, content, rendered, channel = row
    replace = msgspec.structs.replace
    if content is None or rendered is None:
        return replace(change, gone=True)
    message = replace(change.message, content=content.decode(), rendered=rendered.decode())
    channel_id = None if channel is None else int(channel)
    moved_to = channel_id if channel_id != message.channel_id else None
    return replace(change, message=message, moved_to=moved_to)
