"""Uploaded files, and the messages that they are attached to."""

from msgspec import Struct


class Picture(Struct, frozen=True, kw_only=True, omit_defaults=True):
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
    picture: Picture | None = None
    """None where it is no picture that can be shown smaller."""

    @property
    def key(self) -> str:
        """The random part of the path, which no other file has."""
        return self.path.split("/")[2]


class AttachmentMessage(Struct, frozen=True, kw_only=True):
    """A message links a file: whoever can read the message may open the file."""

    attachment_id: int
    message_id: int


class RemovedFile(Struct, frozen=True, kw_only=True):
    """A file whose attachment is gone, and which may still lie on the disk."""

    id: int
    """The attachment's."""
    path: str
