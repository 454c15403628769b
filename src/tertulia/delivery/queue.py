"""Event queues in memory, and the numbering of their events.

Each entry of the log owns a range of IDs: the lower part for the entry's events, which may be
several, and the upper part for transient events after it. So IDs grow with the log; a cursor shows,
on any node and after any restart, what its client has seen; and a transient event never moves a
cursor past an entry that its client hasn't seen.

A queue's ranges are counted from an entry near its start, so that its IDs fit in 31 bits, as some
clients store them. When a queue's IDs are nearly used up, after five million entries or more, it
ends, and its client registers another one. Many queues count from the same entry, and share encoded
events.

If transient events use up the range after an entry, an empty entry is written (`EventIdsUsedUp`)
that provides new IDs.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Final, Protocol
from zlib import crc32

import msgspec
from msgspec import Struct

from tertulia.model.queues import QueueRecord, Registration

LARGEST: Final = 2**31 - 1
"""The largest ID."""
_STEP: Final = 2**19
"""The distance between entries from which queues count."""
_SPREAD: Final = 2**29
"""Queues end at different points in the last part of this size, so that they don't all end
together."""


class Numbering(Struct, frozen=True):
    """How a queue's event IDs are counted."""

    base: int
    """The entry where counting starts."""
    stride: int
    """IDs per entry."""
    own: int
    """The number of these IDs that are for the entry's own events."""
    largest: int

    def of_entry(self, seq: int, index: int) -> int:
        """Return the ID of event number `index` of an entry. Raise OverflowError if it doesn't have
        that many."""
        if index >= self.own or seq < self.base:
            raise OverflowError(f"event {index} of entry {seq} has no ID in this queue")
        return (seq - self.base) * self.stride + index

    def transient(self, seq: int, count: int) -> int:
        """Return the ID of transient event number `count` after the entry."""
        return (seq - self.base) * self.stride + self.own + count

    def end_of(self, seq: int) -> int:
        """Return a cursor after all events of the entry, and before the transient ones."""
        return (seq - self.base) * self.stride + self.own - 1

    def begin_of(self, seq: int) -> int:
        """Return the smallest ID of the entry."""
        return (seq - self.base) * self.stride

    def seq_of(self, event_id: int) -> int:
        """Return the entry whose range contains the ID."""
        return self.base + event_id // self.stride

    def is_complete(self, cursor: int) -> bool:
        """Return whether a client with this cursor has all events of the cursor's entry. It does if
        the cursor is a transient event or the entry's last event."""
        return cursor % self.stride >= self.own - 1


_LEGACY: Final = Numbering(0, 1 << 20, 1 << 19, 2**53)


def numbering_of(record: QueueRecord) -> Numbering:
    """Return the queue's numbering. Queues that count alike share the object."""
    return _LEGACY if record.counted_from is None else numbering_from(record.counted_from)


@cache
def numbering_from(base: int) -> Numbering:
    """Return the numbering of queues that count from this entry."""
    return Numbering(base, 256, 128, LARGEST)


def base_for(seq: int) -> int:
    """Return the entry from which a queue that begins here should count."""
    return seq - seq % _STEP


def last_seq(record: QueueRecord) -> int:
    """Return the last entry that the queue has IDs for."""
    numbering = numbering_of(record)
    early = crc32(record.id.encode()) % _SPREAD if numbering is not _LEGACY else 0
    return numbering.seq_of(numbering.largest - early) - 1


def id_of_event(event: bytes) -> int:
    """Return the ID at the beginning of an encoded event: `{"id":123,…`."""
    return int(event[6 : event.index(b",", 6)])


class MonotonicClock:
    """UNIX seconds that advance steadily from the system clock's first value."""

    def __init__(
        self,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create a clock. `clock` returns UNIX seconds and may jump; `elapsed` is monotonic."""
        self._clock = clock
        self._elapsed = elapsed
        self._began = clock() - elapsed()

    def __call__(self) -> float:
        return self._began + self._elapsed()

    @property
    def ahead(self) -> float:
        """The number of seconds that the system clock is ahead of this one."""
        return self._clock() - self()


PENDING_TRANSIENTS = 100
"""The most transient events that a queue keeps for its next poll. Beyond it, the oldest are
dropped."""


@lru_cache(maxsize=1000)
def _shared(registration: Registration) -> Registration:
    """Return one object for all queues with the same registration, because with thousands of
    queues, most of the time is spent on cache misses."""
    return registration


class Queue:
    """A queue that this node knows. It doesn't contain entries, which are in the log."""

    __slots__ = (
        "ended",
        "is_found",
        "last_seq",
        "last_transient",
        "numbering",
        "record",
        "seen_at",
        "seen_through",
        "session_id",
        "transients",
        "turn",
        "user_id",
        "waiter",
        "written_at",
    )

    def __init__(self, record: QueueRecord, seen_at: float, *, is_found: bool = False) -> None:
        registration = _shared(record.registration)
        self.record = msgspec.structs.replace(record, registration=registration)
        self.user_id = record.user_id
        self.numbering = numbering_of(record)
        self.last_seq = last_seq(record)
        """The last entry that the queue has IDs for. The queue ends after it."""
        # For the registry
        self.is_found = is_found
        """Whether it was read from the database, so that it may have events, from another node or
        before a restart, that this node doesn't know."""
        self.seen_at = seen_at
        self.written_at = seen_at
        """The `seen_at` that was last stored."""
        self.ended = False
        # For reading
        self.seen_through = (0, 0)
        """A cursor, and the entry up to which no events follow it for this queue. These entries
        aren't read again, even if the user can see more by then."""
        self.transients: deque[tuple[int, bytes]] = deque(maxlen=PENDING_TRANSIENTS)
        self.last_transient = 0
        # For delivery
        self.waiter: Waiter | None = None
        """The waiter of the poll that waits, if any."""
        self.session_id: int | None = None
        """The browser session of this poll; None for an API key."""
        self.turn = 0
        """The number of polls so far. Only the newest one counts."""

    def is_of(self, user_id: int, key_id: int | None) -> bool:
        """Whether the user registered the queue with this access key (None: without one)."""
        return self.user_id == user_id and self.record.registration.key_id == key_id

    def acknowledge(self, cursor: int) -> None:
        """Record that the client has all events up to the cursor."""
        while self.transients and self.transients[0][0] <= cursor:
            self.transients.popleft()
        if cursor > self.last_transient:
            self.last_transient = cursor

    def known_through(self, cursor: int) -> int:
        """Return the entry up to which a client with this cursor has all events."""
        seen_cursor, seen_entry = self.seen_through
        seq = self.numbering.seq_of(cursor)
        if cursor == seen_cursor and seen_entry >= seq:
            return seen_entry
        return seq if self.numbering.is_complete(cursor) else seq - 1

    def transient_ids_left(self, seq: int) -> int:
        """Return the number of transient events that may follow the entry."""
        used = max(self.numbering.transient(seq, 0), self.last_transient + 1)
        return self.numbering.begin_of(seq + 1) - used

    def next_transient_id(self, seq: int) -> int | None:
        """Return the ID of the next transient event after the entry; None if its range is used
        up."""
        event_id = max(self.numbering.transient(seq, 0), self.last_transient + 1)
        if self.numbering.seq_of(event_id) != seq:
            return None
        self.last_transient = event_id
        return event_id


class Waiter(Protocol):
    """Waits for a poll's response. One of the methods is called, once."""

    def answer(self, events: Sequence[bytes]) -> None:
        """Return these events to the client; none if a newer poll has arrived or the server
        stops."""

    def fail(self, error: Exception) -> None:
        """Return an error to the client."""


class FutureWaiter:
    """A waiter for coroutines."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: asyncio.Future[Sequence[bytes]] = asyncio.get_running_loop().create_future()

    def answer(self, events: Sequence[bytes]) -> None:
        if not self.events.done():
            self.events.set_result(events)

    def fail(self, error: Exception) -> None:
        if not self.events.done():
            self.events.set_exception(error)
