"""Signing in with an identity provider, in a browser."""

import json
import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tertulia.service.config import Config
from tests import databases
from tests.browser.conftest import Open
from tests.e2e.conftest import Site
from tests.e2e.server import Server, ended
from tests.openid.running import OpenidServer, openid_server


@pytest.fixture(scope="module")
def provider() -> Iterator[OpenidServer]:
    with openid_server() as server:
        yield server


@pytest.fixture(scope="module")
def company(provider: OpenidServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server whose people sign in with the provider."""
    server = Server(tmp_path_factory.mktemp("company") / "data")
    config = Config(data_dir=str(server.data_dir))
    ann, ben = databases.copied_as(
        "site", config, lambda: (server.create_organization(), server.add("ben"))
    )
    provider.register(server.url)
    provider.control(form=True, person={"name": "Eve Adams", "email_verified": True})
    declared = json.dumps(json.dumps([provider.method()]))
    (server.data_dir / "tertulia.toml").write_text(
        f'external_url = "{server.url}"\nsign_in = {declared}\n'
    )
    with ended(server):
        server.start()
        yield Site(server, ann, ben)


@pytest.fixture
def context(browser: Browser, company: Site) -> Iterator[BrowserContext]:
    made = browser.new_context(base_url=company.server.url, service_workers="block")
    yield made
    made.close()


def at_provider(page: Page, sub: str, address: str) -> None:
    page.get_by_label("ID").fill(sub)
    page.get_by_label("Email").fill(address)
    page.get_by_role("button", name="Continue").click()


def test_people_sign_in_join_and_sign_out_everywhere(
    context: BrowserContext,
) -> None:
    page = context.new_page()
    page.goto("/#narrow/is/starred")
    page.get_by_role("link", name="Sign in with Company account").click()
    at_provider(page, "e1", "eve@example.com")
    expect(page.get_by_role("button", name=re.compile("Eve Adams$"))).to_be_visible()
    page.get_by_role("button", name=re.compile("Eve Adams$")).click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page.get_by_text("You’re signed out here")).to_be_visible()

    # Still signed in at the provider, so no form.
    page.get_by_role("link", name="Sign in with Company account").click()
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    # Signing out there ends the session here: the provider tells this server.
    there = context.new_page()
    there.goto("/sign-in/company/end")
    there.get_by_role("button", name="Yes, sign me out").click()
    expect(there.get_by_label("Password")).to_be_visible()
    there.goto("/")
    expect(there.get_by_label("Password")).to_be_visible()


def test_an_unverified_person_is_told_what_to_do(
    context: BrowserContext, provider: OpenidServer
) -> None:
    provider.control(person={"name": "Ben", "email_verified": False})
    page = context.new_page()
    try:
        page.goto("/sign-in/company")
        at_provider(page, "x1", "ben@example.com")
        expect(page.get_by_text("hasn’t verified your email address ben@")).to_be_visible()
        page.get_by_role("link", name="Sign in").click()
        expect(page.get_by_label("Password")).to_be_visible()
    finally:
        provider.control(person={"name": "Eve Adams", "email_verified": True})


def test_the_desktop_app_signs_in_through_the_browser(
    context: BrowserContext, browser: Browser, company: Site
) -> None:
    app = browser.new_context(
        base_url=company.server.url,
        service_workers="block",
        user_agent="Mozilla/5.0 ZulipElectron/5.11.1 Chrome/130",
    )
    # The app opens links in the user's browser, not in a separate window.
    app.add_init_script("window.open = (url) => { window.opened = String(url); }")
    inside = app.new_page()
    inside.goto("/login")
    inside.get_by_role("link", name="Sign in with Company account").click()
    expect(inside.get_by_role("heading", name="Continue in your browser")).to_be_visible()
    inside.wait_for_function("() => window.opened")
    address = inside.evaluate("window.opened")
    assert re.search(r"desktop_flow_otp=[0-9a-f]{64}$", address)

    page = context.new_page()
    page.goto(address)
    at_provider(page, "e1", "eve@example.com")
    expect(page.get_by_role("heading", name="Go back to the app")).to_be_visible()
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    code = page.get_by_label("Sign-in code").input_value()

    inside.get_by_label("Sign-in code").fill(code)
    expect(inside.get_by_role("heading", name="Inbox")).to_be_visible()
    app.close()


def test_an_owner_requires_single_sign_on(
    new_page: Open, context: BrowserContext, company: Site
) -> None:
    ann = new_page(company.server, company.ann)
    ann.go("organization/auth-methods")
    ann.page.get_by_role("button", name="Turn off passwords").click()
    expect(ann.page.get_by_role("button", name="Turn on passwords")).to_be_visible()
    page = context.new_page()
    page.goto("/login")
    expect(page.get_by_role("link", name="Sign in with Company account")).to_be_visible()
    expect(page.get_by_label("Password")).to_be_hidden()
    ann.page.get_by_role("button", name="Turn on passwords").click()
    expect(ann.page.get_by_role("button", name="Turn off passwords")).to_be_visible()
