"""What one account keeps for writing: drafts and snippets."""

from enum import StrEnum

from msgspec import Struct


class DraftKind(StrEnum):
    """To what a draft is addressed."""

    NOTHING = "nothing"
    CHANNEL = "channel"
    DIRECT = "direct"


class SavedDraft(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that its author has not finished."""

    id: int
    user_id: int
    """The author."""
    kind: DraftKind = DraftKind.NOTHING
    to: tuple[int, ...] = ()
    """The channel, or the people."""
    topic: str = ""
    content: str
    """Markdown source."""
    edited_at: int
    """UNIX seconds."""


class Snippet(Struct, frozen=True, kw_only=True):
    """A text that its owner writes again and again."""

    id: int
    user_id: int
    title: str
    content: str
    """Markdown source."""
    created_at: int
    """UNIX seconds."""
