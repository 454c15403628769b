"""Setting up second factors in the settings, and confirming with them."""

import re

import pyotp
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Open
from tests.browser.test_passkeys import api, sign_in_with_password, with_authenticator
from tests.e2e.conftest import Site


def test_second_factors_are_set_up_and_removed_in_the_client(
    sqlite_site: Site, browser: Browser, new_page: Open
) -> None:
    with with_authenticator(browser, sqlite_site) as (page, _):
        sign_in_with_password(page, sqlite_site.ben.email)
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        page.goto("/#settings/account")
        page.get_by_role("button", name="Add authenticator app").click()
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("img", name="QR code")).to_be_visible()
        app = pyotp.TOTP(dialog.locator("code").inner_text())
        dialog.get_by_label("Verification code").fill("000000")
        dialog.get_by_role("button", name="Confirm").click()
        expect(dialog.get_by_role("alert")).to_contain_text("The code is wrong")
        dialog.get_by_label("Verification code").fill(app.now())
        dialog.get_by_role("button", name="Confirm").click()
        codes = page.get_by_role("dialog", name="Recovery codes")
        shown = re.findall(r"[a-z2-7]{5}-[a-z2-7]{5}", codes.locator("pre").inner_text())
        assert len(shown) == 10
        with page.expect_download() as downloading:
            codes.get_by_role("link", name="Download").click()
        assert shown[0] in downloading.value.path().read_text()
        codes.get_by_role("button", name="I’ve saved them").click()
        expect(page.get_by_text("10 unused recovery codes")).to_be_visible()

        page.get_by_role("button", name="Add passkey").click()
        expect(page.get_by_text("Passkey", exact=True)).to_be_visible()

        page.get_by_role("button", name="Remove", exact=True).first.click()
        page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
        expect(page.get_by_text("Authenticator app", exact=True)).not_to_be_visible()
        (left,) = api(page, "GET", "/users/me/second_factors")["second_factors"]
        assert left["kind"] == "passkey"
        owner = new_page(sqlite_site.server, sqlite_site.ann)
        owner.page.goto("/#organization/users")
        owner.page.get_by_role("button", name=re.compile("Ben")).first.click()
        owner.page.get_by_role("button", name="Remove second factors").click()
        # The second is in the dialog that asks again.
        owner.page.get_by_role("button", name="Remove second factors").nth(1).click()
        expect(owner.page.get_by_role("button", name="Remove second factors")).to_have_count(0)
        assert api(page, "GET", "/users/me/second_factors")["second_factors"] == []
