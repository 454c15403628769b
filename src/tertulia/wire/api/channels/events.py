"""Events of channels that are created, changed, or deleted."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

from msgspec import UNSET, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.model.changes import ChannelChanged, ChannelCreated
from tertulia.model.channels import Channel
from tertulia.model.groups import ChannelSight
from tertulia.state.folds import revised
from tertulia.state.recent_gains import WITHOUT_ARCHIVED
from tertulia.state.state import State
from tertulia.wire.api.channels.objects import WIRE_NAMES, excluded, post_policy
from tertulia.wire.api.channels.subscription_events import (
    PeerAddEvent,
    SubscriberView,
    subscriber_view,
    subscription_added,
)
from tertulia.wire.api.events import Event
from tertulia.wire.api.groups.objects import GroupSettingValue, group_setting
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, projected
from tertulia.wire.api.visibility import channel_created, channel_deleted, sees_channel

ChannelValue = str | int | bool | None | GroupSettingValue


class ChannelUpdateEvent(Event, kw_only=True, tag="stream"):
    """A property of a channel changed. `name` is the channel's name, or its old name if that
    changed. Some properties come with related ones."""

    op: str = "update"
    stream_id: int
    name: str
    property: str
    value: ChannelValue
    rendered_description: str | UnsetType = UNSET
    history_public_to_subscribers: bool | UnsetType = UNSET
    is_web_public: bool | UnsetType = UNSET


def first_messages_known(
    context: ProjectionContext, channel_ids: Iterable[int], viewer: Viewer
) -> tuple[int, ...]:
    """Return the channels whose first message changed and that the client knows."""
    state, returned = context.state, context.state.channel_gains.since
    return tuple(
        channel_id
        for channel_id in channel_ids
        if sees_channel(context, viewer.user, state.channels[channel_id])
        and not excluded(
            state.channels[channel_id],
            viewer.registration,
            archived=returned(context.entry.seq, WITHOUT_ARCHIVED, channel_id),
        )
    )


def first_message_events(
    state: State, first_message_ids: Mapping[int, int | None], channel_ids: Iterable[int]
) -> Iterable[ChannelUpdateEvent]:
    """Return the events about these channels' first messages."""
    for channel_id in channel_ids:
        yield ChannelUpdateEvent(
            stream_id=channel_id,
            name=state.channels[channel_id].name,
            property="first_message_id",
            value=first_message_ids[channel_id],
        )


class DefaultChannelsEvent(Event, kw_only=True, tag="default_streams"):
    """The channels that new users are subscribed to changed. Lists all of them."""

    default_streams: list[int]


def default_channels(state: State) -> DefaultChannelsEvent:
    return DefaultChannelsEvent(
        default_streams=sorted(c.id for c in state.channels if c.is_default and not c.is_archived)
    )


def _created_view(
    context: ProjectionContext, change: ChannelCreated, viewer: Viewer
) -> Hashable | None:
    """The view for users who see the channel without being subscribed: subscribers get it with
    their subscription."""
    state, user = context.state, viewer.user
    current = state.channels[change.channel.id]
    if (
        not channel_access.sees_unsubscribed(state, user, change.channel)
        or excluded(current, viewer.registration)
        or not channel_access.sees_channel(state, user, current)
    ):
        return None
    is_member = not permissions.is_guest(state, user)
    return ("default",) if change.channel.is_default and is_member else ()


def _created(context: ProjectionContext, change: ChannelCreated, view: Any) -> Iterable[Event]:
    yield channel_created(context.state, change.channel, context.at, 0)
    if view:
        yield default_channels(context.state)


class _Effect(Enum):
    """The events of a change of a channel for a viewer."""

    APPEARED = "appeared"
    GONE = "gone"
    CHANGED = "changed"
    NOTHING = "nothing"


class _ChangeView(NamedTuple):
    effect: _Effect
    defaults: bool
    sees_subscribers: bool = False
    subscriber: SubscriberView | None = None
    """For a viewer whose subscription appears with the channel."""


def _changed_view(
    context: ProjectionContext, change: ChannelChanged, viewer: Viewer
) -> Hashable | None:
    state, user = context.state, viewer.user
    channel = state.channels[change.channel_id]
    effect = _effect(context, change, viewer)
    defaults = "is_default" in change.values and not permissions.is_guest(state, user)
    if effect is _Effect.NOTHING and not defaults:
        return None
    if effect is not _Effect.APPEARED:
        return _ChangeView(effect, defaults)
    subscribed = user.id in change.subscribers and state.is_subscribed(user.id, channel.id)
    return _ChangeView(
        effect,
        defaults,
        channel_access.sees_subscribers(state, user, channel),
        subscriber_view(viewer) if subscribed else None,
    )


def _effect(context: ProjectionContext, change: ChannelChanged, viewer: Viewer) -> _Effect:
    user, channel = viewer.user, context.state.channels[change.channel_id]
    knows_archived = viewer.registration.capabilities.archived_channels
    if user.id in change.lost:
        # A client that was offline may not know that the channel was archived, so it is removed
        # even if the client no longer has it.
        return _Effect.GONE
    if not sees_channel(context, user, channel):
        return _Effect.NOTHING
    archiving = change.values.get("is_archived")
    if archiving and not knows_archived:
        return _Effect.GONE
    was_archived = change.archived and archiving is not False
    if excluded(channel, viewer.registration, archived=was_archived):
        return _Effect.NOTHING
    returned = archiving is False and not knows_archived
    return _Effect.APPEARED if user.id in change.gained or returned else _Effect.CHANGED


def _changed(context: ProjectionContext, change: ChannelChanged, view: Any) -> Iterable[Event]:
    channel = revised(context.state.channels[change.channel_id], change.values)
    match view.effect:
        case _Effect.GONE:
            yield channel_deleted(channel.id)
        case _Effect.APPEARED:
            yield from _appeared(context, change, channel, view)
        case _Effect.CHANGED:
            yield from _updates(context.state, change, channel)
    if view.defaults:
        yield default_channels(context.state)


def _appeared(
    context: ProjectionContext, change: ChannelChanged, channel: Channel, view: _ChangeView
) -> Iterable[Event]:
    """Yield the events that create the channel, followed by its subscribers as if they had just
    subscribed."""
    count = len(change.subscribers)
    follows = view.subscriber is None and view.sees_subscribers and count > 0
    yield channel_created(context.state, channel, context.at, 0 if follows else count)
    if view.subscriber is not None:
        yield subscription_added(context, channel.id, view.subscriber, count)
    elif follows:
        yield PeerAddEvent(stream_ids=[channel.id], user_ids=list(change.subscribers))


_SENT_WITH_OTHERS: Final = frozenset(
    {"is_default", "rendered_description", "history_public", "is_web_public", "read_until"}
)
"""Fields without their own event: they're sent with another field, or not at all."""


def _updates(
    state: State, change: ChannelChanged, channel: Channel
) -> Iterable[ChannelUpdateEvent]:
    for field in change.values:
        if field in _SENT_WITH_OTHERS:
            continue
        event = ChannelUpdateEvent(
            stream_id=channel.id,
            name=change.was["name"] if field == "name" else channel.name,
            property=WIRE_NAMES.get(field, field),
            value=getattr(channel, field),
        )
        match field:
            case "description":
                event.rendered_description = channel.rendered_description
            case "is_private":
                event.history_public_to_subscribers = channel.history_public
                event.is_web_public = channel.is_web_public
            case "topics_policy":
                event.value = channel.topics_policy.value
            case _ if field in CHANNEL_SETTINGS:
                event.value = group_setting(state, getattr(channel, field))
        yield event
        if field == "can_send_message_group":
            yield ChannelUpdateEvent(
                stream_id=channel.id,
                name=channel.name,
                property="stream_post_policy",
                value=post_policy(channel),
            )


class GainedChannel(NamedTuple):
    """A channel that the viewer gained access to, with its subscribers at that time."""

    channel_id: int
    subscribers: tuple[int, ...]
    sees_subscribers: bool


class ChannelVisibilityChanges(NamedTuple):
    """The channels that a viewer gained and lost access to."""

    lost: tuple[int, ...] = ()
    gained: tuple[GainedChannel, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lost or self.gained)


def visibility_changes(
    context: ProjectionContext, changes: Iterable[ChannelSight], viewer: Viewer
) -> ChannelVisibilityChanges:
    """Return the channels that the viewer gained and lost access to. A gained channel is left out
    if the viewer can no longer see it. A lost one is always included, since the client may know it
    even if it was archived."""
    state, user = context.state, viewer.user
    lost: list[int] = []
    gained: list[GainedChannel] = []
    for change in changes:
        channel = state.channels[change.channel_id]
        if _has(change.lost, user.id):
            lost.append(channel.id)
        elif (
            _has(change.gained, user.id)
            and not excluded(channel, viewer.registration, archived=change.archived)
            and channel_access.sees_channel(state, user, channel)
        ):
            sees = channel_access.sees_subscribers(state, user, channel)
            gained.append(GainedChannel(channel.id, change.subscribers, sees))
    return ChannelVisibilityChanges(tuple(lost), tuple(gained))


def _has(ascending: Sequence[int], user_id: int) -> bool:
    index = bisect_left(ascending, user_id)
    return index < len(ascending) and ascending[index] == user_id


def visibility_events(
    context: ProjectionContext, changes: ChannelVisibilityChanges
) -> Iterable[Event]:
    """Delete the lost channels, and create the gained ones followed by their subscribers."""
    state = context.state
    for channel_id in changes.lost:
        yield channel_deleted(channel_id)
    for channel_id, subscribers, sees_subscribers in changes.gained:
        follow = sees_subscribers and bool(subscribers)
        count = 0 if follow else len(subscribers)
        yield channel_created(state, state.channels[channel_id], context.at, count)
        if follow:
            yield PeerAddEvent(stream_ids=[channel_id], user_ids=list(subscribers))


PROJECTIONS: Final[Projections] = (
    projected(ChannelCreated, _created_view, _created),
    projected(ChannelChanged, _changed_view, _changed),
)
