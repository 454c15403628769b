"""The storage of bots: texts by name for each bot. It isn't part of the log."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tertulia.store.database import Connection

PART: Final = 5000
"""The number of texts written in one transaction."""
_BATCH_SIZE: Final = 500
"""The number of names in one statement, because databases limit the number of parameters."""


class StorageChanged(Struct, frozen=True):
    """New texts of a bot. The texts with names in `gone` (None: all) are deleted first."""

    user_id: int
    values: Mapping[str, str] = {}
    gone: Sequence[str] | None = ()


def write(connection: Connection, change: StorageChanged) -> None:
    if change.gone is None:
        connection.run("DELETE FROM bot_storage WHERE user_id = ?", (change.user_id,))
    if change.gone:
        connection.run_many(
            "DELETE FROM bot_storage WHERE user_id = ? AND name = ?",
            [(change.user_id, name) for name in change.gone],
        )
    if change.values:
        connection.run_many(
            "INSERT INTO bot_storage (user_id, name, value) VALUES (?, ?, ?)"
            " ON CONFLICT (user_id, name) DO UPDATE SET value = excluded.value",
            [(change.user_id, name, value) for name, value in change.values.items()],
        )


def in_parts(change: StorageChanged) -> Iterator[StorageChanged]:
    """Split the change into transactions short enough not to delay the log."""
    if change.gone is None:
        yield change
        return
    values, gone = list(change.values.items()), list(change.gone)
    for first in range(0, max(len(values), len(gone)), PART):
        until = first + PART
        yield StorageChanged(change.user_id, dict(values[first:until]), gone[first:until])


def stored_values(
    connection: Connection, user_id: int, names: Sequence[str] | None
) -> dict[str, str]:
    """Return the texts that exist under the names, or all."""
    if names is None:
        results = connection.query(
            "SELECT name, value FROM bot_storage WHERE user_id = ? ORDER BY name", (user_id,)
        )
        return dict(results)
    rows: list[Any] = []
    for first in range(0, len(names), _BATCH_SIZE):
        some = names[first : first + _BATCH_SIZE]
        rows += connection.query(
            "SELECT name, value FROM bot_storage WHERE user_id = ?"
            f" AND name IN ({', '.join('?' * len(some))})",
            (user_id, *some),
        )
    return dict(rows)


def sizes(connection: Connection, user_id: int, names: Sequence[str]) -> tuple[int, int]:
    """Return the characters of names and texts that the bot stores, except under these names, and
    the number of texts."""
    total, count = connection.query(
        "SELECT COALESCE(SUM(LENGTH(name) + LENGTH(value)), 0), COUNT(*) FROM bot_storage"
        " WHERE user_id = ?",
        (user_id,),
    )[0]
    stored = stored_values(connection, user_id, names)
    less = sum(len(name) + len(value) for name, value in stored.items())
    return int(total) - less, int(count) - len(stored)
