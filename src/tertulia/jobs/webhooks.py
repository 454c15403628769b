"""Jobs for webhooks, bots' services, and feeds."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.model.changes import Entry, FeedAdded, FeedChanged
from tertulia.service.node import Node
from tertulia.service.webhooks.calling import Encoder, ServiceCaller
from tertulia.service.webhooks.embedded import Interface
from tertulia.service.webhooks.feeds import FeedReader

GATHERING_SECONDS: Final = 1.0
"""Lines of this period are written together."""
LONGEST_SLEEP: Final = 60.0


def webhook_journal(node: Node) -> Job:
    """Write bots' journals."""
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
    """Call bots' services and embedded bots, with retries."""
    caller = ServiceCaller(node, encode, interface)
    job = Job("service calls", caller.once, close=caller.close)
    caller.tasks.ended = job.want
    node.log.on_call(job.want)
    return job


def feeds(node: Node) -> Job:
    """Post new entries of feeds: immediately for a new feed, and then regularly."""
    reader = FeedReader(node)
    job = Job("feeds", reader.once, close=reader.tasks.close)
    reader.tasks.ended = job.want

    def follow(entries: Sequence[Entry]) -> None:
        if any(isinstance(entry.change, FeedAdded | FeedChanged) for entry in entries):
            job.want()

    node.log.follow(follow)
    return job
