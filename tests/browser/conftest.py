"""Fixtures: a browser, and windows of people who are signed in."""

import asyncio
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser, Playwright, expect, sync_playwright

from tertulia.demo import prepared
from tertulia.service.config import Config
from tests import databases
from tests.browser.driving import (
    FLAGS,
    HOW_TO_GET,
    Window,
    chromium,
    headless_shell,
    sign_in,
    window,
)
from tests.browser.seats import Seats
from tests.e2e.conftest import calling_town, kept_town, picture_town, sqlite_town, town
from tests.e2e.server import Account, Server, ended

__all__ = ["calling_town", "kept_town", "picture_town", "sqlite_town", "town"]

Open = Callable[..., Window]
"""`Open(server, account=None, **how)`: a window, as Playwright's `new_context` takes `how`. Of the
demonstration's people, the address is enough."""
_PASSED = pytest.StashKey[bool]()
"""Whether the test itself has passed."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[_PASSED] = report.passed
    return report


@pytest.fixture(scope="package")
def driver() -> Iterator[Playwright]:
    """What drives browsers. Its loop runs in the thread of the tests as long as it is there: other
    tests, which have loops of their own, must find it gone."""
    if not resources.files("tertulia").joinpath("web", "index.html").is_file():
        pytest.skip("the web client is not built: make client")
    # Machines that are busy with other tests are slow.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        yield playwright


@pytest.fixture(scope="package")
def browser(request: pytest.FixtureRequest, driver: Playwright) -> Iterator[Browser]:
    """The machine's Chromium: its headless shell, where there is one."""
    program = headless_shell()
    if program is None:
        yield request.getfixturevalue("whole_browser")
        return
    with driver.chromium.launch(executable_path=program, args=FLAGS) as found:
        yield found


@pytest.fixture(scope="package")
def whole_browser(driver: Playwright) -> Iterator[Browser]:
    """Chromium with what its shell has not: notes of its own, microphones, applications."""
    program = chromium()
    if program is None:
        pytest.skip(HOW_TO_GET)
    with driver.chromium.launch(executable_path=program, args=FLAGS) as found:
        yield found


@pytest.fixture(scope="module")
def cafe(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The demonstration, once for all tests of a file."""
    server = Server(tmp_path_factory.mktemp("cafe"))
    made = databases.copied(Config(data_dir=str(server.data_dir)), prepared)
    # In a thread: in that of the tests, the browser's event loop may run.
    with ThreadPoolExecutor(1) as thread:
        thread.submit(asyncio.run, made).result()
    with ended(server):
        server.start("/ready", "--demo")
        yield server


@pytest.fixture
def opened(browser: Browser) -> Iterator[Open]:
    """Opens windows, and closes them at the end."""
    with ExitStack() as stack:

        def open_window(server: Server, account: Account | str | None = None, **how: Any) -> Window:
            found = stack.enter_context(window(browser, server.url, **how))
            if account is not None:
                sign_in(found.context, server, account)
            return found

        yield open_window


@pytest.fixture(scope="module")
def _seats(browser: Browser) -> Iterator[Seats]:
    seats = Seats(browser)
    yield seats
    seats.close_all()


@pytest.fixture
def seated(request: pytest.FixtureRequest, _seats: Seats) -> Iterator[Open]:
    """Opens windows too, which the tests of a module share: of each account one (of each `how`),
    with the client as the test before has left it, at another view. For tests to which the start of
    the client, and what a browser keeps, are nothing. Fails where one leaves something behind."""
    used: list[Window] = []

    def sit_down(server: Server, account: Account | str, **how: Any) -> Window:
        found = _seats.at(server, account, how)
        used.append(found)
        return found

    yield sit_down
    if not request.node.stash.get(_PASSED, False):
        _seats.close(*used)
        return
    left = [_seats.leave(one) for one in used]
    if any(left):
        _seats.close(*used)
    assert not any(left), f"left behind: {left}"
