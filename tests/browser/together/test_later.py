"""Messages to come back to: one key each, and a view that gathers them."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok


def reminders(site: Site) -> list[dict[str, object]]:
    with client_of(site.ann, site.server) as client:
        found = ok(client.call_endpoint(url="reminders", method="GET"))["reminders"]
    assert isinstance(found, list)
    return found


def select(window: Window, text: str) -> None:
    """Select a message with the keyboard."""
    message = window.message(text)
    message.hover()
    message.click(position={"x": 3, "y": 3})
    expect(message).to_have_class(re.compile("selected"))


def test_messages_to_come_back_to(site: Site, new_page: Open) -> None:
    with client_of(site.ben, site.server) as client:
        for text in ("Please order flour", "Is the oven fixed?", "Read the lease"):
            sent = {"type": "channel", "to": "general", "topic": "errands", "content": text}
            ok(client.send_message(sent))
    ann = new_page(site.server, site.ann)
    page, keys = ann.page, ann.page.keyboard

    # One key each.
    ann.go("narrow/channel/general/topic/errands")
    select(ann, "Please order flour")
    keys.press("Control+s")
    select(ann, "Is the oven fixed?")
    keys.press("f")
    expect(page.get_by_text("Reminder set for")).to_be_visible()
    assert len(reminders(site)) == 1
    keys.press("f")
    expect(page.get_by_text("This message comes back")).to_be_visible()
    select(ann, "Read the lease")
    keys.press("b")
    page.get_by_role("dialog").get_by_label("Note").fill("Page 3\n```")
    page.get_by_role("dialog").get_by_role("button", name="Remind me").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert len(reminders(site)) == 2

    # All in one view.
    keys.press("l")
    expect(page.get_by_role("heading", name="Later", exact=True)).to_be_visible()
    # Without the toasts of what was done above.
    page.reload()
    cards = page.get_by_role("main").get_by_role("listitem")
    expect(cards).to_have_count(3)
    lease = cards.filter(has_text="Page 3")
    flour = cards.filter(has_text="Please order flour")

    # Put off, with the note and a way back.
    lease.get_by_role("button", name="Snooze").click()
    page.get_by_role("menuitem", name="In 1 hour").click()
    ann.undo("Reminder set for")
    expect(cards.filter(has_text="Page 3")).to_have_count(1)
    expect(cards).to_have_count(3)

    # Done by keyboard, and back again.
    flour.get_by_role("link").first.focus()
    keys.press("e")
    expect(flour).to_have_count(0)
    ann.undo("Marked as done")
    expect(flour).to_have_count(1)
    keys.press("Home")
    keys.press("e")
    expect(cards).to_have_count(2)
    expect(page.get_by_role("main").locator(":focus[data-row]")).to_have_count(1)
    assert len(reminders(site)) == 1


def test_an_old_link_to_reminders_opens_later(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("reminders")
    expect(ann.page.get_by_role("heading", name="Later", exact=True)).to_be_visible()
