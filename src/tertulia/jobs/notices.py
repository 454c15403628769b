"""Telling people of what concerns them while they are away."""

from collections.abc import Callable, Sequence

from tertulia.jobs.supervisor import Job
from tertulia.model.changes import Entry, MessageEdited, MessageSent
from tertulia.service.node import Node
from tertulia.service.notices.following import Notices
from tertulia.service.notices.mail import ByMail
from tertulia.service.notices.means import Means


def notices(node: Node, mails_wanted: Callable[[], None]) -> Job:
    """Finding out who is to be told of what was written, and telling them when it is time.
    `mails_wanted` is called when there are mails to be sent."""
    means: list[Means] = [ByMail(node.log, node.config.mail_site, mails_wanted)]
    following = Notices(node.log, node.delivery.presence, means)
    job = Job("notices", following.once, close=following.close)

    def follow(entries: Sequence[Entry]) -> None:
        if any(isinstance(entry.change, MessageSent | MessageEdited) for entry in entries):
            job.want()

    node.log.follow(follow)
    node.log.on_reload(job.want)
    return job
