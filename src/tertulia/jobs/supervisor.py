"""Runs jobs repeatedly, each in its own task.

A job that fails is logged, retried with growing pauses, and listed by `JobSupervisor.failing` until
it succeeds. The first round that an outage interrupts isn't a failure. A job that processes items
sets failing items aside (`FailedItems`), and continues with the others.
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

from tertulia.log.log import Log
from tertulia.model.changes import AnyChange, Entry
from tertulia.model.errors import Unavailable
from tertulia.model.numbers import counted, retry_pause
from tertulia.service.node import JobFigures
from tertulia.store.database import DatabaseError

logger = logging.getLogger("tertulia.jobs")

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 300.0
"""Pauses after failures double up to this many seconds."""
REST_SECONDS: Final = 0.05
"""The pause between rounds in seconds, so that many commits are handled at a time."""
FIRST_ROUND_SECONDS: Final = 0.25
"""The usual delay after startup in seconds, because requests come first."""
ROUND_SECONDS: Final = 600.0
"""The timeout of a round in seconds. A timeout counts as a failure."""
CLOSING_SECONDS: Final = 15.0
"""The number of seconds that jobs have to stop when the node stops."""
SET_ASIDE: Final = 1000
"""The most items of one job that are set aside. The oldest are retried first."""


def pause_after(failures: int) -> float:
    """Return the seconds until the next attempt after `failures` failures."""
    return retry_pause(failures, FIRST_PAUSE, LONGEST_PAUSE)


def is_outage(error: Exception) -> bool:
    """Whether the error means that the database isn't available, so that the work itself didn't
    fail."""
    return isinstance(error, Unavailable | DatabaseError)


@dataclass
class _Item:
    attempts: int
    until: float
    reason: str


class FailedItems:
    """A job's failed items, each waiting for its next attempt."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._items: OrderedDict[Hashable, _Item] = OrderedDict()

    def failed(self, key: Hashable, error: Exception) -> int:
        """Record a failure of the item. Return the number of consecutive failures."""
        before = self._items.pop(key, None)
        attempts = 1 if before is None else before.attempts + 1
        self._items[key] = _Item(attempts, self._clock() + pause_after(attempts), _reason(error))
        while len(self._items) > SET_ASIDE:
            self._items.popitem(last=False)
        return attempts

    def done(self, key: Hashable) -> None:
        """Forget the item, which succeeded or is gone."""
        self._items.pop(key, None)

    def keep_only(self, keys: Iterable[Hashable]) -> None:
        """Forget other items, which are gone."""
        kept = set(keys)
        for key in [key for key in self._items if key not in kept]:
            del self._items[key]

    def is_resting(self, key: Hashable) -> bool:
        """Whether the item's next attempt is in the future."""
        item = self._items.get(key)
        return item is not None and item.until > self._clock()

    def next_attempt(self) -> float | None:
        """Return the seconds until the next attempt at an item, at least `FIRST_PAUSE`; None
        without items."""
        if not self._items:
            return None
        return max(min(item.until for item in self._items.values()) - self._clock(), FIRST_PAUSE)

    def reasons(self) -> dict[str, str]:
        """Return the reason for each item."""
        return {str(key): item.reason for key, item in self._items.items()}


async def _nothing() -> None:
    """Do nothing: most jobs don't need to clean up."""


@dataclass(eq=False)
class Job:
    """Repeated work of a node."""

    name: str
    once: Callable[[], Awaitable[float]]
    """Runs one round. Returns the seconds until the next one, unless `want` is called before."""
    round_seconds: float = ROUND_SECONDS
    first_seconds: float = FIRST_ROUND_SECONDS
    """The delay of the first round after startup in seconds, unless it's wanted before."""
    close: Callable[[], Awaitable[None]] = _nothing
    """Stops tasks that rounds have left running."""
    set_aside: FailedItems = field(default_factory=FailedItems)
    failures: int = 0
    """The number of consecutive failures."""
    reason: str = ""
    """The reason for the last failure."""
    all_failures: int = 0
    """The number of failures since the start."""
    is_interrupted: bool = False
    """Whether an outage interrupted the last round after a successful one."""
    succeeded_at: float = 0.0
    """The UNIX time of the last success; 0 if there was none."""
    begin: Callable[[], None] | None = None
    """Starts `run`, while the job waits for its first round."""
    _wanted: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def is_wanted(self) -> bool:
        return self._wanted.is_set()

    def want(self) -> None:
        """Start the next round soon."""
        self._wanted.set()
        if self.begin is not None:
            self.begin()

    def wake_on(self, log: Log, *changes: type[AnyChange]) -> None:
        """Start the next round soon after each commit with one of these kinds of changes."""

        def follow(entries: Sequence[Entry]) -> None:
            if any(isinstance(entry.change, changes) for entry in entries):
                self.want()

        log.subscribers.followers.append(follow)

    async def run(self, report: Callable[["Job"], None]) -> None:
        """Run until canceled. `report` is called after the first round, and when the job starts or
        stops failing."""
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
                # Don't retry without a pause, even if wanted.
                await asyncio.sleep(pause)
                continue
            await self._rest(max(pause, REST_SECONDS))

    async def _rest(self, seconds: float) -> None:
        """Wait, or until soon after the next round is wanted."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._wanted.wait()
                await asyncio.sleep(REST_SECONDS)

    def _note(self, error: Exception) -> None:
        """Record a failure."""
        was_well = not self.failures and not self.is_interrupted
        self.is_interrupted = was_well and is_outage(error)
        if not self.is_interrupted:
            self._failed(error)
            return
        # A database closes connections now and then, such as when it is restarted.
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
            # Outages need no traceback, and concern all jobs.
            exc_info=None if is_outage(error) else error,
        )

    @property
    def trouble(self) -> str | None:
        """Return why the job is failing, as a sentence, or None."""
        aside = self.set_aside.reasons()
        if self.failures:
            return f"failed {counted(self.failures, 'time')} in a row: {self.reason}"
        if aside:
            item, reason = next(iter(aside.items()))
            return f"{len(aside)} set aside, the first is {item}: {reason}"
        return None


class JobSupervisor:
    """Runs the jobs of one node. For `report`, see `Job.run`."""

    def __init__(self, report: Callable[[Job], None] = lambda _: None) -> None:
        self._jobs: list[Job] = []
        self._report = report

    def failing(self) -> dict[str, str]:
        """Return the failing jobs, with the reason."""
        return {job.name: job.trouble for job in self._jobs if job.trouble is not None}

    def figures(self) -> list[JobFigures]:
        return [
            JobFigures(job.name, job.succeeded_at, job.all_failures, job.trouble is not None)
            for job in self._jobs
        ]

    @asynccontextmanager
    async def running(self, jobs: Sequence[Job]) -> AsyncIterator[None]:
        """Run the jobs for the duration of the context. Until their first round, they share
        timers."""
        self._jobs = list(jobs)
        tasks: list[asyncio.Task[None]] = []
        around = copy_context()

        def begin(*due: Job) -> None:
            for job in due:
                if job.begin is None:
                    continue  # It was already started.
                job.begin = None
                # The job outlives the request that woke it, so don't use the request's context.
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
                logger.error("job did not stop", extra={"fields": {"job": str(task)}})


async def _closed(job: Job) -> None:
    """Close the job. Failures, such as in an outage, are only logged."""
    try:
        await job.close()
    except Exception as error:  # The node is stopping anyway.
        logger.warning(
            "job did not stop cleanly",
            extra={"fields": {"job": job.name, "reason": _reason(error)}},
            exc_info=None if is_outage(error) else error,
        )


def _ended(task: "asyncio.Task[None]") -> None:
    """Log a job's task that ended without being canceled."""
    if not task.cancelled() and (error := task.exception()) is not None:
        logger.critical(
            "job ended unexpectedly", exc_info=error, extra={"fields": {"job": task.get_name()}}
        )


def _is_cancelled() -> bool:
    """Whether the task was canceled. A library may have swallowed the CancelledError."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return "it took too long"
    return f"{type(error).__name__}: {error}"[:500]
