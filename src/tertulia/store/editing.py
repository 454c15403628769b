"""Writing edits, moves, and deletions of messages, and reading the data that they depend on."""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tertulia.model import changes
from tertulia.model.changes import Entry
from tertulia.model.channels import topic_key
from tertulia.model.messages import MessageEdit
from tertulia.model.ranges import ids_of
from tertulia.store import bitmaps, search_index
from tertulia.store.codec import OF_TOPIC
from tertulia.store.database import Connection
from tertulia.store.topics import RENAME_COLUMNS, RENAMES

_ids_decoder = msgspec.json.Decoder(list[int])

EDIT_COLUMNS = (
    "message_id, seq, at, user_id, was_content, was_rendered, was_topic, topic, was_channel_id,"
    " channel_id"
)
OTHER_NAME = (
    "NULLIF(CAST(? AS TEXT), (SELECT name FROM message_topics WHERE channel_id = ? AND key = ?))"
)
"""SQL for the value of `messages.topic_name`: the topic's name in this message, if it differs from
the topic's own. Three parameters: that name, and the topic's channel and key."""
KEPT_EDITS = 100
KEPT_BYTES = 4 * 1024 * 1024
"""The newest edits of a message that are kept, and their previous content and HTML. Older edits
are merged into one, which has the first content, and older moves into one."""
MAX_MERGED = 20
"""The most histories that are merged when messages move together, the longest ones first. Repeated
moves take turns, so histories can be a little longer than `KEPT_EDITS`."""
HISTORY_BYTES = 2 * 1024 * 1024
"""The most bytes of previous content and HTML in a page of a message's history."""
TEXT_SIZE = "COALESCE(OCTET_LENGTH(was_content) + OCTET_LENGTH(was_rendered), -1)"
"""SQL for the bytes of previous texts in an edit, or -1 if it didn't change the content."""
DEPENDENT = ("message_flags", "message_edits", "reactions", "submessages")
"""Tables with rows that belong to a message, by `message_id`."""


def write(connection: Connection, entries: Iterable[Entry]) -> None:
    """Write the entries' edits, moves, and deletions. Consecutive deletions share their
    statements."""
    deletions: list[changes.MessagesDeleted] = []
    for entry in entries:
        if isinstance(entry.change, changes.MessagesDeleted):
            deletions.append(entry.change)
            continue
        if deletions:
            _delete(connection, deletions)
            deletions = []
        match entry.change:
            case changes.MessageEdited():
                _write_content(connection, entry, entry.change)
            case changes.MessagesMoved():
                _write_place(connection, entry, entry.change)
            case _:
                pass
    _delete(connection, deletions)


def _write_content(connection: Connection, entry: Entry, change: changes.MessageEdited) -> None:
    message = change.message
    connection.run(
        "UPDATE messages SET content = ?, rendered = ?, has_link = ?, has_image = ?,"
        " has_attachment = ?, is_me = ?, mentions_all = ? WHERE id = ?",
        (
            message.content,
            message.rendered,
            int(message.has_link),
            int(message.has_image),
            int(message.has_attachment),
            int(message.is_me),
            int(message.mentions_all),
            message.id,
        ),
    )
    if change.rendering_only:
        return
    _write_edits(
        connection,
        entry,
        [message.id],
        was_content=change.was_content,
        was_rendered=change.was_rendered,
    )
    _merge_oldest_edits(connection, message.id)
    search_index.refresh(connection, [message.id])


def _merge_oldest_edits(connection: Connection, message_id: int) -> None:
    """Merge edits that aren't kept into one, from the content before the first to that after the
    last, and their moves into one. Edits before and after a move to another channel stay
    separate."""
    rows = connection.query(
        f"SELECT seq, {TEXT_SIZE}, was_topic, topic, was_channel_id, channel_id FROM message_edits"
        " WHERE message_id = ? ORDER BY seq DESC",
        (message_id,),
    )
    totals = itertools.accumulate(row[1] for row in rows)
    kept = sum(total <= KEPT_BYTES for total in itertools.islice(totals, KEPT_EDITS - 1))
    merged = rows[kept:][::-1]
    moves = [row for row in merged if row[2] is not None or row[4] is not None]
    edits = [row for row in merged if row[1] >= 0]
    # Readers of one channel must not see content that was written in another (`history_open`).
    arrived = max((row[0] for row in moves if row[4] is not None), default=0)
    before = [row for row in edits if row[0] < arrived]
    after = [row for row in edits if row[0] > arrived]
    # Each keeps its position, because a rename of the topic may be in between.
    lasts = [some[-1][0] for some in (moves, before, after) if some]
    if len(merged) < 2 or {row[0] for row in merged} == set(lasts):
        return
    if moves:
        connection.run(
            "UPDATE message_edits SET was_topic = ?, topic = ?, was_channel_id = ?, channel_id = ?"
            " WHERE message_id = ? AND seq = ?",
            (
                _first(row[2] for row in moves),
                _first(row[3] for row in reversed(moves)),
                _first(row[4] for row in moves),
                _first(row[5] for row in reversed(moves)),
                message_id,
                moves[-1][0],
            ),
        )
    for some in filter(None, (before, after)):
        of_first = "(SELECT {} FROM message_edits WHERE message_id = ? AND seq = ?)"
        connection.run(
            f"UPDATE message_edits SET was_content = {of_first.format('was_content')},"
            f" was_rendered = {of_first.format('was_rendered')} WHERE message_id = ? AND seq = ?",
            (*(message_id, some[0][0]) * 2, message_id, some[-1][0]),
        )
    gone = [row[0] for row in merged if row[0] not in lasts]
    dialect = connection.dialect
    connection.run(
        f"DELETE FROM message_edits WHERE message_id = ? AND {dialect.among('seq')}",
        (message_id, dialect.array(gone)),
    )


def _first(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


def begin_topics(connection: Connection, topics: Sequence[tuple[int, int, str, str]]) -> None:
    """Give topics an ID, the number of the entry that begins them, unless they have one. Each has
    that number, its channel, key, and name."""
    connection.run_many(
        "INSERT INTO message_topics (id, channel_id, key, name) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (channel_id, key) DO NOTHING",
        topics,
    )
    search_index.add_topics(connection, [(channel_id, key) for _, channel_id, key, _ in topics])


def _end_topics(connection: Connection, emptied: Iterable[tuple[int, str]]) -> None:
    for place in emptied:
        search_index.remove_topic(connection, *place)
        connection.run(
            "DELETE FROM topic_renames WHERE topic_id ="
            " (SELECT id FROM message_topics WHERE channel_id = ? AND key = ?)",
            place,
        )
        connection.run("DELETE FROM message_topics WHERE channel_id = ? AND key = ?", place)


def _rename_topic(connection: Connection, entry: Entry, change: changes.MessagesMoved) -> None:
    """Rename a topic with all of its messages, at the same cost for any number."""
    channel_id, key = change.channel_id, topic_key(change.topic)
    connection.run(
        "INSERT INTO topic_renames (topic_id, seq, at, user_id, was_topic, topic, last_message_id)"
        " SELECT id, ?, ?, ?, ?, ?, ? FROM message_topics WHERE channel_id = ? AND key = ?",
        (
            entry.seq,
            int(entry.at),
            entry.actor_id,
            change.topic,
            change.new_topic,
            change.ids.max(),
            channel_id,
            key,
        ),
    )
    _merge_oldest_renames(connection, channel_id, key)
    search_index.remove_topic(connection, channel_id, key)
    new_key = topic_key(change.new_topic)
    connection.run(
        "UPDATE message_topics SET key = ?, name = ?, renamed_until = ?, renamed_seq = ?"
        " WHERE channel_id = ? AND key = ?",
        (new_key, change.new_topic, change.ids.max(), entry.seq, channel_id, key),
    )
    search_index.add_topics(connection, [(channel_id, new_key)])


def _merge_oldest_renames(connection: Connection, channel_id: int, key: str) -> None:
    """Merge a topic's oldest renames into the first. Messages sent between these appear as sent
    after them."""
    newest = f"FROM topic_renames WHERE {OF_TOPIC} ORDER BY seq DESC LIMIT 1 OFFSET"
    older = connection.query(f"SELECT seq {newest} {KEPT_EDITS}", (channel_id, key))
    if not older:
        return
    ((first_kept, name),) = connection.query(
        f"SELECT seq, was_topic {newest} {KEPT_EDITS - 2}", (channel_id, key)
    )
    ((first,),) = connection.query(
        f"SELECT MIN(seq) FROM topic_renames WHERE {OF_TOPIC}", (channel_id, key)
    )
    connection.run(
        f"UPDATE topic_renames SET topic = ? WHERE {OF_TOPIC} AND seq = ?",
        (name, channel_id, key, first),
    )
    connection.run(
        f"DELETE FROM topic_renames WHERE {OF_TOPIC} AND seq > ? AND seq < ?",
        (channel_id, key, first, first_kept),
    )


def _write_place(connection: Connection, entry: Entry, change: changes.MessagesMoved) -> None:
    if change.renames:
        _rename_topic(connection, entry, change)
        return
    dialect = connection.dialect
    ids = change.message_ids
    there = change.new_channel_id, topic_key(change.new_topic)
    begin_topics(connection, [(entry.seq, *there, change.new_topic)])
    # Their history no longer follows from the topic that they leave.
    connection.run(
        f"INSERT INTO message_edits ({EDIT_COLUMNS})"
        f" SELECT {RENAME_COLUMNS} FROM {RENAMES} WHERE {dialect.among('messages.id')}"
        " ON CONFLICT DO NOTHING",
        (dialect.array(ids),),
    )
    mark = ", mentions_all = 0" if change.changes_channel else ""
    connection.run(
        "UPDATE messages SET channel_id = ?, topic_since = ?, topic_id ="
        " (SELECT id FROM message_topics WHERE channel_id = ? AND key = ?),"
        f" topic_name = {OTHER_NAME}{mark} WHERE {dialect.among('id')}",
        (
            *(change.new_channel_id, entry.seq, *there),
            *(change.new_topic, *there, dialect.array(ids)),
        ),
    )
    if change.changes_channel:
        search_index.move(connection, ids, change.new_channel_id)
    moved = change.ids
    for lost, user_ids in change.lost:
        # By messages only, because pairs would take a lookup for each user and message.
        connection.run(
            f"DELETE FROM message_flags WHERE {dialect.among('message_id')}"
            f" AND {dialect.among('+user_id')}",
            (dialect.array(ids_of(lost, moved)), dialect.array(user_ids)),
        )
    _write_edits(
        connection,
        entry,
        ids,
        was_topic=change.topic if change.changes_topic else None,
        topic=change.new_topic if change.changes_topic else None,
        was_channel_id=change.channel_id if change.changes_channel else None,
        channel_id=change.new_channel_id if change.changes_channel else None,
    )
    _end_topics(connection, change.emptied)
    for (message_id,) in connection.query(
        f"SELECT message_id FROM message_edits WHERE {dialect.among('message_id')}"
        f" GROUP BY message_id HAVING COUNT(*) > ? ORDER BY COUNT(*) DESC LIMIT {MAX_MERGED}",
        (dialect.array(ids), KEPT_EDITS),
    ):
        _merge_oldest_edits(connection, message_id)


def _write_edits(
    connection: Connection, entry: Entry, message_ids: Iterable[int], **values: Any
) -> None:
    names = ("was_content", "was_rendered", "was_topic", "topic", "was_channel_id", "channel_id")
    tail = tuple(values.get(name) for name in names)
    connection.run_many(
        f"INSERT INTO message_edits ({EDIT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [(mid, entry.seq, int(entry.at), entry.actor_id, *tail) for mid in message_ids],
    )


def _delete(connection: Connection, deletions: Sequence[changes.MessagesDeleted]) -> None:
    message_ids = [message_id for change in deletions for message_id in change.message_ids]
    if not message_ids:
        return
    dialect = connection.dialect
    ids = dialect.array(message_ids)
    search_index.remove(connection, message_ids)
    bitmaps.remove(connection, bitmaps.RECORDS, message_ids)
    for table in DEPENDENT:
        connection.run(f"DELETE FROM {table} WHERE {dialect.among('message_id')}", (ids,))
    connection.run(f"DELETE FROM messages WHERE {dialect.among('id')}", (ids,))
    _end_topics(connection, [place for change in deletions for place in change.emptied])


class HistoryPage(Struct, frozen=True):
    """A message's edits and moves, newest first. Only those of one page have their texts."""

    edits: list[MessageEdit]
    begin: int
    end: int
    """The end of the page, which is `edits[begin:end]`."""


def history(connection: Connection, message_id: int, before: int | None) -> HistoryPage:
    """Return the first page of a message's history, or the one before an entry."""
    rows = connection.query(
        "SELECT message_id, seq, at, user_id, NULL, NULL, was_topic, topic, was_channel_id,"
        f" channel_id, {TEXT_SIZE} FROM message_edits WHERE message_id = ?"
        f" UNION ALL SELECT {RENAME_COLUMNS}, -1 FROM {RENAMES} WHERE messages.id = ?"
        " ORDER BY seq DESC",
        (message_id, message_id),
    )
    edits = [edit_of(row[:-1]) for row in rows]
    sizes = [row[-1] for row in rows]
    begin = 0 if before is None else sum(edit.seq >= before for edit in edits)
    totals = itertools.accumulate(sizes[begin:])
    end = begin + max(sum(total <= HISTORY_BYTES for total in totals), 1)
    # The next edit of the content has the newest version on this page.
    newer = next((index for index in reversed(range(begin)) if sizes[index] >= 0), begin)
    shown = [*edits[newer : newer + 1], *edits[begin:end]]
    texts = texts_before(connection, [message_id], [edit.seq for edit in shown])
    for index, edit in enumerate(edits):
        if text := texts.get((message_id, edit.seq)):
            edits[index] = replace(edit, was_content=text[0], was_rendered=text[1])
    return HistoryPage(edits, begin, end)


def edit_of(row: Sequence[Any]) -> MessageEdit:
    return MessageEdit(**dict(zip(MessageEdit.__struct_fields__, row, strict=False)))


def texts_before(
    connection: Connection, message_ids: Sequence[int], seqs: Sequence[int]
) -> dict[tuple[int, int], tuple[str, str]]:
    """Return the source and HTML of these messages before these entries, by message and entry."""
    dialect = connection.dialect
    rows = connection.query(
        "SELECT message_id, seq, was_content, was_rendered FROM message_edits"
        f" WHERE {dialect.among('message_id')} AND {dialect.among('seq')}"
        " AND was_content IS NOT NULL",
        (dialect.array(message_ids), dialect.array(seqs)),
    )
    return {(mid, seq): (content, rendered) for mid, seq, content, rendered in rows}


def contents_before(
    connection: Connection, message_ids: Sequence[int], seqs: Sequence[int]
) -> dict[int, tuple[str, str]]:
    """Return a message's source and HTML before each of these entries."""
    result = texts_before(connection, message_ids, seqs)
    rows = [(seq, *texts) for (_, seq), texts in result.items()]
    return {seq: (content, rendered) for seq, content, rendered in rows}


def written_by(
    connection: Connection, user_id: int, after: int, limit: int
) -> list[tuple[int, int | None, int | None, int | None]]:
    """Return up to `limit` messages of a user after an ID, ascending, each with its channel,
    direct conversation, and topic ID."""
    return connection.query(
        "SELECT id, channel_id, direct_id, topic_id FROM messages"
        f" WHERE sender_id = ? AND id > ? ORDER BY id LIMIT {int(limit)}",
        (user_id, after),
    )


def older_than(
    connection: Connection, channel_id: int | None, before: int, limit: int
) -> list[list[int]]:
    """Return messages of a channel (None: direct messages) that were sent before a UNIX time, by
    conversation, from its `limit` oldest.

    The oldest are those with the lowest IDs. If a clock was set back, a later message may have an
    earlier time. It is found once those before it are old enough.
    """
    column, where, parameters = "direct_id", "direct_id IS NOT NULL", list[Any]()
    if channel_id is not None:
        column, where, parameters = "topic_id", "channel_id = ?", [channel_id]
    result: dict[Any, list[int]] = defaultdict(list)
    for conversation, message_id, sent_at in connection.query(
        f"SELECT {column}, id, sent_at FROM messages WHERE {where} ORDER BY id LIMIT {int(limit)}",
        parameters,
    ):
        if sent_at < before:
            result[conversation].append(message_id)
    return list(result.values())


def first_without(
    connection: Connection, channel_id: int, message_ids: Iterable[int]
) -> int | None:
    """Return the oldest other message of a channel."""
    dialect = connection.dialect
    ((result,),) = connection.query(
        f"SELECT MIN(id) FROM messages WHERE channel_id = ? AND NOT ({dialect.among('id')})",
        (channel_id, dialect.array(message_ids)),
    )
    return result  # type: ignore[no-any-return]  # a column of integers


def last_direct_without(connection: Connection, direct_id: int, message_ids: Iterable[int]) -> int:
    """Return the newest other message of a direct conversation, or 0."""
    dialect = connection.dialect
    ((result,),) = connection.query(
        f"SELECT MAX(id) FROM messages WHERE direct_id = ? AND NOT ({dialect.among('id')})",
        (direct_id, dialect.array(message_ids)),
    )
    return result or 0
