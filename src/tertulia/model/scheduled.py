"""What one account has set a time for: messages to send, and messages to be reminded of."""

from msgspec import Struct

from tertulia.model.change import Change


class ScheduledMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that the server sends for its author when its time has come."""

    id: int
    """Not that of the message it becomes."""
    user_id: int
    """The author."""
    channel_id: int | None = None
    topic: str = ""
    """Of a channel message; empty for the general chat."""
    user_ids: tuple[int, ...] = ()
    """Of a direct message: the others, ascending; the author for notes to oneself."""
    content: str
    """Markdown source."""
    rendered: str
    """HTML, with the names of when it was written."""
    deliver_at: int
    """UNIX seconds."""
    client: str = ""
    """The program it was written in."""
    read_by_sender: bool = False
    failed: bool = False
    """Its time has come, and it could not be sent. It waits to be given another."""


class Reminder(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message that its reader wants to see again."""

    id: int
    user_id: int
    """The reader."""
    message_id: int
    note: str = ""
    """What the reader wrote about it."""
    content: str
    """What it is a reminder of, in words. Markdown source."""
    rendered: str
    """The same as HTML."""
    deliver_at: int
    """UNIX seconds."""


class MessageScheduled(Change, frozen=True, tag="message_scheduled"):
    """A message was scheduled."""

    user_id: int
    message: ScheduledMessage


class ScheduledMessageChanged(Change, frozen=True, tag="scheduled_message_changed"):
    """A scheduled message was changed by its author, or could not be sent."""

    user_id: int
    message: ScheduledMessage


class ScheduledMessageRemoved(Change, frozen=True, tag="scheduled_message_removed"):
    """A scheduled message was sent, or deleted by its author."""

    user_id: int
    scheduled_id: int


class ReminderSet(Change, frozen=True, tag="reminder_set"):
    """A reminder of a message was set."""

    user_id: int
    reminder: Reminder


class ReminderRemoved(Change, frozen=True, tag="reminder_removed"):
    """A reminder was delivered or deleted."""

    user_id: int
    reminder_id: int
