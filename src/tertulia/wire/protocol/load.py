"""How much a node has to do, and when it is too much.

A request that would have to wait for too long is refused at once, which costs a small part of what
answering it would. So the others are answered in time, and what waits has a bound in memory.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol

logger = logging.getLogger("tertulia.http")

ALWAYS: Final = 32
"""So many requests at once are never too many."""
_SAMPLE: Final = 32
"""A sample of what a request costs has so many requests at least;"""
_LEAST_SECONDS: Final = 0.25
"""and takes so many seconds at least: those that are committed together are answered together."""
_MOST_SECONDS: Final = 1.0
"""Where it took longer, the node had little to do, and much of its time was for other things."""
_WEIGHT: Final = 0.5
"""Of a new sample, beside all before."""
_LATE_SECONDS: Final = 0.005
"""A callback that waits for longer shows that the event loop is late."""
_LATE_FACTOR: Final = 10
"""The loop counts as late for so many times what a callback waited: between two long turns of it
there are short ones."""
_LOG_SECONDS: Final = 1.0
"""Between two lines of the log about refusals."""


def _soon(callback: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(callback)


class Load:
    """The requests in progress, and the time that one takes: the processor's, or, while the event
    loop is late and there is always one more to do, that between two answers.

    (While it is not late they wait for something else, a page elsewhere on the web or a database
    that has stopped, and the time between answers says nothing.)
    """

    def __init__(
        self,
        longest_wait: float,
        used: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        soon: Callable[[Callable[[], None]], object] = _soon,
    ) -> None:
        """`longest_wait` in seconds: what a request may have to wait for others; 0 for any time.
        `used` are the seconds of processor time that the event loop has used; `soon` lets it call
        something when its turn comes."""
        self.in_progress = 0
        self._longest_wait = longest_wait
        self._used = used
        self._clock = clock
        self._soon = soon
        self._probing_since: float | None = None
        """Since when a callback waits that shows whether the loop is late."""
        self._late_until = -math.inf
        self._cost = 0.0
        self._pace = 0.0
        """Seconds between answers, when it was last late."""
        self._ended = 0
        self._sampled = (clock(), used())
        self._was_full = False
        self.all_refused = 0
        """Requests that were refused since the beginning."""
        self._refused = 0
        self._logged_at = clock()

    def begin(self) -> None:
        """A request is to be answered."""
        self.in_progress += 1

    def end(self) -> None:
        """One of them is being answered, or was given up."""
        self.in_progress -= 1
        self._ended += 1
        if self._ended >= _SAMPLE and self._clock() - self._sampled[0] >= _LEAST_SECONDS:
            self._sample()

    def _sample(self) -> None:
        began, before = self._sampled
        self._sampled = now, used = self._clock(), self._used()
        cost, pace = (used - before) / self._ended, (now - began) / self._ended
        if now - began <= _MOST_SECONDS or cost < self._cost:
            self._cost = _weighed(self._cost, cost)
        is_full = self.in_progress >= ALWAYS
        if is_full and self._was_full and self._is_late():
            self._pace = _weighed(self._pace, pace)
        self._ended, self._was_full = 0, is_full

    def is_too_high(self) -> bool:
        """Whether one more request would have to wait for too long."""
        if self.in_progress < ALWAYS or self._longest_wait == 0:
            return False
        cost = max(self._cost, self._pace) if self._is_late() else self._cost
        return self.in_progress * cost > self._longest_wait

    def _is_late(self) -> bool:
        """Whether callbacks wait for the event loop, as far as is known; and probe it again."""
        now = self._clock()
        if self._probing_since is None:
            self._probing_since = now
            self._soon(self._probed)
        return now < self._late_until or now - self._probing_since > _LATE_SECONDS

    def _probed(self) -> None:
        now = self._clock()
        if self._probing_since is not None:
            waited = now - self._probing_since
            self._probing_since = None
            if waited > _LATE_SECONDS:
                self._late_until = max(self._late_until, now + _LATE_FACTOR * waited)

    def refused(self) -> None:
        """A request was refused for that. Not each of them is logged."""
        self._refused += 1
        self.all_refused += 1
        now = self._clock()
        if now - self._logged_at >= _LOG_SECONDS:
            fields = {"refused": self._refused, "in_progress": self.in_progress}
            logger.warning("there is too much to do", extra={"fields": fields})
            self._refused, self._logged_at = 0, now


def _weighed(before: float, now: float) -> float:
    return before + _WEIGHT * (now - before) if before else now


class Waiting(Protocol):
    """A connection whose next request waits for its turn."""

    def begin_next(self) -> bool:
        """Begin it. False where there is none any more."""


class Turns:
    """Those of one server. To be used on its event loop."""

    def __init__(self) -> None:
        self._waiting: deque[Waiting] = deque()
        self._context = Context()
        """Of none of the requests before, which call this."""

    def want(self, connection: Waiting) -> None:
        """Its next request is to begin."""
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            self._soon()

    def _soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._next, context=self._context)

    def _next(self) -> None:
        # It stays there until it has begun, so that `want` knows that there is a next turn.
        has_begun = False
        try:
            while self._waiting and not has_begun:
                try:
                    has_begun = self._waiting[0].begin_next()
                finally:
                    self._waiting.popleft()
        finally:
            # Also where one fails: the others are to go on.
            if self._waiting:
                self._soon()
