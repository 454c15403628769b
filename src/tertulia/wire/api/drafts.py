"""Drafts and snippets on the wire."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tertulia.domain.messages import drafts
from tertulia.model import changes
from tertulia.model.drafts import DraftKind, SavedDraft, Snippet
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import SAFE_INTEGER, Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call

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


_KINDS = {name: kind for kind, name in DRAFT_TYPES.items()}


class DraftContent(Struct, kw_only=True, frozen=True):
    """What a draft shall be."""

    type: Annotated[
        Literal["", "stream", "private"], Meta(description="Empty for a draft to nobody yet.")
    ]
    to: Annotated[list[Int], Meta(description="One channel ID, or user IDs.")]
    topic: Annotated[str, Meta(description="Of a draft to a channel.")]
    content: str
    timestamp: Annotated[
        Int | Annotated[float, Meta(le=SAFE_INTEGER)] | None,
        Meta(description="When it was edited last, in UNIX seconds; by default, now."),
    ] = None

    def writing(self) -> drafts.DraftContent:
        """The same in the domain's words."""
        return drafts.DraftContent(
            kind=_KINDS.get(self.type, DraftKind.NOTHING),
            to=tuple(self.to),
            topic=self.topic,
            content=self.content,
            edited_at=self.timestamp,
        )


class GetDrafts(Params, kw_only=True, frozen=True):
    """No parameters."""


class Drafts(ApiResponse, kw_only=True):
    """The caller's drafts, those edited last first."""

    count: int
    drafts: list[DraftObject]


async def get_drafts(call: Call, params: GetDrafts) -> Drafts:
    """The caller's drafts, those edited last first."""
    found = [draft_object(draft) for draft in call.consider(drafts.listed)]
    return Drafts(count=len(found), drafts=found)


class CreateDrafts(Params, kw_only=True, frozen=True):
    """Drafts to keep."""

    drafts: list[DraftContent] = []


class DraftIds(ApiResponse, kw_only=True):
    """The new drafts' IDs, in the order in which they were sent."""

    ids: list[int]


async def create_drafts(call: Call, params: CreateDrafts) -> DraftIds:
    """Keep drafts: all of them, or where one cannot be kept, none."""
    writings = [draft.writing() for draft in params.drafts]
    ids = await call.submit(drafts.create, writings)
    return DraftIds(ids=list(ids))


class EditDraft(Params, kw_only=True, frozen=True):
    """What a draft shall be."""

    draft_id: Annotated[Int, Path()]
    draft: DraftContent


async def edit_draft(call: Call, params: EditDraft) -> ApiResponse:
    """Put something else in a draft's place."""
    await call.submit(drafts.edit, params.draft_id, params.draft.writing())
    return ApiResponse()


class DeleteDraft(Params, kw_only=True, frozen=True):
    """A draft to delete."""

    draft_id: Annotated[Int, Path()]


async def delete_draft(call: Call, params: DeleteDraft) -> ApiResponse:
    """Delete a draft."""
    await call.submit(drafts.delete, params.draft_id)
    return ApiResponse()


_TITLE = Meta(description="At most 60 characters.")
_CONTENT = Meta(description="Markdown, at most max_message_length characters.")


class GetSnippets(Params, kw_only=True, frozen=True):
    """No parameters."""


class Snippets(ApiResponse, kw_only=True):
    """The caller's snippets, the oldest first."""

    saved_snippets: list[SnippetObject]


async def get_snippets(call: Call, params: GetSnippets) -> Snippets:
    """The caller's snippets, the oldest first."""
    own = call.state.snippets.of_user[call.user.id]
    return Snippets(saved_snippets=[snippet_object(snippet) for snippet in own])


class CreateSnippet(Params, kw_only=True, frozen=True):
    """A snippet to keep."""

    title: Annotated[str, _TITLE]
    content: Annotated[str, _CONTENT]


class NewSnippet(ApiResponse, kw_only=True):
    """The new snippet's ID."""

    saved_snippet_id: int


async def create_snippet(call: Call, params: CreateSnippet) -> NewSnippet:
    """Keep a snippet."""
    made = await call.submit(drafts.create_snippet, params.title, params.content)
    return NewSnippet(saved_snippet_id=made)


class EditSnippet(Params, kw_only=True, frozen=True):
    """What a snippet shall be; what is not sent stays."""

    saved_snippet_id: Annotated[Int, Path()]
    title: Annotated[str | None, _TITLE] = None
    content: Annotated[str | None, _CONTENT] = None


async def edit_snippet(call: Call, params: EditSnippet) -> ApiResponse:
    """Give a snippet another title or text."""
    await call.submit(drafts.edit_snippet, params.saved_snippet_id, params.title, params.content)
    return ApiResponse()


class DeleteSnippet(Params, kw_only=True, frozen=True):
    """A snippet to delete."""

    saved_snippet_id: Annotated[Int, Path()]


async def delete_snippet(call: Call, params: DeleteSnippet) -> ApiResponse:
    """Delete a snippet."""
    await call.submit(drafts.delete_snippet, params.saved_snippet_id)
    return ApiResponse()


SECTIONS: Final[Sections] = {
    ("drafts",): lambda context: {
        "drafts": [
            draft_object(draft) for draft in drafts.of_user(context.state, context.viewer_id)
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
