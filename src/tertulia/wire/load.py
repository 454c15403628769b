"""How much a node has to do, and when it is too much.

A request that would have to wait for too long is refused at once, which costs a small part of what
carrying it out does: so the others are answered in time, and what waits needs no more and no more
memory. Nothing has to be reset afterwards: less to do is less to wait for.
"""

import logging
import time
from collections.abc import Callable
from typing import Final

logger = logging.getLogger("tertulia.http")

ALWAYS: Final = 32
"""So many requests at once are never too many."""
_SAMPLE: Final = 32
"""Requests after which it is looked at what one costs."""
_SAMPLE_SECONDS: Final = 1.0
"""Where they took longer, the node had little to do, and much of it was something else."""
_WEIGHT: Final = 0.2
"""Of a new sample, beside all before."""
_TELL_SECONDS: Final = 1.0


class Load:
    """The requests in progress, polls that wait left out, and the time that one takes: the
    processor's, or, as long as there is always one more to do, that between two answers."""

    def __init__(
        self,
        longest_wait: float,
        used: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`longest_wait` in seconds: what a request may have to wait for others; 0 for any time.
        `used` are the seconds of processor time that the event loop has used."""
        self.in_progress = 0
        self._longest_wait = longest_wait
        self._used = used
        self._clock = clock
        self._cost = 0.0
        self._ended = 0
        self._sampled = (clock(), used())
        self._was_busy = False
        self._refused = 0
        self._told = clock()

    def begin(self) -> None:
        """A request is to be answered."""
        self.in_progress += 1

    def end(self, count: int = 1) -> None:
        """So many requests were answered, or given up."""
        self.in_progress -= count
        self._ended += count
        if self._ended >= _SAMPLE:
            self._sample()

    def _sample(self) -> None:
        began, before = self._sampled
        self._sampled = now, used = self._clock(), self._used()
        is_busy = self.in_progress >= ALWAYS
        if is_busy and self._was_busy:
            self._learn((now - began) / self._ended)
        elif now - began <= _SAMPLE_SECONDS:
            self._learn((used - before) / self._ended)
        self._ended, self._was_busy = 0, is_busy

    def _learn(self, cost: float) -> None:
        self._cost += _WEIGHT * (cost - self._cost)

    @property
    def is_too_high(self) -> bool:
        """Whether one more request would have to wait for too long."""
        return (
            self.in_progress >= ALWAYS
            and self._longest_wait > 0
            and self.in_progress * self._cost > self._longest_wait
        )

    def refused(self) -> None:
        """One was refused for that. It is logged, but not each of them."""
        self._refused += 1
        now = self._clock()
        if now - self._told >= _TELL_SECONDS:
            fields = {"refused": self._refused, "in_progress": self.in_progress}
            logger.warning("there is too much to do", extra={"fields": fields})
            self._refused, self._told = 0, now
