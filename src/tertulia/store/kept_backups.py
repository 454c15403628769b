"""Backups that the server makes by itself: their names, where they are, and which are kept."""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Final

from msgspec import Struct

from tertulia.store import installation
from tertulia.store.database import Connection
from tertulia.store.files import Files

OLD_SECONDS: Final = 50 * 3600.0
"""A last backup that is older is trouble: one was missed, and not only late."""
_LAST: Final = "backups.last"
"""The key of when the last was made, among the facts about the installation."""
_NAME: Final = re.compile(r"tertulia-(\d{8}T\d{6}Z)\.zip(?:\.age)?")
_TIME: Final = "%Y%m%dT%H%M%SZ"
AHEAD_SECONDS: Final = 600.0
"""By so much another node's clock may be ahead of this one's."""


class KeptBackup(Struct, frozen=True, kw_only=True):
    """A backup at the place for them, which could be restored when it was made."""

    name: str
    at: float
    """When it was made, in UNIX seconds."""
    size: int
    """Bytes."""


def name_at(now: float) -> str:
    """The name of a backup of that time. One that is encrypted has `encrypted_backups.SUFFIX`
    after it."""
    return f"tertulia-{datetime.fromtimestamp(now, UTC).strftime(_TIME)}.zip"


async def found(place: Files) -> list[KeptBackup]:
    """Those that there are, the oldest first. Other files at the place are none of ours."""
    backups = []
    async for one in place.below(""):
        at = _made_at(one.path)
        if at is not None:
            backups.append(KeptBackup(name=one.path, at=at, size=one.size))
    return sorted(backups, key=lambda one: one.at)


def noted(connection: Connection) -> float | None:
    """When the last one at the place was made, as was last seen; None for none."""
    at = installation.value(connection, _LAST)
    return None if at is None else float(at)


def note(connection: Connection, at: float | None) -> None:
    """Write that down, inside the transaction that is open."""
    if at is None:
        installation.forget(connection, _LAST)
    else:
        installation.put(connection, _LAST, repr(at))


def is_old(at: float | None, now: float) -> bool:
    """Whether the last one, made then (UNIX seconds), is too old; or missing."""
    return at is None or now - at > OLD_SECONDS


def _made_at(name: str) -> float | None:
    match = _NAME.fullmatch(name)
    try:
        return datetime.strptime(match[1], _TIME).replace(tzinfo=UTC).timestamp() if match else None
    except ValueError:  # No such day, or hour.
        return None


def made(backups: Iterable[KeptBackup], now: float) -> list[KeptBackup]:
    """Those that were made by now, in the same order. What is of a time that has not come is of a
    clock that was wrong, and stands for none."""
    return [one for one in backups if one.at <= now + AHEAD_SECONDS]


def superseded(
    backups: Iterable[KeptBackup], days: int, weeks: int, now: float
) -> list[KeptBackup]:
    """Those that need not be kept: all but the newest, the newest of each of the last `days` days
    that have one, and the newest of each of the last `weeks` weeks that have one. (In UTC.) What
    was not `made` by now is left alone."""
    newest_first = sorted(made(backups, now), key=lambda one: one.at, reverse=True)
    kept = set(newest_first[:1])
    for most, period in ((days, _day_of), (weeks, _week_of)):
        newest: dict[str, KeptBackup] = {}
        for one in newest_first:
            newest.setdefault(period(one), one)
        kept |= set(list(newest.values())[:most])
    return [one for one in newest_first if one not in kept]


def _day_of(backup: KeptBackup) -> str:
    return datetime.fromtimestamp(backup.at, UTC).strftime("%Y-%m-%d")


def _week_of(backup: KeptBackup) -> str:
    return datetime.fromtimestamp(backup.at, UTC).strftime("%G-%V")


def last_due(now: float, hour: int) -> float:
    """When a backup was due last, where one is each day at that hour of UTC."""
    today = datetime.fromtimestamp(now, UTC).replace(hour=hour, minute=0, second=0, microsecond=0)
    due = today.timestamp()
    return due if due <= now else (today - timedelta(days=1)).timestamp()
