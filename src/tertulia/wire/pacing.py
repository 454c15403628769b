"""How often somebody may try what needs no account."""

from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

MAX_KNOWN: Final = 10_000
"""Of so many who tried is remembered when."""


class Pace:
    """At most `limit` attempts in `seconds` for each of those who try. A node counts by itself,
    and begins anew when it does."""

    def __init__(self, limit: int, seconds: float, clock: Callable[[], float]) -> None:
        self._limit = limit
        self._seconds = seconds
        self._clock = clock
        self._tried: dict[Hashable, deque[float]] = {}

    def admits(self, who: Hashable) -> bool:
        """Whether they may try now; it is counted."""
        now = self._clock()
        times = self._tried.pop(who, deque())
        while times and times[0] <= now - self._seconds:
            times.popleft()
        self._tried[who] = times
        if len(self._tried) > MAX_KNOWN:
            # Whoever has been quiet the longest.
            del self._tried[next(iter(self._tried))]
        if len(times) >= self._limit:
            return False
        times.append(now)
        return True
