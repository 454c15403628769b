"""Scheduled messages and reminders."""

from tertulia.model.changes.base import Change
from tertulia.model.scheduled import Reminder, ScheduledMessage


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
