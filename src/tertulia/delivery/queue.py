"""One event queue, as a node has it in memory, and what waits for its events."""

import asyncio
from collections import deque
from collections.abc import Sequence
from functools import lru_cache
from typing import Protocol

import msgspec

from tertulia.delivery import event_ids
from tertulia.model.queues import QueueRecord, Registration

PENDING_TRANSIENTS = 100
"""Transient events that a queue keeps for its next poll; beyond that the oldest are dropped."""


@lru_cache(maxsize=1000)
def _shared(registration: Registration) -> Registration:
    """One object for all queues that are registered alike: among thousands of queues most of the
    time goes by for fetching what is looked at into the processor's cache."""
    return registration


class Queue:
    """A queue that this node knows. It holds no entries: those are the log's."""

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
        self.numbering = event_ids.of_queue(record)
        self.last_seq = event_ids.last_seq(record)
        """The last entry that the queue has IDs for: then it ends."""
        # The registry's.
        self.is_found = is_found
        """Whether it was found in the database: then it may have given out events, at another node
        or before this one started, of which this node does not know."""
        self.seen_at = seen_at
        self.written_at = seen_at
        """The `seen_at` that was last stored."""
        self.ended = False
        # The readers': a cursor, and what comes after it.
        self.seen_through = (0, 0)
        """A cursor, and the entry up to which nothing follows it for this queue: these entries are
        not looked at again, even when the user may see more by then."""
        self.transients: deque[tuple[int, bytes]] = deque(maxlen=PENDING_TRANSIENTS)
        self.last_transient = 0
        # Delivery's.
        self.waiter: Waiter | None = None
        """What waits for the answer of a poll; None where none waits."""
        self.session_id: int | None = None
        """The browser's session that this poll came with; None for an API key."""
        self.turn = 0
        """How many polls have come: the newest is the one that counts."""

    def acknowledge(self, cursor: int) -> None:
        """The client has every event up to the cursor."""
        while self.transients and self.transients[0][0] <= cursor:
            self.transients.popleft()
        if cursor > self.last_transient:
            self.last_transient = cursor

    def known_through(self, cursor: int) -> int:
        """The entry up to which a client with this cursor has everything."""
        seen_cursor, seen_entry = self.seen_through
        seq = self.numbering.seq_of(cursor)
        if cursor == seen_cursor and seen_entry >= seq:
            return seen_entry
        return seq if self.numbering.is_complete(cursor) else seq - 1

    def transient_ids_left(self, seq: int) -> int:
        """How many transient events may come after the entry."""
        used = max(self.numbering.transient(seq, 0), self.last_transient + 1)
        return self.numbering.begin_of(seq + 1) - used

    def next_transient_id(self, seq: int) -> int | None:
        """The ID of the next transient event after the entry; None when its range is used up."""
        event_id = max(self.numbering.transient(seq, 0), self.last_transient + 1)
        if self.numbering.seq_of(event_id) != seq:
            return None
        self.last_transient = event_id
        return event_id


class Waiter(Protocol):
    """What waits for a poll's answer. It gets one call of either."""

    def answer(self, events: Sequence[bytes]) -> None:
        """These are the events; none where a newer poll has come, or the server stops."""

    def fail(self, error: Exception) -> None:
        """There will be none."""


class FutureWaiter:
    """Waits in a coroutine."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: asyncio.Future[Sequence[bytes]] = asyncio.get_running_loop().create_future()

    def answer(self, events: Sequence[bytes]) -> None:
        if not self.events.done():
            self.events.set_result(events)

    def fail(self, error: Exception) -> None:
        if not self.events.done():
            self.events.set_exception(error)
