"""The jobs of a node."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final

from tertulia.domain.accounts import access_keys, full_members, personal, signing_out
from tertulia.domain.channels import channels
from tertulia.domain.messages import attachments
from tertulia.domain.organization import banners
from tertulia.jobs.backups import backups
from tertulia.jobs.deletions import deletions
from tertulia.jobs.due import (
    due_job,
    message_retention,
    messages_to_be_reminded_of,
    messages_to_send,
    topic_moves,
)
from tertulia.jobs.exports import exports
from tertulia.jobs.files import FileCleanup, PictureCleanup, file_store
from tertulia.jobs.imports import imports
from tertulia.jobs.leases import JobLease
from tertulia.jobs.previews import Previewer
from tertulia.jobs.supervisor import Job
from tertulia.jobs.upkeep import (
    audit_log,
    deleted_words,
    erasures,
    event_ids,
    heartbeats,
    idle_queues,
    log_pruning,
    upgrades,
    usage_counts,
)
from tertulia.model.changes import DeviceChanged, FeedAdded, FeedChanged, MessageEdited, MessageSent
from tertulia.service.mailing import mail_sender
from tertulia.service.node import Node
from tertulia.service.notifications.digests import ask_for_digests
from tertulia.service.notifications.mail import MailChannel
from tertulia.service.notifications.notifier import NotificationChannel, Notifier
from tertulia.service.notifications.phones import PhoneRegistrations
from tertulia.service.notifications.push import PushChannel
from tertulia.service.notifications.push_sender import PushSender
from tertulia.service.webhooks.calling import Encoder, ServiceCaller
from tertulia.service.webhooks.embedded import Interface
from tertulia.service.webhooks.feeds import FeedReader

DIGEST_PERIOD_SECONDS: Final = 900.0


def notification_job(
    node: Node, mails_wanted: Callable[[], None], pushes_wanted: Callable[[], None]
) -> Job:
    """Return the job that decides whom to notify about new messages, and queues emails and pushes
    when they are due. The callbacks are called when there is something to send."""
    channels: list[NotificationChannel] = []
    if node.config.sends_notification_emails:
        channels.append(MailChannel(node.log, node.config.mail_site, mails_wanted))
    if node.config.sends_pushes:
        channels.append(PushChannel(node.log, pushes_wanted))
    notifier = Notifier(node.log, node.delivery.presence, channels)
    job = Job("notices", notifier.once_per_interval, close=notifier.close)
    job.wake_on(node.log, MessageSent, MessageEdited)
    node.log.subscribers.on_reload.append(job.want)
    return job


def digest_job(node: Node, mails_wanted: Callable[[], None]) -> Job:
    """Return the job that queues digests on the digest day. `mails_wanted` is called when there are
    some."""

    async def once() -> float:
        await ask_for_digests(node, mails_wanted)
        return DIGEST_PERIOD_SECONDS

    return Job("digests", once)


def email_job(node: Node) -> Job:
    """Return the job that sends queued emails, with retries."""
    job = Job("mails", mail_sender(node).once)
    node.log.subscribers.on_mail.append(job.want)
    return job


def push_job(node: Node) -> Job:
    """Return the job that sends queued push notifications, with retries, and closes those that were
    read elsewhere."""
    sender = PushSender(node)
    job = Job("pushes", sender.once, close=sender.tasks.close)
    sender.tasks.wake = job.want
    node.log.subscribers.followers.append(sender.follow)
    return job


PHONES_LEASE_SECONDS: Final = 60.0
PHONES_RENEWED_SECONDS: Final = 15.0


def phone_registrations(node: Node) -> Job:
    """Return the job that registers phones with the push bouncer."""
    lease = JobLease("phones", PHONES_LEASE_SECONDS, PHONES_RENEWED_SECONDS)
    registrations = PhoneRegistrations(node)
    pause = PHONES_RENEWED_SECONDS

    async def register() -> None:
        nonlocal pause
        pause = await registrations.once()

    async def once() -> float:
        if node.state.devices.waiting.first is None:
            return LONGEST_SLEEP
        return pause if await lease.hold(node.log, register) else PHONES_RENEWED_SECONDS

    job = Job("phones", once)
    job.wake_on(node.log, DeviceChanged)
    return job


GATHERING_SECONDS: Final = 1.0
"""Lines are collected for this many seconds, and then written together."""
LONGEST_SLEEP: Final = 60.0


def webhook_journal(node: Node) -> Job:
    """Return the job that writes bots' journals."""
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
    """Return the job that calls bots' services and embedded bots, with retries."""
    caller = ServiceCaller(node, encode, interface)
    job = Job("service calls", caller.once, close=caller.close)
    caller.tasks.wake = job.want
    node.log.subscribers.on_call.append(job.want)
    return job


def feeds(node: Node) -> Job:
    """Return the job that posts new entries of feeds: immediately for a new feed, and then
    regularly."""
    reader = FeedReader(node)
    job = Job("feeds", reader.once, close=reader.tasks.close)
    reader.tasks.wake = job.want
    job.wake_on(node.log, FeedAdded, FeedChanged)
    return job


def jobs_of(node: Node, encode_call: Encoder, bot_interface: Interface) -> Sequence[Job]:
    """Return all jobs. `encode_call` encodes messages for bots' services; embedded bots use
    `bot_interface`."""
    config, log = node.config, node.log
    sending = email_job(node)
    return (
        *due_jobs(node),
        heartbeats(node.delivery),
        event_ids(node.delivery),
        idle_queues(node.delivery),
        sending,
        *_telling(node, sending),
        Previewer(node).job(),
        FileCleanup(log, node.uploads, node.partials).job(),
        PictureCleanup(node).job(),
        *(() if node.files is node.disk else (file_store(node.files),)),
        exports(node),
        deletions(node),
        imports(node),
        message_retention(log),
        topic_moves(node),
        log_pruning(log, config.log_retention_days),
        audit_log(log, node.audit, config.audit_log_retention_days),
        deleted_words(log.store),
        erasures(log, config.event_queue_longpoll_timeout_seconds),
        upgrades(log),
        usage_counts(log),
        webhook_journal(node),
        service_calls(node, encode_call, bot_interface),
        *((feeds(node),) if config.feed_minutes else ()),
        *((backups(node),) if config.backup_to else ()),
        *_directory_syncs(node),
    )


def _directory_syncs(node: Node) -> Sequence[Job]:
    if not node.config.has_directories:
        return ()
    from tertulia.jobs.directories import directory_syncs  # Only if used.

    return directory_syncs(node)


def _telling(node: Node, sending: Job) -> Iterator[Job]:
    """Yield the jobs for notifications whose channels are turned on."""
    config, pushing = node.config, push_job(node)
    if config.sends_notification_emails or config.sends_pushes:
        yield notification_job(node, sending.want, pushing.want)
    if config.sends_notification_emails:
        yield digest_job(node, sending.want)
    if config.sends_pushes:
        yield pushing
    if config.push_bouncer_url:
        yield phone_registrations(node)


def due_jobs(node: Node) -> Sequence[Job]:
    """Return the jobs that act when something is due."""
    log, days = node.log, node.config.unclaimed_upload_days
    unclaimed = partial(attachments.next_unclaimed, days)
    return (
        due_job(log, "waiting periods", full_members.next_end, full_members.end),
        due_job(log, "quiet channels", channels.activity_due, channels.update_activity),
        messages_to_send(node),
        messages_to_be_reminded_of(node),
        due_job(log, "ended sessions", signing_out.next_expiry, signing_out.expire),
        due_job(log, "expired keys", access_keys.next_expiry, access_keys.expire),
        due_job(log, "ended announcements", banners.next_banner_end, banners.end_old),
        due_job(log, "ended statuses", personal.next_status_end, personal.end_status),
        due_job(log, "unclaimed files", unclaimed, attachments.remove_unclaimed, days),
    )
