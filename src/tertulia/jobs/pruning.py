"""Forgetting the log's beginning."""

from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.log.writer import Log
from tertulia.store.pruning import prune
from tertulia.store.store import Store

PERIOD_SECONDS: Final = 3600.0
DAY: Final = 86400
AT_ONCE: Final = 5000
"""Entries deleted in one transaction, so that others can write in between."""


def pruning(log: Log, retention_days: int) -> Job:
    """Deleting entries that are older than the retention time, every hour."""

    async def once() -> float:
        await pruned_once(log.store, log.clock() - retention_days * DAY)
        return PERIOD_SECONDS

    return Job("log pruning", once)


async def pruned_once(store: Store, before: float) -> None:
    """Delete the entries from before that UNIX time."""
    while await store.write(lambda connection: prune(connection, before, AT_ONCE)):
        pass
