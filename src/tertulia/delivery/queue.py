"""One event queue, as a node has it in memory."""

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import Protocol

from tertulia.delivery import event_ids
from tertulia.model.queues import QueueRecord

PENDING_TRANSIENTS = 100


class Queue:
    """A queue that this node has heard of."""

    __slots__ = (
        "ended",
        "is_found",
        "last_transient",
        "poll",
        "record",
        "seen_at",
        "seen_through",
        "transients",
        "turn",
        "user_id",
        "written_at",
    )

    def __init__(self, record: QueueRecord, seen_at: float, *, is_found: bool = False) -> None:
        self.record = record
        self.is_found = is_found
        """Whether it was registered before this node came, or at another one: what it has given
        out then is not known here."""
        self.user_id = record.user_id
        self.seen_at = seen_at
        self.written_at = seen_at
        self.transients: deque[tuple[int, bytes]] = deque(maxlen=PENDING_TRANSIENTS)
        self.last_transient = 0
        self.poll: Poll | None = None
        self.seen_through = (0, 0)
        """A cursor, and the entry up to which nothing came after it for this queue: so far is not
        looked again, later, when its user may see more than they could then."""
        self.turn = 0
        """How many polls have come: the newest is the one that counts."""
        self.ended = False

    def transient_id(self, seq: int) -> int | None:
        """The next ID for what is not written down; None when the stretch is used up."""
        event_id = max(event_ids.transient(seq, 0), self.last_transient + 1)
        if event_ids.seq_of(event_id) != seq:
            return None
        self.last_transient = event_id
        return event_id


class Waiter(Protocol):
    """Who asked for events, and is told once: what there is, or what ended the wait."""

    def answer(self, events: Sequence[bytes]) -> None:
        """These are the events; none where a newer poll has come, or the server stops."""

    def fail(self, error: Exception) -> None:
        """There will be none."""


class Poll:
    """One waiting request."""

    __slots__ = ("session_id", "waiter")

    def __init__(self, waiter: Waiter, session_id: int | None) -> None:
        self.waiter = waiter
        self.session_id = session_id
        """The browser's session, where one asks."""


class Awaited:
    """Who waits in a coroutine."""

    __slots__ = ("events",)

    def __init__(self) -> None:
        self.events: asyncio.Future[Sequence[bytes]] = asyncio.get_running_loop().create_future()

    def answer(self, events: Sequence[bytes]) -> None:
        if not self.events.done():
            self.events.set_result(events)

    def fail(self, error: Exception) -> None:
        if not self.events.done():
            self.events.set_exception(error)
