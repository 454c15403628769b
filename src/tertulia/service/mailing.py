"""How a node's mails are sent, by its settings."""

from typing import Literal, cast

from tertulia.log.log import Log
from tertulia.model.mail import Mail, MailKind
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.outbound.mail_sender import MailSender
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail
from tertulia.outbound.transports import Folder, Smtp, SmtpServer, Transport
from tertulia.service.config import Config
from tertulia.service.mail_in.addresses import MailAddresses
from tertulia.service.node import Node
from tertulia.service.notices.digests import Digests
from tertulia.service.notices.missed_messages import missed_messages

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


class Letters:
    """Finds the words of all mails of a node: of those that show what people wrote too."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._templates = MailTemplates(lambda: node.state, node.links)
        self._digests = Digests(node)
        self._addresses = MailAddresses(node.config, node.vault)

    async def written(self, mail: Mail, now: float) -> RenderedMail | None:
        """The mail in words; None where what it is about is over."""
        if mail.kind is MailKind.MISSED_MESSAGES:
            return await missed_messages(self._node, mail, now, self._reply_address)
        if mail.kind is MailKind.DIGEST:
            return await self._digests.written(mail, now)
        return await self._templates.written(mail, now)

    def _reply_address(self, user: User, message: Message) -> str:
        return self._addresses.of_answer(self._node.state, user, message, self._node.clock())


def mail_sender(node: Node) -> MailSender:
    """The node's sender of mails."""
    log = node.log
    return MailSender(log.store, Letters(node), transport(node.config, log), log.clock)
