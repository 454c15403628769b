"""Reminders: messages that come back as direct messages, at a time of their reader's."""

from typing import Annotated

from msgspec import Meta

from tertulia.domain.messages import reminders
from tertulia.service.messages import reminders as service
from tertulia.wire.api.objects.scheduled import ReminderObject, reminder_object
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import Answer


class GetReminders(Params, kw_only=True, frozen=True):
    """No parameters."""


class Reminders(Answer, kw_only=True):
    """The caller's reminders, in the order of their times."""

    reminders: list[ReminderObject]


async def get_reminders(call: Call, params: GetReminders) -> Reminders:
    """The caller's reminders, in the order of their times."""
    own = reminders.of_user(call.state, call.user.id)
    return Reminders(reminders=[reminder_object(reminder) for reminder in own])


class SetReminder(Params, kw_only=True, frozen=True):
    """Of what the caller is to be reminded, and when."""

    message_id: Int
    scheduled_delivery_timestamp: Annotated[Int, Meta(description="UNIX seconds, to come.")]
    note: Annotated[
        str | None, Meta(description="At most max_reminder_note_length characters.")
    ] = None


class NewReminder(Answer, kw_only=True):
    """The new reminder's ID."""

    reminder_id: int


async def set_reminder(call: Call, params: SetReminder) -> NewReminder:
    """Be reminded of a message by a direct message of the Notification Bot."""
    at = params.scheduled_delivery_timestamp
    made = await service.set_reminder(call, params.message_id, at, params.note or "")
    return NewReminder(reminder_id=made)


class DeleteReminder(Params, kw_only=True, frozen=True):
    """A reminder that is not to come."""

    reminder_id: Annotated[Int, Path()]


async def delete_reminder(call: Call, params: DeleteReminder) -> Answer:
    """Delete a reminder."""
    await call.submit(reminders.delete, params.reminder_id)
    return Answer()
