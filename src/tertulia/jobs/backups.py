"""Daily backups.

A backup is made by a separate process (`tertulia backups make`), because it needs much processor
time. Of several nodes, the first that sees that one is due holds a lease and makes it.
"""

import asyncio
import logging
from typing import Final

from tertulia.jobs.leases import JobLease
from tertulia.jobs.programs import run_command
from tertulia.jobs.supervisor import Job
from tertulia.service.node import Node
from tertulia.store import backups as kept_backups

logger = logging.getLogger("tertulia.jobs")

LONGEST_SECONDS: Final = 6 * 3600.0
"""Longest duration of a backup."""
_OTHERS_SECONDS: Final = 600.0
"""Interval of checking whether another node has made it."""
_DAY: Final = 86400.0
_HOUR: Final = 3600.0
LEASE: Final = JobLease("backups")


def backups(node: Node) -> Job:
    """Make and verify a backup every day."""
    config, log = node.config, node.log

    async def look() -> float | None:
        """Return and store when the last backup was made."""
        place = config.opened_backups()
        try:
            backups = kept_backups.backups_made(
                await kept_backups.stored_backups(place), log.clock()
            )
        finally:
            await place.close()
        last = (backups[-1].at, backups[-1].size) if backups else None
        if last != await log.store.read(kept_backups.last_backup):
            await log.store.write(lambda c: kept_backups.set_last_backup(c, last))
        return last[0] if last else None

    async def once() -> float:
        # What a killed `backups make` left behind.
        await asyncio.to_thread(kept_backups.delete_stale_directories, config.data_path)
        now = log.clock()
        due = kept_backups.last_due(now, config.backup_hour)
        last = await look()
        if last is not None and last >= due:
            return min(due + _DAY - now, _HOUR)

        async def make() -> None:
            await run_command(config, "backups", "make")
            logger.info("made a backup", extra={"fields": {"to": config.backup_to}})
            await look()

        if not await LEASE.hold(log, make):
            return _OTHERS_SECONDS
        return max(due + _DAY - log.clock(), 0.0)

    return Job("backups", once, round_seconds=LONGEST_SECONDS)
