"""Incoming and outgoing webhooks, and embedded bots."""

from enum import IntEnum
from typing import Literal

from msgspec import Struct

Direction = Literal["in", "out"]
WebhookOutcome = Literal[
    "sent", "nothing", "filtered", "refused", "delivered", "failed", "given up"
]
"""The outcome of a webhook call. An incoming call became a message, has nothing to show, was
filtered out, or was refused. An outgoing call was delivered, failed and will be retried, or was
given up."""


class IncomingOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options of an incoming webhook."""

    secret_sealed: str = ""
    """The services' signing secret, encrypted with the server's secret. If set, only signed
    requests are accepted."""
    topic_template: str = ""
    content_template: str = ""
    """The template that turns JSON of unknown services into a message."""


class ServiceFormat(IntEnum):
    """The format of calls to a bot's service."""

    NATIVE = 1
    SLACK = 2


class OutgoingService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The HTTP service behind a bot."""

    url: str
    format: ServiceFormat = ServiceFormat.NATIVE
    token_sealed: str = ""
    """The token that identifies this server, encrypted with the server's secret."""
    commands: tuple[str, ...] = ()
    """The bot's commands, without the slash."""


class EmbeddedService(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The program behind a bot that the server runs."""

    program: str
    """The bot's name in the package `zulip_bots`."""
    settings_sealed: dict[str, str] = {}
    """The program's settings, each value encrypted with the installation's secret."""


Trigger = Literal["direct_message", "mention", "command"]
"""The reason for calling a bot's service."""


class ServiceCall(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A call to a bot's service about a message."""

    bot_id: int
    message_id: int
    trigger: Trigger
    command: str = ""
    """The command, without the slash."""


class WebhookLogEntry(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An incoming or outgoing webhook call of a bot."""

    at: float
    """UNIX seconds."""
    direction: Direction
    what: str
    """The integration's name, or the trigger (`mention`, `direct_message`, `command`)."""
    outcome: WebhookOutcome
    event: str = ""
    reason: str = ""
    """A sentence that explains why it was refused or failed."""
    message_id: int | None = None
    """The message that the call became, or that it's about."""
