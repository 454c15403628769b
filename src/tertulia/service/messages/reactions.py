"""Reactions, widgets, and pins."""

from collections.abc import Sequence

from tertulia.domain import channel_access
from tertulia.domain.messages import pins, reactions
from tertulia.domain.messages.reactions import ReactedMessage, RequestedEmoji
from tertulia.model.errors import NoSuchMessage
from tertulia.model.pins import Pin
from tertulia.service.caller import Caller, retry_on_conflict
from tertulia.service.messages import preconditions
from tertulia.state.decision import Verb
from tertulia.store import message_details


async def add_reaction(caller: Caller, message_id: int, emoji: RequestedEmoji) -> None:
    await _react(caller, message_id, reactions.react, emoji)


async def remove_reaction(caller: Caller, message_id: int, emoji: RequestedEmoji) -> None:
    """Remove a reaction. Raises as `tertulia.domain.messages.reactions.take_back`."""
    await _react(caller, message_id, reactions.take_back, emoji)


async def _react(caller: Caller, message_id: int, verb: Verb[None], emoji: RequestedEmoji) -> None:
    async def attempt() -> None:
        seen = await _seen(caller, message_id)
        reacted = ReactedMessage(
            seq=seen.head,
            message=seen.message,
            flags=seen.relation.flags,
            reactions=seen.details.reactions,
            holders=seen.holders,
        )
        await caller.submit(verb, reacted, emoji)

    await retry_on_conflict(attempt)


async def use_widget(caller: Caller, message_id: int, kind: str, content: str) -> None:
    """Add a submessage, such as a vote in a poll, as JSON text. Raises as
    `tertulia.domain.messages.reactions.add_submessage`."""

    async def attempt() -> None:
        seen = await _seen(caller, message_id)
        await caller.submit(
            reactions.add_submessage,
            seen.message,
            seen.details.submessages,
            seen.holders,
            seen.head,
            kind,
            content,
        )

    await retry_on_conflict(attempt)


async def _seen(caller: Caller, message_id: int) -> message_details.DetailedMessage:
    """The message with its details. Raises NoSuchMessage. The verb checks permissions."""
    found = await caller.node.store.read(
        message_details.detailed_message, caller.user.id, message_id
    )
    if found is None:
        raise NoSuchMessage
    return found


def pins_of(caller: Caller, channel_id: int) -> Sequence[Pin]:
    """The channel's pins that the caller can read, newest first. Raises Refused if the caller can't
    read the channel."""
    state = caller.state
    user = caller.user if caller.user_id is not None else None
    channel = channel_access.readable_channel(state, user, channel_id)
    found = state.pins.newest_first(channel.id)
    if user is None:
        return found
    ids = tuple(sorted(pin.message_id for pin in found))
    seen = frozenset(channel_access.readable(state, user, channel, ids))
    return [pin for pin in found if pin.message_id in seen]


async def pin_message(caller: Caller, message_id: int) -> None:
    async def attempt() -> None:
        found = await preconditions.to_edit(caller.node.log, message_id)
        await caller.submit(pins.pin, found)

    await retry_on_conflict(attempt)
