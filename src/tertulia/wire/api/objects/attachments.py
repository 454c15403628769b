"""Uploaded files as JSON."""

from msgspec import Struct

from tertulia.model.attachments import SHOWN, Attachment
from tertulia.state.organization import State


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
