"""Making a backup each day, where the settings say to which place.

The making is a process of its own (`tertulia backups make`): it takes the processor for long, and
is nobody's hurry. Of several nodes, the first that sees that one is due makes it: it holds a lease,
which it renews for as long as it lives.
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
"""A backup may take so long; then it is given up."""
LEASE_SECONDS: Final = 600.0
"""A node that has not renewed its lease for so long is gone, and another one makes the backup."""
RENEWED_SECONDS: Final = 60.0
_OTHERS_SECONDS: Final = 600.0
"""Between two looks at whether another node has made it."""
_DAY: Final = 86400.0
_CLAIM: Final = "backups.claim"
"""The key of when the lease was last renewed, among the facts about the installation."""
_HOLDER: Final = "backups.holder"
"""The key of whose it is: a random word."""
_LAST_WORDS: Final = 2000
"""Characters of what a process said that failed."""


class BackupFailed(Exception):
    """There is none. `str(error)` says why."""


def backups(node: Node) -> Job:
    """A backup a day, verified and put to its place."""
    config, log = node.config, node.log

    async def look() -> float | None:
        """When the last one was made, which is written down for those who ask."""
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
    """Whether the holder is to make one, inside the transaction that is open: no other is at it, or
    has not been heard of for `LEASE_SECONDS`. `now` is in UNIX seconds."""
    at = installation.value(connection, _CLAIM)
    ahead = kept_backups.AHEAD_SECONDS
    if at is not None and -ahead <= now - float(at) < LEASE_SECONDS:
        return False
    installation.put(connection, _CLAIM, repr(now))
    installation.put(connection, _HOLDER, holder)
    return True


def renewed(connection: Connection, holder: str, now: float) -> None:
    """The holder is still at it, inside the transaction that is open. BackupFailed where another
    one is, which took it for gone."""
    if installation.value(connection, _HOLDER) != holder:
        raise BackupFailed("Another node makes it, for this one was not heard of for too long.")
    installation.put(connection, _CLAIM, repr(now))


def given_back(connection: Connection, holder: str) -> None:
    """The holder has ended, inside the transaction that is open."""
    if installation.value(connection, _HOLDER) == holder:
        installation.forget(connection, _CLAIM)
        installation.forget(connection, _HOLDER)


async def while_renewing(
    work: Coroutine[Any, Any, None], renew: Callable[[], Awaitable[None]]
) -> None:
    """Do the work, and renew the lease meanwhile. Where that fails by what is no outage, the work
    is ended; an outage is waited out, as the work itself may."""
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
        with contextlib.suppress(ProcessLookupError):  # It has just ended.
            process.kill()
        await process.wait()
        await asyncio.to_thread(delete_stale_directories, config.data_path)
        raise
    if process.returncode:
        # Where it was killed, what it had made is nobody's.
        await asyncio.to_thread(delete_stale_directories, config.data_path)
        raise BackupFailed(said.decode(errors="replace")[-_LAST_WORDS:].strip())
    logger.info("a backup was made", extra={"fields": {"to": config.backup_to}})


def environment_of(config: Config, environment: Mapping[str, str]) -> dict[str, str]:
    """The environment in which a command has just these settings, whatever gave them here."""
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
