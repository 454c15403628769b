"""What viewers see of channels and accounts, and events of channels that come and go."""

from msgspec import Struct

from tertulia.domain import channel_access, permissions
from tertulia.model.changes import ProfileChanged, StatusChanged
from tertulia.model.channels import Channel
from tertulia.model.messages import MessagePlace
from tertulia.model.ranges import Spans
from tertulia.model.users import User
from tertulia.state.state import State
from tertulia.wire.api.channels.objects import ChannelObject, channel_object
from tertulia.wire.api.events import Event
from tertulia.wire.api.projection import ProjectionContext, Viewer


class ChannelCreateEvent(Event, kw_only=True, tag="stream"):
    """Channels that one can see now, and could not before."""

    op: str = "create"
    streams: list[ChannelObject]


class GoneChannel(Struct, kw_only=True):
    """A channel that one cannot see any more."""

    stream_id: int


class ChannelDeleteEvent(Event, kw_only=True, tag="stream"):
    """Channels that one cannot see any more. `streams` is what came before `stream_ids`."""

    op: str = "delete"
    stream_ids: list[int]
    streams: list[GoneChannel]


def sees(context: ProjectionContext, user: User, channel: Channel) -> bool:
    """Whether the user sees the channel, and did when the entry was written: one who sees it as
    a subscriber only, and became that later, did not."""
    state = context.state
    if channel_access.sees_unsubscribed(state, user, channel):
        return True
    subscription = state.subscription(user.id, channel.id)
    return (
        subscription is not None
        and subscription.is_active
        and subscription.began <= context.entry.seq
    )


def read_then(context: ProjectionContext, user: User, channel: Channel) -> Spans:
    """Which of the channel's messages the user may read, and could when the entry was written: one
    who reads them as a subscriber alone, and became that later, could not."""
    state = context.state
    subscription = state.subscription(user.id, channel.id)
    came_later = (
        subscription is not None
        and subscription.is_active
        and subscription.began > context.entry.seq
    )
    if came_later and not channel_access.reads_unsubscribed(state, user, channel):
        return ()
    return channel_access.readable_spans(state, user, channel)


def sees_user(context: ProjectionContext, user: User, other: User) -> bool:
    """Whether the user may know of the other account, and did when the entry was written: a client
    that has slept gets the account first by the entry that let its owner know of it."""
    state = context.state
    if other.id == user.id:  # Gains are ranges of accounts, which may have their viewers' own.
        return True
    return permissions.sees_user(state, user, other) and not state.contacts.gained_since(
        context.entry.seq, user.id, other.id
    )


def sees_account(
    context: ProjectionContext, change: StatusChanged | ProfileChanged, viewer: Viewer
) -> bool:
    """Whether the viewer may know of the account whose change it is."""
    return sees_user(context, viewer.user, context.state.users[change.user_id])


def sees_subscribers(context: ProjectionContext, user: User, channel: Channel) -> bool:
    """Whether the user sees the channel's subscribers, and did when the entry was written."""
    return sees(context, user, channel) and channel_access.sees_subscribers(
        context.state, user, channel
    )


def channel_gone(channel_id: int) -> ChannelDeleteEvent:
    """The event that takes a channel away."""
    return ChannelDeleteEvent(stream_ids=[channel_id], streams=[GoneChannel(stream_id=channel_id)])


def channel_appeared(
    state: State, channel: Channel, now: float, subscriber_count: int
) -> ChannelCreateEvent:
    """The event that brings a channel, with the number of subscribers of that moment."""
    shown = channel_object(state, channel, now)
    shown.subscriber_count = subscriber_count
    return ChannelCreateEvent(streams=[shown])


def reads_where_it_is(
    context: ProjectionContext, message_id: int, moved_to: int | None, viewer: Viewer
) -> bool:
    """Whether the viewer may read a message there, to which channel it was moved since (None: it
    was not)."""
    if moved_to is None:
        return True
    there = MessagePlace(id=message_id, channel_id=moved_to)
    return channel_access.reads_message(context.state, viewer.user, there)
