"""A search is edited where its results are."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import settled, sign_in_resident
from tests.e2e.conftest import Town
from tests.e2e.server import Server


def test_a_search_is_refined_above_its_results(cafe: Server, opened: Open) -> None:
    iris = opened(cafe)
    sign_in_resident(iris.context, cafe, "iris@cafe.example")
    iris.go("inbox")
    settled(iris.page)
    keys, page = iris.page.keyboard, iris.page
    keys.press("/")
    page.get_by_role("combobox", name="Search or jump").fill("oven")
    keys.press("Enter")
    head = page.get_by_role("search")
    expect(head.get_by_role("status")).to_have_text(re.compile(r"^\d+ messages$"))
    every = int(head.get_by_role("status").inner_text().split()[0])
    # What is hit in a topic's name is shown as such, above and before its messages.
    topics = head.get_by_role("navigation", name="Topics")
    expect(topics.get_by_role("link", name="oven is too keen #kitchen")).to_be_visible()
    expect(page.locator("h2.place mark").first).to_have_text("oven")

    head.get_by_role("button", name="From…").click()
    box = page.get_by_role("combobox", name="Search or jump")
    expect(box).to_have_value("oven sender:")
    keys.type("june")
    keys.press("Enter")
    expect(page).to_have_url(re.compile("sender/"))
    chip = head.get_by_role("button", name="Without the filter “from June Okafor”")
    expect(chip).to_be_visible()
    expect(head.get_by_role("status")).not_to_have_text(f"{every} messages")
    head.get_by_role("button", name="With…").click()
    page.get_by_role("menuitemradio", name="With pictures").click()
    expect(page).to_have_url(re.compile("has/image/search/oven"))
    chip.click()
    expect(chip).to_be_hidden()
    head.get_by_role("button", name="Edit the search").click()
    expect(box).to_have_value("has:image oven")
    box.fill("")
    # What was looked for before is offered again.
    expect(page.get_by_role("option").first).to_contain_text("oven")
    keys.press("Escape")
    head.get_by_label("From a day on").fill("2026-01-01")
    expect(page).to_have_url(re.compile(r"near/\d+|has/image/search/oven$"))


def test_the_switcher_goes_back_does_and_sets(sqlite_town: Town, opened: Open) -> None:
    ann = opened(sqlite_town.server, sqlite_town.ann)
    page, keys = ann.page, ann.page.keyboard
    box = page.get_by_role("combobox", name="Search or jump")
    option = page.get_by_role("option")
    for topic in ("first", "second"):
        ann.go(f"narrow/channel/general/topic/{topic}")
        expect(ann.box).to_be_visible()
    page.get_by_role("main").focus()
    # Where one was before comes first: Enter goes back there.
    keys.press("Control+k")
    expect(option.first).to_contain_text(re.compile(r"first\s+#general"))
    keys.press("Enter")
    expect(page).to_have_url(re.compile("topic/first"))

    keys.press("Control+k")
    box.fill("theme: dark")
    keys.press("Enter")
    expect(page.locator("html")).to_have_attribute("data-scheme", "dark")
    page.locator("#own-menu").click()
    page.get_by_role("menuitemradio", name="Theme: as the system").click()
    expect(page.locator("html")).to_have_attribute("data-scheme", "")

    keys.press("Control+k")
    box.fill("notif")
    option.filter(has_text="Notifications").first.click()
    expect(page).to_have_url(re.compile("#settings/notifications$"))

    keys.press("Control+k")
    box.fill("space between")
    option.filter(has_text="Settings").first.click()
    expect(page).to_have_url(re.compile("#(settings|organization)/"))

    page.get_by_role("navigation", name="Views").get_by_role("button", name="Invite people").click()
    expect(page.get_by_role("dialog", name="Invite")).to_be_visible()
