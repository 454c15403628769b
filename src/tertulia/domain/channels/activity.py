"""Which channels count as recently active, as time goes by and messages come."""

import msgspec

from tertulia.domain.channels import channels
from tertulia.state.channels import is_active
from tertulia.state.moment import Decision, Moment
from tertulia.state.state import State


def update(moment: Moment) -> Decision[None]:
    """Mark channels without a message for long as inactive, and others as active again."""
    state, now = moment.state, moment.now
    changes = [
        channels.changed(
            state,
            channel,
            msgspec.structs.replace(channel, is_recently_active=not channel.is_recently_active),
        )
        for channel in state.channels
        if channel.is_recently_active != is_active(channel, now)
    ]
    return Decision(None, changes)


def due(state: State, now: float) -> float | None:
    """When `update` is due, in UNIX seconds."""
    return state.channels.activity.next(now)
