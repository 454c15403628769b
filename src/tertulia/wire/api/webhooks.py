"""What services there are integrations for, on the wire."""

import re
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import unquote, urlencode

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.domain.accounts import bots
from tertulia.integrations.incoming import EventFilter
from tertulia.model.errors import Refused
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.model.webhooks import IncomingOptions, OutgoingService, ServiceCall, ServiceFormat
from tertulia.service.node import Node
from tertulia.service.webhooks import receiving, templates
from tertulia.service.webhooks.calling import EncodedCall
from tertulia.service.webhooks.receiving import IncomingWebhook, WebhookAddress
from tertulia.store import webhooks
from tertulia.store.message_details import MessageDetails
from tertulia.wire.api.bots import OneBot
from tertulia.wire.api.messages.objects import MessageFormat, MessageObjects
from tertulia.wire.api.section import Sections
from tertulia.wire.http.forms import fields
from tertulia.wire.http.parameters import Int, Params, Path
from tertulia.wire.http.routing import ApiResponse, Call, OpenAnswer

if TYPE_CHECKING:
    from tertulia.integrations.incoming import Integration

BRANCHES: Final = "branches"
"""The option by which an address says of which branches pushes are told."""


@cache
def integration_objects() -> list[dict[str, Any]]:
    """All of them, by the names that people know them by."""
    from tertulia.integrations.catalog import INTEGRATIONS  # Reading them takes a moment.

    known = sorted(INTEGRATIONS.values(), key=lambda one: one.title.casefold())
    return [_integration(one) for one in known]


def _integration(integration: "Integration") -> dict[str, Any]:
    branches = {"key": BRANCHES, "label": "Only these branches", "input_type": "text"}
    return {
        "name": integration.name,
        "display_name": integration.title,
        "all_event_types": list(integration.events) or None,
        "config_options": [],
        "url_options": [branches] if integration.has_branches else [],
        "is_signed": integration.signature is not None,
        "takes_templates": integration.takes_templates,
    }


def encoded_call(
    node: Node,
    bot: User,
    service: OutgoingService,
    call: ServiceCall,
    message: Message,
    details: MessageDetails,
    token: str,
) -> EncodedCall | None:
    """What the bot's service is told. None for direct messages in Slack's format."""
    if service.format is ServiceFormat.SLACK:
        return _slack(node, bot, call, message, token)
    form = MessageFormat(apply_markdown=False, client_gravatar=False, empty_topic_name=True)
    objects = MessageObjects(node.state, bot, node.config.address_host, form)
    shown = msgspec.to_builtins(objects.of(message, details))
    told = {
        "bot_email": bot.address,
        "bot_full_name": bot.full_name,
        "data": message.content,
        "trigger": call.trigger,
        "token": token,
        "message": {**shown, "rendered_content": message.rendered},
    }
    if call.command:
        told["command"] = f"/{call.command}"
        told["text"] = _after_command(message.content)
    return EncodedCall("application/json", msgspec.json.encode(told))


def _slack(
    node: Node, bot: User, call: ServiceCall, message: Message, token: str
) -> EncodedCall | None:
    channel = node.state.channels.get(message.channel_id)
    if channel is None:
        return None
    sender = node.state.users[message.sender_id]
    fields = {
        "token": token,
        "team_id": "T1",
        "team_domain": node.config.address_host,
        "channel_id": f"C{channel.id}",
        "channel_name": channel.name,
        "thread_ts": str(message.sent_at),
        "timestamp": str(message.sent_at),
        "user_id": f"U{sender.id}",
        "user_name": sender.full_name,
        "text": message.content,
        "trigger_word": call.trigger,
        "service_id": str(bot.id),
    }
    if call.command:
        fields |= {"command": f"/{call.command}", "text": _after_command(message.content)}
    return EncodedCall("application/x-www-form-urlencoded", urlencode(fields).encode())


def _after_command(content: str) -> str:
    parts = content.split(maxsplit=1)
    return parts[1] if len(parts) > 1 else ""


MAX_SECRET: Final = 500
_ENCODED: Final = re.compile(r"%[0-9A-Fa-f]{2}")

# What comes in


class ReceiveWebhook(Params, kw_only=True, frozen=True):
    """Where a message goes that is made of what a service sends. All of it is in the address."""

    integration: Annotated[str, Path(), Meta(description="A name of realm_incoming_webhook_bots.")]
    stream: Annotated[str | None, Meta(description="A channel's name or ID.")] = None
    topic: Annotated[
        str | None, Meta(description="By default, the one that fits what the service says.")
    ] = None
    to: Annotated[
        str | None,
        Meta(description="Instead of a channel: addresses or IDs of people, with commas between."),
    ] = None
    only_events: Annotated[
        list[str] | None, Meta(description="Kinds of events; `*` stands for anything.")
    ] = None
    exclude_events: Annotated[list[str], Meta(description="The others are wanted.")] = []
    branches: Annotated[
        str | None, Meta(description="Of which pushes are told, with commas between.")
    ] = None


class ReceivedWebhook(OpenAnswer, kw_only=True):
    """What a service sent was taken. `ok` is what those expect that speak to Slack."""

    ok: bool = True
    challenge: str | UnsetType = UNSET


async def receive_webhook(call: Call, params: ReceiveWebhook) -> ReceivedWebhook:
    """Make a message of what another service sends.

    The bot's key is the parameter `api_key` of the address. The body is what the service sends:
    JSON, or a form with JSON in its field `payload`. Without a channel and people the message goes
    to the bot's channel, or to its owner. Events that there is no message for are answered with
    UNSUPPORTED_WEBHOOK_EVENT_TYPE, and status 200.
    """
    headers = call.request.headers
    arrived = IncomingWebhook(
        integration=params.integration,
        address=WebhookAddress(
            channel=_channel(params.stream),
            topic=_text(params.topic),
            people=tuple(map(_person, _names(params.to))),
            events=EventFilter(params.only_events, params.exclude_events, _names(params.branches)),
        ),
        headers=dict(headers.items()),
        body=call.body,
        fields=await fields(headers, call.body),
        url=f"{call.url}{call.request.scope['path']}?{call.request.url.query}",
    )
    taken = await receiving.receive(call, arrived)
    if taken.handshake is None:
        return ReceivedWebhook()
    call.answer_headers.update(taken.handshake.headers)
    return ReceivedWebhook(challenge=taken.handshake.fields.get("challenge", UNSET))


class OneIntegration(Params, kw_only=True, frozen=True):
    """An integration by name."""

    integration: Annotated[str, Path()]


class FoundIntegration(ApiResponse, kw_only=True):
    """The address is one that services can send to."""

    integration: str


async def find_webhook(call: Call, params: OneIntegration) -> FoundIntegration:
    """Whether a service can send to the address: what some look at before they do."""
    return FoundIntegration(integration=receiving.integration_named(call, params.integration).name)


def _channel(text: str | None) -> int | str | None:
    text = _text(text)
    if not text:
        return None
    return int(text) if text.isdecimal() and len(text) < 16 else text


def _text(text: str | None) -> str | None:
    """Some services encode the address that they are given once more."""
    return unquote(text) if text is not None and _ENCODED.search(text) else text


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (one.strip() for one in (text or "").split(","))))


def _person(name: str) -> int | str:
    return int(name) if name.isdecimal() and len(name) < 16 else name


# What the owner sets


class WebhookOptions(ApiResponse, kw_only=True):
    """How a bot takes what services send."""

    has_secret: bool
    topic_template: str
    content_template: str


class Webhook(WebhookOptions, kw_only=True):
    """The same, and what can send to it: see realm_incoming_webhook_bots."""

    integrations: list[dict[str, Any]]


async def get_webhook_options(call: Call, params: OneBot) -> Webhook:
    """How a bot takes what services send, for its owner and for administrators."""
    call.consider(bots.check_managed, params.bot_id)
    found = _options(call.state.users[params.bot_id])
    return Webhook(**msgspec.structs.asdict(found), integrations=integration_objects())


class UpdateWebhookOptions(Params, kw_only=True, frozen=True):
    """How a bot is to take what services send."""

    bot_id: Annotated[Int, Path()]
    secret: Annotated[
        str | UnsetType,
        Meta(
            description="With what services sign; then only what is signed is taken. Empty: none."
        ),
    ] = UNSET
    topic_template: Annotated[
        str | UnsetType, Meta(description="Of the integration `json`, in Jinja's language.")
    ] = UNSET
    content_template: Annotated[str | UnsetType, Meta(description="The same of the content.")] = (
        UNSET
    )


async def update_webhook_options(call: Call, params: UpdateWebhookOptions) -> WebhookOptions:
    """Change how a bot takes what services send, for its owner and for administrators."""
    call.consider(bots.check_managed, params.bot_id)
    for template, what in (
        (params.topic_template, "topic template"),
        (params.content_template, "content template"),
    ):
        if template is not UNSET:
            await templates.check(call.node.template_shares, call.user.id, template, what)
    if params.secret is not UNSET and len(params.secret) > MAX_SECRET:
        raise Refused(f"The secret can have at most {MAX_SECRET} characters.")
    sealed = UNSET if params.secret is UNSET else call.node.vault.sealed(params.secret)
    bot: User = await call.submit(
        bots.change_incoming, params.bot_id, sealed, params.topic_template, params.content_template
    )
    return _options(bot)


def _options(bot: User) -> WebhookOptions:
    options = (bot.bot.incoming if bot.bot else None) or IncomingOptions()
    return WebhookOptions(
        has_secret=bool(options.secret_sealed),
        topic_template=options.topic_template,
        content_template=options.content_template,
    )


# What goes out


class Service(ApiResponse, kw_only=True):
    """The service behind a bot that is an outgoing webhook."""

    payload_url: str
    interface_type: int
    token: Annotated[
        str,
        Meta(description="Comes with each call, and is what X-Tertulia-Signature is made with."),
    ]
    commands: list[str]
    waiting: Annotated[int, Meta(description="Messages of which it is still to be told.")]


async def get_service(call: Call, params: OneBot) -> Service:
    """The service behind a bot, for its owner and for administrators."""
    call.consider(bots.check_managed, params.bot_id)
    return await _service(call, call.state.users[params.bot_id])


class UpdateService(Params, kw_only=True, frozen=True):
    """What is to be new about the service behind a bot. (Its address: `PATCH /bots/{bot_id}`.)"""

    bot_id: Annotated[Int, Path()]
    commands: Annotated[
        list[str] | None,
        Meta(
            description="Messages that begin with a slash and one of these go to it, whoever writes"
            " them: for administrators."
        ),
    ] = None
    new_token: Annotated[bool, Meta(description="Whether the token is replaced.")] = False


async def update_service(call: Call, params: UpdateService) -> Service:
    """Change the service behind a bot."""
    vault = call.node.vault
    token = vault.sealed(vault.nonce()) if params.new_token else None
    bot: User = await call.submit(bots.change_service, params.bot_id, params.commands, token)
    return await _service(call, bot)


async def _service(call: Call, bot: User) -> Service:
    service = bot.bot.service if bot.bot else None
    if service is None:
        raise Refused("This bot isn't an outgoing webhook.")
    return Service(
        payload_url=service.url,
        interface_type=int(service.format),
        token=call.node.vault.unsealed(service.token_sealed),
        commands=list(service.commands),
        waiting=await call.node.store.read(webhooks.count_calls, bot.id),
    )


# What came of it


class Delivery(Struct, kw_only=True):
    """Something that came in or went out."""

    timestamp: float
    direction: Annotated[str, Meta(description="`in` or `out`.")]
    integration: Annotated[str, Meta(description="Its name; or what caused a call of the bot.")]
    event: str
    outcome: Annotated[
        str,
        Meta(
            description="Of what came in: sent, nothing (says nothing to people), filtered or"
            " refused. Of what went out: delivered, failed (and is tried again) or given up."
        ),
    ]
    reason: Annotated[str, Meta(description="What went wrong, as a sentence.")]
    message_id: int | None


class Deliveries(ApiResponse, kw_only=True):
    """The last ones, the newest first."""

    deliveries: list[Delivery]


async def get_deliveries(call: Call, params: OneBot) -> Deliveries:
    """What came in for a bot or went out to its service lately, for its owner and for
    administrators."""
    call.consider(bots.check_managed, params.bot_id)
    lines = await call.node.journal.of(call.node.store, params.bot_id)
    return Deliveries(
        deliveries=[
            Delivery(
                timestamp=line.at,
                direction=line.direction,
                integration=line.what,
                event=line.event,
                outcome=line.outcome,
                reason=line.reason,
                message_id=line.message_id,
            )
            for line in lines
        ]
    )


SECTIONS: Final[Sections] = {
    ("realm_incoming_webhook_bots",): lambda _: {
        "realm_incoming_webhook_bots": integration_objects()
    }
}
