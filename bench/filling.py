"""Bulk inserts into either database."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import apsw
import psycopg

from tertulia.service.config import Config
from tertulia.store.postgres_dialect import DIALECT as POSTGRESQL
from tertulia.store.postgres_dialect import SEARCHED
from tertulia.store.sqlite_dialect import DIALECT as SQLITE
from tertulia.store.store import SQLITE_FILE

Rows = Sequence[Sequence[Any]]


class Bulk(Protocol):
    """One transaction for all inserts."""

    search_columns: Sequence[str]
    """The columns of `message_search`."""
    search_indexes: Mapping[str, str]
    """The indexes of `message_search`, by name."""
    tidy: str
    """SQL to run after all inserts."""

    def run(self, sql: str) -> None:
        """Run one statement."""

    def insert(self, table: str, columns: Sequence[str], rows: Rows) -> None:
        """Insert the rows."""

    def search_row(self, message_id: int, text: str, place: int) -> Sequence[Any]:
        """Return a row of `message_search` with a message, its text, and its channel."""


class _Sqlite:
    search_columns: Sequence[str] = ("rowid", "content")
    search_indexes: Mapping[str, str] = {}
    # Merge the search index as far as the server would have: otherwise, the first measured commits
    # would do it.
    tidy = (
        "INSERT INTO message_search (message_search, rank) VALUES ('merge', 1000000);"
        "PRAGMA wal_checkpoint(TRUNCATE)"
    )
    search_row = staticmethod(SQLITE.search_row)

    def __init__(self, connection: apsw.Connection) -> None:
        self._connection = connection

    def run(self, sql: str) -> None:
        self._connection.execute(sql)

    def insert(self, table: str, columns: Sequence[str], rows: Rows) -> None:
        places = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"
        self._connection.executemany(sql, rows)


class _Postgresql:
    search_columns: Sequence[str] = ("message_id", "words", "place")
    search_indexes: Mapping[str, str] = {
        "message_search_words": (
            f"message_search USING gin {SEARCHED} WITH (gin_pending_list_limit = 64)"
        )
    }
    # Otherwise, the server would start it during a measurement.
    tidy = "VACUUM ANALYZE"
    search_row = staticmethod(POSTGRESQL.search_row)

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        self._connection = connection

    def run(self, sql: str) -> None:
        self._connection.execute(sql.encode())

    def insert(self, table: str, columns: Sequence[str], rows: Rows) -> None:
        command = f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()
        with self._connection.cursor() as cursor, cursor.copy(command) as copy:
            for row in rows:
                copy.write_row(row)


@contextmanager
def begun(config: Config) -> Iterator[Bulk]:
    """A transaction on the migrated database, committed when the context ends."""
    if config.database_url:
        with psycopg.connect(config.database_url) as postgresql:
            postgresql.execute("SET LOCAL maintenance_work_mem TO '512MB'")
            yield _Postgresql(postgresql)
        return
    sqlite = apsw.Connection(str(config.data_path / SQLITE_FILE))
    try:
        sqlite.execute("PRAGMA synchronous = OFF")
        with sqlite:
            yield _Sqlite(sqlite)
    finally:
        sqlite.close()
