"""Transient events: they have no entry, and reach only the queues that there are at that moment."""

from msgspec import Struct


class Typing(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="typing"):
    """Somebody began or ceased to type, to the people or in the topic named."""

    sender_id: int
    started: bool
    at: float = 0
    """UNIX seconds."""
    recipients: tuple[int, ...] = ()
    """Of a direct conversation: everybody in it, the sender included; ascending."""
    channel_id: int | None = None
    topic: str = ""


class EditTyping(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="edit_typing"):
    """Somebody began or ceased to edit a message of theirs."""

    sender_id: int
    started: bool
    at: float
    """UNIX seconds."""
    message_id: int
    direct_id: int | None = None
    channel_id: int | None = None
    topic: str = ""


class PresenceChanged(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="presence"):
    """A user was active or idle. UNIX seconds, 0 for never."""

    user_id: int
    active_at: int
    idle_at: int
    update_id: int
    at: int = 0
    """When this was reported."""
    notable: bool = True
    """Whether clients that wait get an event; otherwise it only updates the nodes."""


class QueueGone(Struct, frozen=True, kw_only=True, omit_defaults=True, tag="queue_gone"):
    """A queue was deleted, wherever it was last polled."""

    queue_id: str


Transient = Typing | EditTyping | PresenceChanged | QueueGone
