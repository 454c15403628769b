"""Transient events, which aren't stored and only reach existing queues."""

from msgspec import Struct


class Typing(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="typing"):
    """A user started or stopped typing to these people or in this topic."""

    sender_id: int
    started: bool
    at: float = 0
    """UNIX seconds."""
    recipients: tuple[int, ...] = ()
    """Everyone in a direct conversation, including the sender; ascending."""
    channel_id: int | None = None
    topic: str = ""


class EditTyping(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="edit_typing"):
    """A user started or stopped editing their message."""

    sender_id: int
    started: bool
    at: float
    """UNIX seconds."""
    message_id: int
    direct_id: int | None = None
    channel_id: int | None = None
    topic: str = ""


class PresenceChanged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="presence"):
    """A user was active or idle. Times are in UNIX seconds, 0 for never."""

    user_id: int
    active_at: int
    idle_at: int
    update_id: int
    at: int = 0
    """The time of the report."""
    notable: bool = True
    """Whether waiting clients get an event; otherwise it only updates nodes."""


class QueueGone(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="queue_gone"):
    """A queue was deleted."""

    queue_id: str


Transient = Typing | EditTyping | PresenceChanged | QueueGone
