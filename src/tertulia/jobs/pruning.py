"""Forgetting what is old, and at once what an erasure must remove.

The log's beginning is forgotten when it is older than the retention time, but never what the
checkpoint does not stand for. When somebody's account was deleted with what was of their person,
a new checkpoint is made, and everything before is forgotten: so nothing of them is left in entries,
nor in copies that were made before migrations, nor in mails that wait.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.log.writer import Log
from tertulia.model.changes import Entry, UserChanged
from tertulia.store import outbox, pruning, reading
from tertulia.store.database import Connection
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.jobs")

PERIOD_SECONDS: Final = 3600.0
DAY: Final = 86400
AT_ONCE: Final = 5000
"""Entries deleted in one transaction, so that others can write in between."""
COPIES_DAYS: Final = 30
"""Copies made before migrations are kept so long."""
OTHER_NODES_SECONDS: Final = 60.0
"""Before an erasure is forgotten: every node that serves has read it from the log by then."""


def log_pruning(log: Log, retention_days: int) -> Job:
    """Forgetting what is older than the retention time, every hour."""

    async def once() -> float:
        now = log.clock()
        await pruned_once(log.store, now - retention_days * DAY)
        await asyncio.to_thread(log.store.database.delete_copies, now - COPIES_DAYS * DAY)
        return PERIOD_SECONDS

    return Job("log pruning", once)


def erasures(log: Log) -> Job:
    """Forgetting what deleted accounts have left in the log, as soon as there is one."""
    delay = OTHER_NODES_SECONDS if log.store.is_shared else 0.0
    since: float | None = 0.0
    """When the last erasure that is known of was committed, in UNIX seconds; None for none. There
    may be one that an earlier run has left."""

    async def once() -> float:
        nonlocal since
        if since is None:
            return PERIOD_SECONDS
        left = since + delay - log.clock()
        if left > 0:
            return min(left, delay)
        was, since = since, None
        try:
            await erased_once(log.store)
        except BaseException:
            since = was
            raise
        return PERIOD_SECONDS

    job = Job("erasures", once)

    def follow(entries: Sequence[Entry]) -> None:
        nonlocal since
        for entry in entries:
            if isinstance(entry.change, UserChanged) and entry.change.values.get("is_deleted"):
                since = entry.at
                job.want()

    log.follow(follow)
    return job


async def pruned_once(store: Store, before: float) -> None:
    """Forget the log's entries from before that UNIX time, as far as there is a checkpoint, which
    is made anew where it would keep any of them."""
    until = await store.read(pruning.newest_before, before)
    if until <= await store.read(reading.pruned):
        return
    if await store.read(pruning.checkpoint_at) < until:
        await asyncio.to_thread(pruning.make_checkpoint, store.database)
    await _forget(store, until)


async def erased_once(store: Store) -> None:
    """Forget everything up to the last erasure, if there is one in the log."""
    until = await store.read(pruning.newest_erasure)
    if not until:
        return
    await asyncio.to_thread(pruning.make_checkpoint, store.database)
    await store.write(lambda connection: _drop_mails(connection, until))
    await asyncio.to_thread(store.database.delete_copies)
    await _forget(store, until)
    logger.info(
        "forgot what a deleted account had left in the log", extra={"fields": {"to": until}}
    )


def _drop_mails(connection: Connection, until: int) -> None:
    """Those that wait for the addresses which deleted accounts had."""
    entries = reading.entries(connection, reading.pruned(connection), 2**31, until)
    outbox.drop(
        connection,
        {
            str(entry.change.was["address"])
            for entry in entries
            if isinstance(entry.change, UserChanged)
            and entry.change.values.get("is_deleted")
            and "address" in entry.change.was
        },
    )


async def _forget(store: Store, until: int) -> None:
    while await store.write(lambda connection: pruning.prune(connection, until, AT_ONCE)):
        pass
    while await asyncio.to_thread(store.database.give_back_space):
        pass
