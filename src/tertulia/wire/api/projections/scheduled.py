"""Events of what waits for its time, for the one who set it."""

from collections.abc import Iterable
from typing import Any

from tertulia.model import changes
from tertulia.wire.api.events import Event, ForOwner, ProjectionContext
from tertulia.wire.api.objects.scheduled import (
    ReminderObject,
    ScheduledMessageObject,
    reminder_object,
    scheduled_object,
)


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


class MessageScheduledProjection(ForOwner[changes.MessageScheduled]):
    """A message that waits."""

    of = changes.MessageScheduled

    def events(
        self, context: ProjectionContext, change: changes.MessageScheduled, view: Any
    ) -> Iterable[Event]:
        yield ScheduledMessagesAddEvent(scheduled_messages=[scheduled_object(change.message)])


class ScheduledMessageChangedProjection(ForOwner[changes.ScheduledMessageChanged]):
    """A message that waits, as it is now."""

    of = changes.ScheduledMessageChanged

    def events(
        self, context: ProjectionContext, change: changes.ScheduledMessageChanged, view: Any
    ) -> Iterable[Event]:
        yield ScheduledMessagesUpdateEvent(scheduled_message=scheduled_object(change.message))


class ScheduledMessageRemovedProjection(ForOwner[changes.ScheduledMessageRemoved]):
    """A message that waits no more."""

    of = changes.ScheduledMessageRemoved

    def events(
        self, context: ProjectionContext, change: changes.ScheduledMessageRemoved, view: Any
    ) -> Iterable[Event]:
        yield ScheduledMessagesRemoveEvent(scheduled_message_id=change.scheduled_id)


class ReminderSetProjection(ForOwner[changes.ReminderSet]):
    """A reminder that waits."""

    of = changes.ReminderSet

    def events(
        self, context: ProjectionContext, change: changes.ReminderSet, view: Any
    ) -> Iterable[Event]:
        yield RemindersAddEvent(reminders=[reminder_object(change.reminder)])


class ReminderRemovedProjection(ForOwner[changes.ReminderRemoved]):
    """A reminder that waits no more."""

    of = changes.ReminderRemoved

    def events(
        self, context: ProjectionContext, change: changes.ReminderRemoved, view: Any
    ) -> Iterable[Event]:
        yield RemindersRemoveEvent(reminder_id=change.reminder_id)
