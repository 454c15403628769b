"""Uploaded files as JSON."""

from msgspec import Struct

from tertulia.model.attachments import Attachment
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
