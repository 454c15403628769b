"""The bitmaps from which unread messages are computed."""

import sys
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

from pyroaring import BitMap

from tertulia.model.messages import Flag
from tertulia.state.tables import next_version

if TYPE_CHECKING:
    pass

_BITMAP_BYTES: Final = 120
"""Bytes of a bitmap in addition to its serialized form..."""


_CONTAINER_BYTES: Final = 56
"""... and of each of its containers (measured with glibc's `mallinfo2`)."""


_TOPIC_BYTES: Final = 300
"""Bytes of a topic: its bitmap, its key, and its dictionary entry."""


_MESSAGE_BYTES: Final = 4
"""Bytes of a message in the bitmaps of its channel and topic."""


def bytes_of(bitmap: BitMap) -> int:
    """Return the bitmap's size in memory."""
    containers: int = bitmap.get_statistics()["n_containers"]
    return _BITMAP_BYTES + sys.getsizeof(bitmap) + _CONTAINER_BYTES * containers


def _bytes(*maps: BitMap) -> int:
    return sum(map(bytes_of, maps))


@dataclass
class ChannelMessages:
    """The IDs of one channel's messages."""

    all: BitMap
    topics: dict[str, BitMap]
    """Messages by topic key, with the topics of the newest messages last."""
    wildcards: BitMap
    """Messages that mention everyone."""
    used_at: int = 0
    """The number of the last use (`UnreadIndex.questions`), here and below."""
    counted: int = 0
    """The size in bytes that the index has counted, here and below."""
    version: int = field(default_factory=next_version)
    """Changes when its messages or the spelling of its topics change."""
    made: dict[Hashable, bytes] = field(default_factory=dict)
    """A cache for callers, by their keys, cleared by the next change."""
    _stored: int = 0
    """The size of the bitmaps in bytes."""

    def __post_init__(self) -> None:
        topics = sum(_TOPIC_BYTES - 2 * _BITMAP_BYTES + bytes_of(t) for t in self.topics.values())
        self._stored = _bytes(self.all, self.wildcards) + topics

    def changed(self) -> None:
        """Update the version and clear the cache."""
        self.version = next_version()
        self.made.clear()

    def add(self, ids: BitMap, key: str) -> None:
        """Add messages of a topic."""
        self.changed()
        self.all |= ids
        topic = self.topics.pop(key, None)
        if topic is None:
            self._stored += _TOPIC_BYTES
            topic = BitMap()
        self.topics[key] = topic  # The topic comes last now.
        topic |= ids
        self._stored += _MESSAGE_BYTES * len(ids)

    def take_out(self, ids: BitMap, key: str) -> None:
        """Remove messages of a topic."""
        self.changed()
        self.all -= ids
        self.wildcards -= ids
        self._stored -= _MESSAGE_BYTES * len(ids)
        topic = self.topics.get(key, BitMap()) - ids
        if topic:
            self.topics[key] = topic
        elif self.topics.pop(key, None) is not None:
            self._stored -= _TOPIC_BYTES

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return self._stored + sum(len(item) for item in self.made.values())


@dataclass
class DirectMessages:
    """The IDs of one direct conversation's messages."""

    all: BitMap
    used_at: int = 0
    counted: int = 0

    @property
    def size(self) -> int:
        """Bytes in memory."""
        return bytes_of(self.all)


@dataclass
class ReadState:
    """The messages that one user has read, and those with the user's sparse flags, by flag."""

    read: BitMap
    flagged: dict[Flag, BitMap]
    used_at: int = 0
    counted: int = 0
    channel_ids: Sequence[int] = ()
    """The channels that can have unread messages, cached..."""
    channels_of: tuple[int, int] = (0, 0)
    """... for these versions of the subscriptions and channels."""
    fresh: dict[int, "ChannelUnread"] = field(default_factory=dict)
    """Unread messages of channels, cached..."""
    fresh_of: tuple[int, int] = (0, 0)
    """... for these versions of the subscriptions and channels."""
    touched: BitMap = field(default_factory=BitMap)
    """Messages that were marked since then."""
    unread: "Unread | None" = None
    """All unread messages, cached..."""
    unread_of: tuple[int, int, int] = (0, 0, 0)
    """... for these versions of the index, the subscriptions, and the channels."""

    def with_any(self, flags: Flag) -> BitMap:
        """Return the messages that have one of the flags."""
        return BitMap.union(BitMap(), *(ids for flag, ids in self.flagged.items() if flag & flags))

    @property
    def size(self) -> int:
        """Bytes in memory."""
        result = _bytes(self.read, self.touched, *self.flagged.values())
        result += sum(item.size for item in self.fresh.values())
        if self.unread is not None:
            result += _bytes(self.unread.all, self.unread.mentions, *self.unread.directs.values())
        return result

    def forget_found(self) -> bool:
        """Clear the caches, which are several times as large as the rest. Return whether there were
        any."""
        had_some = bool(self.fresh) or self.unread is not None
        self.fresh, self.fresh_of, self.touched = {}, (0, 0), BitMap()
        self.unread, self.unread_of = None, (0, 0, 0)
        return had_some


class ChannelUnread(NamedTuple):
    """A user's unread messages in a channel."""

    version: int
    """The version of the channel's messages."""
    since: int
    """The value of `State.unread_since` at that time."""
    ids: BitMap
    """The unread messages: the channel's own bitmap if all of them are unread."""
    mentioning: BitMap
    """The unread messages that mention everyone, and so the user."""
    size: int
    """Bytes in memory, without the channel's own bitmap."""


@dataclass
class Unread:
    """A user's unread messages, by conversation. Cached: don't change it."""

    all: BitMap
    channels: dict[int, BitMap] = field(default_factory=dict)
    """By channel ID, shared with `ReadState.fresh`."""
    directs: dict[int, BitMap] = field(default_factory=dict)
    """By conversation ID."""
    mentions: BitMap = field(default_factory=BitMap)


@dataclass
class MissingBitmaps:
    """The data that must be loaded before a user's unread messages are known."""

    reader: bool
    channel_ids: list[int]
    direct_ids: list[int]

    def __bool__(self) -> bool:
        return bool(self.reader or self.channel_ids or self.direct_ids)
