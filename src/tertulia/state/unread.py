"""What is unread, computed with bitmaps of message IDs.

Nothing of this is stored: it is loaded from the messages and the readers' bitmaps when it is first
needed, and then kept in step by the fold. Channels and readers that are not loaded cost nothing.
What was not used for the longest time is evicted (`make_room`).
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from pyroaring import BitMap

from tertulia.model.channels import Subscription, topic_key
from tertulia.model.messages import ANY_MENTION, Flag, Message
from tertulia.state.tables import next_version

if TYPE_CHECKING:
    from tertulia.state.organization import State

ROOM: Final = 32_000_000
"""Bytes, roughly, that loaded bitmaps may take."""
SPARED: Final = 256
"""What one of so many last questions used is never evicted: a command that was prepared by one of
them may still need it. After as many questions, the room is checked."""
_BYTES: Final = 2
"""Of one number in a bitmap, at most."""
_BITMAP_BYTES: Final = 100


Ids = Sequence[int] | BitMap


def _bytes(*maps: BitMap) -> int:
    return sum(_BITMAP_BYTES + _BYTES * len(one) for one in maps)


@dataclass
class ChannelMessages:
    """The IDs of one channel's messages."""

    all: BitMap
    topics: dict[str, BitMap]
    """By topic key."""
    wildcards: BitMap
    """Those that mention everybody."""
    used_at: int = 0
    """The number of the last question that used it, here and below."""
    version: int = field(default_factory=next_version)
    """Another one after each change of its messages, and of how its topics are spelled."""
    made: dict[Hashable, bytes] = field(default_factory=dict)
    """What whoever asks has made of it, by what they call it: kept until its next change."""

    def changed(self) -> None:
        """Give it another version."""
        self.version = next_version()
        self.made.clear()

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        topics = _BITMAP_BYTES * len(self.topics) + _BYTES * len(self.all)
        made = sum(_BITMAP_BYTES + len(one) for one in self.made.values())
        return _bytes(self.all, self.wildcards) + topics + made


@dataclass
class DirectMessages:
    """The IDs of one direct conversation's messages."""

    all: BitMap
    used_at: int = 0

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        return _bytes(self.all)


@dataclass
class Reader:
    """What one user has read, and the messages on which they have sparse flags, by flag."""

    read: BitMap
    flagged: dict[Flag, BitMap]
    used_at: int = 0
    channel_ids: Sequence[int] = ()
    """The channels that count, found when they were last asked for..."""
    channels_of: tuple[int, int] = (0, 0)
    """... of these versions of the subscriptions and the channels."""
    fresh: dict[int, "Fresh"] = field(default_factory=dict)
    """What is unread of channels, as it was last found."""
    fresh_of: tuple[int, int] = (0, 0)
    """The versions of the subscriptions and the channels then."""
    touched: BitMap = field(default_factory=BitMap)
    """Messages that were marked since then."""
    unread: "Unread | None" = None
    """All that is unread, as it was last found..."""
    unread_of: tuple[int, int, int] = (0, 0, 0)
    """... of these versions of the index, the subscriptions and the channels."""

    def with_any(self, flags: Flag) -> BitMap:
        """The messages that have one of the flags."""
        return BitMap.union(BitMap(), *(ids for flag, ids in self.flagged.items() if flag & flags))

    @property
    def size(self) -> int:
        """Bytes, roughly."""
        maps = [self.read, *self.flagged.values(), *(one.ids for one in self.fresh.values())]
        if self.unread is not None:
            maps += (self.unread.all, self.unread.mentions, *self.unread.directs.values())
        return _bytes(*maps)


class Fresh(NamedTuple):
    """What one user has not read of a channel."""

    version: int
    """The channel's messages then."""
    since: int
    """`State.unread_since` then."""
    ids: BitMap
    """Where that is all of them, the channel's own bitmap."""
    mentioning: BitMap
    """Those of them that mention everybody, and the user with everybody."""


@dataclass
class Unread:
    """One user's unread messages, by conversation. It is kept: not the caller's to change."""

    all: BitMap
    channels: dict[int, BitMap] = field(default_factory=dict)
    """By channel ID, as `fresh`."""
    directs: dict[int, BitMap] = field(default_factory=dict)
    """By conversation ID."""
    mentions: BitMap = field(default_factory=BitMap)


@dataclass
class Missing:
    """What must be loaded before a user's unread messages are known."""

    reader: bool
    channel_ids: list[int]
    direct_ids: list[int]

    def __bool__(self) -> bool:
        return bool(self.reader or self.channel_ids or self.direct_ids)


def _take_out(channel: ChannelMessages, ids: BitMap, key: str) -> None:
    channel.changed()
    channel.all -= ids
    channel.wildcards -= ids
    topic = channel.topics.get(key, BitMap()) - ids
    if topic:
        channel.topics[key] = topic
    else:
        channel.topics.pop(key, None)


def _made_fresh(
    state: "State", reader: Reader, channel: ChannelMessages, subscription: Subscription
) -> Fresh:
    every, read = channel.all, reader.read
    since = state.unread_since(subscription)
    fresh = every - read if read.intersect(every) else every
    if fresh and fresh.min() <= since:
        recorded = reader.with_any(Flag.RECORD)
        fresh = fresh & (BitMap(range(since + 1, fresh.max() + 1)) | recorded)
    # A wildcard mentions the users who received it: a reader's record does not mean that.
    mentioning = BitMap(one for one in channel.wildcards & fresh if subscription.covers(one))
    return Fresh(channel.version, since, fresh, mentioning)


class UnreadIndex:
    """The loaded bitmaps of messages and readers."""

    def __init__(self) -> None:
        self.channels: dict[int, ChannelMessages] = {}
        self.directs: dict[int, DirectMessages] = {}
        self.readers: dict[int, Reader] = {}
        self.questions = 0
        """How many there were: see `note_question`."""
        self._version = next_version()
        """Another one after each change of messages and of what anybody has read of them, and where
        something is not loaded any more."""

    def _changed(self) -> None:
        self._version = next_version()

    def _made_of(self, state: "State") -> tuple[int, int, int]:
        return self._version, state.subscriptions.version, state.channels.version

    def missing(self, state: "State", user_id: int) -> Missing:
        """What `of` needs for the user and is not loaded yet."""
        reader = self.readers.get(user_id)
        if reader is not None and reader.unread_of == self._made_of(state):
            return Missing(reader=False, channel_ids=[], direct_ids=[])
        own = self._channel_ids(state, user_id)
        return Missing(
            reader=reader is None,
            channel_ids=[c for c in own if c not in self.channels],
            direct_ids=[d for d in state.directs.of_user[user_id] if d not in self.directs],
        )

    def _channel_ids(self, state: "State", user_id: int) -> Sequence[int]:
        """The channels of which something may be unread to the user."""
        reader = self.readers.get(user_id)
        made_of = state.subscriptions.version, state.channels.version
        if reader is not None and reader.channels_of == made_of:
            return reader.channel_ids
        channels = state.channels.rows
        found = [one for one in state.channel_ids_of(user_id) if not channels[one].is_archived]
        if reader is not None:
            reader.channel_ids, reader.channels_of = found, made_of
        return found

    def sent(self, message: Message) -> None:
        """A message was sent."""
        self._changed()
        if message.channel_id is not None:
            channel = self.channels.get(message.channel_id)
            if channel is not None:
                channel.changed()
                channel.all.add(message.id)
                key = topic_key(message.topic)
                channel.topics.setdefault(key, BitMap()).add(message.id)
                if message.mentions_all:
                    channel.wildcards.add(message.id)
        elif message.direct_id in self.directs:
            self.directs[message.direct_id].all.add(message.id)

    def mentions_all(self, message: Message) -> None:
        """A message mentions everybody now, or does not any more."""
        self._changed()
        channel = self.channels.get(message.channel_id or 0)
        if channel is not None:
            channel.changed()
            (channel.wildcards.add if message.mentions_all else channel.wildcards.discard)(
                message.id
            )

    def moved(self, ids: BitMap, old: tuple[int, str], new: tuple[int, str]) -> None:
        """Messages went from one topic (channel and key) to another."""
        self._changed()
        source, target = self.channels.get(old[0]), self.channels.get(new[0])
        wildcards = BitMap()
        if source is not None:
            # In another channel each whom they mention has a flag that says so.
            wildcards = source.wildcards & ids if source is target else wildcards
            _take_out(source, ids, old[1])
        if target is not None:
            target.changed()
            target.all |= ids
            target.wildcards |= wildcards
            target.topics[new[1]] = target.topics.get(new[1], BitMap()) | ids

    def deleted(
        self,
        message_ids: tuple[int, ...],
        channel_id: int | None,
        key: str,
        direct_id: int | None,
    ) -> None:
        """Messages of one conversation are gone; `key` is the topic's."""
        self._changed()
        ids = BitMap(message_ids)
        channel = self.channels.get(channel_id or 0)
        if channel is not None:
            _take_out(channel, ids, key)
        if direct_id in self.directs:
            self.directs[direct_id].all -= ids
        for reader in self.readers.values():
            for flagged in reader.flagged.values():
                flagged.difference_update(ids)

    def forget(self, user_id: int, ids: BitMap) -> None:
        """A user has no sparse flags on these messages any more."""
        self._changed()
        reader = self.readers.get(user_id)
        if reader is not None:
            reader.touched |= ids
            for flagged in reader.flagged.values():
                flagged.difference_update(ids)

    def began(self, direct_id: int) -> None:
        """A direct conversation began, so all of it is known."""
        self._changed()
        self.directs[direct_id] = DirectMessages(BitMap(), used_at=self.questions)

    def mark(self, user_id: int, message_ids: Ids, *, read: bool) -> None:
        """A user's messages became read or unread."""
        self._changed()
        reader = self.readers.get(user_id)
        if reader is None:
            return
        reader.touched.update(message_ids)
        if read:
            reader.read.update(message_ids)
        else:
            reader.read.difference_update(BitMap(message_ids))

    def flag(self, user_id: int, message_ids: Ids, flag: Flag, *, added: bool) -> None:
        """A user's messages gained or lost a sparse flag."""
        self._changed()
        reader = self.readers.get(user_id)
        if reader is None:
            return
        reader.touched.update(message_ids)
        for one in flag:
            ids = reader.flagged.setdefault(one, BitMap())
            if added:
                ids.update(message_ids)
            else:
                ids.difference_update(BitMap(message_ids))

    def of(self, state: "State", user_id: int) -> Unread:
        """What the user has not read, by conversation. All that `missing` names must be loaded."""
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
        return unread

    def by_topic(self, channel_id: int, ids: BitMap) -> list[tuple[str, BitMap]]:
        """Those of the channel's messages by topic key, of the topics that have any."""
        found = []
        left = len(ids)
        for key, every in self.channels[channel_id].topics.items():
            if hit := every & ids:
                found.append((key, hit))
                left -= len(hit)
                if not left:
                    break
        return found

    def unread_ids(self, state: "State", user_id: int) -> BitMap:
        """What the user has not read. All that `missing` names must be loaded.

        Messages of the present subscriptions and of direct conversations are unread until read;
        others only where the user gave them a record of their own and made them unread.
        """
        reader = self.readers[user_id]
        own = state.directs.of_user[user_id]
        directs = BitMap.union(BitMap(), *(self.directs[direct_id].all for direct_id in own))
        return BitMap.union(
            directs - reader.read, *(one.ids for _, one in self._fresh(state, reader, user_id))
        )

    def _fresh(self, state: "State", reader: Reader, user_id: int) -> list[tuple[int, Fresh]]:
        """The channels in which the user has something unread, each with it."""
        touched, before = reader.touched, reader.fresh
        own, loaded = state.subscriptions.of_user[user_id], self.channels
        made_of = state.subscriptions.version, state.channels.version
        is_since_known = reader.fresh_of == made_of
        found: dict[int, Fresh] = {}
        unread: list[tuple[int, Fresh]] = []
        for channel_id in self._channel_ids(state, user_id):
            channel = loaded[channel_id]
            known = before.get(channel_id)
            if (
                known is None
                or known.version != channel.version
                or not (is_since_known or known.since == state.unread_since(own[channel_id]))
                or (touched and touched.intersect(channel.all))
            ):
                known = _made_fresh(state, reader, channel, own[channel_id])
            found[channel_id] = known
            if known.ids:
                unread.append((channel_id, known))
        reader.fresh, reader.fresh_of, reader.touched = found, made_of, BitMap()
        return unread

    # Room

    def add_reader(self, user_id: int, reader: Reader) -> None:
        """Add what a user has done with messages, as of the state's entry, before it is asked what
        is unread."""
        self.questions += 1
        reader.used_at = self.questions
        self.readers[user_id] = reader
        if self.questions % SPARED == 0:
            self.make_room()

    def note_question(self, state: "State", user_id: int) -> None:
        """What the user has not read is about to be used: note it, so that it is not evicted."""
        self.questions += 1
        channels, directs, number = self.channels, self.directs, self.questions
        self.readers[user_id].used_at = number
        for channel_id in self._channel_ids(state, user_id):
            channels[channel_id].used_at = number
        for direct_id in state.directs.of_user[user_id]:
            directs[direct_id].used_at = number
        if self.questions % SPARED == 0:
            self.make_room()

    def make_room(self) -> None:
        """Evict what was not used for the longest time, until the rest fits or was used lately."""
        kept: list[tuple[int, int, dict[int, Any], int]] = []
        for table in (self.readers, self.channels, self.directs):
            kept += [(one.used_at, one.size, table, key) for key, one in table.items()]
        used = sum(size for _, size, _, _ in kept)
        kept.sort(key=lambda one: one[0])
        for used_at, size, table, key in kept:
            if used <= ROOM or used_at > self.questions - SPARED:
                return
            del table[key]
            self._changed()
            used -= size
