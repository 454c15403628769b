"""Marking channels as recently active or inactive."""

import msgspec

from tertulia.domain.channels import channels
from tertulia.state.channels import is_active
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State


def update(context: CommandContext) -> Decision[None]:
    """Mark channels that had no message for a long time as inactive, and others as active again."""
    state, now = context.state, context.now
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
    """Return when `update` is due, in UNIX seconds."""
    return state.channels.activity.next(now)
