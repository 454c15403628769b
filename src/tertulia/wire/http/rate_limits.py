"""How much an account may ask in a minute, and a computer without one."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.store.readers import Asker, current_asker
from tertulia.wire.http.client_address import client_network
from tertulia.wire.http.errors import TooManyRequests
from tertulia.wire.http.rate_limiter import RateLimiter
from tertulia.wire.http.shared_limits import Limiters

Who = TypeVar("Who", bound=User | None)
Charged = Sequence[tuple[RateLimiter, int | str | None]]
"""Limiters, each with whom it counts an attempt for."""

MAX_ACCOUNTS: Final = 100_000
"""Of so many accounts is remembered what they asked in the last minute."""
LIMIT: Final = "X-RateLimit-Limit"
REMAINING: Final = "X-RateLimit-Remaining"
RESET: Final = "X-RateLimit-Reset"
GONE: Final = "gone"
"""In the state of a request whose client has closed the connection (`wire/protocol/http1.py`)."""
_LIMIT, _REMAINING, _RESET = (name.lower().encode() for name in (LIMIT, REMAINING, RESET))
_LINES: Final = b"".join(name + b": %d\r\n" for name in (_LIMIT, _REMAINING, _RESET))
_MINUTE: Final = 60.0
BOTS_OF_OWNER: Final = 5
"""All bots of one owner together can send this many times the requests of one account."""


class RequestLimits:
    """Counts requests.

    GET /events is counted apart: following a busy organization takes many polls, which must not
    use up what the account may ask besides.

    A bot's requests count for the bot, and in a budget that all bots of its owner share: more bots
    are not more requests. The owner's own requests are not in it, so that a bot out of control
    doesn't keep its owner from stopping it. A bot without an owner is counted by itself.
    """

    def __init__(self, config: Config, clock: Callable[[], float], limiters: Limiters) -> None:
        """`clock`, in UNIX seconds, is for the headers."""
        self._clock = clock
        self._is_on = config.rate_limits and not config.dev
        self._requests = limiters.limiter(
            "requests", config.requests_per_minute, _MINUTE, MAX_ACCOUNTS, is_rare=False
        )
        self._polls = limiters.limiter(
            "polls", config.polls_per_minute, _MINUTE, MAX_ACCOUNTS, is_rare=False
        )
        self._bot_requests = limiters.limiter(
            "requests of an owner's bots",
            BOTS_OF_OWNER * config.requests_per_minute,
            _MINUTE,
            MAX_ACCOUNTS,
            is_rare=False,
        )
        self._bot_polls = limiters.limiter(
            "polls of an owner's bots",
            BOTS_OF_OWNER * config.polls_per_minute,
            _MINUTE,
            MAX_ACCOUNTS,
            is_rare=False,
        )
        self._anonymous = limiters.limiter(
            "anonymous", config.anonymous_requests_per_minute, _MINUTE, is_rare=False
        )

    def admitted(
        self, request: Request, identified: Callable[[], Who], *, polls: bool = False
    ) -> Who:
        """The user that `identified` finds, with the request counted. Where it refuses, the request
        counts as anonymous. Raises what it raises, and TooManyRequests."""
        try:
            user = identified()
        except Refused:
            self.count(request, None)
            raise
        request.state.user = user
        read_for(request, user)
        self.count(request, user, polls=polls)
        return user

    def count(self, request: Request, user: User | None, *, polls: bool = False) -> None:
        """Count a request of the account, or, for None, of the network that it comes from. What is
        left goes into the headers of the answer (`rate_headers`). TooManyRequests where that is
        nothing."""
        if not self._is_on:
            return
        charged = (
            [(self._anonymous, client_network(request))]
            if user is None
            else self._limiters(user, polls=polls)
        )
        least, wait = _charge(charged)
        request.state.rate = _state_of(*least, self._clock())
        if wait:
            raise TooManyRequests(wait)

    def admits_poll(self, user: User) -> bool:
        """Count a GET /events of the account, to be answered with the headers of `poll_lines`.
        False, without counting it, where it is one too many."""
        return not self._is_on or not _charge(self._limiters(user, polls=True))[1]

    def forgive_poll(self, user: User) -> None:
        """Count the account's last GET /events no more."""
        if self._is_on:
            for limiter, who in self._limiters(user, polls=True):
                limiter.forgive(who)

    def poll_lines(self, user: User) -> bytes:
        """The headers of an answer to GET /events, as of now and as they go over the wire."""
        if not self._is_on:
            return b""
        found = [(one, one.ahead(who)) for one, who in self._limiters(user, polls=True)]
        return _LINES % _state_of(*_least(found), self._clock())

    def _limiters(self, user: User, *, polls: bool) -> Charged:
        """Where a request of the account counts, and as whose."""
        own, of_bots = (
            (self._polls, self._bot_polls) if polls else (self._requests, self._bot_requests)
        )
        if user.bot is None or user.bot.owner_id is None:
            return [(own, user.id)]
        return [(own, user.id), (of_bots, user.bot.owner_id)]


def _charge(charged: Charged) -> tuple[tuple[RateLimiter, float], float]:
    """Count an attempt with each of the limiters, or with none where it is too many for one.
    Returns the limiter that has least left, with what it answered, and the seconds to wait."""
    found: list[tuple[RateLimiter, float]] = []
    for limiter, who in charged:
        ahead = limiter.charge(who)
        if wait := limiter.excess(ahead):
            for before, whose in charged[: len(found)]:
                before.forgive(whose)
            return (limiter, ahead), wait
        found.append((limiter, ahead))
    return _least(found), 0.0


def _least(found: Sequence[tuple[RateLimiter, float]]) -> tuple[RateLimiter, float]:
    """The limiter that has least left."""
    return min(found, key=lambda one: one[0].left(one[1]))


def read_for(request: Request, user: User | None) -> None:
    """Let what the request reads from the database count for the user's person, or for the network
    of a client without an account."""
    state = request.scope["state"]
    person = client_network(request) if user is None else user.person_id
    current_asker.set(Asker(person or "-", lambda: GONE in state))


def rate_headers(state: Mapping[str, Any]) -> Iterable[tuple[bytes, bytes]]:
    """The headers of the answer to a request with that ASGI state: none if it was not counted."""
    rate: tuple[int, int, int] | None = state.get("rate")
    if rate is None:
        return ()
    limit, remaining, reset = rate
    return (_LIMIT, b"%d" % limit), (_REMAINING, b"%d" % remaining), (_RESET, b"%d" % reset)


def _state_of(limiter: RateLimiter, ahead: float, now: float) -> tuple[int, int, int]:
    """The limit, what is left of it, and when it is whole again in UNIX seconds."""
    return limiter.limit, limiter.left(ahead), math.ceil(now + limiter.whole_in(ahead))
