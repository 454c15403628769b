"""Channels that fall quiet, and those that wake up again."""

import msgspec

from tertulia.domain.channels import channels
from tertulia.state import activity
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State


def update(moment: Moment) -> Decision[None]:
    """Call channels quiet in which nothing was written for long, and others active again."""
    state, now = moment.state, moment.now
    changes = [
        channels.changed(
            state,
            channel,
            msgspec.structs.replace(channel, is_recently_active=not channel.is_recently_active),
            now,
        )
        for channel in state.channels
        if channel.is_recently_active != activity.is_active(channel, now)
    ]
    return Decision(None, changes)


def due(state: State, now: float) -> float | None:
    """When `update` is due, in UNIX seconds."""
    return state.activity.next(state.channels.__getitem__, now)
