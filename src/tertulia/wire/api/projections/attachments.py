"""Events of uploaded files, for their owners."""

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Struct

from tertulia.model.changes import AttachmentAdded, AttachmentRemoved, Change, FilesDeleted
from tertulia.state.organization import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.attachments import AttachmentObject, attachment_object
from tertulia.wire.api.projection import (
    Grouping,
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    to_owner,
    unseen,
)

C = TypeVar("C", bound=Change)


class AttachmentAddEvent(Event, kw_only=True, tag="attachment"):
    """The viewer uploaded a file. `upload_space_used` are the bytes of everybody's files."""

    op: str = "add"
    attachment: AttachmentObject
    upload_space_used: int


class AttachmentUpdateEvent(Event, kw_only=True, tag="attachment"):
    """Which messages link a file of the viewer's has changed."""

    op: str = "update"
    attachment: AttachmentObject
    upload_space_used: int


class GoneAttachment(Struct, kw_only=True):
    """A file that is gone."""

    id: int


class AttachmentRemoveEvent(Event, kw_only=True, tag="attachment"):
    """A file of the viewer's is gone."""

    op: str = "remove"
    attachment: GoneAttachment
    upload_space_used: int


class AttachmentAddedProjection(Projection[AttachmentAdded]):
    """A file, to its owner, unless it has been deleted since."""

    of = AttachmentAdded

    def audience(self, state: State, change: AttachmentAdded) -> Collection[int]:
        return (change.attachment.user_id,)

    def view(
        self, context: ProjectionContext, change: AttachmentAdded, viewer: Viewer
    ) -> Hashable | None:
        present = context.state.attachments.get(change.attachment.id)
        return None if present is None else attachment_object(context.state, present)

    def events(
        self, context: ProjectionContext, change: AttachmentAdded, view: Any
    ) -> Iterable[Event]:
        yield AttachmentAddEvent(
            attachment=view, upload_space_used=context.state.uploads.space_used
        )


class _Both(NamedTuple):
    """The inner projection's view, if there is one, and the viewer's files."""

    inner: Hashable | None
    files: tuple[AttachmentObject, ...]


class WithAttachments(Projection[C], Generic[C]):
    """A projection of a change that also attaches files to a message or detaches them: adds events
    for the files' owners after those of the inner projection."""

    def __init__(self, inner: Projection[C], ids: Callable[[C], Collection[int]]) -> None:
        self.of = inner.of
        self.for_all_public = inner.for_all_public  # type: ignore[misc]  # as above
        self._inner = inner
        self._ids = ids

    def audience(self, state: State, change: C) -> Collection[int] | None:
        inner = self._inner.audience(state, change)
        owners = {
            state.attachments[attachment_id].user_id
            for attachment_id in self._ids(change)
            if attachment_id in state.attachments
        }
        return inner if inner is None or not owners else {*inner, *owners}

    def grouping(self, state: State, change: C) -> Grouping | None:
        return None if self._ids(change) else self._inner.grouping(state, change)

    def view(self, context: ProjectionContext, change: C, viewer: Viewer) -> Hashable | None:
        inner = self._inner.view(context, change, viewer)
        files = tuple(
            attachment_object(context.state, attachment)
            for attachment_id in self._ids(change)
            if (attachment := context.state.attachments.get(attachment_id)) is not None
            and attachment.user_id == viewer.user.id
        )
        return _Both(inner, files) if files else inner

    def events(self, context: ProjectionContext, change: C, view: Any) -> Iterable[Event]:
        if not isinstance(view, _Both):
            yield from self._inner.events(context, change, view)
            return
        if view.inner is not None:
            yield from self._inner.events(context, change, view.inner)
        for file in view.files:
            yield AttachmentUpdateEvent(
                attachment=file, upload_space_used=context.state.uploads.space_used
            )


PROJECTIONS: Final[Projections] = (
    AttachmentAddedProjection(),
    to_owner(
        AttachmentRemoved,
        lambda context, change: AttachmentRemoveEvent(
            attachment=GoneAttachment(id=change.attachment_id),
            upload_space_used=context.state.uploads.space_used,
        ),
    ),
    unseen(FilesDeleted),  # The files' attachments went before.
)
