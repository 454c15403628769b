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
from tertulia.wire.api.messages.events import MessageEvent, in_narrow
from tertulia.wire.api.messages.flag_objects import flag_names
from tertulia.wire.api.messages.objects import message_object
from tertulia.wire.api.projection import Projection, ProjectionContext, Projections, Viewer, unseen
from tertulia.wire.api.reactions import Reactor, reaction_object, reactor
from tertulia.wire.api.topics import topic_links, topic_shown
from tertulia.wire.api.visibility import read_then, sees_user


class _NewView(NamedTuple):
    """Messages that are new to a viewer, and how they look."""

    new: IdRanges
    received: IdRanges
    mentioned: IdRanges
    """Those that mention the viewer with everybody else."""
    flags: tuple[tuple[int, Flag], ...]
    """The viewer's other flags, by message."""
    unknown: tuple[int, ...]
    """Those of the senders, and of the people who reacted, of whom the viewer does not know."""
    role: Role
    own_id: int
    """The viewer's, where they are one of these people; otherwise 0."""
    apply_markdown: bool
    client_gravatar: bool


class _MoveView(NamedTuple):
    lost: IdRanges
    """Messages that are out of sight."""
    shown: IdRanges
    """Messages that are seen where they are."""
    names_source: bool
    """Whether the viewer may know what the old channel is called now."""
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
        """Who wrote the arrivals, and who reacted to them."""
        self._moved_on: dict[int, BitMap] = {}
        """Those that are in yet another channel now, by that."""
        self._gone = BitMap()
        """Those that were deleted."""
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
        """Which messages the user can read of those that moved on, by channel."""
        return tuple(
            places(ids, channel_access.readable_spans(state, user, state.channels[channel_id]))
            for channel_id, ids in self._moved_on.items()
        )

    def hidden(self, since: tuple[Places, ...]) -> BitMap:
        """The messages that were deleted since, or moved on to where one cannot read them."""
        found = self._hidden.get(since)
        if found is None:
            found = self._gone
            for ids, readable in zip(self._moved_on.values(), since, strict=True):
                found = found | (ids - ids_at(ids, ids, readable))
            self._hidden[since] = found
        return found

    def listed(self, shown: IdRanges) -> list[int]:
        """The messages as a list, which is made once for all views: of a whole topic, that takes
        longer than encoding it. It isn't the caller's to change."""
        found = self._listed.get(shown)
        if found is None:
            # Several times as fast as `list`.
            found = self._listed[shown] = ids_of(shown, self.ids).to_array().tolist()
        return found

    def news(self, new: IdRanges | None, before: Spans, after: Spans) -> BitMap:
        """The arrivals of one to whom those messages were new then (None: all that they cannot
        read in the old channel now), and who can read these in the new one, now."""
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
        is_told_later: bool,
    ) -> tuple[IdRanges, IdRanges]:
        """What is out of sight, and what is seen where it is, of one who lost the first then, and
        to whom the second were new; who can read those in the old channel, and could then (None: it
        is the same), and these in the new one, now; and who has been able to read the messages
        `stayed` in the new one since before the move. To whom they are new, nothing is said of
        where they were; and of those that are out of sight `since` (as in `hidden`), only what
        became of them: by the entries that did it, if one `is_told_later` of what happens in the
        new channel, or else here."""
        ids = self.ids
        places_before = None if before is None else places(ids, before)
        told = is_told_later or before is None
        key = (lost, new, places_before, places(ids, after), places(ids, stayed), since, told)
        found = self._parts.get(key)
        if found is None:
            gone = ids_of(lost, self.ids)
            shown = ids_at(ids, self.ids, key[3]) - gone
            if places_before is not None:
                known = ids_at(ids, self.ids, places_before)
                gone = (gone | known) - shown
                # What was new to no such reader they could read in the old channel then.
                known = known | ids_at(ids, self.ids, key[4])
                shown = (shown & known) - ids_of(new, self.ids)
            hidden = self.hidden(since)
            if not told:
                gone = gone | (shown & hidden)
            shown = shown - hidden
            found = self._parts[key] = ranges_of(gone, self.ids), ranges_of(shown, self.ids)
        return found


class MessagesMovedProjection(Projection[MessagesMoved]):
    """A move, to users who may read the messages both in the old channel and in the new one. For
    users who can read only the old one the messages are deleted; for users who can read only the
    new one the newest messages come in."""

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
        # A user who could read both channels then may not read one of them now.
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
                is_told_later=user.id in state.subscriptions.of_channel[change.new_channel_id],
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
        """What of it is new to the viewer, where their queue wants it."""
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
            apply_markdown=registration.apply_markdown,
            client_gravatar=registration.client_gravatar,
        )
        if registration.narrow:
            wanted = BitMap(
                message.id
                for message, flags in _new_messages(moved, view)
                if in_narrow(context, message, viewer, flags)
            )
            return view._replace(new=ranges_of(wanted, moved.ids)) if wanted else None
        return view

    def encoded(
        self, context: ProjectionContext, change: MessagesMoved, view: Any
    ) -> Sequence[EncodedEvent]:
        # Each arrival has a place of its own: others may be gone by the next time.
        place_of = {one.message_id: place for place, one in enumerate(change.arrivals)}
        place = len(place_of)
        found = []
        for event in self.events(context, change, view):
            if isinstance(event, MessageEvent):
                at = place_of[event.message.id]
            else:
                at, place = place, place + 1
            found.append(encoded(event, context.numbering, context.entry.seq, at))
        return found

    def events(
        self, context: ProjectionContext, change: MessagesMoved, view: Any
    ) -> Iterable[Event]:
        if view.news is not None:
            moved = self._moved(change)
            yield from _news_events(context, moved, view.news, view.empty_topic_name)
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
            # The viewer may be unable to read the message that was asked to be moved.
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
    """The messages of the new channel that the user has been able to read since before the move, as
    a subscriber."""
    subscription = context.state.subscription(user.id, change.new_channel_id)
    if (
        subscription is None
        or not subscription.is_active
        or subscription.began >= context.entry.seq
    ):
        return ()
    return EVERYTHING if change.to_public_history else subscription.spans[-1:]


def _unknown(context: ProjectionContext, user: User, people: BitMap) -> tuple[int, ...]:
    """Those of the people of whom the user may not know, or did not when the entry was written."""
    state = context.state
    if user.id not in state.memberships.limited_guests and user.id not in state.contacts.gainers:
        return ()
    return tuple(one for one in people if not sees_user(context, user, state.users[one]))


def _new_messages(moved: _Move, view: _NewView) -> Iterable[tuple[Message, list[str]]]:
    """The arrivals of a view, with their flags as they are when they arrive: what is new to
    somebody counts as read."""
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


def _news_events(
    context: ProjectionContext, moved: _Move, view: _NewView, empty_topic_name: bool
) -> Iterable[Event]:
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
        shown = message_object(
            state,
            message,
            context.host,
            sees_sender=message.sender_id not in unknown,
            sees_address=sees_address(message.sender_id),
            apply_markdown=view.apply_markdown,
            client_gravatar=view.client_gravatar,
            empty_topic_name=empty_topic_name,
            details=MessageDetails(submessages=arrival.submessages),
        )
        shown.reactions = [reaction_object(one, by(one.user_id)) for one in arrival.reactions]
        yield MessageEvent(message=shown, flags=flags)


PROJECTIONS: Final[Projections] = (
    MessagesMovedProjection(),
    unseen(TopicMoveStarted),  # What is moved is told as it is moved.
    unseen(TopicMoveEnded),
)
