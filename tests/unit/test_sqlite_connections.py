"""Opening a database when a server starts."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tertulia.store.database import LONG, READING, DatabaseError
from tertulia.store.sqlite import SqliteDatabase


def test_a_connection_during_opening_reuses_a_finished_one(
    tmp_path: Path,
) -> None:
    database = SqliteDatabase(tmp_path / "a.db")
    with database.opening():
        with closing(database.connect(readonly=False)) as first:
            first.run("CREATE TABLE t (x)")
            first.run("PRAGMA synchronous = NORMAL")
        second = database.connect(readonly=True, limits=READING)
        assert second is first
        # It's like a new one.
        assert second.query("PRAGMA synchronous") == [(2,)]
        with pytest.raises(DatabaseError, match="readonly"):
            second.run("INSERT INTO t VALUES (1)")
        third = database.connect(readonly=False, limits=LONG)
        assert third is not second
        second.close()
        third.run("BEGIN IMMEDIATE")
        third.run("INSERT INTO t VALUES (1)")
        third.close()  # Nothing else gets it while it's in use.
        with closing(database.connect(readonly=False)) as fourth:
            assert fourth is second
            assert fourth.query("SELECT x FROM t") == []
            fourth.run("INSERT INTO t VALUES (2)")
        broken: Any = database.connect(readonly=False)
        broken.driver.close()
        broken.close()  # Nor that one.
        with closing(database.connect(readonly=True)) as fifth:
            assert fifth.query("SELECT x FROM t") == [(2,)]
    # No connection is left open: the write-ahead log is in the file.
    assert [one.name for one in tmp_path.iterdir()] == ["a.db"]
    with closing(database.connect(readonly=True)) as after:
        assert after is not first
