"""Fixtures: a browser, and pages with someone signed in."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tertulia.demo import prepared
from tertulia.service.config import Config
from tests import databases
from tests.browser.driving import (
    HOW_TO_GET,
    OPEN_WINDOWS,
    PATIENCE,
    Window,
    chromium,
    headless_shell,
    launched,
    outline,
    sign_in,
    window,
)
from tests.browser.shared_pages import SharedPages
from tests.e2e.conftest import bots_site, gif_site, shared_site, site, sqlite_site
from tests.e2e.server import Account, Server, ended

__all__ = ["bots_site", "gif_site", "shared_site", "site", "sqlite_site"]

Open = Callable[..., Window]
"""`Open(server, account=None, **options)` opens a page; `options` are those of Playwright's
`new_context`. For people of the demonstration, pass the email address."""
_PASSED = pytest.StashKey[bool]()
"""Whether the test itself has passed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the contents of its pages to a failed test's report."""
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    if report.failed and report.when != "teardown":
        report.sections += [("page", outline(one)) for one in OPEN_WINDOWS]
    return report


@pytest.fixture(scope="package")
def driver() -> Iterator[Playwright]:
    """Playwright. Its event loop runs in the tests' thread, so it must end before tests that have
    their own event loop."""
    if not resources.files("tertulia").joinpath("web", "index.html").is_file():
        pytest.skip("the web client is not built: make client")
    expect.set_options(timeout=1000 * PATIENCE)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(request: pytest.FixtureRequest, driver: Playwright) -> Iterator[Browser]:
    """The machine's Chromium: its headless shell if installed."""
    program = headless_shell()
    if program is None:
        yield request.getfixturevalue("full_browser")
        return
    with launched(driver, program) as found:
        yield found


@pytest.fixture(scope="package")
def full_browser(driver: Playwright) -> Iterator[Browser]:
    """Chromium with what its shell lacks: notifications, microphones, installed apps."""
    program = chromium()
    if program is None:
        pytest.skip(HOW_TO_GET)
    with launched(driver, program) as found:
        yield found


@contextmanager
def demonstration(directory: Path) -> Iterator[Server]:
    """A server with the demonstration."""
    server = Server(directory)
    made = databases.copied(Config(data_dir=str(server.data_dir)), prepared)
    # In a thread, because the browser's event loop may be running in this one.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, made).result()
    with ended(server):
        server.start("/ready", "--demo")
        yield server


@pytest.fixture(scope="module")
def demo_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the demonstration, shared by the module."""
    with demonstration(tmp_path_factory.mktemp("cafe")) as server:
        yield server


@pytest.fixture
def new_page(browser: Browser) -> Iterator[Open]:
    """Open pages in new browser contexts, and close them at the end of the test."""
    with ExitStack() as stack:

        def open_window(server: Server, account: Account | str | None = None, **how: Any) -> Window:
            found = stack.enter_context(window(browser, server.url, **how))
            if account is not None:
                sign_in(found.context, server, account)
            return found

        yield open_window


@pytest.fixture(scope="module")
def _shared_pages(browser: Browser) -> Iterator[SharedPages]:
    pages = SharedPages(browser)
    yield pages
    pages.close_all()


@pytest.fixture
def shared_page(request: pytest.FixtureRequest, _shared_pages: SharedPages) -> Iterator[Open]:
    """Open pages that the tests of a module share: one for each account and set of options. The
    client keeps running between tests, so use this unless a test is about starting the client or
    about what a browser stores. Fails if the test leaves a dialog, draft, or error behind."""
    used: list[Window] = []

    def open_page(server: Server, account: Account | str, **how: Any) -> Window:
        found = _shared_pages.open(server, account, how)
        used.append(found)
        return found

    yield open_page
    if not request.node.stash.get(_PASSED, False):
        _shared_pages.close(*used)
        return
    left = [_shared_pages.leave(one) for one in used]
    if any(left):
        _shared_pages.close(*used)
    assert not any(left), f"left behind: {left}"
