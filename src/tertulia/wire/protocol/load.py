"""Load shedding.

A request that would have to wait too long is refused immediately, at a fraction of its cost. So
other requests are answered in time, and the memory of waiting requests is bounded.
"""

import asyncio
import logging
import math
import time
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Final, Protocol

from tertulia.wire.http.loop_turns import time_besides_steps

logger = logging.getLogger("tertulia.http")

ALWAYS: Final = 32
"""The number of concurrent requests that is always accepted."""
_SAMPLE: Final = 32
"""The smallest number of requests in a sample."""
_LEAST_SECONDS: Final = 0.25
"""The shortest sample, because requests that are committed together are answered together."""
_MOST_SECONDS: Final = 1.0
"""The longest sample that counts. In longer ones, the node was mostly idle, so the processor time
isn't that of requests."""
_WEIGHT: Final = 0.5
"""The weight of a new sample in the moving average."""
_LATE_SECONDS: Final = 0.005
"""The wait of a callback from which the event loop counts as late."""
_LATE_FACTOR: Final = 10
"""The loop counts as late for this multiple of a callback's wait, because there are short turns
between long ones."""
_LOG_SECONDS: Final = 1.0
"""The interval between log lines about refused requests."""


def _soon(callback: Callable[[], None]) -> object:
    return asyncio.get_running_loop().call_soon(callback)


class Load:
    """The requests in progress, and the time that each takes: processor time or, while the event
    loop is late and requests always wait, the time between two responses.

    (While the loop isn't late, requests wait for something else, such as another site or a stalled
    database, and the time between responses says nothing.)
    """

    def __init__(
        self,
        longest_wait: float,
        used: Callable[[], float] = time_besides_steps,
        clock: Callable[[], float] = time.monotonic,
        soon: Callable[[Callable[[], None]], object] = _soon,
    ) -> None:
        """`longest_wait` is the longest time that a request may have to wait for others, in
        seconds; 0 for no limit. `used` returns the processor time that requests wait for. `soon`
        schedules a callback on the event loop."""
        self.in_progress = 0
        self._longest_wait = longest_wait
        self._used = used
        self._clock = clock
        self._soon = soon
        self._probing_since: float | None = None
        """The time when the pending callback that measures lateness was scheduled."""
        self._late_until = -math.inf
        self._cost = 0.0
        self._pace = 0.0
        """The time between responses when the loop was last late."""
        self._ended = 0
        self._sampled = (clock(), used())
        self._was_full = False
        self.all_refused = 0
        """The number of requests refused since the start."""
        self._refused = 0
        self._logged_at = clock()

    def begin(self) -> None:
        """Count a request as in progress."""
        self.in_progress += 1

    def end(self) -> None:
        """Count a request as answered or canceled."""
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
        """Return whether another request would have to wait too long."""
        if self.in_progress < ALWAYS or self._longest_wait == 0:
            return False
        cost = max(self._cost, self._pace) if self._is_late() else self._cost
        return self.in_progress * cost > self._longest_wait

    def _is_late(self) -> bool:
        """Return whether the event loop is known to be late, and measure again."""
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
        """Count a refused request, and log the number at intervals."""
        self._refused += 1
        self.all_refused += 1
        now = self._clock()
        if now - self._logged_at >= _LOG_SECONDS:
            fields = {"refused": self._refused, "in_progress": self.in_progress}
            logger.warning("overloaded; refusing requests", extra={"fields": fields})
            self._refused, self._logged_at = 0, now


def _weighed(before: float, now: float) -> float:
    return before + _WEIGHT * (now - before) if before else now


class PipelinedConnection(Protocol):
    """A connection with pipelined requests."""

    def begin_next(self) -> bool:
        """Start the next request. Return False if none is left."""


class Turns:
    """Starts the pipelined requests of a server, one per turn of its event loop."""

    def __init__(self) -> None:
        self._waiting: deque[PipelinedConnection] = deque()
        self._context = Context()
        """An empty context, so that the context of the calling request isn't used."""

    def want(self, connection: PipelinedConnection) -> None:
        """Schedule the connection's next request."""
        self._waiting.append(connection)
        if len(self._waiting) == 1:
            self._soon()

    def _soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._next, context=self._context)

    def _next(self) -> None:
        # Remove the connection only after its request began, so that `want` sees that a turn is
        # scheduled.
        has_begun = False
        try:
            while self._waiting and not has_begun:
                try:
                    has_begun = self._waiting[0].begin_next()
                finally:
                    self._waiting.popleft()
        finally:
            # If one fails, the others continue.
            if self._waiting:
                self._soon()
