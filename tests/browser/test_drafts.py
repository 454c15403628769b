"""A sent message doesn't stay a draft, however late the server's events arrive."""

import re
from typing import Any

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, eventually
from tests.e2e.conftest import Site

WRITES = re.compile(r"/api/v1/drafts(/\d+)?$")
GIVE = """
(element, name) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(2000)], name, {type: "application/x-cake"}));
    const about = {bubbles: true, cancelable: true, clipboardData: data};
    element.dispatchEvent(new ClipboardEvent("paste", about));
}
"""


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    return shared_page(sqlite_site.server, sqlite_site.ann)


def drafts(site: Site, topic: str) -> list[dict[str, Any]]:
    """Ann's drafts for the topic, on the server."""
    auth = (site.ann.email, site.ann.api_key)
    answer = httpx.get(f"{site.server.url}/api/v1/drafts", auth=auth, timeout=60).json()
    return [draft for draft in answer["drafts"] if draft["topic"] == topic]


def answering_late(window: Window, milliseconds: int = 600) -> None:
    """Delay the response that creates a draft until its events have arrived."""

    def late(route: Route) -> None:
        answer = route.fetch()
        window.page.wait_for_timeout(milliseconds)
        route.fulfill(response=answer)

    window.page.route(WRITES, late)


def test_a_sent_message_does_not_return_as_a_draft(sqlite_site: Site, ann: Window) -> None:
    """With trailing spaces, which the server strips, and with pauses long enough to save a
    draft."""
    ann.go("narrow/channel/general/topic/lunch")
    answering_late(ann)
    for words in ("Lunch at one ", "or at two ", "or not "):
        with ann.page.expect_request(WRITES):
            ann.box.press_sequentially(words)
        ann.box.press_sequentially("and ")
        ann.page.wait_for_timeout(900)
    ann.box.press("Control+Enter")
    expect(ann.message("or not and")).to_be_visible()

    eventually(ann.page, lambda: not drafts(sqlite_site, "lunch"))
    ann.page.wait_for_timeout(3000)
    assert not drafts(sqlite_site, "lunch")
    expect(ann.box).to_have_value("")
    expect(ann.link("Drafts")).not_to_contain_text(re.compile(r"\d"))
    ann.page.reload()
    expect(ann.box).to_have_value("")


def test_sent_files_do_not_return_as_a_draft(sqlite_site: Site, ann: Window) -> None:
    ann.go("narrow/channel/general/topic/cakes")
    answering_late(ann)
    for name in ("one.cake", "two.cake"):
        with ann.page.expect_request(WRITES):
            ann.box.evaluate(GIVE, name)
    files = ann.page.get_by_role("list", name="Files").get_by_role("listitem")
    expect(files.get_by_text("Uploaded")).to_have_count(2)
    ann.box.press("Control+Enter")
    expect(ann.page.get_by_role("link", name="two.cake").first).to_be_visible()

    eventually(ann.page, lambda: not drafts(sqlite_site, "cakes"))
    ann.page.wait_for_timeout(3000)
    assert not drafts(sqlite_site, "cakes")
    expect(files).to_have_count(0)


def test_a_sent_message_does_not_return_after_a_reload(sqlite_site: Site, ann: Window) -> None:
    """The page closes before the server hears that the draft was deleted."""
    ann.go("narrow/channel/general/topic/away")
    ann.box.press_sequentially("Gone soon")
    eventually(ann.page, lambda: len(drafts(sqlite_site, "away")) == 1)
    ann.page.route(WRITES, lambda route: route.abort())
    ann.box.press("Control+Enter")
    expect(ann.message("Gone soon")).to_be_visible()
    expect(ann.page.get_by_text("Sending")).to_be_hidden()
    ann.page.reload()
    expect(ann.message("Gone soon")).to_be_visible()
    expect(ann.box).to_have_value("")
    ann.page.unroute(WRITES)
    ann.page.reload()
    expect(ann.box).to_have_value("")
    eventually(ann.page, lambda: not drafts(sqlite_site, "away"))


def test_a_draft_whose_creation_got_no_response_is_not_duplicated(
    sqlite_site: Site, ann: Window
) -> None:
    """The page reloads while the server creates the draft."""
    ann.go("narrow/channel/general/topic/unanswered")

    def lost(route: Route) -> None:
        # The previous test's draft may still be in the process of being deleted.
        if route.request.method != "POST":
            route.continue_()
            return
        route.fetch()
        route.abort()

    ann.page.route(WRITES, lost)
    ann.box.press_sequentially("Only one")
    eventually(ann.page, lambda: len(drafts(sqlite_site, "unanswered")) == 1)
    ann.page.reload()
    ann.page.unroute(WRITES)
    expect(ann.box).to_have_value("Only one")
    ann.go("drafts")
    expect(ann.page.get_by_role("main").get_by_text("Only one")).to_have_count(1)
    ann.page.wait_for_timeout(2500)
    expect(ann.page.get_by_role("main").get_by_text("Only one")).to_have_count(1)
    assert len(drafts(sqlite_site, "unanswered")) == 1
    ann.go("narrow/channel/general/topic/unanswered")
    ann.box.fill("")
