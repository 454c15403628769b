"""The inbox: all conversations in one list, and what users find there in the first minutes."""

import json
import re
from urllib.parse import unquote

import httpx
from playwright.sync_api import Locator, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, eventually, settled
from tests.e2e.conftest import Site
from tests.e2e.server import Account, Server

TOPICS = 60


def client(server: Server, account: Account) -> httpx.Client:
    auth = (account.email, account.api_key)
    return httpx.Client(base_url=f"{server.url}/api/v1", auth=auth, timeout=60)


def say(http: httpx.Client, topic: str, content: str) -> None:
    about = {"type": "stream", "to": "general", "topic": topic, "content": content}
    about["read_by_sender"] = "true"
    http.post("/messages", data=about).raise_for_status()


def test_the_first_minutes_of_an_owner_and_a_new_user(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    ann.go("inbox")
    steps = page.get_by_role("list", name="Get started")
    expect(steps.get_by_role("button", name="Done: Invite people")).to_be_visible()
    # A new organization announces new users.
    expect(steps.get_by_role("button", name="Done: Get notified when people join")).to_be_visible()
    # An organization without email invites people with a link.
    steps.get_by_role("button", name="Invite people").click()
    page.get_by_role("button", name="Create an invitation link instead").click()
    invitation = page.get_by_role("dialog", name="Invitation link")
    invitation.get_by_role("button", name="Create link").click()
    expect(invitation.get_by_role("textbox", name="Invitation link")).to_have_value(
        re.compile("/join/")
    )
    invitation.locator(".buttons").get_by_role("button", name="Close").click()
    steps.get_by_role("button", name="Set up email").click()
    expect(page.get_by_text("tertulia mail --test ann@example.com")).to_be_visible()
    page.get_by_role("button", name="Send test email").click()
    expect(page.get_by_text("No email was sent because no mail server is set up.")).to_be_visible()
    expect(steps.get_by_role("button", name="Set up backups")).to_be_visible()

    steps.get_by_role("button", name="Create channels").click()
    dialog = page.get_by_role("dialog", name="Set up your organization")
    dialog.get_by_label("Template").select_option(label="Club")
    expect(dialog.get_by_label("#meetings")).to_be_checked()
    dialog.get_by_label("Template").select_option(label="Team")
    dialog.get_by_label("#random").uncheck()
    dialog.get_by_label("Other channels").fill("garden, general,  garden")
    expect(dialog.get_by_label("@leads")).to_be_checked()
    dialog.get_by_role("button", name="Create", exact=True).click()
    expect(dialog).to_be_hidden()
    expect(page.get_by_text("4 channels and 1 group created.")).to_be_visible()
    ann.go("narrow/channel/announcements/topic/Welcome")
    expect(ann.message("introduce yourself")).to_be_visible()
    ann.go("groups")
    expect(page.get_by_role("link", name="leads")).to_be_visible()
    ann.go("inbox")
    expect(ann.link("garden")).to_be_visible()
    expect(steps.get_by_role("button", name="Done: Create channels")).to_be_visible()
    page.get_by_role("button", name="Hide", exact=True).click()
    expect(steps).to_be_hidden()

    ben = shared_page(sqlite_site.server, sqlite_site.ben)
    ben.go("inbox")
    # Existing users are added to default channels.
    expect(ben.link("garden")).to_be_visible()
    tour = ben.page.get_by_role("region", name="Quick tour")
    tour.get_by_role("button", name="Next").click()
    expect(tour.get_by_role("heading", name="This is your inbox")).to_be_visible()
    tour.get_by_role("button", name="Skip").click()
    expect(tour).to_be_hidden()
    for window in (ann, ben):
        window.page.reload()
        settled(window.page)
        expect(window.page.locator("main section")).to_have_count(0)


def test_the_inbox_is_navigated_with_the_keyboard(sqlite_site: Site, shared_page: Open) -> None:
    server = sqlite_site.server
    with client(server, sqlite_site.ann) as own, client(server, sqlite_site.ben) as ben:
        step = {"onboarding_step": "intro_inbox_view_modal"}
        own.post("/users/me/onboarding_steps", data=step).raise_for_status()
        say(own, "mine", "I begin")
        for number in range(TOPICS):
            say(ben, f"topic {number}", f"Number **{number}**")
        say(ben, "film", "```spoiler The end\nThe butler\n```")
        about = {"type": "direct", "to": '["ann@example.com"]', "content": "Hi *Ann*"}
        ben.post("/messages", data=about).raise_for_status()

        ann = shared_page(server, sqlite_site.ann)
        page, keys = ann.page, ann.page.keyboard
        ann.go("inbox")
        rows = page.locator("[data-row]")
        # A row reads as one sentence, with the last message without its markup.
        expect(rows.first).to_have_accessible_name(re.compile(r"^Ben, 1 unread, Hi Ann, \w+day"))
        expect(rows.nth(1)).to_contain_text("Ben: The end")
        expect(page.get_by_text("The butler")).to_have_count(0)
        assert rows.count() < TOPICS

        keys.press("j")
        expect(rows.first).to_be_focused()
        keys.press("j")
        expect(page.locator('[data-row="c1/film"]')).to_be_focused()
        keys.press("End")
        expect(rows.last).to_be_focused()
        expect(page.locator('[data-row="c1/mine"]')).to_contain_text("You: I begin")
        keys.press("Home")
        keys.press("ArrowDown")
        film, next_one = (page.locator(f'[data-row="c1/{name}"]') for name in ("film", "topic 59"))
        expect(film).to_be_focused()
        # Read conversations move below the divider, and the next row gets focus.
        keys.press("m")
        expect(next_one).to_be_focused()
        # The list changes while it's used.
        expect(film).to_have_count(0)
        say(ben, "news", "Here")
        expect(page.locator('[data-row="c1/news"]')).to_be_visible()
        expect(next_one).to_be_focused()

        keys.press("Escape")
        field = page.get_by_role("textbox", name="Filter conversations")
        expect(field).to_be_focused()
        keys.type("TOPIC 17")
        expect(rows).to_have_count(1)
        keys.press("Enter")
        expect(ann.message("Number 17")).to_be_visible()
        page.go_back()
        expect(page.locator('[data-row="c1/topic 17"]')).to_be_focused()
        keys.press("M")
        expect(page.get_by_role("heading", name="No matches")).to_be_visible()
        page.get_by_role("button", name="Include muted").click()
        expect(rows).to_have_accessible_name(re.compile("Muted"))
        page.get_by_role("button", name="Participated").click()
        page.get_by_role("button", name="Clear filters").click()
        expect(rows.first).to_be_visible()

        # Recent conversations are the same list in another order. The choice is remembered.
        ann.go("recent")
        newest = page.get_by_role("button", name="Newest first")
        expect(newest).to_have_attribute("aria-pressed", "true")
        ann.go("inbox")
        expect(newest).to_have_attribute("aria-pressed", "false")
        newest.click()
        page.reload()
        expect(newest).to_have_attribute("aria-pressed", "true")
        expect(rows.first).to_have_attribute("data-row", "c1/news")


def unread_row(site: Site, new_page: Open, text: str) -> tuple[Window, Locator]:
    """Send ann a direct message. Return her complete inbox and the message's row."""
    with client(site.server, site.ben) as ben:
        about = {"type": "direct", "to": json.dumps([site.ann.email]), "content": text}
        ben.post("/messages", data=about).raise_for_status()
    ann = new_page(site.server, site.ann)
    ann.go("inbox")
    row = ann.page.get_by_role("listitem").filter(has_text=text).locator("[data-row]")
    expect(row).to_be_visible()
    settled(ann.page)
    return ann, row


def test_a_conversation_is_loaded_while_the_pointer_rests_on_its_link(
    sqlite_site: Site, new_page: Open
) -> None:
    text = "The tide turns at nine"
    ann, row = unread_row(sqlite_site, new_page, text)
    loaded: list[str] = []
    ann.page.on("requestfinished", lambda request: loaded.append(unquote(request.url)))
    row.hover()
    eventually(ann.page, lambda: any("/messages?" in url and '"dm"' in url for url in loaded))
    ann.page.route("**/messages?*", lambda route: route.abort())
    row.click()
    expect(ann.message(text)).to_be_visible()


def test_a_conversation_opened_while_it_is_loaded_in_advance_is_shown(
    sqlite_site: Site, new_page: Open
) -> None:
    text = "The gulls are back"
    ann, row = unread_row(sqlite_site, new_page, text)
    held: list[Route] = []

    def hold_first(route: Route) -> None:
        if held or '"dm"' not in unquote(route.request.url):
            route.continue_()
        else:
            held.append(route)

    ann.page.route("**/messages?*", hold_first)
    row.hover()
    eventually(ann.page, lambda: bool(held))
    row.click()
    expect(ann.message(text)).to_be_visible()
    # The earlier response comes last.
    with ann.page.expect_event("requestfinished", lambda one: '"dm"' in unquote(one.url)):
        held[0].continue_()
    expect(ann.message(text)).to_be_visible()
