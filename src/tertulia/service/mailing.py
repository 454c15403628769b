"""Sending email as configured, and test emails."""

import base64
import logging
import re
from typing import Final, Literal, cast

from msgspec import Struct

from tertulia.domain.notifications import quiet, rules
from tertulia.domain.notifications.rules import NotificationMethod
from tertulia.log.log import Log
from tertulia.model.mail import Mail, MailKind
from tertulia.outbound.mail_sender import MailSender, Postponed
from tertulia.outbound.mail_templates import MailTemplates, RenderedMail, test_mail
from tertulia.outbound.transports import Folder, NotSent, Smtp, SmtpServer, Transport, Trouble
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.service.node import Node
from tertulia.service.notifications.digests import Digests
from tertulia.service.notifications.mail import missed_channel, missed_messages

FOLDER = "mail"
"""The directory in the data directory where emails are written if no mail server is configured."""
_PUT_OFF: Final = frozenset({MailKind.MISSED_MESSAGES, MailKind.DIGEST})
"""Emails that wait during quiet hours and pauses."""


def transport(config: Config, log: Log) -> Transport:
    """Return the configured mail server, or the directory."""
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
    """Renders all emails of a node."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._templates = MailTemplates(lambda: node.state, node.links)
        self._digests = Digests(node)

    async def rendered(self, mail: Mail, now: float) -> RenderedMail | None:
        """Return the rendered email; None if it's no longer needed. Raise Postponed during the
        person's quiet hours if the email is of a kind that waits for their end."""
        if mail.kind in _PUT_OFF:
            await self._require_no_quiet(mail, now)
        if mail.kind is MailKind.MISSED_MESSAGES:
            return await missed_messages(self._node, mail, now)
        if mail.kind is MailKind.DIGEST:
            return await self._digests.rendered(mail, now)
        return await self._templates.rendered(mail, now)

    async def _require_no_quiet(self, mail: Mail, now: float) -> None:
        user_id = mail.about or 0
        if user_id not in self._node.state.quiet_times:
            return
        channel_id = await missed_channel(self._node, mail)
        until = quiet.quiet_until(self._node.state, user_id, now, channel_id)
        again = (
            None if until is None else rules.next_quiet_check(NotificationMethod.MAIL, now, until)
        )
        if again is not None:
            raise Postponed(again)


def mail_sender(node: Node) -> MailSender:
    log = node.log
    return MailSender(log.store, MailRenderer(node), transport(node.config, log), log.clock)


logger = logging.getLogger("tertulia.mail")

HIDDEN: Final = "…"
"""Replaces text that only the operator can see."""
_LONGEST_REPLY: Final = 300
_ADDRESSES: Final = re.compile(
    r"""
    (?: \w+:// )? [^\s<>()\[\]"']* [\w-] @ [\w.-]+  # Of mail.
    # Of hosts, by their names and by numbers.
    | (?: \w+:// )? (?= [\w.-]* [^\W\d] ) [\w-]+ (?: \.[\w-]+ )+ (?: [:/] [^\s<>()"']* )?
    | \d+ (?: \.\d+ ){3} (?: :\d+ )?
    | (?: [0-9a-f]{0,4} : ){2,} [0-9a-f:.]*
    """,
    re.VERBOSE | re.IGNORECASE,
)


class TestMailResult(Struct, frozen=True):
    trouble: Trouble | None
    """None if the mail server accepted it."""
    reply: str = ""
    """The server's rejection with its code, without addresses, host names, and credentials."""


async def send_test(config: Config, log: Log, vault: Vault, to: str) -> None:
    """Send a test email, within `TIMEOUT_SECONDS`. Raise NotSent."""
    email = test_mail(log.state, to, config.mail_site)
    await transport(config, log).send(email, vault.nonce())


async def send_test_mail(node: Node, to: str) -> TestMailResult:
    """Send a test email, and return the outcome without secrets, for people who can't see the
    server's settings. The full reply is logged."""
    try:
        await send_test(node.config, node.log, node.vault, to)
    except NotSent as error:
        logger.warning("could not send a test email", extra={"fields": {"reason": str(error)}})
        return TestMailResult(error.trouble, _without_secrets(error.reply, node.config))
    logger.info("sent a test email")
    return TestMailResult(None)


def _without_secrets(reply: str, config: Config) -> str:
    known = {config.smtp_host, config.smtp_user, config.smtp_password} - {""}
    known |= {base64.b64encode(text.encode()).decode() for text in known}
    for text in sorted(known, key=len, reverse=True):
        reply = reply.replace(text, HIDDEN)
    # Truncate last, because half a secret would not be found.
    return _ADDRESSES.sub(HIDDEN, reply)[:_LONGEST_REPLY]
