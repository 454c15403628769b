"""What people have set a time for, done when it has come: messages to send, and reminders."""

from tertulia.domain.messages import reminders, scheduled
from tertulia.jobs.due import DueItems, due_items_job
from tertulia.jobs.supervisor import Job
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.service.composing import prepare_message
from tertulia.service.node import Node
from tertulia.store import queries


def messages_to_send(node: Node) -> Job:
    """Sending what was scheduled."""

    async def send(message: ScheduledMessage) -> None:
        draft = await prepare_message(
            node,
            node.state.users[message.user_id],
            scheduled.destination(message),
            message.content,
            author_id=message.user_id,
            client=message.client,
            read_by_sender=message.read_by_sender,
        )
        await node.log.submit(None, scheduled.deliver, node.renderer.render, message, draft)

    async def give_up(message: ScheduledMessage, reason: str) -> None:
        await node.log.submit(None, scheduled.give_up, node.renderer.render, message, reason)

    waiting: DueItems[ScheduledMessage] = DueItems(
        in_order=lambda state: state.scheduled_by_time,
        time=lambda message: message.deliver_at,
        key=lambda message: message.id,
        do=send,
        give_up=give_up,
    )
    return due_items_job(node.log, "scheduled messages", waiting)


def messages_to_be_reminded_of(node: Node) -> Job:
    """Bringing reminders."""

    async def remind(reminder: Reminder) -> None:
        found = await node.store.read(queries.messages, [reminder.message_id])
        message = found[0] if found else None
        await node.log.submit(None, reminders.deliver, node.renderer.render, reminder, message)

    async def give_up(reminder: Reminder, reason: str) -> None:
        await node.log.submit(None, reminders.give_up, node.renderer.render, reminder)

    waiting: DueItems[Reminder] = DueItems(
        in_order=lambda state: state.reminders_by_time,
        time=lambda reminder: reminder.deliver_at,
        key=lambda reminder: reminder.id,
        do=remind,
        give_up=give_up,
    )
    return due_items_job(node.log, "reminders", waiting)
