"""Uploaded files as JSON."""

import contextlib
from collections.abc import Callable, Collection, Hashable, Iterable
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

from msgspec import Meta, Struct

from tertulia.domain.messages import attachments
from tertulia.domain.messages.attachments import StorageUse
from tertulia.model.attachments import ADDRESS, SHOWN, Attachment
from tertulia.model.change import Change
from tertulia.model.changes import AttachmentAdded, AttachmentRemoved, FilesDeleted
from tertulia.model.errors import FilesUnavailable, MayNotOpen, Refused
from tertulia.model.organization import MAX_MEBIBYTES
from tertulia.model.users import User
from tertulia.service import links
from tertulia.service.caller import Caller
from tertulia.service.files.uploads import files_opened, may_open, stored
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.organization.objects import OwnLimit, own_limit, own_limit_shown
from tertulia.wire.api.projection import (
    Grouping,
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    to_owner,
    unseen,
)
from tertulia.wire.http.errors import NotFound
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class AttachmentObject(Struct, kw_only=True, frozen=True):
    """An uploaded file. `create_time` is in UNIX seconds, `size` in bytes; `message_ids` are the
    messages that link it. Its address is `/user_uploads/` and `path_id`."""

    id: int
    name: str
    path_id: str
    size: int
    create_time: int
    message_ids: tuple[int, ...]


def attachment_object(state: State, attachment: Attachment) -> AttachmentObject:
    """The file as its owner sees it."""
    return AttachmentObject(
        id=attachment.id,
        name=attachment.name,
        path_id=attachment.path,
        size=attachment.size,
        create_time=attachment.created_at,
        message_ids=state.uploads.message_ids(attachment.id),
    )


class FileFacts(Struct, kw_only=True, frozen=True):
    """An uploaded file as anybody sees it who may open it. `size` is in bytes; `media_type` is what
    its uploader's program said; `opens` tells whether a browser that opens its address shows it,
    where others are saved."""

    path_id: str
    name: str
    size: int
    media_type: str
    opens: bool


def file_facts(attachment: Attachment) -> FileFacts:
    """The file as its readers see it."""
    return FileFacts(
        path_id=attachment.path,
        name=attachment.name,
        size=attachment.size,
        media_type=attachment.media_type,
        opens=attachment.media_type in SHOWN,
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


TEMPORARY_SECONDS: Final = 60
TICKET: Final = "file"
"""The purpose of a ticket that opens a file."""
MAX_FACTS: Final = 50
"""Of so many files at once one learns what they are."""


class UploadFile(Params, kw_only=True, frozen=True):
    """One file, as the only file of a multipart form, under any name."""


class UploadedFile(ApiResponse, kw_only=True):
    """Where the file is, relative to the organization's address, and what it was called. A link to
    it is `[filename](url)`, without square brackets in the name. `uri` is the older name."""

    url: str
    uri: str
    filename: str


async def upload_file(call: Call, params: UploadFile) -> UploadedFile:
    """Upload a file.

    Only the uploader can open it at first; then whoever can read a message that links it.
    """
    if call.file is None:
        raise Refused("The request doesn't contain a file.")
    try:
        attachment = await stored(call.node, call.user.id, call.file)
    except Refused:
        with contextlib.suppress(FilesUnavailable):  # A job does it later.
            await call.node.uploads.forget(call.file.arriving.key)
        raise
    url = ADDRESS + attachment.path
    return UploadedFile(url=url, uri=url, filename=attachment.name)


class GetAttachments(Params, kw_only=True, frozen=True):
    """One's own files."""


class Attachments(ApiResponse, kw_only=True):
    """One's own files, and the bytes of everybody's together."""

    attachments: list[AttachmentObject]
    upload_space_used: int
    own_space_used: Annotated[
        int, Meta(description="Bytes of the caller's files and those of their bots.")
    ]
    own_space_limit: Annotated[
        int | None, Meta(description="What these may come to; null without a limit.")
    ]


async def get_attachments(call: Call, params: GetAttachments) -> Attachments:
    """The caller's uploaded files, and the messages that link them."""
    state = call.state
    room = attachments.storage_use(state, call.user)
    return Attachments(
        attachments=[attachment_object(state, one) for one in state.uploads.of_user[call.user.id]],
        upload_space_used=state.uploads.space_used,
        own_space_used=room.used,
        own_space_limit=room.limit,
    )


class OnePersonsQuota(Params, kw_only=True, frozen=True):
    """A person's room for files."""

    user_id: Annotated[Int, Path()]


class UploadQuota(ApiResponse, kw_only=True):
    """How much room a person's files take, with those of their bots."""

    used: Annotated[int, Meta(description="Bytes.")]
    limit: Annotated[int | None, Meta(description="Bytes; null without a limit.")]
    upload_quota_mib: Annotated[
        OwnLimit,
        Meta(description="What was set for this person in place of the organization's limit."),
    ]


async def get_upload_quota(call: Call, params: OnePersonsQuota) -> UploadQuota:
    """How much room there is for a person's files, for themselves and for administrators."""
    return _quota(call.consider(attachments.get_storage_use, params.user_id))


class SetUploadQuota(Params, kw_only=True, frozen=True):
    """What a person's files may come to."""

    user_id: Annotated[Int, Path()]
    upload_quota_mib: Annotated[
        int | None,
        own_limit("MiB", attachments.UNLIMITED, MAX_MEBIBYTES),
        Meta(
            description="MiB; `unlimited`, or `realm_default` for what the organization has set"
            " for everybody. What is there already stays."
        ),
    ]


async def set_upload_quota(call: Caller, params: SetUploadQuota) -> UploadQuota:
    """Limit what a person's files may come to, or make an exception, for administrators."""
    await call.submit(attachments.set_limit, params.user_id, params.upload_quota_mib)
    return _quota(call.consider(attachments.get_storage_use, params.user_id))


def _quota(room: StorageUse) -> UploadQuota:
    return UploadQuota(
        used=room.used,
        limit=room.limit,
        upload_quota_mib=own_limit_shown(room.own_limit_mib, attachments.UNLIMITED),
    )


class GetFileFacts(Params, kw_only=True, frozen=True):
    """Some files."""

    path_ids: Annotated[list[str], Meta(max_length=MAX_FACTS, description="As in their addresses.")]


class FoundFacts(ApiResponse, kw_only=True):
    """What is known of them: of those that there are, and that the caller may open."""

    files: list[FileFacts]


async def get_file_facts(call: Call, params: GetFileFacts) -> FoundFacts:
    """Name, size and type of uploaded files."""
    at_path = call.state.uploads.at_path
    known = [one for path in dict.fromkeys(params.path_ids) if (one := at_path(path)) is not None]
    opened = await files_opened(call.node, _caller(call), known)
    return FoundFacts(files=[file_facts(one) for one in known if one.id in opened])


class DeleteAttachment(Params, kw_only=True, frozen=True):
    """A file of one's own, or, for administrators, anybody's."""

    attachment_id: Annotated[Int, Path()]


async def delete_attachment(call: Caller, params: DeleteAttachment) -> ApiResponse:
    """Delete an uploaded file. Messages that link it stay as they are, and lead nowhere."""
    await call.submit(attachments.remove, params.attachment_id)
    return ApiResponse()


class FileAt(Params, kw_only=True, frozen=True):
    """An uploaded file, by the parts of its `path_id`."""

    realm_id: Annotated[Int, Path()]
    filename: Annotated[str, Path(), Meta(description="What follows in the path_id.")]


class TemporaryAddress(ApiResponse, kw_only=True):
    """Where the file can be had for a minute, without credentials."""

    url: str


async def get_temporary_url(call: Call, params: FileAt) -> TemporaryAddress:
    """An address of the file that opens it to whoever has it, for a minute."""
    attachment = await _opened(call, params)
    expires = int(call.now) + TEMPORARY_SECONDS
    ticket = call.node.vault.ticket(TICKET, attachment.path, expires)
    name = attachment.path.rpartition("/")[2]
    return TemporaryAddress(url=f"{links.TEMPORARY}{ticket}/{name}")


class ThumbnailStatus(ApiResponse, kw_only=True):
    """Whether there is a smaller picture of the file."""

    has_thumbnail: bool


async def get_thumbnail_status(call: Call, params: FileAt) -> ThumbnailStatus:
    """Whether the file is a picture that can be had smaller: such are made when asked for."""
    attachment = await _opened(call, params)
    return ThumbnailStatus(has_thumbnail=attachment.picture is not None)


async def _opened(call: Call, params: FileAt) -> Attachment:
    attachment = call.state.uploads.at_path(f"{params.realm_id}/{params.filename}")
    if attachment is None:
        raise NotFound
    if not await may_open(call.node, _caller(call), attachment):
        raise MayNotOpen
    return attachment


def _caller(call: Call) -> User | None:
    """Who asks; None for a spectator."""
    return call.user if call.user_id is not None else None


PROJECTIONS: Final[Projections] = (
    AttachmentAddedProjection(),
    to_owner(
        AttachmentRemoved,
        lambda context, change: AttachmentRemoveEvent(
            attachment=GoneAttachment(id=change.attachment_id),
            upload_space_used=context.state.uploads.space_used,
        ),
    ),
    unseen(FilesDeleted),
)
