"""Messages that wait for their time, and reminders."""

from tertulia.model.changes.base import Change
from tertulia.model.scheduled import Reminder, ScheduledMessage


class MessageScheduled(Change, frozen=True, tag="message_scheduled"):
    """A message waits to be sent."""

    user_id: int
    message: ScheduledMessage


class ScheduledMessageChanged(Change, frozen=True, tag="scheduled_message_changed"):
    """The author has changed a message that waits, or it could not be sent."""

    user_id: int
    message: ScheduledMessage


class ScheduledMessageRemoved(Change, frozen=True, tag="scheduled_message_removed"):
    """A message waits no more: it was sent, or its author deleted it."""

    user_id: int
    scheduled_id: int


class ReminderSet(Change, frozen=True, tag="reminder_set"):
    """Somebody is to be reminded of a message."""

    user_id: int
    reminder: Reminder


class ReminderRemoved(Change, frozen=True, tag="reminder_removed"):
    """A reminder came, or was deleted."""

    user_id: int
    reminder_id: int
