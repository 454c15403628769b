"""How moving messages affects their readers."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

import msgspec
from pyroaring import BitMap

from tertulia.domain.channel_access import ChannelReaders
from tertulia.domain.channels import topics
from tertulia.domain.channels.topics import TopicExcerpt, TopicMessage
from tertulia.domain.messages.editing import LoadedMessage
from tertulia.model.changes import (
    MessagesMoved,
)
from tertulia.model.channels import Channel, topic_key
from tertulia.model.edits import Arrival, Groups, TopicMove
from tertulia.model.messages import Flag
from tertulia.model.ranges import (
    IdRanges,
    Places,
    Spans,
    ids_at,
    ids_of,
    places,
    ranges_of,
)
from tertulia.state.decision import CommandContext


def move_change(
    context: CommandContext,
    move: TopicMove,
    loaded: LoadedMessage | None,
    excerpt: TopicExcerpt,
    moved: Sequence[TopicMessage],
) -> MessagesMoved:
    """Return the change that moves the messages in `moved`. `loaded` is the message that was named
    in the request, if it's one of them."""
    state = context.state
    ids = tuple(line.id for line in moved)
    source, target = state.channels[move.channel_id], state.channels[move.new_channel_id]
    topic = move.new_topic
    gone = frozenset(ids)
    before = state.topics[(source.id, topic_key(move.topic))]
    rest = topics.topic_without(before, excerpt, gone)
    there = (target.id, topic_key(topic))
    same = there == (before.channel_id, before.key)
    after = topics.topic_with(rest if same else state.topics.get(there), target.id, topic, ids)
    kept = [after] if same or rest is None else [rest, after]
    firsts: dict[int, int | None] = {}
    marked_read: Groups = ()
    recorded: Groups = ()
    lost: Groups = ()
    mentioned: Groups = ()
    new_to: Groups = ()
    arrivals: tuple[Arrival, ...] = ()
    if source.id != target.id:
        first_left = topics.first_without(source, excerpt, gone)
        if first_left != source.first_message_id:
            firsts[source.id] = first_left
        if target.first_message_id is None or ids[0] < target.first_message_id:
            firsts[target.id] = ids[0]
        concerned = _Moved(ids)
        marked_read, recorded = _kept_unread(context, source, target, concerned, excerpt)
        lost = _losing(context, source, target, concerned, excerpt.holders)
        to_all = _Moved(tuple(line.id for line in moved if line.mentions_all))
        mentioned = _mentioned(context, source, target, concerned, to_all)
        new_to = _gaining(context, source, target, concerned)
        if new_to or _opens(source, target):
            arrivals = _arrivals(excerpt, concerned, new_to, target, topic)
    return MessagesMoved(
        message_ids=ids,
        anchor_id=move.anchor_id,
        channel_id=source.id,
        topic=move.topic,
        new_channel_id=target.id,
        new_topic=topic,
        propagation=move.propagation,
        topics=tuple(kept),
        emptied=((before.channel_id, before.key),) if rest is None and not same else (),
        first_message_ids=firsts,
        lost=lost,
        marked_read=marked_read,
        recorded=recorded,
        mentioned=mentioned,
        flags={} if loaded is None else _flags_after(loaded, mentioned, ids),
        read_by=() if loaded is None else tuple(sorted(loaded.read_by)),
        mentions_all=loaded is not None and loaded.message.mentions_all and source.id == target.id,
        new_to=new_to,
        arrivals=arrivals,
        to_public_history=source.id != target.id and target.history_public,
    )


def _flags_after(loaded: LoadedMessage, mentioned: Groups, ids: Sequence[int]) -> dict[int, Flag]:
    flags, moved = dict(loaded.flags), BitMap(ids)
    for some, users in mentioned:
        if loaded.message.id in ids_of(some, moved):
            for user_id in users:
                flags[user_id] = flags.get(user_id, Flag(0)) | Flag.CHANNEL_WILDCARD_MENTIONED
    return dict(sorted(flags.items()))


class _Moved:
    """The moved messages, and which of them each user can read or has unread."""

    def __init__(self, ids: tuple[int, ...]) -> None:
        self.ids = ids
        self.whole = BitMap(ids)
        self._places: dict[Spans, Places] = {}

    def places(self, spans: Spans) -> Places:
        """Return the positions, among the moved messages, of those in the spans. Users with equal
        positions are handled together."""
        place = self._places.get(spans)
        if place is None:
            place = self._places[spans] = places(self.ids, spans)
        return place

    def at(self, some: Places) -> BitMap:
        """Return the message IDs at these positions."""
        return ids_at(self.ids, self.whole, some)

    def grouped(self, parts: Iterable[tuple[BitMap, Iterable[int]]]) -> Groups:
        """Return the non-empty parts, each with its users."""
        result: dict[IdRanges, list[int]] = defaultdict(list)
        for part, user_ids in parts:
            if part:
                result[ranges_of(part, self.whole)].extend(user_ids)
        groups = ((some, tuple(sorted(users))) for some, users in result.items())
        return tuple(sorted(groups, key=lambda group: group[1][0]))


def _kept_unread(
    context: CommandContext, source: Channel, target: Channel, moved: _Moved, excerpt: TopicExcerpt
) -> tuple[Groups, Groups]:
    """Return two groupings for subscribers of the new channel: messages to mark as read, so that
    the move makes nothing unread; and messages to record for them, so that they stay unread."""
    state = context.state
    alike: dict[tuple[Places | None, Places, int, Places, Places], list[int]] = defaultdict(list)
    old = state.subscriptions.of_channel[source.id]
    readers = ChannelReaders(state, source)
    record_of = {u: number for number, (_, users) in enumerate(excerpt.records) for u in users}
    for user_id, there in state.subscriptions.of_channel[target.id].items():
        if there.is_active:
            subscription = old.get(user_id)
            was_new = None
            if subscription is not None and subscription.is_active:
                was_new = moved.places(((state.unread_since(subscription), None),))
            is_new = moved.places(((state.unread_since(there), None),))
            received = moved.places(there.spans)
            number = record_of.get(user_id, -1)
            known: Places = ()
            if number >= 0:
                known = moved.places(readers.spans(state.users[user_id]))
            alike[(was_new, is_new, number, received, known)].append(user_id)
    read: list[tuple[BitMap, Iterable[int]]] = []
    kept: list[tuple[BitMap, Iterable[int]]] = []
    for (was_new, is_new, number, received, known), users in alike.items():
        recorded = excerpt.records[number][0] & moved.whole if number >= 0 else BitMap()
        before = BitMap() if was_new is None else moved.at(was_new) | recorded & moved.at(known)
        then = moved.at(is_new)
        read.append(((then | recorded) - before, users))
        bitmap = before - then
        kept.append((bitmap if target.history_public else bitmap & moved.at(received), users))
    for recorded, holders in excerpt.records:
        # Messages that are unread because of a record would be unread again after subscribing.
        away = [user_id for user_id in holders if not state.is_subscribed(user_id, target.id)]
        if away:
            read.append((recorded & moved.whole, away))
    return moved.grouped(read), moved.grouped(kept)


def _losing(
    context: CommandContext, source: Channel, target: Channel, moved: _Moved, holders: Iterable[int]
) -> Groups:
    """Return the users who could read messages in the old channel but not in the new one, with
    these messages."""
    state = context.state
    old, new = ChannelReaders(state, source), ChannelReaders(state, target)
    alike: dict[tuple[Places, Places], list[int]] = defaultdict(list)
    for user_id in {*state.subscriptions.of_channel[source.id], *holders}:
        user = state.users[user_id]
        before = moved.places(old.spans(user))
        if before:
            after = moved.places(new.spans(user))
            if after != before:
                alike[(before, after)].append(user_id)
    return moved.grouped(
        (moved.at(before) - moved.at(after), users) for (before, after), users in alike.items()
    )


def _gaining(context: CommandContext, source: Channel, target: Channel, moved: _Moved) -> Groups:
    """Return the subscribers of the new channel who couldn't read messages in the old one, with
    these messages."""
    state = context.state
    old, new = ChannelReaders(state, source), ChannelReaders(state, target)
    alike: dict[tuple[Places, Places], list[int]] = defaultdict(list)
    subscribers: Iterable[int] = state.subscribers(target.id)
    if _open_to_members(source):
        subscribers = state.users.maybe_guests & BitMap(subscribers)
    for user_id in subscribers:
        user = state.users[user_id]
        before = moved.places(old.spans(user))
        after = moved.places(new.spans(user))
        if after != before:
            alike[(before, after)].append(user_id)
    return moved.grouped(
        (moved.at(after) - moved.at(before), users) for (before, after), users in alike.items()
    )


def _open_to_members(channel: Channel) -> bool:
    """Whether everyone except guests can read the channel's whole history."""
    return not channel.is_private and channel.history_public


def _opens(source: Channel, target: Channel) -> bool:
    """Whether people who aren't subscribed may gain access. If so, event queues for all public
    channels need the messages."""
    return not target.is_private and not _open_to_members(source)


def _arrivals(
    excerpt: TopicExcerpt, moved: _Moved, new_to: Groups, target: Channel, topic: str
) -> tuple[Arrival, ...]:
    """Return the newest messages as they are in the new channel, with the flags of users who
    couldn't read them before."""
    replace = msgspec.structs.replace
    newcomers = [(ids_of(some, moved.whole), frozenset(users)) for some, users in new_to]
    arrivals = []
    for arrival in excerpt.newest:
        if arrival.message is None or arrival.message_id not in moved.whole:
            continue
        flags = {
            user_id: flag
            for user_id, flag in arrival.flags.items()
            if any(arrival.message_id in ids and user_id in users for ids, users in newcomers)
        }
        message = replace(arrival.message, channel_id=target.id, topic=topic, mentions_all=False)
        arrivals.append(replace(arrival, message=message, flags=dict(sorted(flags.items()))))
    return tuple(arrivals)


def _mentioned(
    context: CommandContext, source: Channel, target: Channel, moved: _Moved, to_all: _Moved
) -> Groups:
    """Return the users whom a wildcard in the messages mentions: they received the message in the
    old channel and can read it in the new one."""
    state = context.state
    alike: dict[tuple[Places, Places], list[int]] = defaultdict(list)
    if to_all.ids:
        readers = ChannelReaders(state, target)
        for user_id, subscription in state.subscriptions.of_channel[source.id].items():
            received = to_all.places(subscription.spans)
            if received:
                after = to_all.places(readers.spans(state.users[user_id]))
                alike[(received, after)].append(user_id)
    return moved.grouped(
        (to_all.at(received) & to_all.at(after), users)
        for (received, after), users in alike.items()
    )
