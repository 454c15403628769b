"""Writing one commit of the log."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from msgspec import Struct, field
from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.changes import Entry
from tertulia.model.channels import topic_key
from tertulia.model.messages import Flag, Submessage
from tertulia.model.nouns import NOUNS, Key
from tertulia.model.ranges import ids_of
from tertulia.model.reactions import Reaction
from tertulia.store import bitmaps, editing, installation, search_index
from tertulia.store.bitmaps import Chunks
from tertulia.store.codec import encode, encode_change
from tertulia.store.database import Connection, Query
from tertulia.store.dialect import Dialect
from tertulia.store.notes import _OFTEN, MessageHistoryImported, Note, _write_note


class Batch(Struct):
    """Entries, records, and notes that are committed together."""

    entries: list[Entry]
    records: Mapping[str, Mapping[Key, Any]]
    """New records by table and key, or None for deleted ones."""
    notes: Sequence[Note] = ()
    id: str = field(default_factory=installation.new_id)
    """Identifies the batch, to find out whether it was committed."""


def write(connection: Connection, batch: Batch) -> None:
    """Write the batch inside the open transaction."""
    for noun in NOUNS:
        rows = batch.records.get(noun.table)
        if rows:
            _write_records(connection, noun.table, noun.key, rows)
    if batch.entries:
        _write_log(connection, batch.entries, batch.id)
        _write_entries(connection, batch.entries, _known_topics(batch))
    elif batch.notes:
        connection.run("UPDATE head SET noted = ? WHERE id = 1", (batch.id,))
    for kind, notes in groupby(batch.notes, type):
        if kind in _OFTEN:
            statement, parameters = _OFTEN[kind]
            connection.run_many(statement, [parameters(note) for note in notes])
        else:
            for note in notes:
                if isinstance(note, MessageHistoryImported):
                    _write_history(connection, note)
                else:
                    _write_note(connection, note)


def _write_history(connection: Connection, note: MessageHistoryImported) -> None:
    columns = [name.strip() for name in editing.EDIT_COLUMNS.split(",")]
    placeholders = ", ".join("?" * len(columns))
    connection.run_many(
        f"INSERT INTO message_edits ({editing.EDIT_COLUMNS}) VALUES ({placeholders})"
        " ON CONFLICT (message_id, seq) DO NOTHING",
        [tuple(getattr(edit, name) for name in columns) for edit in note.edits],
    )
    connection.run_many(
        "INSERT INTO reactions (message_id, user_id, kind, code, name, neutral, seq)"
        " VALUES (?, ?, ?, ?, ?, 0, ?)"
        " ON CONFLICT (message_id, user_id, kind, code) DO NOTHING",
        [
            (
                reaction.message_id,
                reaction.user_id,
                reaction.kind.value,
                reaction.code,
                reaction.name,
                n,
            )
            for n, reaction in enumerate(note.reactions)
        ],
    )


def row_count(batch: Batch) -> int:
    """Return the approximate number of rows that the batch writes or reads."""
    result = len(batch.entries) + len(batch.notes) + sum(map(len, batch.records.values()))
    for entry in batch.entries:
        change = entry.change
        if isinstance(change, changes.MessageSent):
            result += len(change.flags) + len(change.read_by)
        elif not isinstance(change, changes.ReactionAdded):
            result += len(getattr(change, "message_ids", ()))
    return result


def text_length(batch: Batch) -> int:
    """Return the characters of messages that the batch makes searchable, which is most of the
    work."""
    written = changes.MessageSent | changes.MessageEdited
    return sum(
        len(e.change.message.content) for e in batch.entries if isinstance(e.change, written)
    )


def prefetch_queries(dialect: Dialect, batch: Batch) -> list[Query]:
    """Return the queries of `write` that can run before it."""
    marks = _marks_of(batch.entries)
    return [
        *bitmaps.prefetch_queries(dialect, bitmaps.READ, marks.of_read),
        *bitmaps.prefetch_queries(dialect, bitmaps.RECORDS, marks.of_records),
    ]


def _write_records(
    connection: Connection, table: str, key: tuple[str, ...], rows: Mapping[Key, Any]
) -> None:
    names = ", ".join(key)
    holes = ", ".join("?" for _ in range(len(key) + 1))

    def columns(value: Key) -> tuple[Any, ...]:
        return value if isinstance(value, tuple) else (value,)

    put = [(*columns(k), encode(record)) for k, record in rows.items() if record is not None]
    gone = [columns(k) for k, record in rows.items() if record is None]
    if put:
        connection.run_many(
            f"INSERT INTO {table} ({names}, doc) VALUES ({holes})"
            f" ON CONFLICT ({names}) DO UPDATE SET doc = excluded.doc",
            put,
        )
    if gone:
        where = " AND ".join(f"{name} = ?" for name in key)
        connection.run_many(f"DELETE FROM {table} WHERE {where}", gone)


def _write_log(connection: Connection, entries: Sequence[Entry], batch_id: str) -> None:
    connection.run_many(
        "INSERT INTO log (seq, at, actor_id, change, batch) VALUES (?, ?, ?, ?, ?)",
        [(e.seq, e.at, e.actor_id, encode_change(e.change), batch_id) for e in entries],
    )
    connection.run("UPDATE head SET seq = ?, batch = ? WHERE id = 1", (entries[-1].seq, batch_id))


Topics = frozenset[tuple[int, str]]
"""Channel and key."""


def _known_topics(batch: Batch) -> Topics:
    """Return topics of the batch's messages that existed before. Incomplete if the batch moves
    or deletes messages."""
    sent: dict[Key, int] = defaultdict(int)
    for entry in batch.entries:
        change = entry.change
        if isinstance(change, changes.MessageSent):
            if change.message.channel_id is not None:
                sent[change.message.channel_id, topic_key(change.message.topic)] += 1
        elif isinstance(change, changes.MessagesMoved | changes.MessagesDeleted):
            return frozenset()
    topics = batch.records.get("topics", {})
    return frozenset(
        place
        for place, number in sent.items()
        if (topic := topics.get(place)) is not None and topic.message_count > number
    )


def _write_entries(connection: Connection, entries: Sequence[Entry], known: Topics) -> None:
    """Write what the entries change in tables without records."""
    marks = _marks_of(entries)
    bitmaps.write(connection, bitmaps.READ, marks.of_read)
    bitmaps.write(connection, bitmaps.RECORDS, marks.of_records)
    # Messages and renames of their topics are written in the order of the entries.
    part: list[Entry] = []
    for entry in entries:
        last = part[-1].change if part else None
        goes_on = isinstance(entry.change, changes.MessagesDeleted)  # They are written together.
        if isinstance(last, changes.MessagesMoved) or (
            isinstance(last, changes.MessagesDeleted) and not goes_on
        ):
            _write_part(connection, part, known)
            part = []
        part.append(entry)
    if part:
        _write_part(connection, part, known)


def _write_part(connection: Connection, entries: Sequence[Entry], known: Topics) -> None:
    """Write entries of which only the last, or several deletions at the end, may change topics."""
    messages: list[tuple[int, changes.MessageSent]] = []
    flags: list[tuple[int, int, Flag, bool]] = []
    reactions: list[tuple[int, Reaction, bool]] = []
    submessages: list[Submessage] = []
    for entry in entries:
        change = entry.change
        match change:
            case changes.MessageSent():
                messages.append((entry.seq, change))
                mid = change.message.id
                flags.extend((user, mid, flag, True) for user, flag in change.flags.items())
                if change.widget is not None:
                    submessages.append(change.widget)
            case changes.FlagsChanged(user_id=user, recorded=recorded):
                flags.extend((user, mid, Flag.RECORD, True) for mid in recorded)
                flags.extend((user, mid, change.flag, change.added) for mid in change.message_ids)
            case changes.ReactionAdded(reaction=reaction):
                reactions.append((entry.seq, reaction, True))
                if change.recorded:
                    flags.append((reaction.user_id, reaction.message_id, Flag.RECORD, True))
            case changes.ReactionRemoved(reaction=reaction):
                reactions.append((entry.seq, reaction, False))
            case changes.SubmessageAdded(submessage=submessage):
                submessages.append(submessage)
            case changes.MessagesUnread(user_id=user, recorded=recorded):
                flags.extend((user, mid, Flag.RECORD, True) for mid in recorded)
            case changes.MessagesMoved():
                moved = change.ids
                flags.extend(
                    (user, mid, Flag.CHANNEL_WILDCARD_MENTIONED, True)
                    for some, users in change.mentioned
                    for mid in ids_of(some, moved)
                    for user in users
                )
            case changes.MessageEdited():
                mid = change.message.id
                flags.extend((u, mid, flag, False) for u, flag in change.unmentioned.items())
                flags.extend((u, mid, flag, True) for u, flag in change.mentioned.items())
            case _:
                pass
    if messages:
        _write_messages(connection, messages, known)
    for seq, reaction, added in reactions:
        _write_reaction(connection, seq, reaction, added)
    if submessages:
        connection.run_many(
            "INSERT INTO submessages (id, message_id, sender_id, kind, content)"
            " VALUES (?, ?, ?, ?, ?)",
            [(s.id, s.message_id, s.sender_id, s.kind, s.content) for s in submessages],
        )
    for added, some in groupby(flags, key=itemgetter(3)):
        if added:
            _add_flags(connection, [(user, mid, int(flag)) for user, mid, flag, _ in some])
            continue
        for user, mid, flag, _ in some:
            _remove_flag(connection, user, mid, flag)
    editing.write(connection, entries)


class _Marks:
    """Changes of bitmaps in order, by user: messages that are added (True) or removed (False)."""

    def __init__(self) -> None:
        self.of_read: dict[int, list[tuple[Chunks, bool]]] = defaultdict(list)
        self.of_records: dict[int, list[tuple[Chunks, bool]]] = defaultdict(list)

    def read(self, users: Iterable[int], ids: BitMap) -> None:
        self._mark(self.of_read, users, ids, added=True)

    def unread(self, user: int, ids: BitMap) -> None:
        self._mark(self.of_read, (user,), ids, added=False)

    def record(self, users: Iterable[int], ids: BitMap, *, added: bool) -> None:
        self._mark(self.of_records, users, ids, added=added)

    @staticmethod
    def _mark(
        marks: dict[int, list[tuple[Chunks, bool]]],
        users: Iterable[int],
        ids: BitMap,
        *,
        added: bool,
    ) -> None:
        mark = (bitmaps.by_chunk(ids), added)
        for user in users:
            marks[user].append(mark)


def _marks_of(entries: Sequence[Entry]) -> _Marks:
    marks = _Marks()
    for entry in entries:
        change = entry.change
        match change:
            case changes.MessageSent():
                if change.readers:
                    marks.read(change.readers, BitMap((change.message.id,)))
            case changes.FlagsChanged(user_id=user, recorded=recorded):
                if recorded:
                    marks.read((user,), BitMap(recorded))
            case changes.ReactionAdded(reaction=reaction):
                if change.recorded:
                    marks.read((reaction.user_id,), BitMap((reaction.message_id,)))
            case changes.MessagesRead(user_id=user):
                marks.read((user,), BitMap(change.message_ids))
            case changes.ReadStateImported():
                every = BitMap(range(change.first_id, change.last_id + 1))
                for some, users in change.groups:
                    marks.read(users, ids_of(some, every))
            case changes.MessagesUnread(user_id=user):
                marks.unread(user, BitMap([message.id for message in change.messages]))
            case changes.MessagesMoved():
                _mark_moved(change, marks)
            case _:
                pass
    return marks


def _mark_moved(change: changes.MessagesMoved, marks: _Marks) -> None:
    moved = change.ids
    for some, users in change.lost:
        marks.record(users, ids_of(some, moved), added=False)
    for some, users in change.marked_read:
        marks.read(users, ids_of(some, moved))
    for some, users in change.recorded:
        marks.record(users, ids_of(some, moved), added=True)


def _write_messages(
    connection: Connection, sent: Sequence[tuple[int, changes.MessageSent]], known: Topics
) -> None:
    messages = [change.message for _, change in sent]
    topics = [(message.channel_id, topic_key(message.topic)) for message in messages]
    first: dict[tuple[int, str], tuple[int, str]] = {}
    for (seq, change), (channel_id, key) in zip(sent, topics, strict=True):
        if channel_id is not None:
            first.setdefault((channel_id, key), (seq, change.message.topic))
    begun = [(seq, *topic, name) for topic, (seq, name) in first.items() if topic not in known]
    editing.begin_topics(connection, begun)
    connection.run_many(
        "INSERT INTO messages (id, sender_id, sent_at, channel_id, topic_id, topic_name, direct_id,"
        " content, rendered, client, has_link, has_image, has_attachment, is_me, mentions_all)"
        " VALUES (?, ?, ?, ?, (SELECT id FROM message_topics WHERE channel_id = ? AND key = ?),"
        f" {editing.OTHER_NAME}, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                m.id,
                m.sender_id,
                m.sent_at,
                m.channel_id,
                *topic,
                m.topic if m.channel_id is not None else None,
                *topic,
                m.direct_id,
                m.content,
                m.rendered,
                m.client,
                int(m.has_link),
                int(m.has_image),
                int(m.has_attachment),
                int(m.is_me),
                int(m.mentions_all),
            )
            for m, topic in zip(messages, topics, strict=True)
        ],
    )
    search_index.add(connection, ((m.id, m.content, m.channel_id, m.direct_id) for m in messages))


def _write_reaction(connection: Connection, seq: int, reaction: Reaction, added: bool) -> None:
    identity = (reaction.message_id, reaction.user_id, reaction.kind.value, reaction.code)
    if added:
        connection.run(
            "INSERT INTO reactions (message_id, user_id, kind, code, name, neutral, seq)"
            " VALUES (?, ?, ?, ?, ?, ?, ?)",
            (*identity, reaction.name, int(reaction.neutral), seq),
        )
        return
    connection.run(
        "DELETE FROM reactions WHERE message_id = ? AND user_id = ? AND kind = ? AND code = ?",
        identity,
    )


def _add_flags(connection: Connection, rows: Sequence[tuple[int, int, int]]) -> None:
    """Add flags. Each row is a user, a message, and flags."""
    connection.run_many(
        "INSERT INTO message_flags (user_id, message_id, flags) VALUES (?, ?, ?)"
        " ON CONFLICT (user_id, message_id)"
        " DO UPDATE SET flags = message_flags.flags | excluded.flags",
        rows,
    )


def _remove_flag(connection: Connection, user: int, mid: int, flag: Flag) -> None:
    connection.run(
        "UPDATE message_flags SET flags = flags & ~CAST(? AS BIGINT)"
        " WHERE user_id = ? AND message_id = ?",
        (int(flag), user, mid),
    )
    connection.run(
        "DELETE FROM message_flags WHERE user_id = ? AND message_id = ? AND flags = 0", (user, mid)
    )
