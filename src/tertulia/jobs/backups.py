"""Daily backups.

A backup is made by a separate process (`tertulia backups make`), because it needs much processor
time. Of several nodes, the first that sees that one is due holds a lease and makes it.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from typing import Final

from tertulia.jobs.leases import JobLease
from tertulia.jobs.supervisor import Job
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.store import backups as kept_backups
from tertulia.store.backups import delete_stale_directories

logger = logging.getLogger("tertulia.jobs")

LONGEST_SECONDS: Final = 6 * 3600.0
"""Longest duration of a backup."""
_OTHERS_SECONDS: Final = 600.0
"""Interval of checking whether another node has made it."""
_DAY: Final = 86400.0
LEASE: Final = JobLease("backups")
_LAST_WORDS: Final = 2000
"""Characters of a failed process's output."""


class BackupFailed(Exception):
    """The backup failed. `str(error)` says why."""


def backups(node: Node) -> Job:
    """Make and verify a backup every day."""
    config, log = node.config, node.log

    async def look() -> float | None:
        """Return and store when the last backup was made."""
        place = config.opened_backups()
        try:
            found = kept_backups.backups_made(await kept_backups.stored_backups(place), log.clock())
        finally:
            await place.close()
        last = found[-1].at if found else None
        if last != await log.store.read(kept_backups.last_backup_at):
            await log.store.write(lambda c: kept_backups.set_last_backup_at(c, last))
        return last

    async def once() -> float:
        now = log.clock()
        due = kept_backups.last_due(now, config.backup_hour)
        last = await look()
        if last is not None and last >= due:
            return due + _DAY - now

        async def make() -> None:
            await _make(config)
            await look()

        if not await LEASE.hold(log, make):
            return _OTHERS_SECONDS
        return max(due + _DAY - log.clock(), 0.0)

    return Job("backups", once, round_seconds=LONGEST_SECONDS)


async def _make(config: Config) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tertulia", "backups", "make"),
        env=environment_of(config, os.environ),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = await process.communicate()
    except BaseException:
        with contextlib.suppress(ProcessLookupError):  # It has already ended.
            process.kill()
        await process.wait()
        await asyncio.to_thread(delete_stale_directories, config.data_path)
        raise
    if process.returncode:
        # If it was killed, it left temporary files.
        await asyncio.to_thread(delete_stale_directories, config.data_path)
        raise BackupFailed(said.decode(errors="replace")[-_LAST_WORDS:].strip())
    logger.info("made a backup", extra={"fields": {"to": config.backup_to}})


def environment_of(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """An environment that gives a command exactly these settings."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("TERTULIA_") and name != "CREDENTIALS_DIRECTORY"
    }
    for name in Config.__struct_fields__:
        value = getattr(config, name)
        text = str(value).lower() if isinstance(value, bool) else str(value)
        kept[f"TERTULIA_{name.upper()}"] = text
    return kept
