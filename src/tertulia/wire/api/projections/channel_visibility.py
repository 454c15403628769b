"""Channels that users who are not subscribed to them gain or lose sight of."""

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
    """A channel that the viewer gained sight of, with its subscribers at that moment."""

    channel_id: int
    subscribers: tuple[int, ...]
    sees_subscribers: bool


class ChannelVisibilityChanges(NamedTuple):
    """The channels that one viewer gained and lost sight of."""

    lost: tuple[int, ...] = ()
    gained: tuple[Appeared, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.gained)


def visibility_changes(
    context: ProjectionContext, changes: Iterable[ChannelSight], viewer: Viewer
) -> ChannelVisibilityChanges:
    """The channels that the viewer gained and lost sight of. A gained one is left out if the viewer
    does not see it any more; a lost one is always reported, since the client may know it even if
    it was archived."""
    state, user = context.state, viewer.user
    lost: list[int] = []
    gained: list[Appeared] = []
    for one in changes:
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
    return ChannelVisibilityChanges(tuple(lost), tuple(gained))


def _has(ascending: Sequence[int], user_id: int) -> bool:
    index = bisect_left(ascending, user_id)
    return index < len(ascending) and ascending[index] == user_id


def visibility_events(
    context: ProjectionContext, changes: ChannelVisibilityChanges
) -> Iterable[Event]:
    """The events for the channels: lost ones are deleted; gained ones are created, followed by an
    event with their subscribers."""
    state = context.state
    for channel_id in changes.lost:
        yield channel_gone(channel_id)
    for channel_id, subscribers, sees_subscribers in changes.gained:
        follow = sees_subscribers and bool(subscribers)
        count = 0 if follow else len(subscribers)
        yield channel_appeared(state, state.channels[channel_id], context.at, count)
        if follow:
            yield PeerAddEvent(stream_ids=[channel_id], user_ids=list(subscribers))
