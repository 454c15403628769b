"""Jobs that notify people by email and push."""

import math
from collections.abc import Callable, Sequence
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.model.changes import Entry, MessageEdited, MessageSent
from tertulia.service.mailing import mail_sender
from tertulia.service.node import Node
from tertulia.service.notifications.digests import ask_for_digests
from tertulia.service.notifications.mail import MailChannel
from tertulia.service.notifications.notifier import NotificationChannel, Notifier
from tertulia.service.notifications.push import PushChannel
from tertulia.service.notifications.push_sender import PushSender

DIGEST_PERIOD_SECONDS: Final = 900.0


def notification_job(
    node: Node, mails_wanted: Callable[[], None], pushes_wanted: Callable[[], None]
) -> Job:
    """Decide whom to notify of new messages, and queue emails and pushes when they are due. The
    callbacks are called when there is something to send."""
    channels: list[NotificationChannel] = []
    if node.config.sends_notification_emails:
        channels.append(MailChannel(node.log, node.config.mail_site, mails_wanted))
    if node.config.web_push:
        channels.append(PushChannel(node.log, pushes_wanted))
    notifier = Notifier(node.log, node.delivery.presence, channels)
    elapsed = node.log.elapsed
    looked_at = -math.inf

    async def once() -> float:
        nonlocal looked_at
        wait = looked_at + min(one.interval for one in channels) - elapsed()
        if wait > 0:
            return wait
        looked_at = elapsed()
        return await notifier.once()

    job = Job("notices", once, close=notifier.close)

    def follow(entries: Sequence[Entry]) -> None:
        if any(isinstance(entry.change, MessageSent | MessageEdited) for entry in entries):
            job.want()

    node.log.follow(follow)
    node.log.on_reload(job.want)
    return job


def digest_job(node: Node, mails_wanted: Callable[[], None]) -> Job:
    """Queue digests on the organization's day. `mails_wanted` is called when there are some."""

    async def once() -> float:
        await ask_for_digests(node, mails_wanted)
        return DIGEST_PERIOD_SECONDS

    return Job("digests", once)


def email_job(node: Node) -> Job:
    """Send queued emails, with retries."""
    job = Job("mails", mail_sender(node).once)
    node.log.on_mail(job.want)
    return job


def push_job(node: Node) -> Job:
    """Send queued push notifications, with retries, and close those that were read elsewhere."""
    sender = PushSender(node)
    job = Job("pushes", sender.once, close=sender.tasks.close)
    sender.tasks.ended = job.want

    def follow(entries: Sequence[Entry]) -> None:
        if sender.follow(entries):
            job.want()

    node.log.follow(follow)
    return job
