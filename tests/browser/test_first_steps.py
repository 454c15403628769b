"""Common mistakes of new users: bulk actions can be undone, lifting a finger does nothing, and
messages are true."""

import re

import httpx
from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, SHOWN, Window, settled, sign_in_resident, tap_away
from tests.e2e.conftest import Site
from tests.e2e.server import Account, Server


def api(server: Server, account: Account, method: str, path: str, **form: str) -> None:
    """Send a request as someone."""
    auth = (account.email, account.api_key)
    httpx.request(method, f"{server.url}/api/v1{path}", auth=auth, data=form).raise_for_status()


def unread(window: Window) -> int:
    """The unread count next to the inbox in the sidebar."""
    found = re.search(r"(\d+) unread", window.link("Inbox").inner_text().replace("\n", " "))
    return int(found[1]) if found else 0


def page_link(window: Window, page: str, name: str) -> str:
    """The target of a link on a page."""
    window.go(page)
    main = window.page.get_by_role("main")
    return main.get_by_role("link", name=name).first.get_attribute("href") or ""


def test_bulk_actions_can_be_undone(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, "iris@cafe.example")
    iris.go("inbox")
    settled(iris.page)
    main, toast = iris.page.get_by_role("main"), iris.page.locator(".toasts")
    before = unread(iris)
    assert before > 5
    iris.page.get_by_role("button", name="Mark all as read").click()
    expect(toast).to_contain_text(f"Marked {before} messages as read")
    expect(iris.link("Inbox")).not_to_contain_text("unread")
    iris.undo(f"Marked {before} messages as read")
    expect(iris.link("Inbox")).to_contain_text(f"{before} unread")

    iris.go("organization/users")
    role = main.get_by_role("combobox", name="Role of Marco Dias")
    was = role.input_value()
    role.select_option(label="Moderator")
    expect(toast).to_contain_text("Marco Dias: Moderator")
    # Settings pages have no list of people.
    expect(iris.page.locator("#people")).to_be_hidden()
    iris.undo("Marco Dias: Moderator")
    expect(role).to_have_value(was)

    # Linked pages, and an address without a page.
    iris.page.locator("#own-menu").click()
    iris.page.get_by_role("menuitem", name="Groups").click()
    expect(main.get_by_role("heading", name="All groups")).to_be_visible()
    iris.go("narrow/channel/999-nowhere")
    expect(main.get_by_role("heading", name="Page not found")).to_be_visible()


def test_hidden_items_are_announced_and_restored_and_counts_match(
    demo_server: Server, shared_page: Open
) -> None:
    iris = shared_page(demo_server, "iris@cafe.example")
    page, keys = iris.page, iris.page.keyboard
    main = page.get_by_role("main")

    def choose(channel: str, item: str) -> None:
        iris.link(channel).first.hover()
        page.get_by_role("button", name=f"Actions for {channel}").click()
        page.get_by_role("menuitem", name=item).click()

    iris.go("inbox")
    settled(page)
    kitchen = (iris.link("kitchen").first.get_attribute("href") or "")[1:]
    iris.go(f"{kitchen}/topic/staff.20lunch")
    settled(page)
    main.focus()
    keys.press("M")
    iris.undo("staff lunch: Muted")
    hears = main.get_by_role("button", name="Topic notifications")
    hears.click()
    expect(page.get_by_role("menuitemradio", name="Muted", exact=True)).not_to_be_checked()
    keys.press("Escape")
    # A reader who is also writing in the topic moves along with it.
    iris.box.fill("With dessert")
    main.get_by_role("button", name="Mark as resolved").click()
    expect(page).to_have_url(re.compile("E2.9C.94"))
    expect(iris.message("demand a recount")).to_be_visible()
    expect(iris.box).to_have_value("With dessert")
    iris.undo("staff lunch: Resolved")
    expect(main.get_by_role("button", name="Mark as resolved")).to_be_visible()
    expect(iris.message("demand a recount")).to_be_visible()
    expect(iris.message("demand a recount").get_by_text("moved")).to_have_count(0)
    expect(iris.box).to_have_value("With dessert")
    iris.box.fill("")
    # Links with the topic's old name lead there, and so does a link to one of its messages.
    one = iris.message("demand a recount").get_attribute("data-message")
    for link in ("", f"/near/{one}"):
        iris.go("drafts")
        iris.go(f"{kitchen}/topic/.E2.9C.94.20staff.20lunch{link}")
        expect(iris.message("demand a recount")).to_be_visible()
        expect(page).to_have_url(re.compile(f"/staff.20lunch{link}$"))

    # The same applies to topics.
    count = iris.link("deliveries").first
    expect(count).to_contain_text("2 unread")
    iris.go("inbox")
    row = main.locator("[data-row]").filter(has_text="beans").first
    row.click(button="right")
    page.get_by_role("menuitem", name="Mark as read").click()
    expect(count).not_to_contain_text("unread")
    iris.undo("Marked 2 messages as read")
    expect(count).to_contain_text("2 unread")

    choose("deliveries", "Mute channel")
    iris.undo("#deliveries: Muted")
    # You can't rejoin a private channel yourself, so the client asks for confirmation.
    choose("numbers", "Unsubscribe")
    dialog = page.get_by_role("dialog", name="Unsubscribe from numbers")
    expect(dialog).to_contain_text("only a subscriber can add you again")
    dialog.get_by_role("button", name="Cancel").click()
    expect(iris.link("numbers").first).to_be_visible()

    # People, too: remove from a channel, remove from a group, and mute.
    group = re.search(r"#(groups/\d+/)", page_link(iris, "groups/all", "bakers"))
    assert group
    number = re.search(r"channel/(\d+)", kitchen)
    assert number
    for place in (f"channels/{number[1]}/kitchen/subscribers", f"{group[1]}bakers/members"):
        iris.go(place)
        out = main.get_by_role("button", name=re.compile("^Remove (?!Iris)")).first
        name = (out.get_attribute("aria-label") or "").removeprefix("Remove ")
        out = main.get_by_role("button", name=f"Remove {name}", exact=True)
        out.click()
        expect(out).to_have_count(0)
        iris.undo(f"Removed {name}")
        expect(out).to_be_visible()
    iris.go("inbox")
    page.locator("#people li").filter(has_text="Marco Dias").click(button="right")
    card = page.get_by_role("dialog", name="User card")
    card.get_by_role("button", name="Mute user").click()
    expect(card.get_by_role("button", name="Unmute user")).to_be_visible()
    iris.undo("Marco Dias: Muted")
    page.locator("#people li").filter(has_text="Marco Dias").click(button="right")
    expect(card.get_by_role("button", name="Mute user")).to_be_visible()
    # About who was active here.
    iris.go("drafts")
    expect(card).to_have_count(0)

    # A scrollable list takes no focus: after Tab, you type in the next field.
    main.focus()
    keys.press("c")
    expect(page.get_by_role("combobox", name="Channel")).to_be_focused()
    expect(page.get_by_role("option").nth(8)).to_be_attached()
    keys.press("Tab")
    expect(page.get_by_role("combobox", name="Topic")).to_be_focused()
    # A channel's header and its list of people show the same count, including bots.
    page.set_viewport_size({"width": 1440, "height": 900})
    iris.go((iris.link("deliveries").get_attribute("href") or "")[1:])
    counted = main.locator("header .count").inner_text().split()[0]
    expect(page.locator("#people h2").first).to_contain_text(counted)


def test_skipped_messages_are_marked_as_read_and_settings_apply(
    sqlite_site: Site, shared_page: Open
) -> None:
    server = sqlite_site.server
    ann = shared_page(server, sqlite_site.ann)
    where = {"type": "stream", "to": '"general"', "topic": "long"}
    for number in range(40):
        api(server, sqlite_site.ben, "POST", "/messages", **where, content=f"{number}\n" * 8)
    ann.go("inbox")
    expect(ann.link("Inbox")).to_contain_text("40 unread")
    ann.go("narrow/channel/general/topic/long")
    settled(ann.page)
    ann.page.get_by_role("region", name="Messages").focus()
    ann.page.keyboard.press("End")
    expect(ann.link("Inbox")).not_to_contain_text("unread")
    ann.page.locator(".toasts").get_by_role("button", name="Undo").click()
    expect(ann.link("Inbox")).to_contain_text("unread")

    body = ann.page.locator("article .body").last
    ann.page.set_viewport_size({"width": 1900, "height": 900})
    narrow = body.evaluate("one => one.offsetWidth")
    api(server, sqlite_site.ann, "PATCH", "/settings", fluid_layout_width="true")
    expect(ann.page.locator("html")).to_have_attribute("data-width", "full")
    assert body.evaluate("one => one.offsetWidth") > narrow * 1.3
    ann.go("settings/preferences")
    expect(ann.page.get_by_label("People list style")).to_be_visible()
    emoji = ann.page.get_by_label("Emoji", exact=True)
    expect(emoji.filter(visible=True)).to_have_count(0)


def test_a_long_press_only_opens_a_sheet(demo_server: Server, new_page: Open) -> None:
    phone = new_page(demo_server, viewport=PHONE, has_touch=True, is_mobile=True)
    sign_in_resident(phone.context, demo_server, "iris@cafe.example")
    phone.go("narrow/is/starred")
    settled(phone.page)
    article = phone.page.locator(f"article[data-message]{SHOWN}").last
    article.scroll_into_view_if_needed()
    box = article.locator(".body").bounding_box()
    assert box
    at = [{"x": box["x"] + 40, "y": box["y"] + 12}]
    touch = phone.context.new_cdp_session(phone.page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": at})
    menu = phone.page.get_by_role("menu")
    expect(menu).to_be_visible()
    where = phone.page.url
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    # The release would act immediately; the clock shows that nothing else happened.
    phone.page.wait_for_timeout(500)
    expect(menu).to_be_visible()
    assert phone.page.url == where
    foot = menu.bounding_box()
    assert foot
    assert foot["y"] + foot["height"] >= PHONE["height"] - 40
    assert foot["width"] >= PHONE["width"] - 20
    expect(menu.locator("kbd").first).to_be_hidden()
    tap_away(phone.page.get_by_role("button", name="Close"))
    expect(menu).to_be_hidden()

    # The system's back gesture (here Escape) closes it, and it offers everything the mouse does.
    article.get_by_role("button", name="More").tap()
    expect(menu).to_be_visible()
    phone.page.evaluate("document.activeElement.blur()")
    phone.page.keyboard.press("Escape")
    expect(menu).to_be_hidden()
    assert phone.page.url == where
    article.get_by_role("button", name="More").tap()
    menu.get_by_role("menuitem", name="Add reaction").tap()
    search = phone.page.get_by_role("combobox", name="Search emoji")
    expect(search).to_be_visible()
    expect(search).not_to_be_focused()


def test_without_email_an_invitation_is_a_link_to_copy(
    sqlite_site: Site, shared_page: Open, new_page: Open
) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("organization/invitations")
    ann.page.get_by_role("button", name="Email invitation").click()
    dialog = ann.page.get_by_role("dialog")
    dialog.get_by_label("Addresses").fill("zoe@example.com")
    dialog.get_by_role("button", name="Send invitations").click()
    expect(dialog).to_contain_text("No emails were sent")
    link = dialog.get_by_label("zoe@example.com").first.input_value()
    zoe = new_page(sqlite_site.server)
    zoe.page.goto(link)
    expect(zoe.page.get_by_label("Email")).to_have_value("zoe@example.com")


def test_the_frame_is_visible_before_the_client_loads(sqlite_site: Site, new_page: Open) -> None:
    """Hold back the script and styles: the frame doesn't wait for them."""
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    held: list[Route] = []
    released = False

    def hold(route: Route) -> None:
        if released:
            route.continue_()
        else:
            held.append(route)

    ann.page.route(re.compile(r"/app/assets/(?!opening-)"), hold)
    ann.page.goto("/", wait_until="commit")
    frame = ann.page.locator("#opening")
    expect(frame).to_be_visible()
    side = frame.locator(".side").bounding_box()
    assert side
    assert side["width"] == 280
    released = True
    for route in held:
        route.continue_()
    expect(ann.page.get_by_role("heading", name="Inbox")).to_be_visible()
    expect(frame).to_have_count(0)


def test_the_send_shortcut_is_asked_for_once(sqlite_site: Site, new_page: Open) -> None:
    ben = new_page(sqlite_site.server, sqlite_site.ben)
    ben.go("narrow/channel/general/topic/keys")
    question = ben.page.get_by_role("group", name="Which key should send messages?")
    ben.box.fill("by this key")
    ben.box.press("Shift+Enter")
    expect(question).to_have_count(0)
    ben.box.press("Enter")
    question.get_by_role("button", name="Press Enter to send", exact=True).click()
    expect(question).to_have_count(0)
    expect(ben.box).to_be_focused()
    ben.box.press("Enter")
    expect(ben.message("by this key")).to_be_visible()

    api(sqlite_site.server, sqlite_site.ben, "PATCH", "/settings", enter_sends="false")
    ben.page.reload()
    ben.box.press("Enter")
    expect(question).to_have_count(0)
