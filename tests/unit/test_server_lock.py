"""Which process serves from a database, and what others may do in the meantime."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import tertulia
from tertulia.service.config import Config
from tertulia.store import migrations
from tertulia.store.database import Database, DatabaseError
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.schema_upgrade import migrate, version_of
from tertulia.store.store import database_at

_SERVER = """
import asyncio, sys
from pathlib import Path
from tertulia.store.store import Store, database_at

async def serve():
    database = database_at(Path(sys.argv[1]), sys.argv[2])
    with database.served():
        store = Store(database, serves=True)
        await store.look()
        print("serving", flush=True)
        sys.stdin.read()
        await store.close()

asyncio.run(serve())
"""


@pytest.fixture
def database(config: Config) -> Database:
    config.data_path.mkdir(parents=True, exist_ok=True)
    found = database_at(config.data_path, config.database_url)
    migrate(found, lambda _: None)
    return found


@contextmanager
def another_server(config: Config) -> Iterator[int]:
    """Another process that serves. Returns its ID."""
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER, str(config.data_path), config.database_url],
        env={**os.environ, "PYTHONPATH": str(Path(tertulia.__file__).parents[1])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        try:
            yield process.pid
        finally:
            process.kill()


def version(database: Database) -> int:
    connection = database.connect(readonly=False)
    try:
        return version_of(connection)
    finally:
        connection.close()


def test_a_running_server_is_visible_to_others(config: Config, database: Database) -> None:
    assert database.servers() == []
    with another_server(config) as process:
        (found,) = database.servers()
        assert f"process {process} " in found
    # Even if it was killed. (PostgreSQL takes some time to notice.)
    deadline = time.monotonic() + 60
    while database.servers() and time.monotonic() < deadline:
        time.sleep(0.01)  # It can only be polled.
    with database.served():
        assert database.servers() == [], "a process is no other one to itself"


def test_an_sqlite_database_has_one_server(config: Config, database: Database) -> None:
    with another_server(config) as process:
        if database.is_shared:
            with database.served():
                return
        with (
            pytest.raises(DatabaseError, match=f"process {process} .*Only one server can"),
            database.served(),
        ):
            raise AssertionError
    with database.served():
        pass


def test_a_command_does_not_migrate_under_a_running_server(
    config: Config, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with another_server(config) as process:
        migrate(database, lambda _: None)  # Same version: nothing to migrate.
        more = (*MIGRATIONS, lambda _: ("CREATE TABLE more (id BIGINT)",))
        monkeypatch.setattr(migrations, "MIGRATIONS", more)
        with pytest.raises(DatabaseError, match=f"process {process} .*Nothing was changed"):
            migrate(database, lambda _: None)
        assert version(database) == len(MIGRATIONS)
        # A server may: servers of the older version notice and stop.
        migrate(database, lambda _: None, beside_servers=True)
    assert version(database) == len(more)
