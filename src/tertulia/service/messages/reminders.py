"""Reminders: setting them, and bringing them when their time has come."""

from tertulia.domain.messages import reminders
from tertulia.model.scheduled import Reminder
from tertulia.service.caller import Caller
from tertulia.service.messages.reading import stored_message
from tertulia.service.node import Node


async def set_reminder(caller: Caller, message_id: int, deliver_at: int, note: str) -> int:
    """Remind the caller of a message at that time (UNIX seconds). The reminder's ID.

    Raises as `tertulia.domain.messages.reminders.set_reminder`.
    """
    message = await stored_message(caller.node, message_id)
    return await caller.submit(
        reminders.set_reminder, caller.render, message_id, message, deliver_at, note
    )


async def deliver_reminder(node: Node, reminder: Reminder) -> None:
    """Send the user the message, as it is by now."""
    message = await stored_message(node, reminder.message_id)
    await node.log.submit(None, reminders.deliver, node.renderer.render, reminder, message)


async def give_up_reminder(node: Node, reminder: Reminder) -> None:
    """Send the user a notice that the message cannot be shown."""
    await node.log.submit(None, reminders.give_up, node.renderer.render, reminder)
