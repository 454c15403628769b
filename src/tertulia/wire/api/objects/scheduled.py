"""Messages that wait for their time, and reminders, on the wire."""

from msgspec import UNSET, Struct, UnsetType

from tertulia.model.scheduled import Reminder, ScheduledMessage


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
