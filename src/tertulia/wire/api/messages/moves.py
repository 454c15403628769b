"""Events of messages that were moved."""

from collections.abc import Collection, Hashable, Iterable
from typing import Any, Final, NamedTuple

from msgspec import UNSET
from pyroaring import BitMap

from tertulia.domain import channel_access, permissions
from tertulia.model.changes import MessagesMoved, TopicMoveEnded, TopicMoveStarted
from tertulia.model.messages import Flag, Message
from tertulia.model.ranges import (
    EVERYTHING,
    IdRanges,
    Places,
    Spans,
    ids_at,
    ids_of,
    places,
    ranges_of,
)
from tertulia.model.users import Role, User
from tertulia.state.state import State
from tertulia.store.message_details import MessageDetails
from tertulia.wire.api.channels.events import first_message_events, first_messages_known
from tertulia.wire.api.events import EncodedEvent, Event, encoded
from tertulia.wire.api.messages.deletions import deletion_events
from tertulia.wire.api.messages.edits import UpdateMessageEvent, flags_by_name
from tertulia.wire.api.messages.events import MessageEvent, in_narrow, message_format
from tertulia.wire.api.messages.flag_objects import flag_names
from tertulia.wire.api.messages.move_index import MoveIndex
from tertulia.wire.api.messages.objects import MessageFormat, message_object
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer, unseen
from tertulia.wire.api.reactions import Reactor, reaction_object, reactor
from tertulia.wire.api.topics import display_topic, topic_links
from tertulia.wire.api.visibility import readable_at_entry, sees_user


class _ArrivalsView(NamedTuple):
    """Messages that a viewer can read only since the move."""

    new: IdRanges
    received: IdRanges
    mentioned: IdRanges
    """Messages that mention the viewer by a wildcard."""
    flags: tuple[tuple[int, Flag], ...]
    """The viewer's other flags, by message."""
    unknown: tuple[int, ...]
    """Senders, and people who reacted, that the viewer can't see."""
    role: Role
    own_id: int
    """The viewer's ID if they're one of the senders or people who reacted; otherwise 0."""
    form: MessageFormat


class _MoveView(NamedTuple):
    lost: IdRanges
    """Messages that the viewer can no longer read."""
    moved_ids: IdRanges
    """Messages that the viewer can read in the new place."""
    names_source: bool
    """Whether the viewer may see the old channel's current name."""
    flags: tuple[str, ...]
    empty_topic_name: bool
    bulk: bool
    arrivals: _ArrivalsView | None
    firsts: tuple[int, ...]
    """Channels that the viewer knows and whose first message changed."""


class MessagesMovedProjection(Projection[MessagesMoved]):
    """For users who can read both channels, messages are moved. For users who can read only the old
    channel, they're deleted; for users who can read only the new one, the newest arrive as new
    messages."""

    of = MessagesMoved
    for_all_public = True

    def __init__(self) -> None:
        self._last: MoveIndex | None = None

    def _moved(self, change: MessagesMoved) -> MoveIndex:
        if self._last is None or self._last.change is not change:
            self._last = MoveIndex(change)
        return self._last

    def audience(self, state: State, change: MessagesMoved) -> Collection[int]:
        ever = state.subscriptions.of_channel
        return {
            *ever[change.channel_id],
            *ever[change.new_channel_id],
            *change.flags,
            *(user_id for _, user_ids in change.lost for user_id in user_ids),
        }

    def _concerns(self, state: State, change: MessagesMoved, user_id: int) -> bool:
        """Whether the user is in the audience."""
        ever = state.subscriptions.of_channel
        return (
            user_id in ever[change.new_channel_id]
            or user_id in ever[change.channel_id]
            or user_id in change.flags
            or user_id in self._moved(change).lost_of
        )

    def view(
        self, context: ProjectionContext, change: MessagesMoved, viewer: Viewer
    ) -> Hashable | None:
        state, user, moved = context.state, viewer.user, self._moved(change)
        if user.reaches(change.channel_id) and not user.reaches(change.new_channel_id):
            return self._left_reach(context, moved, viewer)
        channel = state.channels[change.new_channel_id]
        # A user who could read both channels at the time may have lost access to one since.
        before: Spans | None = None
        stayed: Spans = ()
        if change.changes_channel:
            source = state.channels[change.channel_id]
            before = readable_at_entry(context, user, source)
            stayed = _readable_since_before(context, change, user)
        after = channel_access.readable_spans(state, user, channel)
        since = moved.since(state, user)
        arrivals = None
        if change.arrivals and before is not None:
            arrivals = self._arrivals_view(context, moved, viewer, before, after, since)
        lost: IdRanges = ()
        moved_ids: IdRanges = ()
        if self._concerns(state, change, user.id):
            new = moved.new_of.get(user.id, ())
            lost, moved_ids = moved.lost_and_moved(
                moved.lost_of.get(user.id, ()),
                new,
                before,
                after,
                stayed,
                since,
                is_notified_later=user.id in state.subscriptions.of_channel[change.new_channel_id],
            )
        firsts = first_messages_known(context, change.first_message_ids, viewer)
        if not lost and not moved_ids and arrivals is None and not firsts:
            return None
        flags: tuple[str, ...] = ()
        if change.anchor_id in ids_of(moved_ids, moved.ids):
            anchor = Message(
                id=change.anchor_id,
                sender_id=0,
                sent_at=0,
                channel_id=change.new_channel_id,
                mentions_all=change.mentions_all,
            )
            flags = flags_by_name(state, user.id, anchor, change.flags, moved.read_by)
        capabilities = viewer.registration.capabilities
        bulk = bool(lost) and capabilities.bulk_message_deletion
        return _MoveView(
            lost=lost,
            moved_ids=moved_ids,
            names_source=not moved_ids
            or channel_access.sees_channel(state, user, state.channels[change.channel_id]),
            flags=flags,
            empty_topic_name=capabilities.empty_topic_name,
            bulk=bulk,
            arrivals=arrivals,
            firsts=firsts,
        )

    def _left_reach(
        self, context: ProjectionContext, moved: MoveIndex, viewer: Viewer
    ) -> Hashable | None:
        """Return the view of an access key that reaches only the old channel."""
        source = context.state.channels[moved.change.channel_id]
        spans = readable_at_entry(context, viewer.user, source)
        lost = ranges_of(ids_at(moved.ids, moved.ids, places(moved.ids, spans)), moved.ids)
        if not lost:
            return None
        capabilities = viewer.registration.capabilities
        return _MoveView(
            lost=lost,
            moved_ids=(),
            names_source=True,
            flags=(),
            empty_topic_name=capabilities.empty_topic_name,
            bulk=capabilities.bulk_message_deletion,
            arrivals=None,
            firsts=first_messages_known(context, moved.change.first_message_ids, viewer),
        )

    def _arrivals_view(
        self,
        context: ProjectionContext,
        moved: MoveIndex,
        viewer: Viewer,
        before: Spans,
        after: Spans,
        since: tuple[Places, ...],
    ) -> _ArrivalsView | None:
        """Return the messages that are new to the viewer and match the queue's narrow."""
        state, change, user = context.state, moved.change, viewer.user
        registration = viewer.registration
        new = moved.new_of.get(user.id)
        if new is None and not (
            registration.all_public_channels
            and not state.channels[change.new_channel_id].is_private
        ):
            return None
        ids = moved.arrivals(new, before, after) - moved.hidden(since)
        if not ids:
            return None
        subscription = state.subscription(user.id, change.new_channel_id)
        spans = () if subscription is None else subscription.spans
        received = ids_at(moved.ids, moved.ids, places(moved.ids, spans)) & ids
        view = _ArrivalsView(
            new=ranges_of(ids, moved.ids),
            received=ranges_of(received, moved.ids),
            mentioned=moved.mentioned_of.get(user.id, ()),
            flags=tuple(moved.flags_of.get(user.id, ())),
            unknown=_unknown(context, user, moved.people),
            role=permissions.role_of(state, user),
            own_id=user.id if user.id in moved.people else 0,
            form=message_format(viewer),
        )
        if registration.narrow:
            matches = BitMap(
                message.id
                for message, flags in _new_messages(moved, view)
                if in_narrow(context, message, viewer, flags)
            )
            return view._replace(new=ranges_of(matches, moved.ids)) if matches else None
        return view

    def numbered(
        self, context: ProjectionContext, change: MessagesMoved, view: Any
    ) -> Iterable[tuple[Event, EncodedEvent]]:
        # Each arrival has a fixed index: others may be deleted before the next encoding.
        index_of = {arrival.message_id: index for index, arrival in enumerate(change.arrivals)}
        next_index = len(index_of)
        for event in self.events(context, change, view):
            if isinstance(event, MessageEvent):
                index = index_of[event.message.id]
            else:
                index, next_index = next_index, next_index + 1
            yield event, encoded(event, context.numbering, context.entry.seq, index)

    def events(
        self, context: ProjectionContext, change: MessagesMoved, view: Any
    ) -> Iterable[Event]:
        if view.arrivals is not None:
            moved = self._moved(change)
            yield from _arrival_events(context, moved, view.arrivals)
        yield from self._move_events(context, change, view)
        yield from first_message_events(context.state, change.first_message_ids, view.firsts)

    def _move_events(
        self, context: ProjectionContext, change: MessagesMoved, view: _MoveView
    ) -> Iterable[Event]:
        old_topic = display_topic(change.topic, empty_topic_name=view.empty_topic_name)
        moved = self._moved(change)
        if view.lost:
            lost = ids_of(view.lost, moved.ids)
            yield from deletion_events(lost, change.channel_id, old_topic, in_bulk=view.bulk)
        if not view.moved_ids:
            return
        ids = moved.listed(view.moved_ids)
        event = UpdateMessageEvent(
            user_id=context.entry.actor_id,
            rendering_only=False,
            # The viewer may not be able to read the message that the request named.
            message_id=(
                change.anchor_id
                if change.anchor_id in ids_of(view.moved_ids, moved.ids)
                else ids[0]
            ),
            message_ids=ids,
            flags=list(view.flags),
            edit_timestamp=int(context.at),
            stream_id=change.channel_id,
            stream_name=(
                context.state.channels[change.channel_id].name if view.names_source else UNSET
            ),
            propagate_mode=change.propagation.value,
            orig_subject=old_topic,
        )
        if change.changes_channel:
            event.new_stream_id = change.new_channel_id
        if change.changes_topic:
            event.subject = display_topic(change.new_topic, empty_topic_name=view.empty_topic_name)
            event.topic_links = topic_links(context.state, change.new_topic)
        yield event


def _readable_since_before(context: ProjectionContext, change: MessagesMoved, user: User) -> Spans:
    """Return the messages of the new channel that the user could read, as a subscriber, since
    before the move."""
    subscription = context.state.subscription(user.id, change.new_channel_id)
    if (
        subscription is None
        or not subscription.is_active
        or subscription.began >= context.entry.seq
    ):
        return ()
    return EVERYTHING if change.to_public_history else subscription.spans[-1:]


def _unknown(context: ProjectionContext, user: User, people: BitMap) -> tuple[int, ...]:
    """Return the people whom the user can't see, or couldn't when the entry was written."""
    state = context.state
    if user.id not in state.memberships.limited_guests and user.id not in state.contacts.gainers:
        return ()
    return tuple(
        person_id for person_id in people if not sees_user(context, user, state.users[person_id])
    )


def _new_messages(moved: MoveIndex, view: _ArrivalsView) -> Iterable[tuple[Message, list[str]]]:
    """Return the arrivals of a view with their flags. New messages count as read."""
    new, received, mentioned = (
        ids_of(some, moved.ids) for some in (view.new, view.received, view.mentioned)
    )
    flags = dict(view.flags)
    for arrival in moved.change.arrivals:
        if arrival.message is None or arrival.message_id not in new:
            continue
        flag = flags.get(arrival.message_id, Flag(0))
        if arrival.message_id in mentioned:
            flag |= Flag.CHANNEL_WILDCARD_MENTIONED
        historical = arrival.message_id not in received
        yield arrival.message, flag_names(flag, read=True, historical=historical)


def _arrival_events(
    context: ProjectionContext, moved: MoveIndex, view: _ArrivalsView
) -> Iterable[Event]:
    state, unknown = context.state, frozenset(view.unknown)
    arrivals = {arrival.message_id: arrival for arrival in moved.change.arrivals}

    def sees_address(user_id: int) -> bool:
        user = state.users[user_id]
        return user_id == view.own_id or permissions.shows_address(state, user, view.role)

    def by(user_id: int) -> Reactor:
        return reactor(
            state,
            state.users[user_id],
            context.host,
            sees_user=user_id not in unknown,
            sees_address=sees_address(user_id),
        )

    for message, flags in _new_messages(moved, view):
        arrival = arrivals[message.id]
        arrived = message_object(
            state,
            message,
            context.host,
            view.form,
            sees_sender=message.sender_id not in unknown,
            sees_address=sees_address(message.sender_id),
            details=MessageDetails(submessages=arrival.submessages),
        )
        arrived.reactions = [
            reaction_object(reaction, by(reaction.user_id)) for reaction in arrival.reactions
        ]
        yield MessageEvent(message=arrived, flags=flags)


PROJECTIONS: Final[Projections] = (
    MessagesMovedProjection(),
    unseen(TopicMoveStarted),  # Each batch of messages has its own change.
    unseen(TopicMoveEnded),
)
