"""Somebody who does the next thing before the last is done, over a network that is slow or gone."""

import re

from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Town
from tests.e2e.people import client_of, ok


def edit(ann: Window, text: str) -> None:
    ann.message(text).hover()
    ann.message(text).get_by_role("button", name="More").click()
    ann.page.get_by_role("menuitem", name="Edit").click()


def test_what_was_written_survives_haste(sqlite_town: Town, opened: Open) -> None:
    ann = opened(sqlite_town.server, sqlite_town.ann)
    page = ann.page
    ann.go("narrow/channel/general/topic/haste")
    for text in ("First word", "Second word"):
        ann.say(text)
    expect(page.get_by_text("Sending")).to_have_count(0)

    # One begins with another message, or leaves: what was changed is taken up again.
    editor = page.get_by_role("textbox", name="Edit message")
    notes = page.locator(".toasts")
    edit(ann, "First word")
    editor.fill("First word, and more of it")
    edit(ann, "Second word")
    expect(editor).to_have_value("Second word")
    expect(notes).to_contain_text("Your changes were not saved")
    notes.get_by_role("button", name="Write on").click()
    expect(editor).to_have_value("First word, and more of it")
    editor.press("Escape")
    expect(editor).to_have_count(0)
    notes.get_by_role("button", name="Write on").last.click()
    editor.press("Control+Enter")
    expect(ann.message("First word, and more of it").get_by_text("edited")).to_be_visible()

    # So it is where the message is gone by then.
    edit(ann, "Second word")
    editor.fill("Second thought")
    with client_of(sqlite_town.ann, sqlite_town.server) as client:
        query = {"anchor": "newest", "num_before": 1, "num_after": 0, "apply_markdown": False}
        (second,) = ok(client.get_messages(query))["messages"]
        ok(client.delete_message(second["id"]))
    expect(editor).to_have_count(0)
    notes.get_by_role("button", name="Write on").last.click()
    expect(ann.box).to_have_value("Second thought")
    ann.say("Second thought")
    expect(page.get_by_text("Sending")).to_have_count(0)

    # A quotation that comes late goes where it was asked for, and into nothing else.
    held: list[Route] = []
    source = re.compile(r"/api/v1/messages/\d+\b")
    page.route(source, lambda route: held.append(route))
    ann.message("Second thought").hover()
    ann.message("Second thought").get_by_role("button", name="Quote and reply").click()
    expect(ann.box).to_be_focused()
    ann.go("inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    with page.expect_event("requestfinished", lambda request: bool(source.search(request.url))):
        held.pop().continue_()
    page.unroute(source)
    page.evaluate("new Promise((done) => setTimeout(done))")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(ann.box).to_have_count(0)
    ann.go("narrow/channel/general/topic/haste")

    # It is asked for once, however often one presses; what is written meanwhile stays.
    page.route("**/api/v1/scheduled_messages", lambda route: held.append(route))
    ann.box.fill("Good morning")
    page.get_by_role("button", name="Send later").click()
    page.get_by_role("menuitem", name="Tomorrow morning").click()
    page.get_by_role("button", name="Send later").click()
    expect(page.get_by_role("menuitem", name="Tomorrow morning")).to_be_disabled()
    page.keyboard.press("Escape")
    ann.box.fill("Good morning, and good night")
    for route in held:
        route.continue_()
    page.unroute("**/api/v1/scheduled_messages")
    expect(notes).to_contain_text("It will be sent")
    expect(ann.box).to_have_value("Good morning, and good night")
    ann.box.fill("")
    with client_of(sqlite_town.ann, sqlite_town.server) as client:
        kept = ok(client.call_endpoint("scheduled_messages", method="GET"))["scheduled_messages"]
    assert [one["content"] for one in kept] == ["Good morning"]

    # The network goes at the worst moment: it is on its way, and goes once.
    ann.away = True
    page.route("**/api/v1/messages", lambda route: route.abort())
    ann.go("scheduled")
    page.get_by_role("button", name="Send now").click()
    waiting = page.get_by_role("article", name="Your message on its way")
    expect(waiting).to_contain_text("Good morning")
    page.unroute("**/api/v1/messages")
    page.evaluate("window.dispatchEvent(new Event('online'))")
    expect(waiting).to_have_count(0)
    expect(ann.message("Good morning")).to_have_count(1)
    ann.away = False
