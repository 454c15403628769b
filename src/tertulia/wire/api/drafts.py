"""Drafts and saved snippets."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, convert, field

from tertulia.domain.messages import drafts as verbs
from tertulia.model import changes
from tertulia.model.drafts import DraftKind, SavedDraft, Snippet
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import SAFE_INTEGER, Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call

DRAFT_TYPES: Final = {
    DraftKind.NOTHING: "",
    DraftKind.CHANNEL: "stream",
    DraftKind.DIRECT: "private",
}
"""The names of the kinds of drafts in the API."""


class DraftObject(Struct, kw_only=True):
    """A draft. Depending on `type`, `to` has one channel ID, user IDs, or nothing."""

    id: int
    type: str
    to: list[int]
    topic: str
    content: str
    timestamp: int


class SnippetObject(Struct, kw_only=True):
    """A saved snippet. `content` is Markdown."""

    id: int
    title: str
    content: str
    created_at: int = field(name="date_created")


def draft_object(draft: SavedDraft) -> DraftObject:
    return DraftObject(
        id=draft.id,
        type=DRAFT_TYPES[draft.kind],
        to=list(draft.to),
        topic=draft.topic,
        content=draft.content,
        timestamp=draft.edited_at,
    )


def snippet_object(snippet: Snippet) -> SnippetObject:
    return convert(snippet, SnippetObject, from_attributes=True)


class DraftsAddEvent(Event, kw_only=True, tag="drafts"):
    """You created drafts."""

    op: str = "add"
    drafts: list[DraftObject]


class DraftsUpdateEvent(Event, kw_only=True, tag="drafts"):
    """You edited a draft."""

    op: str = "update"
    draft: DraftObject


class DraftsRemoveEvent(Event, kw_only=True, tag="drafts"):
    """A draft was deleted."""

    op: str = "remove"
    draft_id: int


class SnippetsAddEvent(Event, kw_only=True, tag="saved_snippets"):
    """You created a snippet."""

    op: str = "add"
    saved_snippet: SnippetObject


class SnippetsUpdateEvent(Event, kw_only=True, tag="saved_snippets"):
    """You edited a snippet."""

    op: str = "update"
    saved_snippet: SnippetObject


class SnippetsRemoveEvent(Event, kw_only=True, tag="saved_snippets"):
    """You deleted a snippet."""

    op: str = "remove"
    saved_snippet_id: int


_KINDS = {name: kind for kind, name in DRAFT_TYPES.items()}


class DraftInput(Struct, kw_only=True, frozen=True):
    """The content and recipients of a draft."""

    type: Annotated[Literal["", "stream", "private"], Doc("Empty for a draft without recipients.")]
    to: Annotated[list[Int], Doc("One channel ID, or user IDs.")]
    topic: Annotated[str, Doc("For drafts to a channel.")]
    content: str
    timestamp: Annotated[
        Int | Annotated[float, Meta(le=SAFE_INTEGER)] | None,
        Doc("The time of the last edit in UNIX seconds. By default, now."),
    ] = None

    def writing(self) -> verbs.DraftContent:
        return verbs.DraftContent(
            kind=_KINDS.get(self.type, DraftKind.NOTHING),
            to=tuple(self.to),
            topic=self.topic,
            content=self.content,
            edited_at=self.timestamp,
        )


class DraftsResponse(ApiResponse, kw_only=True):
    """Your drafts, most recently edited first."""

    count: int
    drafts: list[DraftObject]


async def get_drafts(call: Call) -> DraftsResponse:
    """Get your drafts."""
    listed = [draft_object(draft) for draft in call.consider(verbs.list_drafts)]
    return DraftsResponse(count=len(listed), drafts=listed)


class DraftIdsResponse(ApiResponse, kw_only=True):
    """The new drafts' IDs, in the order of the request."""

    ids: list[int]


async def create_drafts(call: Call, drafts: Sequence[DraftInput] = ()) -> DraftIdsResponse:
    """Create drafts. If one is invalid, none are created."""
    ids = await call.submit(verbs.create, [draft.writing() for draft in drafts])
    return DraftIdsResponse(ids=list(ids))


async def edit_draft(call: Call, draft_id: IntPath, draft: DraftInput) -> None:
    """Replace a draft."""
    await call.submit(verbs.edit, draft_id, draft.writing())


async def delete_draft(call: Call, draft_id: IntPath) -> None:
    """Delete a draft."""
    await call.submit(verbs.delete, draft_id)


_TITLE = Doc("At most 60 characters.")
_CONTENT = Doc("Markdown, at most max_message_length characters.")


class SnippetsResponse(ApiResponse, kw_only=True):
    """Your snippets, oldest first."""

    saved_snippets: list[SnippetObject]


async def get_snippets(call: Call) -> SnippetsResponse:
    """Get your saved snippets."""
    snippets = call.state.snippets.of_user[call.user.id]
    return SnippetsResponse(saved_snippets=[snippet_object(snippet) for snippet in snippets])


class NewSnippetResponse(ApiResponse, kw_only=True):
    """The new snippet's ID."""

    saved_snippet_id: int


async def create_snippet(
    call: Call, title: Annotated[str, _TITLE], content: Annotated[str, _CONTENT]
) -> NewSnippetResponse:
    """Save a snippet."""
    snippet_id = await call.submit(verbs.create_snippet, title, content)
    return NewSnippetResponse(saved_snippet_id=snippet_id)


async def edit_snippet(
    call: Call,
    saved_snippet_id: IntPath,
    title: Annotated[str | None, _TITLE] = None,
    content: Annotated[str | None, _CONTENT] = None,
) -> None:
    """Change a snippet's title or content."""
    await call.submit(verbs.edit_snippet, saved_snippet_id, title, content)


async def delete_snippet(call: Call, saved_snippet_id: IntPath) -> None:
    """Delete a snippet."""
    await call.submit(verbs.delete_snippet, saved_snippet_id)


SECTIONS: Final[Sections] = {
    ("drafts",): lambda context: {
        "drafts": [
            draft_object(draft) for draft in verbs.drafts_of(context.state, context.viewer_id)
        ]
    },
    ("saved_snippets",): lambda context: {
        "saved_snippets": [
            snippet_object(snippet) for snippet in context.state.snippets.of_user[context.viewer_id]
        ]
    },
}


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
