"""Incoming and outgoing webhooks."""

import re
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import unquote, urlencode

import msgspec
from msgspec import UNSET, Struct, UnsetType, convert, field

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
from tertulia.wire.api.bots.endpoints import id_or_name
from tertulia.wire.api.messages.objects import MessageFormat, MessageObjects
from tertulia.wire.api.section import Sections
from tertulia.wire.http.forms import fields
from tertulia.wire.http.parameters import Doc, IntPath, Path, TextPath
from tertulia.wire.http.routing import ApiResponse, Call, OpenApiResponse

if TYPE_CHECKING:
    from tertulia.integrations.incoming import Integration

BRANCHES: Final = "branches"
"""The URL parameter that limits push events to some branches."""


@cache
def integration_objects() -> list[dict[str, Any]]:
    """Return all integrations, by display name."""
    from tertulia.integrations.services import INTEGRATIONS  # Slow to import.

    by_title = sorted(INTEGRATIONS.values(), key=lambda integration: integration.title.casefold())
    return [_integration(integration) for integration in by_title]


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
    """Encode the request to a bot's service. Return None for direct messages in Slack's format,
    which doesn't support them."""
    if service.format is ServiceFormat.SLACK:
        return _slack(node, bot, call, message, token)
    form = MessageFormat(apply_markdown=False, client_gravatar=False, empty_topic_name=True)
    objects = MessageObjects(node.state, bot, node.config.address_host, form)
    message_object = msgspec.to_builtins(objects.of(message, details))
    payload = {
        "bot_email": bot.address,
        "bot_full_name": bot.full_name,
        "data": message.content,
        "trigger": call.trigger,
        "token": token,
        "message": {**message_object, "rendered_content": message.rendered},
    }
    if call.command:
        payload |= {"command": f"/{call.command}", "text": _after_command(message.content)}
    return EncodedCall("application/json", msgspec.json.encode(payload))


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


class ReceivedWebhookResponse(OpenApiResponse, kw_only=True):
    """The payload was accepted. `ok` is for services that expect Slack's response."""

    ok: bool = True
    challenge: str | UnsetType = UNSET


async def receive_webhook(
    call: Call,
    integration: Annotated[str, Path(), Doc("A name in `realm_incoming_webhook_bots`.")],
    stream: Annotated[str | None, Doc("A channel's name or ID.")] = None,
    topic: Annotated[str | None, Doc("By default, derived from the payload.")] = None,
    to: Annotated[
        str | None, Doc("Instead of a channel: email addresses or user IDs, separated by commas.")
    ] = None,
    only_events: Annotated[
        list[str] | None, Doc("The event types to post. `*` matches anything.")
    ] = None,
    exclude_events: Annotated[Sequence[str], Doc("The event types not to post.")] = (),
    branches: Annotated[
        str | None, Doc("The branches whose pushes to post, separated by commas.")
    ] = None,
) -> ReceivedWebhookResponse:
    """Post a message from another service's webhook payload.

    Pass the bot's key as the query parameter `api_key`. The body is the service's payload: JSON, or
    a form with JSON in the field `payload`. Without a channel or people, the message goes to the
    bot's default channel, or to its owner. Unsupported events get the error
    UNSUPPORTED_WEBHOOK_EVENT_TYPE with status 200.
    """
    headers = call.request.headers
    webhook = IncomingWebhook(
        integration=integration,
        address=WebhookAddress(
            channel=id_or_name(_text(stream) or "") or None,
            topic=_text(topic),
            people=tuple(map(id_or_name, _names(to))),
            events=EventFilter(only_events, exclude_events, _names(branches)),
        ),
        headers=dict(headers.items()),
        body=call.body,
        fields=await fields(headers, call.body),
        url=f"{call.url}{call.request.scope['path']}?{call.request.url.query}",
    )
    received = await receiving.receive(call, webhook)
    if received.handshake is None:
        return ReceivedWebhookResponse()
    call.answer_headers.update(received.handshake.headers)
    return ReceivedWebhookResponse(challenge=received.handshake.fields.get("challenge", UNSET))


class IntegrationResponse(ApiResponse, kw_only=True):
    """The integration exists."""

    integration: str


async def find_webhook(call: Call, integration: TextPath) -> IntegrationResponse:
    """Check that a webhook URL is valid. Some services do this before they send anything."""
    return IntegrationResponse(integration=receiving.integration_named(call, integration).name)


def _text(text: str | None) -> str | None:
    # Some services encode the URL again.
    return unquote(text) if text is not None and _ENCODED.search(text) else text


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(filter(None, (name.strip() for name in (text or "").split(","))))


class WebhookOptionsResponse(ApiResponse, kw_only=True):
    """A bot's incoming webhook settings."""

    has_secret: bool
    topic_template: str
    content_template: str


class WebhookResponse(WebhookOptionsResponse, kw_only=True):
    """A bot's incoming webhook settings, and the available integrations as in
    `realm_incoming_webhook_bots`."""

    integrations: list[dict[str, Any]]


async def get_webhook_options(call: Call, bot_id: IntPath) -> WebhookResponse:
    """Get a bot's incoming webhook settings. Requires its owner or an administrator."""
    call.consider(bots.check_managed, bot_id)
    options = _options(call.state.users[bot_id])
    return WebhookResponse(**msgspec.structs.asdict(options), integrations=integration_objects())


async def update_webhook_options(
    call: Call,
    bot_id: IntPath,
    secret: Annotated[
        str | UnsetType,
        Doc(
            "The secret that the service signs payloads with. Unsigned payloads are then refused."
            " Empty to accept all."
        ),
    ] = UNSET,
    topic_template: Annotated[
        str | UnsetType, Doc("A Jinja template for the topic of the integration `json`.")
    ] = UNSET,
    content_template: Annotated[
        str | UnsetType, Doc("A Jinja template for the content of the integration `json`.")
    ] = UNSET,
) -> WebhookOptionsResponse:
    """Change a bot's incoming webhook settings. Requires its owner or an administrator."""
    call.consider(bots.check_managed, bot_id)
    for template, name in (
        (topic_template, "topic template"),
        (content_template, "content template"),
    ):
        if template is not UNSET:
            await templates.check(call.node.template_shares, call.user.id, template, name)
    if secret is not UNSET and len(secret) > MAX_SECRET:
        raise Refused(f"The secret can have at most {MAX_SECRET} characters.")
    sealed = UNSET if secret is UNSET else call.node.vault.sealed(secret)
    bot: User = await call.submit(
        bots.change_incoming, bot_id, sealed, topic_template, content_template
    )
    return _options(bot)


def _options(bot: User) -> WebhookOptionsResponse:
    options = (bot.bot.incoming if bot.bot else None) or IncomingOptions()
    return WebhookOptionsResponse(
        has_secret=bool(options.secret_sealed),
        topic_template=options.topic_template,
        content_template=options.content_template,
    )


class ServiceResponse(ApiResponse, kw_only=True):
    """An outgoing webhook bot's service."""

    payload_url: str
    interface_type: int
    token: Annotated[str, Doc("Sent with each request, and the key of its X-Tertulia-Signature.")]
    commands: list[str]
    waiting: Annotated[int, Doc("The number of requests that haven't been delivered yet.")]


async def get_service(call: Call, bot_id: IntPath) -> ServiceResponse:
    """Get an outgoing webhook bot's service. Requires the bot's owner or an administrator."""
    call.consider(bots.check_managed, bot_id)
    return await _service(call, call.state.users[bot_id])


async def update_service(
    call: Call,
    bot_id: IntPath,
    commands: Annotated[
        list[str] | None,
        Doc(
            "Slash commands without the slash. Messages that begin with one are sent to the"
            " service, no matter who writes them. Requires an administrator."
        ),
    ] = None,
    new_token: Annotated[bool, Doc("Whether to replace the token.")] = False,
) -> ServiceResponse:
    """Change an outgoing webhook bot's service. Requires the bot's owner or an administrator.

    To change its URL, use `PATCH /bots/{bot_id}`.
    """
    vault = call.node.vault
    token = vault.sealed(vault.nonce()) if new_token else None
    bot: User = await call.submit(bots.change_service, bot_id, commands, token)
    return await _service(call, bot)


async def _service(call: Call, bot: User) -> ServiceResponse:
    service = bot.bot.service if bot.bot else None
    if service is None:
        raise Refused("This bot isn't an outgoing webhook.")
    return ServiceResponse(
        payload_url=service.url,
        interface_type=int(service.format),
        token=call.node.vault.unsealed(service.token_sealed),
        commands=list(service.commands),
        waiting=await call.node.store.read(webhooks.count_calls, bot.id),
    )


class DeliveryObject(Struct, kw_only=True):
    """An incoming payload or an outgoing request."""

    at: float = field(name="timestamp")
    direction: Annotated[str, Doc("`in` or `out`.")]
    what: Annotated[
        str, Doc("The integration's name; for outgoing requests, what triggered them.")
    ] = field(name="integration")
    event: str
    outcome: Annotated[
        str,
        Doc(
            "For incoming payloads, `sent`, `nothing` (the event creates no message), `filtered`,"
            " or `refused`. For outgoing requests, `delivered`, `failed` (and will be retried),"
            " or `given up`."
        ),
    ]
    reason: Annotated[str, Doc("What went wrong.")]
    message_id: int | None


class DeliveriesResponse(ApiResponse, kw_only=True):
    """The latest deliveries, newest first."""

    deliveries: list[DeliveryObject]


async def get_deliveries(call: Call, bot_id: IntPath) -> DeliveriesResponse:
    """Get a bot's latest incoming payloads and outgoing requests. Requires its owner or an
    administrator."""
    call.consider(bots.check_managed, bot_id)
    lines = await call.node.journal.of(call.node.store, bot_id)
    return DeliveriesResponse(deliveries=convert(lines, list[DeliveryObject], from_attributes=True))


SECTIONS: Final[Sections] = {
    ("realm_incoming_webhook_bots",): lambda _: {
        "realm_incoming_webhook_bots": integration_objects()
    }
}
