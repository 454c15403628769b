"""Signing in with a passkey of Chromium's virtual authenticator."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
from playwright.sync_api import Browser, Page, expect

from tests.e2e.conftest import Site
from tests.e2e.server import PASSWORD

NO_SUGGESTIONS = "PublicKeyCredential.isConditionalMediationAvailable = async () => false"
CREATE = """async ({options, ticket, csrf}) => {
    const bytes = (text) => Uint8Array.from(
        atob(text.replaceAll("-", "+").replaceAll("_", "/")), (one) => one.charCodeAt(0));
    const publicKey = {
        ...options,
        challenge: bytes(options.challenge),
        user: {...options.user, id: bytes(options.user.id)},
        excludeCredentials: [],
    };
    const made = await navigator.credentials.create({publicKey});
    return made.toJSON();
}"""


@contextmanager
def with_authenticator(browser: Browser, site: Site) -> Iterator[tuple[Page, Any]]:
    """A page at localhost, because passkeys need a domain, and its virtual authenticator."""
    url = site.server.url.replace("127.0.0.1", "localhost")
    with browser.new_context(base_url=url) as context:
        page = context.new_page()
        devtools = context.new_cdp_session(page)
        devtools.send("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        made = devtools.send("WebAuthn.addVirtualAuthenticator", {"options": options})

        def verify(person: bool) -> None:
            sent = {"authenticatorId": made["authenticatorId"], "isUserVerified": person}
            devtools.send("WebAuthn.setUserVerified", sent)

        yield page, verify


def api(page: Page, method: str, path: str, **form: Any) -> Any:
    """Send a request from the signed-in page to the API."""
    cookies = page.context.cookies()
    token = next((one["value"] for one in cookies if one["name"].endswith("csrf")), "")
    answer = page.context.request.fetch(
        f"/api/v1{path}", method=method, form=form, headers={"X-CSRF-Token": token}
    )
    assert answer.ok, answer.text()
    return answer.json()


def add_passkey(page: Page) -> None:
    begun = api(page, "POST", "/users/me/second_factors/passkeys/challenge")
    made = page.evaluate(CREATE, begun)
    sent = {"ticket": begun["ticket"], "credential": json.dumps(made)}
    api(page, "POST", "/users/me/second_factors/passkeys", **sent)


def sign_in_with_password(page: Page, email: str) -> None:
    page.goto("/login")
    page.get_by_label("Email").fill(email)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in", exact=True).click()


def sign_out(page: Page) -> None:
    page.goto("about:blank")  # Otherwise, the client would go to the first page by itself.
    page.context.clear_cookies()


def test_a_passkey_signs_in(sqlite_site: Site, browser: Browser) -> None:
    with with_authenticator(browser, sqlite_site) as (page, verify):
        sign_in_with_password(page, sqlite_site.ben.email)
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        add_passkey(page)
        sign_out(page)

        # In place of the password: the browser suggests it in the field, and it's chosen.
        page.goto("/login", wait_until="commit")
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        sign_out(page)

        # With the button.
        page.add_init_script(NO_SUGGESTIONS)
        page.goto("/login")
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        sign_out(page)

        # Someone else at the device.
        verify(False)
        page.goto("/login")
        page.get_by_role("button", name="Sign in with a passkey").click()
        expect(page.get_by_role("alert")).to_contain_text("Try again")
        verify(True)

        # After the password.
        sign_in_with_password(page, sqlite_site.ben.email)
        expect(page.get_by_role("heading", name="Two-step verification")).to_be_visible()
        page.get_by_role("button", name="Use a passkey").click()
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        for factor in api(page, "GET", "/users/me/second_factors")["second_factors"]:
            api(page, "DELETE", f"/users/me/second_factors/{factor['id']}")


def test_a_passkey_is_set_up_where_a_second_step_is_required(
    sqlite_site: Site, browser: Browser
) -> None:
    ann, ben = sqlite_site.ann, sqlite_site.ben

    def require(whose: str) -> None:
        sent = {"second_factor_required_for": whose, "second_factor_grace_days": 0}
        url = f"{sqlite_site.server.url}/api/v1/realm"
        httpx.patch(url, data=sent, auth=(ann.email, ann.api_key)).raise_for_status()

    require("everyone")
    try:
        with with_authenticator(browser, sqlite_site) as (page, _):
            page.add_init_script(NO_SUGGESTIONS)
            sign_in_with_password(page, ben.email)
            page.get_by_role("button", name="Add a passkey instead").click()
            expect(page.get_by_role("heading", name="Recovery codes")).to_be_visible()
            page.get_by_role("button", name="saved").click()
            expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
            sign_out(page)

            sign_in_with_password(page, ben.email)
            page.get_by_role("button", name="Use a passkey").click()
            expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
            for factor in api(page, "GET", "/users/me/second_factors")["second_factors"]:
                api(page, "DELETE", f"/users/me/second_factors/{factor['id']}")
    finally:
        require("nobody")
