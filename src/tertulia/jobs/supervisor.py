"""Runs jobs: again and again, each in its own task, whatever happens in one of them.

A job that fails is logged, tried again with growing pauses, and named by `Supervisor.failing` until
it succeeds; one round that an outage interrupts is no failure, but the next one is. A job whose
work consists of items sets an item that fails aside (`FailedItems`), and goes on with the others.
"""

import asyncio
import contextlib
import logging
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from tertulia.model.errors import Unavailable
from tertulia.model.numbers import counted
from tertulia.service.node import JobFigures
from tertulia.store.database import DatabaseError

logger = logging.getLogger("tertulia.jobs")

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
"""Seconds after a failure: each pause is twice the one before, up to this."""
REST_SECONDS: Final = 0.05
"""Between two rounds: what many commits brought is looked at once."""
FIRST_ROUND_SECONDS: Final = 0.25
"""After a start, mostly: first come those who wait for the node."""
ROUND_SECONDS: Final = 600.0
"""A round that takes longer is ended, and counts as failed."""
CLOSING_SECONDS: Final = 15.0
"""How long jobs have to end when the node does."""
SET_ASIDE: Final = 1000
"""Items of one job that are set aside at the same time, at most: the oldest are tried again."""


def pause_after(failures: int) -> float:
    """Seconds until the next attempt at what has failed so many times, or was interrupted."""
    return float(min(FIRST_PAUSE * 2 ** min(max(failures - 1, 0), 30), LONGEST_PAUSE))


def is_outage(error: Exception) -> bool:
    """Whether the database cannot be used just now, which says nothing of what was attempted."""
    return isinstance(error, Unavailable | DatabaseError)


@dataclass
class _Item:
    attempts: int
    until: float
    reason: str


class FailedItems:
    """The items of a job that failed, each left alone until its next attempt."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._items: OrderedDict[Hashable, _Item] = OrderedDict()

    def failed(self, key: Hashable, error: Exception) -> int:
        """The item failed once more. Returns how often it did in a row."""
        before = self._items.pop(key, None)
        attempts = 1 if before is None else before.attempts + 1
        self._items[key] = _Item(attempts, self._clock() + pause_after(attempts), _reason(error))
        while len(self._items) > SET_ASIDE:
            self._items.popitem(last=False)
        return attempts

    def done(self, key: Hashable) -> None:
        """The item succeeded, or is not to be done any more."""
        self._items.pop(key, None)

    def keep_only(self, keys: Iterable[Hashable]) -> None:
        """Forget all items but these: the others are gone."""
        kept = set(keys)
        for key in [key for key in self._items if key not in kept]:
            del self._items[key]

    def is_resting(self, key: Hashable) -> bool:
        """Whether the item's next attempt is still to come."""
        item = self._items.get(key)
        return item is not None and item.until > self._clock()

    def next_attempt(self) -> float | None:
        """Seconds until the next attempt at one of them, `FIRST_PAUSE` at least: one whose time
        has come may have to wait for others. None where nothing is set aside."""
        if not self._items:
            return None
        return max(min(item.until for item in self._items.values()) - self._clock(), FIRST_PAUSE)

    def reasons(self) -> dict[str, str]:
        """What is set aside, and why."""
        return {str(key): item.reason for key, item in self._items.items()}


async def _nothing() -> None:
    """What most jobs do at their end."""


@dataclass(eq=False)
class Job:
    """Work that a node does again and again."""

    name: str
    once: Callable[[], Awaitable[float]]
    """One round. Returns the seconds until the next one, should nobody `want` it before."""
    round_seconds: float = ROUND_SECONDS
    first_seconds: float = FIRST_ROUND_SECONDS
    """How long after a start the first round begins, unless it is wanted before."""
    close: Callable[[], Awaitable[None]] = _nothing
    """Ends what rounds have left running."""
    set_aside: FailedItems = field(default_factory=FailedItems)
    failures: int = 0
    """How often its rounds failed, in a row."""
    reason: str = ""
    """Why the last one did."""
    all_failures: int = 0
    """How many failed altogether."""
    is_interrupted: bool = False
    """Whether an outage ended the last round, and none before it failed."""
    succeeded_at: float = 0.0
    """When one last succeeded, in UNIX seconds; 0 where none has."""
    begin: Callable[[], None] | None = None
    """Has it `run`, where that waits for the first round to be due or wanted."""
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody wants the next round soon."""
        return self._wanted.is_set()

    def want(self) -> None:
        """Begin the next round soon."""
        self._wanted.set()
        if self.begin is not None:
            self.begin()

    async def run(self, report: Callable[["Job"], None]) -> None:
        """Do it until cancelled, from now on. `report` is called after the first round, and when
        the job begins or ceases to be in trouble."""
        was_in_trouble: bool | None = None
        if self.is_wanted:
            await asyncio.sleep(REST_SECONDS)
        while True:
            self._wanted.clear()
            try:
                async with asyncio.timeout(self.round_seconds):
                    pause = await self.once()
            except Exception as error:
                self._note(error)
                pause = pause_after(self.failures)
            else:
                self.failures, self.reason, self.is_interrupted = 0, "", False
                self.succeeded_at = time.time()
            if (in_trouble := self.trouble is not None) != was_in_trouble:
                was_in_trouble = in_trouble
                report(self)
            if _is_cancelled():
                return
            if self.failures or self.is_interrupted:
                # Whatever wants it: it is not tried in vain without a pause.
                await asyncio.sleep(pause)
                continue
            await self._rest(max(pause, REST_SECONDS))

    async def _rest(self, seconds: float) -> None:
        """Wait so long, or until soon after somebody wants it."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
                await asyncio.sleep(REST_SECONDS)

    def _note(self, error: Exception) -> None:
        """The round has ended so."""
        was_well = not self.failures and not self.is_interrupted
        self.is_interrupted = was_well and is_outage(error)
        if not self.is_interrupted:
            self._failed(error)
            return
        # A database ends connections now and then, when it is restarted for instance.
        logger.warning(
            "job interrupted",
            extra={"fields": {"job": self.name, "reason": _reason(error)}},
        )

    def _failed(self, error: Exception) -> None:
        self.failures += 1
        self.all_failures += 1
        self.reason = _reason(error)
        logger.error(
            "job failed",
            extra={
                "fields": {"job": self.name, "failures": self.failures, "reason": self.reason},
            },
            # How an outage came about is no riddle, and it concerns all jobs at once.
            exc_info=None if is_outage(error) else error,
        )

    @property
    def trouble(self) -> str | None:
        """What is wrong with it, in one sentence; None where nothing is."""
        aside = self.set_aside.reasons()
        if self.failures:
            return f"failed {counted(self.failures, 'time')} in a row: {self.reason}"
        if aside:
            item, reason = next(iter(aside.items()))
            return f"{len(aside)} set aside, the first is {item}: {reason}"
        return None


class JobSupervisor:
    """One node's jobs. `report`: see `Job.run`."""

    def __init__(self, report: Callable[[Job], None] = lambda _: None) -> None:
        self._jobs: list[Job] = []
        self._report = report

    def failing(self) -> dict[str, str]:
        """The jobs that are in trouble, each with what is wrong."""
        return {job.name: job.trouble for job in self._jobs if job.trouble is not None}

    def figures(self) -> list[JobFigures]:
        """How all of them do."""
        return [
            JobFigures(job.name, job.succeeded_at, job.all_failures, job.trouble is not None)
            for job in self._jobs
        ]

    @asynccontextmanager
    async def running(self, jobs: Sequence[Job]) -> AsyncIterator[None]:
        """Do these for the time of the context. Until its first round is due or wanted, nothing
        waits for a job but a timer that it shares."""
        self._jobs = list(jobs)
        tasks: list[asyncio.Task[None]] = []
        around = copy_context()

        def begin(*due: Job) -> None:
            for job in due:
                if job.begin is None:
                    continue  # It was wanted before its time.
                job.begin = None
                # Not that of the request that wanted it: the job goes on long after that.
                context = around.copy()
                task = asyncio.create_task(job.run(self._report), name=job.name, context=context)
                task.add_done_callback(_ended)
                tasks.append(task)

        by_seconds: dict[float, list[Job]] = {}
        for job in jobs:
            job.begin = partial(begin, job)
            by_seconds.setdefault(job.first_seconds, []).append(job)
            if job.is_wanted:
                job.begin()
        loop = asyncio.get_running_loop()
        timers = [loop.call_later(seconds, begin, *due) for seconds, due in by_seconds.items()]
        try:
            yield
        finally:
            for timer in timers:
                timer.cancel()
            for job in jobs:
                job.begin = None
            for task in tasks:
                task.cancel()
            closing = [
                *tasks,
                *(
                    asyncio.create_task(_closed(job), name=job.name)
                    for job in jobs
                    if job.close is not _nothing
                ),
            ]
            late = (await asyncio.wait(closing, timeout=CLOSING_SECONDS))[1] if closing else ()
            for task in late:
                logger.error("a job did not end", extra={"fields": {"job": str(task)}})


async def _closed(job: Job) -> None:
    """Close it. What it cannot do any more, because of an outage for instance, is only logged."""
    try:
        await job.close()
    except Exception as error:  # The node ends all the same.
        logger.warning(
            "a job did not end in order",
            extra={"fields": {"job": job.name, "reason": _reason(error)}},
            exc_info=None if is_outage(error) else error,
        )


def _ended(task: "asyncio.Task[None]") -> None:
    """Report a job's task that ended without being cancelled."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical("a job is over", exc_info=error, extra={"fields": {"job": task.get_name()}})


def _is_cancelled() -> bool:
    """Whether the task was cancelled. A library may have swallowed the CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it took too long"
    return f"{type(error).__name__}: {error}"[:500]
