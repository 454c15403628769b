"""Fixtures: an organization behind a real process."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.server import Account, Server, ended


@dataclass
class Town:
    """A running server, and the people who can sign in to it."""

    server: Server
    ann: Account
    """The owner."""
    ben: Account


@pytest.fixture
def town(database_url: str, tmp_path: Path) -> Iterator[Town]:
    """A server with ann and ben, both in the channel "general", on each kind of database."""
    server = Server(tmp_path / "data", database_url)
    ann = server.found()
    ben = server.add("ben")
    with ended(server):
        server.start()
        yield Town(server, ann, ben)


@pytest.fixture(scope="module")
def sqlite_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The same on SQLite, once for all tests of a file: for what has nothing to do with the
    database."""
    server = Server(tmp_path_factory.mktemp("town"))
    ann = server.found()
    ben = server.add("ben")
    with ended(server):
        server.start()
        yield Town(server, ann, ben)
