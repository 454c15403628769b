"""The password is asked for again, and what was asked for goes on."""

from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import settled
from tests.e2e.conftest import Town
from tests.e2e.server import PASSWORD

REFUSED = {
    "result": "error",
    "msg": "Give your password again.",
    "code": "PASSWORD_CONFIRMATION_REQUIRED",
}


def test_what_was_asked_for_goes_on_when_the_password_is_given(
    sqlite_town: Town, opened: Open
) -> None:
    window = opened(sqlite_town.server, sqlite_town.ann)
    page, asked = window.page, []

    def refused_once(route: Route) -> None:
        """As the server refuses it some minutes after signing in."""
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=403, json=REFUSED)
        else:
            route.continue_()

    page.route("**/api_key/regenerate", refused_once)
    page.goto(f"{window.site}/#settings/account")
    settled(page)
    page.get_by_role("button", name="Make a new key").click()
    page.get_by_role("dialog").get_by_role("button", name="Make a new key").click()
    again = page.get_by_role("dialog", name="Your password again")
    again.get_by_label("Password", exact=True).fill("not it at all")
    again.get_by_role("button", name="Continue").click()
    expect(again.get_by_role("alert")).to_have_text("The password is wrong.")
    again.get_by_label("Password", exact=True).fill(PASSWORD)
    again.get_by_role("button", name="Continue").click()
    expect(again).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("zuliprc")).to_be_visible()
    assert len(asked) == 2
    # Both refusals were meant.
    window.troubles[:] = [t for t in window.troubles if "400" not in t and "403" not in t]
