"""Events of drafts and snippets, for their owner."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.drafts import (
    DraftObject,
    SnippetObject,
    draft_object,
    snippet_object,
)
from tertulia.wire.api.projection import Projections, to_owner


class DraftsAddEvent(Event, kw_only=True, tag="drafts"):
    """There are new drafts."""

    op: str = "add"
    drafts: list[DraftObject]


class DraftsUpdateEvent(Event, kw_only=True, tag="drafts"):
    """A draft was edited."""

    op: str = "update"
    draft: DraftObject


class DraftsRemoveEvent(Event, kw_only=True, tag="drafts"):
    """A draft is gone."""

    op: str = "remove"
    draft_id: int


class SnippetsAddEvent(Event, kw_only=True, tag="saved_snippets"):
    """There is a new snippet."""

    op: str = "add"
    saved_snippet: SnippetObject


class SnippetsUpdateEvent(Event, kw_only=True, tag="saved_snippets"):
    """A snippet was edited."""

    op: str = "update"
    saved_snippet: SnippetObject


class SnippetsRemoveEvent(Event, kw_only=True, tag="saved_snippets"):
    """A snippet is gone."""

    op: str = "remove"
    saved_snippet_id: int


PROJECTIONS: Final[Projections] = (
    to_owner(
        changes.DraftsCreated,
        lambda _, change: DraftsAddEvent(drafts=[draft_object(draft) for draft in change.drafts]),
    ),
    to_owner(
        changes.DraftChanged,
        lambda _, change: DraftsUpdateEvent(draft=draft_object(change.draft)),
    ),
    to_owner(
        changes.DraftDeleted,
        lambda _, change: DraftsRemoveEvent(draft_id=change.draft_id),
        only_if=lambda _, change, viewer: not change.unsynchronized,
    ),
    to_owner(
        changes.SnippetCreated,
        lambda _, change: SnippetsAddEvent(saved_snippet=snippet_object(change.snippet)),
    ),
    to_owner(
        changes.SnippetChanged,
        lambda _, change: SnippetsUpdateEvent(saved_snippet=snippet_object(change.snippet)),
    ),
    to_owner(
        changes.SnippetDeleted,
        lambda _, change: SnippetsRemoveEvent(saved_snippet_id=change.snippet_id),
    ),
)
