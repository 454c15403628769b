"""Layout: lines that fit, and content that stays in place."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import FloatRect, Locator, ViewportSize, expect

from tests.browser.conftest import Open
from tests.browser.driving import LAPTOP, PHONE, HeldAnswers, Window, settled
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.server import Server

IRIS = "iris@cafe.example"
TABLET: ViewportSize = {"width": 1024, "height": 768}
ON_PHONE = {"viewport": PHONE, "has_touch": True, "is_mobile": True}
WORDS = Path(__file__).parents[3] / "web" / "words"
WIDTHS = """(input, texts) => {
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = getComputedStyle(input).font;
    return texts.map((text) => pen.measureText(text).width - input.clientWidth);
}"""
"""How much wider than a field each text is, in pixels."""


def box(element: Locator) -> FloatRect:
    """Return an element's position and size, in pixels."""
    found = element.bounding_box()
    assert found
    return found


def say(site: Site, topic: str, text: str) -> int:
    """Send a message from ann. Return its ID."""
    sent = {"type": "channel", "to": "general", "topic": topic, "content": text}
    with client_of(site.ann, site.server) as client:
        found = ok(client.send_message(sent))["id"]
    assert isinstance(found, int)
    return found


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    return shared_page(sqlite_site.server, sqlite_site.ann)


def test_filters_stay_on_one_line_and_in_place(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, IRIS)
    page = iris.page
    iris.go("inbox")
    settled(page)
    chips = page.get_by_role("main").locator(".filter-chip")
    for size in (LAPTOP, TABLET):
        page.set_viewport_size(size)
        assert len({box(chip)["y"] for chip in chips.all()}) == 1
        assert box(chips.last)["x"] + box(chips.last)["width"] <= size["width"]
    last = box(chips.last)
    chips.first.click()
    expect(chips.first).to_have_attribute("aria-pressed", "true")
    assert box(chips.last) == last
    chips.first.click()
    page.set_viewport_size(LAPTOP)


@pytest.mark.parametrize(("role", "part"), [("member", "Tour"), ("owner", "FirstSteps")])
def test_rows_stay_in_place_when_the_introduction_loads(
    sqlite_site: Site, new_page: Open, role: str, part: str
) -> None:
    newcomer = sqlite_site.server.add(f"new{role}", role)
    say(sqlite_site, "introductions", "Hello, everyone.")
    for how in (ON_PHONE, {}):
        window = new_page(sqlite_site.server, newcomer, **how)
        page = window.page
        held = HeldAnswers(window, lambda _: True)
        page.route(f"**/assets/{part}-*.js", held.hold)
        window.go("inbox")
        row = page.locator("main [data-row]").first
        expect(row).to_be_visible()
        settled(page)
        held.wait()
        before = box(row)
        held()
        region = page.get_by_role("main").get_by_role("region").first
        expect(region).to_be_visible()
        settled(page)
        assert box(row) == before
        assert box(region)["y"] + box(region)["height"] < before["y"]
    # Other tests of this site count its people.
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        ok(client.deactivate_user_by_id(newcomer.user_id))


def test_cards_scroll_with_the_page(sqlite_site: Site, ann: Window) -> None:
    page = ann.page
    number = say(sqlite_site, "long reads", "\n".join(f"Line {n}" for n in range(60)))
    flag = {"messages": [number], "flag": "starred"}
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        ok(client.update_message_flags({**flag, "op": "add"}))
        ann.go("inbox")
        ann.go("later")
        card = page.get_by_role("main").get_by_role("listitem").filter(has_text="Line 0")
        expect(card).to_be_visible()
        # Long messages are collapsed.
        card.get_by_role("button", name="Show more").click()
        text = card.locator("> .text")
        assert text.evaluate("(one) => one.scrollHeight <= one.clientHeight")
        assert box(text)["height"] > 800
        ok(client.update_message_flags({**flag, "op": "remove"}))
    expect(card).to_be_hidden()


def test_a_to_do_list_says_what_it_is_called_without_a_title(ann: Window) -> None:
    page = ann.page
    ann.go("narrow/channel/general/topic/untitled lists")
    settled(page)
    ann.box.click()
    page.get_by_role("button", name="More", exact=True).click()
    page.get_by_role("menuitem", name="To-do list").click()
    dialog = page.get_by_role("dialog", name="To-do list")
    expect(dialog.get_by_label("Title")).to_have_attribute("placeholder", "To-do list")
    dialog.get_by_label("Task 1", exact=True).fill("Order flour")
    dialog.get_by_role("button", name="Add to message").click()
    expect(ann.box).to_have_value("/todo\nOrder flour")
    ann.box.press("Control+Enter")
    todo = page.get_by_role("group", name="To-do list")
    expect(todo.get_by_role("checkbox", name="Order flour")).to_be_visible()


def test_details_of_a_file_are_separated(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, IRIS)
    iris.go("files")
    row = iris.page.get_by_role("main").get_by_role("listitem").filter(has_text="stock.csv")
    expect(row.locator("small")).to_contain_text("· 198 bytes")
    assert " · 198 bytes" in row.locator("small").inner_text()


def test_the_search_box_has_room_for_its_placeholder(
    demo_server: Server, shared_page: Open
) -> None:
    iris = shared_page(demo_server, IRIS)
    iris.go("inbox")
    settled(iris.page)
    iris.page.keyboard.press("Control+k")
    field = iris.page.get_by_role("combobox", name="Search or jump to")
    expect(field).to_be_visible()
    words = {path.parent.name: path for path in WORDS.glob("*/shell.json")}
    texts = [json.loads(path.read_text())["search"]["jump"] for path in words.values()]
    missing = dict(zip(words, field.evaluate(WIDTHS, texts), strict=True))
    assert {language: by for language, by in missing.items() if by > 0} == {}
    iris.page.keyboard.press("Escape")


def test_settings_have_short_rows_on_phones(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, IRIS, **ON_PHONE)
    main = iris.page.get_by_role("main")
    iris.go("settings/topics")
    row = main.get_by_role("listitem").filter(has_text="house rules")
    choice = row.get_by_role("combobox")
    expect(choice).to_be_visible()
    name = box(row.get_by_role("link", name="house rules"))
    assert box(choice)["y"] < name["y"] + name["height"]
    assert box(choice)["x"] > name["x"] + name["width"]
    iris.go("settings/sessions")
    detail = main.get_by_role("listitem").locator(".detail").first
    expect(detail).to_contain_text("Signed in")
    # No line begins with the dot between details.
    assert "\N{NO-BREAK SPACE}· " in detail.inner_text()
    assert " ·" not in detail.inner_text()


def test_rows_of_settings_stay_in_place_when_saved(sqlite_site: Site, ann: Window) -> None:
    page = ann.page
    main = page.get_by_role("main")
    ann.go("channels/all")
    main.get_by_role("link", name="general", exact=True).click()
    main.get_by_role("link", name="Personal settings").click()
    switch, below = (main.get_by_role("switch", name=name) for name in ("Email", "@all"))
    expect(below).to_be_visible()
    settled(page)
    before = box(below)
    switch.click()
    expect(main.get_by_role("status").filter(has_text="Saved")).to_be_visible()
    default = main.get_by_role("button", name="Default")
    expect(default).to_be_visible()
    assert box(below) == before
    default.click()
    expect(default).to_be_hidden()
    assert box(below) == before


def test_another_page_ends_a_search_for_settings(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, IRIS, **ON_PHONE)
    page = iris.page
    main = page.get_by_role("main")
    for part in ("privacy", "topics"):
        iris.go(f"settings/{part}")
        settled(page)
    search = main.get_by_role("searchbox", name="Search settings")
    found = main.get_by_role("heading", name="found")
    search.fill("sound")
    expect(found).to_be_visible()
    page.go_back()
    expect(found).to_be_hidden()
    expect(search).to_have_value("")
    expect(main.get_by_role("switch", name="Share read receipts")).to_be_visible()
    search.fill("sound")
    expect(found).to_be_visible()
    main.get_by_role("combobox", name="Sections").select_option(label="Alert words")
    expect(main.get_by_role("textbox", name="Word or phrase")).to_be_visible()


def test_settings_are_found_with_the_keyboard(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, IRIS)
    main, keys = iris.page.get_by_role("main"), iris.page.keyboard
    iris.go("settings/profile")
    search = main.get_by_role("searchbox", name="Search settings")
    search.fill("read receipts")
    found = main.get_by_role("link", name="Share read receipts")
    expect(found).to_be_visible()
    keys.press("ArrowDown")
    expect(found).to_be_focused()
    search.focus()
    keys.press("Escape")
    expect(search).to_have_value("")
    expect(search).to_be_focused()
    search.fill("read receipts")
    expect(found).to_be_visible()
    keys.press("Enter")
    expect(main.get_by_role("switch", name="Share read receipts")).to_be_visible()
    expect(search).to_have_value("")
