"""Searches are refined above their results, and the switcher finds everything by name."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import settled
from tests.e2e.conftest import Site
from tests.e2e.server import Server


def test_a_search_is_refined_above_its_results(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, "iris@cafe.example")
    iris.go("inbox")
    settled(iris.page)
    keys, page = iris.page.keyboard, iris.page
    keys.press("/")
    page.get_by_role("combobox", name="Search or jump to").fill("oven")
    keys.press("Enter")
    head = page.get_by_role("search")
    expect(head.get_by_role("status")).to_have_text(re.compile(r"^\d+ messages$"))
    every = int(head.get_by_role("status").inner_text().split()[0])
    # A match in a topic's name is highlighted above the topic's messages.
    topics = head.get_by_role("navigation", name="Topics")
    expect(topics.get_by_role("link", name="oven is too keen #kitchen")).to_be_visible()
    expect(page.locator("h2.place mark").first).to_have_text("oven")

    head.get_by_role("button", name="From").click()
    box = page.get_by_role("combobox", name="Search or jump to")
    expect(box).to_have_value("oven sender:")
    keys.type("june")
    keys.press("Enter")
    expect(page).to_have_url(re.compile("sender/"))
    chip = head.get_by_role("button", name="Remove filter “from June Okafor”")
    expect(chip).to_be_visible()
    expect(head.get_by_role("status")).not_to_have_text(f"{every} messages")
    head.get_by_role("button", name="Filters").click()
    page.get_by_role("menuitemradio", name="Has image").click()
    expect(page).to_have_url(re.compile("has/image/search/oven"))
    chip.click()
    expect(chip).to_be_hidden()
    head.get_by_role("button", name="Edit search").click()
    expect(box).to_have_value("has:image oven")
    box.fill("")
    # Earlier searches are suggested.
    expect(page.get_by_role("option").first).to_contain_text("oven")
    keys.press("Escape")
    head.get_by_label("After date").fill("2026-01-01")
    expect(page).to_have_url(re.compile(r"near/\d+|has/image/search/oven$"))


def test_the_switcher_navigates_acts_and_changes_settings(
    sqlite_site: Site, shared_page: Open
) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, keys = ann.page, ann.page.keyboard
    box = page.get_by_role("combobox", name="Search or jump to")
    option = page.get_by_role("option")
    for topic in ("first", "second"):
        ann.go(f"narrow/channel/general/topic/{topic}")
        expect(page.get_by_role("textbox", name=f"Message #general > {topic}")).to_be_visible()
    page.get_by_role("main").focus()
    # The previous view comes first: Enter returns to it.
    keys.press("Control+k")
    expect(option.first).to_contain_text(re.compile(r"first\s+#general"))
    keys.press("Enter")
    expect(page).to_have_url(re.compile("topic/first"))

    keys.press("Control+k")
    box.fill("theme: dark")
    keys.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-scheme", "dark")
    page.locator("#own-menu").click()
    page.get_by_role("menuitemradio", name="Theme: match system").click()
    expect(page.locator("html")).to_have_attribute("data-scheme", "")

    keys.press("Control+k")
    box.fill("notif")
    option.filter(has_text="Notifications").first.click()
    expect(page).to_have_url(re.compile("#settings/notifications$"))

    keys.press("Control+k")
    box.fill("line spacing")
    option.filter(has_text="Settings").first.click()
    expect(page).to_have_url(re.compile("#(settings|organization)/"))

    page.get_by_role("navigation", name="Views").get_by_role("button", name="Invite people").click()
    dialog = page.get_by_role("dialog", name="Email invitation")
    expect(dialog).to_be_visible()
    keys.press("Escape")
    expect(dialog).to_have_count(0)


def test_the_search_box_keeps_the_focus_while_it_covers_the_page(
    sqlite_site: Site, shared_page: Open
) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, keys = ann.page, ann.page.keyboard
    ann.go("narrow/channel/general/topic/first")
    text = page.get_by_role("textbox", name="Message #general > first")
    box = page.get_by_role("combobox", name="Search or jump to")
    close = page.get_by_role("dialog").get_by_role("button", name="Close")
    text.fill("one two")
    text.press("ArrowLeft")
    keys.press("Control+k")
    expect(box).to_be_focused()
    # Tab stays within, in both directions.
    keys.press("Tab")
    expect(close).to_be_focused()
    keys.press("Tab")
    expect(box).to_be_focused()
    keys.press("Shift+Tab")
    expect(close).to_be_focused()
    # Nothing below takes the focus or a click.
    text.evaluate("(field) => field.focus()")
    expect(box).to_be_focused()
    at = text.bounding_box()
    assert at
    page.mouse.click(at["x"] + 5, at["y"] + 5)
    expect(box).to_have_count(0)
    # The caret is where it was.
    expect(text).to_be_focused()
    keys.type("-")
    expect(text).to_have_value("one tw-o")
    # The last suggestion is selected and visible, even if the key is pressed right after opening.
    keys.press("Control+k")
    keys.press("ArrowUp")
    last = page.get_by_role("option").last
    expect(last).to_have_attribute("aria-selected", "true")
    expect(last).to_be_in_viewport()
    keys.press("Escape")
    expect(box).to_have_count(0)
    expect(text).to_be_focused()
    text.fill("")


def test_the_search_box_starts_empty_each_time(sqlite_site: Site, shared_page: Open) -> None:
    """It stays rendered while it's closed."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, keys = ann.page, ann.page.keyboard
    box = page.get_by_role("combobox", name="Search or jump to")
    option = page.get_by_role("option")
    ann.go("narrow/channel/general/topic/first")
    text = page.get_by_role("textbox", name="Message #general > first")
    text.focus()
    keys.press("Control+k")
    keys.type("theme: d")
    expect(option.first).to_contain_text("Dark")
    keys.press("Escape")
    # Closed, nothing of it is found, neither by the keyboard nor by assistive technology.
    expect(box).to_have_count(0)
    expect(option).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    kept = page.locator("dialog:not([open]) input")
    expect(kept).to_be_hidden()
    kept.evaluate("(field) => field.focus()")
    expect(text).to_be_focused()
    # Neither text nor mode are left, and the places are those of now.
    ann.go("narrow/channel/general/topic/second")
    expect(page.get_by_role("textbox", name="Message #general > second")).to_be_visible()
    page.get_by_role("main").focus()
    keys.press("Control+k")
    expect(box).to_have_value("")
    expect(option.first).to_contain_text(re.compile(r"first\s+#general"))
    keys.press("Escape")
    page.get_by_role("button", name="New direct message").click()
    expect(box).to_be_focused()
    expect(option.first).to_contain_text("Direct message")
    keys.press("Escape")
    expect(box).to_have_count(0)


def test_options_are_chosen_with_the_keyboard(demo_server: Server, shared_page: Open) -> None:
    """In a dialog, people, groups, and channels are chosen from a list above it. Escape closes the
    list before the dialog."""
    iris = shared_page(demo_server, "iris@cafe.example")
    iris.go("organization/invitations")
    settled(iris.page)
    iris.page.get_by_role("main").get_by_role("button", name=re.compile("link")).click()
    dialog = iris.page.get_by_role("dialog")
    field = dialog.get_by_role("combobox").locator("visible=true").last
    field.focus()
    listbox = iris.page.get_by_role("listbox")
    expect(listbox).to_be_hidden()
    field.press("ArrowDown")
    options = listbox.get_by_role("option")
    expect(options.first).to_have_attribute("aria-selected", "true")
    below = listbox.evaluate(
        """(one) => {
            const box = one.getBoundingClientRect();
            const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
            return one.contains(top) && box.bottom <= innerHeight;
        }"""
    )
    assert below, "the list is cut off or covered"
    name = options.first.inner_text().split("\n")[0]
    field.press("Enter")
    expect(listbox).to_be_hidden()
    taken = dialog.get_by_role("button", name=f"Remove {name}")
    expect(taken).to_be_visible()
    # Leaving the field doesn't choose what is only typed.
    field.press_sequentially("e")
    expect(listbox).to_be_visible()
    field.press("Tab")
    expect(listbox).to_be_hidden()
    expect(dialog.get_by_role("button", name="Remove ")).to_have_count(1)
    field.fill("")
    field.press("Escape")
    expect(listbox).to_be_hidden()
    expect(dialog).to_be_visible()
    field.press("Backspace")
    expect(taken).to_be_hidden()
    field.press("Escape")
    expect(dialog).to_be_hidden()


def test_enter_replies_to_a_found_message(demo_server: Server, shared_page: Open) -> None:
    iris = shared_page(demo_server, "iris@cafe.example")
    keys = iris.page.keyboard
    iris.go("narrow/search/nephew")
    settled(iris.page)
    found = iris.message("There's a nephew")
    expect(found).to_be_visible()
    found.click(position={"x": 3, "y": 3})
    expect(found).to_have_class(re.compile("selected"))
    keys.press("Enter")
    expect(iris.box).to_be_focused()
    expect(iris.box).to_have_attribute("aria-label", "Message #deliveries > beans")
    keys.press("Escape")
    expect(iris.box).to_be_hidden()
