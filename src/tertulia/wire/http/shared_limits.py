"""Limits that hold for all nodes together.

Each node counts by itself and decides at once. What was used up at one is told to the others within
a moment, and they count it as if it had been used up there: decision 0027 has the bound on what
comes through meanwhile.
"""

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Final

from tertulia.delivery.announcements import Announcements
from tertulia.model.announcements import LimitsCharged, SignedInFrom
from tertulia.wire.http.rate_limiter import MAX_KNOWN, RateLimiter

TELL_SECONDS: Final = 0.1
"""Between two announcements of what was used up of limits that many use all the time."""
UNTOLD: Final = 50
"""Of those, who used less than one part of so many is not worth a word."""
MOST_TOLD: Final = 250
"""Of so many one announcement tells: of those first who used up most. It must fit into a
notification."""
MOST_DEBT: Final = 16
"""What was used up at several nodes at the same moment, before they heard of each other, has to
come back before anything more is let through; up to so many times the limit."""

Who = int | str
"""Whom nodes tell each other about: an account, or a mark."""


class SharedLimiter(RateLimiter):
    """A limiter that counts together with those of the same name at other nodes."""

    def __init__(
        self,
        limit: int,
        seconds: float,
        clock: Callable[[], float],
        known: int,
        *,
        least: int,
        mark: Callable[[Hashable], Who],
        due: Callable[[], None],
    ) -> None:
        """Calls `due` when somebody has made `least` attempts of which others were not told."""
        super().__init__(limit, seconds, clock, known)
        self._longest = MOST_DEBT * seconds
        self._least = least
        self._mark = mark
        self._on_due = due
        self._untold: dict[Who, int] = {}
        self._due: dict[Who, None] = {}

    def charge(self, who: Hashable) -> float:
        mark = self._mark(who)
        ahead = super().charge(mark)
        if ahead <= self._bound:
            self._note(mark, 1)
        return ahead

    def ahead(self, who: Hashable) -> float:
        return super().ahead(self._mark(who))

    def forgive(self, who: Hashable) -> None:
        mark = self._mark(who)
        super().forgive(mark)
        self._note(mark, -1)

    def absorb(self, who: Who, attempts: int) -> None:
        """Count attempts that were made at another node; those that were forgiven there are
        negative."""
        now = self._now()
        if now >= self._until or len(self._recent) >= self._known:
            self._rotate(now)
        ahead = self._ahead(who, now) + attempts * self._each
        self._recent[who] = now + min(max(ahead, 0.0), self._longest)

    def _note(self, who: Who, attempts: int) -> None:
        count = self._untold.get(who, 0) + attempts
        self._untold[who] = count
        if abs(count) >= self._least and who not in self._due:
            self._due[who] = None
            self._on_due()

    def _rotate(self, now: float) -> None:
        super()._rotate(now)
        # Of whoever is forgotten nothing is to be told either.
        self._untold = {who: n for who, n in self._untold.items() if who in self._before}
        self._due = {who: None for who in self._due if who in self._untold}

    @property
    def is_due(self) -> bool:
        """Whether others should be told something."""
        return bool(self._due)

    def take(self, most: int) -> list[tuple[Who, int]]:
        """What others should be told now, of so many at most: it counts as told."""
        chosen = list(self._due)
        if len(chosen) > most:
            chosen = heapq.nlargest(most, chosen, key=lambda who: abs(self._untold[who]))
        for who in chosen:
            del self._due[who]
        return [(who, n) for who in chosen if (n := self._untold.pop(who))]


class Limiters:
    """Makes the limiters of a node, each with a name: those with the same one at all nodes count
    together, where there may be several nodes."""

    def __init__(
        self,
        clock: Callable[[], float],
        announcements: Announcements | None = None,
        mark: Callable[[str], str] = str,
    ) -> None:
        """`announcements` go to the other nodes, None where there are none. `mark` makes something
        of a text that stands for it and does not tell it."""
        self._clock = clock
        self._announcements = announcements
        self._mark_of = mark
        self._limiters: dict[str, RateLimiter] = {}
        self._shared: dict[str, SharedLimiter] = {}
        self._timer: asyncio.Handle | None = None
        self._tells_at = 0.0
        if announcements is not None:
            announcements.listen(LimitsCharged, self._absorb)

    def limiter(
        self,
        name: str,
        limit: int,
        seconds: float,
        known: int = MAX_KNOWN,
        *,
        is_rare: bool = True,
    ) -> RateLimiter:
        """The limiter of that name. See `RateLimiter`. Of each attempt that `is_rare` others are
        told at once; of others when there were some by the same one."""
        if name in self._limiters:
            return self._limiters[name]
        if self._announcements is None:
            self._limiters[name] = RateLimiter(limit, seconds, self._clock, known)
            return self._limiters[name]
        shared = SharedLimiter(
            limit,
            seconds,
            self._clock,
            known,
            least=1 if is_rare else max(1, limit // UNTOLD),
            mark=self._mark,
            due=lambda: self._tell_in(0.0 if is_rare else TELL_SECONDS),
        )
        self._limiters[name] = self._shared[name] = shared
        return shared

    def place(self, *who: Hashable) -> str:
        """What stands for all of that together."""
        return self._mark_of(repr(who))

    def tell_signed_in(self, place: str) -> None:
        """Tell the other nodes that somebody signed in from there."""
        if self._announcements is not None:
            self._announcements.add(SignedInFrom(mark=place))

    def on_signed_in(self, learn: Callable[[str], None]) -> None:
        """Call when somebody signed in from a place at another node."""
        if self._announcements is not None:
            self._announcements.listen(SignedInFrom, lambda announced: learn(announced.mark))

    def _mark(self, who: Hashable) -> Who:
        return who if type(who) is int else self._mark_of(repr(who))

    def _tell_in(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        at = loop.time() + seconds
        if self._timer is not None:
            if self._tells_at <= at:
                return
            self._timer.cancel()
        self._tells_at = at
        self._timer = loop.call_later(seconds, self._tell)

    def _tell(self) -> None:
        """Tell others what they should know."""
        self._timer = None
        message = LimitsCharged(attempts={})
        if self._announcements is None:
            return
        if not self._announcements.waits(message):
            due = {name: limiter for name, limiter in self._shared.items() if limiter.is_due}
            for name, limiter in due.items():
                # An equal part for each: whoever floods one limit keeps no other from being told.
                if told := limiter.take(MOST_TOLD // len(due)):
                    message.attempts[name] = told
            if message.attempts:
                self._announcements.add(message)
        if any(limiter.is_due for limiter in self._shared.values()):
            self._tell_in(TELL_SECONDS)

    def _absorb(self, announced: LimitsCharged) -> None:
        for name, attempts in announced.attempts.items():
            limiter = self._shared.get(name)
            if limiter is not None:
                for who, count in attempts:
                    limiter.absorb(who, count)
