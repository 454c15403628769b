"""What is known of a mail that has come in."""

from msgspec import Struct


class MailFile(Struct, frozen=True, kw_only=True):
    """A file in a mail."""

    name: str
    content_type: str
    size: int
    """Bytes."""


class ReceivedMail(Struct, frozen=True, kw_only=True):
    """A mail, as far as a message is made of it."""

    message_id: str
    """As its header has it; empty where it has none."""
    title: str
    sender: str
    """Who sent it, as its header says: nobody has proved it."""
    is_answered_by_itself: bool
    """Whether a program wrote it in answer to another mail: somebody's absence, a bounce."""
    is_automatic: bool
    """Whether a program wrote it at all."""
    hops: int
    """Servers that it has come through."""
    text: str
    """In Markdown."""
    files: tuple[MailFile, ...]
