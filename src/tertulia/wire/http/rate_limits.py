"""How much an account may ask in a minute, and a computer without one."""

import hashlib
import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from starlette.requests import Request

from tertulia.delivery.announcements import Announcements
from tertulia.log.log import Log
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.store.readers import Requester, current_requester
from tertulia.wire.http.errors import TooManyRequests, TooManyTries
from tertulia.wire.http.rate_limiter import MAX_KNOWN, RateLimiter
from tertulia.wire.http.request_head import client_network
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
    current_requester.set(Requester(person or "-", lambda: GONE in state))


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


TRIES: Final = 60
TRIES_PER_ACCOUNT: Final = 10
TRIES_FROM_ANYWHERE: Final = 100
FROM_ANYWHERE_SECONDS: Final = 3600.0
"""So many wrong passwords for one account, in that time, by all together who try it from where it
was never signed in to."""
MAX_ACCOUNTS_TRIED: Final = 50_000
"""So many accounts are remembered, at least: made-up addresses do not push real ones out."""
TRIES_PER_CODE: Final = 20
TRIES_SECONDS: Final = 600.0
"""Seconds in which somebody has so many wrong passwords again."""


class SignInLimits:
    """How often somebody may give a wrong password or code.

    A browser that has signed in to the account before (`device`) is counted by itself, and by
    nothing else: whatever others try, and from wherever, its owner gets in. Everybody else is
    counted by the network that they come from, for the account and for all accounts, and, unless
    the account was signed in to from there before, together with all others who try the account.
    """

    def __init__(self, limiters: Limiters) -> None:
        made = limiters.limiter
        self._by_device = made("sign-ins by device", TRIES_PER_ACCOUNT, TRIES_SECONDS)
        self._to_one = made("sign-ins to one account", TRIES_PER_ACCOUNT, TRIES_SECONDS)
        self._to_any = made("sign-ins from one network", TRIES, TRIES_SECONDS)
        self._from_anywhere = made(
            "sign-ins from anywhere", TRIES_FROM_ANYWHERE, FROM_ANYWHERE_SECONDS, MAX_ACCOUNTS_TRIED
        )
        self._codes = made("codes", TRIES_PER_CODE, TRIES_SECONDS)
        self._limiters = limiters
        self._known: OrderedDict[str, None] = OrderedDict()
        limiters.on_signed_in(self._know)

    def require(self, who: str | None, address: str, device: str | None = None) -> None:
        """TooManyTries unless `who` (`client_network`) may try a password of the account with that
        address now; it is counted. `device` is what stands for a browser, session or key that the
        account was signed in to with before."""
        account = _mark(address)
        if device is not None:
            self._by_device.require((device, account))
            return
        self._to_one.require((who, account))
        self._to_any.require(who)
        if not self.knows(who, address):
            try:
                self._from_anywhere.require(account)
            except TooManyTries:
                # Nothing was tried: the wait that others caused is not to grow.
                self._to_one.forgive((who, account))
                self._to_any.forgive(who)
                raise

    def succeeded(self, who: str | None, address: str, device: str | None = None) -> None:
        """The password was right: the last try does not count, and `who` is known from now on."""
        account = _mark(address)
        if device is not None:
            self._by_device.forgive((device, account))
        else:
            self._to_one.forgive((who, account))
            self._to_any.forgive(who)
            if not self.knows(who, address):
                self._from_anywhere.forgive(account)
        place = self._limiters.place(who, account)
        if place not in self._known:
            self._limiters.tell_signed_in(place)
        self._know(place)

    def _know(self, place: str) -> None:
        self._known[place] = None
        self._known.move_to_end(place)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def knows(self, who: str | None, address: str) -> bool:
        """Whether the account was signed in to from there since the node began, at any node, and
        not before very many others."""
        return self._limiters.place(who, _mark(address)) in self._known

    def require_code(self, who: str | None) -> None:
        """TooManyTries unless `who` may try a code or a link now; it is counted. They are random,
        and too long to be found from however many addresses."""
        self._codes.require(who)

    def code_was_right(self, who: str | None) -> None:
        """The last one does not count."""
        self._codes.forgive(who)


def _mark(address: str) -> str:
    """What stands for the address, however long somebody made it."""
    return hashlib.sha256(address.strip().casefold().encode()).hexdigest()


class Limits:
    """The limits of a node, which it shares with the others where there may be others."""

    def __init__(
        self, config: Config, log: Log, announcements: Announcements, vault: Vault
    ) -> None:
        self.limiters = Limiters(
            log.elapsed, announcements if log.store.is_shared else None, vault.mark
        )
        self.requests = RequestLimits(config, log.clock, self.limiters)
        self.sign_in = SignInLimits(self.limiters)
