"""Recent writes, so that a command that read the database before it decides knows whether that is
still true (see `Conflict`)."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable
from itertools import takewhile
from sys import getsizeof

from tertulia.model.messages import Message

MAX_BYTES = 8 * 1024 * 1024
"""Memory for remembered items, about 50,000 messages. Of forgotten ones, only `floor` is known: the
latest entry that wrote to them. A command that read the database before `floor` reads it again."""
_ENTRY_BYTES = 170
"""Of an ID with its place in the dictionary (measured)."""


def message_in(thing: Hashable) -> int | None:
    """Return the message that the item is or belongs to; None for a conversation."""
    match thing:
        case int():
            return thing
        case (("reactions" | "submessages"), int(message_id), *_):
            return message_id
        case _:
            return None


def entries_of(message: Message) -> tuple[Hashable, ...]:
    """Return the items that are written when the message changes, or its whole topic is renamed."""
    channel_id, key, _ = message.conversation
    return message.id, renaming(channel_id, key)


def renaming(channel_id: int | None, key: str) -> Hashable:
    """Return the item that is written when a whole topic is renamed, instead of each message."""
    return "renamed", channel_id, key


def moving(channel_id: int | None, key: str) -> Hashable:
    """Return the item that is written when messages are moved to a topic or out of it, but not when
    messages are sent."""
    return "moved", channel_id, key


def _size(item: Hashable) -> int:
    """Return the bytes that the item takes in memory."""
    if not isinstance(item, tuple):
        return _ENTRY_BYTES
    # Names such as "reactions" are shared.
    return _ENTRY_BYTES + getsizeof(item) + sum(map(getsizeof, item[1:]))


class RecentWrites:
    """The newest entry that wrote to each item: a message by its ID, a conversation by its key,
    additions to a message by a name, its ID, and more."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()
        self.size = 0
        """Bytes of the remembered items."""
        self.floor = 0

    def note(self, things: Iterable[Hashable], seq: int) -> None:
        """Note that the entry writes to these items."""
        for thing in things:
            if thing not in self._last:
                self.size += _size(thing)
            self._last[thing] = seq
            self._last.move_to_end(thing)
        while self.size > MAX_BYTES:
            oldest, self.floor = self._last.popitem(last=False)
            self.size -= _size(oldest)

    def since(self, seq: int, things: Iterable[Hashable]) -> bool:
        """Whether one of the items was, or may have been, written after that entry."""
        if self.floor > seq:
            return True
        return any(self._last.get(thing, 0) > seq for thing in things)

    def after(self, seq: int) -> list[Hashable] | None:
        """Return all items that were written after that entry, newest first; None if some are
        forgotten."""
        if self.floor > seq:
            return None
        newest_first = reversed(self._last.items())
        return [thing for thing, _ in takewhile(lambda written: written[1] > seq, newest_first)]
