"""Scheduled messages and reminders."""

from typing import Annotated, Final, Literal

from msgspec import UNSET, Struct, UnsetType

from tertulia.domain.messages import scheduled
from tertulia.domain.messages.sending import ToPeople
from tertulia.model import changes
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.service.messages import scheduled as scheduling
from tertulia.service.messages.scheduled import ScheduledEdit
from tertulia.wire.api.events import Event
from tertulia.wire.api.messages.sending import SendMessageResponse, counts_as_read, sent_message
from tertulia.wire.api.projection import Projections, to_owner
from tertulia.wire.api.section import Sections
from tertulia.wire.http.parameters import Doc, Int, IntPath
from tertulia.wire.http.routing import ApiResponse, Call


class ScheduledMessageObject(Struct, kw_only=True):
    """A scheduled message. `to` is a channel ID, or a list of user IDs. `topic` is present only for
    channel messages."""

    scheduled_message_id: int
    type: str
    to: int | list[int]
    topic: str | UnsetType = UNSET
    content: str
    rendered_content: str
    scheduled_delivery_timestamp: int
    failed: bool


class ReminderObject(Struct, kw_only=True):
    """A reminder. It's sent as a direct message."""

    reminder_id: int
    type: str = "private"
    to: list[int]
    content: str
    rendered_content: str
    scheduled_delivery_timestamp: int
    failed: bool = False
    reminder_target_message_id: int


def scheduled_object(scheduled: ScheduledMessage) -> ScheduledMessageObject:
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
    return ReminderObject(
        reminder_id=reminder.id,
        to=[reminder.user_id],
        content=reminder.content,
        rendered_content=reminder.rendered,
        scheduled_delivery_timestamp=reminder.deliver_at,
        reminder_target_message_id=reminder.message_id,
    )


class ScheduledMessagesAddEvent(Event, kw_only=True, tag="scheduled_messages"):
    """You scheduled a message."""

    op: str = "add"
    scheduled_messages: list[ScheduledMessageObject]


class ScheduledMessagesUpdateEvent(Event, kw_only=True, tag="scheduled_messages"):
    """A scheduled message was changed, or couldn't be sent."""

    op: str = "update"
    scheduled_message: ScheduledMessageObject


class ScheduledMessagesRemoveEvent(Event, kw_only=True, tag="scheduled_messages"):
    """A scheduled message was sent or deleted."""

    op: str = "remove"
    scheduled_message_id: int


class RemindersAddEvent(Event, kw_only=True, tag="reminders"):
    """You set a reminder."""

    op: str = "add"
    reminders: list[ReminderObject]


class RemindersRemoveEvent(Event, kw_only=True, tag="reminders"):
    """A reminder was sent or deleted."""

    op: str = "remove"
    reminder_id: int


MessageType = Literal["direct", "channel", "stream", "private"]
To = Int | list[Int]

_TO = Doc("A channel ID, or user IDs.")
_TOPIC = Doc("Required for channel messages.")
_TIME = Doc("When to send it: a UNIX time in the future.")
_CONTENT = Doc("Markdown, at most max_message_length characters.")


class ScheduledMessagesResponse(ApiResponse, kw_only=True):
    """Your scheduled messages, in the order they will be sent."""

    scheduled_messages: list[ScheduledMessageObject]


async def get_scheduled_messages(call: Call) -> ScheduledMessagesResponse:
    """Get your scheduled messages."""
    messages = scheduled.scheduled_of(call.state, call.user)
    return ScheduledMessagesResponse(
        scheduled_messages=[scheduled_object(message) for message in messages]
    )


class ScheduledMessageResponse(ApiResponse, kw_only=True):
    """The scheduled message's ID. The sent message will have another ID."""

    scheduled_message_id: int


async def schedule_message(
    call: Call,
    *,
    type: MessageType,
    to: Annotated[To, _TO],
    content: Annotated[str, _CONTENT],
    topic: Annotated[str | None, _TOPIC] = None,
    scheduled_delivery_timestamp: Annotated[Int, _TIME],
    read_by_sender: Annotated[
        bool | None,
        Doc(
            "Whether the message counts as read for you. By default, this depends on the client,"
            " and messages to yourself are unread."
        ),
    ] = None,
) -> ScheduledMessageResponse:
    """Schedule a message."""
    destination = scheduling.scheduled_destination(_is_direct(type), _ids(to), topic)
    if read_by_sender is None and destination == ToPeople(frozenset({call.user.id})):
        read_by_sender = False  # It's a note for later, so it stays unread.
    scheduled_id = await scheduling.schedule_message(
        call,
        destination,
        content,
        scheduled_delivery_timestamp,
        client=call.client,
        read_by_sender=counts_as_read(call, read_by_sender),
    )
    return ScheduledMessageResponse(scheduled_message_id=scheduled_id)


async def edit_scheduled_message(
    call: Call,
    scheduled_message_id: IntPath,
    type: Annotated[MessageType | None, Doc("Requires `to`, and for channels `topic`.")] = None,
    to: Annotated[To | None, _TO] = None,
    topic: Annotated[str | None, _TOPIC] = None,
    content: Annotated[str | None, _CONTENT] = None,
    scheduled_delivery_timestamp: Annotated[
        Int | None, Doc("Required if the message couldn't be sent.")
    ] = None,
) -> None:
    """Change a scheduled message or its time."""
    edit = ScheduledEdit(
        is_direct=None if type is None else _is_direct(type),
        to=None if to is None else _ids(to),
        topic=topic,
        content=content,
        deliver_at=scheduled_delivery_timestamp,
    )
    await scheduling.change_scheduled(call, scheduled_message_id, edit, client=call.client)


async def delete_scheduled_message(call: Call, scheduled_message_id: IntPath) -> None:
    """Delete a scheduled message."""
    await call.submit(scheduled.delete, scheduled_message_id)


async def send_scheduled_message(call: Call, scheduled_message_id: IntPath) -> SendMessageResponse:
    """Send a scheduled message now. Repeating the request doesn't send it twice."""
    return sent_message(await scheduling.send_scheduled_now(call, scheduled_message_id))


def _is_direct(kind: MessageType) -> bool:
    return kind in {"direct", "private"}


def _ids(to: To) -> list[int]:
    return to if isinstance(to, list) else [to]


class RemindersResponse(ApiResponse, kw_only=True):
    """Your reminders, in the order they will be sent."""

    reminders: list[ReminderObject]


async def get_reminders(call: Call) -> RemindersResponse:
    """Get your reminders."""
    reminders = scheduled.reminders_of(call.state, call.user.id)
    return RemindersResponse(reminders=[reminder_object(reminder) for reminder in reminders])


class NewReminderResponse(ApiResponse, kw_only=True):
    """The new reminder's ID."""

    reminder_id: int


async def set_reminder(
    call: Call,
    message_id: Int,
    scheduled_delivery_timestamp: Annotated[Int, Doc("A UNIX time in the future.")],
    note: Annotated[str | None, Doc("At most max_reminder_note_length characters.")] = None,
) -> NewReminderResponse:
    """Set a reminder for a message. The Notification Bot sends it as a direct message."""
    reminder_id = await scheduling.set_reminder(
        call, message_id, scheduled_delivery_timestamp, note or ""
    )
    return NewReminderResponse(reminder_id=reminder_id)


async def delete_reminder(call: Call, reminder_id: IntPath) -> None:
    """Delete a reminder."""
    await call.submit(scheduled.delete_reminder, reminder_id)


SECTIONS: Final[Sections] = {
    ("scheduled_messages",): lambda context: {
        "scheduled_messages": [
            scheduled_object(message)
            for message in (
                ()
                if context.viewer is None
                else scheduled.scheduled_of(context.state, context.viewer)
            )
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
