"""Drafts."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from tertulia.domain.messages import drafts
from tertulia.model.drafts import DraftKind
from tertulia.wire.api.objects.drafts import DRAFT_TYPES, DraftObject, draft_object
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import SAFE_INTEGER, Int, Params, Path
from tertulia.wire.http.routing import Answer

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

    def writing(self) -> drafts.Writing:
        """The same in the domain's words."""
        return drafts.Writing(
            kind=_KINDS.get(self.type, DraftKind.NOTHING),
            to=tuple(self.to),
            topic=self.topic,
            content=self.content,
            edited_at=self.timestamp,
        )


class GetDrafts(Params, kw_only=True, frozen=True):
    """No parameters."""


class Drafts(Answer, kw_only=True):
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


class DraftIds(Answer, kw_only=True):
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


async def edit_draft(call: Call, params: EditDraft) -> Answer:
    """Put something else in a draft's place."""
    await call.submit(drafts.edit, params.draft_id, params.draft.writing())
    return Answer()


class DeleteDraft(Params, kw_only=True, frozen=True):
    """A draft to delete."""

    draft_id: Annotated[Int, Path()]


async def delete_draft(call: Call, params: DeleteDraft) -> Answer:
    """Delete a draft."""
    await call.submit(drafts.delete, params.draft_id)
    return Answer()
