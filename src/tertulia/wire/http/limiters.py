"""Rate limiters with the generic cell rate algorithm (GCRA), which nodes can share.

Each node counts separately and decides immediately. It soon sends its counts to the others, which
add them to their own. Decision 0027 has the bound on the attempts that get through in between.
"""

import asyncio
import heapq
from collections.abc import Callable, Hashable
from typing import Final

from tertulia.delivery.peer_messages import PeerMessages
from tertulia.model.peer_messages import LimitsCharged, SignedInFrom
from tertulia.wire.http.errors import TooManyTries

MAX_KNOWN: Final = 10_000
"""The minimum number of keys that a limiter remembers."""


class RateLimiter:
    """Allows `limit` attempts per key, which become available again one by one, all within
    `seconds`.

    For each key, GCRA stores one time: when all its attempts are available again. At least `known`
    keys are remembered, and at most twice as many.
    """

    def __init__(
        self, limit: int, seconds: float, clock: Callable[[], float], known: int = MAX_KNOWN
    ) -> None:
        self.limit = limit
        self.seconds = seconds
        self._each = seconds / limit
        # Allow for rounding errors.
        self._bound = seconds + self._each / 100
        self._longest = seconds
        """The longest time until all attempts are available again."""
        self._clock = clock
        # Times are relative to this: UNIX seconds would be less precise.
        self._began = clock()
        self._latest = 0.0
        self._known = known
        self._recent: dict[Hashable, float] = {}
        self._before: dict[Hashable, float] = {}
        self._until = 0.0

    def charge(self, who: Hashable) -> float:
        """Count an attempt, unless that would exceed the limit (`excess`). Returns the seconds
        until all attempts are available again, including this one."""
        now = self._now()
        if now >= self._until or len(self._recent) >= self._known:
            self._rotate(now)
        before = self._ahead(who, now)
        ahead = before + self._each
        counted = before if ahead > self._bound else ahead if ahead < self.seconds else self.seconds
        self._recent[who] = now + counted
        return ahead

    def ahead(self, who: Hashable) -> float:
        """Return the current value of what `charge` returned last."""
        return self._ahead(who, self._now())

    def excess(self, ahead: float) -> float:
        """Convert a result of `charge` to seconds until the next attempt is allowed; 0 if this one
        was."""
        return ahead - self.seconds if ahead > self._bound else 0.0

    def whole_in(self, ahead: float) -> float:
        """Convert a result of `charge` to seconds until all attempts are available again."""
        return ahead if ahead <= self._bound else max(ahead - self._each, self.seconds)

    def left(self, ahead: float) -> int:
        """Convert a result of `charge` to the number of attempts left."""
        return int((self._bound - ahead) / self._each) if ahead <= self._bound else 0

    def admits(self, who: Hashable) -> bool:
        """Count an attempt and return whether it is allowed."""
        return not self.excess(self.charge(who))

    def require(self, who: Hashable) -> None:
        """Count an attempt. Raises TooManyTries."""
        if wait := self.excess(self.charge(who)):
            raise TooManyTries(wait)

    def forgive(self, who: Hashable) -> None:
        """Take back the last attempt, which was allowed."""
        now = self._now()
        self._recent[who] = now + self._ahead(who, now) - self._each

    def _now(self) -> float:
        """Return the seconds since the start. If the clock is set back, time stands still, so that
        nobody waits longer."""
        now = self._clock() - self._began
        if now < self._latest:
            self._began -= self._latest - now
            return self._latest
        self._latest = now
        return now

    def _rotate(self, now: float) -> None:
        """Forget keys without an attempt since the last rotation: all their attempts are
        available."""
        self._before, self._recent = self._recent, {}
        self._until = now + self._longest

    def _ahead(self, who: Hashable, now: float) -> float:
        """Return the seconds until all attempts are available again."""
        at = self._recent.get(who)
        if at is None:
            at = self._before.get(who, now)
        return max(at - now, 0.0)


SEND_SECONDS: Final = 0.1
"""The interval between messages to other nodes for limits that are charged all the time."""
LEAST_SHARE: Final = 50
"""A key that used less than 1/`LEAST_SHARE` of its limit isn't sent to other nodes for such
limits."""
MAX_SENT: Final = 250
"""The most keys in one message, those with the most attempts first. The message must fit into one
database notification."""
MOST_DEBT: Final = 16
"""Attempts that several nodes allowed before they heard from each other delay the next ones, up to
this multiple of the limit."""

Who = int | str
"""A key that nodes exchange: a user ID or a digest."""


class SharedLimiter(RateLimiter):
    """A limiter that shares its counts with limiters of the same name on other nodes."""

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
        """`due` is called when a key has `least` attempts that weren't sent to other nodes."""
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
        """Count attempts made on another node. A negative number takes attempts back."""
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
        # Don't send keys that were forgotten.
        self._untold = {who: n for who, n in self._untold.items() if who in self._before}
        self._due = {who: None for who in self._due if who in self._untold}

    @property
    def is_due(self) -> bool:
        return bool(self._due)

    def take(self, most: int) -> list[tuple[Who, int]]:
        """Return up to `most` keys to send now, with their attempts since they were last
        sent."""
        chosen = list(self._due)
        if len(chosen) > most:
            chosen = heapq.nlargest(most, chosen, key=lambda who: abs(self._untold[who]))
        for who in chosen:
            del self._due[who]
        return [(who, n) for who in chosen if (n := self._untold.pop(who))]


class Limiters:
    """Creates a node's limiters. Limiters with the same name share their counts on all nodes."""

    def __init__(
        self,
        clock: Callable[[], float],
        peer_messages: PeerMessages | None = None,
        mark: Callable[[str], str] = str,
    ) -> None:
        """`peer_messages` go to other nodes (None if the node is alone). `mark` returns a digest
        that stands for a text without revealing it."""
        self._clock = clock
        self._peer_messages = peer_messages
        self._mark_of = mark
        self._limiters: dict[str, RateLimiter] = {}
        self._shared: dict[str, SharedLimiter] = {}
        self._timer: asyncio.Handle | None = None
        self._tells_at = 0.0
        if peer_messages is not None:
            peer_messages.listen(LimitsCharged, self._absorb)

    def limiter(
        self,
        name: str,
        limit: int,
        seconds: float,
        known: int = MAX_KNOWN,
        *,
        is_rare: bool = True,
    ) -> RateLimiter:
        """Return the limiter with this name (see `RateLimiter`). If it `is_rare`, each attempt is
        sent to other nodes immediately."""
        if name in self._limiters:
            return self._limiters[name]
        if self._peer_messages is None:
            self._limiters[name] = RateLimiter(limit, seconds, self._clock, known)
            return self._limiters[name]
        shared = SharedLimiter(
            limit,
            seconds,
            self._clock,
            known,
            least=1 if is_rare else max(1, limit // LEAST_SHARE),
            mark=self._mark,
            due=lambda: self._tell_in(0.0 if is_rare else SEND_SECONDS),
        )
        self._limiters[name] = self._shared[name] = shared
        return shared

    def digest(self, *who: Hashable) -> str:
        """Return a digest of the values."""
        return self._mark_of(repr(who))

    def tell_signed_in(self, place: str) -> None:
        """Tell the other nodes of a sign-in."""
        if self._peer_messages is not None:
            self._peer_messages.add(SignedInFrom(mark=place))

    def on_signed_in(self, learn: Callable[[str], None]) -> None:
        """Call `learn` with the digest when another node reports a sign-in."""
        if self._peer_messages is not None:
            self._peer_messages.listen(SignedInFrom, lambda sign_in: learn(sign_in.mark))

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
        self._timer = None
        message = LimitsCharged(attempts={})
        if self._peer_messages is None:
            return
        if not self._peer_messages.waits(message):
            due = {name: limiter for name, limiter in self._shared.items() if limiter.is_due}
            for name, limiter in due.items():
                # Share the room equally, so that flooding one limit doesn't crowd out the others.
                if size := limiter.take(MAX_SENT // len(due)):
                    message.attempts[name] = size
            if message.attempts:
                self._peer_messages.add(message)
        if any(limiter.is_due for limiter in self._shared.values()):
            self._tell_in(SEND_SECONDS)

    def _absorb(self, charged: LimitsCharged) -> None:
        for name, attempts in charged.attempts.items():
            limiter = self._shared.get(name)
            if limiter is not None:
                for who, count in attempts:
                    limiter.absorb(who, count)
