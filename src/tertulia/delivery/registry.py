"""The event queues that a node knows: registered here or read from the database.

Idle time is measured with a monotonic clock. The database stores times of the system clock, which
can be set.
"""

import logging
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Final

from tertulia.delivery.queue import MonotonicClock, Queue
from tertulia.model.errors import NoSuchQueue
from tertulia.model.queues import QueueRecord
from tertulia.store import queries
from tertulia.store.notes import QueueSeen
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.delivery")

SWEEP_SECONDS: Final = 30
"""The interval, in seconds, between checks for idle queues."""
SPARED_SECONDS: Final = 4 * SWEEP_SECONDS
"""The number of seconds, in addition to its timeout, for which a queue must be idle in the
database. Another node may serve it, and stores that only from time to time."""
JUMP_SECONDS: Final = 5
"""The change of the system clock, in seconds, that counts as a jump."""
REMEMBERED: Final = 10_000
"""The number of ended queues that a node remembers while the database may still have them."""


class QueueRegistry:
    """The queues that this node knows."""

    def __init__(
        self,
        store: Store,
        *,
        queues_per_user: int,
        clock: Callable[[], float],
        elapsed: Callable[[], float],
    ) -> None:
        """Create the registry. `clock` returns UNIX seconds and may jump; `elapsed` is
        monotonic."""
        self._store = store
        self._queues_per_user = queues_per_user
        self._now = MonotonicClock(clock, elapsed)
        self._ahead = self._now.ahead
        self._started = self._now()
        """The start time. A queue read from the database doesn't count as idle before this, so that
        time without a server doesn't count."""
        self._queues: dict[str, Queue] = {}
        self._by_user: dict[int, dict[str, Queue]] = {}
        self._ended: OrderedDict[str, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._queues)

    def get(self, queue_id: str) -> Queue | None:
        """Return the queue if this node knows it."""
        return self._queues.get(queue_id)

    def all(self) -> list[Queue]:
        """Return every queue that this node knows."""
        return list(self._queues.values())

    def of(self, user_ids: Iterable[int]) -> list[Queue]:
        """Return the queues of these users that this node knows."""
        by_user = self._by_user
        return [
            queue
            for user_id in user_ids
            if user_id in by_user
            for queue in by_user[user_id].values()
        ]

    async def find(self, queue_id: str, user_id: int, key_id: int | None = None) -> Queue:
        """Return the user's queue, reading it from the database if necessary. `key_id` is the
        access key of the request, which has access only to its own queues. Raise NoSuchQueue."""
        queue = self._queues.get(queue_id)
        if queue is None:
            record = await self._store.read(queries.queue, queue_id)
            if (
                record is None
                or queue_id in self._ended
                or self._now() - self._own_time(record[1]) >= record[0].idle_timeout
            ):
                raise NoSuchQueue(queue_id)
            queue = self._queues.get(queue_id)
            if queue is None:
                queue = Queue(record[0], self._now(), is_found=True)
                self._insert(queue)
        if not queue.is_of(user_id, key_id):
            raise NoSuchQueue(queue_id)
        return queue

    # Adding and removing

    def has_room(self, user_id: int) -> bool:
        """Return whether the user may register another queue."""
        queues = self._by_user.get(user_id, {})
        return len(queues) < self._queues_per_user or any(q.waiter is None for q in queues.values())

    def add(self, record: QueueRecord) -> Queue | None:
        """Add a registered queue. If its user has too many, return the one that was idle
        longest."""
        self._insert(Queue(record, self._now()))
        queues = self._by_user[record.user_id]
        if len(queues) <= self._queues_per_user:
            return None
        idle = (q for q in queues.values() if q.waiter is None and q.record.id != record.id)
        return min(idle, key=lambda q: q.seen_at, default=None)

    def remove(self, queue_id: str) -> Queue | None:
        """Remove a queue that ended on any node, and return it if this node knew it. It isn't read
        from the database again."""
        self._ended[queue_id] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)
        queue = self._queues.pop(queue_id, None)
        if queue is None:
            return None
        queue.ended = True
        queues = self._by_user[queue.user_id]
        del queues[queue_id]
        if not queues:
            del self._by_user[queue.user_id]
        return queue

    def _insert(self, queue: Queue) -> None:
        self._queues[queue.record.id] = queue
        self._by_user.setdefault(queue.user_id, {})[queue.record.id] = queue

    # Idle queues

    def now(self) -> float:
        """Return the time of the clock that `Queue.seen_at` uses."""
        return self._now()

    def touch(self, queue: Queue) -> None:
        """Record that the queue is being polled."""
        queue.seen_at = self._now()

    def idle(self) -> list[Queue]:
        """Return the queues that have been idle for too long, as far as this node knows."""
        self._notice_jump()
        now = self._now()
        queues = []
        for queue in self._queues.values():
            if queue.waiter is not None:
                queue.seen_at = now
            elif self._is_idle(queue):
                queues.append(queue)
        return queues

    async def is_abandoned(self, queue: Queue) -> bool:
        """Return whether an idle queue wasn't polled on other nodes either."""
        if self._store.is_shared and (
            record := await self._store.read(queries.queue, queue.record.id)
        ):
            queue.seen_at = max(queue.seen_at, self._own_time(record[1]))
        return not queue.ended and queue.waiter is None and self._is_idle(queue)

    async def abandoned_elsewhere(self) -> list[str]:
        """Return the IDs of queues in the database that no node serves."""
        self._notice_jump()
        timestamps = self._now() + self._ahead, self._started + self._ahead
        results = await self._store.read(queries.idle_queues, *timestamps, SPARED_SECONDS)
        return [queue_id for queue_id in results if queue_id not in self._queues]

    async def surplus(self) -> list[str]:
        """Return the IDs of queues that exceed their user's limit across all nodes: those polled
        least recently, as far as the database knows, and not being polled."""
        if not self._store.is_shared:
            return []
        results = await self._store.read(queries.surplus_queues, self._queues_per_user)
        known = self._queues
        return [text for text in results if text not in known or known[text].waiter is None]

    def take_unwritten(self) -> list[QueueSeen]:
        """Return the times when queues were last polled, for those that the database should
        update."""
        notes = []
        for queue in self._queues.values():
            if queue.seen_at - queue.written_at >= queue.record.idle_timeout / 4:
                queue.written_at = queue.seen_at
                notes.append(QueueSeen(queue.record.id, int(queue.seen_at + self._ahead)))
        return notes

    def _is_idle(self, queue: Queue) -> bool:
        spared = SPARED_SECONDS if self._store.is_shared else 0
        return self._now() - queue.seen_at >= queue.record.idle_timeout + spared

    def _own_time(self, seen_at: float) -> float:
        """Convert a stored time to this node's monotonic clock."""
        self._notice_jump()
        return max(seen_at - self._ahead, self._started)

    def _notice_jump(self) -> None:
        """If the system clock was set, ignore the times in the database until each node has stored
        again when its queues were polled."""
        ahead = self._now.ahead
        if abs(ahead - self._ahead) < JUMP_SECONDS:
            return
        logger.warning(
            "the system clock jumped", extra={"fields": {"seconds": round(ahead - self._ahead)}}
        )
        self._ahead = ahead
        self._started = self._now()
        for queue in self._queues.values():
            queue.written_at = -math.inf
