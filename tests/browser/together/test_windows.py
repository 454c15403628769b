"""Two conversations at a time: side by side, and in separate windows."""

import re

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import LAPTOP
from tests.e2e.conftest import Site


def test_a_second_conversation_beside_and_in_a_window(sqlite_site: Site, shared_page: Open) -> None:
    site = sqlite_site
    auth = (site.ben.email, site.ben.api_key)
    for topic in ("left side", "right side"):
        about = {"type": "stream", "to": "general", "topic": topic, "content": f"The {topic}"}
        url = f"{site.server.url}/api/v1/messages"
        httpx.post(url, data=about, auth=auth, timeout=60).raise_for_status()
    ann = shared_page(site.server, site.ann)
    page = ann.page
    ann.go("narrow/channel/general/topic/right.20side")
    expect(ann.message("The right side")).to_be_visible()
    page.get_by_role("button", name="Topic actions").click()
    page.get_by_role("menuitem", name="Split view").click()
    ann.go("narrow/channel/general/topic/left.20side")
    expect(ann.message("The left side")).to_be_visible()
    second = page.frame_locator("iframe")
    expect(second.get_by_role("article")).to_contain_text("The right side")
    # Without a sidebar, and without another window to open it in.
    expect(second.get_by_role("navigation")).to_have_count(0)

    # Each has its own compose box. What is written on one side appears on that side.
    box = second.get_by_role("textbox", name=re.compile("^Message "))
    box.fill("Written on the right")
    box.press("Control+Enter")
    expect(second.get_by_role("article").filter(has_text="Written on the right")).to_be_visible()
    expect(ann.box).to_have_value("")
    ann.say("Written on the left")
    expect(ann.message("Written on the left")).to_be_visible()
    expect(ann.message("Written on the right")).to_have_count(0)

    # From there, it becomes a window.
    with page.context.expect_page() as opened:
        page.get_by_role("button", name="Open in new window").click()
    window = opened.value
    expect(page.locator("iframe")).to_have_count(0)
    expect(window.get_by_role("article").first).to_contain_text("The right side")
    expect(window.locator("#side")).to_have_count(0)
    window.close()

    # On narrower screens, only a window is offered.
    page.set_viewport_size({"width": 1000, "height": 700})
    page.get_by_role("button", name="Topic actions").click()
    expect(page.get_by_role("menuitem", name="Open in new window")).to_be_visible()
    expect(page.get_by_role("menuitem", name="Split view")).to_have_count(0)
    page.keyboard.press("Escape")
    page.set_viewport_size(LAPTOP)
