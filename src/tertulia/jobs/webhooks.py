"""Calling bots' services, and writing down what came of webhooks."""

import asyncio
from functools import partial
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.service.node import Node
from tertulia.service.webhooks.calling import Encoder, ServiceCaller
from tertulia.service.webhooks.embedded import Interface

GATHERING_SECONDS: Final = 1.0
"""What comes in so many seconds is written together."""
LONGEST_SLEEP: Final = 60.0


def webhook_journal(node: Node) -> Job:
    """Writing the lines of bots' journals."""
    journal = node.journal

    async def once() -> float:
        if not journal.is_empty:
            await journal.write(node.store)
            await asyncio.sleep(GATHERING_SECONDS)
        return LONGEST_SLEEP

    job = Job("webhook journal", once, close=partial(journal.write, node.store))
    journal.wanted = job.want
    return job


def service_calls(node: Node, encode: Encoder, interface: Interface) -> Job:
    """Telling bots' services and embedded bots of messages, as soon as one is sent, and again those
    that failed."""
    caller = ServiceCaller(node, encode, interface)
    job = Job("service calls", caller.once, close=caller.close)
    caller.tasks.ended = job.want
    node.log.on_call(job.want)
    return job
