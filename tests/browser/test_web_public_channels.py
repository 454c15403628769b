"""Without an account, web-public channels are readable and nothing else is visible."""

import json

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import settled
from tests.browser.test_accessibility import AXE, faults
from tests.e2e.conftest import Site


def test_a_visitor_reads_web_public_channels_and_finds_sign_in(
    sqlite_site: Site, new_page: Open
) -> None:
    server = sqlite_site.server
    visitor = new_page(server, bypass_csp=True, reduced_motion="reduce")
    page, main = visitor.page, visitor.page.get_by_role("main")
    # Without web-public channels, there is only the sign-in page.
    visitor.go("inbox")
    expect(page.get_by_label("Password")).to_be_visible()

    auth = (sqlite_site.ann.email, sqlite_site.ann.api_key)
    with httpx.Client(base_url=f"{server.url}/api/v1", auth=auth, timeout=60) as http:
        http.patch("/realm", data={"enable_spectator_access": "true"}).raise_for_status()
        made = json.dumps([{"name": "square", "description": "Come in"}])
        http.post(
            "/users/me/subscriptions", data={"subscriptions": made, "is_web_public": "true"}
        ).raise_for_status()
        for place in ("square", "general"):
            where = {"type": "stream", "to": place, "topic": "news"}
            http.post("/messages", data={**where, "content": f"Said in {place}"})
        message = http.get(
            "/messages", params={"anchor": "newest", "num_before": 2, "num_after": 0}
        ).json()["messages"][0]["id"]
        http.post(f"/messages/{message}/reactions", data={"emoji_name": "tada"})
        last = http.get("/messages", params={"anchor": "newest", "num_before": 2, "num_after": 0})
        for one in last.json()["messages"]:
            http.post(f"/messages/{one['id']}/pin").raise_for_status()

    visitor.go("inbox")
    expect(page.get_by_role("navigation").get_by_role("link")).to_have_count(1)
    main.get_by_role("link", name="square").click()
    said = visitor.message("Said in square")
    expect(said).to_be_visible()
    page.add_script_tag(path=AXE)
    found = faults(visitor, "a channel")
    # People without a picture have initials, as for users.
    expect(said.locator(".initials")).to_have_count(1)
    # No text box and no message actions. Pages that need an account say so.
    said.hover()
    expect(page.get_by_role("textbox")).to_have_count(0)
    expect(page.get_by_role("toolbar")).to_have_count(0)
    said.get_by_role("button", name="reacted").click()
    dialog = page.get_by_role("dialog", name="Sign in required")
    expect(dialog.get_by_role("link", name="Sign in")).to_be_visible()
    # It's at the bottom of the dialog, as in every dialog.
    assert page.evaluate("document.querySelector('dialog footer a[href^=\\'/login\\']') !== null")
    expect(page.get_by_role("alert")).to_have_count(0)
    found += faults(visitor, "the door")
    page.keyboard.press("Escape")
    page.get_by_role("navigation").get_by_role("link", name="news").click()
    expect(main.get_by_text("You’re viewing this organization without an account")).to_be_visible()
    expect(said).to_be_visible()

    # Pinned messages are visible and can't be unpinned.
    pinned = page.get_by_role("region", name="Pinned messages")
    expect(pinned).to_contain_text("Said in square")
    pinned.get_by_role("button", name="1 pinned").click()
    expect(page.get_by_role("dialog", name="Pinned messages").get_by_role("button")).to_have_count(
        1
    )
    page.keyboard.press("Escape")

    # Web-public messages can be searched; personal filters aren't offered.
    page.keyboard.press("/")
    box = page.get_by_role("combobox", name="Search or jump to")
    box.fill("is:starred said")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Sign in to use “is:”")
    box.fill("said")
    page.keyboard.press("Enter")
    head = main.get_by_role("search")
    expect(head.get_by_role("status")).to_have_text("1 message")
    expect(said).to_be_visible()
    found += faults(visitor, "a search")
    head.get_by_role("button", name="Filters").click()
    expect(page.get_by_role("menuitemradio")).to_have_count(4)
    page.keyboard.press("Escape")
    visitor.go("narrow/is/starred")
    expect(main.get_by_role("heading", name="This page isn’t public")).to_be_visible()

    # A failed load is reported and retried.
    visitor.go("narrow/channel/square/topic/news")
    visitor.away = True
    page.route("**/api/v1/register", lambda route: route.abort())
    page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(main.get_by_text("Can’t reach the server")).to_be_visible()
    expect(said).to_be_visible()
    page.unroute("**/api/v1/register")
    main.get_by_role("button", name="Retry now").click()
    expect(main.get_by_text("Can’t reach the server")).to_have_count(0)
    visitor.away = False

    # Private content looks like content that doesn't exist.
    visitor.go("narrow/channel/general/topic/news")
    expect(main.get_by_role("heading", name="This page isn’t public")).to_be_visible()
    found += faults(visitor, "closed")
    expect(page.get_by_text("Said in general")).to_have_count(0)
    page.set_viewport_size({"width": 390, "height": 844})
    visitor.go("narrow/channel/square/topic/news")
    expect(said).to_be_visible()
    found += faults(visitor, "on a phone")
    way = page.get_by_role("button", name="Public channels")
    way.click()
    expect(page.get_by_role("navigation").get_by_role("link", name="square")).to_be_visible()
    expect(page.locator("#side .home")).to_be_focused()
    page.keyboard.press("Escape")
    expect(way).to_be_focused()
    assert found == []

    # Sign-in leads back to the page.
    page.set_viewport_size({"width": 1280, "height": 800})
    main.get_by_role("link", name="Sign in").click()
    page.get_by_label("Email").fill(sqlite_site.ben.email)
    page.get_by_label("Password").fill("correct horse")
    page.get_by_role("button", name="Sign in").click()
    settled(page)
    expect(visitor.message("Said in square")).to_be_visible()
    expect(visitor.box).to_be_visible()
