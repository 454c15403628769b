"""The numbering of events.

Each entry of the log owns a range of IDs: the lower part for the entry's own events (it may become
several), the upper for transient events after it. So IDs grow with the log, a cursor says by itself
up to where its client has come, on whichever node and after whatever restart, and a transient event
never carries a cursor past an entry that its client has not seen.

The ranges of a queue are counted from an entry near its beginning, so that its IDs fit 31 bits, as
some clients keep them. A queue whose IDs come near the end of that goes, and its client registers
another one: after five million entries and more. Many queues count from the same entry, and
share the events as they were encoded.

Where so many transient events follow an entry that its range is used up, an entry is written that
says nothing else (`EventIdsUsedUp`), and there are IDs again.
"""

import time
from collections.abc import Callable
from functools import cache
from typing import Final
from zlib import crc32

from msgspec import Struct

from tertulia.model.queues import QueueRecord

LARGEST: Final = 2**31 - 1
"""What an ID is at most."""
_STEP: Final = 2**19
"""Entries between two from which queues count."""
_SPREAD: Final = 2**29
"""So that not all queues end at once, some do when so much is left."""


class Numbering(Struct, frozen=True):
    """How the IDs of a queue's events are counted."""

    base: int
    """The entry from which."""
    stride: int
    """IDs of each entry."""
    own: int
    """How many of them are for the entry's own events."""
    largest: int

    def of_entry(self, seq: int, index: int) -> int:
        """The ID of an entry's event number `index`. OverflowError where it has none."""
        if index >= self.own or seq < self.base:
            raise OverflowError(f"event {index} of entry {seq} has no ID in this queue")
        return (seq - self.base) * self.stride + index

    def transient(self, seq: int, count: int) -> int:
        """The ID of transient event number `count` after the entry."""
        return (seq - self.base) * self.stride + self.own + count

    def end_of(self, seq: int) -> int:
        """A cursor past all events of the entry, and before all transient ones after it."""
        return (seq - self.base) * self.stride + self.own - 1

    def begin_of(self, seq: int) -> int:
        """The least ID of the entry."""
        return (seq - self.base) * self.stride

    def seq_of(self, event_id: int) -> int:
        """The entry in whose range the ID is."""
        return self.base + event_id // self.stride

    def is_complete(self, cursor: int) -> bool:
        """Whether a client with this cursor has all events of the cursor's entry.

        It has when the cursor is a transient event's, or the entry's end. Of an entry with several
        events it may have seen only some.
        """
        return cursor % self.stride >= self.own - 1


_OF_OLD: Final = Numbering(0, 1 << 20, 1 << 19, 2**53)


def of_queue(record: QueueRecord) -> Numbering:
    """How the queue's events are counted. Queues that are counted alike have the same one."""
    return _OF_OLD if record.counted_from is None else counted_from(record.counted_from)


@cache
def counted_from(base: int) -> Numbering:
    """The numbering of queues that count from that entry."""
    return Numbering(base, 256, 128, LARGEST)


def base_for(seq: int) -> int:
    """From which entry a queue that begins at this one is to be counted."""
    return seq - seq % _STEP


def last_seq(record: QueueRecord) -> int:
    """The last entry that the queue has IDs for."""
    numbering = of_queue(record)
    early = crc32(record.id.encode()) % _SPREAD if numbering is not _OF_OLD else 0
    return numbering.seq_of(numbering.largest - early) - 1


def of_encoded(event: bytes) -> int:
    """The ID of an encoded event, which begins with it: `{"id":123,…`."""
    return int(event[6 : event.index(b",", 6)])


class MonotonicClock:
    """UNIX seconds by the machine's clock as it was at first; from then on, what has passed."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells UNIX seconds and may jump; `elapsed` never does."""
        self._clock = clock
        self._elapsed = elapsed
        self._began = clock() - elapsed()

    def __call__(self) -> float:
        return self._began + self._elapsed()

    @property
    def ahead(self) -> float:
        """By how many seconds the machine's clock is ahead of this one."""
        return self._clock() - self()
