"""Limits how often something is tried, by the generic cell rate algorithm: one number is kept of
each who tries."""

from collections.abc import Callable, Hashable
from typing import Final

from tertulia.wire.http.errors import TooManyTries

MAX_KNOWN: Final = 10_000
"""Of so many who tried is remembered when, at least."""


class RateLimiter:
    """`limit` attempts for each key, and as many again in `seconds`: they come back one by one.
    It counts by itself, and begins anew when its node does.

    Of each key is kept when it will have all attempts again (the generic cell rate algorithm), for
    as long as that is to come. At least `known` keys are remembered at the same time, and at most
    twice as many.
    """

    def __init__(
        self, limit: int, seconds: float, clock: Callable[[], float], known: int = MAX_KNOWN
    ) -> None:
        self.limit = limit
        self.seconds = seconds
        self._each = seconds / limit
        # What is added up is a little off.
        self._bound = seconds + self._each / 100
        self._longest = seconds
        """Nobody has to wait longer until they have all attempts again."""
        self._clock = clock
        # Times are counted from here: as UNIX seconds they would be coarse.
        self._began = clock()
        self._latest = 0.0
        self._known = known
        self._recent: dict[Hashable, float] = {}
        self._before: dict[Hashable, float] = {}
        self._until = 0.0

    def charge(self, who: Hashable) -> float:
        """Count an attempt. In how many seconds they have all attempts again; an attempt too many
        is not counted: see `excess`."""
        now = self._now()
        if now >= self._until or len(self._recent) >= self._known:
            self._rotate(now)
        before = self._ahead(who, now)
        ahead = before + self._each
        counted = before if ahead > self._bound else ahead if ahead < self.seconds else self.seconds
        self._recent[who] = now + counted
        return ahead

    def ahead(self, who: Hashable) -> float:
        """What `charge` answered last, as of now."""
        return self._ahead(who, self._now())

    def excess(self, ahead: float) -> float:
        """What `charge` answered as seconds to wait before the next attempt; 0 where the attempt
        was counted."""
        return ahead - self.seconds if ahead > self._bound else 0.0

    def whole_in(self, ahead: float) -> float:
        """What `charge` answered as seconds until they have all attempts again."""
        return ahead if ahead <= self._bound else max(ahead - self._each, self.seconds)

    def left(self, ahead: float) -> int:
        """What `charge` answered as attempts that are left now."""
        return int((self._bound - ahead) / self._each) if ahead <= self._bound else 0

    def admits(self, who: Hashable) -> bool:
        """Whether they may try now; it is counted."""
        return not self.excess(self.charge(who))

    def require(self, who: Hashable) -> None:
        """TooManyTries unless they may try now; it is counted."""
        if wait := self.excess(self.charge(who)):
            raise TooManyTries(wait)

    def forgive(self, who: Hashable) -> None:
        """The last attempt does not count: it was none too many."""
        now = self._now()
        self._recent[who] = now + self._ahead(who, now) - self._each

    def _now(self) -> float:
        """Seconds since the start. Stands still if the clock is set back, so that no one waits
        longer than before."""
        now = self._clock() - self._began
        if now < self._latest:
            self._began -= self._latest - now
            return self._latest
        self._latest = now
        return now

    def _rotate(self, now: float) -> None:
        """Forget whoever has not tried since the last time: they have all attempts again."""
        self._before, self._recent = self._recent, {}
        self._until = now + self._longest

    def _ahead(self, who: Hashable, now: float) -> float:
        """In how many seconds they have all attempts again."""
        at = self._recent.get(who)
        if at is None:
            at = self._before.get(who, now)
        return max(at - now, 0.0)
