"""Running background tasks: once for all callers that need the result, or fairly between people."""

import asyncio
import contextvars
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Sequence
from typing import Any, TypeVar

from tertulia.model.errors import Unavailable
from tertulia.model.numbers import retry_pause

T = TypeVar("T")


class SingleFlight:
    """Runs work once for all callers that ask for the same key while it runs.

    The work belongs to none of the callers. It continues when a caller is canceled, and it runs in
    a separate context, so that reads count for the server and traces don't mix.
    """

    def __init__(self, refusal: str) -> None:
        """Use `refusal` as the error's text if too much is in progress."""
        self._refusal = refusal
        self._tasks: dict[Hashable, asyncio.Task[None]] = {}

    async def do(
        self, key: Hashable, work: Callable[[], Coroutine[Any, Any, None]], most: int
    ) -> None:
        """Do the work, or wait for work that was started with this key. Raise what the work raises,
        and Unavailable if work for `most` keys is in progress."""
        task = self._tasks.get(key)
        if task is None:
            if len(self._tasks) >= most:
                raise Unavailable(self._refusal)
            task = asyncio.create_task(work(), context=contextvars.Context())
            self._tasks[key] = task
            task.add_done_callback(lambda _: self._tasks.pop(key, None))
        await asyncio.shield(task)


class RetryLater(Exception):
    """A delivery to another server failed and can be retried. `str(error)` is the reason."""

    def __init__(self, reason: str, wait: float = 0.0) -> None:
        """Retry after at least `wait` seconds, which the other server asked for."""
        super().__init__(reason)
        self.wait = wait

    def pause(
        self, failures: int, first: float, longest: float, longest_wait: float, *, spread: float = 0
    ) -> float:
        """Return the seconds until the retry, as `retry_pause`, but at least `wait`, of which up to
        `longest_wait` counts."""
        pause = retry_pause(failures, first, longest, spread=spread)
        return max(pause, min(self.wait, longest_wait))


Waiting = Sequence[tuple[int, float]]
"""IDs and when they are due, in UNIX seconds, earliest first."""


class FairTasks:
    """One node's tasks, each for one item, with a limit for all and one for each person."""

    def __init__(
        self,
        limit: int,
        of_person: int,
        person_of: Callable[[int], int],
        logger: logging.Logger,
        failure: str,
    ) -> None:
        """Run up to `limit` tasks, and up to `of_person` with the same `person_of`. Exceptions are
        logged as `failure`."""
        self._limit = limit
        self._of_person = of_person
        self._person_of = person_of
        self._logger = logger
        self._failure = failure
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.wake: Callable[[], None] = lambda: None
        """Called when a task has ended, to start the next round."""

    def __len__(self) -> int:
        """Return the number of running tasks."""
        return len(self._tasks)

    async def round(
        self,
        waiting: Callable[[], Awaitable[Waiting]],
        lease: Callable[[list[int], float], Awaitable[Iterable[tuple[int, T]]]],
        work: Callable[[T], Coroutine[Any, Any, None]],
        clock: Callable[[], float],
        longest: float,
    ) -> float:
        """Start the tasks that are due. Return the seconds until the next round, at most `longest`.

        `lease` gets the items that can start and the time. It returns those that this node may work
        on now, each with the argument for `work`.
        """
        items, now = await waiting(), clock()
        if chosen := self.due(items, now):
            for item, leased in await lease(chosen, now):
                self.begin(item, work(leased))
            items = await waiting()
        return self.pause(items, clock(), longest)

    def due(self, waiting: Waiting, now: float) -> list[int]:
        """Return the due items that can start now, in order."""
        return self._with_room(task_id for task_id, due_at in waiting if due_at <= now)

    def pause(self, waiting: Waiting, now: float, longest: float) -> float:
        """Return the seconds until the next item is due that could start now. `wake` is called when
        others can start."""
        times = dict(waiting)
        following = self._with_room(times)[:1]
        until = min((times[time_id] - now for time_id in following), default=longest)
        return min(max(until, 0.1), longest)

    def begin(self, task_id: int, work: Coroutine[Any, Any, None]) -> None:
        """Start the task for an item."""
        task = asyncio.create_task(work)
        self._tasks[task_id] = task
        task.add_done_callback(lambda task: self._done(task_id, task))

    async def close(self) -> None:
        """Cancel all tasks. Leased items are retried when the lease ends."""
        left = list(self._tasks.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def settled(self) -> None:
        """Wait for all tasks."""
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _with_room(self, things: Iterable[int]) -> list[int]:
        busy = Counter(map(self._person_of, self._tasks))
        result: list[int] = []
        for item in things:
            if len(self._tasks) + len(result) >= self._limit:
                break
            person = self._person_of(item)
            if item not in self._tasks and busy[person] < self._of_person:
                busy[person] += 1
                result.append(item)
        return result

    def _done(self, task_id: int, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task_id, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error(self._failure, exc_info=error)
        self.wake()
