"""Recipients are always clear, and no key discards text."""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Site

PLACE = "narrow/channel/general/topic/kitchen"


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    window = shared_page(sqlite_site.server, sqlite_site.ann)
    window.go(PLACE)
    expect(window.box).to_be_visible()
    return window


def new_message(window: Window) -> Locator:
    return window.page.get_by_role("region", name="New message")


def begin_to_ben(window: Window, text: str) -> None:
    window.page.get_by_role("main").focus()
    window.page.keyboard.press("x")
    expect(window.page.get_by_role("combobox", name="People")).to_be_focused()
    window.page.keyboard.type("ben")
    window.page.keyboard.press("Tab")
    expect(window.page.get_by_role("textbox", name="Message Ben")).to_be_focused()
    window.page.keyboard.type(text)


def test_an_empty_new_message_closes_when_the_view_changes(ann: Window) -> None:
    for there in ("narrow/channel/general/topic/garden", "settings/account", "inbox"):
        ann.go(PLACE)
        begin_to_ben(ann, " ")
        ann.go(there)
        expect(new_message(ann)).to_be_hidden()
    ann.go(PLACE)
    expect(ann.page.get_by_role("textbox", name="Message #general > kitchen")).to_be_visible()


def test_a_new_message_with_text_warns_when_the_view_changes(ann: Window) -> None:
    begin_to_ben(ann, "For you alone")
    ann.go("narrow/channel/general/topic/garden")
    expect(new_message(ann).get_by_role("status")).to_contain_text("goes to Ben, not #general")
    new_message(ann).get_by_role("button", name="Write here instead").click()
    expect(new_message(ann)).to_be_hidden()
    expect(ann.page.get_by_role("textbox", name="Message #general > garden")).to_be_focused()
    expect(ann.box).to_have_value("")

    ann.go("drafts")
    ann.page.get_by_role("main").get_by_role("button", name="Continue writing").click()
    expect(ann.page.get_by_role("textbox", name="Message Ben")).to_have_value("For you alone")
    ann.go(PLACE)
    new_message(ann).get_by_role("button", name="View", exact=True).click()
    expect(new_message(ann)).to_be_hidden()
    expect(ann.page.get_by_role("textbox", name="Message Ben")).to_have_value("For you alone")
    expect(ann.page).to_have_url(re.compile("narrow/dm"))
    ann.box.fill("")


def test_text_of_a_new_message_is_kept_where_writing_is_not_possible(ann: Window) -> None:
    begin_to_ben(ann, "Kept for later")
    ann.go("settings/account")
    expect(new_message(ann)).to_be_hidden()
    kept = ann.page.get_by_text("Your message to Ben was saved as a draft.")
    expect(kept).to_be_visible()
    ann.page.get_by_role("button", name="Continue writing").click()
    expect(ann.page.get_by_role("textbox", name="Message Ben")).to_have_value("Kept for later")
    ann.page.get_by_role("textbox", name="Message Ben").fill("")


def test_text_is_kept_when_the_view_changes_before_it_is_painted(ann: Window) -> None:
    begin_to_ben(ann, "")
    ann.page.evaluate(
        "() => { document.execCommand('insertText', false, 'Kept for later');"
        " location.hash = '#settings/account'; }"
    )
    expect(ann.page.get_by_text("Your message to Ben was saved as a draft.")).to_be_visible()
    ann.page.get_by_role("button", name="Continue writing").click()
    expect(ann.page.get_by_role("textbox", name="Message Ben")).to_have_value("Kept for later")
    ann.page.get_by_role("textbox", name="Message Ben").fill("")


def test_tab_order_of_a_new_message_follows_its_fields(ann: Window) -> None:
    page, keys = ann.page, ann.page.keyboard
    page.get_by_role("main").focus()
    keys.press("c")
    expect(page.get_by_role("combobox", name="Topic")).to_be_focused()
    keys.type("bread")
    keys.press("Tab")
    expect(page.get_by_role("textbox", name="Message #general > bread")).to_be_focused()
    keys.type("Who bakes")
    # Single-key shortcuts don't work on the box's buttons, and the box stays open.
    keys.press("Tab")
    expect(new_message(ann).get_by_role("button", name="Attach")).to_be_focused()
    keys.type("dtcx?[")
    expect(ann.page).to_have_url(re.compile("kitchen"))
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(page.get_by_role("textbox", name="Message ")).to_have_value("Who bakes")
    # The shortcut for a new message doesn't discard the one in progress.
    page.get_by_role("main").focus()
    keys.press("c")
    box = page.get_by_role("textbox", name="Message #general > bread")
    expect(box).to_be_focused()
    expect(box).to_have_value("Who bakes")
    box.fill("")


def test_focus_returns_after_a_dialog_closes(ann: Window) -> None:
    ann.box.press_sequentially("In between")
    for opens in ("Control+k",):
        ann.page.keyboard.press(opens)
        expect(ann.page.get_by_role("dialog")).to_be_visible()
        ann.page.keyboard.press("Escape")
        expect(ann.page.get_by_role("dialog")).to_be_hidden()
        expect(ann.box).to_be_focused()
    ann.page.keyboard.type(", more")
    expect(ann.box).to_have_value("In between, more")
    ann.box.fill("")
    more = ann.page.get_by_role("button", name="More", exact=True).last
    more.focus()
    ann.page.keyboard.press("Enter")
    ann.page.get_by_role("menuitem", name="poll", exact=False).first.focus()
    ann.page.keyboard.press("Enter")
    expect(ann.page.get_by_role("dialog")).to_be_visible()
    ann.page.keyboard.press("Escape")
    expect(ann.page.get_by_role("dialog")).to_be_hidden()
    expect(more).to_be_focused()
