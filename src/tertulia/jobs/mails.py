"""Sending the mails that wait in the outbox."""

from tertulia.jobs.supervisor import Job
from tertulia.service.mailing import mail_sender
from tertulia.service.node import Node


def mails(node: Node) -> Job:
    """Sending mails, as soon as one is asked for, and again those that could not be sent."""
    job = Job("mails", mail_sender(node).once)
    node.log.on_mail(job.want)
    return job
