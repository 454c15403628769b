"""Events of messages that were moved."""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Sequence
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
from tertulia.wire.api.events import EncodedEvent, Event, encoded
from tertulia.wire.api.messages.deletions import messages_gone
from tertulia.wire.api.messages.edits import UpdateMessageEvent, flags_by_name
from tertulia.wire.api.messages.events import MessageEvent, in_narrow, message_format
from tertulia.wire.api.messages.flag_objects import flag_names
from tertulia.wire.api.messages.objects import MessageFormat, message_object
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer, unseen
from tertulia.wire.api.reactions import Reactor, reaction_object, reactor
from tertulia.wire.api.topics import topic_links, topic_shown
from tertulia.wire.api.visibility import read_then, sees_user


class _NewView(NamedTuple):
    """Messages that a viewer can read only since the move."""

    new: IdRanges
    received: IdRanges
    mentioned: IdRanges
    """Messages that mention the viewer by a wildcard."""
    flags: tuple[tuple[int, Flag], ...]
    """The viewer's other flags, by message."""
    unknown: tuple[int, ...]
    """Senders and people who reacted whom the viewer can't see."""
    role: Role
    own_id: int
    """The viewer's ID if they're one of these people; otherwise 0."""
    form: MessageFormat


class _MoveView(NamedTuple):
    lost: IdRanges
    """Messages that the viewer can no longer read."""
    shown: IdRanges
    """Messages that the viewer can read in the new place."""
    names_source: bool
    """Whether the viewer may know the old channel's current name."""
    flags: tuple[str, ...]
    empty_topic_name: bool
    bulk: bool
    news: _NewView | None


class _Move:
    """A move, indexed by user."""

    def __init__(self, change: MessagesMoved) -> None:
        self.change = change
        self.ids = change.ids
        self.lost_of = {user_id: some for some, users in change.lost for user_id in users}
        self.read_by = frozenset(change.read_by)
        self._parts: dict[
            tuple[IdRanges, IdRanges, Places | None, Places, Places, tuple[Places, ...], bool],
            tuple[IdRanges, IdRanges],
        ] = {}
        self.new_of: dict[int, IdRanges] = {}
        self.mentioned_of: dict[int, IdRanges] = {}
        self.flags_of: dict[int, list[tuple[int, Flag]]] = defaultdict(list)
        self.people = BitMap()
        """The senders of the arrivals, and the people who reacted to them."""
        self._moved_on: dict[int, BitMap] = {}
        """Messages that have moved to another channel since, by that channel."""
        self._gone = BitMap()
        """Messages that were deleted since."""
        for channel_id, some in change.moved_on:
            if channel_id is None:
                self._gone = BitMap.deserialize(some)
            else:
                self._moved_on[channel_id] = BitMap.deserialize(some)
        self._hidden: dict[tuple[Places, ...], BitMap] = {}
        self._arrived = BitMap()
        self._news: dict[tuple[IdRanges | None, Places, Places], BitMap] = {}
        self._listed: dict[IdRanges, list[int]] = {}
        if change.arrivals:
            self._look_at_arrivals(change)

    def _look_at_arrivals(self, change: MessagesMoved) -> None:
        self.new_of = {user_id: some for some, users in change.new_to for user_id in users}
        self.mentioned_of = {user_id: some for some, users in change.mentioned for user_id in users}
        for one in change.arrivals:
            if one.message is None:
                continue
            self._arrived.add(one.message_id)
            self.people.add(one.message.sender_id)
            self.people.update(reaction.user_id for reaction in one.reactions)
            for user_id, flag in one.flags.items():
                self.flags_of[user_id].append((one.message_id, flag))

    def since(self, state: State, user: User) -> tuple[Places, ...]:
        """Return which of the messages that have moved on the user can read, by channel."""
        return tuple(
            places(ids, channel_access.readable_spans(state, user, state.channels[channel_id]))
            for channel_id, ids in self._moved_on.items()
        )

    def hidden(self, since: tuple[Places, ...]) -> BitMap:
        """Return the messages that were deleted since, or moved on to a place where the user can't
        read them."""
        found = self._hidden.get(since)
        if found is None:
            found = self._gone
            for ids, readable in zip(self._moved_on.values(), since, strict=True):
                found = found | (ids - ids_at(ids, ids, readable))
            self._hidden[since] = found
        return found

    def listed(self, shown: IdRanges) -> list[int]:
        """Return the messages as a list that callers mustn't change. It's cached, since making it
        for a whole topic takes longer than encoding it."""
        if (ids := self._listed.get(shown)) is None:
            # Several times as fast as `list`.
            ids = self._listed[shown] = ids_of(shown, self.ids).to_array().tolist()
        return ids

    def news(self, new: IdRanges | None, before: Spans, after: Spans) -> BitMap:
        """Return the arrivals for a user. `new` are the messages that were new to them at the time
        (None: all that they can't read in the old channel now). `before` and `after` are what they
        can read in the old and the new channel now."""
        ids = self.ids
        key = (new, () if new is not None else places(ids, before), places(ids, after))
        found = self._news.get(key)
        if found is None:
            found = ids_at(ids, self.ids, key[2]) & self._arrived
            if new is not None:
                found &= ids_of(new, self.ids)
            else:
                found -= ids_at(ids, self.ids, key[1])
            self._news[key] = found
        return found

    def parts(
        self,
        lost: IdRanges,
        new: IdRanges,
        before: Spans | None,
        after: Spans,
        stayed: Spans,
        since: tuple[Places, ...],
        *,
        is_notified_later: bool,
    ) -> tuple[IdRanges, IdRanges]:
        """Return the messages that a user can no longer read, and those that they see moved.

        - `lost` and `new` are the messages that the user lost and gained access to at the time.
        - `before` is what they can read in the old channel, and could at the time (None: the
          channel is the same); `after` is what they can read in the new channel now.
        - `stayed` is what they could read in the new channel since before the move.
        - `since` is what they can read of the messages that moved on, as in `hidden`.

        New messages aren't shown as moved. Messages that became hidden since are reported as lost
        here, unless `is_notified_later` by the entries about the new channel.
        """
        ids = self.ids
        places_before = None if before is None else places(ids, before)
        told = is_notified_later or before is None
        key = (lost, new, places_before, places(ids, after), places(ids, stayed), since, told)
        found = self._parts.get(key)
        if found is None:
            gone = ids_of(lost, self.ids)
            shown = ids_at(ids, self.ids, key[3]) - gone
            if places_before is not None:
                known = ids_at(ids, self.ids, places_before)
                gone = (gone | known) - shown
                # They could read these in the old channel at the time, as they weren't new.
                known = known | ids_at(ids, self.ids, key[4])
                shown = (shown & known) - ids_of(new, self.ids)
            hidden = self.hidden(since)
            if not told:
                gone = gone | (shown & hidden)
            shown = shown - hidden
            found = self._parts[key] = ranges_of(gone, self.ids), ranges_of(shown, self.ids)
        return found


class MessagesMovedProjection(Projection[MessagesMoved]):
    """For users who can read both channels, messages are moved. For users who can read only the old
    channel, they're deleted; for users who can read only the new one, the newest arrive as new
    messages."""

    of = MessagesMoved
    for_all_public = True

    def __init__(self) -> None:
        self._last: _Move | None = None

    def _moved(self, change: MessagesMoved) -> _Move:
        if self._last is None or self._last.change is not change:
            self._last = _Move(change)
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
        channel = state.channels[change.new_channel_id]
        # A user who could read both channels at the time may have lost access to one since.
        before: Spans | None = None
        stayed: Spans = ()
        if change.changes_channel:
            source = state.channels[change.channel_id]
            before = read_then(context, user, source)
            stayed = _readable_since_before(context, change, user)
        after = channel_access.readable_spans(state, user, channel)
        since = moved.since(state, user)
        news = None
        if change.arrivals and before is not None:
            news = self._news(context, moved, viewer, before, after, since)
        lost: IdRanges = ()
        shown: IdRanges = ()
        if self._concerns(state, change, user.id):
            new = moved.new_of.get(user.id, ())
            lost, shown = moved.parts(
                moved.lost_of.get(user.id, ()),
                new,
                before,
                after,
                stayed,
                since,
                is_notified_later=user.id in state.subscriptions.of_channel[change.new_channel_id],
            )
        if not lost and not shown and news is None:
            return None
        flags: tuple[str, ...] = ()
        if change.anchor_id in ids_of(shown, moved.ids):
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
            shown=shown,
            names_source=not shown
            or channel_access.sees_channel(state, user, state.channels[change.channel_id]),
            flags=flags,
            empty_topic_name=capabilities.empty_topic_name,
            bulk=bulk,
            news=news,
        )

    def _news(
        self,
        context: ProjectionContext,
        moved: _Move,
        viewer: Viewer,
        before: Spans,
        after: Spans,
        since: tuple[Places, ...],
    ) -> _NewView | None:
        """Return the messages that are new to the viewer and match the queue's narrow."""
        state, change, user = context.state, moved.change, viewer.user
        registration = viewer.registration
        new = moved.new_of.get(user.id)
        if new is None and not (
            registration.all_public_channels
            and not state.channels[change.new_channel_id].is_private
        ):
            return None
        ids = moved.news(new, before, after) - moved.hidden(since)
        if not ids:
            return None
        subscription = state.subscription(user.id, change.new_channel_id)
        spans = () if subscription is None else subscription.spans
        received = ids_at(moved.ids, moved.ids, places(moved.ids, spans)) & ids
        view = _NewView(
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

    def encoded(
        self, context: ProjectionContext, change: MessagesMoved, view: Any
    ) -> Sequence[EncodedEvent]:
        # Each arrival has a fixed index: others may be deleted before the next encoding.
        index_of = {one.message_id: index for index, one in enumerate(change.arrivals)}
        next_index = len(index_of)
        events = []
        for event in self.events(context, change, view):
            if isinstance(event, MessageEvent):
                index = index_of[event.message.id]
            else:
                index, next_index = next_index, next_index + 1
            events.append(encoded(event, context.numbering, context.entry.seq, index))
        return events

    def events(
        self, context: ProjectionContext, change: MessagesMoved, view: Any
    ) -> Iterable[Event]:
        if view.news is not None:
            moved = self._moved(change)
            yield from _news_events(context, moved, view.news)
        yield from self._move_events(context, change, view)

    def _move_events(
        self, context: ProjectionContext, change: MessagesMoved, view: _MoveView
    ) -> Iterable[Event]:
        old_topic = topic_shown(change.topic, empty_topic_name=view.empty_topic_name)
        moved = self._moved(change)
        if view.lost:
            lost = ids_of(view.lost, moved.ids)
            yield from messages_gone(lost, change.channel_id, old_topic, in_bulk=view.bulk)
        if not view.shown:
            return
        shown = moved.listed(view.shown)
        event = UpdateMessageEvent(
            user_id=context.entry.actor_id,
            rendering_only=False,
            # The viewer may not be able to read the message that the request named.
            message_id=(
                change.anchor_id if change.anchor_id in ids_of(view.shown, moved.ids) else shown[0]
            ),
            message_ids=shown,
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
            event.subject = topic_shown(change.new_topic, empty_topic_name=view.empty_topic_name)
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
    return tuple(one for one in people if not sees_user(context, user, state.users[one]))


def _new_messages(moved: _Move, view: _NewView) -> Iterable[tuple[Message, list[str]]]:
    """Return the arrivals of a view with their flags. New messages count as read."""
    new, received, mentioned = (
        ids_of(some, moved.ids) for some in (view.new, view.received, view.mentioned)
    )
    flags = dict(view.flags)
    for one in moved.change.arrivals:
        if one.message is None or one.message_id not in new:
            continue
        own = flags.get(one.message_id, Flag(0))
        if one.message_id in mentioned:
            own |= Flag.CHANNEL_WILDCARD_MENTIONED
        historical = one.message_id not in received
        yield one.message, flag_names(own, read=True, historical=historical)


def _news_events(context: ProjectionContext, moved: _Move, view: _NewView) -> Iterable[Event]:
    state, unknown = context.state, frozenset(view.unknown)
    arrivals = {one.message_id: one for one in moved.change.arrivals}

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
        arrived.reactions = [reaction_object(one, by(one.user_id)) for one in arrival.reactions]
        yield MessageEvent(message=arrived, flags=flags)


PROJECTIONS: Final[Projections] = (
    MessagesMovedProjection(),
    unseen(TopicMoveStarted),  # Each batch of messages has its own change.
    unseen(TopicMoveEnded),
)
