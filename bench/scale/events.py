"""A simulated clock with machines, event loops, and a lock."""

import heapq
from collections import deque
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Final

Then = Callable[[], None]

SLICE: Final = 0.0005
"""The duration of a time slice, in seconds."""


class Clock:
    """Runs events in chronological order."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, int, Then]] = []
        self._order = count()

    def after(self, seconds: float, then: Then) -> None:
        """Call the function after a delay."""
        heapq.heappush(self._due, (self.now + seconds, next(self._order), then))

    def run(self, until: float) -> None:
        """Run all events up to this time."""
        while self._due and self._due[0][0] <= until:
            self.now, _, then = heapq.heappop(self._due)
            then()
        self.now = until


class Machine:
    """Cores with time sharing."""

    def __init__(self, clock: Clock, cores: int) -> None:
        self._clock = clock
        self._cores = cores
        self._free = cores
        self._waiting: deque[tuple[float, Then]] = deque()
        self.busy = 0.0
        """Seconds of all cores together."""

    def work(self, seconds: float, then: Then) -> None:
        """Compute for this long on one core, and then call the function."""
        if self._free:
            self._free -= 1
            self._begin(seconds, then)
        else:
            self._waiting.append((seconds, then))

    def _begin(self, seconds: float, then: Then) -> None:
        part = min(seconds, SLICE)
        self.busy += part
        self._clock.after(part, lambda: self._end(seconds - part, then))

    def _end(self, left: float, then: Then) -> None:
        if left > 0:
            self._waiting.append((left, then))
        if self._waiting:
            self._begin(*self._waiting.popleft())
        else:
            self._free += 1
        if left <= 0:
            then()

    def load(self, since: float = 0.0) -> float:
        """Return the share of the cores that was busy."""
        return self.busy / ((self._clock.now - since) * self._cores)


class Process:
    """A process that handles one task after the other: an event loop."""

    def __init__(self, machine: Machine, wake: float = 0.0) -> None:
        """`wake` is the additional cost after being idle."""
        self._machine = machine
        self._wake = wake
        self._random = Random(1)
        self.wakes = 0
        self._tasks: deque[tuple[float, Then]] = deque()
        self._is_busy = False
        self.busy = 0.0

    def work(self, seconds: float, then: Then) -> None:
        """Add work, and call the function when it's done. Earlier work comes first."""
        if not self._is_busy:
            self.wakes += 1
            seconds += self._wake
        self._tasks.append((seconds, then))
        if not self._is_busy:
            self._next()

    def _next(self) -> None:
        self._is_busy = bool(self._tasks)
        if not self._is_busy:
            return
        seconds, then = self._tasks.popleft()
        # With random variation, as in real processes. If each step took the same time, waiting
        # nodes would stay in step forever.
        seconds *= self._random.expovariate(1.0)

        def done() -> None:
            self.busy += seconds
            then()
            self._next()

        self._machine.work(seconds, done)


class Lock:
    """A lock that one process holds while others wait in order."""

    def __init__(self) -> None:
        self._is_held = False
        self._waiting: deque[Then] = deque()

    def take(self, then: Then) -> None:
        """Call the function when the lock is held."""
        if self._is_held:
            self._waiting.append(then)
        else:
            self._is_held = True
            then()

    def release(self) -> None:
        """Pass the lock on."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._is_held = False
