"""The inbox of someone with many conversations: groups, bots, and actions on several rows."""

import re
import time
from collections.abc import Callable

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.test_inbox import client
from tests.e2e.conftest import Site

MUTED = 1


def send(http: httpx.Client, channel: str, topic: str) -> None:
    about = {"type": "stream", "to": channel, "topic": topic, "content": f"About {topic}"}
    http.post("/messages", data=about).raise_for_status()


def test_conversations_are_grouped_and_handled_together(
    sqlite_site: Site, shared_page: Open
) -> None:
    server = sqlite_site.server
    with client(server, sqlite_site.ann) as own, client(server, sqlite_site.ben) as ben:
        step = {"onboarding_step": "intro_inbox_view_modal"}
        own.post("/users/me/onboarding_steps", data=step).raise_for_status()
        home = {"web_home_view": '"all_messages"'}
        own.patch("/settings", data=home).raise_for_status()
        people = f"[{sqlite_site.ann.user_id}, {sqlite_site.ben.user_id}]"
        kitchen = {"subscriptions": '[{"name": "kitchen"}]', "principals": people}
        own.post("/users/me/subscriptions", data=kitchen).raise_for_status()
        for topic in ("ovens", "plates", "knives"):
            send(ben, "kitchen", topic)
        send(ben, "general", "holidays")
        made = {"full_name": "Robo", "short_name": "robo", "bot_type": "1"}
        robo = ben.post("/bots", data=made).raise_for_status().json()
        bots = ben.get("/users").json()["members"]
        address = next(one["email"] for one in bots if one["user_id"] == robo["user_id"])
        auth = (address, robo["api_key"])
        with httpx.Client(base_url=f"{server.url}/api/v1", auth=auth, timeout=60) as bot:
            send(bot, "general", "builds")

        def muted() -> set[str]:
            register = {"fetch_event_types": '["user_topic"]'}
            topics = own.post("/register", data=register).json()["user_topics"]
            return {one["topic_name"] for one in topics if one["visibility_policy"] == MUTED}

        ann = shared_page(server, sqlite_site.ann)
        page, keys = ann.page, ann.page.keyboard
        ann.go("inbox")
        rows = page.locator("[data-row]")
        builds = page.locator('[data-row$="/builds"]')
        expect(builds).to_be_visible()

        # What bots wrote is one row, until it's opened.
        page.get_by_role("button", name="Collapse bots").click()
        expect(builds).to_have_count(0)
        expect(rows.last).to_have_accessible_name(re.compile("Bots"))
        rows.last.click()
        expect(builds).to_be_visible()
        builds.press("ArrowLeft")
        expect(builds).to_have_count(0)
        expect(rows.last).to_be_focused()
        page.get_by_role("button", name="Collapse bots").click()
        expect(builds).to_be_visible()

        # By channel, in the sidebar's order. A folded group says how much is unread.
        page.get_by_role("button", name="By channel").click()
        group = page.get_by_role("main").get_by_role("button", name=re.compile("^kitchen"))
        expect(group).to_have_attribute("aria-expanded", "true")
        # One of the four is the announcement of the channel, which its creator has read.
        expect(group).to_contain_text("4")
        # Under its heading, the channel isn't named again.
        expect(page.locator('[data-row$="/ovens"] .channel')).to_have_count(0)
        group.focus()
        keys.press("ArrowLeft")
        expect(group).to_have_attribute("aria-expanded", "false")
        expect(page.locator('[data-row$="/ovens"]')).to_have_count(0)
        page.reload()
        expect(group).to_have_attribute("aria-expanded", "false")
        group.focus()
        keys.press("ArrowRight")
        ovens, plates, knives = (
            page.locator(f'[data-row$="/{name}"]') for name in ("ovens", "plates", "knives")
        )
        expect(ovens).to_be_visible()

        # Two are selected and muted with the keyboard, and come back together.
        keys.press("j")
        expect(knives).to_be_focused()
        keys.press("x")
        keys.press("j")
        keys.press("x")
        bar = page.get_by_role("toolbar", name="Selected conversations")
        expect(bar).to_contain_text("2 selected")
        expect(knives).to_have_accessible_name(re.compile("Selected"))
        keys.press("M")
        expect(page.get_by_text("Muted 2 topics.")).to_be_visible()
        expect(knives).to_have_count(0)
        eventually(lambda: muted() == {"knives", "plates"})
        page.get_by_role("button", name="Undo").click()
        expect(knives).to_be_visible()
        eventually(lambda: not muted())

        # Escape ends a selection. Marking a group as read is undone as well.
        ovens.focus()
        keys.press("x")
        expect(bar).to_contain_text("1 selected")
        keys.press("Escape")
        expect(bar).to_have_count(0)

        # Wherever the focus is, it also clears filters, and only then goes to the home view.
        ovens.focus()
        keys.press("x")
        page.get_by_role("main").get_by_role("button", name="Direct messages").click()
        expect(ovens).to_have_count(0)
        page.evaluate("document.activeElement.blur()")
        keys.press("Escape")
        expect(ovens).to_be_visible()
        expect(bar).to_contain_text("1 selected")
        keys.press("Escape")
        expect(bar).to_have_count(0)
        expect(page).to_have_url(re.compile("#inbox$"))
        keys.press("Escape")
        expect(page).to_have_url(re.compile("#feed$"))
        ann.go("inbox")

        group.focus()
        keys.press("m")
        expect(page.get_by_text("Marked 3 messages as read.")).to_be_visible()
        expect(plates).not_to_have_accessible_name(re.compile("unread"))
        page.get_by_role("button", name="Undo").last.click()
        expect(plates).to_have_accessible_name(re.compile("1 unread"))

        # A group is selected as a whole.
        group.focus()
        keys.press("x")
        expect(bar).to_contain_text("4 selected")
        bar.get_by_role("button", name="Mark as read").click()
        expect(bar).to_have_count(0)
        expect(plates).not_to_have_accessible_name(re.compile("unread"))
        expect(page.locator('[data-row$="/holidays"]')).to_be_visible()


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < until, "never true"
        time.sleep(0.05)  # The server can only be asked again.
