"""Scheduled messages and reminders."""

from msgspec import Struct

from tertulia.model.change import Change
from tertulia.model.numbers import UnixSeconds


class ScheduledMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that the server sends for its author later."""

    id: int
    """Not the ID of the sent message."""
    user_id: int
    """The author."""
    channel_id: int | None = None
    topic: str = ""
    """Empty for the general chat, and for direct messages."""
    user_ids: tuple[int, ...] = ()
    """The other people of a direct message, ascending; the author for notes to themselves."""
    content: str
    """Markdown source."""
    rendered: str
    """The HTML, with people's names when it was written."""
    deliver_at: UnixSeconds
    client: str = ""
    """The program that it was written in."""
    read_by_sender: bool = False
    failed: bool = False
    """Whether it was due but couldn't be sent. It needs a new time."""
    key_id: int | None = None
    """The access key that it was written with and is sent with, if the key is limited; None for
    full access."""


class Reminder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A reminder of a message for its reader."""

    id: int
    user_id: int
    """The reader."""
    message_id: int
    note: str = ""
    """The reader's note."""
    content: str
    """The reminder's text as Markdown."""
    rendered: str
    """HTML of `content`."""
    deliver_at: UnixSeconds


class MessageScheduled(Change, frozen=True, tag="message_scheduled"):
    user_id: int
    message: ScheduledMessage


class ScheduledMessageChanged(Change, frozen=True, tag="scheduled_message_changed"):
    """A scheduled message was changed by its author, or couldn't be sent."""

    user_id: int
    message: ScheduledMessage


class ScheduledMessageRemoved(Change, frozen=True, tag="scheduled_message_removed"):
    """A scheduled message was sent, or deleted by its author."""

    user_id: int
    scheduled_id: int


class ReminderSet(Change, frozen=True, tag="reminder_set"):
    user_id: int
    reminder: Reminder


class ReminderRemoved(Change, frozen=True, tag="reminder_removed"):
    """A reminder was delivered or deleted."""

    user_id: int
    reminder_id: int
