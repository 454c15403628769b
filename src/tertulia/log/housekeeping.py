"""What is done to the log now and then."""

import asyncio
import logging
import time
from collections.abc import Callable

from tertulia.store.pruning import prune
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")

PERIOD_SECONDS = 3600
DAY = 86400
AT_ONCE = 5000
"""Entries deleted in one transaction, so that others can write in between."""


async def keep_pruned(
    store: Store, retention_days: int, clock: Callable[[], float] = time.time
) -> None:
    """Delete what is older than the retention time, now and every hour, until cancelled."""
    while True:
        try:
            await pruned_once(store, clock() - retention_days * DAY)
        except Exception:  # It is tried again in an hour; the server goes on.
            logger.exception("the log could not be pruned")
        await asyncio.sleep(PERIOD_SECONDS)


async def pruned_once(store: Store, before: float) -> None:
    """Delete the entries from before that UNIX time."""
    while await store.write(lambda connection: prune(connection, before, AT_ONCE)):
        pass
