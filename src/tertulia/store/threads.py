"""Threads that wait for the database instead of the event loop.

This is `concurrent.futures` with less overhead, which took as long as all statements of a small
commit.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple, TypeVar, TypeVarTuple

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class _Job(NamedTuple):
    """A function to call, and the future for its result."""

    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"
    function: Callable[..., Any]
    arguments: tuple[Any, ...]
    ended: Callable[[], None]
    """Called on the loop when the thread is done, even if nobody waits."""


def _nothing() -> None:
    pass


class Threads:
    """Up to `most` threads that start on demand and run jobs in order. Used on the event loop."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._threads: list[threading.Thread] = []
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._under_way = 0
        """The number of jobs that wait or run."""
        self._lock = threading.Lock()
        """Keeps jobs from being queued behind the end marks."""
        self._is_closed = False

    @property
    def is_idle(self) -> bool:
        """Whether a job would start immediately."""
        return not self._under_way

    async def run(self, function: Callable[[*Ts], T], *arguments: *Ts) -> T:
        """Run the function in a thread. If cancelled before it starts, it isn't called. Raise
        RuntimeError after `close`, and if no thread can be started."""
        future = self.begin(_nothing, function, *arguments)
        try:
            return await future
        finally:
            del (
                future
            )  # Its exception refers to this frame, which would keep all of its objects alive.

    def begin(
        self, ended: Callable[[], None], function: Callable[[*Ts], T], *arguments: *Ts
    ) -> "asyncio.Future[T]":
        """Start `run` without waiting. Calls `ended` when the job has ended, even if its future
        was cancelled."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError(f"the threads of '{self._name}' have ended")
            if len(self._threads) < min(self._under_way + 1, self._most):
                self._start()
            self._under_way += 1
            self._jobs.put(_Job(loop, future, function, arguments, ended))
        return future

    def _start(self) -> None:
        thread = threading.Thread(
            target=self._work, name=f"{self._name}_{len(self._threads)}", daemon=True
        )
        try:
            thread.start()
        except RuntimeError:
            if not self._threads:
                raise
            return  # The system's limit is reached. The existing threads do the work.
        self._threads.append(thread)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            result: Any = None
            error: BaseException | None = None
            if not job.future.cancelled():
                try:
                    result = job.function(*job.arguments)
                except StopIteration as raised:  # A future doesn't accept StopIteration.
                    error = RuntimeError("the job raised StopIteration")
                    error.__cause__ = raised
                except BaseException as raised:  # The error is raised where the job is awaited.
                    error = raised
            # Nobody waits if the loop is closed.
            with contextlib.suppress(RuntimeError):
                job.loop.call_soon_threadsafe(self._finish, job, result, error)
            # Don't keep them alive until the next job.
            del job, result, error

    def _finish(self, job: _Job, result: Any, error: BaseException | None) -> None:
        self._under_way -= 1
        job.ended()
        future = job.future
        if future.done():
            return  # Nobody waits for it.
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def close(self, *, drops: bool = False, seconds: float | None = None) -> None:
        """Run the waiting jobs, or drop them, and end the threads. Blocks, for up to `seconds` per
        thread if given: a job that runs longer is left behind."""
        with self._lock:
            self._is_closed = True
            if drops:
                self._drop_waiting()
            for _ in self._threads:
                self._jobs.put(None)
        for thread in self._threads:
            thread.join(seconds)

    def _drop_waiting(self) -> None:
        with contextlib.suppress(Empty):  # All jobs are dropped.
            while (job := self._jobs.get_nowait()) is not None:
                with contextlib.suppress(RuntimeError):  # As above.
                    job.loop.call_soon_threadsafe(job.future.cancel)
