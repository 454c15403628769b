"""A channel's pinned messages, context menus, and GIFs."""

import re

from playwright.sync_api import Locator, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, Window
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

TOPIC = "narrow/channel/general/topic/house"
PIXEL = bytes.fromhex(
    "47494638396101000100800000ff8800ffffff21f90401000000002c00000000010001000002024401003b"
)
"""An image of one pixel."""


def pins(window: Window) -> Locator:
    return window.page.get_by_role("region", name="Pinned messages")


def move_to(message: Locator, x: float, y: float) -> tuple[float, float]:
    """Move the pointer over the message, although a menu may be open. Return where it is."""
    box = message.bounding_box()
    assert box
    at = box["x"] + x, box["y"] + y
    message.page.mouse.move(*at)
    return at


def right_click(message: Locator, x: float, y: float) -> float:
    """Press the right button over the message. Return the pointer's distance from the window's
    left."""
    at = move_to(message, x, y)
    message.page.mouse.click(*at, button="right")
    return at[0]


def ben_pins(site: Site, message_id: int, *, method: str) -> None:
    with client_of(site.ben, site.server) as client:
        ok(client.call_endpoint(f"messages/{message_id}/pin", method=method))


def ben_resolves(site: Site, message_id: int) -> None:
    with client_of(site.ben, site.server) as client:
        ok(client.update_message({"message_id": message_id, "topic": "✔ house"}))


def test_pinned_messages_are_visible_to_all(sqlite_site: Site, shared_page: Open) -> None:
    town = sqlite_site
    ids = {}
    with client_of(town.ann, town.server) as client:
        for text in ("Wifi: guest", "Keys: at June's", "Bins: on Monday"):
            sent = {"type": "stream", "to": "general", "topic": "house", "content": text}
            ids[text] = ok(client.send_message(sent))["id"]
    ann = shared_page(town.server, town.ann)
    ben = shared_page(town.server, town.ben, viewport=PHONE, has_touch=True, is_mobile=True)
    for window in (ann, ben):
        window.go(TOPIC)
        expect(window.message("Bins")).to_be_visible()
    expect(pins(ann)).to_have_count(0)

    # The message's menu, by button and by right click at the pointer.
    page, menu = ann.page, ann.page.get_by_role("menu")
    ann.message("Wifi").hover()
    ann.message("Wifi").get_by_role("button", name="More").click()
    menu.get_by_role("menuitem", name="Pin for everyone").click()
    for window in (ann, ben):
        expect(pins(window)).to_contain_text("1 pinned")
        expect(pins(window)).to_contain_text("Wifi: guest")
    keys = ann.message("Keys").locator(".rendered, .body").first
    where = right_click(keys, 120, 10)
    expect(menu).to_be_visible()
    box = menu.bounding_box()
    assert box
    assert abs(box["x"] - where) < 30
    # With the pointer over another message, its menu opens in place of this one.
    move_to(ann.message("Wifi"), 8, 8)
    expect(menu.get_by_role("menuitem", name="Pin for everyone")).to_be_visible()
    right_click(ann.message("Wifi"), 8, 8)
    expect(menu.get_by_role("menuitem", name="Unpin")).to_be_visible()
    # The menu still works if someone else is faster, and says what happened.
    ben_pins(town, ids["Wifi: guest"], method="DELETE")
    expect(pins(ann)).to_have_count(0)
    menu.get_by_role("menuitem", name="Unpin").click()
    expect(page.get_by_text("This message was already unpinned")).to_be_visible()
    expect(pins(ann)).to_have_count(0)
    right_click(ann.message("Wifi"), 8, 8)
    expect(menu.get_by_role("menuitem", name="Pin for everyone")).to_be_enabled()
    ben_pins(town, ids["Wifi: guest"], method="POST")
    expect(pins(ann)).to_contain_text("1 pinned")
    menu.get_by_role("menuitem", name="Pin for everyone").click()
    expect(page.get_by_text("This message was already pinned")).to_be_visible()
    expect(pins(ann)).to_contain_text("1 pinned")
    right_click(keys, 120, 10)
    menu.get_by_role("menuitem", name="Pin for everyone").click()
    expect(pins(ben)).to_contain_text("2 pinned")
    expect(pins(ben)).to_contain_text("Keys: at June's")
    expect(ann.message("Keys").get_by_label("Pinned")).to_be_visible()

    # Go to a pinned message by keyboard, and again after going elsewhere.
    pins(ann).get_by_role("button", name="2 pinned").click()
    listed = page.get_by_role("dialog", name="Pinned messages")
    expect(listed.get_by_role("button", name=re.compile("^Keys|June"))).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(listed).to_have_count(0)
    expect(page).to_have_url(re.compile(f"/near/{ids['Wifi: guest']}$"))

    # A pin follows its message.
    with client_of(town.ann, town.server) as client:
        ok(client.update_message({"message_id": ids["Keys: at June's"], "content": "Keys: lost"}))
        expect(pins(ben)).to_contain_text("Keys: lost")
        ok(client.delete_message(ids["Keys: at June's"]))
        for window in (ann, ben):
            expect(pins(window)).to_contain_text("1 pinned")
        # A message from a channel whose pins aren't loaded.
        ok(client.add_subscriptions([{"name": "loft"}]))
        sent = {"type": "stream", "to": "loft", "topic": "old", "content": "Ladder: in the loft"}
        moved = ok(client.send_message(sent))["id"]
        ok(client.call_endpoint(f"messages/{moved}/pin", method="POST"))
        general = ok(client.get_stream_id("general"))["stream_id"]
        to = {"message_id": moved, "stream_id": general, "topic": "house"}
        ok(client.update_message(to))
    for window in (ann, ben):
        expect(pins(window)).to_contain_text("2 pinned")
    pins(ben).get_by_role("button", name="2 pinned").tap()
    unpin = ben.page.get_by_role("dialog").get_by_role("button", name="Unpin")
    for left in (1, 0):
        unpin.first.tap()
        expect(unpin).to_have_count(left)
    for window in (ann, ben):
        expect(pins(window)).to_have_count(0)

    # The same for topics: resolved and reopened as offered.
    page.get_by_role("button", name="Topic actions").click()
    expect(menu.get_by_role("menuitem", name="Mark as resolved")).to_be_visible()
    ben_resolves(town, ids["Wifi: guest"])
    expect(page.get_by_role("main").get_by_text("Resolved")).to_be_visible()
    menu.get_by_role("menuitem", name="Mark as resolved").click()
    expect(menu).to_have_count(0)
    expect(page.get_by_role("button", name="Mark as unresolved")).to_be_visible()
    page.get_by_role("button", name="Mark as unresolved").click()
    expect(page.get_by_role("button", name="Mark as resolved")).to_be_visible()


def test_right_click_opens_the_item_s_menu(sqlite_site: Site, shared_page: Open) -> None:
    town = sqlite_site
    ann = shared_page(town.server, town.ann)
    page, menu = ann.page, ann.page.get_by_role("menu")
    ann.go("narrow/channel/general/topic/menus")
    ann.say("See https://example.com/ for more")
    expect(ann.message("See").get_by_role("link", name="example.com")).to_be_visible()

    def opens(what: Locator, item: str) -> None:
        what.click(button="right")
        expect(menu.get_by_role("menuitem", name=item).first).to_be_visible()
        page.keyboard.press("Escape")
        expect(menu).to_have_count(0)

    opens(ann.link("general"), "Mute channel")
    opens(ann.link("menus"), "Copy link")
    opens(ann.message("See").locator(".body"), "Copy text")
    page.locator("#people").get_by_role("link", name=re.compile(r"\bBen\b")).click(button="right")
    expect(page.get_by_role("dialog", name="User card")).to_contain_text("ben@")
    page.keyboard.press("Escape")

    # An open menu keeps its width when the window becomes narrower.
    ann.message("See").locator(".body").click(button="right")
    wide = menu.evaluate("(one) => one.getBoundingClientRect().width")
    page.set_viewport_size({"width": 800, "height": 720})
    assert menu.evaluate("(one) => one.getBoundingClientRect().width") == wide
    page.keyboard.press("Escape")
    page.set_viewport_size({"width": 1280, "height": 720})

    # The browser's own menu: ours doesn't open and doesn't block it.
    page.evaluate(
        """() => {
            window.left = [];
            window.addEventListener("contextmenu", (event) => {
                window.left.push(event.defaultPrevented);
                event.preventDefault();
            });
        }"""
    )
    ann.message("See").get_by_role("link", name="example.com").click(button="right")
    ann.box.click(button="right")
    ann.message("See").locator(".body").click(button="right", modifiers=["Shift"])
    ann.message("See").locator("p").select_text()
    ann.message("See").locator("p").click(button="right", position={"x": 8, "y": 8})
    assert page.evaluate("window.left") == [False] * 4
    expect(menu).to_have_count(0)


def test_a_selected_message_s_actions_are_there_for_the_next_press(
    sqlite_site: Site, shared_page: Open
) -> None:
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        sent = {"type": "stream", "to": "general", "topic": "soon", "content": "Soon"}
        ok(client.send_message(sent))
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    ann.go("narrow/channel/general/topic/soon")
    message = ann.message("Soon")
    expect(message).to_be_visible()
    page.get_by_role("main").focus()
    # The bar comes after the paint, which never happens here.
    page.evaluate("window.requestAnimationFrame = () => 0")
    page.keyboard.press("k")
    expect(message).to_be_focused()
    expect(message.get_by_role("toolbar")).to_have_count(0)
    page.keyboard.press("Tab")
    expect(message.get_by_role("toolbar")).to_be_visible()
    page.reload()


def test_a_gif_is_searched_and_sent(sqlite_site: Site, shared_page: Open) -> None:
    """With the test's own service: the page contacts no other host."""
    town = sqlite_site
    ann = shared_page(town.server, town.ann)
    page = ann.page
    asked: list[str] = []
    down = True

    def answer(route: Route) -> None:
        asked.append(route.request.url)
        if "giphy.com/media/" in route.request.url:
            route.fulfill(body=PIXEL, content_type="image/gif")
        elif down:
            route.fulfill(status=429)
        else:
            url = f"https://media2.giphy.com/media/{len(asked)}"
            image = {"width": "200", "height": "100"}
            found = [
                {
                    "id": name,
                    "title": f"{name} tea",
                    "images": {
                        "fixed_width": {"url": f"{url}/{name}-s.gif", **image},
                        "downsized": {"url": f"{url}/{name}.gif", **image},
                    },
                }
                for name in ("hot", "cold")
            ]
            route.fulfill(json={"data": found}, headers={"Access-Control-Allow-Origin": "*"})

    ann.context.route("https://*.giphy.com/**", answer)
    ann.go("narrow/channel/general/topic/tea")
    expect(ann.box).to_be_visible()
    assert asked == []
    ann.box.click()
    tools = page.get_by_role("group", name="Formatting")
    tools.get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="GIF").click()
    # The item under the pointer is selected, whenever it appears.
    page.mouse.move(0, 0)
    picker = page.get_by_role("dialog", name="GIF")
    expect(picker.get_by_role("alert")).to_contain_text("GIPHY isn’t responding")
    down = False
    field = picker.get_by_role("combobox")
    expect(field).to_be_focused()
    # Previous results don't belong to the new search: Enter searches and doesn't pick the first of
    # them. (Press it immediately: after a pause, the search starts by itself.)
    field.fill("cake")
    expect(picker.get_by_role("option", name="hot tea")).to_be_visible()
    with page.expect_request(re.compile("q=tea")) as search:
        field.evaluate(
            """(field) => {
                field.value = "tea";
                field.dispatchEvent(new Event("input", { bubbles: true }));
                field.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
            }"""
        )
    expect(picker.locator("[aria-busy=false]")).to_be_visible()
    expect(picker).to_contain_text("Powered by GIPHY")
    given = set(search.value.url.partition("?")[2].split("&"))
    assert "/v1/gifs/search?" in search.value.url
    assert {"api_key=key-1", "rating=g", "q=tea"} <= given
    field.press("ArrowDown")
    expect(picker.get_by_role("option", name="hot tea")).to_have_attribute("aria-selected", "false")
    field.press("Enter")
    expect(picker).to_have_count(0)
    expect(ann.box).to_have_value(
        re.compile(r"^\[(hot|cold) tea\]\(https://media2\.giphy\.com/media/\d+/(hot|cold)\.gif\) $")
    )
    expect(ann.box).to_be_focused()
    ann.box.fill("")
    ann.troubles[:] = [one for one in ann.troubles if "giphy.com" not in one and "429" not in one]
