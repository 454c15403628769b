"""Pushing to people's browsers and other programs."""

from collections.abc import Sequence

from tertulia.jobs.supervisor import Job
from tertulia.model.changes import Entry
from tertulia.service.node import Node
from tertulia.service.notices.pushing import PushSender


def pushes(node: Node) -> Job:
    """Pushing what people are told, as soon as they are to be, and again what could not be pushed;
    and taking back what they have read elsewhere."""
    sender = PushSender(node)
    job = Job("pushes", sender.once, close=sender.tasks.close)
    sender.tasks.ended = job.want

    def follow(entries: Sequence[Entry]) -> None:
        if sender.follow(entries):
            job.want()

    node.log.follow(follow)
    return job
