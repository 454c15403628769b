"""The server's side of a worker process."""

import asyncio
import contextlib
import logging
import os
import queue
import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

import msgspec

from tertulia.model.numbers import retry_pause
from tertulia.workers.process import (
    HEADER,
    MAX_FRAME,
    WorkRequest,
    WorkResponse,
    environment,
    framed,
)

logger = logging.getLogger("tertulia.workers")

T = TypeVar("T")

MAX_WAITING: Final = 100
"""The most queued tasks per worker. More are refused."""
IDLE_SECONDS: Final = 120.0
"""The number of seconds after which an idle process ends."""
START_SECONDS: Final = 30.0
FIRST_PAUSE: Final = 0.25
LONGEST_PAUSE: Final = 30.0
"""The pauses in seconds before restarting a process after a failed start: first, and at most."""
_PIECE: Final = 1024 * 1024


class TaskUnavailable(Exception):
    """The task wasn't done within its limits. The text is for the log."""


class TaskLimitExceeded(TaskUnavailable):
    """The task exceeded its time or memory limit, and would do so again."""


class TaskFailed(Exception):
    """The function raised an exception of the class named `kind`, with this text."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


@dataclass(frozen=True)
class WorkerTask(Generic[T]):
    """A function that runs in a worker process.

    It is given by name, so that the server doesn't load it. msgspec encodes its positional
    arguments and its result.
    """

    function: str
    result: Any
    """The result's type."""
    load: str = ""
    """A function called first with the same arguments, to load what the task needs. Its time
    doesn't count."""


class TaskBudget:
    """Limits shared by the tasks of one purpose."""

    def __init__(self, processor: float, patience: float) -> None:
        """Allow `processor` seconds of CPU time, and `patience` seconds from now on, including
        waits."""
        self.processor = processor
        self._until = time.monotonic() + patience

    @property
    def remaining(self) -> float:
        """The number of remaining seconds, including waits."""
        return self._until - time.monotonic()

    def require(self) -> None:
        """Raise TaskUnavailable if nothing is left."""
        if self.processor <= 0 or self.remaining <= 0:
            raise TaskUnavailable("its time is used up")


@dataclass(frozen=True)
class _QueuedJob:
    job: WorkerTask[Any]
    arguments: tuple[object, ...]
    allowance: TaskBudget
    is_wanted: Callable[[], bool]
    answer: "Future[Any]"


class TaskWorker:
    """A process that runs one task after the other. Thread-safe."""

    def __init__(
        self,
        name: str,
        *,
        memory: int,
        max_waiting: int = MAX_WAITING,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """Create a worker, whose process can use `memory` bytes."""
        self._name = name
        self._memory = memory
        self._idle_seconds = idle_seconds
        self._queue: queue.Queue[_QueuedJob] = queue.Queue(max_waiting)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        # Only the thread uses the following attributes.
        self._process: _Process | None = None
        self._failures = 0
        """The number of consecutive failures to start."""
        self._not_before = 0.0

    async def call(
        self,
        job: WorkerTask[T],
        *arguments: object,
        allowance: TaskBudget,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> T:
        """Run the task, and return the function's result. `is_wanted` is called, from another
        thread, when its turn has come. Raise TaskFailed, TaskLimitExceeded, and TaskUnavailable."""
        answer = self.submit(job, *arguments, allowance=allowance, is_wanted=is_wanted)
        try:
            async with asyncio.timeout(max(allowance.remaining, 0)):
                return await asyncio.wrap_future(answer)
        except TimeoutError:
            raise TaskUnavailable("it waited for too long") from None

    def submit(
        self,
        job: WorkerTask[T],
        *arguments: object,
        allowance: TaskBudget,
        is_wanted: Callable[[], bool] = lambda: True,
    ) -> "Future[T]":
        """Queue the task, and return a `concurrent.futures` future of its result. Raise
        TaskUnavailable if the queue is full."""
        allowance.require()
        answer: Future[T] = Future()
        with self._lock:
            try:
                self._queue.put_nowait(_QueuedJob(job, arguments, allowance, is_wanted, answer))
            except queue.Full:
                raise TaskUnavailable("too much is waiting") from None
            if self._thread is None:
                # A daemon, so that a stopping server doesn't wait for it. Its process ends, too.
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return answer

    @property
    def process_id(self) -> int | None:
        process = self._process
        return None if process is None else process.id

    def _run(self) -> None:
        while True:
            try:
                queued = self._queue.get(timeout=self._idle_seconds)
            except queue.Empty:
                with self._lock:
                    if not self._queue.empty():
                        continue
                    self._thread = None
                    process, self._process = self._process, None
                if process is not None:
                    process.kill()
                return
            if not queued.answer.set_running_or_notify_cancel():
                continue
            try:
                queued.answer.set_result(self._do(queued))
            except (TaskUnavailable, TaskFailed) as error:
                queued.answer.set_exception(error)
            except Exception as error:
                logger.exception("running a worker task failed")
                queued.answer.set_exception(TaskUnavailable(str(error)))

    def _do(self, queued: _QueuedJob) -> Any:
        job, allowance = queued.job, queued.allowance
        allowance.require()
        if not queued.is_wanted():
            raise TaskUnavailable("it is not wanted any more")
        request = WorkRequest(job.function, job.load, allowance.processor, list(queued.arguments))
        content = framed(request)
        process = self._process or self._start()
        allowance.require()
        # The kernel's timer ends what takes the processor for too long. This ends what does not go
        # on at all; a job whose turn came late still has all of its processor time.
        patience = max(allowance.remaining, allowance.processor * 4 + 2)
        try:
            response = process.ask(content, patience)
        except _Lost as error:
            self._end(process)
            # A process that ended by itself has used up its time or memory.
            allowance.processor = 0
            logger.warning(
                "a worker process was lost",
                extra={"fields": {"helper": self._name, "job": job.function, "reason": str(error)}},
            )
            raise TaskLimitExceeded(str(error)) from None
        allowance.processor -= response.seconds
        if response.error == "MemoryError":
            raise TaskLimitExceeded("it needs too much memory")
        if response.error:
            raise TaskFailed(response.error, response.text)
        return msgspec.msgpack.decode(response.result, type=job.result)

    def _start(self) -> "_Process":
        if time.monotonic() < self._not_before:
            raise TaskUnavailable("its process did not start, and is tried again soon")
        process = _Process(self._memory)
        self._process = process
        try:
            process.wait_until_ready()
        except _Lost as error:
            self._end(process)
            self._failures += 1
            pause = retry_pause(self._failures, FIRST_PAUSE, LONGEST_PAUSE)
            self._not_before = time.monotonic() + pause
            logger.warning(
                "a worker process couldn't be started",
                extra={"fields": {"helper": self._name, "reason": str(error)}},
            )
            raise TaskUnavailable(str(error)) from None
        self._failures = 0
        return process

    def _end(self, process: "_Process") -> None:
        process.kill()
        self._process = None


class _Lost(Exception):
    """The process no longer responds."""


class _Process:
    def __init__(self, memory: int) -> None:
        try:
            self._popen = subprocess.Popen(  # noqa: S603 (our own module, by our own interpreter)
                [sys.executable, "-P", "-m", "tertulia.workers.process", str(memory)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=environment(),
                # Ctrl+C is for the server, which ends this process.
                start_new_session=True,
            )
        except OSError as error:
            raise TaskUnavailable(f"its process could not be started: {error}") from None
        if self._popen.stdin is None or self._popen.stdout is None:
            raise RuntimeError("a process without pipes")
        self.id = self._popen.pid
        self._into = self._popen.stdin.fileno()
        self._out_of = self._popen.stdout.fileno()
        os.set_blocking(self._into, False)
        os.set_blocking(self._out_of, False)

    def wait_until_ready(self) -> None:
        self._read(time.monotonic() + START_SECONDS)

    def ask(self, content: bytes, seconds: float) -> WorkResponse:
        """Return the response. Raise _Lost after `seconds`."""
        until = time.monotonic() + seconds
        self._write(content, until)
        return self._read(until)

    def kill(self) -> None:
        self._popen.kill()
        for pipe in (self._popen.stdin, self._popen.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()
        self._popen.wait()

    def _write(self, content: bytes, until: float) -> None:
        rest = memoryview(content)
        while rest:
            _wait(self._into, until, writing=True)
            rest = rest[_attempt(partial(os.write, self._into, rest[:_PIECE])) or 0 :]

    def _read(self, until: float) -> WorkResponse:
        size = int.from_bytes(self._exactly(HEADER, until), "big")
        if size > MAX_FRAME:
            raise _Lost("it answers nonsense")
        try:
            return msgspec.msgpack.decode(self._exactly(size, until), type=WorkResponse)
        except msgspec.MsgspecError:
            raise _Lost("it answers nonsense") from None

    def _exactly(self, size: int, until: float) -> bytes:
        result = bytearray()
        while len(result) < size:
            _wait(self._out_of, until, writing=False)
            left = min(size - len(result), _PIECE)
            part = _attempt(partial(os.read, self._out_of, left))
            if part == b"":
                raise _Lost("it took too long or too much, and ended")
            result += part or b""
        return bytes(result)


def _attempt(step: Callable[[], T]) -> T | None:
    """Return the step's result, or None if it would block."""
    try:
        return step()
    except BlockingIOError:
        return None
    except OSError:
        raise _Lost("it has ended") from None


def _wait(descriptor: int, until: float, *, writing: bool) -> None:
    poll = select.poll()
    poll.register(descriptor, select.POLLOUT if writing else select.POLLIN)
    if not poll.poll(max(0, until - time.monotonic()) * 1000):
        raise _Lost("it took too long")
