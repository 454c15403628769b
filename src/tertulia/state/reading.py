"""What is unread, computed with bitmaps of message IDs.

Nothing here is written down as such: it is loaded from the messages and the readers' bitmaps when
somebody first asks, and then kept in step by the fold. A channel or reader that is not loaded is
not kept, which costs nothing.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyroaring import BitMap

from tertulia.model.channels import topic_key
from tertulia.model.messages import ANY_MENTION, Flag, Message

if TYPE_CHECKING:
    from tertulia.state.organization import State


@dataclass
class ChannelMessages:
    """The IDs of one channel's messages."""

    all: BitMap
    topics: dict[str, BitMap]
    """By topic key."""
    wildcards: BitMap
    """Those that mention everybody."""


@dataclass
class Reader:
    """What one user has read, and the sparse flags that they have."""

    read: BitMap
    flags: dict[int, Flag]


@dataclass
class Unread:
    """One user's unread messages, by conversation; every list of IDs ascends."""

    topics: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    """By channel ID and topic key."""
    directs: dict[int, list[int]] = field(default_factory=dict)
    """By conversation ID."""
    mentions: list[int] = field(default_factory=list)

    def ids(self) -> list[int]:
        """All of them, ascending."""
        every = [*self.topics.values(), *self.directs.values()]
        return sorted(message_id for ids in every for message_id in ids)


@dataclass
class Missing:
    """What must be loaded before a user's unread messages can be told."""

    reader: bool
    channel_ids: list[int]
    direct_ids: list[int]

    def __bool__(self) -> bool:
        return bool(self.reader or self.channel_ids or self.direct_ids)


def _take_out(channel: ChannelMessages, ids: BitMap, key: str) -> None:
    channel.all -= ids
    channel.wildcards -= ids
    topic = channel.topics.get(key, BitMap()) - ids
    if topic:
        channel.topics[key] = topic
    else:
        channel.topics.pop(key, None)


class Reading:
    """The loaded part of who has read what."""

    def __init__(self) -> None:
        self.channels: dict[int, ChannelMessages] = {}
        self.directs: dict[int, BitMap] = {}
        self.readers: dict[int, Reader] = {}

    def missing(self, state: "State", user_id: int) -> Missing:
        """What is not loaded yet of that which `unread` looks at."""
        own = self._channel_ids(state, user_id)
        return Missing(
            reader=user_id not in self.readers,
            channel_ids=[c for c in own if c not in self.channels],
            direct_ids=[d for d in state.directs_of_user.get(user_id, ()) if d not in self.directs],
        )

    def _channel_ids(self, state: "State", user_id: int) -> list[int]:
        return [
            channel_id
            for channel_id in state.channel_ids_of(user_id)
            if not state.channels[channel_id].is_archived
        ]

    def sent(self, message: Message) -> None:
        """A message was sent."""
        if message.channel_id is not None:
            channel = self.channels.get(message.channel_id)
            if channel is not None:
                channel.all.add(message.id)
                key = topic_key(message.topic)
                channel.topics.setdefault(key, BitMap()).add(message.id)
                if message.mentions_all:
                    channel.wildcards.add(message.id)
        elif message.direct_id in self.directs:
            self.directs[message.direct_id].add(message.id)

    def mentions_all(self, message: Message) -> None:
        """A message mentions everybody now, or does not any more."""
        channel = self.channels.get(message.channel_id or 0)
        if channel is not None:
            (channel.wildcards.add if message.mentions_all else channel.wildcards.discard)(
                message.id
            )

    def moved(
        self, message_ids: tuple[int, ...], old: tuple[int, str], new: tuple[int, str]
    ) -> None:
        """Messages went from one topic (channel and key) to another."""
        ids = BitMap(message_ids)
        source, target = self.channels.get(old[0]), self.channels.get(new[0])
        wildcards = BitMap()
        if source is not None:
            # In another channel each whom they mention has a flag that says so.
            wildcards = source.wildcards & ids if source is target else wildcards
            _take_out(source, ids, old[1])
        if target is not None:
            target.all |= ids
            target.wildcards |= wildcards
            target.topics[new[1]] = target.topics.get(new[1], BitMap()) | ids

    def deleted(
        self, message_ids: tuple[int, ...], channel_id: int | None, direct_id: int | None
    ) -> None:
        """Messages of one conversation are gone."""
        ids = BitMap(message_ids)
        channel = self.channels.get(channel_id or 0)
        if channel is not None:
            for key in list(channel.topics):
                _take_out(channel, ids, key)
        if direct_id in self.directs:
            self.directs[direct_id] -= ids
        for user_id in self.readers:
            self.forget(user_id, message_ids)

    def forget(self, user_id: int, message_ids: tuple[int, ...]) -> None:
        """A user has no sparse flags on these messages any more."""
        reader = self.readers.get(user_id)
        if reader is not None:
            for message_id in message_ids:
                reader.flags.pop(message_id, None)

    def began(self, direct_id: int) -> None:
        """A direct conversation began, so all of it is known."""
        self.directs[direct_id] = BitMap()

    def mark(self, user_id: int, message_ids: tuple[int, ...], *, read: bool) -> None:
        """A user's messages became read or unread."""
        reader = self.readers.get(user_id)
        if reader is None:
            return
        if read:
            reader.read.update(message_ids)
        else:
            reader.read.difference_update(BitMap(message_ids))

    def flag(self, user_id: int, message_ids: tuple[int, ...], flag: Flag, *, added: bool) -> None:
        """A user's messages gained or lost a sparse flag."""
        reader = self.readers.get(user_id)
        if reader is None:
            return
        for message_id in message_ids:
            before = reader.flags.get(message_id, Flag(0))
            after = before | flag if added else before & ~flag
            if after:
                reader.flags[message_id] = after
            else:
                reader.flags.pop(message_id, None)

    def unread(self, state: "State", user_id: int) -> Unread:
        """What the user has not read. All that `missing` names must be loaded.

        Messages of the present subscriptions and of direct conversations are unread until read;
        others only where the user gave them a record of their own and made them unread.
        """
        reader = self.readers[user_id]
        unread = Unread()
        wildcards = BitMap()
        recorded = BitMap(m for m, flag in reader.flags.items() if flag & Flag.RECORD)
        for channel_id in self._channel_ids(state, user_id):
            channel = self.channels[channel_id]
            subscription = state.subscriptions[(channel_id, user_id)]
            since = state.unread_since(subscription)
            fresh = channel.all - reader.read
            if fresh and fresh.min() <= since:
                fresh &= BitMap(range(since + 1, fresh.max() + 1)) | recorded
            if not fresh:
                continue
            # A wildcard mentions those who received it, which a record of one's own does not say.
            wildcards |= BitMap(m for m in channel.wildcards & fresh if subscription.covers(m))
            left = len(fresh)
            for key, ids in channel.topics.items():
                hit = ids & fresh
                if hit:
                    unread.topics[(channel_id, key)] = list(hit)
                    left -= len(hit)
                    if not left:
                        break
        for direct_id in state.directs_of_user.get(user_id, ()):
            fresh = self.directs[direct_id] - reader.read
            if fresh:
                unread.directs[direct_id] = list(fresh)
        # Flags are few, the unread may be many; and numbers are compared faster than flags.
        mention = int(ANY_MENTION)
        mentioned = wildcards | BitMap(m for m, flag in reader.flags.items() if int(flag) & mention)
        unread.mentions = [message_id for message_id in unread.ids() if message_id in mentioned]
        return unread
