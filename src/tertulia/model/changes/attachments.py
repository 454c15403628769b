"""Uploaded files."""

from tertulia.model.attachments import Attachment
from tertulia.model.changes.base import Change


class AttachmentAdded(Change, frozen=True, tag="attachment_added"):
    """A file was uploaded."""

    attachment: Attachment


class AttachmentRemoved(Change, frozen=True, tag="attachment_removed"):
    """A file was deleted, by its owner, by an administrator, or because nothing refers to it.

    `user_id` is the owner.
    """

    attachment_id: int
    user_id: int


class FilesDeleted(Change, frozen=True, tag="files_deleted"):
    """Files of removed attachments were deleted from the disk."""

    attachment_ids: tuple[int, ...]
