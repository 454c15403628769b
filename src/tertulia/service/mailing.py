"""How a node's mails are sent, by its settings."""

from typing import Final, Literal, cast

from tertulia.domain.notices import quiet, telling
from tertulia.domain.notices.rules import Way
from tertulia.log.log import Log
from tertulia.model.mail import Mail, MailKind
from tertulia.outbound.mail_sender import MailSender, NotNow
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail
from tertulia.outbound.transports import Folder, Smtp, SmtpServer, Transport
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.service.notices.digests import Digests
from tertulia.service.notices.missed_messages import missed_messages

FOLDER = "mail"
"""In the data directory: where mails are written when none can be sent."""
_PUT_OFF: Final = frozenset({MailKind.MISSED_MESSAGES, MailKind.DIGEST})
"""Mails that wait until somebody is not left in peace any more. Those about an account do not."""


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


class MailRenderer:
    """Renders all mails of a node, also those that show what people wrote."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._templates = MailTemplates(lambda: node.state, node.links)
        self._digests = Digests(node)

    async def rendered(self, mail: Mail, now: float) -> RenderedMail | None:
        """The rendered mail; None where what it is about is over. NotNow where its person has
        paused, or has quiet hours, and it is one of those that wait for that."""
        if mail.kind in _PUT_OFF:
            self._require_no_quiet(mail, now)
        if mail.kind is MailKind.MISSED_MESSAGES:
            return await missed_messages(self._node, mail, now)
        if mail.kind is MailKind.DIGEST:
            return await self._digests.rendered(mail, now)
        return await self._templates.rendered(mail, now)

    def _require_no_quiet(self, mail: Mail, now: float) -> None:
        user_id = mail.about or 0
        until = quiet.quiet_until(self._node.state, user_id, now)
        again = None if until is None else telling.quiet_look(Way.MAIL, now, until)
        if again is not None:
            raise NotNow(again)


def mail_sender(node: Node) -> MailSender:
    """The node's sender of mails."""
    log = node.log
    return MailSender(log.store, MailRenderer(node), transport(node.config, log), log.clock)
