"""The recipients of messages, and what they did with them, in the order of the messages."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Final

from msgspec import Struct
from msgspec.structs import replace
from pyroaring import BitMap

from tertulia.exports.scope import ExportScope
from tertulia.model.messages import ANY_MENTION, Flag, Message
from tertulia.store import bitmaps, message_marks
from tertulia.store.codec import CHUNK_BITS
from tertulia.store.database import Connection

_PUBLIC: Final = ANY_MENTION
"""Flags that follow from a message's text, and so aren't private."""
_NOTHING: Final = BitMap()
_NEVER: Final = float("inf")
MOST_LIMITS: Final = 200_000
"""The most people and channels whose read limits are kept for the next messages."""


class Received(Struct, frozen=True):
    """The people who have a relation to a message."""

    message: Message
    user_ids: Sequence[int]
    """Ascending."""
    unread: Collection[int] = ()
    """Those who haven't read it. Only people who share their private data can be among them."""
    flags: Mapping[int, Flag] = {}
    """Sparse flags."""
    others: Collection[int] = ()
    """The readers who didn't receive the message when it was sent."""
    moved: Collection[int] = ()
    """The readers who have a record of the message because it was moved to them. Other records are
    in `flags`."""


class ChannelRecipients:
    """The subscribers of a channel at the time of each of its messages. Queries must be in
    ascending order."""

    def __init__(self, scope: ExportScope, channel_id: int) -> None:
        steps = []
        for subscription in scope.subscriptions(channel_id):
            for after, until in subscription.spans:
                steps.append((after, True, subscription.user_id))
                if until is not None:
                    steps.append((until, False, subscription.user_id))
        self._steps = sorted(steps)
        """When people subscribed and unsubscribed: the newest message before, and the person."""
        self._next = 0
        self._present: set[int] = set()
        self._ascending: Sequence[int] | None = ()

    def of(self, message_id: int) -> Sequence[int]:
        """Return the users who received the message, ascending."""
        steps = self._steps
        while self._next < len(steps) and steps[self._next][0] < message_id:
            _, comes, user_id = steps[self._next]
            (self._present.add if comes else self._present.discard)(user_id)
            self._ascending = None
            self._next += 1
        if self._ascending is None:
            self._ascending = sorted(self._present)
        return self._ascending


class MessageReaders:
    """Finds the recipients of messages. Messages must be passed in ascending order."""

    def __init__(self, scope: ExportScope, connection: Connection) -> None:
        self._scope = scope
        self._state = scope.state
        self._connection = connection
        self._channels: dict[int, ChannelRecipients] = {}
        self._chunk = -1
        self._read: dict[int, BitMap] = {}
        self._moved: dict[int, BitMap] = {}
        self._limits: dict[int | None, dict[int, float]] = defaultdict(dict)

    def of(self, messages: Sequence[Message]) -> Iterator[Received]:
        """Yield the recipients of each of the messages."""
        flags: dict[int, dict[int, Flag]] = defaultdict(dict)
        ids = [message.id for message in messages]
        for user_id, user_flags in message_marks.flags_on(self._connection, ids).items():
            mask = Flag(127) if self._scope.shares(user_id) else _PUBLIC
            for message_id, flag in user_flags.items():
                if flag & mask:
                    flags[message_id][user_id] = flag & mask
        for chunk, some in groupby(messages, key=lambda message: message.id >> CHUNK_BITS):
            self._load(chunk)
            yield from self._of_chunk(list(some), flags)

    def _load(self, chunk: int) -> None:
        if chunk == self._chunk:
            return
        self._chunk = chunk
        for result, table in ((self._read, bitmaps.READ), (self._moved, bitmaps.RECORDS)):
            result.clear()
            for user_id, ids in bitmaps.rows_of_chunk(self._connection, table, chunk):
                if self._scope.shares(user_id):
                    result[user_id] = ids

    def _of_chunk(
        self, messages: Sequence[Message], flags: Mapping[int, Mapping[int, Flag]]
    ) -> Iterator[Received]:
        ids = BitMap(message.id for message in messages)
        kept: dict[int, set[int]] = defaultdict(set)
        for user_id, ids_moved in self._moved.items():
            for message_id in ids_moved & ids:
                kept[message_id].add(user_id)
        result = []
        for message in messages:
            received = self._recipients(message)
            flags_of_message: Mapping[int, Flag] = flags.get(message.id, {})
            moved: set[int] = kept.get(message.id, set())
            others = (
                (moved | flags_of_message.keys()) - set(received)
                if flags_of_message or moved
                else set()
            )
            user_ids = sorted({*received, *others}) if others else received
            result.append(Received(message, user_ids, (), flags_of_message, others, moved))
        unread = self._unread(result, kept)
        for item in result:
            yield (
                replace(item, unread=unread[item.message.id]) if item.message.id in unread else item
            )

    def _recipients(self, message: Message) -> Sequence[int]:
        if message.channel_id is None:
            return self._state.directs[message.direct_id or 0].members
        channel = self._channels.get(message.channel_id)
        if channel is None:
            channel = ChannelRecipients(self._scope, message.channel_id)
            self._channels[message.channel_id] = channel
        return channel.of(message.id)

    def _unread(
        self, received: Sequence[Received], kept: Mapping[int, set[int]]
    ) -> Mapping[int, set[int]]:
        """Return the users who haven't read each message."""
        groups: dict[tuple[int | None, int], list[Received]] = defaultdict(list)
        for item in received:
            # Most messages of a channel have the same list of recipients.
            groups[item.message.channel_id, id(item.user_ids)].append(item)
        result: dict[int, set[int]] = {}
        for some in groups.values():
            result.update(self._unread_together(some, kept))
        return result

    def _unread_together(
        self, received: Sequence[Received], kept: Mapping[int, set[int]]
    ) -> Mapping[int, set[int]]:
        """Return the users who haven't read each message, for messages of one conversation with the
        same recipients."""
        items = {item.message.id: item for item in received}
        ids = BitMap(items)
        first = ids.min()
        none_read: set[int] = set()
        others: dict[int, set[int]] = defaultdict(set)
        limits = self._limits_of(received[0].message.channel_id)
        for user_id in received[0].user_ids:
            if not self._scope.shares(user_id):
                continue
            unread = ids - self._read.get(user_id, _NOTHING)
            if not unread:
                continue
            limit = limits.get(user_id)
            if limit is None:
                limit = limits[user_id] = self._unread_since(user_id, received[0].message)
            if limit < first and len(unread) == len(ids):
                none_read.add(user_id)
                continue
            for message_id in unread:
                if message_id > limit or (
                    limit < _NEVER and self._is_kept(user_id, items[message_id], kept)
                ):
                    others[message_id].add(user_id)
        result = dict.fromkeys(items, none_read) if none_read else {}
        # Equal sets are one object, so that their rows are made only once.
        equal: dict[frozenset[int], set[int]] = {}
        for message_id, users in others.items():
            result[message_id] = equal.setdefault(frozenset(users), none_read | users)
        return result

    def _limits_of(self, channel_id: int | None) -> dict[int, float]:
        """Return the known results of `_unread_since`, by user."""
        if sum(map(len, self._limits.values())) > MOST_LIMITS:
            self._limits.clear()
        return self._limits[channel_id]

    def _unread_since(self, user_id: int, message: Message) -> float:
        """Return the message ID above which messages of the channel, or direct messages, count as
        unread until they're marked as read; `_NEVER` for a channel that was left or archived."""
        if message.channel_id is None:
            return 0
        subscription = self._state.subscription(user_id, message.channel_id)
        if subscription is None or not subscription.is_active:
            return _NEVER
        is_archived = self._state.channels[message.channel_id].is_archived
        return _NEVER if is_archived else self._state.unread_since(subscription)

    def _is_kept(self, user_id: int, received: Received, kept: Mapping[int, set[int]]) -> bool:
        """Whether the user has a record of the message."""
        flags = received.flags.get(user_id, 0)
        return bool(flags & Flag.RECORD) or user_id in kept.get(received.message.id, ())
