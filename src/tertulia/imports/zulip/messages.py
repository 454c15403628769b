"""The messages of a Zulip export. Each file has at most 1,000 of them."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from operator import itemgetter
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field
from pyroaring import BitMap

from tertulia.imports.records import (
    MAX_REACTIONS,
    SourceAttachment,
    SourceEdit,
    SourceMessage,
    SourceReaction,
    SourceReminder,
    SourceSubmessage,
)
from tertulia.imports.source import BATCH, BATCH_BYTES, MessageBatch, SourceError
from tertulia.imports.zulip.former_names import names_in
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.organization import attachment, clients, reminders
from tertulia.imports.zulip.realm import ExportedRealm
from tertulia.imports.zulip.rows import EMOJI_KINDS, Row, clean, flag, number, seconds, text, valid
from tertulia.imports.zulip.subscriptions import HISTORICAL, Conversations
from tertulia.imports.zulip.tables import (
    IgnoredRow,
    ReaderRow,
    RowTypes,
    message_files,
    tables,
)
from tertulia.model.messages import Flag
from tertulia.model.reactions import EXTRA_NAMES, EmojiKind

MAX_MESSAGES: Final = 100_000
"""The most messages in a file. Zulip writes 1,000."""
_LONG: Final = ("content", "edit_history")
READ: Final = 1
_FLAGS: Final = {
    1 << 1: Flag.STARRED,
    1 << 2: Flag.COLLAPSED,
    1 << 3: Flag.MENTIONED,
    1 << 4: Flag.CHANNEL_WILDCARD_MENTIONED,
    1 << 5: Flag.TOPIC_WILDCARD_MENTIONED,
    1 << 6: Flag.MENTIONED,  # Mentioned by a group.
    1 << 9: Flag.HAS_ALERT_WORD,
    HISTORICAL: Flag.RECORD,
}
_FLAGGED: Final = sum(_FLAGS)
_ID: Final = itemgetter("id")
_CODES: Final = {
    EmojiKind.UNICODE: re.compile(r"[0-9a-f]{2,8}(?:-[0-9a-f]{2,8}){0,15}"),
    EmojiKind.CUSTOM: re.compile(r"[0-9]{1,15}"),
    EmojiKind.EXTRA: re.compile("|".join(EXTRA_NAMES)),
}
_MAX_EMOJI_NAME: Final = 100
_READER_TYPES: Final[RowTypes] = {"zerver_message": IgnoredRow, "zerver_usermessage": ReaderRow}
_FIELDS: Final = frozenset(
    {
        *("id", "sender", "recipient", "realm", "type", "subject", "content", "rendered_content"),
        *("rendered_content_version", "date_sent", "sending_client", "last_edit_time"),
        *("edit_history", "has_attachment", "has_image", "has_link", "is_channel_message"),
        *("search_tsvector", "sender_realm", "last_moved_time", "topic"),
    }
)


class _Readers(Struct):
    """The flags that readers have on a message, except having read it. Readers are positions in the
    list of people, since a message can have 100,000."""

    unread_by: BitMap = field(default_factory=BitMap)
    flags: dict[int, BitMap] = field(default_factory=dict)
    """The readers with each combination of flags."""

    @property
    def size(self) -> int:
        """Return the size of the flags in a batch, in bytes."""
        return 8 * len(self.unread_by) + 100 * sum(map(len, self.flags.values()))


_NO_READERS: Final = _Readers()


class MessageReader:
    """Reads the messages of an export, file by file."""

    def __init__(self, realm: ExportedRealm, directory: Path, conversations: Conversations) -> None:
        self._realm = realm
        self._report = realm.report
        self._directory = directory
        self._conversations = conversations
        self._links = LocalLinks(realm.host)
        self._clients = clients(realm)
        self._people = [
            *(
                row["id"]
                for table in ("zerver_userprofile", "zerver_userprofile_mirrordummy")
                for row in realm.rows(table)
                if number(row, "id") is not None
            ),
            *conversations.system_bots,
        ]
        self._positions = {key: n for n, key in enumerate(self._people)}
        self._reminders: dict[int, list[SourceReminder]] = defaultdict(list)
        for message, reminder in reminders(realm):
            self._reminders[message].append(reminder)
        self._has_parts = realm.has_submessages
        self._noted: set[str] = set()

    def batches(self, after: str) -> Iterator[MessageBatch]:
        """Yield the messages after the position: a file's number, and the number of its messages
        that came before."""
        first, offset = _parsed(after)
        last_id = 0
        for n, path in enumerate(message_files(self._directory), 1):
            if n < first:
                continue
            readers = self._readers(path)
            position = 0
            for rows in self._batches(path, readers):
                position += len(rows)
                if n == first and position <= offset:
                    last_id = rows[-1]["id"]
                    self._report.taken()  # These remarks were stored with the messages.
                    continue
                if rows[0]["id"] <= last_id:
                    self._report.change(
                        "messages",
                        "They aren't in order in the export, so their IDs changed.",
                        path.name,
                        len(rows),
                    )
                last_id = rows[-1]["id"]
                yield MessageBatch(self._messages(rows, readers), f"{n}:{position}")

    def _batches(self, path: Path, readers: Mapping[int, _Readers]) -> Iterator[list[Row]]:
        """Yield the rows of messages, in batches of bounded number and size."""
        batch: list[Row] = []
        size = 0
        for table, rows in tables(path, {"zerver_usermessage": IgnoredRow}):
            if table != "zerver_message":
                continue
            self._note_fields(rows)
            for row in valid(rows, "messages", ("sender", "recipient"), self._report):
                length = sum(len(v) for name in _LONG if isinstance(v := row.get(name), str | list))
                length += readers.get(row["id"], _NO_READERS).size
                if batch and (len(batch) >= BATCH or size + length > BATCH_BYTES):
                    yield sorted(batch, key=_ID)
                    batch, size = [], 0
                batch.append(row)
                size += length
        if batch:
            yield sorted(batch, key=_ID)

    def _readers(self, path: Path) -> dict[int, _Readers]:
        """Return the readers by message that have other flags than read. A file has a row for each
        message and reader, so this is short."""
        readers_of: dict[int, _Readers] = defaultdict(_Readers)
        for table, rows in tables(path, _READER_TYPES):
            if table != "zerver_usermessage":
                continue
            for row in rows:
                mask = row.flags_mask if type(row) is ReaderRow else -1
                if not mask & READ or mask & _FLAGGED:
                    self._note_reader(row, readers_of)
            if len(readers_of) > MAX_MESSAGES:
                raise SourceError(
                    f"{path.name} has more than {MAX_MESSAGES:,} messages. Zulip writes 1,000 into"
                    " a file."
                )
        return readers_of

    def _note_reader(self, row: Any, readers_of: dict[int, _Readers]) -> None:
        if not isinstance(row, ReaderRow):
            self._report.skip(
                "flags", "A row of the export lacks a field, or has the wrong type.", row
            )
            return
        position = self._positions.get(row.user_profile)
        if position is None:
            self._report.skip("flags", "The person isn't in the export.", row)
            return
        readers, flags = readers_of[row.message], row.flags_mask & _FLAGGED
        if not row.flags_mask & READ:
            readers.unread_by.add(position)
        if flags:
            readers.flags.setdefault(flags, BitMap()).add(position)

    def _messages(
        self, rows: Sequence[Row], readers: Mapping[int, _Readers]
    ) -> tuple[SourceMessage, ...]:
        keys = [row["id"] for row in rows]
        reactions = self._reactions(keys)
        attachments: dict[int, list[SourceAttachment]] = defaultdict(list)
        for record in self._realm.scratch.of_messages("attachments", keys):
            attachments[record[0]].append(attachment(record))
        parts: dict[int, list[SourceSubmessage]] = defaultdict(list)
        for message, user, kind, content in self._realm.scratch.of_messages("submessages", keys):
            parts[message].append(SourceSubmessage(user, kind, content))
        messages = []
        for row in rows:
            key, sender, recipient = row["id"], row["sender"], row["recipient"]
            channel = self._conversations.channel(recipient)
            topic = _topic(row, "subject")
            message_readers = readers.get(key, _NO_READERS)
            messages.append(
                SourceMessage(
                    key=key,
                    sender=sender,
                    sent_at=seconds(row, "date_sent"),
                    channel=channel,
                    topic=topic if channel is not None else "",
                    people=self._conversations.people(recipient, sender),
                    content=self._links.of_message(text(row, "content")),
                    names=names_in(row.get("content"), row.get("rendered_content")),
                    client=self._clients.get(number(row, "sending_client"), ""),
                    edits=tuple(self._edits(row, topic)),
                    reactions=tuple(reactions.get(key, ())),
                    submessages=tuple(parts.get(key, ())) if self._has_parts else None,
                    flags={
                        self._people[n]: _flags(mask)
                        for mask, positions in message_readers.flags.items()
                        for n in positions
                    },
                    flags_wildcards=True,
                    unread_by=tuple(self._people[n] for n in message_readers.unread_by),
                    attachments=tuple(attachments.get(key, ())),
                    has_attachment=flag(row, "has_attachment"),
                    reminders=tuple(self._reminders.get(key, ())),
                )
            )
        return tuple(messages)

    def _reactions(self, keys: Sequence[int]) -> Mapping[int, Iterable[SourceReaction]]:
        reactions: dict[int, dict[tuple[int, str, str], SourceReaction]] = defaultdict(dict)
        for message, user, kind, code, name in self._realm.scratch.of_messages("reactions", keys):
            ours = EMOJI_KINDS.get(kind)
            if ours is None or not _CODES[ours].fullmatch(code) or len(name) > _MAX_EMOJI_NAME:
                self._report.skip("reactions", "The emoji doesn't exist.", name)
            elif len(reactions[message]) >= MAX_REACTIONS:
                self._report.skip(
                    "reactions", f"Messages can have at most {MAX_REACTIONS:,}.", message
                )
            else:
                reactions[message].setdefault(
                    (user, kind, code), SourceReaction(user, ours, code, name)
                )
        return {message: some.values() for message, some in reactions.items()}

    def _edits(self, row: Row, topic: str) -> Iterator[SourceEdit]:
        """Yield a message's edits, oldest first. The export has the newest first."""
        given = row.get("edit_history")
        if not given:
            return
        try:
            history = json.loads(given) if isinstance(given, str) else given
        except (ValueError, RecursionError):
            history = None
        if not isinstance(history, list):
            self._report.skip("edits", "The history can't be read.", row["id"])
            return
        edits = []
        for entry in history:
            if not isinstance(entry, dict) or not seconds(entry, "timestamp"):
                self._report.skip("edits", "The history can't be read.", row["id"])
                continue
            content = entry.get("prev_content")
            was_topic = None
            # Until 2022, edits had only the previous values.
            before = "prev_topic" if "prev_topic" in entry else "prev_subject"
            after = None
            if before in entry:
                after = _topic(entry, "topic") if "topic" in entry else topic
                topic = was_topic = _topic(entry, before)
            edits.append(
                SourceEdit(
                    at=seconds(entry, "timestamp"),
                    user=number(entry, "user_id"),
                    was_content=self._links.local(clean(content))
                    if isinstance(content, str)
                    else None,
                    was_names=names_in(content, entry.get("prev_rendered_content")),
                    was_topic=was_topic,
                    topic=after,
                    was_channel=number(entry, "prev_stream"),
                    channel=number(entry, "stream"),
                )
            )
        yield from reversed(edits)

    def _note_fields(self, rows: Sequence[Any]) -> None:
        if rows and isinstance(rows[0], dict):
            for name in rows[0].keys() - _FIELDS - self._noted:
                self._noted.add(name)
                self._report.skip(
                    "fields", "Tertulia doesn't know this field.", f"zerver_message.{name}"
                )


@cache
def _flags(mask: int) -> Flag:
    flags = Flag(0)
    for bit, bit_flag in _FLAGS.items():
        if mask & bit:
            flags |= bit_flag
    return flags


def _topic(row: Row, name: str) -> str:
    topic = text(row, name)
    return "" if topic == "(no topic)" else topic


def _parsed(position: str) -> tuple[int, int]:
    file, _, offset = position.partition(":")
    return (int(file), int(offset)) if position else (1, 0)
