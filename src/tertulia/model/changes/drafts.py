"""Drafts and snippets."""

from tertulia.model.changes.base import Change
from tertulia.model.drafts import SavedDraft, Snippet


class DraftsCreated(Change, frozen=True, tag="drafts_created"):
    """An author keeps new drafts."""

    user_id: int
    drafts: tuple[SavedDraft, ...]


class DraftChanged(Change, frozen=True, tag="draft_changed"):
    """A draft is as it is here."""

    user_id: int
    draft: SavedDraft


class DraftDeleted(Change, frozen=True, tag="draft_deleted"):
    """A draft is gone."""

    user_id: int
    draft_id: int


class SnippetCreated(Change, frozen=True, tag="snippet_created"):
    """Somebody keeps a new snippet."""

    user_id: int
    snippet: Snippet


class SnippetChanged(Change, frozen=True, tag="snippet_changed"):
    """A snippet is as it is here."""

    user_id: int
    snippet: Snippet


class SnippetDeleted(Change, frozen=True, tag="snippet_deleted"):
    """A snippet is gone."""

    user_id: int
    snippet_id: int
