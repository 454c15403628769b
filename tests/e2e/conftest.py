"""Fixtures: an organization behind a real process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tertulia.service.config import Config
from tests import databases
from tests.e2e.server import Account, Server, ended


@dataclass
class Town:
    """A running server, and the people who can sign in to it."""

    server: Server
    ann: Account
    """The owner."""
    ben: Account


@contextmanager
def _opened(data_dir: Path, database_url: str = "", settings: str = "") -> Iterator[Town]:
    server = Server(data_dir, database_url)
    config = Config(data_dir=str(data_dir), database_url=database_url)
    ann, ben = databases.copied_as("town", config, lambda: (server.found(), server.add("ben")))
    if settings:
        (data_dir / "tertulia.toml").write_text(settings)
    with ended(server):
        server.start()
        yield Town(server, ann, ben)


@pytest.fixture
def town(database_url: str, tmp_path: Path) -> Iterator[Town]:
    """A server with ann and ben, both in the channel "general", on each kind of database."""
    with _opened(tmp_path / "data", database_url) as town:
        yield town


@pytest.fixture(scope="module")
def kept_town(kept_database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The same, once for all tests of a file: each leaves alone what the others make."""
    with _opened(tmp_path_factory.mktemp("town"), kept_database_url) as town:
        yield town


@pytest.fixture(scope="module")
def sqlite_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The same on SQLite alone: for what has nothing to do with the database."""
    with _opened(tmp_path_factory.mktemp("town")) as town:
        yield town


@pytest.fixture(scope="package")
def picture_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The same on SQLite, with a key for looking for animated pictures, which nobody knows; once
    for all tests of a folder."""
    with _opened(tmp_path_factory.mktemp("town"), settings='giphy_api_key = "key-1"\n') as town:
        yield town


@pytest.fixture(scope="module")
def calling_town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """The same on SQLite, with a server that may call this machine and runs some bots itself."""
    settings = 'outgoing_webhook_networks = "127.0.0.1"\nembedded_bots = "giphy, helloworld"\n'
    with _opened(tmp_path_factory.mktemp("town"), settings=settings) as town:
        yield town
