"""One event queue, as a node has it in memory."""

import asyncio
from collections import deque

from tertulia.delivery import event_ids
from tertulia.model.queues import QueueRecord

PENDING_TRANSIENTS = 100


class Queue:
    """A queue that this node has heard of."""

    __slots__ = (
        "ended",
        "last_transient",
        "poll",
        "quiet",
        "record",
        "seen_at",
        "transients",
        "turn",
        "written_at",
    )

    def __init__(self, record: QueueRecord, seen_at: float) -> None:
        self.record = record
        self.seen_at = seen_at
        self.written_at = seen_at
        self.transients: deque[tuple[int, bytes]] = deque(maxlen=PENDING_TRANSIENTS)
        self.last_transient = 0
        self.poll: Poll | None = None
        self.quiet = (0, 0)
        """A cursor, and the entry up to which nothing came after it for this queue. It is not
        looked at again, later, when its user may see more than they could then."""
        self.turn = 0
        """How many polls have come: the newest is the one that counts."""
        self.ended = False

    @property
    def user_id(self) -> int:
        return self.record.user_id

    def transient_id(self, seq: int) -> int | None:
        """The next ID for what is not written down; None when the stretch is used up."""
        event_id = max(event_ids.transient(seq, 0), self.last_transient + 1)
        if event_ids.seq_of(event_id) != seq:
            return None
        self.last_transient = event_id
        return event_id


class Poll:
    """One waiting request. `answer` gets the events, or an exception to tell the client."""

    __slots__ = ("answer", "heartbeat", "session_id")

    def __init__(
        self,
        answer: "asyncio.Future[list[bytes]]",
        heartbeat: asyncio.TimerHandle,
        session_id: int | None,
    ) -> None:
        self.answer = answer
        self.heartbeat = heartbeat
        self.session_id = session_id
        """The browser's session, where one asks."""
