"""Messages that wait for their time, and reminders, on the wire."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.messages import scheduled as reminders
from tertulia.domain.messages import scheduled as scheduled
from tertulia.model import changes
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.service.messages import scheduled as scheduling
from tertulia.service.messages import scheduled as service
from tertulia.service.messages.scheduled import ScheduledEdit
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.sending import SentMessage, counts_as_read, sent_message
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call


class ScheduledMessageObject(Struct, kw_only=True):
    """A message that waits: `to` is the channel's ID, or the IDs of people; `topic` is there for
    channels only."""

    scheduled_message_id: int
    type: str
    to: int | list[int]
    topic: str | UnsetType = UNSET
    content: str
    rendered_content: str
    scheduled_delivery_timestamp: int
    failed: bool


class ReminderObject(Struct, kw_only=True):
    """A reminder that waits; it will come as a direct message."""

    reminder_id: int
    type: str = "private"
    to: list[int]
    content: str
    rendered_content: str
    scheduled_delivery_timestamp: int
    failed: bool = False
    reminder_target_message_id: int


def scheduled_object(scheduled: ScheduledMessage) -> ScheduledMessageObject:
    """The message that waits, for its author."""
    is_channel = scheduled.channel_id is not None
    return ScheduledMessageObject(
        scheduled_message_id=scheduled.id,
        type="stream" if is_channel else "private",
        to=scheduled.channel_id if scheduled.channel_id is not None else list(scheduled.user_ids),
        topic=scheduled.topic if is_channel else UNSET,
        content=scheduled.content,
        rendered_content=scheduled.rendered,
        scheduled_delivery_timestamp=scheduled.deliver_at,
        failed=scheduled.failed,
    )


def reminder_object(reminder: Reminder) -> ReminderObject:
    """The reminder, for the one who is reminded."""
    return ReminderObject(
        reminder_id=reminder.id,
        to=[reminder.user_id],
        content=reminder.content,
        rendered_content=reminder.rendered,
        scheduled_delivery_timestamp=reminder.deliver_at,
        reminder_target_message_id=reminder.message_id,
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


Kind = Literal["direct", "channel", "stream", "private"]
To = Int | list[Int]

_TO = Meta(description="The channel's ID; or user IDs.")
_TOPIC = Meta(description="Required for channel messages.")
_TIME = Meta(description="When to send it: UNIX seconds, to come.")
_CONTENT = Meta(description="Markdown, at most max_message_length characters.")


class GetScheduled(Params, kw_only=True, frozen=True):
    """No parameters."""


class Scheduled(ApiResponse, kw_only=True):
    """What the caller has scheduled, in the order of its times."""

    scheduled_messages: list[ScheduledMessageObject]


async def get_scheduled_messages(call: Call, params: GetScheduled) -> Scheduled:
    """What the caller has scheduled, in the order of its times."""
    own = scheduled.of_user(call.state, call.user.id)
    return Scheduled(scheduled_messages=[scheduled_object(message) for message in own])


class ScheduleMessage(Params, kw_only=True, frozen=True):
    """A message to send later."""

    type: Kind
    to: Annotated[To, _TO]
    content: Annotated[str, _CONTENT]
    topic: Annotated[str | None, _TOPIC] = None
    scheduled_delivery_timestamp: Annotated[Int, _TIME]
    read_by_sender: Annotated[
        bool | None,
        Meta(description="Whether it is read already; by default, for programs people write in."),
    ] = None


class NewScheduled(ApiResponse, kw_only=True):
    """The ID of what waits; the message will have another."""

    scheduled_message_id: int


async def schedule_message(call: Call, params: ScheduleMessage) -> NewScheduled:
    """Send a message later."""
    scheduled_id = await scheduling.schedule_message(
        call,
        scheduling.scheduled_destination(_is_direct(params.type), _ids(params.to), params.topic),
        params.content,
        params.scheduled_delivery_timestamp,
        client=call.client,
        read_by_sender=counts_as_read(call, params.read_by_sender),
    )
    return NewScheduled(scheduled_message_id=scheduled_id)


class EditScheduled(Params, kw_only=True, frozen=True):
    """What a message that waits shall be; what is not sent stays."""

    scheduled_message_id: Annotated[Int, Path()]
    type: Annotated[Kind | None, Meta(description="Needs `to`, and for channels `topic`.")] = None
    to: Annotated[To | None, _TO] = None
    topic: Annotated[str | None, _TOPIC] = None
    content: Annotated[str | None, _CONTENT] = None
    scheduled_delivery_timestamp: Annotated[
        Int | None, Meta(description="One that could not be sent needs another time.")
    ] = None


async def edit_scheduled_message(call: Call, params: EditScheduled) -> ApiResponse:
    """Change a message that waits, or when it is sent."""
    edit = ScheduledEdit(
        is_direct=None if params.type is None else _is_direct(params.type),
        to=None if params.to is None else _ids(params.to),
        topic=params.topic,
        content=params.content,
        deliver_at=params.scheduled_delivery_timestamp,
    )
    await scheduling.change_scheduled(call, params.scheduled_message_id, edit, client=call.client)
    return ApiResponse()


class DeleteScheduled(Params, kw_only=True, frozen=True):
    """A message that is not to be sent."""

    scheduled_message_id: Annotated[Int, Path()]


async def delete_scheduled_message(call: Call, params: DeleteScheduled) -> ApiResponse:
    """Do not send a message that waits."""
    await call.submit(scheduled.delete, params.scheduled_message_id)
    return ApiResponse()


class SendScheduled(Params, kw_only=True, frozen=True):
    """A message that is to be sent before its time."""

    scheduled_message_id: Annotated[Int, Path()]


async def send_scheduled_message(call: Call, params: SendScheduled) -> SentMessage:
    """Send a message that waits now: in one step, so that asked twice it is sent once."""
    return sent_message(await scheduling.send_scheduled_now(call, params.scheduled_message_id))


def _is_direct(kind: Kind) -> bool:
    return kind in {"direct", "private"}


def _ids(to: To) -> list[int]:
    return to if isinstance(to, list) else [to]


class GetReminders(Params, kw_only=True, frozen=True):
    """No parameters."""


class Reminders(ApiResponse, kw_only=True):
    """The caller's reminders, in the order of their times."""

    reminders: list[ReminderObject]


async def get_reminders(call: Call, params: GetReminders) -> Reminders:
    """The caller's reminders, in the order of their times."""
    own = reminders.reminders_of(call.state, call.user.id)
    return Reminders(reminders=[reminder_object(reminder) for reminder in own])


class SetReminder(Params, kw_only=True, frozen=True):
    """Of what the caller is to be reminded, and when."""

    message_id: Int
    scheduled_delivery_timestamp: Annotated[Int, Meta(description="UNIX seconds, to come.")]
    note: Annotated[
        str | None, Meta(description="At most max_reminder_note_length characters.")
    ] = None


class NewReminder(ApiResponse, kw_only=True):
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


async def delete_reminder(call: Call, params: DeleteReminder) -> ApiResponse:
    """Delete a reminder."""
    await call.submit(reminders.delete_reminder, params.reminder_id)
    return ApiResponse()


SECTIONS: Final[Sections] = {
    ("scheduled_messages",): lambda context: {
        "scheduled_messages": [
            scheduled_object(message)
            for message in scheduled.of_user(context.state, context.viewer_id)
        ]
    },
    ("reminders",): lambda context: {
        "reminders": [
            reminder_object(reminder)
            for reminder in scheduled.reminders_of(context.state, context.viewer_id)
        ]
    },
}


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
