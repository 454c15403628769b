"""How often somebody may give a wrong password or code."""

import hashlib
from collections import OrderedDict
from typing import Final

from tertulia.wire.http.errors import TooManyTries
from tertulia.wire.http.rate_limiter import MAX_KNOWN
from tertulia.wire.http.shared_limits import Limiters

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
