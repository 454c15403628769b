"""The decisions of the supervisor: when to start, replace, or give up workers. It does nothing
itself and has no clock: `process` reports events and carries out decisions."""

import logging
from collections.abc import Callable
from typing import Final, Protocol

logger = logging.getLogger("tertulia.serving")

STEADY_SECONDS: Final = 60.0
"""A worker that ends before this many seconds counts as a failure, like one that doesn't become
ready."""
PAUSES: Final = (0.0, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""The pauses, in seconds, before restarts after failures in a row. The last one repeats."""
FAILED_STARTS: Final = 5
"""The number of failed starts in a row, without a ready worker, after which the server gives up."""
STOP_SECONDS: Final = 100.0
"""The number of seconds after which a stopping worker is killed, plus the time that its settings
allow."""
START_SECONDS: Final = 1800.0
"""The number of seconds after which a worker that isn't ready is killed. (Opening a large
organization takes seconds; migrating one may take minutes.)"""
LOOK_SECONDS: Final = 10.0
"""The interval, in seconds, between checks for hanging workers."""
LOOKS: Final = 6
"""The number of checks without progress after which a worker is killed. (It may hold locks that the
others need. Counting checks instead of time tolerates a suspended machine.)"""
FAILED: Final = 1
"""The exit code of a server that gives up, unless a worker's exit code is more specific."""


class WorkerProcess(Protocol):
    """A worker's process."""

    @property
    def pid(self) -> int: ...

    @property
    def beat(self) -> float | None:
        """A number that changes as long as the worker makes progress; None if it reports none."""

    def leave(self) -> None:
        """Finish the work in progress and exit: others take over."""

    def stop(self) -> None:
        """Exit like a server that is told to stop."""

    def kill(self) -> None:
        """Exit immediately."""


class _WorkerState:
    """The state of a worker's process."""

    def __init__(self, worker: WorkerProcess, number: int, began: float) -> None:
        self.worker = worker
        self.number = number
        self.began = began
        self.text = ""
        """The message to print when all workers have the same one; empty until the worker is
        ready."""
        self.is_ending = False
        """Whether it was told to exit, or reported that it does."""
        self.killed_at = began + START_SECONDS
        """The time when it's killed unless it's ready by then, or, if told to exit, has exited."""
        self.beat: float | None = None
        self.looks = 0
        """The number of checks in a row with the same beat."""

    @property
    def is_ready(self) -> bool:
        return bool(self.text)


class _Slot:
    """One of the server's slots for workers."""

    def __init__(self) -> None:
        self.life: _WorkerState | None = None
        self.failures = 0
        self.start_at: float | None = None
        """The time when the next worker is started; None while there is one."""


class WorkerSupervisor:
    """The workers of a server. All times are from one monotonic clock, in seconds."""

    def __init__(
        self,
        slots: int,
        start: Callable[[int], WorkerProcess],
        say: Callable[[str], None],
        *,
        now: float,
        stop_seconds: float = STOP_SECONDS,
    ) -> None:
        """Create the supervisor. `start` starts a worker with this number (raises OSError), and
        `say` prints a message. A worker that doesn't stop is killed after `stop_seconds`."""
        self.exit_code: int | None = None
        """The server's exit code; None while it runs."""
        self._start = start
        self._say = say
        self._stop_seconds = stop_seconds
        self._slots = [_Slot() for _ in range(slots)]
        self._lives: dict[WorkerProcess, _WorkerState] = {}
        self._to_replace: list[int] = []
        self._successor: _WorkerState | None = None
        """The worker that replaces the one with the same number when it's ready."""
        self._leaving: _WorkerState | None = None
        """The worker that was replaced and is exiting; the next replacement waits for it."""
        self._failed_starts = 0
        self._look_at = now + LOOK_SECONDS
        self._was_ready = False
        """Whether all workers were ready at some time."""
        self._said = ""
        self._stops = False
        self._code = 0
        for number in range(slots):
            self._begin(number, now)

    # Events

    def ready(self, worker: WorkerProcess, text: str, now: float) -> None:
        """Handle a worker that became ready. `text` is printed when all are."""
        life = self._lives[worker]
        self._failed_starts = 0
        if not life.is_ready:
            logger.info("a worker is ready", extra=_fields(life))
            if not life.is_ending:
                life.killed_at = float("inf")
        life.text = text
        if life is self._successor and not life.is_ending:
            self._take_over(life, now)
        current = [slot.life for slot in self._slots]
        if text != self._said and all(
            worker_state is not None and worker_state.text == text for worker_state in current
        ):
            self._was_ready = True
            self._said = text
            self._say(text)

    def _take_over(self, life: _WorkerState, now: float) -> None:
        self._successor = None
        slot = self._slots[life.number]
        before, slot.life, slot.start_at = slot.life, life, None
        if before is None:
            self._replace_next(now)
        else:
            self._leaving = before
            self._mark_ending(before, now)
            before.worker.leave()

    def leaving(self, worker: WorkerProcess, now: float) -> None:
        """Handle a worker that exits by itself or was told to."""
        life = self._lives[worker]
        if life.is_ending:
            return
        self._mark_ending(life, now)
        if not self._stops:
            logger.info("a worker is leaving and will be replaced", extra=_fields(life))
            self._vacate(life, now)

    def ended(self, worker: WorkerProcess, code: int, now: float) -> None:
        """Handle a worker's exit, with its exit code or the negative number of a signal."""
        life = self._lives.pop(worker)
        if self._stops:
            if code > 0 and self._code == 0:
                self._code = code
        elif life.is_ending:
            if code != 0:
                logger.warning("a worker exited with an error", extra=_fields(life, code=code))
            if life is self._successor:  # It was told to exit before it was ready.
                self._lose_successor(now)
        else:
            self._died(life, code, now)
        if life is self._leaving:
            self._leaving = None
            self._replace_next(now)
        if self._stops and not self._lives:
            self.exit_code = self._code

    def _died(self, life: _WorkerState, code: int, now: float) -> None:
        """Handle an unexpected exit."""
        what = "a worker exited unexpectedly" if life.is_ready else "could not start a worker"
        logger.error(what, extra=_fields(life, **_cause(code)))
        if life is self._successor:
            self._lose_successor(now)
            return
        if not life.is_ready:
            self._failed_starts += 1
            # A worker that fails at first logs why, and a restart wouldn't help.
            if self._is_hopeless or (code > 0 and not self._was_ready):
                self._give_up(code if code > 0 else FAILED, now)
                return
        self._vacate(life, now)

    def _lose_successor(self, now: float) -> None:
        """Handle the loss of a successor."""
        if self._successor is None:
            return
        slot = self._slots[self._successor.number]
        self._successor = None
        self._to_replace.clear()
        logger.error("the workers weren't replaced; the previous ones keep serving")
        if slot.life is None:
            self._fail(slot, now)

    # Commands

    def replace(self, now: float) -> None:
        """Replace the workers one by one, each when its successor is ready."""
        if self._stops:
            return
        logger.info("replacing the workers")
        self._to_replace = list(range(len(self._slots)))
        if self._successor is None and self._leaving is None:
            self._replace_next(now)

    def stop(self, now: float) -> None:
        """Stop all workers, then exit."""
        self._stops = True
        for life in list(self._lives.values()):
            self._mark_ending(life, now)
            life.worker.stop()
        if not self._lives:
            self.exit_code = self._code

    def kill(self) -> None:
        """Kill all workers."""
        for life in self._lives.values():
            life.worker.kill()

    def tick(self, now: float) -> float:
        """Do the actions that are due, and return the time when the next one is due."""
        if self._look_at <= now:
            self._look_at = now + LOOK_SECONDS
            self._look()
        times = [self._look_at]
        for life in self._lives.values():
            if life.killed_at <= now:
                what = "didn't stop in time" if life.is_ending else "didn't become ready"
                logger.error(f"a worker {what} and was killed", extra=_fields(life))
                life.killed_at = float("inf")
                life.worker.kill()
            times.append(life.killed_at)
        if not self._stops:
            for number, slot in enumerate(self._slots):
                if slot.start_at is not None and slot.start_at <= now:
                    self._begin(number, now)
                if slot.start_at is not None:
                    times.append(slot.start_at)
        return min(times)

    def _look(self) -> None:
        """Kill workers that hang."""
        for life in self._lives.values():
            beat = life.worker.beat
            is_same = beat is not None and beat == life.beat
            life.beat, life.looks = beat, life.looks + 1 if is_same else 0
            if life.looks >= LOOKS:
                life.looks = 0
                logger.error("a worker hung and was killed", extra=_fields(life))
                life.worker.kill()

    # Implementation

    @property
    def _is_hopeless(self) -> bool:
        is_any_ready = any(life.is_ready and not life.is_ending for life in self._lives.values())
        return self._failed_starts >= FAILED_STARTS and not is_any_ready

    def _begin(self, number: int, now: float) -> None:
        """Start a worker for the slot."""
        slot = self._slots[number]
        slot.life, slot.start_at = self._started(number, now), None
        if slot.life is None:
            self._failed_starts += 1
            if self._is_hopeless:
                self._give_up(FAILED, now)
            else:
                self._fail(slot, now)

    def _started(self, number: int, now: float) -> _WorkerState | None:
        try:
            worker = self._start(number)
        except OSError as error:
            fields = {"worker": number, "reason": error}
            logger.error("could not start a worker", extra={"fields": fields})
            return None
        life = self._lives[worker] = _WorkerState(worker, number, now)
        return life

    def _vacate(self, life: _WorkerState, now: float) -> None:
        """Free the slot of a worker, and schedule a new one."""
        slot = self._slots[life.number]
        if slot.life is not life:
            return
        slot.life = None
        if self._successor is not None and self._successor.number == life.number:
            return
        if life.is_ready and now - life.began >= STEADY_SECONDS:
            slot.failures = 0
        self._fail(slot, now)

    def _fail(self, slot: _Slot, now: float) -> None:
        slot.start_at = now + PAUSES[min(slot.failures, len(PAUSES) - 1)]
        slot.failures += 1

    def _replace_next(self, now: float) -> None:
        """Start the next successor, if any is left to start."""
        while self._to_replace and not self._stops:
            number = self._to_replace.pop(0)
            slot = self._slots[number]
            if slot.life is None:
                continue  # A worker started in this slot is new.
            self._successor = self._started(number, now)
            if self._successor is not None:
                return
            self._to_replace.clear()

    def _mark_ending(self, life: _WorkerState, now: float) -> None:
        life.is_ending = True
        life.killed_at = min(life.killed_at, now + self._stop_seconds)

    def _give_up(self, code: int, now: float) -> None:
        logger.error("no worker can be started; the server stops")
        self._code = code
        self.stop(now)


def _cause(code: int) -> dict[str, int]:
    return {"signal": -code} if code < 0 else {"code": code}


def _fields(life: _WorkerState, **more: object) -> dict[str, object]:
    return {"fields": {"worker": life.number, "pid": life.worker.pid, **more}}
