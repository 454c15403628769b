"""A temporary SQLite file for a Zulip export's large tables, which would take too much memory."""

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import apsw

_BATCH_SIZE: Final = 5000
_TABLES: Final = {
    "reactions": "message, user, kind, code, name",
    "submessages": "message, user, kind, content",
    "attachments": "message, key, owner, path, name, media_type, size, created_at",
    "reminders": "message, user, note, content, deliver_at",
    "subscriptions": "recipient, user, active, color, muted, pinned, settings",
    "events": "channel, user, kind, message",
}
_INDEXES: Final = {
    "reactions": "message",
    "submessages": "message",
    "attachments": "message",
    "reminders": "message",
    "subscriptions": "recipient",
    "events": "channel, user",
}


class Scratch:
    """Stores rows by the table's first columns, in insertion order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        self._connection = apsw.Connection(str(path))
        self._connection.execute("PRAGMA journal_mode = OFF")
        self._connection.execute("PRAGMA synchronous = OFF")
        self._connection.execute("PRAGMA cache_size = -8000")
        self._connection.execute("PRAGMA temp_store = FILE")
        self._waiting: dict[str, list[tuple[Any, ...]]] = {}
        self._connection.execute("BEGIN")
        for table, columns in _TABLES.items():
            self._connection.execute(f"CREATE TABLE {table} ({columns})")

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """Add a row, whose values are numbers or texts."""
        waiting = self._waiting.setdefault(table, [])
        waiting.append(row)
        if len(waiting) >= _BATCH_SIZE:
            self._write(table)

    def _write(self, table: str) -> None:
        rows = self._waiting.pop(table, [])
        if rows:
            marks = ", ".join("?" * len(rows[0]))
            self._connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608

    def finish(self) -> None:
        """Make the added rows readable."""
        for table in tuple(self._waiting):
            self._write(table)
        for table, columns in _INDEXES.items():
            self._connection.execute(f"CREATE INDEX {table}_found ON {table} ({columns})")
        self._connection.execute("COMMIT")

    def of_messages(self, table: str, keys: Iterable[int]) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of these messages, by message."""
        return self._connection.execute(
            f"SELECT * FROM {table} WHERE message IN (SELECT value FROM json_each(?))"  # noqa: S608
            " ORDER BY message, rowid",
            (json.dumps(list(keys)),),
        )

    def subscriptions(self) -> Iterator[tuple[Any, ...]]:
        """Yield all subscriptions, by recipient."""
        return self._connection.execute("SELECT * FROM subscriptions ORDER BY recipient, rowid")

    def subscribers(self, recipient: int) -> tuple[int, ...]:
        """Return the users of a recipient."""
        rows = self._connection.execute(
            "SELECT DISTINCT user FROM subscriptions WHERE recipient = ? ORDER BY user",
            (recipient,),
        )
        return tuple(row[0] for row in rows)

    def events(self, channel: int, user: int) -> list[tuple[int, int]]:
        """Return when the user was subscribed and unsubscribed: kinds and message IDs."""
        return list(
            self._connection.execute(
                "SELECT kind, message FROM events WHERE channel = ? AND user = ? ORDER BY rowid",
                (channel, user),
            )
        )

    def files(self) -> tuple[int, int]:
        """Return the number of files, and their bytes."""
        cursor = self._connection.execute(
            "SELECT COUNT(*), COALESCE(SUM(size), 0) FROM (SELECT DISTINCT key, size"
            " FROM attachments)"
        )
        number, size = next(cursor)
        return number, size

    def close(self) -> None:
        """Close and delete the file."""
        self._connection.close()
        self._path.unlink(missing_ok=True)
