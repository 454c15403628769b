"""Content of any length, and of both directions, stays within the window and can be reached."""

import json

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import LAPTOP, PHONE, Window, settled, spilled
from tests.e2e.conftest import Site
from tests.e2e.server import Account

WORD = "w" * 60
NAME = "Bartholomew Wolfeschlegelsteinhausenbergerdorff " + "v" * 50
ARABIC = "قناة عامة للجميع"
COLUMNS = range(40)
MESSAGES = {
    "words": "Donau" * 1900,
    "code": "```python\n" + "word " * 300 + "\n```",
    "table": "\n".join(
        ("|" + "|".join(f"column {one}" for one in COLUMNS), "|---" * 40, "|1" * 40)
    ),
    "formula": "$$" + " + ".join("x^2" for _ in range(80)) + "$$",
    "list": "\n".join("  " * level + f"* level {level}" for level in range(12)),
    "link": "https://example.com/" + "long/" * 100,
    "both": f"* {ARABIC}\n* list item\n* {ARABIC}",
}
TOPIC = f"narrow/channel/general/topic/{WORD}"


@pytest.fixture(scope="module")
def extreme(sqlite_site: Site) -> Site:
    """An organization where ben has a long name and status, and has sent `MESSAGES`."""
    ann, ben = sqlite_site.ann, sqlite_site.ben

    def ask(account: Account, method: str, path: str, **form: str) -> None:
        address = f"{sqlite_site.server.url}/api/v1{path}"
        auth = (account.email, account.api_key)
        httpx.request(method, address, auth=auth, data=form, timeout=60).raise_for_status()

    ask(ann, "PATCH", f"/users/{ben.user_id}", full_name=NAME)
    ask(ben, "POST", "/users/me/status", status_text=WORD)
    for to, topic in (("general", WORD), (ARABIC, f"{ARABIC} English (test)")):
        name = json.dumps([{"name": to}])
        people = json.dumps([ann.user_id, ben.user_id])
        ask(ann, "POST", "/users/me/subscriptions", subscriptions=name, principals=people)
        for text in MESSAGES.values():
            ask(ben, "POST", "/messages", type="stream", to=to, topic=topic, content=text)
    return sqlite_site


@pytest.mark.parametrize("viewport", [LAPTOP, PHONE], ids=["laptop", "phone"])
def test_extreme_content_stays_within_the_window(
    extreme: Site, new_page: Open, viewport: dict[str, int]
) -> None:
    ann = new_page(extreme.server, extreme.ann, viewport=viewport)
    for place in (TOPIC, "inbox", "recent", "topics/channel/1", "channels/all"):
        ann.go(place)
        settled(ann.page)
        assert spilled(ann.page) == [], place
    ann.go(TOPIC)
    expect(ann.page.get_by_role("article")).to_have_count(len(MESSAGES))
    expect(ann.page.locator("main math")).to_be_attached()
    assert spilled(ann.page) == []
    _items_are_next_to_their_bullets(ann)
    _card_fits(ann)


def _items_are_next_to_their_bullets(window: Window) -> None:
    items = window.message(ARABIC).locator("li")
    expect(items).to_have_count(3)
    aligned = items.evaluate_all("(all) => all.map((one) => getComputedStyle(one).textAlign)")
    assert aligned == ["right"] * 3


def _card_fits(window: Window) -> None:
    """Nothing of the sender's card is cut off."""
    window.page.locator("main").get_by_role("button", name=NAME[:40]).last.click()
    card = window.page.locator(".card")
    expect(card).to_contain_text(WORD)
    card.get_by_role("button", name="Send direct message").click(trial=True)
    widths = card.evaluate("(one) => [one.scrollWidth, one.clientWidth]")
    assert widths[0] <= widths[1]
