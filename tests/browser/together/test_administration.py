"""Administration in the browser: announcements and statistics."""

from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE, settled
from tests.browser.test_accessibility import AXE, faults
from tests.browser.together.test_devices_and_languages import IRIS, JUNE, MOBILE
from tests.e2e.server import Server

TEXT = "Down tonight from nine to ten."


def test_an_announcement_is_shown_until_it_is_dismissed(
    demo_server: Server, shared_page: Open
) -> None:
    iris, june = shared_page(demo_server, IRIS), shared_page(demo_server, JUNE, **MOBILE)
    june.go("inbox")
    settled(june.page)
    page, seen = iris.page, june.page.get_by_role("status").filter(has_text=TEXT)

    iris.go("organization/announcements")
    page.get_by_label("Text", exact=True).fill(TEXT)
    page.get_by_role("button", name="Publish", exact=True).click()
    expect(seen).to_be_visible()
    june.page.reload()
    expect(seen).to_be_visible()
    june.page.get_by_role("button", name="Close").click()
    expect(seen).to_be_hidden()
    june.page.reload()
    settled(june.page)
    expect(june.page.get_by_text(TEXT)).to_be_hidden()

    iris.go("organization/usage")
    settled(page)
    page.get_by_text("Show as table").last.click()
    expect(page.get_by_role("columnheader", name="Count")).to_be_visible()
    # (Not in a script element: the page's policy forbids that.)
    page.evaluate(Path(AXE).read_text())
    assert faults(iris, "usage, with a banner above") == []
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size(PHONE)
    settled(page)
    assert faults(iris, "the same in the dark, on a phone") == []

    iris.go("organization/announcements")
    page.get_by_role("button", name="End").click()
    expect(page.get_by_text("No announcements")).to_be_visible()
    expect(page.get_by_text(TEXT)).to_be_hidden()
    page.emulate_media(color_scheme="light")
