"""Events of drafts and snippets, for their owner."""

from collections.abc import Iterable
from typing import Any

from tertulia.model import changes
from tertulia.wire.api.events import Event, ForOwner, ProjectionContext
from tertulia.wire.api.objects.composing import (
    DraftObject,
    SnippetObject,
    draft_object,
    snippet_object,
)


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


class DraftsCreatedProjection(ForOwner[changes.DraftsCreated]):
    """New drafts."""

    of = changes.DraftsCreated

    def events(
        self, context: ProjectionContext, change: changes.DraftsCreated, view: Any
    ) -> Iterable[Event]:
        yield DraftsAddEvent(drafts=[draft_object(draft) for draft in change.drafts])


class DraftChangedProjection(ForOwner[changes.DraftChanged]):
    """A draft as it is now."""

    of = changes.DraftChanged

    def events(
        self, context: ProjectionContext, change: changes.DraftChanged, view: Any
    ) -> Iterable[Event]:
        yield DraftsUpdateEvent(draft=draft_object(change.draft))


class DraftDeletedProjection(ForOwner[changes.DraftDeleted]):
    """A draft that is gone."""

    of = changes.DraftDeleted

    def events(
        self, context: ProjectionContext, change: changes.DraftDeleted, view: Any
    ) -> Iterable[Event]:
        yield DraftsRemoveEvent(draft_id=change.draft_id)


class SnippetCreatedProjection(ForOwner[changes.SnippetCreated]):
    """A new snippet."""

    of = changes.SnippetCreated

    def events(
        self, context: ProjectionContext, change: changes.SnippetCreated, view: Any
    ) -> Iterable[Event]:
        yield SnippetsAddEvent(saved_snippet=snippet_object(change.snippet))


class SnippetChangedProjection(ForOwner[changes.SnippetChanged]):
    """A snippet as it is now."""

    of = changes.SnippetChanged

    def events(
        self, context: ProjectionContext, change: changes.SnippetChanged, view: Any
    ) -> Iterable[Event]:
        yield SnippetsUpdateEvent(saved_snippet=snippet_object(change.snippet))


class SnippetDeletedProjection(ForOwner[changes.SnippetDeleted]):
    """A snippet that is gone."""

    of = changes.SnippetDeleted

    def events(
        self, context: ProjectionContext, change: changes.SnippetDeleted, view: Any
    ) -> Iterable[Event]:
        yield SnippetsRemoveEvent(saved_snippet_id=change.snippet_id)
