"""How much an account may ask in a minute, and a computer without one."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

from starlette.requests import Request

from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.wire.http.client_address import client_network
from tertulia.wire.http.errors import TooManyRequests
from tertulia.wire.http.rate_limiter import RateLimiter
from tertulia.wire.http.shared_limits import Limiters

Who = TypeVar("Who", bound=User | None)

MAX_ACCOUNTS: Final = 100_000
"""Of so many accounts is remembered what they asked in the last minute."""
LIMIT: Final = "X-RateLimit-Limit"
REMAINING: Final = "X-RateLimit-Remaining"
RESET: Final = "X-RateLimit-Reset"
_LIMIT, _REMAINING, _RESET = (name.lower().encode() for name in (LIMIT, REMAINING, RESET))
_LINES: Final = b"".join(name + b": %d\r\n" for name in (_LIMIT, _REMAINING, _RESET))
_MINUTE: Final = 60.0


class RequestLimits:
    """Counts requests.

    GET /events is counted apart: following a busy organization takes many polls, which must not
    use up what the account may ask besides.
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
        self.count(request, None if user is None else user.id, polls=polls)
        return user

    def count(self, request: Request, user_id: int | None, *, polls: bool = False) -> None:
        """Count a request of the account, or, for None, of the network that it comes from. What is
        left goes into the headers of the answer (`rate_headers`). TooManyRequests where that is
        nothing."""
        if not self._is_on:
            return
        if user_id is None:
            self._charge(request, self._anonymous, client_network(request))
        else:
            self._charge(request, self._polls if polls else self._requests, user_id)

    def admits_poll(self, user_id: int) -> bool:
        """Count a GET /events of the account, to be answered with the headers of `poll_lines`.
        False, without counting it, where it is one too many."""
        return not self._is_on or self._polls.admits(user_id)

    def forgive_poll(self, user_id: int) -> None:
        """Count the account's last GET /events no more."""
        if self._is_on:
            self._polls.forgive(user_id)

    def poll_lines(self, user_id: int) -> bytes:
        """The headers of an answer to GET /events, as of now and as they go over the wire."""
        if not self._is_on:
            return b""
        ahead = self._polls.ahead(user_id)
        return _LINES % _state_of(self._polls, ahead, self._clock())

    def _charge(self, request: Request, limiter: RateLimiter, who: int | str | None) -> None:
        ahead = limiter.charge(who)
        request.state.rate = _state_of(limiter, ahead, self._clock())
        if wait := limiter.excess(ahead):
            raise TooManyRequests(wait)


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
