"""Reading the feeds that bots follow."""

from collections.abc import Sequence

from tertulia.jobs.supervisor import Job
from tertulia.model.changes import Entry, FeedAdded, FeedChanged
from tertulia.service.node import Node
from tertulia.service.webhooks.feeds import FeedReader


def feeds(node: Node) -> Job:
    """Telling what is new in feeds: at once in one that was added, and then every so often."""
    reader = FeedReader(node)
    job = Job("feeds", reader.once, close=reader.tasks.close)
    reader.tasks.ended = job.want

    def follow(entries: Sequence[Entry]) -> None:
        if any(isinstance(entry.change, FeedAdded | FeedChanged) for entry in entries):
            job.want()

    node.log.follow(follow)
    return job
