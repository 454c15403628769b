"""Webhooks: what bots get from other services, and what they are told by this one."""

from enum import IntEnum
from typing import Literal

from msgspec import Struct

Direction = Literal["in", "out"]
WebhookOutcome = Literal[
    "sent", "nothing", "filtered", "refused", "delivered", "failed", "given up"
]
"""What came of it. Of what came in: it became a message, says nothing to people, was not wanted by
the address's filters, or was refused. Of what goes out: it was delivered, an attempt failed and
there will be another one, or there will be none."""


class IncomingOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How a bot takes what services send. All of it may be empty."""

    secret_sealed: str = ""
    """What services sign with, encrypted with the installation's secret: then only what is signed
    is taken."""
    topic_template: str = ""
    content_template: str = ""
    """How any JSON becomes a message."""


class ServiceFormat(IntEnum):
    """In which form a bot's service is told of messages."""

    NATIVE = 1
    SLACK = 2


class OutgoingService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program behind a bot, which is told of messages by HTTP."""

    url: str
    format: ServiceFormat = ServiceFormat.NATIVE
    token_sealed: str = ""
    """What it knows this server by, encrypted with the installation's secret."""
    commands: tuple[str, ...] = ()
    """Commands that go to it, without the slash."""


class EmbeddedService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program behind a bot that the server itself runs."""

    program: str
    """Its name in the package `zulip_bots`."""
    settings_sealed: dict[str, str] = {}
    """What it is told to work, each value encrypted with the installation's secret."""


Trigger = Literal["direct_message", "mention", "command"]
"""Why a bot's service is told of a message."""


class ServiceCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A bot's service is to be told of a message."""

    bot_id: int
    message_id: int
    trigger: Trigger
    command: str = ""
    """Which one, without the slash."""


class WebhookLogEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of a bot's journal: something came in, or went out."""

    at: float
    """UNIX seconds."""
    direction: Direction
    what: str
    """The integration's name, or what caused it (`mention`, `direct_message`, `command`)."""
    outcome: WebhookOutcome
    event: str = ""
    reason: str = ""
    """Why it was refused, or failed: a sentence."""
    message_id: int | None = None
    """The message that it became, or of which the service is told."""
