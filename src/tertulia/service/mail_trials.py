"""A mail to see whether mails arrive."""

import base64
import logging
import re
from typing import Final

from msgspec import Struct

from tertulia.log.log import Log
from tertulia.outbound.mail_templates import trial
from tertulia.outbound.transports import NotSent, Trouble
from tertulia.service.config import Config
from tertulia.service.mailing import transport
from tertulia.service.node import Node
from tertulia.service.vault import Vault

logger = logging.getLogger("tertulia.mail")

HIDDEN: Final = "…"
"""In place of what is nobody's business but the operator's."""
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


class MailTrial(Struct, frozen=True):
    """What became of a test mail."""

    trouble: Trouble | None
    """None where the mail server took it."""
    reply: str = ""
    """What it answered, with its code, where it refused something; without addresses, names of
    hosts and what one signs in with."""


async def send_trial(config: Config, log: Log, vault: Vault, to: str) -> None:
    """Send a test mail now, in `TIMEOUT_SECONDS` at most. NotSent where it did not leave."""
    letter = trial(log.state, to, config.mail_site)
    await transport(config, log).send(letter, vault.nonce())


async def tried(node: Node, to: str) -> MailTrial:
    """Send a test mail by the mail server that is set, and tell what came of it to somebody who may
    not see the server's settings. All that the mail server said is in the log."""
    try:
        await send_trial(node.config, node.log, node.vault, to)
    except NotSent as error:
        logger.warning("a test mail was not sent", extra={"fields": {"reason": str(error)}})
        return MailTrial(error.trouble, _without_secrets(error.reply, node.config))
    logger.info("a test mail was sent")
    return MailTrial(None)


def _without_secrets(reply: str, config: Config) -> str:
    known = {config.smtp_host, config.smtp_user, config.smtp_password} - {""}
    known |= {base64.b64encode(one.encode()).decode() for one in known}
    for one in sorted(known, key=len, reverse=True):
        reply = reply.replace(one, HIDDEN)
    # Cut last: half a secret would not be found.
    return _ADDRESSES.sub(HIDDEN, reply)[:_LONGEST_REPLY]
