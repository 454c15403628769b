"""Pinned messages of channels."""

from collections.abc import Sequence

from tertulia.domain import permissions
from tertulia.domain.messages import pins
from tertulia.model.pins import Pin
from tertulia.service.caller import Caller
from tertulia.service.conflicts import retry_on_conflict
from tertulia.service.messages import preconditions


def pins_of(caller: Caller, channel_id: int) -> Sequence[Pin]:
    """The channel's pinned messages that the caller can read, those that were pinned last first.
    Refused where the caller cannot read the channel."""
    state = caller.state
    user = caller.user if caller.user_id is not None else None
    channel = permissions.readable_channel(state, user, channel_id)
    found = state.pins.newest_first(channel.id)
    if user is None:
        return found
    ids = tuple(sorted(pin.message_id for pin in found))
    seen = frozenset(permissions.readable(state, user, channel, ids))
    return [pin for pin in found if pin.message_id in seen]


async def pin_message(caller: Caller, message_id: int) -> None:
    """Pin a message. Raises as `tertulia.domain.messages.pins.pin`."""

    async def attempt() -> None:
        found = await preconditions.to_edit(caller.node.log, message_id)
        await caller.submit(pins.pin, found)

    await retry_on_conflict(attempt)
