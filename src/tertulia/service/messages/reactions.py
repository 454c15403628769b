"""What people add to messages: reactions, and what they do with widgets."""

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
    """React to a message. Raises as `tertulia.domain.messages.reactions.react`."""
    await _react(caller, message_id, reactions.react, emoji)


async def remove_reaction(caller: Caller, message_id: int, emoji: RequestedEmoji) -> None:
    """Take a reaction of the caller's back. Raises as
    `tertulia.domain.messages.reactions.take_back`."""
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
    """Vote in a poll, add to a list of things to do, and the like: JSON text, as the widget takes
    it. Raises as `tertulia.domain.messages.reactions.add_submessage`."""

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
    """The message and what hangs on it. NoSuchMessage where there is none; whether the caller may
    read it is for the verb to say."""
    found = await caller.node.store.read(
        message_details.detailed_message, caller.user.id, message_id
    )
    if found is None:
        raise NoSuchMessage
    return found


def pins_of(caller: Caller, channel_id: int) -> Sequence[Pin]:
    """The channel's pinned messages that the caller can read, those that were pinned last first.
    Refused where the caller cannot read the channel."""
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
    """Pin a message. Raises as `tertulia.domain.messages.pins.pin`."""

    async def attempt() -> None:
        found = await preconditions.to_edit(caller.node.log, message_id)
        await caller.submit(pins.pin, found)

    await retry_on_conflict(attempt)
