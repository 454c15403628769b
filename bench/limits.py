"""The disk's limit: bare commits with the server's own settings, of rows as long as a message."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import psycopg

from bench.arithmetic import Sample

ROW = b"x" * 300
"""A row as long as a message."""

Commit = Callable[[int], None]
"""Commit this many rows, and return when they are on disk."""


@contextmanager
def disk(directory: Path, database_url: str = "") -> Iterator[Commit]:
    """Bare commits in SQLite in this directory, or in the PostgreSQL at this URL."""
    with _postgresql(database_url) if database_url else _sqlite(directory) as commit:
        yield commit


@contextmanager
def _sqlite(directory: Path) -> Iterator[Commit]:
    connection = apsw.Connection(str(directory / "commits.db"))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, doc BLOB)")

    def commit(rows: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO rows (doc) VALUES (?)", [(ROW,)] * rows)
        connection.execute("COMMIT")

    try:
        yield commit
    finally:
        connection.close()
        for file in directory.glob("commits.db*"):
            file.unlink()


@contextmanager
def _postgresql(url: str) -> Iterator[Commit]:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE bare_rows (id BIGSERIAL PRIMARY KEY, doc BYTEA)")

        def commit(rows: int) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.executemany("INSERT INTO bare_rows (doc) VALUES (%s)", [(ROW,)] * rows)

        yield commit
        connection.execute("DROP TABLE bare_rows")


def commits(commit: Commit, rows: int, seconds: float) -> Sample:
    """Measure commits of this many rows, one after the other."""
    clock = time.perf_counter
    took: list[float] = []
    commit(rows)
    start = clock()
    while clock() - start < seconds:
        before = clock()
        commit(rows)
        took.append(clock() - before)
    return Sample(len(took), clock() - start, took)
