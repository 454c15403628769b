"""Drafts and snippets on the wire."""

from typing import Final

from msgspec import Struct

from tertulia.model.drafts import DraftKind, SavedDraft, Snippet

DRAFT_TYPES: Final = {
    DraftKind.NOTHING: "",
    DraftKind.CHANNEL: "stream",
    DraftKind.DIRECT: "private",
}
"""What clients call the kinds of drafts."""


class DraftObject(Struct, kw_only=True):
    """A draft. `to` is one channel ID, or user IDs, or empty, by `type`."""

    id: int
    type: str
    to: list[int]
    topic: str
    content: str
    timestamp: int


class SnippetObject(Struct, kw_only=True):
    """A snippet; `content` is Markdown source."""

    id: int
    title: str
    content: str
    date_created: int


def draft_object(draft: SavedDraft) -> DraftObject:
    """The draft, for its author."""
    return DraftObject(
        id=draft.id,
        type=DRAFT_TYPES[draft.kind],
        to=list(draft.to),
        topic=draft.topic,
        content=draft.content,
        timestamp=draft.edited_at,
    )


def snippet_object(snippet: Snippet) -> SnippetObject:
    """The snippet, for its owner."""
    return SnippetObject(
        id=snippet.id,
        title=snippet.title,
        content=snippet.content,
        date_created=snippet.created_at,
    )
