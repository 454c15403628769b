"""Pinning messages in their channels."""

from collections.abc import Sequence

from tertulia.domain import channel_access, permissions
from tertulia.domain.messages.editing import LoadedMessage, require_current
from tertulia.model.changes import MessagePinned, MessageUnpinned
from tertulia.model.errors import NoSuchItem, Refused
from tertulia.model.messages import MessagePlace
from tertulia.model.pins import MAX_PINS, Pin
from tertulia.model.users import User
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


def readable_pins(state: State, user: User | None, channel_id: int) -> Sequence[Pin]:
    """Return the channel's pins that the user (None: a spectator) can read, newest first. Raise
    Refused if the user can't read the channel."""
    channel = channel_access.readable_channel(state, user, channel_id)
    pins = state.pins.newest_first(channel.id)
    if user is None:
        return pins
    ids = tuple(sorted(pin.message_id for pin in pins))
    readable = frozenset(channel_access.readable(state, user, channel, ids))
    return [pin for pin in pins if pin.message_id in readable]


def pin(context: CommandContext, loaded: LoadedMessage) -> Decision[None]:
    """Pin the message for everyone who can read it, unless it's already pinned. Raise
    NoSuchMessage, Conflict; Refused without permission, for direct messages, and if the channel has
    `MAX_PINS` pins."""
    state, actor = context.state, context.actor
    message = require_current(context, loaded)
    if message.channel_id is None:
        raise Refused("You can only pin messages in channels.")
    _require_may_pin(state, actor, message.channel_id)
    if message.id in state.pins:
        return Decision(None)
    if state.pins.of_channel.count(message.channel_id) >= MAX_PINS:
        raise Refused(f"A channel can have at most {MAX_PINS} pinned messages. Unpin one first.")
    pinned = Pin(
        message_id=message.id,
        channel_id=message.channel_id,
        topic=message.topic,
        pinned_by=actor.id,
        pinned_at=int(context.now),
    )
    return Decision(None, (MessagePinned(pin=pinned),))


def unpin(context: CommandContext, message_id: int) -> Decision[None]:
    """Unpin a message that anyone pinned. Raise NoSuchItem if it isn't pinned or the actor can't
    read it; Refused without permission."""
    state, actor = context.state, context.actor
    pinned = state.pins.get(message_id)
    if pinned is None or not channel_access.reads_message(
        state, actor, MessagePlace(id=message_id, channel_id=pinned.channel_id)
    ):
        raise NoSuchItem("pinned message")
    _require_may_pin(state, actor, pinned.channel_id)
    return Decision(None, (MessageUnpinned(pin=pinned),))


def _require_may_pin(state: State, actor: User, channel_id: int) -> None:
    permissions.require(
        channel_access.may_pin(state, actor, state.channels[channel_id]),
        "You don't have permission to pin messages in this channel.",
    )
