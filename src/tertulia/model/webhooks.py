"""Incoming and outgoing webhooks, and embedded bots."""

from enum import IntEnum
from typing import Literal

from msgspec import Struct

Direction = Literal["in", "out"]
WebhookOutcome = Literal[
    "sent", "nothing", "filtered", "refused", "delivered", "failed", "given up"
]
"""What happened to a call. Incoming: it became a message, has nothing to show, was filtered out, or
was refused. Outgoing: it was delivered, an attempt failed and will be retried, or it was given
up."""


class IncomingOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of an incoming webhook."""

    secret_sealed: str = ""
    """The services' signing secret, encrypted with the installation's secret. If set, only signed
    requests are accepted."""
    topic_template: str = ""
    content_template: str = ""
    """How JSON of unknown services becomes a message."""


class ServiceFormat(IntEnum):
    """The format of calls to a bot's service."""

    NATIVE = 1
    SLACK = 2


class OutgoingService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The HTTP service behind a bot."""

    url: str
    format: ServiceFormat = ServiceFormat.NATIVE
    token_sealed: str = ""
    """The token that identifies this server, encrypted with the installation's secret."""
    commands: tuple[str, ...] = ()
    """The bot's commands, without the slash."""


class EmbeddedService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program behind a bot that the server runs."""

    program: str
    """Its name in the package `zulip_bots`."""
    settings_sealed: dict[str, str] = {}
    """The program's settings, each value encrypted with the installation's secret."""


Trigger = Literal["direct_message", "mention", "command"]
"""Why a bot's service is called."""


class ServiceCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call of a bot's service about a message."""

    bot_id: int
    message_id: int
    trigger: Trigger
    command: str = ""
    """The command, without the slash."""


class WebhookLogEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An incoming or outgoing call of a bot."""

    at: float
    """UNIX seconds."""
    direction: Direction
    what: str
    """The integration's name, or the trigger (`mention`, `direct_message`, `command`)."""
    outcome: WebhookOutcome
    event: str = ""
    reason: str = ""
    """Why it was refused or failed: a sentence."""
    message_id: int | None = None
    """The message that it became, or that the service is called about."""
