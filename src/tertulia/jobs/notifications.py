"""Telling people of what concerns them while they are away."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.model.changes import Entry, MessageEdited, MessageSent
from tertulia.service.mailing import mail_sender
from tertulia.service.node import Node
from tertulia.service.notifications.channels import Means
from tertulia.service.notifications.digests import ask_for_digests
from tertulia.service.notifications.following import Notices
from tertulia.service.notifications.mail import ByMail
from tertulia.service.notifications.push import ByPush
from tertulia.service.notifications.pushing import PushSender

DIGEST_PERIOD_SECONDS: Final = 900.0
"""Between two looks whether it is the day."""


def notices(node: Node, mails_wanted: Callable[[], None], pushes_wanted: Callable[[], None]) -> Job:
    """Finding out who is to be told of what was written, and telling them when it is time, by the
    means that there are. The others are called when there is something for them to send."""
    means: list[Means] = []
    if node.config.tells_by_mail:
        means.append(ByMail(node.log, node.config.mail_site, mails_wanted))
    if node.config.web_push:
        means.append(ByPush(node.log, pushes_wanted))
    following = Notices(node.log, node.delivery.presence, means)
    elapsed = node.log.elapsed
    looked_at = -math.inf

    async def once() -> float:
        nonlocal looked_at
        wait = looked_at + min(one.patience for one in means) - elapsed()
        if wait > 0:
            return wait
        looked_at = elapsed()
        return await following.once()

    job = Job("notices", once, close=following.close)

    def follow(entries: Sequence[Entry]) -> None:
        if any(isinstance(entry.change, MessageSent | MessageEdited) for entry in entries):
            job.want()

    node.log.follow(follow)
    node.log.on_reload(job.want)
    return job


def digests(node: Node, mails_wanted: Callable[[], None]) -> Job:
    """Asking for the digests on the organization's day. `mails_wanted` as for `notices`."""

    async def once() -> float:
        await ask_for_digests(node, mails_wanted)
        return DIGEST_PERIOD_SECONDS

    return Job("digests", once)


def mails(node: Node) -> Job:
    """Sending mails, as soon as one is asked for, and again those that could not be sent."""
    job = Job("mails", mail_sender(node).once)
    node.log.on_mail(job.want)
    return job


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
