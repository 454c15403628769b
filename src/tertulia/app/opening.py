"""Opening the parts that commands need too: the log, and the vault."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager

from tertulia.log.log import Log
from tertulia.log.position_file import PositionFile
from tertulia.service.config import Config
from tertulia.service.membership import Membership
from tertulia.service.vault import Vault, load_secret
from tertulia.store import file_modes, scratch
from tertulia.store.neighbours import meeting_place
from tertulia.store.store import Store, database_at


@asynccontextmanager
async def opened_log(
    config: Config,
    report: Callable[[str], None],
    *,
    on_announcement: Callable[[str], None] | None = None,
    clock: Callable[[], float] = time.time,
    elapsed: Callable[[], float] = time.monotonic,
    membership: Membership | None = None,
    absent: Exception | None = None,
) -> AsyncIterator[Log]:
    """The organization's log, migrated and open, for the time of the context. It is a server's with
    a `membership`; else DatabaseError where a server runs and the database would be migrated. What
    backups left that were killed is deleted. Where no database is there, it is made, unless it is
    said what is to be raised then, before anything is touched (`absent`)."""
    serves = membership is not None
    database = database_at(config.data_path, config.database_url, config.bus)
    store = Store(database, serves=serves)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        with database.opening():
            if absent is not None and not database.exists():
                raise absent
            file_modes.directory(config.data_path)
            if scratch.found(config.data_path):
                await asyncio.to_thread(scratch.sweep, config.data_path)
            await store.migrate(report)
            if membership is not None:
                await stack.enter_async_context(membership.listed(store))
        log = Log(
            store,
            clock,
            elapsed,
            position_file=PositionFile(config.data_path) if serves else None,
            meeting_place=meeting_place() if serves else None,
        )
        await log.open(on_announcement or (lambda _: None))
        if membership is not None:
            membership.loaded(log)
        try:
            yield log
        finally:
            await log.close()


def opened_vault(config: Config, *, create: bool = False) -> Vault:
    """The vault with the installation's secret. VaultError where there is none."""
    return Vault(load_secret(config.data_path, config.secret or None, create=create))
