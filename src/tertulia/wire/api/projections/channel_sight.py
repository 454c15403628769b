"""Channels that come into sight of users who are not subscribed to them, and go out of it."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tertulia.domain import permissions
from tertulia.model.changes import ChannelSight
from tertulia.wire.api.events import Event
from tertulia.wire.api.objects.channels import excluded
from tertulia.wire.api.projection import ProjectionContext, Viewer
from tertulia.wire.api.projections.subscriptions import PeerAddEvent
from tertulia.wire.api.projections.visibility import channel_appeared, channel_gone


class Appeared(NamedTuple):
    """A channel that came into sight, with its subscribers of that moment."""

    channel_id: int
    subscribers: tuple[int, ...]
    sees_subscribers: bool


class SightChanges(NamedTuple):
    """The channels of one viewer."""

    lost: tuple[int, ...] = ()
    gained: tuple[Appeared, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.gained)


def sight_changes(
    context: ProjectionContext, sight: Iterable[ChannelSight], viewer: Viewer
) -> SightChanges:
    """The channels that the viewer gained and lost. A gained one is shown if it is still in sight;
    a lost one is always taken away, as the client may know of it even where it was archived."""
    state, user = context.state, viewer.user
    lost: list[int] = []
    gained: list[Appeared] = []
    for one in sight:
        channel = state.channels[one.channel_id]
        if _has(one.lost, user.id):
            lost.append(channel.id)
        elif (
            _has(one.gained, user.id)
            and not excluded(channel, viewer.registration, archived=one.archived)
            and permissions.sees_channel(state, user, channel)
        ):
            sees = permissions.sees_subscribers(state, user, channel)
            gained.append(Appeared(channel.id, one.subscribers, sees))
    return SightChanges(tuple(lost), tuple(gained))


def _has(ascending: Sequence[int], user_id: int) -> bool:
    index = bisect_left(ascending, user_id)
    return index < len(ascending) and ascending[index] == user_id


def sight_events(context: ProjectionContext, sight: SightChanges) -> Iterable[Event]:
    """The events that take the channels away and bring them, each with its subscribers as if they
    came after it."""
    state = context.state
    for channel_id in sight.lost:
        yield channel_gone(channel_id)
    for channel_id, subscribers, sees_subscribers in sight.gained:
        follow = sees_subscribers and bool(subscribers)
        count = 0 if follow else len(subscribers)
        yield channel_appeared(state, state.channels[channel_id], context.at, count)
        if follow:
            yield PeerAddEvent(stream_ids=[channel_id], user_ids=list(subscribers))
