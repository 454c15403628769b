"""Events of channels: created, changed, seen no more."""

from bisect import bisect_left
from collections.abc import Hashable, Iterable, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from tertulia.domain import channel_access, permissions
from tertulia.model.changes import ChannelChanged, ChannelCreated, ChannelSight
from tertulia.model.channels import Channel
from tertulia.state.folds import revised
from tertulia.state.state import State
from tertulia.wire.api.channels.objects import GROUP_SETTINGS, WIRE_NAMES, excluded, post_policy
from tertulia.wire.api.channels.subscription_events import (
    PeerAddEvent,
    SubscriptionAddEvent,
    subscription_added,
)
from tertulia.wire.api.events import Event
from tertulia.wire.api.groups.objects import GroupSettingValue, group_setting
from tertulia.wire.api.projection import ForEverybody, ProjectionContext, Projections, Viewer
from tertulia.wire.api.visibility import channel_appeared, channel_gone, sees

ChannelValue = str | int | bool | None | GroupSettingValue


class ChannelUpdateEvent(Event, kw_only=True, tag="stream"):
    """One property of a channel has a new value. `name` is the channel's, the one before for a
    new name; some properties bring others along."""

    op: str = "update"
    stream_id: int
    name: str
    property: str
    value: ChannelValue
    rendered_description: str | UnsetType = UNSET
    history_public_to_subscribers: bool | UnsetType = UNSET
    is_web_public: bool | UnsetType = UNSET


class DefaultChannelsEvent(Event, kw_only=True, tag="default_streams"):
    """The channels that new users are subscribed to: all of them."""

    default_streams: list[int]


def default_channels(state: State) -> DefaultChannelsEvent:
    """The event that lists them."""
    return DefaultChannelsEvent(
        default_streams=sorted(c.id for c in state.channels if c.is_default and not c.is_archived)
    )


class ChannelCreatedProjection(ForEverybody[ChannelCreated]):
    """A new channel, to users who see it without being subscribed; its subscribers get it with
    their subscription."""

    of = ChannelCreated

    def view(
        self, context: ProjectionContext, change: ChannelCreated, viewer: Viewer
    ) -> Hashable | None:
        state, user = context.state, viewer.user
        if not channel_access.sees_unsubscribed(state, user, change.channel):
            return None
        present = state.channels[change.channel.id]
        if excluded(present, viewer.registration) or not channel_access.sees_channel(
            state, user, present
        ):
            return None
        return (
            ("default",)
            if change.channel.is_default and not permissions.is_guest(state, user)
            else ()
        )

    def events(
        self, context: ProjectionContext, change: ChannelCreated, view: Any
    ) -> Iterable[Event]:
        yield channel_appeared(context.state, change.channel, context.at, 0)
        if view:
            yield default_channels(context.state)


class _Shown(Enum):
    """What a change of a channel is to somebody."""

    APPEARED = "appeared"
    """The channel came into sight."""
    GONE = "gone"
    CHANGED = "changed"
    NOTHING = "nothing"


class _ChangeView(NamedTuple):
    shown: _Shown
    defaults: bool
    sees_subscribers: bool = False
    subscriber: tuple[int, str, bool] | None = None
    """Whose subscription appears with the channel: user, include_subscribers, nulls."""


class ChannelChangedProjection(ForEverybody[ChannelChanged]):
    """New values, to users who see the channel; to others, that it came or went."""

    of = ChannelChanged

    def view(
        self, context: ProjectionContext, change: ChannelChanged, viewer: Viewer
    ) -> Hashable | None:
        shown = self._shown(context, change, viewer)
        defaults = "is_default" in change.values and not permissions.is_guest(
            context.state, viewer.user
        )
        if shown is _Shown.NOTHING and not defaults:
            return None
        if shown is not _Shown.APPEARED:
            return _ChangeView(shown, defaults)
        state, user = context.state, viewer.user
        channel = state.channels[change.channel_id]
        registration = viewer.registration
        subscribed = user.id in change.subscribers and state.is_subscribed(user.id, channel.id)
        return _ChangeView(
            shown,
            defaults,
            channel_access.sees_subscribers(state, user, channel),
            (
                user.id,
                registration.include_subscribers,
                registration.capabilities.notification_settings_null,
            )
            if subscribed
            else None,
        )

    def _shown(self, context: ProjectionContext, change: ChannelChanged, viewer: Viewer) -> _Shown:
        state, user = context.state, viewer.user
        channel = state.channels[change.channel_id]
        knows_archived = viewer.registration.capabilities.archived_channels
        if user.id in change.lost:
            # A client that slept may not know that it was archived: the channel is taken away
            # whether the client still has it or not.
            return _Shown.GONE
        if not sees(context, user, channel):
            return _Shown.NOTHING
        archiving = change.values.get("is_archived")
        if archiving and not knows_archived:
            return _Shown.GONE
        returned = archiving is False and not knows_archived
        if excluded(
            channel, viewer.registration, archived=change.archived and archiving is not False
        ):
            return _Shown.NOTHING
        if user.id in change.gained or returned:
            return _Shown.APPEARED
        return _Shown.CHANGED

    def events(
        self, context: ProjectionContext, change: ChannelChanged, view: Any
    ) -> Iterable[Event]:
        state = context.state
        channel = revised(state.channels[change.channel_id], change.values)
        match view.shown:
            case _Shown.GONE:
                yield channel_gone(channel.id)
            case _Shown.APPEARED:
                yield from self._appeared(context, change, channel, view)
            case _Shown.CHANGED:
                yield from self._updates(state, change, channel)
            case _:
                pass
        if view.defaults:
            yield default_channels(state)

    def _appeared(
        self,
        context: ProjectionContext,
        change: ChannelChanged,
        channel: Channel,
        view: _ChangeView,
    ) -> Iterable[Event]:
        """The channel, and then its subscribers as if they had just subscribed."""
        state = context.state
        if view.subscriber is not None:
            yield channel_appeared(state, channel, context.at, len(change.subscribers))
            yield self._added(context, channel, len(change.subscribers), view.subscriber)
        elif view.sees_subscribers and change.subscribers:
            yield channel_appeared(state, channel, context.at, 0)
            yield PeerAddEvent(stream_ids=[channel.id], user_ids=list(change.subscribers))
        else:
            yield channel_appeared(state, channel, context.at, len(change.subscribers))

    def _added(
        self,
        context: ProjectionContext,
        channel: Channel,
        count: int,
        subscriber: tuple[int, str, bool],
    ) -> SubscriptionAddEvent:
        user_id, include_subscribers, nulls = subscriber
        return subscription_added(
            context.state,
            channel.id,
            user_id,
            context.at,
            include_subscribers=include_subscribers,
            nulls=nulls,
            count=count,
        )

    def _updates(
        self, state: State, change: ChannelChanged, channel: Channel
    ) -> Iterable[ChannelUpdateEvent]:
        event = ChannelUpdateEvent(stream_id=channel.id, name=channel.name, property="", value=None)
        for field in change.values:
            value = getattr(channel, field)
            name = WIRE_NAMES.get(field, field)
            match field:
                case "is_default" | "rendered_description" | "history_public" | "is_web_public":
                    continue
                case "read_until":
                    continue
                case "name":
                    before = change.was["name"]
                    yield _with(event, property=name, value=value, name=before)
                case "description":
                    yield _with(
                        event,
                        property=name,
                        value=value,
                        rendered_description=channel.rendered_description,
                    )
                case "is_private":
                    yield _with(
                        event,
                        property=name,
                        value=value,
                        history_public_to_subscribers=channel.history_public,
                        is_web_public=channel.is_web_public,
                    )
                case "topics_policy":
                    yield _with(event, property=name, value=value.value)
                case field if field in GROUP_SETTINGS:
                    yield _with(event, property=name, value=group_setting(state, value))
                    if field == "can_send_message_group":
                        policy = post_policy(channel)
                        yield _with(event, property="stream_post_policy", value=policy)
                case _:
                    yield _with(event, property=name, value=value)


def _with(event: ChannelUpdateEvent, **values: Any) -> ChannelUpdateEvent:
    """The event with other values."""
    return msgspec.structs.replace(event, **values)


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
            and channel_access.sees_channel(state, user, channel)
        ):
            sees = channel_access.sees_subscribers(state, user, channel)
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


PROJECTIONS: Final[Projections] = (
    ChannelCreatedProjection(),
    ChannelChangedProjection(),
)
