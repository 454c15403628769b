"""The conversations of an export, and the directories of their messages."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import Struct

from tertulia.imports.report import ImportReport
from tertulia.imports.slack import values
from tertulia.imports.slack.values import Record, text, texts
from tertulia.imports.source import SourceError

MAX_LIST: Final = 256 * 1024 * 1024
"""Largest file such as `users.json`, in bytes."""
FILES: Final[tuple[tuple[str, "ConversationKind"], ...]] = (
    ("channels.json", "channel"),
    ("groups.json", "private"),
    ("mpims.json", "direct"),
    ("dms.json", "direct"),
)
_NOT_CONVERSATIONS: Final = frozenset(
    {"__uploads", "__avatars", "attachments", "emojis", "emoji", "__MACOSX", "canvases", "lists"}
)
ConversationKind = Literal["channel", "private", "direct"]


class SlackConversation(Struct, frozen=True, kw_only=True):
    number: int
    id: str
    name: str
    kind: ConversationKind
    directory: str
    """The directory, relative to the export; empty if the export has no messages of this
    conversation."""
    record: Any
    """The record in the export."""

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(texts(self.record, "members")))

    @property
    def is_direct(self) -> bool:
        return self.kind == "direct"


def listed(root: Path, name: str) -> list[Record]:
    """Return the objects in one of the export's lists; empty if the file doesn't exist. Raises
    SourceError."""
    path = root / name
    if not path.is_file() or path.is_symlink():
        return []
    if path.stat().st_size > MAX_LIST:
        raise SourceError(f"{name} is larger than {MAX_LIST >> 20} MiB.")
    try:
        decoded = values.decoded(path.read_bytes(), values.ANYTHING)
    except ValueError:
        raise SourceError(f"{name} isn't valid JSON. The export may be incomplete.") from None
    if not isinstance(decoded, list):
        raise SourceError(f"{name} isn't a list. The export may be incomplete.")
    return [value for value in decoded if isinstance(value, dict)]


def conversations(root: Path) -> list[SlackConversation]:
    """Return all conversations, in the export's order. Raises SourceError."""
    if not any((root / name).is_file() for name, _ in FILES):
        raise SourceError(
            "The export has no channels.json, so it isn't a Slack export. Choose the ZIP file"
            " that Slack made, or its directory."
        )
    directories = {entry.name for entry in os.scandir(root) if entry.is_dir(follow_symlinks=False)}
    conversations: list[SlackConversation] = []
    seen: set[str] = set()
    taken: set[str] = set()
    for file, kind in FILES:
        for fields in listed(root, file):
            key, name = text(fields, "id"), text(fields, "name")
            if not key or key in seen:
                continue
            seen.add(key)
            places = [place for place in (key, name) if place in directories and place not in taken]
            place = places[-1] if places else ""
            taken |= {place} - {""}
            is_private = kind == "channel" and fields.get("is_private") is True
            conversations.append(
                SlackConversation(
                    number=len(conversations) + 1,
                    id=key,
                    name=name or key,
                    kind="private" if is_private else kind,
                    directory=place,
                    record=fields,
                )
            )
    return conversations


def report_directories(
    root: Path, conversations: list[SlackConversation], report: ImportReport
) -> None:
    """Report the directories of messages that no list mentions."""
    known = {conversation.directory for conversation in conversations} | _NOT_CONVERSATIONS
    for path in sorted(root.iterdir()):
        if path.is_dir() and path.name not in known:
            number = sum(1 for item in path.iterdir() if item.suffix == ".json")
            if number:
                report.skip("conversations", "The export's lists don't mention it.", path.name)
    for name, reason in _LEFT_OUT.items():
        if (root / name).exists():
            report.skip(name, reason)


def pinned_times(channel: Record) -> Iterator[int]:
    """Yield the times of pinned messages, in microseconds."""
    for record in values.records(channel, "pins"):
        if text(record, "type") == "C":
            yield values.microseconds(record.get("id"))


_LEFT_OUT: Final = {
    "integration_logs.json": "Apps have to be set up again, so the log of their setup isn't"
    " needed.",
    "canvases.json": "Canvases aren't supported. Files of canvases in messages are imported.",
    "lists.json": "Lists aren't supported.",
    "huddle_transcripts.json": "Transcripts of huddles aren't imported.",
    "file_conversations.json": "Comments on canvases and lists aren't imported.",
}
