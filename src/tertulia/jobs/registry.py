"""The jobs of a node."""

from collections.abc import Sequence
from functools import partial

from tertulia.domain import attachments, channel_activity, signing_out, waiting
from tertulia.jobs.due import due_job
from tertulia.jobs.files import FileKeeper
from tertulia.jobs.previews import Previewer
from tertulia.jobs.pruning import erasures, log_pruning
from tertulia.jobs.queues import heartbeats, idle_queues
from tertulia.jobs.retention import retention
from tertulia.jobs.scheduled import messages_to_be_reminded_of, messages_to_send
from tertulia.jobs.supervisor import Job
from tertulia.mailing import postman
from tertulia.wire.call import Node


def jobs_of(node: Node) -> Sequence[Job]:
    """Everything that the node does by itself."""
    config, log = node.config, node.log
    sender = postman(config, log, node.links)
    mails = Job("mails", sender.once)
    log.on_mail(mails.want)
    return (
        *due_jobs(node),
        heartbeats(node.delivery),
        idle_queues(node.delivery),
        mails,
        Previewer(node).job(),
        FileKeeper(log, node.uploads, attachments.files_deleted).job(),
        retention(log),
        log_pruning(log, config.log_retention_days),
        erasures(log),
    )


def due_jobs(node: Node) -> Sequence[Job]:
    """Those that do what is due when its time has come."""
    log, days = node.log, node.config.unclaimed_upload_days
    unclaimed = partial(attachments.unclaimed_due, days)
    return (
        due_job(log, "waiting periods", waiting.next_end, waiting.end),
        due_job(log, "quiet channels", channel_activity.due, channel_activity.update),
        messages_to_send(node),
        messages_to_be_reminded_of(node),
        due_job(log, "ended sessions", signing_out.next_expiry, signing_out.expire),
        due_job(log, "unclaimed files", unclaimed, attachments.remove_unclaimed, days),
    )
