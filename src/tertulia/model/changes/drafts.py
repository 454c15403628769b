"""Drafts and snippets."""

from tertulia.model.changes.base import Change
from tertulia.model.drafts import SavedDraft, Snippet


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
