"""Leases for work that only one process does at a time: backups, data exports, and imports."""

import asyncio
import contextlib
import math
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from tertulia.log.log import Log
from tertulia.model.errors import Unavailable
from tertulia.store import installation
from tertulia.store.backups import AHEAD_SECONDS
from tertulia.store.database import Connection, DatabaseError

LEASE_SECONDS: Final = 600.0
"""The duration of a lease in seconds. If it ends, the node is gone, and another one takes over."""
RENEWED_SECONDS: Final = 60.0


class JobLeaseLost(Exception):
    """Another node holds the lease."""


class JobLease:
    """A lease in the database that a node renews while it works."""

    def __init__(
        self, name: str, seconds: float = LEASE_SECONDS, renewed: float | None = None
    ) -> None:
        """Create a lease, which is valid for `seconds` without being renewed. `renewed` is the
        interval of renewals; None is `RENEWED_SECONDS`."""
        self._seconds = seconds
        self._renewed = renewed
        self._claim = f"{name}.claim"
        """The key of the time of the last renewal."""
        self._holder = f"{name}.holder"
        """The key of the holder's random name."""

    async def hold(
        self, log: Log, work: Callable[[], Coroutine[Any, Any, None]], location: str = ""
    ) -> bool:
        """Do the work while holding the lease. Return False without doing it if another node holds
        the lease. Raise JobLeaseLost if another node took over.

        With a `location`, such as a directory, the caller has a lock there that every holder at
        this location takes. So another lease of this location is left from a killed process, and is
        ignored.
        """
        holder, store = (
            f"{location}#{secrets.token_hex(8)}" if location else secrets.token_hex(8),
            log.store,
        )
        if not await store.write(lambda c: self.claimed(c, holder, log.clock())):
            return False

        async def renew() -> None:
            await store.write(lambda c: self.renewed(c, holder, log.clock()))

        try:
            await while_renewing(work(), renew, self._renewed)
        finally:
            await store.write(lambda c: self.given_back(c, holder))
        return True

    def is_held(
        self, connection: Connection, now: float, location: str = "", since: float = -math.inf
    ) -> bool:
        """Whether a holder at another location has a valid lease, which it renewed after `since`.
        Times are in UNIX seconds."""
        at = installation.value(connection, self._claim)
        if at is None or not -AHEAD_SECONDS <= now - float(at) < self._seconds:
            return False
        if float(at) < since:
            return False
        holder = installation.value(connection, self._holder) or ""
        return not location or holder.rpartition("#")[0] != location

    def claimed(self, connection: Connection, holder: str, now: float) -> bool:
        """Acquire the lease in the open transaction. Return False if another holder's lease is
        valid. `now` is in UNIX seconds."""
        if self.is_held(connection, now, holder.rpartition("#")[0]):
            return False
        installation.put(connection, self._claim, repr(now))
        installation.put(connection, self._holder, holder)
        return True

    def renewed(self, connection: Connection, holder: str, now: float) -> None:
        """Renew the lease, in the open transaction. Raise JobLeaseLost if another holder has it."""
        if installation.value(connection, self._holder) != holder:
            raise JobLeaseLost(
                "Another node is doing it, because this one didn't renew its lease in time."
            )
        installation.put(connection, self._claim, repr(now))

    def given_back(self, connection: Connection, holder: str) -> None:
        """Release the lease, in the open transaction."""
        if installation.value(connection, self._holder) == holder:
            installation.forget(connection, self._claim)
            installation.forget(connection, self._holder)


async def while_renewing(
    work: Coroutine[Any, Any, None],
    renew: Callable[[], Awaitable[None]],
    every: float | None = None,
) -> None:
    """Do the work, and renew the lease every `every` seconds (default: `RENEWED_SECONDS`). If
    renewing fails, cancel the work, except during outages."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=every or RENEWED_SECONDS))[0]:
            with contextlib.suppress(DatabaseError, Unavailable):
                await renew()
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})
