"""Requests that wait until this node has come to where their clients have been at others."""

import asyncio
import heapq
from collections.abc import Sequence
from typing import Final

from tertulia.log.replica import Replica
from tertulia.log.requests import Inbox
from tertulia.model.changes import Entry
from tertulia.model.errors import Unavailable
from tertulia.store.store import Store

BEHIND_SECONDS: Final = 2.0
"""How long a request waits at most."""
MOST_BEHIND: Final = 5000
"""Requests that may wait; beyond it they are refused."""
PAUSE_SECONDS: Final = 0.01
"""After reading the log, and so between two looks at the head, each for all that wait: whatever
clients say, there are no more."""
RETRY_SECONDS: Final = 0.2
"""The same where the last one failed."""

_Waiter = tuple[int, int, asyncio.Future[None]]
"""The number of an entry, one of its own, and what is done when the entry is there."""


class CatchingUp:
    """Waits for entries that this node does not have yet.

    Usually a notification brings them in a moment. It is not relied on: the log is read at once.
    Where that does not bring them, its head is looked at: what the head has not come to by then
    nobody was shown, for it was asked for before. Such a number is made up, or of a log that went
    back in time.
    """

    def __init__(self, store: Store, replica: Replica, inbox: Inbox) -> None:
        self._store = store
        self._replica = replica
        self._inbox = inbox
        self._waiting: list[_Waiter] = []
        """A heap."""
        self._asked = 0
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many wait."""
        return sum(not waiter[2].done() for waiter in self._waiting)

    @property
    def is_awaited(self) -> bool:
        """Whether somebody waits."""
        return bool(self._waiting)

    async def reached(self, seq: int) -> None:
        """Return when the state has the entry, or it is known that the log has none of that
        number. Unavailable where neither is so within `BEHIND_SECONDS`."""
        if seq > self._replica.position.seq:
            self._store.hear()  # It may lie there unread.
        if seq <= self._replica.position.seq:
            return
        if len(self._waiting) >= MOST_BEHIND:
            raise _behind_error()
        future = asyncio.get_running_loop().create_future()
        self._asked += 1
        heapq.heappush(self._waiting, (seq, self._asked, future))
        if self._task is None:
            self._task = asyncio.create_task(self._look_on(), name="log-catching-up")
        try:
            async with asyncio.timeout(BEHIND_SECONDS):
                await future
        except TimeoutError:
            raise _behind_error() from None

    def on_entries(self, _: Sequence[Entry]) -> None:
        """Entries were folded."""
        waiting, seq = self._waiting, self._replica.position.seq
        while waiting and waiting[0][0] <= seq:
            _finish(heapq.heappop(waiting))

    def on_reload(self) -> None:
        """The state was loaded again, and perhaps of another history: whoever waits looks at what
        there is now."""
        waiting, self._waiting = self._waiting, []
        for waiter in waiting:
            _finish(waiter)

    async def close(self) -> None:
        """Look no more, and refuse those who wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(Unavailable("The server is shutting down. Try again."))
        self._waiting = []

    async def _look_on(self) -> None:
        pause = PAUSE_SECONDS
        try:
            while self._waiting:
                self._inbox.add_growth()
                await asyncio.sleep(pause)
                if not self._waiting:
                    return
                asked = list(self._waiting)
                try:
                    head = await self._store.look()
                except Exception:  # It is `HeadWatch` that says so. Here there is another look.
                    pause = RETRY_SECONDS
                else:
                    pause = PAUSE_SECONDS
                    is_same = head.history == self._replica.position.history
                    for waiter in asked:
                        if not is_same or waiter[0] > head.seq:
                            _finish(waiter)
                self._waiting = [waiter for waiter in self._waiting if not waiter[2].done()]
                heapq.heapify(self._waiting)
        finally:
            self._task = None


def _finish(waiter: _Waiter) -> None:
    if not waiter[2].done():
        waiter[2].set_result(None)


def _behind_error() -> Unavailable:
    return Unavailable(
        "This node hasn't caught up with changes that you've already seen on another node."
        " Try again in a moment."
    )
