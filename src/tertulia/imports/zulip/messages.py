"""The messages of a Zulip export. Each file has at most 1,000 of them."""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from tertulia.imports.records import (
    Key,
    SourceAttachment,
    SourceEdit,
    SourceMessage,
    SourceReaction,
    SourceReminder,
    SourceSubmessage,
)
from tertulia.imports.source import MessageBatch, SourceError
from tertulia.imports.zulip.links import LocalLinks
from tertulia.imports.zulip.organization import attachment, reminders
from tertulia.imports.zulip.realm import ExportedRealm
from tertulia.imports.zulip.rows import Row, clean, number, seconds, text, valid
from tertulia.imports.zulip.subscriptions import HISTORICAL, Conversations
from tertulia.imports.zulip.tables import message_files, tables
from tertulia.model.messages import Flag
from tertulia.model.reactions import EXTRA_NAMES, EmojiKind

BATCH: Final = 500
MAX_MESSAGES: Final = 100_000
"""In a file: Zulip writes 1,000."""
MAX_EDITS: Final = 1000
"""Edits of one message that come along: the newest."""
MAX_REACTIONS: Final = 10_000
"""Of one message."""
READ: Final = 1
_FLAGS: Final = {
    1 << 1: Flag.STARRED,
    1 << 2: Flag.COLLAPSED,
    1 << 3: Flag.MENTIONED,
    1 << 4: Flag.CHANNEL_WILDCARD_MENTIONED,
    1 << 5: Flag.TOPIC_WILDCARD_MENTIONED,
    1 << 6: Flag.MENTIONED,  # By a group.
    1 << 9: Flag.HAS_ALERT_WORD,
    HISTORICAL: Flag.RECORD,
}
_FLAGGED: Final = sum(_FLAGS)
_KINDS: Final = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
}
_CODES: Final = {
    EmojiKind.UNICODE: re.compile(r"[0-9a-f]{2,8}(?:-[0-9a-f]{2,8}){0,15}"),
    EmojiKind.CUSTOM: re.compile(r"[0-9]{1,15}"),
    EmojiKind.EXTRA: re.compile("|".join(EXTRA_NAMES)),
}
_MAX_EMOJI_NAME: Final = 100
_FIELDS: Final = frozenset(
    {
        *("id", "sender", "recipient", "realm", "type", "subject", "content", "rendered_content"),
        *("rendered_content_version", "date_sent", "sending_client", "last_edit_time"),
        *("edit_history", "has_attachment", "has_image", "has_link", "is_channel_message"),
        *("search_tsvector", "sender_realm", "last_moved_time", "topic"),
    }
)


class _Readers(Struct):
    """What its readers have done with a message."""

    unread_by: list[int] = field(default_factory=list)
    flags: dict[Key, Flag] = field(default_factory=dict)


class _MessageFile(Struct):
    messages: list[Row]
    """Ascending by ID."""
    readers: dict[int, _Readers]
    """By message. Messages that everyone has read needn't have an entry."""


class MessageReader:
    """Reads the messages of an export, file by file."""

    def __init__(self, realm: ExportedRealm, directory: Path, conversations: Conversations) -> None:
        self._realm = realm
        self._report = realm.report
        self._directory = directory
        self._conversations = conversations
        self._links = LocalLinks(realm.host)
        self._clients = {
            number(row, "id"): text(row, "name")[:100] for row in realm.rows("zerver_client")
        }
        self._people = {
            row["id"]: row["id"]
            for table in ("zerver_userprofile", "zerver_userprofile_mirrordummy")
            for row in realm.rows(table)
            if number(row, "id") is not None
        }
        """Their IDs, so that a user is the same object in each row."""
        self._people.update((key, key) for key in conversations.system_bots)
        self._reminders: dict[int, list[SourceReminder]] = defaultdict(list)
        for message, reminder in reminders(realm):
            self._reminders[message].append(reminder)
        self._noted: set[str] = set()

    def batches(self, after: str) -> Iterator[MessageBatch]:
        """Yield the messages after that position: a file's number, and how many of its messages
        came before."""
        first, offset = _parsed(after)
        last_id = 0
        for n, path in enumerate(message_files(self._directory), 1):
            if n < first:
                continue
            file = self._read(path)
            start = offset if n == first else 0
            for begin in range(start, len(file.messages), BATCH):
                rows = file.messages[begin : begin + BATCH]
                if rows[0]["id"] <= last_id:
                    self._report.change(
                        "messages",
                        "They aren't in order in the export, so their IDs changed.",
                        path.name,
                        len(rows),
                    )
                last_id = rows[-1]["id"]
                yield MessageBatch(self._messages(rows, file), f"{n}:{begin + len(rows)}")

    def _read(self, path: Path) -> _MessageFile:
        messages: list[Row] = []
        readers: dict[int, _Readers] = {}
        is_reversed = False
        for table, rows in tables(path):
            if table == "zerver_message":
                self._note_fields(rows)
                messages += valid(rows, "messages", ("sender", "recipient"), self._report)
                if len(messages) > MAX_MESSAGES:
                    raise SourceError(
                        f"{path.name} has more than {MAX_MESSAGES:,} messages. Zulip writes 1,000"
                        " into a file."
                    )
                readers.update((row["id"], _Readers()) for row in messages[-len(rows) :])
            elif table == "zerver_usermessage":
                if rows and not messages:
                    is_reversed = True
                self._read_flags(rows, readers)
        if is_reversed:
            for table, rows in tables(path):
                if table == "zerver_usermessage":
                    self._read_flags(rows, readers)
        messages.sort(key=lambda row: row["id"])
        return _MessageFile(messages, readers)

    def _read_flags(self, rows: Sequence[Any], readers: dict[int, _Readers]) -> None:
        """Note what isn't just read. There are a row for each message and reader, so this is
        short."""
        for row in rows:
            try:
                mask = row["flags_mask"]
                flags = mask & _FLAGGED
                if mask & READ and not flags:
                    continue
                found = readers.get(row["message"])
                user = self._people.get(row["user_profile"])
            except (KeyError, TypeError):
                self._report.skip(
                    "flags", "A row of the export lacks a field, or has the wrong type.", row
                )
                continue
            if found is None:
                continue
            if user is None:
                self._report.skip("flags", "The person isn't in the export.", row)
                continue
            if not mask & READ and not mask & HISTORICAL:
                found.unread_by.append(user)
            if flags:
                found.flags[user] = _flags(flags)

    def _messages(self, rows: Sequence[Row], file: _MessageFile) -> tuple[SourceMessage, ...]:
        between = rows[0]["id"], rows[-1]["id"]
        known = {row["id"] for row in rows}
        reactions = self._reactions(between, known)
        attachments: dict[int, list[SourceAttachment]] = defaultdict(list)
        for one in self._realm.scratch.of_messages("attachments", *between):
            if one[0] in known:
                attachments[one[0]].append(attachment(one))
        submessages: dict[int, list[SourceSubmessage]] = defaultdict(list)
        for message, user, kind, content in self._realm.scratch.of_messages(
            "submessages", *between
        ):
            if message in known:
                submessages[message].append(SourceSubmessage(user, kind, content))
        found = []
        for row in rows:
            key, sender, recipient = row["id"], row["sender"], row["recipient"]
            channel = self._conversations.channel(recipient)
            topic = _topic(row, "subject")
            readers = file.readers[key]
            found.append(
                SourceMessage(
                    key=key,
                    sender=sender,
                    sent_at=seconds(row, "date_sent"),
                    channel=channel,
                    topic=topic if channel is not None else "",
                    people=self._conversations.people(recipient, sender),
                    content=self._links.of_message(text(row, "content")),
                    client=self._clients.get(number(row, "sending_client"), ""),
                    edits=tuple(self._edits(row, topic)),
                    reactions=tuple(reactions.get(key, ())),
                    submessages=tuple(submessages.get(key, ())),
                    flags=readers.flags,
                    unread_by=tuple(readers.unread_by),
                    attachments=tuple(attachments.get(key, ())),
                    reminders=tuple(self._reminders.get(key, ())),
                )
            )
        return tuple(found)

    def _reactions(
        self, between: tuple[int, int], known: set[int]
    ) -> Mapping[int, Iterable[SourceReaction]]:
        found: dict[int, dict[tuple[int, str, str], SourceReaction]] = defaultdict(dict)
        for message, user, kind, code, name in self._realm.scratch.of_messages(
            "reactions", *between
        ):
            if message not in known:
                continue
            ours = _KINDS.get(kind)
            if ours is None or not _CODES[ours].fullmatch(code) or len(name) > _MAX_EMOJI_NAME:
                self._report.skip("reactions", "The emoji doesn't exist.", name)
            elif len(found[message]) >= MAX_REACTIONS:
                self._report.skip(
                    "reactions", f"Messages can have at most {MAX_REACTIONS:,}.", message
                )
            else:
                found[message].setdefault(
                    (user, kind, code), SourceReaction(user, ours, code, name)
                )
        return {message: some.values() for message, some in found.items()}

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
        for one in history[:MAX_EDITS]:
            if not isinstance(one, dict) or not seconds(one, "timestamp"):
                self._report.skip("edits", "The history can't be read.", row["id"])
                continue
            content = one.get("prev_content")
            was_topic = None
            # Until 2022, edits had only what was before.
            before = "prev_topic" if "prev_topic" in one else "prev_subject"
            after = None
            if before in one:
                after = _topic(one, "topic") if "topic" in one else topic
                topic = was_topic = _topic(one, before)
            edits.append(
                SourceEdit(
                    at=seconds(one, "timestamp"),
                    user=number(one, "user_id"),
                    was_content=self._links.local(clean(content))
                    if isinstance(content, str)
                    else None,
                    was_topic=was_topic,
                    topic=after,
                    was_channel=number(one, "prev_stream"),
                    channel=number(one, "stream"),
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
    found = Flag(0)
    for bit, one in _FLAGS.items():
        if mask & bit:
            found |= one
    return found


def _topic(row: Row, name: str) -> str:
    topic = text(row, name)
    return "" if topic == "(no topic)" else topic


def _parsed(position: str) -> tuple[int, int]:
    file, _, offset = position.partition(":")
    return (int(file), int(offset)) if position else (1, 0)
