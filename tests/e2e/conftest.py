"""Fixtures: an organization on a server in its own process."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tertulia.service.config import Config
from tests import databases
from tests.e2e.server import Account, Server, ended


@dataclass
class Site:
    """A running server with two people, both subscribed to the channel "general"."""

    server: Server
    ann: Account
    """The owner."""
    ben: Account


@contextmanager
def running(data_dir: Path, database_url: str = "", settings: str = "") -> Iterator[Site]:
    server = Server(data_dir, database_url)
    config = Config(data_dir=str(data_dir), database_url=database_url)
    ann, ben = databases.copied_as(
        "site", config, lambda: (server.create_organization(), server.add("ben"))
    )
    if settings:
        (data_dir / "tertulia.toml").write_text(settings)
    with ended(server):
        server.start()
        yield Site(server, ann, ben)


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    """A running server with `ann` and `ben`, on each kind of database."""
    with running(tmp_path / "data", database_url) as site:
        yield site


@pytest.fixture(scope="module")
def shared_site(
    shared_database_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Site]:
    """`site`, shared by the module. Tests don't touch what other tests create."""
    with running(tmp_path_factory.mktemp("site"), shared_database_url) as site:
        yield site


@pytest.fixture(scope="module")
def sqlite_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`shared_site` on SQLite only, for tests that don't depend on the database."""
    with running(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.fixture(scope="package")
def gif_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A site on SQLite with an invalid GIPHY key, shared by the tests in this directory."""
    with running(tmp_path_factory.mktemp("site"), settings='giphy_api_key = "key-1"\n') as site:
        yield site


@pytest.fixture(scope="module")
def bots_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """`sqlite_site` with embedded bots, and with outgoing webhooks allowed to this machine."""
    settings = 'outgoing_webhook_networks = "127.0.0.1"\nembedded_bots = "giphy, helloworld"\n'
    with running(tmp_path_factory.mktemp("site"), settings=settings) as site:
        yield site
