"""The modules in this folder share one organization, one demonstration, and the pages of
`shared_page`. Each test looks only at what it created itself, in topics named after the test. Tests
that need their own organization belong in the parent folder."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.conftest import demonstration
from tests.browser.shared_pages import SharedPages
from tests.e2e.conftest import Site
from tests.e2e.server import Server


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
    with demonstration(tmp_path_factory.mktemp("cafe")) as server:
        yield server
