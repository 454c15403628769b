"""Typing notifications. They aren't stored."""

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages import editing, sending
from tertulia.model.errors import NoSuchMessage
from tertulia.model.messages import Message
from tertulia.model.transients import EditTyping, Typing
from tertulia.state.decision import CommandContext, Decision


def to_people(context: CommandContext, to: tuple[int, ...], started: bool) -> Decision[Typing]:
    _require_direct(context)
    members = sending.direct_members(context, to)
    return Decision(
        Typing(sender_id=context.actor.id, started=started, at=context.now, recipients=members)
    )


def in_topic(
    context: CommandContext, channel_id: int, topic: str, started: bool
) -> Decision[Typing]:
    _require_channel(context)
    channel = sending.postable_channel(
        context, sending.ToChannel(topic=topic, channel_id=channel_id)
    )
    return Decision(
        Typing(
            sender_id=context.actor.id,
            started=started,
            at=context.now,
            channel_id=channel.id,
            topic=topic,
        )
    )


def edit(context: CommandContext, message: Message | None, started: bool) -> Decision[EditTyping]:
    """Notify the readers of the actor's message that the actor begins or stops editing it. Raise
    NoSuchMessage if the actor can't read it, and Refused if they can't edit it."""
    state, actor, now = context.state, context.actor, context.now
    if message is None or not channel_access.reads_message(state, actor, message):
        raise NoSuchMessage
    (_require_direct if message.channel_id is None else _require_channel)(context)
    editing.require_editable(context, message)
    return Decision(
        EditTyping(
            sender_id=actor.id,
            started=started,
            at=now,
            message_id=message.id,
            direct_id=message.direct_id,
            channel_id=message.channel_id,
            topic=message.topic,
        )
    )


def _require_direct(context: CommandContext) -> None:
    settings = context.state.settings.get(context.actor.id)
    permissions.require(
        settings is None or settings.send_direct_typing_notifications,
        "Typing notifications for direct messages are turned off in your settings.",
    )


def _require_channel(context: CommandContext) -> None:
    settings = context.state.settings.get(context.actor.id)
    permissions.require(
        settings is None or settings.send_channel_typing_notifications,
        "Typing notifications for channels are turned off in your settings.",
    )
