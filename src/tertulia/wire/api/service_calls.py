"""What bots' services are told of messages, in the two formats that there are."""

from urllib.parse import urlencode

import msgspec

from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.model.webhooks import OutgoingService, ServiceCall, ServiceFormat
from tertulia.service.node import Node
from tertulia.service.webhooks.calling import Encoded
from tertulia.store.message_details import MessageDetails
from tertulia.wire.api.objects.messages import MessageObjects


def encoded_call(
    node: Node,
    bot: User,
    service: OutgoingService,
    call: ServiceCall,
    message: Message,
    details: MessageDetails,
    token: str,
) -> Encoded | None:
    """What the bot's service is told. None for direct messages in Slack's format."""
    if service.format is ServiceFormat.SLACK:
        return _slack(node, bot, call, message, token)
    objects = MessageObjects(
        node.state,
        bot,
        node.config.address_host,
        apply_markdown=False,
        client_gravatar=False,
        empty_topic_name=True,
    )
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
    return Encoded("application/json", msgspec.json.encode(told))


def _slack(
    node: Node, bot: User, call: ServiceCall, message: Message, token: str
) -> Encoded | None:
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
    return Encoded("application/x-www-form-urlencoded", urlencode(fields).encode())


def _after_command(content: str) -> str:
    parts = content.split(maxsplit=1)
    return parts[1] if len(parts) > 1 else ""
