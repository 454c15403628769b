"""The jobs of a node."""

from collections.abc import Iterator, Sequence
from functools import partial

from tertulia.domain.accounts import full_members, personal, signing_out
from tertulia.domain.channels import activity
from tertulia.domain.messages import attachments
from tertulia.domain.organization import banners
from tertulia.jobs.backups import backups
from tertulia.jobs.due import (
    due_job,
    message_retention,
    messages_to_be_reminded_of,
    messages_to_send,
    topic_moves,
)
from tertulia.jobs.files import FileCleanup, PictureCleanup, file_store
from tertulia.jobs.notifications import digest_job, email_job, notification_job, push_job
from tertulia.jobs.previews import Previewer
from tertulia.jobs.supervisor import Job
from tertulia.jobs.upkeep import (
    deleted_words,
    erasures,
    event_ids,
    heartbeats,
    idle_queues,
    log_pruning,
    upgrades,
    usage_counts,
)
from tertulia.jobs.webhooks import feeds, service_calls, webhook_journal
from tertulia.service.node import Node
from tertulia.service.webhooks.calling import Encoder
from tertulia.service.webhooks.embedded import Interface


def jobs_of(node: Node, encode_call: Encoder, bot_interface: Interface) -> Sequence[Job]:
    """All jobs. `encode_call` encodes messages for bots' services; embedded bots use
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
        message_retention(log),
        topic_moves(node),
        log_pruning(log, config.log_retention_days),
        deleted_words(log.store),
        erasures(log, config.event_queue_longpoll_timeout_seconds),
        upgrades(log),
        usage_counts(log),
        webhook_journal(node),
        service_calls(node, encode_call, bot_interface),
        *((feeds(node),) if config.feed_minutes else ()),
        *((backups(node),) if config.backup_to else ()),
    )


def _telling(node: Node, sending: Job) -> Iterator[Job]:
    """Jobs for notifications, as far as their channels are turned on."""
    config, pushing = node.config, push_job(node)
    if config.sends_notification_emails or config.web_push:
        yield notification_job(node, sending.want, pushing.want)
    if config.sends_notification_emails:
        yield digest_job(node, sending.want)
    if config.web_push:
        yield pushing


def due_jobs(node: Node) -> Sequence[Job]:
    """Jobs for what becomes due."""
    log, days = node.log, node.config.unclaimed_upload_days
    unclaimed = partial(attachments.unclaimed_due, days)
    return (
        due_job(log, "waiting periods", full_members.next_end, full_members.end),
        due_job(log, "quiet channels", activity.due, activity.update),
        messages_to_send(node),
        messages_to_be_reminded_of(node),
        due_job(log, "ended sessions", signing_out.next_expiry, signing_out.expire),
        due_job(log, "ended announcements", banners.next_end, banners.end_old),
        due_job(log, "ended statuses", personal.next_end, personal.end_status),
        due_job(log, "unclaimed files", unclaimed, attachments.remove_unclaimed, days),
    )
