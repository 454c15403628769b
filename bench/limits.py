"""What the disk can do: bare commits in SQLite with the server's own settings."""

import time
from pathlib import Path

import apsw

ROW = b"x" * 300
"""About what one message takes."""


def commits(directory: Path, rows: int, seconds: float) -> tuple[list[float], float]:
    """Commit so many rows at a time: the seconds that each commit took, and all of them."""
    path = directory / "commits.db"
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("CREATE TABLE IF NOT EXISTS rows (id INTEGER PRIMARY KEY, doc BLOB)")
    clock = time.perf_counter
    took: list[float] = []
    start = clock()
    while clock() - start < seconds:
        before = clock()
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO rows (doc) VALUES (?)", [(ROW,)] * rows)
        connection.execute("COMMIT")
        took.append(clock() - before)
    elapsed = clock() - start
    connection.close()
    for file in directory.glob("commits.db*"):
        file.unlink()
    return took, elapsed
