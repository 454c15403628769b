"""What the modules here share, where elsewhere each has its own: one organization, one
demonstration, and the windows of `seated` in both. Each test leaves alone what the others make, and
looks only at what is its own; what needs a new organization, or all of one, is not here."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser

from tertulia.demo import prepared
from tertulia.service.config import Config
from tests import databases
from tests.browser.seats import Seats
from tests.e2e.conftest import Town
from tests.e2e.server import Server, ended


@pytest.fixture(scope="package")
def _seats(browser: Browser) -> Iterator[Seats]:
    seats = Seats(browser)
    yield seats
    seats.close_all()


@pytest.fixture(scope="package")
def sqlite_town(picture_town: Town) -> Town:
    """A server with ann and ben, on SQLite."""
    return picture_town


@pytest.fixture(scope="package")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demonstration."""
    server = Server(tmp_path_factory.mktemp("cafe"))
    made = databases.copied(Config(data_dir=str(server.data_dir)), prepared)
    # In a thread: in that of the tests, the browser's event loop may run.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, made).result()
    with ended(server):
        server.start("/ready", "--demo")
        yield server
