"""Text left for something else, or whose conversation moves, is found again."""

import re

from playwright.sync_api import Dialog, Locator, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, settled
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok


def resolve(site: Site, message_id: int, name: str) -> None:
    """Ben renames the message's topic."""
    with client_of(site.ben, site.server) as client:
        changes = {"message_id": message_id, "topic": name, "propagate_mode": "change_all"}
        ok(client.update_message(changes))


def begin(site: Site, topic: str, count: int = 1) -> int:
    """Ben starts a topic. Return the ID of its first message."""
    with client_of(site.ben, site.server) as client:
        first, *_ = [
            ok(
                client.send_message(
                    {"type": "channel", "to": "general", "topic": topic, "content": f"Word {at}"}
                )
            )["id"]
            for at in range(count)
        ]
    return int(first)


def test_a_writer_moves_along_with_the_topic(sqlite_site: Site, shared_page: Open) -> None:
    town = sqlite_site
    plans, trips = begin(town, "plans"), begin(town, "trips")
    ann = shared_page(town.server, town.ann)
    page, keys = ann.page, ann.page.keyboard

    # In the middle of a word; focus and caret don't move.
    ann.go("narrow/channel/general/topic/plans")
    expect(ann.message("Word 0")).to_be_visible()
    ann.box.fill("See you")
    keys.press("ArrowLeft")
    resolve(town, plans, "✔ plans")
    expect(page).to_have_url(re.compile("E2.9C.94"))
    expect(ann.box).to_be_focused()
    keys.type("!")
    expect(ann.box).to_have_value("See yo!u")
    keys.press("Control+Enter")
    expect(ann.message("See yo!u")).to_be_visible()
    expect(page).to_have_url(re.compile("E2.9C.94"))

    # The same for a message started in another view.
    ann.go("inbox")
    page.get_by_role("button", name=re.compile("^New message")).last.click()
    page.get_by_role("combobox", name="Channel").fill("general")
    keys.press("Enter")
    topic = page.get_by_role("combobox", name="Topic")
    topic.fill("trips")
    keys.press("Enter")
    keys.type("By train")
    resolve(town, trips, "voyages")
    expect(topic).to_have_value("voyages")
    keys.type("?")
    keys.press("Control+Enter")
    expect(page).to_have_url(re.compile("/topic/voyages"))
    expect(ann.message("By train?")).to_be_visible()


def test_changes_in_a_dialog_are_kept_for_later(sqlite_site: Site, shared_page: Open) -> None:
    town = sqlite_site
    begin(town, "breakfast")
    with client_of(town.ann, town.server) as client:
        later = {"type": "channel", "to": 0, "topic": "breakfast", "content": "Rolls"}
        later["to"] = ok(client.get_stream_id("general"))["stream_id"]
        later["scheduled_delivery_timestamp"] = 4_000_000_000
        ok(client.call_endpoint("scheduled_messages", method="POST", request=later))
    phone = shared_page(town.server, town.ann)
    page, keys = phone.page, phone.page.keyboard
    page.set_viewport_size(PHONE)
    notes = page.locator(".toasts")
    dialog = page.get_by_role("dialog")
    # (Check immediately: the toast disappears by itself soon after the press.)
    unsaved = notes.get_by_role("button", name="Continue writing", disabled=False)

    def press_down(at: Locator, x: float, y: float) -> None:
        box = at.bounding_box()
        assert box
        page.mouse.move(box["x"] + x, box["y"] + y)
        page.mouse.down()

    phone.go("inbox")
    phone.go("scheduled")
    settled(page)
    waiting = page.get_by_role("listitem").filter(has_text="Rolls")
    waiting.get_by_role("button", name="Edit").click()
    text = dialog.get_by_role("textbox", name=re.compile("Text|Message"))
    # Continue at the end of the text.
    expect(text).to_be_focused()
    keys.type(" and jam")
    # Selecting text and releasing the pointer outside of the dialog doesn't close it.
    press_down(text, 30, 15)
    page.mouse.move(100, 20)
    page.mouse.up()
    expect(text).to_have_value("Rolls and jam")

    # This view's dialog isn't shown over another view.
    page.go_back()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(dialog).to_have_count(0)
    unsaved.click()
    expect(text).to_have_value("Rolls and jam")
    keys.press("Control+Enter")
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("main")).to_contain_text("Rolls and jam")
    expect(unsaved).to_have_count(0)

    # A snippet, left with Escape. Errors are shown where they can be seen and heard.
    phone.go("settings/snippets")
    page.get_by_role("button", name="New snippet").click()
    dialog.get_by_label("Title").fill("Regards")
    text.fill("So kind")
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    unsaved.click()
    expect(text).to_have_value("So kind")
    expect(dialog.get_by_label("Title")).to_have_value("Regards")
    phone.away = True
    page.route("**/saved_snippets", lambda route: route.abort())
    dialog.get_by_role("button", name="Save").click()
    trouble = page.get_by_role("alert").filter(has_text="reach the server")
    trouble.get_by_role("button", name="Close").click()
    expect(trouble).to_have_count(0)
    page.unroute("**/saved_snippets")
    phone.away = False
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("button", name="Regards").first).to_be_visible()
    keys.press("Escape")
    expect(dialog).to_have_count(0)

    # A poll: sent to its own conversation even if another one is open by then.
    phone.go("narrow/channel/general/topic/breakfast")
    phone.box.click()
    page.get_by_role("group", name="Formatting").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Poll").click()
    dialog.get_by_label("Question").fill("Jam?")
    dialog.get_by_label("Option 1").fill("Plum")
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    phone.go("narrow/channel/general/topic/supper")
    phone.box.fill("Rolls")
    unsaved.click()
    expect(dialog.get_by_label("Option 1")).to_have_value("Plum")
    dialog.get_by_role("button", name="Add to message").click()
    # Text written there stays and starts a message.
    begun = page.get_by_role("region", name="New message").get_by_role("textbox").last
    expect(begun).to_have_value("/poll Jam?\nPlum")
    expect(begun).to_be_focused()
    begun.fill("")
    keys.press("Escape")
    expect(phone.box).to_have_value("Rolls")
    phone.box.fill("")
    expect(unsaved).to_have_count(0)
    phone.box.fill("")
    phone.go("narrow/channel/general/topic/breakfast")

    # A reminder, and moving a message.
    note = dialog.get_by_role("textbox", name="Note")
    topic = dialog.get_by_role("combobox", name="Topic")
    asked: list[Route] = []
    for item, field, done in (
        ("Remind me", note, "Reminder set for"),
        ("Move…", topic, "Moved."),
    ):
        phone.message("Word 0").hover()
        phone.message("Word 0").get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name=item).click()
        field.fill("Plums")
        dialog.locator("header").get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
        unsaved.click()
        expect(field).to_have_value("Plums")
        # A dialog that's being saved isn't reported as unsaved and closes no other dialog.
        saving = re.compile(r"/api/v1/(reminders|messages/\d+)$")
        page.route(saving, lambda route: asked.append(route))
        with page.expect_request(saving):
            dialog.locator("footer").get_by_role("button").last.click()
        keys.press("Escape")
        expect(dialog).to_have_count(0)
        phone.box.click()
        tools = page.get_by_role("group", name="Formatting")
        tools.get_by_role("button", name="More").click()
        expect(page.get_by_role("menu")).to_be_visible()
        # Once used, it's on the toolbar.
        if page.get_by_role("menuitem", name="Time", exact=True).count():
            page.get_by_role("menuitem", name="Time", exact=True).click()
        else:
            keys.press("Escape")
            tools.get_by_role("button", name="Time", exact=True).click()
        asked.pop().continue_()
        expect(notes).to_contain_text(done)
        expect(dialog).to_have_count(1)
        expect(unsaved).to_have_count(0)
        keys.press("Escape")
        page.unroute(saving)


def test_focus_stays_with_the_message(sqlite_site: Site, shared_page: Open) -> None:
    begin(sqlite_site, "reading")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    ann.go("narrow/channel/general/topic/reading")
    message = ann.message("Word 0")
    for item in ("Read receipts", "Remind me"):
        message.hover()
        message.get_by_role("button", name="More").click()
        page.get_by_role("menuitem", name=item).click()
        page.get_by_role("dialog").hover(position={"x": 5, "y": 5})
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(message).to_be_focused()


def test_pending_messages_move_along_with_the_topic(sqlite_site: Site, shared_page: Open) -> None:
    town = sqlite_site
    rooms, boats = begin(town, "rooms"), begin(town, "boats")
    ann = shared_page(town.server, town.ann)
    page, notes = ann.page, ann.page.locator(".toasts")
    sending = re.compile(r"/api/v1/messages$")
    ann.away = True

    def wait_in(topic: str, text: str) -> None:
        """Write a message that can't be sent, and open another view."""
        ann.go(f"narrow/channel/general/topic/{topic}")
        expect(ann.message("Word 0")).to_be_visible()
        page.route(sending, lambda route: route.abort())
        ann.say(text)
        expect(ann.pending(text).get_by_text("Sending")).to_be_visible()
        ann.go("inbox")

    # The client follows moves that it hears about.
    wait_in("rooms", "Mine is blue")
    resolve(town, rooms, "chambers")
    ann.go("narrow/channel/general/topic/chambers")
    expect(ann.pending("Mine is blue").get_by_text("Sending")).to_be_visible()
    page.unroute(sending)
    expect(ann.pending("Mine is blue")).to_have_count(0)
    expect(ann.message("Mine is blue")).to_have_count(1)

    # A move learned about only after reconnecting is shown before the message is sent.
    wait_in("boats", "Mine is red")
    polls = re.compile(r"/api/v1/events\?")
    gone = {"result": "error", "code": "BAD_EVENT_QUEUE_ID", "msg": "It is gone."}
    ann.context.set_offline(True)
    expect(page.get_by_text("Can’t reach the server")).to_be_visible()
    resolve(town, boats, "ships")
    page.unroute(sending)
    page.route(polls, lambda route: route.fulfill(status=400, json=gone), times=1)
    ann.context.set_offline(False)
    expect(notes).to_contain_text("will be sent to #general > ships")
    notes.get_by_role("button", name="View").click()
    ann.pending("Mine is red").get_by_role("button", name="Send now").click()
    expect(ann.pending("Mine is red").get_by_role("button", name="Send now")).to_have_count(0)
    expect(page).to_have_url(re.compile("/topic/ships"))

    # A refusal is shown wherever the user is, until they decide.
    with client_of(town.ann, town.server) as client:
        ok(client.add_subscriptions([{"name": "attic"}]))
        attic = ok(client.get_stream_id("attic"))["stream_id"]
    ann.go(f"narrow/channel/{attic}/topic/dust")
    page.route(sending, lambda route: route.abort())
    ann.say("Who sweeps?")
    ann.go("inbox")
    with client_of(town.ann, town.server) as client:
        ok(client.delete_stream(attic))
    page.unroute(sending)
    expect(notes).to_contain_text("Not sent to #attic > dust")
    notes.get_by_role("button", name="Show").click()
    waiting = page.get_by_role("listitem").filter(has_text="Who sweeps?")
    expect(waiting).to_contain_text("Not sent")
    page.reload()
    waiting.get_by_role("button", name="Edit").click()
    expect(ann.box).to_have_value("Who sweeps?")
    expect(waiting.get_by_role("button", name="Try again")).to_have_count(0)
    ann.box.fill("")
    ann.away = False


def test_leaving_the_page_asks_about_an_unsaved_edit(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, asked = ann.page, []

    def stay(dialog: Dialog) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    ann.go("narrow/channel/general/topic/leaving")
    ann.say("Frist word")
    ann.message("Frist word").click()
    page.keyboard.press("e")
    edit = page.get_by_role("textbox", name="Edit message")
    expect(edit).to_have_value("Frist word")
    # Unchanged, it doesn't ask, and neither does a new message, which is a draft.
    page.reload()
    expect(ann.message("Frist word")).to_be_visible()
    ann.box.fill("A draft")
    page.reload()
    expect(ann.box).to_have_value("A draft")
    ann.box.press("Control+Enter")
    expect(ann.message("A draft")).to_be_visible()
    ann.message("Frist word").click()
    page.keyboard.press("e")
    edit.fill("First word")
    for fragment in ("narrow/channel/general/topic/leaving", "inbox"):
        page.evaluate("(fragment) => { location.hash = fragment; }", fragment)
        with page.expect_event("dialog"):
            page.evaluate("setTimeout(() => location.reload())")
    assert asked == ["beforeunload"] * 2
    page.go_back()
    expect(edit).to_have_value("First word")
    edit.press("Control+Enter")
    expect(ann.message("First word")).to_be_visible()
    page.reload()
    expect(ann.box).to_be_visible()
    assert asked == ["beforeunload"] * 2
