"""Files and calls in messages, the notification preview, and undo."""

import re

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Site

GIVE = """
(element, {name, type}) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(2048)], name, {type}));
    const about = {bubbles: true, cancelable: true, clipboardData: data};
    element.dispatchEvent(new ClipboardEvent("paste", about));
}
"""


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    return shared_page(sqlite_site.server, sqlite_site.ann)


def test_files_are_cards_that_open_or_download(
    sqlite_site: Site, ann: Window, shared_page: Open
) -> None:
    """One file that the browser can show, and one that it can't."""
    place = "narrow/channel/general/topic/files"
    ann.go(place)
    for name, kind in (("Prices 2026.pdf", "application/pdf"), ("all.zip", "application/zip")):
        ann.box.evaluate(GIVE, {"name": name, "type": kind})
    expect(ann.page.get_by_role("list", name="Files").get_by_text("Uploaded")).to_have_count(2)
    ann.box.fill("Both of them")
    ann.box.press("Control+Enter")

    ben = shared_page(sqlite_site.server, sqlite_site.ben)
    ben.go(place)
    said = ben.message("Both of them")
    prices, archive = said.locator(".file").nth(0), said.locator(".file").nth(1)
    expect(prices).to_contain_text("PDF · 2 kB")
    expect(archive).to_contain_text("ZIP · 2 kB")
    expect(said.get_by_role("paragraph")).to_have_text("Both of them")
    expect(prices.get_by_role("link", name="Open Prices 2026.pdf")).to_be_visible()
    expect(archive.get_by_role("link", name="Open all.zip")).to_have_count(0)
    with ben.page.expect_download() as saved:
        archive.get_by_role("link", name="all.zip", exact=True).click()
    assert saved.value.suggested_filename == "all.zip"

    # The owner finds it in the list of their uploads, with links to its messages.
    ann.go("settings/uploaded-files")
    row = ann.page.get_by_role("listitem").filter(has_text="all.zip")
    expect(row).to_contain_text("2 kB")
    row.get_by_role("link", name="message", exact=True).click()
    expect(ann.message("Both of them")).to_be_visible()


def test_a_call_a_notification_preview_and_undo(
    sqlite_site: Site, ann: Window, shared_page: Open
) -> None:
    town, page = sqlite_site, ann.page
    ben = shared_page(town.server, town.ben)
    for one in (ann, ben):
        one.go("narrow/channel/general/topic/calls")
    composer = page.get_by_role("group", name=re.compile("^Message ."))
    page.get_by_role("banner").or_(page.locator("header")).get_by_role(
        "button", name="Start a call"
    ).first.click()
    page.get_by_role("menuitem", name="Voice call").click()
    link = r"\[Join the voice call\]\(https://meet\.jit\.si/[a-z]{20}#config.startWithVideoMuted"
    expect(ann.box).to_have_value(re.compile(link))
    ann.box.fill("")
    composer.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Voice call").click()
    expect(ann.box).to_have_value(re.compile(link))
    ann.box.fill("")
    auth = (town.ann.email, town.ann.api_key)
    realm = f"{town.server.url}/api/v1/realm"
    assert httpx.patch(realm, auth=auth, data={"video_chat_provider": 0}).is_success
    expect(page.get_by_role("button", name="Start a call")).to_have_count(0)
    expect(composer.get_by_role("button", name="Voice call")).to_have_count(0)

    ann.box.fill("Who comes, @**topic** and @**all**?")
    told = page.get_by_role("list", name="Who will be notified")
    expect(told).to_contain_text("@all 1 person in #general")
    expect(told).to_contain_text("@topic no one else has posted in this topic")

    page.get_by_role("button", name="Schedule message").click()
    page.get_by_role("menuitemradio", name="Allow undo for 20 seconds").click()
    ann.box.press("Control+Enter")
    waiting = page.get_by_role("article", name="Sending your message")
    waiting.get_by_role("button", name="Undo").click()
    expect(waiting).to_be_hidden()
    expect(ann.box).to_have_value("Who comes, @**topic** and @**all**?")
    ann.say("Who comes?")
    expect(waiting).to_contain_text("Sending in")
    expect(ben.message("Who comes")).to_have_count(0)
    waiting.get_by_role("button", name="Send now").click()
    expect(ben.message("Who comes")).to_have_count(1)
    # A delayed message isn't lost when its page closes, and isn't sent twice.
    ann.say("And when?")
    expect(waiting).to_contain_text("Sending in")
    page.reload()
    expect(ben.message("And when?")).to_have_count(1)
    expect(ann.message("And when?")).to_have_count(1)
    expect(ann.box).to_have_value("")
    ann.box.click()
    page.get_by_role("button", name="Schedule message").click()
    page.get_by_role("menuitemradio", name="Don’t allow undo").click()

    asked = ben.message("Who comes?")
    asked.hover()
    asked.get_by_role("button", name="Quote message").click()
    quotations = ben.page.get_by_role("list", name="Quotes")
    expect(quotations).to_contain_text("Who comes?")
    quotations.get_by_role("button", name="Remove quote from").click()
