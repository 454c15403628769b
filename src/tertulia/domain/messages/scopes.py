"""Finding the part of a person's readable messages that a narrow covers."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from pyroaring import BitMap

from tertulia.domain import channel_access
from tertulia.model import narrow
from tertulia.model.channels import Channel, Subscription
from tertulia.model.messages import Message
from tertulia.model.narrow import ChannelSpan, Scope, Term
from tertulia.model.users import User
from tertulia.state.state import State


class NarrowReader(Struct, frozen=True):
    """The person who reads. `user` is None for a spectator, and `host` is for the addresses that
    stand in for hidden ones. Only `is:unread` needs `unread`. `conversation` is the message of a
    `with` term, if the reader can see it."""

    state: State
    user: User | None
    host: str
    unread: BitMap = BitMap()
    conversation: Message | None = None


def open_channels(reader: NarrowReader) -> list[Channel]:
    """Return the channels whose whole history the reader can read."""
    if reader.user is None:
        return [c for c in reader.state.channels if channel_access.open_to_spectators(c)]
    return channel_access.channels_read_whole(reader.state, reader.user)


def own_directs(reader: NarrowReader) -> frozenset[int]:
    if reader.user is None or not reader.user.reaches(None):
        return frozenset()
    return frozenset(reader.state.directs.of_user[reader.user.id])


def received_spans(reader: NarrowReader) -> tuple[ChannelSpan, ...]:
    """Return the ranges of channels' messages that were delivered to the reader."""
    user = reader.user
    if user is None:
        return ()
    return tuple(
        ChannelSpan(channel_id, after, until)
        for channel_id, subscription in reader.state.subscriptions.of_user[user.id].items()
        for after, until in _open_spans(reader.state, user, subscription)
    )


def spans_received(state: State, user: User, channel_id: int) -> Sequence[tuple[int, int | None]]:
    """Return the ranges of a channel's messages that were delivered to the user and that they can
    still read."""
    subscription = state.subscription(user.id, channel_id)
    return () if subscription is None else _open_spans(state, user, subscription)


def _open_spans(
    state: State, user: User, subscription: Subscription
) -> Sequence[tuple[int, int | None]]:
    spans = subscription.spans
    # Subscribers can always read it.
    if user.reaches(subscription.channel_id) and (
        (spans and spans[-1][1] is None)
        or channel_access.reads_channel(state, user, state.channels[subscription.channel_id])
    ):
        return spans
    return ()


def everything_readable(reader: NarrowReader) -> Scope:
    """Return all messages that the reader can read, whether they were received or not."""
    open_ids = frozenset(channel.id for channel in open_channels(reader))
    return Scope(
        user_id=reader.user.id if reader.user else None,
        channel_ids=open_ids,
        spans=tuple(s for s in received_spans(reader) if s.channel_id not in open_ids),
        direct_ids=own_directs(reader),
    )


def received_scope(state: State, user: User) -> Scope:
    """Return the messages that the user received or has a record of."""
    reader = NarrowReader(state=state, user=user, host="")
    return Scope(
        user_id=user.id,
        spans=received_spans(reader),
        direct_ids=own_directs(reader),
        recorded=frozenset(channel.id for channel in open_channels(reader)),
    )


def scope_of(
    reader: NarrowReader,
    terms: Sequence[Term],
    received: Callable[[State, User], Scope] = received_scope,
) -> Scope:
    """Return the readable messages that a narrow covers: the history of the channels that it names,
    or else the messages that were received; for an access key that is limited to channels, the
    history of these.

    `id` can be any message that the reader can read. `received` is `received_scope` or a cache of
    it.
    """
    if reader.user is None:
        return Scope(user_id=None, channel_ids=frozenset(c.id for c in open_channels(reader)))
    named: frozenset[int] | None = None
    for term in terms:
        if isinstance(term.condition, narrow.InChannels) and not term.negated:
            ids = term.condition.channel_ids
            named = ids if named is None else named & ids
    if named is None:
        reach = reader.user.reach
        if reach is not None and reach.channel_ids is not None:
            return everything_readable(reader)
        if any(isinstance(term.condition, narrow.HasId) and not term.negated for term in terms):
            return everything_readable(reader)
        return received(reader.state, reader.user)
    whole: set[int] = set()
    spans: list[ChannelSpan] = []
    for channel_id in named:
        channel = reader.state.channels[channel_id]
        if channel_access.reads_whole_history(reader.state, reader.user, channel):
            whole.add(channel_id)
        else:
            parts = spans_received(reader.state, reader.user, channel_id)
            spans += (ChannelSpan(channel_id, after, until) for after, until in parts)
    return Scope(user_id=reader.user.id, channel_ids=frozenset(whole), spans=tuple(spans))
