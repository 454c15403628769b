"""Topics: their table, in which most of them are packed, and its indexes."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Collection, Iterator, Mapping, MutableMapping, Sequence, ValuesView
from itertools import chain
from operator import attrgetter
from typing import Any, Final, cast

import msgspec
from msgspec import Struct

from tertulia.model.channels import RESOLVED_PREFIX, Topic, topic_key
from tertulia.model.nouns import Noun
from tertulia.state.tables import PairRows, PairTable, Table, TableIndex

RECENT: Final = 64
"""The most topics of a channel that aren't packed. Large channels have more: a sixteenth of the
packed ones."""
_BUCKET: Final = 4
"""The average number of topics in a bucket."""
MAX_LISTED: Final = 500
"""The most resolved topics that are listed."""


class PackedTopic(Struct, array_like=True, gc=False):
    """A topic without its channel and its key."""

    name: str
    last_message_id: int
    message_count: int

    @property
    def key(self) -> str:
        """The case-folded name."""
        return topic_key(self.name)


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[PackedTopic]).decode
_HEADER: Final = 3
"""The size of the header of a MessagePack array, with its length in the last two bytes."""


class _Buckets:
    """A hash table of packed topics without repeated keys. It grows by one bucket at a time (linear
    hashing), which never takes long.

    A bucket is a MessagePack array of topics, followed by one byte of each one's hash. Most topics
    that aren't in the table are recognized by that without decoding the others.
    """

    def __init__(self, channel_id: int) -> None:
        self._channel_id = channel_id
        self._buckets = [_bucket([], b"")]
        self._half = 1
        """The number of buckets when the current round of splitting began: a power of two."""
        self.count = 0
        """The number of topics."""

    def copy(self) -> _Buckets:
        result = _Buckets(self._channel_id)
        result._buckets, result._half = [*self._buckets], self._half
        result.count = self.count
        return result

    def get(self, key: str) -> Topic | None:
        return self._found(key)[0]

    def add(self, topic: Topic) -> None:
        """Add a topic that isn't in the table."""
        hashed = hash(topic.key)
        number = self._number(hashed)
        packed = PackedTopic(topic.name, topic.last_message_id, topic.message_count)
        self._buckets[number] = _extended(self._buckets[number], packed, hashed)
        self.count += 1
        if self.count > _BUCKET * len(self._buckets):
            self._split()

    def discard(self, key: str) -> bool:
        """Remove a topic. Return whether it was in the table."""
        topic, place = self._found(key)
        if topic is None:
            return False
        number = self._number(hash(key))
        bucket = self._buckets[number]
        packed, tags = _unpacked(bucket), bucket[len(bucket) - _length(bucket) :]
        del packed[place]
        self._buckets[number] = _bucket(packed, tags[:place] + tags[place + 1 :])
        self.count -= 1
        return True

    def __iter__(self) -> Iterator[Topic]:
        return map(self._topic, self.packed())

    def packed(self) -> Iterator[PackedTopic]:
        """Yield all topics, five times as fast."""
        return chain.from_iterable(map(_unpacked, self._buckets))

    def _found(self, key: str) -> tuple[Topic | None, int]:
        """Return the topic, and its place in its bucket."""
        hashed = hash(key)
        bucket = self._buckets[self._number(hashed)]
        tags = len(bucket) - _length(bucket)
        place = bucket.find(_tag(hashed), tags)
        if place >= 0:
            packed = _unpacked(bucket)
            while place >= 0:
                topic = self._topic(packed[place - tags])
                if topic.key == key:
                    return topic, place - tags
                place = bucket.find(_tag(hashed), place + 1)
        return None, 0

    def _number(self, hashed: int) -> int:
        """Return the index of the bucket. In each round of splitting, the number of buckets
        doubles. Until a bucket is split, one bit less of the hash counts."""
        number = hashed & (2 * self._half - 1)
        return number if number < len(self._buckets) else number - self._half

    def _split(self) -> None:
        half = self._half
        number = len(self._buckets) - half
        parts: tuple[list[PackedTopic], list[PackedTopic]] = [], []
        tags = bytearray(), bytearray()
        for packed in _unpacked(self._buckets[number]):
            hashed = hash(topic_key(packed.name))
            is_moved = hashed & half != 0
            parts[is_moved].append(packed)
            tags[is_moved].append(_tag(hashed))
        self._buckets[number] = _bucket(parts[False], tags[False])
        self._buckets.append(_bucket(parts[True], tags[True]))
        if len(self._buckets) == 2 * half:
            self._half = 2 * half

    def _topic(self, packed: PackedTopic) -> Topic:
        name, key = packed.name, topic_key(packed.name)
        return Topic(
            channel_id=self._channel_id,
            key=key,
            name=key if name == key else name,
            last_message_id=packed.last_message_id,
            message_count=packed.message_count,
        )


def _tag(hashed: int) -> int:
    """Return the byte of the hash that a bucket has. (The lowest bits chose the bucket.)"""
    return hashed >> 48 & 0xFF


def _length(bucket: bytes) -> int:
    return bucket[1] << 8 | bucket[2]


def _bucket(topics: Sequence[PackedTopic], tags: bytes | bytearray) -> bytes:
    return b"".join((_header(len(topics)), *map(_encode, topics), tags))


def _header(length: int) -> bytes:
    return b"\xdc" + length.to_bytes(2, "big")


def _extended(bucket: bytes, topic: PackedTopic, hashed: int) -> bytes:
    length = bucket[1] << 8 | bucket[2]
    tags = len(bucket) - length
    parts = bucket[_HEADER:tags], _encode(topic), bucket[tags:], bytes((_tag(hashed),))
    return _header(length + 1) + b"".join(parts)


def _unpacked(bucket: bytes) -> list[PackedTopic]:
    return _decode(bucket[: len(bucket) - _length(bucket)])


class ChannelTopics(MutableMapping[str, Topic]):
    """The topics of a channel by key, in any order.

    Those written last are records. The others are packed, which takes a fifth of the memory: an
    organization that comes from a service with threads can have a million topics.
    """

    def __init__(self, channel_id: int) -> None:
        self._channel_id = channel_id
        self._recent: OrderedDict[str, Topic] = OrderedDict()
        """The last one was written last."""
        self._packed = _Buckets(channel_id)

    def __copy__(self) -> ChannelTopics:
        result = ChannelTopics(self._channel_id)
        result._recent, result._packed = self._recent.copy(), self._packed.copy()
        return result

    def get(self, key: str, default: Any = None) -> Any:
        topic = self._recent.get(key) or self._packed.get(key)
        return default if topic is None else topic

    def __getitem__(self, key: str) -> Topic:
        topic: Topic | None = self.get(key)
        if topic is None:
            raise KeyError(key)
        return topic

    def __contains__(self, key: Any) -> bool:
        return self.get(key) is not None

    def __setitem__(self, key: str, topic: Topic) -> None:
        if key in self._recent:
            self._recent.move_to_end(key)
        else:
            self._packed.discard(key)
        self._recent[key] = topic
        if len(self._recent) > RECENT + self._packed.count // 16:
            _, oldest = self._recent.popitem(last=False)
            if topic_key(oldest.name) == oldest.key:
                self._packed.add(oldest)
            else:  # Another version of Python made the key.
                self._recent[oldest.key] = oldest

    def __delitem__(self, key: str) -> None:
        if self._recent.pop(key, None) is None and not self._packed.discard(key):
            raise KeyError(key)

    def __len__(self) -> int:
        return len(self._recent) + self._packed.count

    def __iter__(self) -> Iterator[str]:
        return (topic.key for topic in self.values())

    def values(self) -> ValuesView[Topic]:
        return _Topics(self)

    def every(self) -> Iterator[Topic]:
        """Yield all topics. They must not change in the meantime."""
        yield from self._recent.values()
        yield from self._packed

    def by_newest_message(self) -> list[Topic | PackedTopic]:
        """Return all topics, with the newest message's last."""
        return sorted((*self._recent.values(), *self._packed.packed()), key=_newest_message)


class _Topics(ValuesView[Topic]):
    """The topics themselves: the base class would look each one up."""

    _mapping: ChannelTopics

    def __iter__(self) -> Iterator[Topic]:
        return self._mapping.every()


class _TopicRows(PairRows[Topic]):
    def _new_group(self, first: Any) -> ChannelTopics:
        return ChannelTopics(first)


class TopicTable(PairTable[Topic]):
    rows_type = _TopicRows

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.message_counts = MessageCounts(self)
        self.by_newest_message = TopicsByNewestMessage(self)
        self.resolved = ResolvedTopics(self)

    @property
    def of_channel(self) -> Mapping[int, Mapping[str, Topic]]:
        """By channel ID, then topic key."""
        return self.rows.groups


class TopicsByNewestMessage(TableIndex[Topic]):
    """The topics of each channel by newest message. They're sorted on first use and then kept in
    order."""

    def __init__(self, topics: TopicTable) -> None:
        self._ordered: dict[int, list[Topic | PackedTopic]] = {}
        super().__init__(topics)

    def _update(self, before: Topic | None, after: Topic | None) -> None:
        topic = before or after
        topics = None if topic is None else self._ordered.get(topic.channel_id)
        if topics is None:
            return
        if before is not None:
            index = bisect_left(topics, before.last_message_id, key=_newest_message)
            # While two topics are merged, both have the same newest message.
            while topics[index].key != before.key:
                index += 1
            del topics[index]
        if after is not None:
            insort(topics, after, key=_newest_message)

    def _detach(self, records: Collection[Topic]) -> None:
        changed = {record.channel_id for record in records} & self._ordered.keys()
        self._ordered = {
            **self._ordered,
            **{channel_id: [*self._ordered[channel_id]] for channel_id in changed},
        }

    def __getitem__(self, channel_id: int) -> Sequence[Topic | PackedTopic]:
        """Return the channel's topics, with the newest message's last. Don't change or keep the
        list."""
        result = self._ordered.get(channel_id)
        if result is None:
            topics = cast(TopicTable, self.table).of_channel.get(channel_id)
            result = topics.by_newest_message() if isinstance(topics, ChannelTopics) else []
            self._ordered[channel_id] = result
        return result


_newest_message = attrgetter("last_message_id")


class MessageCounts(TableIndex[Topic]):
    """The number of messages by channel."""

    def __init__(self, topics: Table[Topic]) -> None:
        self._counts: dict[int, int] = {}
        super().__init__(topics)

    def _update(self, before: Topic | None, after: Topic | None) -> None:
        for topic, sign in ((before, -1), (after, 1)):
            if topic is not None:
                count = self._counts.pop(topic.channel_id, 0) + sign * topic.message_count
                if count:
                    self._counts[topic.channel_id] = count

    def _detach(self, records: Collection[Topic]) -> None:
        self._counts = {**self._counts}

    @property
    def by_channel(self) -> Mapping[int, int]:
        """The number of messages of each channel that has any. Don't change it."""
        return self._counts


class ResolvedTopics(TableIndex[Topic]):
    """The keys of resolved topics, unless there were ever more than `MAX_LISTED`."""

    def __init__(self, topics: Table[Topic]) -> None:
        self._keys: set[tuple[int, str]] | None = set()
        super().__init__(topics)

    def _update(self, before: Topic | None, after: Topic | None) -> None:
        topic = after or before
        if self._keys is None or topic is None or not topic.key.startswith(RESOLVED_PREFIX):
            return
        if after is None:
            self._keys.discard((topic.channel_id, topic.key))
        else:
            self._keys.add((topic.channel_id, topic.key))
            if len(self._keys) > MAX_LISTED:
                self._keys = None

    def _detach(self, records: Collection[Topic]) -> None:
        self._keys = None if self._keys is None else {*self._keys}

    @property
    def listed(self) -> frozenset[tuple[int, str]] | None:
        """Return the resolved topics, as channel ID and topic key; None if there were ever too
        many."""
        return None if self._keys is None else frozenset(self._keys)
