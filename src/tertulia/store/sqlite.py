"""SQLite, by way of apsw, which brings its own recent version with FTS5."""

import contextlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from tertulia.model.words import Phrase
from tertulia.store.database import Connection, Database, DatabaseError, Dialect, Row

_WATCH_SECONDS = 0.1
_BUSY_MS = 10_000
_WAL_BYTES = 4 * 1024 * 1024
"""What has been committed is taken over into the file itself whenever so much has come together: by
the thread that watches it, for a commit that did it would last ten times as long as others."""
_WAL_PAGES = 16_000
"""A commit does it where so much has come together all the same."""


_COPY = "before-migration-from-"
"""What the names of copies made before migrations have behind the file's; the version follows."""
_VACUUM_PAGES = 1000
"""Pages given back in one transaction."""


class SqliteDialect(Dialect):
    name = "sqlite"
    blob = "BLOB"
    real = "REAL"
    counted = "INTEGER PRIMARY KEY"
    begin_read = "BEGIN"
    begin_write = ("BEGIN IMMEDIATE",)
    overwrite_deleted = ("PRAGMA secure_delete = ON",)

    def among(self, column: str) -> str:
        return f"{column} IN (SELECT value FROM json_each(?))"

    def array(self, values: Iterable[int] | Iterable[str]) -> str:
        return json.dumps(list(values))

    def within(self) -> str:
        return (
            "EXISTS (WITH spans (channel, after, until) AS MATERIALIZED"
            " (SELECT value ->> 0, value ->> 1, value ->> 2 FROM json_each(?))"
            " SELECT 1 FROM spans WHERE channel = +messages.channel_id"
            " AND messages.id > after AND messages.id <= until)"
        )

    def spans(self, spans: Iterable[tuple[int, int, int]]) -> str:
        return json.dumps(list(spans))

    def collected(self, column: str) -> str:
        return f"json_group_array({column})"

    def tables(self) -> str:
        return (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
            " AND name NOT LIKE 'message_search%' ORDER BY name"
        )

    def columns(self) -> str:
        return "SELECT name, type = 'BLOB' FROM pragma_table_info(?) ORDER BY cid"

    def first_search_schema(self) -> Sequence[str]:
        return (
            "CREATE VIRTUAL TABLE message_search USING fts5(content, topic, content='',"
            " contentless_delete=1, tokenize='unicode61 remove_diacritics 2')",
            "INSERT INTO message_search (rowid, content, topic)"
            " SELECT id, content, COALESCE(topic, '') FROM messages",
        )

    def search_schema(self) -> Sequence[str]:
        # To `ascii`, everything beyond ASCII is of a word: the words come apart at spaces alone.
        return (
            "DROP TABLE message_search",
            "CREATE VIRTUAL TABLE message_search USING fts5(content, topic, content='',"
            " contentless_delete=1, tokenize='ascii')",
        )

    def search_tuning(self) -> Sequence[str]:
        # Every 64 commits the index is merged for a while: a quarter of it at a time, and half as
        # often, is hardly felt by the one who sends just then.
        return (
            "INSERT INTO message_search (message_search, rank) VALUES ('pgsz', 1000)",
            "INSERT INTO message_search (message_search, rank) VALUES ('automerge', 8)",
        )

    def search_missing(self) -> str:
        return (
            "SELECT COUNT(*) FROM messages WHERE id NOT IN (SELECT id FROM message_search_docsize)"
        )

    def search_insert(self) -> str:
        return "INSERT INTO message_search (rowid, content, topic) VALUES (?, ?, ?)"

    def search_row(
        self, message_id: int, content: Sequence[str], topic: Sequence[str]
    ) -> tuple[Any, ...]:
        return message_id, " ".join(content), " ".join(topic)

    def search_delete(self) -> str:
        return f"DELETE FROM message_search WHERE {self.among('rowid')}"

    def search_hits(self, comparison: str, order: str, limit: int) -> str:
        return (
            f"SELECT rowid FROM message_search WHERE message_search MATCH ?"
            f" AND rowid {comparison} ? ORDER BY rowid {order} LIMIT {limit}"
        )

    def named_messages(self) -> str:
        # A cross join is made from left to right.
        return "json_each(?) AS named CROSS JOIN messages ON messages.id = named.value"

    def search_match(self) -> str:
        return "messages.id IN (SELECT rowid FROM message_search WHERE message_search MATCH ?)"

    def search_query(self, phrases: Sequence[Phrase]) -> str:
        return " AND ".join(
            f'"{" ".join(phrase.words)}"' + ("*" if phrase.is_open else "") for phrase in phrases
        )


class SqliteConnection:
    """One connection; used by one thread at a time."""

    def __init__(self, path: Path, *, readonly: bool) -> None:
        self.dialect = DIALECT
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        self._connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
        self._connection.set_busy_timeout(_BUSY_MS)
        for pragma in (
            # Of a new database only, and before anything is written; of others it stays as it was.
            "auto_vacuum = INCREMENTAL",
            "journal_mode = WAL",
            "synchronous = FULL",
            "foreign_keys = ON",
            "cache_size = -8000",
            f"wal_autocheckpoint = {_WAL_PAGES}",
            f"journal_size_limit = {_WAL_BYTES}",
            *(["query_only = ON"] if readonly else []),
        ):
            self._connection.execute(f"PRAGMA {pragma}")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(sql, tuple(parameters)).fetchall()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(sql, tuple(parameters))

    def scan(self, sql: str) -> Iterator[Row]:
        yield from self._connection.execute(sql)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._connection.executemany(sql, [tuple(row) for row in rows])

    def begin_at_once(self) -> bool:
        self._connection.set_busy_timeout(0)
        try:
            for statement in self.dialect.begin_write:
                self.run(statement)
        except apsw.BusyError:
            return False
        finally:
            self._connection.set_busy_timeout(_BUSY_MS)
        return True

    def copy_to(self, path: Path) -> None:
        """A consistent copy of the whole database, made while others use it."""
        target = apsw.Connection(str(path))
        with target.backup("main", self._connection, "main") as backup:
            backup.step()
        target.close()

    def close(self) -> None:
        self._connection.close()


class SqliteDatabase(Database):
    """A file. Other processes (the command line) may use it at the same time."""

    is_shared = False

    def __init__(self, path: Path) -> None:
        self.dialect = DIALECT
        self.path = path

    def exists(self) -> bool:
        if not self.path.exists():
            return False
        with contextlib.closing(self.connect(readonly=True)) as connection:
            return bool(
                connection.query(
                    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'installation'"
                )
            )

    def connect(self, *, readonly: bool) -> Connection:
        try:
            return SqliteConnection(self.path, readonly=readonly)
        except apsw.Error as error:
            raise DatabaseError(f"Cannot open {self.path}: {error}") from error

    def backup_before_migration(self, version: int) -> str:
        target = self.path.with_name(f"{self.path.name}.{_COPY}{version}")
        connection = SqliteConnection(self.path, readonly=False)
        try:
            target.unlink(missing_ok=True)
            connection.copy_to(target)
        finally:
            connection.close()
        return str(target)

    def delete_copies(self, before: float | None = None) -> None:
        for copy in self.path.parent.glob(f"{self.path.name}.{_COPY}*"):
            if before is None or copy.stat().st_mtime < before:
                copy.unlink(missing_ok=True)

    def give_back_space(self) -> bool:
        with contextlib.closing(SqliteConnection(self.path, readonly=False)) as connection:
            ((free,),) = connection.query("PRAGMA freelist_count")
            connection.query(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
            ((left,),) = connection.query("PRAGMA freelist_count")
        return bool(0 < left < free)

    def watch(
        self, grown: Callable[[int | None], None], heard: Callable[[str], None]
    ) -> Callable[[], None]:
        """Other processes can only be command-line tools, which announce nothing; that they wrote
        shows in the file's data version. What was committed is taken over as well."""
        stop = threading.Event()
        connection = SqliteConnection(self.path, readonly=True)

        def look() -> None:
            version = connection.query("PRAGMA data_version")
            grown(None)  # Whatever was written before anybody looked.
            while not stop.wait(_WATCH_SECONDS):
                now = connection.query("PRAGMA data_version")
                if now != version:
                    version = now
                    grown(None)
                if self._wal_bytes() > _WAL_BYTES:
                    connection.run("PRAGMA wal_checkpoint(PASSIVE)")
            connection.close()

        thread = threading.Thread(target=look, name="sqlite-watch", daemon=True)
        thread.start()

        def end() -> None:
            stop.set()
            thread.join()

        return end

    def _wal_bytes(self) -> int:
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def announce(self, messages: Sequence[str]) -> None:
        """Nobody to tell: one process serves, and it sees the file."""

    def close(self) -> None:
        """Nothing is held beyond the connections."""


DIALECT = SqliteDialect()
