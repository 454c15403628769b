"""Drafts and saved snippets."""

from enum import StrEnum

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class DraftKind(StrEnum):
    NOTHING = "nothing"
    CHANNEL = "channel"
    DIRECT = "direct"


class SavedDraft(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An unfinished message."""

    id: int
    user_id: int
    """The author."""
    kind: DraftKind = DraftKind.NOTHING
    to: tuple[int, ...] = ()
    """The channel, or the people."""
    topic: str = ""
    content: str
    """Markdown source."""
    edited_at: UnixSeconds


class Snippet(Struct, frozen=True, kw_only=True):
    """A text that its owner reuses."""

    id: int
    user_id: int
    title: str
    content: str
    """Markdown source."""
    created_at: UnixSeconds


class DraftsCreated(Change, frozen=True, tag="drafts_created"):
    user_id: int
    drafts: tuple[SavedDraft, ...]


class DraftChanged(Change, frozen=True, tag="draft_changed"):
    user_id: int
    draft: SavedDraft


class DraftDeleted(Change, frozen=True, tag="draft_deleted"):
    """A draft was deleted. `unsynchronized` means that its author turned draft syncing off, which
    clients know from the setting."""

    user_id: int
    draft_id: int
    unsynchronized: bool = False


class SnippetCreated(Change, frozen=True, tag="snippet_created"):
    user_id: int
    snippet: Snippet


class SnippetChanged(Change, frozen=True, tag="snippet_changed"):
    user_id: int
    snippet: Snippet


class SnippetDeleted(Change, frozen=True, tag="snippet_deleted"):
    user_id: int
    snippet_id: int
