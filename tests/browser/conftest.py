"""Fixtures: a browser, and windows of people who are signed in."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib import resources
from typing import Any

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tertulia.demo import prepared
from tertulia.service.config import Config
from tests import databases
from tests.browser.driving import FLAGS, HOW_TO_GET, Window, chromium, sign_in, window
from tests.e2e.conftest import calling_town, picture_town, sqlite_town, town
from tests.e2e.server import Account, Server, ended

__all__ = ["calling_town", "picture_town", "sqlite_town", "town"]

Open = Callable[..., Window]
"""`Open(server, account=None, **how)`: a window, as Playwright's `new_context` takes `how`."""


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """The machine's Chromium. Playwright's loop runs in the thread of the tests as long as it is
    there: other tests, which have loops of their own, must find it gone."""
    program = chromium()
    if program is None:
        pytest.skip(HOW_TO_GET)
    if not resources.files("tertulia").joinpath("web", "index.html").is_file():
        pytest.skip("the web client is not built: make client")
    # Machines that are busy with other tests are slow.
    expect.set_options(timeout=30_000)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield found
        found.close()


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

        def open_window(server: Server, account: Account | None = None, **how: Any) -> Window:
            found = stack.enter_context(window(browser, server.url, **how))
            if account is not None:
                sign_in(found.context, server, account)
            return found

        yield open_window
