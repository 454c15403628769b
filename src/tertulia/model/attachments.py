"""Uploaded files, and the messages that they are attached to."""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from tertulia.model.change import Change

ADDRESS = "/user_uploads/"
"""Where files are, at the organization's address."""
SHOWN: Final = frozenset(
    {
        "application/pdf",
        *("audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav"),
        *("audio/wave", "audio/webm", "audio/x-m4a", "audio/x-wav"),
        *("image/apng", "image/avif", "image/gif", "image/jpeg", "image/png", "image/webp"),
        *("video/mp4", "video/webm"),
    }
)
"""Media types of what a browser may show by itself. None of it can run."""
_LINKED = re.compile(
    re.escape(ADDRESS) + r"(?:download/|thumbnail/)?([0-9]+/[0-9a-f]{2}/[\w-]+/[\w.%-]+)"
)


def key_in(path: str) -> str:
    """The key in a path (`realm/two digits/key/name`); empty where it is no such path."""
    parts = path.split("/")
    return parts[2] if len(parts) == 4 else ""


def linked_paths(content: str) -> Iterator[Sequence[str]]:
    """The paths of the files that a text links: for each link what it may mean, the likeliest
    first. (A sentence may end behind it, and some programs write it with percent signs.)"""
    if ADDRESS in content:
        for path in _LINKED.findall(content):
            yield tuple(dict.fromkeys((path, path.rstrip("."), unquote(path))))


class ImageInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a file that is a picture: as it is shown, upright."""

    width: int
    """Pixels."""
    height: int
    """Pixels."""
    animated: bool = False


class Attachment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An uploaded file."""

    id: int
    user_id: int
    """Whose it is."""
    name: str
    """What it was called where it came from."""
    path: str
    """What it is known by: `realm/two digits/key/name`, as in its address."""
    size: int
    """Bytes."""
    media_type: str
    """As the uploader said."""
    created_at: int
    """UNIX seconds."""
    picture: ImageInfo | None = None
    """None where it is no picture that can be shown smaller."""

    @property
    def key(self) -> str:
        """The random part of the path, which no other file has."""
        return key_in(self.path)


class AttachmentMessage(Struct, frozen=True, kw_only=True):
    """A message links a file: its readers may open the file."""

    attachment_id: int
    message_id: int


class RemovedFile(Struct, frozen=True, kw_only=True):
    """A file whose attachment is gone, and which may still lie on the disk."""

    id: int
    """The attachment's."""
    path: str


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
