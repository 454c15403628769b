"""What people have set a time for, done when it has come: messages to send, and reminders."""

from functools import partial

from tertulia.jobs.due import DueItems, due_items_job
from tertulia.jobs.supervisor import Job
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.service.messages.reminders import deliver_reminder, give_up_reminder
from tertulia.service.messages.scheduling import give_up_scheduled, send_scheduled
from tertulia.service.node import Node


def messages_to_send(node: Node) -> Job:
    """Sending what was scheduled."""
    waiting: DueItems[ScheduledMessage] = DueItems(
        in_order=lambda state: state.scheduled_messages.by_time,
        time=lambda message: message.deliver_at,
        key=lambda message: message.id,
        do=partial(send_scheduled, node),
        give_up=partial(give_up_scheduled, node),
    )
    return due_items_job(node.log, "scheduled messages", waiting)


def messages_to_be_reminded_of(node: Node) -> Job:
    """Bringing reminders."""

    async def give_up(reminder: Reminder, _reason: str) -> None:
        await give_up_reminder(node, reminder)

    waiting: DueItems[Reminder] = DueItems(
        in_order=lambda state: state.reminders.by_time,
        time=lambda reminder: reminder.deliver_at,
        key=lambda reminder: reminder.id,
        do=partial(deliver_reminder, node),
        give_up=give_up,
    )
    return due_items_job(node.log, "reminders", waiting)
