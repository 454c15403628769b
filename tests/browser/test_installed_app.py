"""The client as an application: what a browser asks of one, and what is there without a server."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Town


@pytest.fixture
def kept(sqlite_town: Town, seated: Open) -> Window:
    """A window whose worker has kept the client."""
    ann = seated(sqlite_town.server, sqlite_town.ann, service_workers="allow")
    ann.go("inbox")
    ann.page.evaluate("navigator.serviceWorker.ready.then(() => true)")
    ann.page.wait_for_function("navigator.serviceWorker.controller !== null")
    return ann


def test_a_browser_finds_nothing_that_keeps_it_from_installing(kept: Window) -> None:
    devtools = kept.context.new_cdp_session(kept.page)

    manifest: dict[str, Any] = devtools.send("Page.getAppManifest")
    found = devtools.send("Page.getInstallabilityErrors")

    assert manifest["url"].endswith("/manifest.webmanifest")
    assert not manifest["errors"]
    assert not [e for e in found["installabilityErrors"] if e["errorId"] != "in-incognito"]


def test_without_the_server_the_client_opens_says_so_and_comes_back(
    sqlite_town: Town, kept: Window
) -> None:
    server = sqlite_town.server
    kept.away = True
    server.stop()
    kept.page.reload()
    expect(kept.page.get_by_role("heading", name="cannot be reached")).to_be_visible()
    assert kept.page.evaluate("document.fonts.ready.then(() => true)")

    server.start()
    kept.page.get_by_role("button", name="Try again").click()
    expect(kept.page.get_by_role("navigation").first).to_be_visible()
    kept.away = False


def test_nothing_of_what_people_wrote_is_kept_by_the_worker(kept: Window) -> None:
    addresses: list[str] = kept.page.evaluate(
        """async () => {
            const found = [];
            for (const name of await caches.keys())
                for (const request of await (await caches.open(name)).keys())
                    found.push(new URL(request.url).pathname);
            return found;
        }"""
    )

    assert addresses
    assert [one for one in addresses if not re.match(r"/app/(assets/[^/]+)?$", one)] == []


def test_a_newer_client_is_offered_and_loaded(kept: Window) -> None:
    # To the browser, another address is another worker, as another content is. (After it is loaded
    # the usual address is another one again: what is offered then says nothing.)
    kept.page.evaluate("navigator.serviceWorker.register('/worker.js?newer', {scope: '/'})")
    with kept.page.expect_event("load"):
        kept.page.get_by_role("button", name="Load it").click()
    expect(kept.page.get_by_role("navigation").first).to_be_visible()
