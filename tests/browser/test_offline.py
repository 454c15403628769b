"""The network fails and recovers: reading and writing in the meantime."""

import re
from contextlib import suppress

from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.server import Account, Server


def say(server: Server, account: Account, topic: str, lines: list[str]) -> None:
    """Send these messages one after the other as someone, and mark them as read."""
    about = {"type": "stream", "to": "general", "topic": topic, "read_by_sender": True}
    with client_of(account, server) as client:
        for line in lines:
            ok(client.send_message({**about, "content": line}))


def heard(server: Server, account: Account, topic: str) -> list[str]:
    """The last message in the topic, as someone sees it."""
    narrow = [["channel", "general"], ["topic", topic]]
    asked = {"anchor": "newest", "num_before": 10, "num_after": 0, "narrow": narrow}
    with client_of(account, server) as client:
        found = ok(client.get_messages({**asked, "apply_markdown": False}))
    return [one["content"] for one in found["messages"]]


def test_pages_opened_while_offline_load_once_online(sqlite_site: Site, new_page: Open) -> None:
    boats = [f"Boat {number}" for number in range(30)]
    poll = "/poll Which boat?\nred\nblue"
    say(sqlite_site.server, sqlite_site.ben, "harbour", [*boats, poll])
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    ann.go("inbox")
    expect(ann.page.get_by_role("heading", name="Inbox")).to_be_visible()
    ann.away = True
    ann.page.route(re.compile("/assets/Widget-"), lambda route: route.abort())
    ann.context.set_offline(True)
    # A part of the client that isn't loaded says so, and doesn't claim that there's an update.
    ann.page.keyboard.press("?")
    expect(ann.page.get_by_text("Keyboard shortcuts couldn’t be loaded")).to_be_visible()
    ann.go("settings/profile")
    expect(ann.page.get_by_role("main").get_by_role("alert")).to_contain_text("be loaded")
    ann.context.set_offline(False)
    expect(ann.page.get_by_role("heading", name="Profile")).to_be_visible()
    expect(ann.page.get_by_text("new version")).to_have_count(0)
    # Its styles failed to load, too.
    styles = ann.page.locator("link[rel=stylesheet][href*='/Pages-']")
    assert styles.evaluate("(link) => link.sheet !== null")
    ann.context.set_offline(True)
    ann.go("narrow/channel/general/topic/harbour")
    expect(
        ann.page.get_by_role("main").get_by_role("button", name="Try again").last
    ).to_be_visible()
    ann.say("From the sea")
    expect(ann.pending("From the sea")).to_be_in_viewport()
    ann.context.set_offline(False)
    expect(ann.message("Boat 29")).to_be_visible()
    expect(ann.message("From the sea")).to_have_count(1)
    expect(ann.page.get_by_text("Sending")).to_have_count(0)
    assert heard(sqlite_site.server, sqlite_site.ben, "harbour").count("From the sea") == 1
    # The same for a part of a message that loads when opened.
    lacking = ann.page.get_by_role("article").get_by_role("alert")
    expect(lacking).to_contain_text("This couldn’t be loaded")
    ann.page.unroute(re.compile("/assets/Widget-"))
    red = ann.message("Which boat?").get_by_role("button", name="red")
    again = lacking.get_by_role("button", name="Try again")
    # It also retries by itself when online again, which removes the button even while it's pressed.
    for _ in range(3):
        expect(again.or_(red)).to_be_visible()
        if red.is_visible():
            break
        again.click()
        with suppress(AssertionError):
            expect(red).to_be_visible(timeout=10_000)
    expect(red).to_be_visible()


def test_messages_sent_while_offline_are_visible(sqlite_site: Site, new_page: Open) -> None:
    shells = [f"Shell {number}" for number in range(25)]
    say(sqlite_site.server, sqlite_site.ann, "shore", shells)
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    ann.go("narrow/channel/general/topic/shore")
    expect(ann.message("Shell 24")).to_be_visible()
    ann.away = True
    ann.context.set_offline(True)
    ann.page.get_by_role("region", name="Messages").hover()
    ann.page.mouse.wheel(0, -500)
    expect(ann.message("Shell 24")).not_to_be_in_viewport()
    ann.say("First wave\n\nand more of it")
    expect(ann.pending("First wave")).to_be_in_viewport(ratio=0.9)
    ann.say("Second wave\n\nand more of it")
    expect(ann.pending("Second wave")).to_be_in_viewport(ratio=0.9)
    expect(ann.pending("Second wave").get_by_text("Sending")).to_be_in_viewport()
    ann.context.set_offline(False)
    expect(ann.page.get_by_text("Sending")).to_have_count(0)


def test_an_overlay_that_could_not_be_loaded_is_opened_again(
    sqlite_site: Site, new_page: Open
) -> None:
    page = (ann := new_page(sqlite_site.server, sqlite_site.ann)).page
    ann.go("inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    card = re.compile("/assets/ShortcutCard-.*js")
    page.route(card, lambda route: route.abort())
    ann.away = True
    page.keyboard.press("?")
    expect(page.locator(".toasts")).to_contain_text("Keyboard shortcuts couldn’t be loaded")
    page.unroute(card)
    page.locator(".toasts").get_by_role("button", name="Try again").click()
    expect(page.get_by_text("Toggle sidebar")).to_be_visible()


def test_a_menu_that_could_not_be_loaded_is_opened_again(sqlite_site: Site, new_page: Open) -> None:
    page = (ann := new_page(sqlite_site.server, sqlite_site.ann)).page
    items = re.compile("/assets/menus-.*js")
    page.route(items, lambda route: route.abort())
    ann.away = True
    ann.go("inbox")
    menu = page.get_by_role("button", name="Actions for Inbox")
    menu.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".toasts")).to_contain_text("Actions for Inbox couldn’t be loaded")
    expect(menu).to_be_focused()
    expect(menu).to_have_attribute("aria-expanded", "false")
    page.unroute(items)
    page.locator(".toasts").get_by_role("button", name="Try again").click()
    expect(page.get_by_role("menuitem", name="Mark all as read")).to_be_visible()
    # From now on, the keyboard reaches the items immediately.
    page.keyboard.press("Escape")
    expect(menu).to_be_focused()
    page.keyboard.press("Enter")
    expect(
        page.get_by_role("menuitem").or_(page.get_by_role("menuitemradio")).first
    ).to_be_visible()
    page.keyboard.press("End")
    expect(page.get_by_role("menuitem", name="Move to")).to_be_focused()


def test_lists_wait_for_the_connection_and_load_once_online(
    sqlite_site: Site, new_page: Open
) -> None:
    say(sqlite_site.server, sqlite_site.ben, "pier", ["A boat at the pier"])
    with client_of(sqlite_site.ben, sqlite_site.server) as ben:
        general = ok(ben.get_stream_id("general"))["stream_id"]
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    page, held = ann.page, list[Route]()
    messages, members = re.compile(r"/messages\?"), re.compile(r"/streams/\d+/members")
    for address in (messages, members):
        page.route(address, lambda route: held.append(route))
    # A conversation and its channel's members get no response.
    ann.go("narrow/channel/general/topic/pier")
    waiting = page.get_by_role("main").get_by_text("Waiting to reconnect…")
    expect(page.get_by_role("main").get_by_text("Loading…")).to_have_count(1)
    ann.away = True
    ann.context.set_offline(True)
    expect(waiting).to_be_visible()
    ann.context.set_offline(False)
    expect(waiting).to_have_count(0)
    page.unroute(messages)
    for route in held:
        route.abort()
    expect(ann.message("A boat at the pier")).to_be_visible()
    # The list of people next to it, and the channel's settings.
    page.unroute(members)
    unreachable = page.get_by_text("Can’t reach the server.")
    ann.context.set_offline(True)
    expect(unreachable).to_be_visible()
    ann.context.set_offline(False)
    expect(page.get_by_role("region", name="People")).to_contain_text("In this channel")
    ann.context.set_offline(True)
    expect(unreachable).to_be_visible()
    ann.go(f"channels/{general}/general/subscribers")
    people = page.get_by_role("main").get_by_role("listitem").filter(has_text="Ben")
    expect(page.get_by_role("main").get_by_role("button", name="Try again")).to_be_visible()
    expect(people).to_have_count(0)
    ann.context.set_offline(False)
    expect(people).to_be_visible()


def test_the_client_can_start_again_after_a_failure(sqlite_site: Site, new_page: Open) -> None:
    say(sqlite_site.server, sqlite_site.ben, "repair", ["Before the failure."])
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    ann.go("narrow/channel/general/topic/repair")
    expect(ann.message("Before the failure.")).to_be_visible()
    # Such as a reverse proxy that doesn't find the server.
    page.route("**/api/v1/events?*", lambda route: route.fulfill(status=404, json={"msg": "Gone."}))
    say(sqlite_site.server, sqlite_site.ben, "repair", ["It ends the poll."])
    again = page.get_by_role("button", name="Try again")
    expect(again).to_be_visible()
    page.unroute_all(behavior="ignoreErrors")
    again.click()
    expect(ann.message("Before the failure.")).to_be_visible()
    say(sqlite_site.server, sqlite_site.ben, "repair", ["After the failure."])
    expect(ann.message("After the failure.")).to_be_visible()
    ann.link("Inbox").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    assert page.url.endswith("#inbox")
