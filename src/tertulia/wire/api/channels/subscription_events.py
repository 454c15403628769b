"""Events of subscriptions: one's own, and those of one's peers."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from tertulia.domain import channel_access
from tertulia.model.changes import Subscribed, SubscriptionChanged, Unsubscribed
from tertulia.state.state import State
from tertulia.wire.api.channels.objects import (
    SubscriptionObject,
    add_subscribers,
    excluded,
    subscription_object,
)
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import (
    ForEverybody,
    ForOwner,
    ProjectionContext,
    Projections,
    Viewer,
)
from tertulia.wire.api.visibility import channel_appeared, channel_gone, sees_subscribers


class SubscriptionAddEvent(Event, kw_only=True, tag="subscription"):
    """One is subscribed to these channels now."""

    op: str = "add"
    subscriptions: list[SubscriptionObject]


class LeftChannel(Struct, kw_only=True):
    """A channel that one is not subscribed to any more."""

    stream_id: int
    name: str


class SubscriptionRemoveEvent(Event, kw_only=True, tag="subscription"):
    """One is not subscribed to these channels any more."""

    op: str = "remove"
    subscriptions: list[LeftChannel]


class SubscriptionUpdateEvent(Event, kw_only=True, tag="subscription"):
    """One's own setting of a channel has a new value."""

    op: str = "update"
    stream_id: int
    property: str
    value: bool | str | None


class PeerAddEvent(Event, kw_only=True, tag="subscription"):
    """Others are subscribed to these channels now."""

    op: str = "peer_add"
    stream_ids: list[int]
    user_ids: list[int]


class PeerRemoveEvent(Event, kw_only=True, tag="subscription"):
    """Others are not subscribed to these channels any more."""

    op: str = "peer_remove"
    stream_ids: list[int]
    user_ids: list[int]


def subscription_added(
    state: State,
    channel_id: int,
    user_id: int,
    now: float,
    *,
    include_subscribers: str,
    nulls: bool,
    count: int | None,
) -> SubscriptionAddEvent:
    """The event that brings a subscription. Where a client wants some of the subscribers, it gets
    all of them; `count` is how many there were at that moment, where that is known."""
    user, channel = state.users[user_id], state.channels[channel_id]
    shown = subscription_object(state, state.subscriptions[(channel_id, user_id)], now, nulls=nulls)
    wanted = "false" if include_subscribers == "false" else "true"
    add_subscribers(state, user, channel, shown, wanted)
    if count is not None:
        shown.subscriber_count = count
    return SubscriptionAddEvent(subscriptions=[shown])


class _OwnView(NamedTuple):
    user_id: int
    include_subscribers: str
    nulls: bool
    gained: bool


class _PeerView(NamedTuple):
    """Other people's subscriptions, which all who see them see alike."""


class SubscribedProjection(ForEverybody[Subscribed]):
    """To the subscribers, the channel with their settings; to others, the subscribers."""

    of = Subscribed

    def view(
        self, context: ProjectionContext, change: Subscribed, viewer: Viewer
    ) -> Hashable | None:
        state, user, registration = context.state, viewer.user, viewer.registration
        channel = state.channels[change.channel_id]
        if excluded(channel, registration, archived=change.archived):
            return None
        if user.id not in change.colors:
            sees = sees_subscribers(context, user, channel)
            return _PeerView() if sees else None
        # A viewer who has lost sight of the channel since gets that from a later entry.
        if not channel_access.sees_channel(state, user, channel):
            return None
        return _OwnView(
            user.id,
            registration.include_subscribers,
            registration.capabilities.notification_settings_null,
            # A viewer who sees the channel only as a subscriber may never have got it; to get it
            # twice does no harm.
            user.id in change.gained or not channel_access.sees_unsubscribed(state, user, channel),
        )

    def events(self, context: ProjectionContext, change: Subscribed, view: Any) -> Iterable[Event]:
        state = context.state
        if isinstance(view, _PeerView):
            yield PeerAddEvent(stream_ids=[change.channel_id], user_ids=list(change.user_ids))
            return
        channel = state.channels[change.channel_id]
        count = change.count
        if view.gained:
            known = len(state.subscribers(channel.id)) if count is None else count
            yield channel_appeared(state, channel, context.at, known)
        yield subscription_added(
            state,
            channel.id,
            view.user_id,
            context.at,
            include_subscribers=view.include_subscribers,
            nulls=view.nulls,
            count=count,
        )


class _GoneView(NamedTuple):
    lost: bool
    others: tuple[int, ...]
    """Who left with the viewer, as far as the viewer may still know."""
    known: bool
    """Whether the client could know of the subscription: not where the channel was archived."""


class UnsubscribedProjection(ForEverybody[Unsubscribed]):
    """To the unsubscribed, that they are, and that the channel is gone where they lost sight of it;
    to others, who was unsubscribed."""

    of = Unsubscribed

    def view(
        self, context: ProjectionContext, change: Unsubscribed, viewer: Viewer
    ) -> Hashable | None:
        state, user, registration = context.state, viewer.user, viewer.registration
        channel = state.channels[change.channel_id]
        archived = excluded(channel, registration, archived=change.archived)
        sees = not archived and sees_subscribers(context, user, channel)
        if user.id not in change.user_ids:
            return _PeerView() if sees else None
        lost = user.id in change.lost
        known = not (change.archived and archived)
        # Nothing else may tell a viewer who has lost sight of the channel, be it archived or not.
        if not known and not lost:
            return None
        others = tuple(other for other in change.user_ids if other != user.id)
        return _GoneView(lost, others if sees and not lost else (), known)

    def events(
        self, context: ProjectionContext, change: Unsubscribed, view: Any
    ) -> Iterable[Event]:
        if isinstance(view, _PeerView):
            yield PeerRemoveEvent(stream_ids=[change.channel_id], user_ids=list(change.user_ids))
            return
        if view.known:
            left = LeftChannel(stream_id=change.channel_id, name=change.name)
            yield SubscriptionRemoveEvent(subscriptions=[left])
        if view.others:
            yield PeerRemoveEvent(stream_ids=[change.channel_id], user_ids=list(view.others))
        if view.lost:
            yield channel_gone(change.channel_id)


class SubscriptionChangedProjection(ForOwner[SubscriptionChanged]):
    """A setting of a subscription, to its owner; muting under its legacy name as well."""

    of = SubscriptionChanged

    def view(
        self, context: ProjectionContext, change: SubscriptionChanged, viewer: Viewer
    ) -> Hashable | None:
        if viewer.user.id != change.user_id:
            return None
        state, channel = context.state, context.state.channels[change.channel_id]
        if excluded(channel, viewer.registration, archived=change.archived):
            return None
        # A viewer who has lost sight of the channel since may never have got the subscription.
        return () if channel_access.sees_channel(state, viewer.user, channel) else None

    def events(
        self, context: ProjectionContext, change: SubscriptionChanged, view: Any
    ) -> Iterable[Event]:
        channel_id, value = change.channel_id, change.value
        yield SubscriptionUpdateEvent(stream_id=channel_id, property=change.property, value=value)
        if change.property == "is_muted":
            yield SubscriptionUpdateEvent(
                stream_id=channel_id, property="in_home_view", value=not value
            )


PROJECTIONS: Final[Projections] = (
    SubscribedProjection(),
    UnsubscribedProjection(),
    SubscriptionChangedProjection(),
)
