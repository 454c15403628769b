"""Uploaded files."""

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
from tertulia.service.files.uploads import files_opened, may_open, store_upload
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.events import Event
from tertulia.wire.api.organization.objects import OptionalLimit, limit_json, optional_limit
from tertulia.wire.api.projection import (
    Grouping,
    Projection,
    ProjectionContext,
    Projections,
    Viewer,
    projected,
    to_owner,
    unseen,
)
from tertulia.wire.http.errors import NotFound
from tertulia.wire.http.parameters import Doc, IntPath, Path
from tertulia.wire.http.routing import ApiResponse, Call


class AttachmentObject(Struct, kw_only=True, frozen=True):
    """An uploaded file, at `/user_uploads/` followed by `path_id`. `create_time` is in UNIX
    seconds, and `size` in bytes. `message_ids` lists the messages that link to the file."""

    id: int
    name: str
    path_id: str
    size: int
    create_time: int
    message_ids: tuple[int, ...]


def attachment_object(state: State, attachment: Attachment) -> AttachmentObject:
    return AttachmentObject(
        id=attachment.id,
        name=attachment.name,
        path_id=attachment.path,
        size=attachment.size,
        create_time=attachment.created_at,
        message_ids=state.uploads.message_ids(attachment.id),
    )


class FileFacts(Struct, kw_only=True, frozen=True):
    """An uploaded file that the caller can open. `size` is in bytes. `media_type` comes from the
    uploader's client. `opens` tells whether browsers display the file instead of downloading it."""

    path_id: str
    name: str
    size: int
    media_type: str
    opens: bool


def file_facts(attachment: Attachment) -> FileFacts:
    return FileFacts(
        path_id=attachment.path,
        name=attachment.name,
        size=attachment.size,
        media_type=attachment.media_type,
        opens=attachment.media_type in SHOWN,
    )


C = TypeVar("C", bound=Change)


class AttachmentAddEvent(Event, kw_only=True, tag="attachment"):
    """You uploaded a file. `upload_space_used` is the size of all the organization's files in
    bytes."""

    op: str = "add"
    attachment: AttachmentObject
    upload_space_used: int


class AttachmentUpdateEvent(Event, kw_only=True, tag="attachment"):
    """The list of messages that link to one of your files changed."""

    op: str = "update"
    attachment: AttachmentObject
    upload_space_used: int


class RemovedAttachment(Struct, kw_only=True):
    """A file that was deleted."""

    id: int


class AttachmentRemoveEvent(Event, kw_only=True, tag="attachment"):
    """One of your files was deleted."""

    op: str = "remove"
    attachment: RemovedAttachment
    upload_space_used: int


def _added(context: ProjectionContext, change: AttachmentAdded, _: Viewer) -> Hashable | None:
    """The new file, unless it has been deleted since."""
    attachment = context.state.attachments.get(change.attachment.id)
    return None if attachment is None else attachment_object(context.state, attachment)


class _Both(NamedTuple):
    inner: Hashable | None
    files: tuple[AttachmentObject, ...]


class WithAttachments(Projection[C], Generic[C]):
    """Adds events for the files' owners to the events of a change that also links or unlinks
    files."""

    def __init__(self, inner: Projection[C], ids: Callable[[C], Collection[int]]) -> None:
        self.of = inner.of
        self.for_all_public = inner.for_all_public
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
"""Files per request."""


class UploadedFileResponse(ApiResponse, kw_only=True):
    """The file's URL, relative to the organization's URL, and its original name. To link to it,
    write `[filename](url)`, without square brackets in the name. `uri` is a deprecated name of
    `url`."""

    url: str
    uri: str
    filename: str


async def upload_file(call: Call) -> UploadedFileResponse:
    """Upload a file.

    Send it as the only file of a multipart form, under any field name. Until you send a message
    that links to it, only you can open the file. Afterwards, anyone who can read the message can.
    """
    if call.file is None:
        raise Refused("The request doesn't contain a file.")
    try:
        attachment = await store_upload(call.node, call.user.id, call.file)
    except Refused:
        with contextlib.suppress(FilesUnavailable):  # If this fails, a job deletes it later.
            await call.node.uploads.forget(call.file.arriving.key)
        raise
    return uploaded_file(attachment)


def uploaded_file(attachment: Attachment) -> UploadedFileResponse:
    url = ADDRESS + attachment.path
    return UploadedFileResponse(url=url, uri=url, filename=attachment.name)


class AttachmentsResponse(ApiResponse, kw_only=True):
    """Your files, and the size of all the organization's files in bytes."""

    attachments: list[AttachmentObject]
    upload_space_used: int
    own_space_used: Annotated[int, Doc("Size of your files and your bots' files, in bytes.")]
    own_space_limit: Annotated[
        int | None, Doc("The limit for `own_space_used`; null without a limit.")
    ]


async def get_attachments(call: Call) -> AttachmentsResponse:
    """Get your uploaded files and the messages that link to them."""
    state = call.state
    room = attachments.storage_use(state, call.user)
    return AttachmentsResponse(
        attachments=[
            attachment_object(state, attachment)
            for attachment in state.uploads.of_user[call.user.id]
        ],
        upload_space_used=state.uploads.space_used,
        own_space_used=room.used,
        own_space_limit=room.limit,
    )


class UploadQuotaResponse(ApiResponse, kw_only=True):
    """The storage that a user's and their bots' files take up."""

    used: Annotated[int, Doc("In bytes.")]
    limit: Annotated[int | None, Doc("In bytes; null without a limit.")]
    upload_quota_mib: Annotated[
        OptionalLimit, Doc("The user's own limit, which replaces the organization's.")
    ]


async def get_upload_quota(call: Call, user_id: IntPath) -> UploadQuotaResponse:
    """Get how much storage a user has used. Requires the user or an administrator."""
    return _quota(call.consider(attachments.get_storage_use, user_id))


async def set_upload_quota(
    call: Caller,
    user_id: IntPath,
    upload_quota_mib: Annotated[
        int | None,
        optional_limit("MiB", attachments.UNLIMITED, MAX_MEBIBYTES),
        Doc(
            "In MiB; or `unlimited`, or `realm_default` for the organization's limit. Existing"
            " files aren't deleted."
        ),
    ],
) -> UploadQuotaResponse:
    """Set a user's storage limit. Requires an administrator."""
    await call.submit(attachments.set_limit, user_id, upload_quota_mib)
    return _quota(call.consider(attachments.get_storage_use, user_id))


def _quota(room: StorageUse) -> UploadQuotaResponse:
    return UploadQuotaResponse(
        used=room.used,
        limit=room.limit,
        upload_quota_mib=limit_json(room.own_limit_mib, attachments.UNLIMITED),
    )


class FileFactsResponse(ApiResponse, kw_only=True):
    """The files that exist and that the caller can open."""

    files: list[FileFacts]


async def get_file_facts(
    call: Call,
    path_ids: Annotated[
        list[str], Meta(max_length=MAX_FACTS, description="The `path_id` of each file.")
    ],
) -> FileFactsResponse:
    """Get the name, size, and type of uploaded files."""
    at_path = call.state.uploads.at_path
    known = [
        attachment for path in dict.fromkeys(path_ids) if (attachment := at_path(path)) is not None
    ]
    opened = await files_opened(call.node, _caller(call), known)
    return FileFactsResponse(
        files=[file_facts(attachment) for attachment in known if attachment.id in opened]
    )


async def delete_attachment(call: Caller, attachment_id: IntPath) -> None:
    """Delete an uploaded file.

    You can delete your own files; administrators can delete anyone's. Messages that link to the
    file keep a broken link.
    """
    await call.submit(attachments.remove, attachment_id)


_FilePath = Annotated[str, Path(), Doc("The rest of the file's `path_id`.")]


class TemporaryUrlResponse(ApiResponse, kw_only=True):
    """A URL that opens the file for a minute, without credentials."""

    url: str


async def get_temporary_url(
    call: Call, realm_id: IntPath, filename: _FilePath
) -> TemporaryUrlResponse:
    """Get a URL that opens a file for one minute without signing in."""
    attachment = await _opened(call, realm_id, filename)
    expires = int(call.now) + TEMPORARY_SECONDS
    ticket = call.node.vault.ticket(TICKET, attachment.path, expires)
    name = attachment.path.rpartition("/")[2]
    return TemporaryUrlResponse(url=f"{links.TEMPORARY}{ticket}/{name}")


class ThumbnailStatus(ApiResponse, kw_only=True):
    """Whether the file has thumbnails."""

    has_thumbnail: bool


async def get_thumbnail_status(
    call: Call, realm_id: IntPath, filename: _FilePath
) -> ThumbnailStatus:
    """Get whether thumbnails of a file are available. They are generated on demand."""
    attachment = await _opened(call, realm_id, filename)
    return ThumbnailStatus(has_thumbnail=attachment.picture is not None)


async def _opened(call: Call, realm_id: int, filename: str) -> Attachment:
    attachment = call.state.uploads.at_path(f"{realm_id}/{filename}")
    if attachment is None:
        raise NotFound
    if not await may_open(call.node, _caller(call), attachment):
        raise MayNotOpen
    return attachment


def _caller(call: Call) -> User | None:
    return call.user if call.user_id is not None else None


PROJECTIONS: Final[Projections] = (
    projected(
        AttachmentAdded,
        _added,
        lambda context, _, view: (
            AttachmentAddEvent(attachment=view, upload_space_used=context.state.uploads.space_used),
        ),
        audience=lambda _, change: (change.attachment.user_id,),
    ),
    to_owner(
        AttachmentRemoved,
        lambda context, change: AttachmentRemoveEvent(
            attachment=RemovedAttachment(id=change.attachment_id),
            upload_space_used=context.state.uploads.space_used,
        ),
    ),
    unseen(FilesDeleted),
)
