"""Work that several callers ask for at the same time is done once for all of them."""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Hashable, Iterable, Sequence
from typing import Any

from tertulia.model.errors import Unavailable


class SingleFlight:
    """Runs work once for all callers that ask for the same key while it runs.

    The work belongs to none of them. It continues when a caller is cancelled, and it runs in a
    context of its own, so that reads count for the server and traces don't mix."""

    def __init__(self, refusal: str) -> None:
        """`refusal` is the sentence where too much is being done."""
        self._refusal = refusal
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def do(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]], most: int
    ) -> None:
        """Do the work, or wait for that which was begun under this key. Raises what the work
        raises; Unavailable where work under `most` keys is being done."""
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= most:
                raise Unavailable(self._refusal)
            task = asyncio.create_task(work(), context=contextvars.Context())
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        await asyncio.shield(task)


Waiting = Sequence[tuple[int, float]]
"""Things by their IDs, each with when it is due in UNIX seconds, the first ones first."""


class FairTasks:
    """Those that are under way on one node, each about one thing."""

    def __init__(
        self,
        limit: int,
        of_person: int,
        person_of: Callable[[int], int],
        logger: logging.Logger,
        failure: str,
    ) -> None:
        """`limit` are all at a time, and `of_person` those for whose things `person_of` says the
        same. A task that raises something is logged as this `failure`."""
        self._limit = limit
        self._of_person = of_person
        self._person_of = person_of
        self._logger = logger
        self._failure = failure
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.ended: Callable[[], None] = lambda: None
        """Called when there is room for another one."""

    def __len__(self) -> int:
        """How many are under way."""
        return len(self._tasks)

    def due(self, waiting: Waiting, now: float) -> list[int]:
        """Those that are due and have room, in order."""
        return self._with_room(one for one, due_at in waiting if due_at <= now)

    def pause(self, waiting: Waiting, now: float, longest: float) -> float:
        """Seconds until the first of those is due that would have room; what waits for room is
        begun when `ended` was called."""
        times = dict(waiting)
        following = self._with_room(times)[:1]
        until = min((times[one] - now for one in following), default=longest)
        return min(max(until, 0.1), longest)

    def begin(self, one: int, work: Coroutine[Any, Any, None]) -> None:
        """Do the work about it."""
        task = asyncio.create_task(work)
        self._tasks[one] = task
        task.add_done_callback(lambda task: self._done(one, task))

    async def close(self) -> None:
        """End what is under way. Whoever takes it on a lease does it again when that is over."""
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def settled(self) -> None:
        """Wait until nothing is under way."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _with_room(self, things: Iterable[int]) -> list[int]:
        busy = Counter(map(self._person_of, self._tasks))
        found: list[int] = []
        for one in things:
            if len(self._tasks) + len(found) >= self._limit:
                break
            person = self._person_of(one)
            if one not in self._tasks and busy[person] < self._of_person:
                busy[person] += 1
                found.append(one)
        return found

    def _done(self, one: int, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(one, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error(self._failure, exc_info=error)
        self.ended()
