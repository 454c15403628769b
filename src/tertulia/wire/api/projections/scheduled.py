"""Events of what waits for its time, for the one who set it."""

from typing import Final

from tertulia.model import changes
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.scheduled import (
    ReminderObject,
    ScheduledMessageObject,
    reminder_object,
    scheduled_object,
)
from tertulia.wire.api.projection import Projections, to_owner


class ScheduledMessagesAddEvent(Event, kw_only=True, tag="scheduled_messages"):
    """A message waits."""

    op: str = "add"
    scheduled_messages: list[ScheduledMessageObject]


class ScheduledMessagesUpdateEvent(Event, kw_only=True, tag="scheduled_messages"):
    """A message that waits was changed, or could not be sent."""

    op: str = "update"
    scheduled_message: ScheduledMessageObject


class ScheduledMessagesRemoveEvent(Event, kw_only=True, tag="scheduled_messages"):
    """A message was sent, or is not to be sent."""

    op: str = "remove"
    scheduled_message_id: int


class RemindersAddEvent(Event, kw_only=True, tag="reminders"):
    """A reminder waits."""

    op: str = "add"
    reminders: list[ReminderObject]


class RemindersRemoveEvent(Event, kw_only=True, tag="reminders"):
    """A reminder came, or is not to come."""

    op: str = "remove"
    reminder_id: int


PROJECTIONS: Final[Projections] = (
    to_owner(
        changes.MessageScheduled,
        lambda _, change: ScheduledMessagesAddEvent(
            scheduled_messages=[scheduled_object(change.message)]
        ),
    ),
    to_owner(
        changes.ScheduledMessageChanged,
        lambda _, change: ScheduledMessagesUpdateEvent(
            scheduled_message=scheduled_object(change.message)
        ),
    ),
    to_owner(
        changes.ScheduledMessageRemoved,
        lambda _, change: ScheduledMessagesRemoveEvent(scheduled_message_id=change.scheduled_id),
    ),
    to_owner(
        changes.ReminderSet,
        lambda _, change: RemindersAddEvent(reminders=[reminder_object(change.reminder)]),
    ),
    to_owner(
        changes.ReminderRemoved,
        lambda _, change: RemindersRemoveEvent(reminder_id=change.reminder_id),
    ),
)
