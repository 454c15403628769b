"""How often somebody may try what needs no account."""

import hashlib
from collections import deque
from collections.abc import Callable, Hashable
from typing import Final

from tertulia.wire.errors import TooManyTries

MAX_KNOWN: Final = 10_000
"""Of so many who tried is remembered when."""
TRIES: Final = 60
TRIES_PER_ACCOUNT: Final = 10
TRIES_SECONDS: Final = 600.0
"""Seconds in which somebody may use so many wrong passwords."""


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

    def require(self, who: Hashable) -> None:
        """TooManyTries unless they may try now; it is counted."""
        if not self.admits(who):
            raise TooManyTries(self._tried[who][0] + self._seconds - self._clock())

    def forgive(self, who: Hashable) -> None:
        """The last attempt does not count: it was none too many."""
        if times := self._tried.get(who):
            times.pop()


class SignIns:
    """How often somebody may sign in with a wrong password: to one account, and to any."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._to_one = Pace(TRIES_PER_ACCOUNT, TRIES_SECONDS, clock)
        self._to_any = Pace(TRIES, TRIES_SECONDS, clock)

    def require(self, who: str | None, address: str) -> None:
        """TooManyTries unless `who`, the address of a computer, may try to sign in there now."""
        self._to_one.require((who, _mark(address)))
        self._to_any.require(who)

    def succeeded(self, who: str | None, address: str) -> None:
        """The password was right."""
        self._to_one.forgive((who, _mark(address)))
        self._to_any.forgive(who)


def _mark(address: str) -> str:
    """What stands for the address, however long somebody made it."""
    return hashlib.sha256(address.strip().casefold().encode()).hexdigest()
