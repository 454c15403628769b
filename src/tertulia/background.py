"""What a node does by itself, beside answering."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial

from tertulia import appointments
from tertulia.domain import attachments, channel_activity, signing_out, waiting
from tertulia.log.clock import Clock, Due
from tertulia.log.file_keeping import FileKeeper
from tertulia.log.housekeeping import keep_pruned
from tertulia.mailing import postman
from tertulia.previewing import Previewer
from tertulia.retention import keep_retained
from tertulia.wire.call import Node


@asynccontextmanager
async def working(node: Node) -> AsyncIterator[None]:
    """Do it for the time of the context."""
    config, log = node.config, node.log
    tasks = [
        asyncio.create_task(keep_pruned(log.store, config.log_retention_days, log.clock)),
        asyncio.create_task(Clock(log, due_work(node)).run()),
        asyncio.create_task(keep_retained(log)),
        asyncio.create_task(FileKeeper(log, node.uploads, attachments.files_deleted).run()),
        asyncio.create_task(Previewer(node).run()),
        asyncio.create_task(postman(config, log, node.links).run(log)),
    ]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def due_work(node: Node) -> Sequence[Due]:
    """What the node does when its time has come."""
    days = node.config.unclaimed_upload_days
    unclaimed = partial(attachments.unclaimed_due, days)
    return (
        Due(waiting.next_end, waiting.end),
        Due(channel_activity.due, channel_activity.update),
        appointments.messages_to_send(node),
        appointments.messages_to_be_reminded_of(node),
        Due(signing_out.next_expiry, signing_out.expire),
        Due(unclaimed, attachments.remove_unclaimed, (days,)),
    )
