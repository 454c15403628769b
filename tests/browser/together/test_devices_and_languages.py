"""Devices and languages: keyboard only, touch, Spanish, right-to-left, and enlarged."""

import re
from typing import Any

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, settled, tap_away
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.server import PASSWORD, Server

PLACES = ["inbox", "recent", "feed", "drafts", "settings", "organization", "channels"]
IRIS, JUNE = "iris@cafe.example", "june@cafe.example"
MOBILE: dict[str, Any] = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
ENLARGED: ViewportSize = {"width": 640, "height": 400}
"""A laptop's window at 200%."""
NARROW: ViewportSize = {"width": 320, "height": 640}
"""WCAG's width for reflow."""
WIDER = """
() => [...document.querySelectorAll("body *")].filter((one) => {
    const box = one.getBoundingClientRect();
    const seen = one.checkVisibility({visibilityProperty: true, opacityProperty: true});
    return seen && box.width && box.height && (box.right > innerWidth + 1 || box.left < -1);
}).map((one) => one.outerHTML.slice(0, 120))
"""


def test_the_client_works_with_the_keyboard_alone(sqlite_site: Site, new_page: Open) -> None:
    """From sign-in to a message, a reply, a reaction, and other views."""
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        # All messages are shown from the first unread one on: here, from the one of this test.
        ok(client.mark_all_as_read())
    ann = new_page(sqlite_site.server)
    page, keys = ann.page, ann.page.keyboard
    page.goto("/")
    expect(page.get_by_label("Email")).to_be_focused()
    keys.type(sqlite_site.ann.email)
    keys.press("Tab")
    keys.type(PASSWORD)
    keys.press("Enter")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    settled(page)

    keys.press("c")
    expect(page.get_by_role("combobox", name="Channel")).to_be_visible()
    expect(page.get_by_role("combobox", name="Channel")).to_be_focused()
    keys.type("general")
    keys.press("Enter")
    expect(page.get_by_role("combobox", name="Topic")).to_be_focused()
    keys.type("keys")
    keys.press("Tab")
    expect(ann.box).to_be_focused()
    keys.type("No pointer here")
    keys.press("Control+Enter")

    keys.press("Escape")
    keys.press("v")
    # The message is also in the topic, which stays visible until the view has changed. It can be
    # selected once it's sent and the list is loaded.
    expect(page.get_by_role("heading", name="Combined feed")).to_be_visible()
    arrived = ann.message("No pointer here")
    expect(arrived).to_be_visible()
    settled(page)
    keys.press("k")
    expect(arrived).to_be_focused()
    keys.press("+")
    expect(arrived.get_by_role("button", name="reacted with")).to_be_visible()
    keys.press("r")
    expect(ann.box).to_be_focused()
    keys.type("Nor here")
    keys.press("Control+Enter")
    expect(ann.message("Nor here")).to_be_visible()
    keys.press("Escape")
    keys.press("t")
    expect(page.get_by_role("button", name="Newest first", pressed=True)).to_be_visible()
    keys.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Keyboard shortcuts")
    keys.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_the_client_works_on_a_phone(demo_server: Server, shared_page: Open) -> None:
    phone = shared_page(demo_server, IRIS, **MOBILE)
    phone.go("inbox")
    settled(phone.page)
    phone.page.get_by_role("main").get_by_role("link", name=re.compile("^June")).tap()
    expect(phone.box).to_be_visible()
    phone.box.tap()
    phone.box.fill("From the tram")
    phone.page.get_by_role("button", name="Send", exact=True).tap()
    said = phone.message("From the tram")
    expect(said).to_be_visible()
    said.get_by_text("From the tram").tap()
    said.get_by_role("button", name=re.compile("React with")).first.tap()
    expect(said.get_by_role("button", name="reacted with")).to_be_visible()
    # A tap next to the field counts, although the bottom bar is hidden while writing.
    phone.go("inbox")
    phone.page.get_by_role("button", name=re.compile("^New message")).last.tap()
    expect(phone.page.get_by_role("combobox", name="Channel")).to_be_focused()
    phone.page.get_by_role("button", name="Direct message", exact=True).tap()
    expect(phone.page.get_by_role("combobox", name="People")).to_be_focused()


def test_a_long_press_on_a_phone_offers_message_actions(
    demo_server: Server, shared_page: Open
) -> None:
    phone = shared_page(demo_server, JUNE, **MOBILE)
    phone.go("inbox")
    settled(phone.page)
    # Phones show no keyboard shortcuts.
    tour = phone.page.get_by_role("region", name="Quick tour")
    tour.get_by_role("button", name="Next").tap()
    expect(tour).to_contain_text("Tap to open one")
    expect(tour.get_by_role("button", name="Keyboard shortcuts")).to_have_count(0)
    row = phone.page.get_by_role("main").get_by_role("link", name="big grinder")
    box = row.bounding_box()
    assert box
    at = [{"x": box["x"] + 120, "y": box["y"] + 30}]
    touch = phone.context.new_cdp_session(phone.page)
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": at})
    menu = phone.page.get_by_role("menu")
    expect(menu.get_by_role("menuitemradio", name="Mute topic")).to_be_visible()
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    tap_away(menu.get_by_role("menuitem", name="Mark as read"))
    expect(row).not_to_have_accessible_name(re.compile("unread"))

    # There's a way back while writing, too.
    row.tap()
    phone.box.tap()
    expect(phone.page.get_by_role("navigation", name="Main views")).to_be_hidden()
    phone.page.get_by_role("button", name="Back").tap()
    expect(phone.page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("how", "sizes"),
    [
        pytest.param(MOBILE, [PHONE], id="phone"),
        pytest.param({}, [ENLARGED, NARROW], id="laptop"),
    ],
)
def test_nothing_overflows_a_small_window(
    demo_server: Server, shared_page: Open, how: dict[str, Any], sizes: list[ViewportSize]
) -> None:
    small = shared_page(demo_server, IRIS, **how)
    small.page.set_viewport_size(sizes[0])
    for place in PLACES:
        small.go(place)
        for size in sizes:
            small.page.set_viewport_size(size)
            settled(small.page)
            width = small.page.evaluate("document.documentElement.scrollWidth - innerWidth")
            assert width <= 0, (place, size, small.page.evaluate(WIDER))
    small.go("narrow/search/make/has/reaction")
    poll = small.page.get_by_role("group", name="Poll: What should I make").first
    expect(poll).to_be_visible()
    for size in sizes:
        small.page.set_viewport_size(size)
        assert poll.evaluate("(one) => one.scrollWidth <= one.clientWidth")


def test_the_spanish_client_has_no_english_texts(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, IRIS)
    page = iris.page
    cookies = {one["name"]: one["value"] for one in iris.context.cookies()}

    def speak(language: str) -> None:
        changed = iris.context.request.patch(
            f"{demo_server.url}/api/v1/settings",
            form={"default_language": language},
            headers={"X-CSRF-Token": cookies["tertulia_csrf"]},
        )
        assert changed.ok, changed.text()

    # From the start of the client.
    page.goto("about:blank")
    speak("es")
    iris.go("inbox")
    expect(page.get_by_role("heading", name="Bandeja de entrada")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "es")
    for place in ["settings/account", "settings/preferences", "settings/notifications"]:
        iris.go(place)
        settled(page)
        text = page.get_by_role("main").inner_text()
        words = set(re.findall(r"[A-Za-z]+", text.lower()))
        assert words
        assert not words & {"the", "save", "settings", "you", "when", "delete", "who"}, place
    speak("en")
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_the_client_works_from_right_to_left(demo_server: Server, shared_page: Open) -> None:
    """No right-to-left language is available yet, so the test sets the direction."""
    iris = shared_page(demo_server, IRIS)
    for place in PLACES:
        iris.go(place)
        settled(iris.page)
        iris.page.evaluate("document.documentElement.dir = 'rtl'")
        side = iris.page.get_by_role("navigation").first.bounding_box()
        main = iris.page.get_by_role("main").bounding_box()
        assert side
        assert main
        assert side["x"] >= main["x"] + main["width"] - 1, place
        # A channel's description is below its name, whatever its script.
        about = iris.page.locator("main .about .content")
        if place == "channels":
            expect(about.first).to_be_visible()
        starts = about.evaluate_all("all => all.map((one) => getComputedStyle(one).textAlign)")
        assert set(starts) == ({"right"} if place == "channels" else set()), place
        assert iris.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0, place
    # Arrow keys aren't mirrored.
    iris.page.keyboard.press("?")
    both = iris.page.get_by_role("dialog").locator("dd").filter(has_text="Ctrl").first
    expect(both).to_be_visible()
    keys = both.locator("kbd").evaluate_all(
        """all => all.map((one) => {
            const { direction, unicodeBidi } = getComputedStyle(one);
            return [one.getBoundingClientRect().left, direction, unicodeBidi];
        })"""
    )
    assert keys == sorted(keys)
    assert {tuple(how) for _, *how in keys} == {("ltr", "isolate")}
    iris.page.keyboard.press("Escape")
    iris.page.evaluate("document.documentElement.dir = 'ltr'")


def test_reduced_motion_disables_animations(demo_server: Server, shared_page: Open) -> None:
    still = shared_page(demo_server, IRIS)
    still.page.emulate_media(reduced_motion="reduce")
    still.go("inbox")
    settled(still.page)
    still.page.keyboard.press("Control+k")
    expect(still.page.get_by_role("dialog")).to_be_visible()
    moving = still.page.evaluate(
        """document.getAnimations().filter((one) => {
            const {duration, iterations} = one.effect.getTiming();
            return duration > 100 || iterations === Infinity;
        }).length"""
    )
    assert moving == 0
    still.page.emulate_media(reduced_motion="no-preference")
