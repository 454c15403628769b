"""What people have set a time for, done when it has come: messages to send, and reminders.

Whoever prepares looks at the first that is due and reads what sending it needs; the verb then does
that one, if it is still as it was.
"""

from collections.abc import Sequence
from typing import Any

from tertulia.domain import reminders, scheduled
from tertulia.log.clock import Due
from tertulia.store import reading
from tertulia.wire.call import Node
from tertulia.wire.resources.messages import composed


def messages_to_send(node: Node) -> Due:
    """Sending what was scheduled."""

    async def prepare() -> Sequence[Any]:
        first = node.state.scheduled_by_time.first
        if first is None:
            return ()
        draft = await composed(
            node,
            node.state.users[first.user_id],
            scheduled.destination(first),
            first.content,
            author_id=first.user_id,
            client=first.client,
            read_by_sender=first.read_by_sender,
        )
        return (first, draft)

    return Due(scheduled.next_time, scheduled.deliver, (node.renderer.render,), prepare)


def messages_to_be_reminded_of(node: Node) -> Due:
    """Bringing reminders."""

    async def prepare() -> Sequence[Any]:
        first = node.state.reminders_by_time.first
        if first is None:
            return ()
        found = await node.store.read(reading.messages, [first.message_id])
        return (first, found[0] if found else None)

    return Due(reminders.next_time, reminders.deliver, (node.renderer.render,), prepare)
