"""What one account keeps for writing: drafts and snippets."""

from enum import StrEnum

from msgspec import Struct

from tertulia.model.change import Change


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


class DraftsCreated(Change, frozen=True, tag="drafts_created"):
    """A user saved new drafts."""

    user_id: int
    drafts: tuple[SavedDraft, ...]


class DraftChanged(Change, frozen=True, tag="draft_changed"):
    """A draft was changed to this one."""

    user_id: int
    draft: SavedDraft


class DraftDeleted(Change, frozen=True, tag="draft_deleted"):
    """A draft was deleted. `unsynchronized`: because its author keeps none on the server any more,
    of which their clients hear by that setting."""

    user_id: int
    draft_id: int
    unsynchronized: bool = False


class SnippetCreated(Change, frozen=True, tag="snippet_created"):
    """A user saved a new snippet."""

    user_id: int
    snippet: Snippet


class SnippetChanged(Change, frozen=True, tag="snippet_changed"):
    """A snippet was changed to this one."""

    user_id: int
    snippet: Snippet


class SnippetDeleted(Change, frozen=True, tag="snippet_deleted"):
    """A snippet was deleted."""

    user_id: int
    snippet_id: int
