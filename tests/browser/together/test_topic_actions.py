"""Actions on topics that the server refuses, and shortcuts that are typed quickly."""

import re

import pytest
from playwright.sync_api import Locator, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import HeldAnswers, Window
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok

WHY = "The kitchen is closed."


def opened(site: Site, shared_page: Open, topic: str, count: int = 1) -> Window:
    """Ben starts a topic, and Ann looks at it."""
    with client_of(site.ben, site.server) as client:
        for number in range(count):
            about = {"type": "stream", "to": "general", "topic": topic}
            ok(client.send_message({**about, "content": f"Word {number}"}))
    ann = shared_page(site.server, site.ann)
    ann.go(f"narrow/channel/general/topic/{topic}")
    expect(ann.message(f"Word {count - 1}")).to_be_visible()
    return ann


def refuse(route: Route) -> None:
    if route.request.method == "GET":
        route.fallback()
    else:
        body = {"result": "error", "msg": WHY, "code": "BAD_REQUEST"}
        route.fulfill(status=400, json=body)


def chosen(window: Window, name: str) -> Locator:
    window.page.get_by_role("main").get_by_role("button", name=name, exact=True).click()
    return window.page.get_by_role("menu")


def test_refused_actions_say_why_and_change_nothing(sqlite_site: Site, shared_page: Open) -> None:
    ann = opened(sqlite_site, shared_page, "refused")
    page, main = ann.page, ann.page.get_by_role("main")
    ann.page.route(re.compile(r"/api/v1/(messages/\d+|user_topics|streams/)"), refuse)
    toasts = page.locator(".toasts").get_by_text(WHY)

    def said() -> None:
        expect(toasts).to_be_visible()
        toasts.locator("xpath=ancestor-or-self::*[@role]").get_by_role("button").last.click()
        expect(toasts).to_have_count(0)

    # Resolve.
    resolve = main.get_by_role("button", name="Mark as resolved", exact=True)
    resolve.click()
    said()
    expect(resolve).to_be_visible()
    expect(page).to_have_url(re.compile("topic/refused$"))
    # Mute: it shows as muted before the server responds.
    chosen(ann, "Topic notifications").get_by_role(
        "menuitemradio", name="Muted", exact=True
    ).click()
    said()
    muted = chosen(ann, "Topic notifications").get_by_role(
        "menuitemradio", name="Muted", exact=True
    )
    expect(muted).to_have_attribute("aria-checked", "false")
    page.keyboard.press("Escape")
    # Rename: the dialog stays, with the new name.
    chosen(ann, "Topic actions").get_by_role("menuitem", name="Move or rename").click()
    dialog = page.get_by_role("dialog")
    name = dialog.get_by_role("combobox", name="Topic")
    name.fill("accepted")
    name.press("Tab")
    dialog.get_by_role("button", name="Rename", exact=True).click()
    expect(dialog.get_by_role("alert")).to_have_text(WHY)
    expect(name).to_have_value("accepted")
    dialog.get_by_role("button", name="Cancel").click()
    expect(dialog).to_have_count(0)
    # Delete.
    chosen(ann, "Topic actions").get_by_role("menuitem", name="Delete topic").click()
    dialog.get_by_role("textbox").fill("refused")
    dialog.get_by_role("button", name="Delete", exact=True).click()
    expect(toasts).to_be_visible()
    dialog.get_by_role("button", name="Cancel").click()
    expect(ann.message("Word 0")).to_be_visible()
    expect(page).to_have_url(re.compile("topic/refused$"))


@pytest.mark.parametrize("keys", ["kkkj", "kjkkk"])
def test_shortcuts_act_in_the_order_of_typing(
    sqlite_site: Site, shared_page: Open, keys: str
) -> None:
    ann = opened(sqlite_site, shared_page, f"quickly {keys}".replace(" ", "-"), count=8)
    page = ann.page
    ann.message("Word 7").click()
    page.keyboard.type(keys)
    at = 7 + keys.count("j") - keys.count("k")
    expect(page.locator("article.selected")).to_contain_text(f"Word {at}")
    # What is typed while the text of the message loads goes into the editor, in order.
    ann.say("Mine")
    expect(ann.message("Mine")).to_be_visible()
    held = HeldAnswers(ann, lambda address: True)
    page.route(re.compile(r"/api/v1/messages/\d+\?"), held.hold)
    ann.message("Mine").click()
    page.keyboard.type("e, and ours")
    held.wait()
    held()
    edit = page.get_by_role("textbox", name="Edit message")
    expect(edit).to_have_value("Mine, and ours")
    edit.press("Escape")
