"""How often somebody may try something: one number is kept of each who does."""

import hashlib
import ipaddress
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

from starlette.requests import Request

from tertulia.wire.http.errors import TooManyTries

MAX_KNOWN: Final = 10_000
"""Of so many who tried is remembered when, at least."""
TRIES: Final = 60
TRIES_PER_ACCOUNT: Final = 10
TRIES_FROM_ANYWHERE: Final = 100
FROM_ANYWHERE_SECONDS: Final = 3600.0
"""So many wrong passwords for one account, in that time, by all together who try it from where it
was never signed in to."""
MAX_ACCOUNTS_TRIED: Final = 50_000
"""Of so many accounts is remembered when they were tried so, at least: whoever makes up addresses
does not make it forget."""
TRIES_PER_CODE: Final = 20
TRIES_SECONDS: Final = 600.0
"""Seconds in which somebody has so many wrong passwords again."""
_LONGEST: Final = 64
"""Characters of an address."""


class Pace:
    """`limit` attempts for each of those who try, and as many again in `seconds`: they come back
    one by one. A node counts by itself, and begins anew when it does.

    Of each is kept when they will have all attempts again (the generic cell rate algorithm), for as
    long as that is to come. Of `known` or more is remembered at the same time, and of no more than
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
        self._clock = clock
        # Times are counted from here: as UNIX seconds they would be coarse.
        self._began = clock()
        self._known = known
        self._recent: dict[Hashable, float] = {}
        self._before: dict[Hashable, float] = {}
        self._until = 0.0

    def charge(self, who: Hashable, now: float) -> float:
        """Count an attempt. In how many seconds they have all attempts again; an attempt too many
        is not counted: see `excess`."""
        now -= self._began
        if now >= self._until or len(self._recent) >= self._known:
            # Whoever tried before that has all attempts again.
            self._before, self._recent = self._recent, {}
            self._until = now + self.seconds
        before = self._ahead(who, now)
        ahead = before + self._each
        self._recent[who] = now + (ahead if ahead <= self._bound else before)
        return ahead

    def ahead(self, who: Hashable, now: float) -> float:
        """What `charge` answered last, as of now."""
        return self._ahead(who, now - self._began)

    def excess(self, ahead: float) -> float:
        """What `charge` answered as seconds to wait before the next attempt; 0 where the attempt
        was counted."""
        return ahead - self.seconds if ahead > self._bound else 0.0

    def left(self, ahead: float) -> int:
        """What `charge` answered as attempts that are left now."""
        return int((self._bound - ahead) / self._each) if ahead <= self._bound else 0

    def admits(self, who: Hashable) -> bool:
        """Whether they may try now; it is counted."""
        return not self.excess(self.charge(who, self._clock()))

    def require(self, who: Hashable) -> None:
        """TooManyTries unless they may try now; it is counted."""
        if wait := self.excess(self.charge(who, self._clock())):
            raise TooManyTries(wait)

    def forgive(self, who: Hashable) -> None:
        """The last attempt does not count: it was none too many."""
        now = self._clock() - self._began
        self._recent[who] = now + self._ahead(who, now) - self._each

    def _ahead(self, who: Hashable, now: float) -> float:
        """In how many seconds they have all attempts again. Never more than it takes from none,
        should the clock have been set back."""
        at = self._recent.get(who)
        if at is None:
            at = self._before.get(who, now)
        return min(max(at - now, 0.0), self.seconds)


class SignIns:
    """How often somebody may give a wrong password or code.

    A browser that has signed in to the account before (`device`) is counted by itself, and by
    nothing else: whatever others try, and from wherever, its owner gets in. Everybody else is
    counted by the network that they come from, for the account and for all accounts, and, unless
    the account was signed in to from there before, together with all others who try the account.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._by_device = Pace(TRIES_PER_ACCOUNT, TRIES_SECONDS, clock)
        self._to_one = Pace(TRIES_PER_ACCOUNT, TRIES_SECONDS, clock)
        self._to_any = Pace(TRIES, TRIES_SECONDS, clock)
        self._from_anywhere = Pace(
            TRIES_FROM_ANYWHERE, FROM_ANYWHERE_SECONDS, clock, MAX_ACCOUNTS_TRIED
        )
        self._codes = Pace(TRIES_PER_CODE, TRIES_SECONDS, clock)
        self._known: OrderedDict[tuple[Hashable, str], None] = OrderedDict()

    def require(self, who: str | None, address: str, device: str | None = None) -> None:
        """TooManyTries unless `who` (`who_tries`) may try a password of the account with that
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
                # Nothing was tried: whoever waits for the others is not to wait for longer.
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
        self._known[who, account] = None
        self._known.move_to_end((who, account))
        if len(self._known) > MAX_KNOWN:
            self._known.popitem(last=False)

    def knows(self, who: str | None, address: str) -> bool:
        """Whether the account was signed in to from there since the node began, and not before
        very many others."""
        return (who, _mark(address)) in self._known

    def require_code(self, who: str | None) -> None:
        """TooManyTries unless `who` may try a code or a link now; it is counted. They are random,
        and too long to be found from however many addresses."""
        self._codes.require(who)

    def code_was_right(self, who: str | None) -> None:
        """The last one does not count."""
        self._codes.forgive(who)


def address_of(request: Request) -> str:
    """The address of the computer that the request comes from, `-` where it is not known."""
    return (request.client.host[:_LONGEST] if request.client else "") or "-"


def who_tries(request: Request) -> str | None:
    """The address of the computer that the request comes from, or what stands for it: see
    `network_of`. A proxy's word for it is taken where the settings say so, before this."""
    return network_of(request.client.host) if request.client else None


def network_of(host: str) -> str:
    """What stands for an address: of IPv6 the network, of which one computer has all addresses."""
    if ":" not in host:
        return host[:_LONGEST]
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        return host[:_LONGEST]
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return address.packed[:8].hex(":", 2) + "::/64"


def _mark(address: str) -> str:
    """What stands for the address, however long somebody made it."""
    return hashlib.sha256(address.strip().casefold().encode()).hexdigest()
