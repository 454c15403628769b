"""Accounts elsewhere that people sign in with, in the settings and in the list of users."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Site, running

SETTINGS = """
proxy_trusted = "127.0.0.1"

[[sign_in]]
name = "company"
kind = "header"
title = "Company account"
"""


@pytest.fixture
def company_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running(tmp_path_factory.mktemp("site"), settings=SETTINGS) as site:
        yield site


def test_people_and_owners_unlink_accounts(
    company_site: Site, browser: Browser, new_page: Open
) -> None:
    headers = {"Remote-User": "ben-3", "Remote-Email": company_site.ben.email}
    context = browser.new_context(base_url=company_site.server.url)
    try:
        page = context.new_page()
        page.route(
            "**/sign-in/company",
            lambda route: route.continue_(headers={**route.request.headers, **headers}),
        )
        page.goto("/sign-in/company")
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        page.goto("/#settings/account")
        linked = page.get_by_role("heading", name="Linked accounts")
        expect(linked).to_be_visible()
        page.get_by_role("button", name="Unlink", exact=True).click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("The next sign-in with Company account finds the account")
        dialog.get_by_role("button", name="Unlink", exact=True).click()
        expect(linked).to_have_count(0)
        # Without the client, which may navigate when its session is replaced.
        page.goto("about:blank")
        page.goto("/sign-in/company")
        expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
        page.goto("/#settings/account")
        expect(linked).to_be_visible()

        owner = new_page(company_site.server, company_site.ann).page
        owner.goto("/#settings/account")
        expect(owner.get_by_role("heading", name="Two-step verification")).to_be_visible()
        expect(owner.get_by_role("heading", name="Linked accounts")).to_have_count(0)
        owner.goto("/#organization/users")
        owner.get_by_role("button", name=re.compile("Ben")).first.click()
        expect(owner.get_by_role("heading", name="Linked accounts")).to_be_visible()
        owner.get_by_role("button", name="Unlink all").click()
        owner.get_by_role("button", name="Unlink", exact=True).click()
        expect(owner.get_by_role("heading", name="Linked accounts")).to_have_count(0)
        page.reload()
        expect(page.get_by_role("heading", name="Two-step verification")).to_be_visible()
        expect(linked).to_have_count(0)
    finally:
        context.close()
