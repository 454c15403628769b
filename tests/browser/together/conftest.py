"""The modules in this folder share one organization, one demonstration, and the pages of
`shared_page`. Each test looks only at what it created itself, in topics named after the test. Tests
that need an organization of their own belong in the parent folder."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from playwright.sync_api import Browser

from tertulia.demo import prepared
from tertulia.service.config import Config
from tests import databases
from tests.browser.shared_pages import SharedPages
from tests.e2e.conftest import Site
from tests.e2e.server import Server, ended


@pytest.fixture(scope="package")
def _shared_pages(browser: Browser) -> Iterator[SharedPages]:
    pages = SharedPages(browser)
    yield pages
    pages.close_all()


@pytest.fixture(scope="package")
def sqlite_site(gif_site: Site) -> Site:
    """A server with ann and ben, on SQLite."""
    return gif_site


@pytest.fixture(scope="package")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demonstration."""
    server = Server(tmp_path_factory.mktemp("cafe"))
    made = databases.copied(Config(data_dir=str(server.data_dir)), prepared)
    # In a thread: in that of the tests, the browser's event loop may run.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, made).result()
    with ended(server):
        server.start("/ready", "--demo")
        yield server
