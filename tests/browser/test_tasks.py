"""Ten tasks done by hand. `docs/tasks.md` lists how many clicks and key presses each takes."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import FilePayload, Locator, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, settled
from tests.e2e.conftest import Site

PAGE = Path(__file__).resolve().parents[2] / "docs" / "tasks.md"


def documented_presses() -> dict[str, int]:
    """The table in the documentation."""
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \|", PAGE.read_text(), re.MULTILINE)
    return {task: int(presses) for task, presses in rows}


class Hand:
    """Presses keys and buttons, and counts them."""

    def __init__(self, window: Window) -> None:
        self._window = window
        self.presses = 0

    def click(self, what: Locator) -> None:
        self.presses += 1
        what.click()

    def button(self, name: str, within: Locator | None = None) -> None:
        place = within or self._window.page
        self.click(place.get_by_role("button", name=name, exact=True))

    def item(self, name: str) -> None:
        found = self._window.page.get_by_role("menuitem", name=re.compile(f"^{name}"))
        self.click(found)

    def key(self, name: str) -> None:
        self.presses += 1
        self._window.page.keyboard.press(name)

    def choose(self, what: Locator, option: str) -> None:
        """Open a list and choose an option."""
        self.presses += 2
        what.select_option(label=option)

    def type(self, text: str) -> None:
        self._window.page.keyboard.type(text)


def test_ten_tasks_take_the_documented_number_of_presses(sqlite_site: Site, new_page: Open) -> None:
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    page, main, counted = ann.page, ann.page.get_by_role("main"), dict[str, int]()
    auth = (sqlite_site.ann.email, sqlite_site.ann.api_key)
    http = httpx.Client(base_url=f"{sqlite_site.server.url}/api/v1", auth=auth, timeout=60)
    where = {"type": "stream", "to": "general", "topic": "prices"}
    http.post("/messages", data={**where, "content": "We decided on six"}).raise_for_status()

    def begin(fragment: str = "narrow/channel/general/topic/prices") -> Hand:
        ann.go("inbox")
        settled(page)
        ann.go(fragment)
        settled(page)
        return Hand(ann)

    def have(path: str, name: str) -> Any:
        return http.get(path).json()[name]

    def message() -> Locator:
        return ann.message("We decided on six").first

    # A file
    hand = begin()
    with page.expect_file_chooser() as chooser:
        hand.button("Attach files")
    paper = FilePayload(name="prices.pdf", mimeType="application/pdf", buffer=b"%PDF-1.4")
    chooser.value.set_files([paper])
    expect(page.get_by_role("list", name="Files").get_by_text("Uploaded")).to_be_visible()
    hand.button("Send")
    expect(page.locator(".file")).to_contain_text("PDF")
    counted["send a file"] = hand.presses

    # A decision
    hand = begin()
    hand.key("/")
    expect(page.get_by_role("combobox").last).to_be_focused()
    month = datetime.now(UTC) - timedelta(days=31)
    hand.type(f"decided after:{month:%Y-%m-%d}")
    hand.key("Enter")
    expect(page).to_have_url(re.compile("/near/"))
    expect(ann.message("We decided on six")).to_be_visible()
    counted["find a decision from last month"] = hand.presses

    # A new user
    hand = begin()
    side = page.get_by_role("navigation", name="Views and channels")
    hand.button("Invite people", side)
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Email addresses")).to_be_visible()
    dialog.get_by_label("Email addresses").fill("zoe@example.com")
    hand.button("Send invitations", dialog)
    expect(dialog).to_contain_text("zoe@example.com")
    assert have("/invites", "invites")
    page.keyboard.press("Escape")
    counted["invite a person"] = hand.presses

    # Do not disturb
    hand = begin()
    link = ann.link("general").first
    link.hover()
    hand.button("Actions for general", side)
    hand.item("Mute channel")
    expect(page.get_by_role("menu")).to_be_hidden()
    counted["mute a channel"] = hand.presses

    # Schedule
    hand = begin()
    ann.box.fill("Good morning")
    hand.button("Schedule message")
    hand.item("Tomorrow morning")
    expect(page.locator(".toasts")).to_contain_text("Scheduled for")
    assert len(have("/scheduled_messages", "scheduled_messages")) == 1
    counted["schedule a message for tomorrow"] = hand.presses

    # A new channel
    hand = begin()
    hand.click(side.get_by_role("link", name="New channel"))
    main.get_by_label("Name", exact=True).fill("prices")
    hand.button("Create channel", main)
    expect(ann.link("prices").first).to_be_visible()
    counted["create a channel"] = hand.presses

    # In a small group
    prices = http.get("/get_stream_id", params={"stream": "prices"}).json()["stream_id"]
    hand = begin(f"narrow/channel/{prices}")
    hand.button("Channel actions")
    hand.item("Make private")
    expect(page.locator(".toasts")).to_contain_text("#prices is now private")
    counted["make a channel private"] = hand.presses
    channels = {one["name"]: one for one in have("/users/me/subscriptions", "subscriptions")}
    assert channels["prices"]["invite_only"]
    with page.expect_response(re.compile(r"/streams/\d+$")):
        page.get_by_role("button", name="Undo").last.click()
    channels = {one["name"]: one for one in have("/users/me/subscriptions", "subscriptions")}
    assert not channels["prices"]["invite_only"]

    # A reminder
    hand = begin()
    hand.click(message())
    hand.key("f")
    expect(page.locator(".toasts")).to_contain_text("Reminder set for")
    assert len(have("/reminders", "reminders")) == 1
    counted["set a reminder for tomorrow"] = hand.presses

    # A status
    hand = begin()
    hand.click(page.locator("#own-menu"))
    hand.item("Set status")
    hand.click(page.get_by_role("dialog").get_by_role("button", name=re.compile("In a meeting")))
    hand.button("Save", page.get_by_role("dialog"))
    expect(page.locator("#own-menu")).to_contain_text("In a meeting")
    counted["set a status"] = hand.presses

    # An undo
    hand = begin()
    ann.say("Sevn it is")
    expect(ann.message("Sevn it is")).to_be_visible()
    expect(page.get_by_text("Sending")).to_have_count(0)
    ann.box.focus()
    hand.key("ArrowUp")
    editor = page.get_by_role("textbox", name="Edit message")
    editor.fill("Seven it is")
    hand.key("Control+Enter")
    expect(ann.message("Seven it is")).to_be_visible()
    counted["edit your last message"] = hand.presses

    http.close()
    assert counted == documented_presses()
