"""Making a backup each day, where the settings say to which place.

The making is a process of its own (`tertulia backups make`): it takes the processor for long, and
is nobody's hurry. Of several nodes, the first that sees that one is due makes it.
"""

import asyncio
import contextlib
import logging
import os
import sys
from collections.abc import Mapping
from typing import Final

from tertulia.jobs.supervisor import Job
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.store import installation, kept_backups
from tertulia.store.database import Connection

logger = logging.getLogger("tertulia.jobs")

LONGEST_SECONDS: Final = 6 * 3600.0
"""A backup may take so long. Then whoever makes it is gone, and another node may."""
_OTHERS_SECONDS: Final = 600.0
"""Between two looks at whether another node has made it."""
_DAY: Final = 86400.0
_CLAIM: Final = "backups.claim"
"""The key of when a node began to make one, among the facts about the installation."""
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
            found = kept_backups.made(await kept_backups.found(place), log.clock())
        finally:
            await place.close()
        last = found[-1].at if found else None
        if last != await log.store.read(kept_backups.noted):
            await log.store.write(lambda c: kept_backups.note(c, last))
        return last

    async def once() -> float:
        now = log.clock()
        due = kept_backups.last_due(now, config.backup_hour)
        last = await look()
        if last is not None and last >= due:
            return due + _DAY - now
        if not await log.store.write(lambda c: _claimed(c, now)):
            return _OTHERS_SECONDS
        try:
            await _make(config)
            await look()
        finally:
            await log.store.write(lambda c: installation.forget(c, _CLAIM))
        return max(due + _DAY - log.clock(), 0.0)

    return Job("backups", once, round_seconds=LONGEST_SECONDS)


def _claimed(connection: Connection, now: float) -> bool:
    """Whether this node is to make one: no other began to, or it would have ended."""
    began = installation.value(connection, _CLAIM)
    if began is not None and 0 <= now - float(began) < LONGEST_SECONDS:
        return False
    installation.put(connection, _CLAIM, repr(now))
    return True


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
        raise
    if process.returncode:
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
