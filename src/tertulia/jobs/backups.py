"""Daily backups. A separate process makes each backup (`tertulia backups make`), because it needs
much processor time. With several nodes, the first one that sees that a backup is due takes a lease
and makes it."""

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
"""The longest duration of a backup in seconds."""
OTHERS_SECONDS: Final = 600.0
"""The interval, in seconds, of checking whether another node has made the backup."""
_DAY: Final = 86400.0
_HOUR: Final = 3600.0
JOB: Final = "backups"
LEASE: Final = JobLease(JOB)


def backups(node: Node) -> Job:
    """Make and verify a backup every day."""
    config, log = node.config, node.log

    async def look() -> float | None:
        """Return the time of the last backup that this node sees. Store the time of the last
        backup, which another node may have made on a separate disk."""
        storage = config.opened_backups()
        try:
            stored = await kept_backups.stored_backups(storage)
        finally:
            await storage.close()
        now = log.clock()
        seen = [(backup.at, backup.size) for backup in kept_backups.backups_made(stored, now)]
        known = await log.store.read(kept_backups.last_backup)
        last = max([*seen, *([known] if known and known[0] <= now else [])], default=None)
        if last != known:
            await log.store.write(lambda c: kept_backups.set_last_backup(c, last))
        return seen[-1][0] if seen else None

    async def once() -> float:
        # Delete files that a killed `backups make` left behind, within an hour.
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
            return OTHERS_SECONDS
        return min(max(due + _DAY - log.clock(), 0.0), _HOUR)

    return Job(JOB, once, round_seconds=LONGEST_SECONDS)
