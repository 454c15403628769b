"""Choosing some of many: the field that offers people, groups and channels."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import settled, sign_in_resident
from tests.e2e.server import Server


def test_options_are_chosen_with_the_keyboard(cafe: Server, opened: Open) -> None:
    """In a dialog: the list lies above it, and Escape closes the list before the dialog."""
    iris = opened(cafe)
    sign_in_resident(iris.context, cafe, "iris@cafe.example")
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
    # What is only typed is not chosen by moving on.
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
