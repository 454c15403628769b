"""Events of subscriptions: your own and other people's."""

from collections.abc import Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import Struct

from tertulia.domain import channel_access
from tertulia.model.changes import Subscribed, SubscriptionChanged, Unsubscribed
from tertulia.wire.api.channels.objects import (
    SubscriptionObject,
    excluded,
    list_subscribers,
    subscription_object,
)
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Projections, Viewer, owner, projected
from tertulia.wire.api.visibility import channel_created, channel_deleted, sees_subscribers


class SubscriptionAddEvent(Event, kw_only=True, tag="subscription"):
    """You were subscribed to these channels."""

    op: str = "add"
    subscriptions: list[SubscriptionObject]


class LeftChannel(Struct, kw_only=True):
    """A channel that you're no longer subscribed to."""

    stream_id: int
    name: str


class SubscriptionRemoveEvent(Event, kw_only=True, tag="subscription"):
    """You were unsubscribed from these channels."""

    op: str = "remove"
    subscriptions: list[LeftChannel]


class SubscriptionUpdateEvent(Event, kw_only=True, tag="subscription"):
    """One of your settings for a channel changed."""

    op: str = "update"
    stream_id: int
    property: str
    value: bool | str | None


class PeerAddEvent(Event, kw_only=True, tag="subscription"):
    """Other users were subscribed to these channels."""

    op: str = "peer_add"
    stream_ids: list[int]
    user_ids: list[int]


class PeerRemoveEvent(Event, kw_only=True, tag="subscription"):
    """Other users were unsubscribed from these channels."""

    op: str = "peer_remove"
    stream_ids: list[int]
    user_ids: list[int]


class SubscriberView(NamedTuple):
    """The channel as a new subscriber's client shows it."""

    user_id: int
    include_subscribers: str
    nulls: bool


def subscriber_view(viewer: Viewer) -> SubscriberView:
    registration = viewer.registration
    nulls = registration.capabilities.notification_settings_null
    return SubscriberView(viewer.user.id, registration.include_subscribers, nulls)


def subscription_added(
    context: ProjectionContext, channel_id: int, view: SubscriberView, count: int | None
) -> SubscriptionAddEvent:
    """Return the event for a new subscriber. A client that asked for part of the subscribers gets
    all of them. `count` is the number of subscribers at that time, if known."""
    state = context.state
    user, channel = state.users[view.user_id], state.channels[channel_id]
    subscription = state.subscriptions[(channel_id, user.id)]
    added = subscription_object(state, subscription, context.at, nulls=view.nulls)
    if view.include_subscribers != "false":
        visible = channel_access.sees_subscribers(state, user, channel)
        list_subscribers(state, channel, added, "true", visible=visible)
    if count is not None:
        added.subscriber_count = count
    return SubscriptionAddEvent(subscriptions=[added])


class _OwnView(NamedTuple):
    subscriber: SubscriberView
    gained: bool


class _PeerView(NamedTuple):
    """Other people's subscriptions, which look the same to everyone who can see them."""


def _subscribed_view(
    context: ProjectionContext, change: Subscribed, viewer: Viewer
) -> Hashable | None:
    state, user = context.state, viewer.user
    channel = state.channels[change.channel_id]
    if excluded(channel, viewer.registration, archived=change.archived):
        return None
    if user.id not in change.colors:
        return _PeerView() if sees_subscribers(context, user, channel) else None
    # A later entry tells viewers that they have lost access to the channel.
    if not channel_access.sees_channel(state, user, channel):
        return None
    # A viewer who sees the channel only as a subscriber may never have received it. Receiving it
    # twice does no harm.
    gained = user.id in change.gained or not channel_access.sees_unsubscribed(state, user, channel)
    return _OwnView(subscriber_view(viewer), gained)


def _subscribed(context: ProjectionContext, change: Subscribed, view: Any) -> Iterable[Event]:
    if isinstance(view, _PeerView):
        yield PeerAddEvent(stream_ids=[change.channel_id], user_ids=list(change.user_ids))
        return
    state, channel_id, count = context.state, change.channel_id, change.count
    if view.gained:
        known = len(state.subscribers(channel_id)) if count is None else count
        yield channel_created(state, state.channels[channel_id], context.at, known)
    yield subscription_added(context, channel_id, view.subscriber, count)


class _GoneView(NamedTuple):
    lost: bool
    others: tuple[int, ...]
    """The users unsubscribed with the viewer, if the viewer can still see them."""
    known: bool
    """Whether the client could know of the subscription. It can't if the channel was archived."""


def _unsubscribed_view(
    context: ProjectionContext, change: Unsubscribed, viewer: Viewer
) -> Hashable | None:
    user, channel = viewer.user, context.state.channels[change.channel_id]
    archived = excluded(channel, viewer.registration, archived=change.archived)
    sees = not archived and sees_subscribers(context, user, channel)
    if user.id not in change.user_ids:
        return _PeerView() if sees else None
    lost = user.id in change.lost
    known = not (change.archived and archived)
    # No other entry tells viewers that they have lost access to the channel, archived or not.
    if not known and not lost:
        return None
    others = tuple(other for other in change.user_ids if other != user.id)
    return _GoneView(lost, others if sees and not lost else (), known)


def _unsubscribed(context: ProjectionContext, change: Unsubscribed, view: Any) -> Iterable[Event]:
    if isinstance(view, _PeerView):
        yield PeerRemoveEvent(stream_ids=[change.channel_id], user_ids=list(change.user_ids))
        return
    if view.known:
        left = LeftChannel(stream_id=change.channel_id, name=change.name)
        yield SubscriptionRemoveEvent(subscriptions=[left])
    if view.others:
        yield PeerRemoveEvent(stream_ids=[change.channel_id], user_ids=list(view.others))
    if view.lost:
        yield channel_deleted(change.channel_id)


def _changed_view(
    context: ProjectionContext, change: SubscriptionChanged, viewer: Viewer
) -> Hashable | None:
    channel = context.state.channels[change.channel_id]
    if viewer.user.id != change.user_id or excluded(
        channel, viewer.registration, archived=change.archived
    ):
        return None
    # A viewer who has lost access to the channel since may never have received the subscription.
    return () if channel_access.sees_channel(context.state, viewer.user, channel) else None


def _changed(_: ProjectionContext, change: SubscriptionChanged, view: Any) -> Iterable[Event]:
    channel_id, name, value = change.channel_id, change.property, change.value
    yield SubscriptionUpdateEvent(stream_id=channel_id, property=name, value=value)
    if name == "is_muted":  # The older name of the setting.
        yield SubscriptionUpdateEvent(
            stream_id=channel_id, property="in_home_view", value=not value
        )


PROJECTIONS: Final[Projections] = (
    projected(Subscribed, _subscribed_view, _subscribed),
    projected(Unsubscribed, _unsubscribed_view, _unsubscribed),
    projected(SubscriptionChanged, _changed_view, _changed, audience=owner),
)
