"""Leases for jobs that one node at a time does: backups and data exports."""

import asyncio
import contextlib
import secrets
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from tertulia.log.log import Log
from tertulia.model.errors import Unavailable
from tertulia.store import installation
from tertulia.store.backups import AHEAD_SECONDS
from tertulia.store.database import Connection, DatabaseError

LEASE_SECONDS: Final = 600.0
"""A node whose lease has ended is gone, and another one takes over."""
RENEWED_SECONDS: Final = 60.0


class JobLeaseLost(Exception):
    """Another node holds the lease."""


class JobLease:
    """A lease in the database that a node renews while it works."""

    def __init__(self, name: str) -> None:
        self._claim = f"{name}.claim"
        """Key of the time of the last renewal."""
        self._holder = f"{name}.holder"
        """Key of the holder's random name."""

    async def hold(self, log: Log, work: Callable[[], Coroutine[Any, Any, None]]) -> bool:
        """Do the work while holding the lease. Return False without doing it if another node holds
        the lease. Raises JobLeaseLost if another node took over."""
        holder, store = secrets.token_hex(8), log.store
        if not await store.write(lambda c: self.claimed(c, holder, log.clock())):
            return False

        async def renew() -> None:
            await store.write(lambda c: self.renewed(c, holder, log.clock()))

        try:
            await while_renewing(work(), renew)
        finally:
            await store.write(lambda c: self.given_back(c, holder))
        return True

    def claimed(self, connection: Connection, holder: str, now: float) -> bool:
        """Acquire the lease, in the open transaction. Return False if another holder's lease is
        valid. `now` is in UNIX seconds."""
        at = installation.value(connection, self._claim)
        if at is not None and -AHEAD_SECONDS <= now - float(at) < LEASE_SECONDS:
            return False
        installation.put(connection, self._claim, repr(now))
        installation.put(connection, self._holder, holder)
        return True

    def renewed(self, connection: Connection, holder: str, now: float) -> None:
        """Renew the lease, in the open transaction. Raises JobLeaseLost if another holder has
        it."""
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
    work: Coroutine[Any, Any, None], renew: Callable[[], Awaitable[None]]
) -> None:
    """Do the work and renew the lease. If renewing fails, the work is canceled, except during
    outages."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=RENEWED_SECONDS))[0]:
            with contextlib.suppress(DatabaseError, Unavailable):
                await renew()
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})
