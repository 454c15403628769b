"""The narrow that a queue was registered with, which knows only a few operators."""

from collections.abc import Collection

from tertulia.domain.accounts import users
from tertulia.model.channels import topic_key
from tertulia.model.messages import Message
from tertulia.model.users import User
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.projections.visibility import sees_user


def in_narrow(
    context: ProjectionContext, message: Message, viewer: Viewer, flags: Collection[str]
) -> bool:
    """Whether the message is in the queue's narrow, which knows only a few operators."""
    return all(
        _holds(context, message, viewer.user, operator, operand, flags)
        for operator, operand in viewer.registration.narrow
    )


def _holds(
    context: ProjectionContext,
    message: Message,
    reader: User,
    operator: str,
    operand: str,
    flags: Collection[str],
) -> bool:
    state = context.state
    match operator, operand:
        case "channel", _:
            channel = state.channels.get(message.channel_id)
            return channel is not None and (
                channel.name.casefold() == operand.casefold() or str(channel.id) == operand
            )
        case "topic", _:
            return message.channel_id is not None and topic_key(message.topic) == topic_key(operand)
        case "sender", _:
            named = users.account_with(state, reader, operand, context.host)
            if named is None and str(message.sender_id) == operand:
                return sees_user(context, reader, state.users[message.sender_id])
            return named is not None and named.id == message.sender_id
        case "is", "dm":
            return message.channel_id is None
        case "is", "unread":
            return "read" not in flags
        case "is", "starred":
            return "starred" in flags
        case "is", "mentioned":
            return "mentioned" in flags or "wildcard_mentioned" in flags
        case "is", "alerted":
            return "has_alert_word" in flags
        case "is", "resolved":
            return message.channel_id is not None and message.topic.startswith("✔ ")
        case _:
            return False
