"""Daily backups.

A backup is made by a separate process (`tertulia backups make`), because it needs much processor
time. Of several nodes, the first that sees that one is due holds a lease and makes it.
"""

import asyncio
import contextlib
import logging
import os
import secrets
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from tertulia.jobs.supervisor import Job
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.store import backups as kept_backups
from tertulia.store import installation
from tertulia.store.backups import delete_stale_directories
from tertulia.store.database import Connection, DatabaseError

logger = logging.getLogger("tertulia.jobs")

LONGEST_SECONDS: Final = 6 * 3600.0
"""Longest duration of a backup."""
LEASE_SECONDS: Final = 600.0
"""A node whose lease has ended is gone, and another one makes the backup."""
RENEWED_SECONDS: Final = 60.0
_OTHERS_SECONDS: Final = 600.0
"""Interval of checking whether another node has made it."""
_DAY: Final = 86400.0
_CLAIM: Final = "backups.claim"
"""Key of the time of the last renewal."""
_HOLDER: Final = "backups.holder"
"""Key of the holder's random name."""
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
        holder = secrets.token_hex(8)
        if not await log.store.write(lambda c: claimed(c, holder, now)):
            return _OTHERS_SECONDS
        try:
            await while_renewing(_make(config), partial(renew, holder))
            await look()
        finally:
            await log.store.write(lambda c: given_back(c, holder))
        return max(due + _DAY - log.clock(), 0.0)

    async def renew(holder: str) -> None:
        await log.store.write(lambda c: renewed(c, holder, log.clock()))

    return Job("backups", once, round_seconds=LONGEST_SECONDS)


def claimed(connection: Connection, holder: str, now: float) -> bool:
    """Acquire the lease, in the open transaction. Return False if another holder's lease is valid.
    `now` is in UNIX seconds."""
    at = installation.value(connection, _CLAIM)
    ahead = kept_backups.AHEAD_SECONDS
    if at is not None and -ahead <= now - float(at) < LEASE_SECONDS:
        return False
    installation.put(connection, _CLAIM, repr(now))
    installation.put(connection, _HOLDER, holder)
    return True


def renewed(connection: Connection, holder: str, now: float) -> None:
    """Renew the lease, in the open transaction. Raises BackupFailed if another holder has it."""
    if installation.value(connection, _HOLDER) != holder:
        raise BackupFailed(
            "Another node is making it, because this one didn't renew its lease in time."
        )
    installation.put(connection, _CLAIM, repr(now))


def given_back(connection: Connection, holder: str) -> None:
    """Release the lease, in the open transaction."""
    if installation.value(connection, _HOLDER) == holder:
        installation.forget(connection, _CLAIM)
        installation.forget(connection, _HOLDER)


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
