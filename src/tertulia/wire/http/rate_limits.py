"""Rate limits for requests and sign-ins."""

import hashlib
import math
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from starlette.requests import Request

from tertulia.delivery.peer_messages import PeerMessages
from tertulia.log.log import Log
from tertulia.model.errors import Refused
from tertulia.model.users import User
from tertulia.service.config import Config
from tertulia.service.credentials import Vault
from tertulia.store.readers import Requester, current_requester
from tertulia.wire.http.errors import TooManyRequests, TooManyTries
from tertulia.wire.http.limiters import MAX_KNOWN, Limiters, RateLimiter
from tertulia.wire.http.request_head import client_network

Who = TypeVar("Who", bound=User | None)
Charged = Sequence[tuple[RateLimiter, int | str | None]]
"""Limiters, each with the key that it counts for."""

MAX_ACCOUNTS: Final = 100_000
"""The minimum number of accounts whose requests are remembered."""
LIMIT: Final = "X-RateLimit-Limit"
REMAINING: Final = "X-RateLimit-Remaining"
RESET: Final = "X-RateLimit-Reset"
GONE: Final = "gone"
"""The key in a request's state that marks a closed connection (`ClientConnection`)."""
_LIMIT, _REMAINING, _RESET = (name.lower().encode() for name in (LIMIT, REMAINING, RESET))
_LINES: Final = b"".join(name + b": %d\r\n" for name in (_LIMIT, _REMAINING, _RESET))
_MINUTE: Final = 60.0
BOTS_OF_OWNER: Final = 5
"""All bots of an owner together can send this multiple of the requests of one account."""


class RequestLimits:
    """Rate limits for requests.

    GET /events has a separate limit, because following a busy organization takes many polls.

    A bot's requests count for the bot and for a budget that all bots of its owner share, so that
    more bots don't mean more requests. The owner's own requests aren't part of that budget, so that
    a runaway bot can't keep its owner from stopping it.
    """

    def __init__(self, config: Config, clock: Callable[[], float], limiters: Limiters) -> None:
        """`clock` returns UNIX seconds, for the headers."""
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
        """Return the user that `identified` returns, and count the request. If it raises, the
        request counts as anonymous. Raises what it raises, and TooManyRequests."""
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
        """Count a request for the user or, if None, for the client's network. `rate_headers` then
        has the remaining requests. Raises TooManyRequests."""
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
        """Count a GET /events of the user, whose response has the headers `poll_lines`. Return
        False, without counting, if it exceeds the limit."""
        return not self._is_on or not _charge(self._limiters(user, polls=True))[1]

    def forgive_poll(self, user: User) -> None:
        """Take back the user's last GET /events."""
        if self._is_on:
            for limiter, who in self._limiters(user, polls=True):
                limiter.forgive(who)

    def poll_lines(self, user: User) -> bytes:
        """Return the current header lines of a response to GET /events."""
        if not self._is_on:
            return b""
        charges = [
            (limiter, limiter.ahead(who)) for limiter, who in self._limiters(user, polls=True)
        ]
        return _LINES % _state_of(*_least(charges), self._clock())

    def _limiters(self, user: User, *, polls: bool) -> Charged:
        """Return the limiters that count the user's requests."""
        rate_limiter, of_bots = (
            (self._polls, self._bot_polls) if polls else (self._requests, self._bot_requests)
        )
        if user.bot is None or user.bot.owner_id is None:
            return [(rate_limiter, user.id)]
        return [(rate_limiter, user.id), (of_bots, user.bot.owner_id)]


def _charge(charged: Charged) -> tuple[tuple[RateLimiter, float], float]:
    """Count an attempt with each limiter, or with none if one refuses. Return the limiter with the
    fewest attempts left, its result, and the seconds to wait."""
    charges: list[tuple[RateLimiter, float]] = []
    for limiter, who in charged:
        ahead = limiter.charge(who)
        if wait := limiter.excess(ahead):
            for before, whose in charged[: len(charges)]:
                before.forgive(whose)
            return (limiter, ahead), wait
        charges.append((limiter, ahead))
    return _least(charges), 0.0


def _least(charges: Sequence[tuple[RateLimiter, float]]) -> tuple[RateLimiter, float]:
    return min(charges, key=lambda item: item[0].left(item[1]))


def read_for(request: Request, user: User | None) -> None:
    """Attribute the request's database reads to the user's person or the anonymous client's
    network."""
    state = request.scope["state"]
    person = client_network(request) if user is None else user.person_id
    current_requester.set(Requester(person or "-", lambda: GONE in state))


def rate_headers(state: Mapping[str, Any]) -> Iterable[tuple[bytes, bytes]]:
    """Return the rate limit headers for a request with this ASGI state; empty if it wasn't
    counted."""
    rate: tuple[int, int, int] | None = state.get("rate")
    if rate is None:
        return ()
    limit, remaining, reset = rate
    return (_LIMIT, b"%d" % limit), (_REMAINING, b"%d" % remaining), (_RESET, b"%d" % reset)


def _state_of(limiter: RateLimiter, ahead: float, now: float) -> tuple[int, int, int]:
    """Return the limit, the attempts left, and the UNIX time when all are available again."""
    return limiter.limit, limiter.left(ahead), math.ceil(now + limiter.whole_in(ahead))


TRIES: Final = 60
TRIES_PER_ACCOUNT: Final = 10
TRIES_FROM_ANYWHERE: Final = 100
FROM_ANYWHERE_SECONDS: Final = 3600.0
"""The period of the limit of wrong passwords for one account from all unknown networks together."""
MAX_ACCOUNTS_TRIED: Final = 50_000
"""The minimum number of accounts that are remembered. It's high so that made-up addresses don't
push out real ones."""
TRIES_PER_CODE: Final = 20
TRIES_SECONDS: Final = 600.0
"""The time after which all attempts are available again."""
FACTOR_TRIES: Final = 10
"""The most codes of second factors per account, from one network or browser."""
FACTOR_TRIES_FROM_ANYWHERE: Final = 20
FACTOR_SECONDS: Final = 86400.0
"""The period of the limit of six-digit codes for one account from all unknown browsers together.
Decision 0053 has the chances of a guess."""
WRONG_CODES: Final = 5
WRONG_CODES_SECONDS: Final = 3600.0
"""The period in which more wrong codes than the limit are reported to the person, once a day."""


_LONGEST_NAME: Final = 500
"""The number of characters of a name that count. Longer names that begin the same are the same
key."""


class SignInLimits:
    """Rate limits for wrong passwords and codes.

    A browser that has signed in to the account before (`device`) has a separate limit, so that its
    owner can sign in regardless of others' attempts. All other clients are limited by network, per
    account and for all accounts. Networks that are new to the account also share a limit for the
    account.
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
        self._factors = made("second factors", FACTOR_TRIES, TRIES_SECONDS)
        self._factors_from_anywhere = made(
            "second factors from anywhere",
            FACTOR_TRIES_FROM_ANYWHERE,
            FACTOR_SECONDS,
            MAX_ACCOUNTS_TRIED,
        )
        self._wrong_codes = made("wrong codes", WRONG_CODES, WRONG_CODES_SECONDS)
        self._warnings = made("warnings of wrong codes", 1, FACTOR_SECONDS)
        self._limiters = limiters
        self._known: OrderedDict[str, None] = OrderedDict()
        limiters.on_signed_in(self._know)

    def require(self, who: str | None, address: str, device: str | None = None) -> None:
        """Count an attempt with the password for this address. Raises TooManyTries. `who` is the
        `client_network`. `device` identifies a browser, session, or key that was used with the
        account before."""
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
                # Nothing was tried, so the waiting time that others caused must not grow.
                self._to_one.forgive((who, account))
                self._to_any.forgive(who)
                raise

    def succeeded(
        self, who: str | None, address: str, device: str | None = None, *, remember: bool = True
    ) -> None:
        """Take back the last attempt, because the password was right. With `remember`, it signed
        the person in, and the network counts as theirs."""
        account = _mark(address)
        if device is not None:
            self._by_device.forgive((device, account))
        else:
            self._to_one.forgive((who, account))
            self._to_any.forgive(who)
            if not self.knows(who, address):
                self._from_anywhere.forgive(account)
        if remember:
            self.remember(who, address)

    def remember(self, who: str | None, address: str) -> None:
        """Remember that the person signs in from this network."""
        place = self._limiters.digest(who, _mark(address))
        if place not in self._known:
            self._limiters.tell_signed_in(place)
        self._know(place)

    def _know(self, place: str) -> None:
        self._known[place] = None
        self._known.move_to_end(place)
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def knows(self, who: str | None, address: str) -> bool:
        """Return whether anyone signed in to the account from this network since the node started,
        on any node, as far as is remembered."""
        return self._limiters.digest(who, _mark(address)) in self._known

    def require_factor(
        self, who: str | None, user_id: int, device: str | None, is_short: bool
    ) -> None:
        """Count an attempt with a second factor's code. Raises TooManyTries. The parameters are as
        in `require`. Codes that are `is_short` can be guessed, so attempts from new browsers share
        a limit."""
        self._factors.require((device or who, user_id))
        if device is None and is_short:
            try:
                self._factors_from_anywhere.require(user_id)
            except TooManyTries:
                self._factors.forgive((who, user_id))
                raise

    def factor_was_right(
        self, who: str | None, user_id: int, device: str | None, is_short: bool
    ) -> None:
        """Take back the last attempt with a second factor's code."""
        self._factors.forgive((device or who, user_id))
        if device is None and is_short:
            self._factors_from_anywhere.forgive(user_id)

    def warns_of_guesses(self, user_id: int) -> bool:
        """Count a wrong code, and return whether to email the person about them."""
        return not self._wrong_codes.admits(user_id) and self._warnings.admits(user_id)

    def require_code(self, who: str | None) -> None:
        """Count an attempt with a code or link. Raises TooManyTries. Codes are too long to be
        guessed from any number of addresses."""
        self._codes.require(who)

    def code_was_right(self, who: str | None) -> None:
        """Take back the last attempt with a code."""
        self._codes.forgive(who)


class KeyLimits:
    """Rate limits for API keys that the previous server verifies (`moving_from_url`): of one
    account from one network and from anywhere, and of all accounts from one network."""

    def __init__(self, limiters: Limiters) -> None:
        made = limiters.limiter
        self._to_one = made("keys of one account", TRIES_PER_ACCOUNT, TRIES_SECONDS)
        self._to_any = made("keys from one network", TRIES, TRIES_SECONDS)
        self._from_anywhere = made(
            "keys from anywhere", TRIES_FROM_ANYWHERE, FROM_ANYWHERE_SECONDS, MAX_ACCOUNTS_TRIED
        )

    def require(self, who: str | None, user_id: int) -> None:
        """Count a verification for a `client_network`. Raises TooManyTries."""
        self._to_one.require((who, user_id))
        self._to_any.require(who)
        self._from_anywhere.require(user_id)


def _mark(address: str) -> str:
    """Return a digest of the address, which may be arbitrarily long. Spellings that a directory
    considers equal have the same digest: directories ignore case, accents, invisible characters,
    and repeated spaces (RFC 4518)."""
    spread = unicodedata.normalize("NFKD", address[:_LONGEST_NAME])
    seen = "".join(text for text in spread if unicodedata.category(text)[0] not in "CM")
    return hashlib.sha256(" ".join(seen.casefold().split()).encode()).hexdigest()


class RateLimits:
    """All rate limits of a node, shared with other nodes if there are any."""

    def __init__(self, config: Config, log: Log, peer_messages: PeerMessages, vault: Vault) -> None:
        self.limiters = Limiters(
            log.elapsed, peer_messages if log.store.is_shared else None, vault.mark
        )
        self.requests = RequestLimits(config, log.clock, self.limiters)
        self.sign_in = SignInLimits(self.limiters)
        self.keys = KeyLimits(self.limiters)
