"""Unread messages, computed from bitmaps of message IDs.

None of this is stored. It's loaded from the messages and the readers' bitmaps on first use
(`tertulia.log.snapshots`), and the fold keeps it current. Channels and readers that aren't loaded
cost nothing. Memory is bounded in bytes: the least recently used data is evicted.
"""

from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec

from pyroaring import BitMap

from tertulia.model.channels import Subscription, topic_key
from tertulia.model.messages import ANY_MENTION, Flag, Message
from tertulia.state.tables import next_version
from tertulia.state.unread_bitmaps import (
    ChannelMessages,
    ChannelUnread,
    DirectMessages,
    MissingBitmaps,
    ReadState,
    Unread,
    bytes_of,
)

if TYPE_CHECKING:
    from tertulia.state.state import State

ROOM: Final = 48 * 2**20
"""The memory for all loaded data in bytes. Data that is in use is never evicted."""
RECOUNTED: Final = 256
"""The number of uses after which all sizes are counted again, because bitmaps also grow between
uses."""

P = ParamSpec("P")

Ids = Sequence[int] | BitMap


def _made_fresh(
    state: "State", reader: ReadState, channel: ChannelMessages, subscription: Subscription
) -> ChannelUnread:
    every, read = channel.all, reader.read
    since = state.unread_since(subscription)
    fresh = every - read if read.intersect(every) else every
    if fresh and fresh.min() <= since:
        recorded = reader.with_any(Flag.RECORD)
        fresh = fresh & (BitMap(range(since + 1, fresh.max() + 1)) | recorded)
    # A wildcard mentions the users who received it, which a record doesn't imply.
    wildcards = channel.wildcards & fresh
    mentioning = BitMap(filter(subscription.covers, wildcards)) if wildcards else _NOTHING
    size = _FRESH_BYTES + (bytes_of(mentioning) if mentioning else 0)
    if fresh is not every:
        fresh.shrink_to_fit()  # A difference keeps the capacity of its minuend.
        size += bytes_of(fresh)
    return ChannelUnread(channel.version, since, fresh, mentioning, size)


_NOTHING: Final = BitMap()
_FRESH_BYTES: Final = 200
"""Bytes of a `ChannelUnread` and its dictionary entry."""


def _folded(
    change: Callable[Concatenate["UnreadIndex", P], None],
) -> Callable[Concatenate["UnreadIndex", P], None]:
    """Decorate a change that the fold makes. It's kept until it's on disk and no load that began
    before it is in progress, because it may have to be applied to the loaded data."""

    @wraps(change)
    def made(self: "UnreadIndex", /, *arguments: P.args, **keywords: P.kwargs) -> None:
        self._version = next_version()
        self._recent.append((self.seq, lambda index: change(index, *arguments, **keywords)))
        change(self, *arguments, **keywords)

    return made


class UnreadIndex:
    def __init__(self) -> None:
        self.channels: OrderedDict[int, ChannelMessages] = OrderedDict()
        """The least recently used first, here and below."""
        self.directs: OrderedDict[int, DirectMessages] = OrderedDict()
        self.readers: OrderedDict[int, ReadState] = OrderedDict()
        self.seq = 0
        """The entry that is being folded, or was folded last."""
        self.questions = 0
        """The number of uses so far; see `note_question`."""
        self.used = 0
        """Bytes in memory, as last counted."""
        self._version = next_version()
        """Changes when messages, anyone's read state, or the loaded data change."""
        self._recent: deque[tuple[int, Callable[[UnreadIndex], None]]] = deque()
        """The changes that `_folded` keeps, by entry."""
        self._durable = 0
        self._loading: list[int] = []
        """The entry at which each load in progress began."""
        self._held: list[int] = []
        """The number of uses when each `held` began."""

    def _made_of(self, state: "State") -> tuple[int, int, int]:
        return self._version, state.subscriptions.version, state.channels.version

    def missing(self, state: "State", user_id: int) -> MissingBitmaps:
        """Return the data that must be loaded before calling `of`."""
        reader = self.readers.get(user_id)
        if reader is not None and reader.unread_of == self._made_of(state):
            return MissingBitmaps(reader=False, channel_ids=[], direct_ids=[])
        channel_ids = self._channel_ids(state, user_id)
        return MissingBitmaps(
            reader=reader is None,
            channel_ids=[c for c in channel_ids if c not in self.channels],
            direct_ids=[d for d in state.directs.of_user[user_id] if d not in self.directs],
        )

    def _channel_ids(self, state: "State", user_id: int) -> Sequence[int]:
        """Return the channels where the user can have unread messages."""
        reader = self.readers.get(user_id)
        made_of = state.subscriptions.version, state.channels.version
        if reader is not None and reader.channels_of == made_of:
            return reader.channel_ids
        channels = state.channels.rows
        channel_ids = [
            channel_id
            for channel_id in state.channel_ids_of(user_id)
            if not channels[channel_id].is_archived
        ]
        if reader is not None:
            reader.channel_ids, reader.channels_of = channel_ids, made_of
        return channel_ids

    @_folded
    def sent(self, message: Message) -> None:
        """Add a sent message."""
        if message.channel_id is not None:
            channel = self.channels.get(message.channel_id)
            if channel is not None:
                channel.add(BitMap([message.id]), topic_key(message.topic))
                if message.mentions_all:
                    channel.wildcards.add(message.id)
        elif direct := self.directs.get(message.direct_id or 0):
            direct.all.add(message.id)

    @_folded
    def mentions_all(self, message: Message) -> None:
        """Update whether a message mentions everyone."""
        channel = self.channels.get(message.channel_id or 0)
        if channel is not None:
            channel.changed()
            (channel.wildcards.add if message.mentions_all else channel.wildcards.discard)(
                message.id
            )

    @_folded
    def moved(self, ids: BitMap, old: tuple[int, str], new: tuple[int, str]) -> None:
        """Move messages from one topic (channel and key) to another."""
        source, target = self.channels.get(old[0]), self.channels.get(new[0])
        wildcards = BitMap()
        if source is not None:
            # In another channel, mentioned users have a flag instead.
            wildcards = source.wildcards & ids if source is target else wildcards
            source.take_out(ids, old[1])
        if target is not None:
            target.add(ids, new[1])
            target.wildcards |= wildcards

    @_folded
    def deleted(
        self,
        message_ids: tuple[int, ...],
        channel_id: int | None,
        key: str,
        direct_id: int | None,
    ) -> None:
        """Delete messages of one conversation; `key` is the topic's."""
        ids = BitMap(message_ids)
        channel = self.channels.get(channel_id or 0)
        if channel is not None:
            channel.take_out(ids, key)
        if direct := self.directs.get(direct_id or 0):
            direct.all -= ids
        for reader in self.readers.values():
            for flagged in reader.flagged.values():
                flagged.difference_update(ids)

    @_folded
    def forget(self, user_ids: Sequence[int], ids: BitMap) -> None:
        """Remove users' sparse flags on these messages."""
        for reader in self._loaded(user_ids):
            reader.touched |= ids
            for flagged in reader.flagged.values():
                flagged.difference_update(ids)

    @_folded
    def began(self, direct_id: int) -> None:
        """Add a new direct conversation, whose messages are all known."""
        if direct_id not in self.directs:
            self._add(self.directs, direct_id, DirectMessages(BitMap()))

    @_folded
    def mark(self, user_ids: Sequence[int], message_ids: Ids, *, read: bool) -> None:
        """Mark messages as read or unread for users."""
        for reader in self._loaded(user_ids):
            reader.touched.update(message_ids)
            if read:
                reader.read.update(message_ids)
            else:
                reader.read.difference_update(BitMap(message_ids))

    @_folded
    def flag(self, user_ids: Sequence[int], message_ids: Ids, flag: Flag, *, added: bool) -> None:
        """Set or clear a sparse flag on messages for users."""
        for reader in self._loaded(user_ids):
            reader.touched.update(message_ids)
            for item in flag:
                ids = reader.flagged.setdefault(item, BitMap())
                if added:
                    ids.update(message_ids)
                else:
                    ids.difference_update(BitMap(message_ids))

    def _loaded(self, user_ids: Sequence[int]) -> Iterator[ReadState]:
        return (self.readers[user_id] for user_id in user_ids if user_id in self.readers)

    def of(self, state: "State", user_id: int) -> Unread:
        """Return the user's unread messages, by conversation. Everything in `missing` must be
        loaded."""
        reader, made_of = self.readers[user_id], self._made_of(state)
        if reader.unread is not None and reader.unread_of == made_of:
            return reader.unread
        unread = Unread(BitMap())
        wildcards = BitMap()
        for channel_id, fresh in self._fresh(state, reader, user_id):
            unread.channels[channel_id] = fresh.ids
            if fresh.mentioning:
                wildcards |= fresh.mentioning
        for direct_id in state.directs.of_user[user_id]:
            if unread_directs := self.directs[direct_id].all - reader.read:
                unread.directs[direct_id] = unread_directs
        unread.all = BitMap.union(BitMap(), *unread.channels.values(), *unread.directs.values())
        unread.mentions = (wildcards | reader.with_any(ANY_MENTION)) & unread.all
        reader.unread, reader.unread_of = unread, made_of
        self._count(reader)
        return unread

    def by_topic(self, channel_id: int, ids: BitMap) -> list[tuple[str, BitMap]]:
        """Return the channel's messages among `ids`, by topic key."""
        result = []
        left = len(ids)
        # Unread messages are usually new.
        for key, every in reversed(self.channels[channel_id].topics.items()):
            if hit := every & ids:
                result.append((key, hit))
                left -= len(hit)
                if not left:
                    break
        return result

    def unread_ids(self, state: "State", user_id: int) -> BitMap:
        """Return the user's unread messages. Everything in `missing` must be loaded.

        Messages of present subscriptions and of direct conversations are unread until they are
        marked as read; others only if the user marked them as unread.
        """
        reader = self.readers[user_id]
        direct_ids = state.directs.of_user[user_id]
        directs = BitMap.union(BitMap(), *(self.directs[direct_id].all for direct_id in direct_ids))
        fresh = self._fresh(state, reader, user_id)
        self._count(reader)
        return BitMap.union(directs - reader.read, *(item.ids for _, item in fresh))

    def _fresh(
        self, state: "State", reader: ReadState, user_id: int
    ) -> list[tuple[int, ChannelUnread]]:
        """Return the channels in which the user has unread messages, with these messages."""
        touched, before = reader.touched, reader.fresh
        subscriptions, loaded = state.subscriptions.of_user[user_id], self.channels
        made_of = state.subscriptions.version, state.channels.version
        is_since_known = reader.fresh_of == made_of
        result: dict[int, ChannelUnread] = {}
        unread: list[tuple[int, ChannelUnread]] = []
        for channel_id in self._channel_ids(state, user_id):
            channel = loaded[channel_id]
            known = before.get(channel_id)
            if (
                known is None
                or known.version != channel.version
                or not (
                    is_since_known or known.since == state.unread_since(subscriptions[channel_id])
                )
                or (touched and touched.intersect(channel.all))
            ):
                known = _made_fresh(state, reader, channel, subscriptions[channel_id])
            result[channel_id] = known
            if known.ids:
                unread.append((channel_id, known))
        reader.fresh, reader.fresh_of, reader.touched = result, made_of, BitMap()
        return unread

    # Loading

    @contextmanager
    def loading(self) -> Iterator[None]:
        """Wrap a read from the database for `install`. The read must see everything that is on disk
        when this begins."""
        began = self._durable
        self._loading.append(began)
        try:
            yield
        finally:
            self._loading.remove(began)
            self._forget_changes()

    def install(
        self,
        seq: int,
        readers: Mapping[int, ReadState],
        channels: Mapping[int, ChannelMessages],
        directs: Mapping[int, DirectMessages],
    ) -> None:
        """Add data that was read at entry `seq` of the log while `loading`. If the index is at a
        later entry, apply the changes since then."""
        self.questions += 1
        late = UnreadIndex()
        late.readers.update(readers)
        late.channels.update(channels)
        late.directs.update(directs)
        for changed_at, change in self._recent:
            if changed_at > seq:
                change(late)
        for table, loaded in (
            (self.readers, late.readers),
            (self.channels, late.channels),
            (self.directs, late.directs),
        ):
            for key, item in loaded.items():
                if key not in table:
                    self._add(table, key, item)
        self.make_room()

    def settle(self, seq: int) -> None:
        """Record that the entries up to this one are on disk."""
        self._durable = seq
        self._forget_changes()

    def _forget_changes(self) -> None:
        until = min([self._durable, *self._loading])
        while self._recent and self._recent[0][0] <= until:
            self._recent.popleft()

    # Memory

    def _add(self, table: "OrderedDict[int, Any]", key: int, value: Any) -> None:
        value.used_at, value.counted = self.questions, 0
        table[key] = value
        self._count(value)

    def _count(self, item: ReadState | ChannelMessages | DirectMessages) -> None:
        size = item.size
        self.used += size - item.counted
        item.counted = size

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep everything that is loaded or used until the context ends. Each context takes memory,
        so limit how many run concurrently."""
        self.questions += 1
        began = self.questions
        self._held.append(began)
        try:
            yield
        finally:
            self._held.remove(began)

    def note_question(self, state: "State", user_id: int) -> None:
        """Record that the user's unread messages are about to be used, so that they are evicted
        last."""
        self.questions += 1
        channels, directs, number = self.channels, self.directs, self.questions
        self.readers[user_id].used_at = number
        self.readers.move_to_end(user_id)
        for channel_id in self._channel_ids(state, user_id):
            channels[channel_id].used_at = number
            channels.move_to_end(channel_id)
        for direct_id in state.directs.of_user[user_id]:
            directs[direct_id].used_at = number
            directs.move_to_end(direct_id)
        if number % RECOUNTED == 0:
            for table in (self.readers, self.channels, self.directs):
                for item in table.values():
                    self._count(item)
        self.make_room()

    def make_room(self) -> None:
        """Evict the least recently used data until the rest fits: caches first, then bitmaps. Keep
        the data of the last use, and data that is `held`, except for caches, which are used
        immediately."""
        if self.used <= ROOM:
            return
        left = ROOM * 7 // 8  # Free more than necessary, so that not every use evicts something.
        spared = min([self.questions, *self._held])
        for reader in self.readers.values():
            if self.used <= left or reader.used_at >= self.questions:
                break
            if reader.forget_found():
                self._count(reader)
        tables: tuple[OrderedDict[int, Any], ...] = (self.readers, self.channels, self.directs)
        while self.used > left:
            oldest = [(next(iter(table.values())).used_at, table) for table in tables if table]
            used_at, table = min(oldest, key=lambda item: item[0])
            if used_at >= spared:
                return
            _, value = table.popitem(last=False)
            self.used -= value.counted
            if table is not self.readers:
                self._version = next_version()
