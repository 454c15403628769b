"""How a node's mails are sent, by its settings."""

from typing import Literal, cast

from tertulia.log.log import Log
from tertulia.outbound.mail_sender import MailSender
from tertulia.outbound.mail_templates import MailTemplates
from tertulia.outbound.transports import Folder, Smtp, SmtpServer, Transport
from tertulia.service.config import Config
from tertulia.service.links import Links

FOLDER = "mail"
"""In the data directory: where mails are written when none can be sent."""


def transport(config: Config, log: Log) -> Transport:
    """The configured server, or the directory."""
    sender = config.mail_from or f"Tertulia <noreply@{config.address_host}>"
    if not config.smtp_host:
        return Folder(config.data_path / FOLDER, sender, log.clock)
    security = cast(Literal["starttls", "tls", "none"], config.smtp_security)
    return Smtp(
        SmtpServer(
            host=config.smtp_host,
            port=config.smtp_port,
            security=security,
            user=config.smtp_user,
            password=config.smtp_password,
            sender=sender,
        )
    )


def mail_sender(config: Config, log: Log, links: Links) -> MailSender:
    """The node's sender of mails."""
    templates = MailTemplates(lambda: log.state, links)
    return MailSender(log.store, templates, transport(config, log), log.clock)
