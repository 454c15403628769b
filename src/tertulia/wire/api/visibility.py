"""The channels and accounts that viewers may see, now and at the time of an entry."""

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
    """Channels that you can see now and couldn't see before."""

    op: str = "create"
    streams: list[ChannelObject]


class DeletedChannel(Struct, kw_only=True):
    """A channel that you can no longer see."""

    stream_id: int


class ChannelDeleteEvent(Event, kw_only=True, tag="stream"):
    """Channels that you can no longer see. `streams` is the older form of `stream_ids`."""

    op: str = "delete"
    stream_ids: list[int]
    streams: list[DeletedChannel]


def sees_channel(context: ProjectionContext, user: User, channel: Channel) -> bool:
    """Whether the user can see the channel, and could when the entry was written. A client that was
    offline first gets the channel from the entry that made it visible."""
    state = context.state
    if state.channel_gains.since(context.entry.seq, user.id, channel.id):
        return False
    if channel_access.sees_unsubscribed(state, user, channel):
        return True
    subscription = state.subscription(user.id, channel.id)
    return (
        subscription is not None
        and subscription.is_active
        and subscription.began <= context.entry.seq
    )


def readable_at_entry(context: ProjectionContext, user: User, channel: Channel) -> Spans:
    """Return the channel's messages that the user can read, and could when the entry was written. A
    user who can read them only through a subscription that began later couldn't."""
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
    """Whether the user may see the other account, and could when the entry was written. A client
    that was offline first gets the account from the entry that made it visible."""
    state = context.state
    if other.id == user.id:  # Gained accounts are ranges of IDs, which may include the viewer's.
        return True
    return permissions.sees_user(state, user, other) and not state.contacts.gained_since(
        context.entry.seq, user.id, other.id
    )


def sees_account(
    context: ProjectionContext, change: StatusChanged | ProfileChanged, viewer: Viewer
) -> bool:
    """Whether the viewer may see the changed account."""
    return sees_user(context, viewer.user, context.state.users[change.user_id])


def sees_subscribers(context: ProjectionContext, user: User, channel: Channel) -> bool:
    """Whether the user can see the channel's subscribers, and could when the entry was written."""
    return sees_channel(context, user, channel) and channel_access.sees_subscribers(
        context.state, user, channel
    )


def channel_deleted(channel_id: int) -> ChannelDeleteEvent:
    """Return the event that removes a channel."""
    return ChannelDeleteEvent(
        stream_ids=[channel_id], streams=[DeletedChannel(stream_id=channel_id)]
    )


def channel_created(
    state: State, channel: Channel, now: float, subscriber_count: int
) -> ChannelCreateEvent:
    """Return the event that adds a channel, with the number of subscribers it had at that time."""
    appeared = channel_object(state, channel, now)
    appeared.subscriber_count = subscriber_count
    return ChannelCreateEvent(streams=[appeared])


def reads_after_move(
    context: ProjectionContext, message_id: int, moved_to: int | None, viewer: Viewer
) -> bool:
    """Whether the viewer can read a message in the channel that it was moved to (None: it wasn't
    moved)."""
    if moved_to is None:
        return True
    message = MessagePlace(id=message_id, channel_id=moved_to)
    return channel_access.reads_message(context.state, viewer.user, message)
