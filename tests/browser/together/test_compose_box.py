"""The compose box is one line until someone writes, and keeps the tools that were used last."""

import re

from playwright.sync_api import Locator, expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, Window, settled
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

PLACE = "narrow/channel/general/topic/compose box"


def height(of: Locator) -> float:
    box = of.bounding_box()
    assert box is not None
    return box["height"]


def composer(window: Window) -> Locator:
    return window.page.locator("[data-foot] [data-writing]")


def test_the_tools_appear_when_someone_writes(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(PLACE)
    settled(ann.page)
    box = composer(ann)
    bold = box.get_by_role("button", name="Bold")
    expect(box.get_by_role("button", name="Attach files")).to_be_visible()
    expect(bold).to_have_count(0)
    assert height(box) < 48
    # From the start of the line: files, text, emoji, send.
    order = [
        box.get_by_role("button", name="Attach files"),
        ann.box,
        box.get_by_role("button", name="Emoji"),
        box.get_by_role("button", name="Send", exact=True),
    ]
    starts = [(one.bounding_box() or {"x": -1.0})["x"] for one in order]
    assert starts == sorted(starts)

    ann.box.click()
    expect(bold).to_be_visible()
    # A picker takes the focus for a while, and gives it back.
    box.get_by_role("button", name="Emoji").click()
    expect(ann.page.get_by_label("Search emoji")).to_be_focused()
    expect(bold).to_be_visible()
    ann.page.keyboard.press("Escape")
    ann.page.keyboard.press("Escape")
    expect(bold).to_have_count(0)

    # Text keeps the box open.
    ann.box.fill("Unsent")
    ann.page.keyboard.press("Escape")
    expect(bold).to_be_visible()
    ann.box.fill("")


def test_the_box_shrinks_after_a_press_elsewhere(sqlite_site: Site, shared_page: Open) -> None:
    """Otherwise the button would move away under the pointer."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    with client_of(sqlite_site.ben, sqlite_site.server) as client:
        for at in range(30):
            text = f"Line {at}"
            sent = {"type": "channel", "to": "general", "topic": "compose box", "content": text}
            ok(client.send_message(sent))
    ann.go(PLACE)
    expect(ann.message("Line 29")).to_be_visible()
    ann.box.click()
    expect(composer(ann).get_by_role("button", name="Bold")).to_be_visible()
    last = ann.message("Line 29")
    last.hover()
    star = last.get_by_role("button", name=re.compile("^Star"))
    place = star.bounding_box()
    assert place is not None
    ann.page.mouse.move(place["x"] + 5, place["y"] + 5)
    ann.page.mouse.down()
    assert star.bounding_box() == place
    ann.page.mouse.up()
    expect(composer(ann).get_by_role("button", name="Bold")).to_have_count(0)
    last.hover()
    expect(last.get_by_role("button", name=re.compile("^Unstar"))).to_be_visible()


def test_tools_used_last_stay_on_the_toolbar(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(PLACE)
    ann.box.click()
    tools = composer(ann).get_by_role("group", name="Formatting and attachments")
    expect(tools.get_by_role("button", name="Bold")).to_be_visible()
    expect(tools.get_by_role("button", name="Formula")).to_have_count(0)
    tools.get_by_role("button", name="More").click()
    ann.page.get_by_role("menuitem", name="Formula").click()
    expect(ann.box).to_have_value("$$$$")
    expect(tools.get_by_role("button", name="Formula")).to_be_visible()

    # Also after the page is loaded again, and on a phone, which shows two.
    ann.box.fill("")
    ann.page.reload()
    ann.box.click()
    expect(tools.get_by_role("button", name="Formula")).to_be_visible()
    ann.page.set_viewport_size(PHONE)
    expect(tools.get_by_role("button", name="Formula")).to_be_visible()
    expect(tools.get_by_role("button", name="Bold")).to_be_hidden()


def test_growing_keeps_the_end_of_a_conversation_in_view(site: Site, new_page: Open) -> None:
    """On a phone, the navigation bar disappears at the same time."""
    with client_of(site.ben, site.server) as client:
        for at in range(14):
            sent = {"type": "channel", "to": "general", "topic": "end", "content": f"Line {at}"}
            ok(client.send_message(sent))
    ann = new_page(site.server, site.ann, viewport=PHONE)
    ann.go("narrow/channel/general/topic/end")
    expect(ann.message("Line 13")).to_be_visible()
    for _ in range(2):
        ann.box.click()
        expect(composer(ann).get_by_role("button", name="More")).to_be_visible()
        expect(ann.message("Line 13")).to_be_in_viewport(ratio=1)
        ann.page.keyboard.press("Escape")
        expect(composer(ann).get_by_role("button", name="More")).to_have_count(0)
        expect(ann.message("Line 13")).to_be_in_viewport(ratio=1)
