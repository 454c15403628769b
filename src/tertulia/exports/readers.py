"""Who received messages, and what they did with them, in the order of the messages."""

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
"""Flags that follow from a message's text, and so aren't private data."""
_NOTHING: Final = BitMap()
_NEVER: Final = float("inf")


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
    """Those among them who didn't receive it when it was sent."""
    moved: Collection[int] = ()
    """Those who have a record of it because it was moved to them. Other records are among the
    flags."""


class ChannelRecipients:
    """The people who were subscribed to a channel when its messages were sent. Ask in ascending
    order."""

    def __init__(self, scope: ExportScope, channel_id: int) -> None:
        steps = []
        for subscription in scope.subscriptions(channel_id):
            for after, until in subscription.spans:
                steps.append((after, True, subscription.user_id))
                if until is not None:
                    steps.append((until, False, subscription.user_id))
        self._steps = sorted(steps)
        """When people came and left: the newest message before, and the person."""
        self._next = 0
        self._present: set[int] = set()
        self._ascending: Sequence[int] | None = ()

    def of(self, message_id: int) -> Sequence[int]:
        """Return those who received the message, ascending."""
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
    """Finds the recipients of messages, which must come in ascending order."""

    def __init__(self, scope: ExportScope, connection: Connection) -> None:
        self._scope = scope
        self._state = scope.state
        self._connection = connection
        self._channels: dict[int, ChannelRecipients] = {}
        self._chunk = -1
        self._read: dict[int, BitMap] = {}
        self._moved: dict[int, BitMap] = {}

    def of(self, messages: Sequence[Message]) -> Iterator[Received]:
        """Yield who received each of the messages."""
        flags: dict[int, dict[int, Flag]] = defaultdict(dict)
        ids = [message.id for message in messages]
        for user_id, own in message_marks.flags_on(self._connection, ids).items():
            mask = Flag(127) if self._scope.shares(user_id) else _PUBLIC
            for message_id, flag in own.items():
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
        """Return who hasn't read the messages."""
        by_user: dict[int, list[Received]] = defaultdict(list)
        for item in received:
            for user_id in item.user_ids:
                by_user[user_id].append(item)
        result: dict[int, set[int]] = defaultdict(set)
        for user_id, some in by_user.items():
            if not self._scope.shares(user_id):
                continue
            read = self._read.get(user_id, _NOTHING)
            since: dict[int | None, float] = {}
            for item in some:
                message_id, channel_id = item.message.id, item.message.channel_id
                if message_id in read:
                    continue
                if channel_id not in since:
                    since[channel_id] = self._unread_since(user_id, item.message)
                limit = since[channel_id]
                if message_id > limit or (limit < _NEVER and self._is_kept(user_id, item, kept)):
                    result[message_id].add(user_id)
        return result

    def _unread_since(self, user_id: int, message: Message) -> float:
        """Return the ID after which messages of the channel, or direct messages, count as unread
        until they're marked as read: `_NEVER` in a channel that was left or archived."""
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
