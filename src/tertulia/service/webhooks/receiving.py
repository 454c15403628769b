"""Incoming webhooks: turning what services send into messages."""

import codecs
import logging
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from tertulia.domain import names
from tertulia.domain.messages.sending import ToChannel, ToPeople
from tertulia.integrations.incoming import (
    EventFilter,
    HandshakeReply,
    Integration,
    Post,
    Unsupported,
    WebhookRequest,
)
from tertulia.integrations.payloads import Malformed, Part, harmless, short
from tertulia.model.errors import (
    NotJson,
    Refused,
    StrangePayload,
    UnsupportedEvent,
    WildcardNotAllowed,
)
from tertulia.model.users import Bot, BotKind
from tertulia.model.webhooks import IncomingOptions, WebhookLogEntry, WebhookOutcome
from tertulia.service.messages import sending
from tertulia.service.node import Caller
from tertulia.service.webhooks import templates

logger = logging.getLogger("tertulia.webhooks")

_JSON: Final = msgspec.json.Decoder()


class WebhookAddress(Struct, frozen=True, kw_only=True):
    """Options in a webhook's URL."""

    channel: int | str | None = None
    topic: str | None = None
    people: tuple[int | str, ...] = ()
    """The recipients of direct messages. Without a channel and people, messages go to the bot's
    channel or owner."""
    events: EventFilter = EventFilter()


class IncomingWebhook(Struct, frozen=True, kw_only=True):
    """A request from a service."""

    integration: str
    address: WebhookAddress
    headers: Mapping[str, str]
    """Headers, with names in lowercase."""
    body: bytes
    fields: Mapping[str, str] | None = None
    """The fields of a form."""
    url: str = ""


class WebhookResult(Struct, frozen=True, kw_only=True):
    """The result of an incoming webhook."""

    message_id: int | None = None
    """None if no message was sent."""
    is_filtered: bool = False
    """Whether the URL's filters exclude the event."""
    handshake: HandshakeReply | None = None


def integration_named(caller: Caller, name: str) -> Integration:
    """Return the integration with that name. Raise Refused if it doesn't exist, and if the caller
    isn't an incoming webhook bot."""
    _bot(caller)
    from tertulia.integrations.services import INTEGRATIONS  # Imported here because that is slow.

    integration = INTEGRATIONS.get(name)
    if integration is None:
        raise Refused(f"No integration named '{name[:60]}' exists.")
    return integration


async def receive(caller: Caller, arrived: IncomingWebhook) -> WebhookResult:
    """Turn a service's request into a message of the caller, a bot, and record it in the bot's
    journal.

    Raise Refused for other callers, unknown integrations, missing signatures, and messages that
    can't be sent; NotJson, StrangePayload, and UnsupportedEvent.
    """
    bot = _bot(caller)
    events: list[str] = []
    try:
        taken = await _taken(caller, arrived, bot.incoming or IncomingOptions(), events)
    except Refused as refusal:
        _note(caller, arrived, events, "refused", reason=str(refusal))
        raise
    if taken.message_id is not None:
        _note(caller, arrived, events, "sent", message_id=taken.message_id)
    else:
        _note(caller, arrived, events, "filtered" if taken.is_filtered else "nothing")
    return taken


def _bot(caller: Caller) -> Bot:
    bot = caller.user.bot
    if bot is None or bot.kind is not BotKind.INCOMING_WEBHOOK:
        raise Refused("Only incoming webhook bots can receive webhooks.")
    return bot


def _note(
    caller: Caller,
    arrived: IncomingWebhook,
    events: list[str],
    outcome: WebhookOutcome,
    *,
    reason: str = "",
    message_id: int | None = None,
) -> None:
    line = WebhookLogEntry(
        at=caller.now,
        direction="in",
        what=arrived.integration[:60],
        event=events[0][:100] if events else "",
        outcome=outcome,
        reason=reason[:500],
        message_id=message_id,
    )
    caller.node.journal.note(caller.user.id, line)


async def _taken(
    caller: Caller, arrived: IncomingWebhook, options: IncomingOptions, events: list[str]
) -> WebhookResult:
    """Handle the request. The event is appended to `events` as soon as it is known."""
    integration = integration_named(caller, arrived.integration)
    payload = _payload(arrived)
    request = WebhookRequest(Part(payload), arrived.headers, arrived.body, arrived.url)
    post = _translated(integration, request, events)
    if isinstance(post, HandshakeReply):
        return WebhookResult(
            handshake=post
        )  # The request isn't verified yet, so it may contain the secret.
    _require_signed(caller, integration, request, options)
    if post is None:
        return WebhookResult()
    if not arrived.address.events.wants(post.event, post.branch):
        return WebhookResult(is_filtered=True)
    if integration.takes_templates and (options.topic_template or options.content_template):
        post = await _by_templates(caller, options, payload, post)
    return WebhookResult(message_id=await _sent(caller, integration, arrived.address, post))


def _payload(arrived: IncomingWebhook) -> Any:
    """Return the JSON body, the JSON in a form's field `payload`, or the form."""
    if arrived.fields is not None:
        packed = arrived.fields.get("payload")
        if packed is None:
            return dict(arrived.fields)
        text: str | bytes = packed
    else:
        text = arrived.body.removeprefix(codecs.BOM_UTF8)  # Some programs send it.
    if not text.strip():
        return {}
    try:
        return _JSON.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        raise NotJson from None


def _require_signed(
    caller: Caller, integration: Integration, request: WebhookRequest, options: IncomingOptions
) -> None:
    if not options.secret_sealed:
        return
    if integration.signature is None:
        # Otherwise the secret could be bypassed by using another integration's name.
        raise Refused(
            f"{integration.title} doesn't sign its requests, and this bot accepts only signed"
            " ones. Use another bot, or remove this bot's secret."
        )
    secret = caller.node.vault.unsealed(options.secret_sealed)
    if not integration.signature(secret, request, caller.now):
        raise Refused("The signature is missing or wasn't created with the bot's secret.")


def _translated(
    integration: Integration, request: WebhookRequest, events: list[str]
) -> Post | HandshakeReply | None:
    try:
        post = integration.translate(request)
    except Unsupported as error:
        events.append(error.event)
        raise UnsupportedEvent(integration.title, error.event) from None
    except Malformed as error:
        raise StrangePayload(f"Invalid payload ({integration.title}): {error}.") from None
    except Exception:  # A bug. The payload isn't logged.
        logger.exception("an integration failed", extra={"fields": {"name": integration.name}})
        raise StrangePayload(f"Invalid payload ({integration.title}).") from None
    if isinstance(post, Post) and post.event:
        events.append(post.event)
    return post


async def _by_templates(caller: Caller, options: IncomingOptions, payload: Any, post: Post) -> Post:
    # Only the template can mention people.
    text = harmless(msgspec.json.encode(payload).decode())
    owner_id = None if caller.user.bot is None else caller.user.bot.owner_id
    topic, content = await templates.rendered(
        caller.node.template_shares,
        caller.user.id if owner_id is None else owner_id,
        [options.topic_template, options.content_template],
        text,
    )
    return Post(
        " ".join(topic.split()) or post.topic,
        content.strip() if options.content_template else post.content,
    )


async def _sent(
    caller: Caller, integration: Integration, address: WebhookAddress, post: Post
) -> int | None:
    content = short(post.content, names.MAX_MESSAGE)
    if not content:
        return None
    # The service's name for it may be empty or invisible.
    to = _destination(caller, address, _topic(post.topic) or integration.title)
    try:
        sent = await _send(caller, integration, to, content)
    except WildcardNotAllowed:
        # Send it without the mentions.
        sent = await _send(caller, integration, to, harmless(content))
    return sent


async def _send(
    caller: Caller, integration: Integration, to: ToChannel | ToPeople, content: str
) -> int:
    client = f"{integration.title} webhook"[:30]
    sent = await sending.send_message(caller, to, content, client=client, read_by_sender=False)
    return sent.message_id


def _topic(text: str) -> str:
    """Return the text as a valid topic."""
    if not names.is_plain(text):
        text = "".join(filter(names.is_plain, text))
    return short(" ".join(text.split()), names.MAX_TOPIC)


def _destination(caller: Caller, address: WebhookAddress, topic: str) -> ToChannel | ToPeople:
    if address.people:
        return sending.to_people(sending.people_addressed(caller, address.people))
    topic = address.topic if address.topic is not None else topic
    if address.channel is not None:
        return sending.to_topic(address.channel, topic)
    bot = caller.user.bot
    if bot is not None and bot.default_sending_channel_id is not None:
        return sending.to_topic(bot.default_sending_channel_id, topic)
    if bot is None or bot.owner_id is None:
        raise Refused("The webhook URL doesn't say where to send messages. Add a channel to it.")
    return sending.to_people([bot.owner_id])
