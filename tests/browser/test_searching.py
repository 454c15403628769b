"""A search is edited where its results are."""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import settled, sign_in_resident
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
