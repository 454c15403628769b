"""Uploaded files, and the messages that they are attached to."""

import re
from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds

ADDRESS = "/user_uploads/"
"""The prefix of files' paths."""
SHOWN: Final = frozenset(
    {
        "application/pdf",
        *("audio/aac", "audio/flac", "audio/mp4", "audio/mpeg", "audio/ogg", "audio/wav"),
        *("audio/wave", "audio/webm", "audio/x-m4a", "audio/x-wav"),
        *("image/apng", "image/avif", "image/gif", "image/jpeg", "image/png", "image/webp"),
        *("video/mp4", "video/webm"),
    }
)
"""Media types that browsers can show inline. None of them can run code."""
_LINKED = re.compile(
    re.escape(ADDRESS) + r"(?:download/|thumbnail/)?([0-9]+/[0-9a-f]{1,2}/[\w-]+/[\w.%-]+)"
)


def key_in(path: str) -> str:
    """Return the key in a path (`realm/two digits/key/name`), or an empty string."""
    parts = path.split("/")
    return parts[2] if len(parts) == 4 else ""


def linked_paths(content: str) -> Iterator[Sequence[str]]:
    """Yield, for each link to a file in a text, the paths that it may refer to, the most likely
    first. A period may follow the link, and some programs percent-encode it."""
    if ADDRESS in content:
        for path in _LINKED.findall(content):
            yield tuple(dict.fromkeys((path, path.rstrip("."), unquote(path))))


class ImageInfo(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The size of an image as it's displayed, after rotation."""

    width: int
    """Pixels."""
    height: int
    """Pixels."""
    animated: bool = False


class Attachment(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An uploaded file."""

    id: int
    user_id: int
    """The owner."""
    name: str
    """The file's name on the uploader's device."""
    path: str
    """`realm/two digits/key/name`, as in its URL."""
    size: int
    """Bytes."""
    media_type: str
    """The media type given by the uploader."""
    created_at: UnixSeconds
    picture: ImageInfo | None = None
    """The size of an image that can be scaled down; None for other files."""

    @property
    def key(self) -> str:
        """The random part of the path, which is unique."""
        return key_in(self.path)


class AttachmentMessage(Struct, frozen=True, kw_only=True):
    """A link in a message to a file, which the message's readers can open."""

    attachment_id: int
    message_id: int


class RemovedFile(Struct, frozen=True, kw_only=True):
    """A file whose attachment was removed, but which may still be stored."""

    id: int
    """The attachment's ID."""
    path: str


class AttachmentAdded(Change, frozen=True, tag="attachment_added"):
    attachment: Attachment


class AttachmentRemoved(Change, frozen=True, tag="attachment_removed"):
    """A file was deleted by its owner or an administrator, or because nothing links it. `user_id`
    is the owner."""

    attachment_id: int
    user_id: int


class FilesDeleted(Change, frozen=True, tag="files_deleted"):
    """Stored files of removed attachments were deleted."""

    attachment_ids: tuple[int, ...]
