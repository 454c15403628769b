"""Signing in and out."""

import re
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Site
from tests.e2e.server import PASSWORD, Server, ended


def test_the_first_visitor_creates_the_organization(
    database_url: str, tmp_path: Path, new_page: Open
) -> None:
    server = Server(tmp_path / "data", database_url)
    server.data_dir.mkdir()
    with ended(server):
        server.start("/setup")
        server.wait_for_log("/setup?code=")
        code = re.findall(r"/setup\?code=(\S+)", server.log_text())[-1]
        owner = new_page(server)
        owner.page.goto(f"/setup?code={code}")
        owner.page.get_by_label("organization").fill("Café Central")
        owner.page.get_by_label("Your name").fill("Ann")
        owner.page.get_by_label("Email").fill("ann@example.com")
        owner.page.get_by_label("Password").fill(PASSWORD)
        owner.page.get_by_role("button").click()
        expect(owner.page.get_by_role("heading", name="Welcome to Café Central")).to_be_visible()
        owner.link("general").click()
        expect(owner.page.get_by_role("heading", name="general").first).to_be_visible()


def test_sign_in_leads_to_the_requested_page(site: Site, new_page: Open) -> None:
    ben = new_page(site.server)
    ben.page.goto("/")
    ben.page.get_by_label("Email").fill(site.ben.email)
    ben.page.get_by_label("Password").fill("wrong")
    ben.page.get_by_role("button", name="Sign in").click()
    expect(ben.page.get_by_role("alert")).to_contain_text("Incorrect")
    expect(ben.page.get_by_label("Email")).to_have_value(site.ben.email)

    ben.page.get_by_label("Password").fill(PASSWORD)
    ben.page.get_by_role("button", name="Sign in").click()
    expect(ben.page.get_by_role("heading", name="Inbox")).to_be_visible()

    ben.page.get_by_role("button", name=re.compile("Ben$")).click()
    ben.page.get_by_role("menuitem", name="Sign out").click()
    expect(ben.page.get_by_label("Password")).to_be_visible()
    ben.page.goto("/")
    expect(ben.page.get_by_label("Password")).to_be_visible()


def test_a_session_ended_elsewhere_leads_to_sign_in_and_back(
    sqlite_site: Site, new_page: Open
) -> None:
    ann = new_page(sqlite_site.server, sqlite_site.ann)
    ann.go("narrow/channel/general/topic/hats")
    ann.say("Of straw")
    expect(ann.message("Of straw")).to_be_visible()
    ann.context.clear_cookies()
    # The typing notification is answered with an authentication error. (Another request may have
    # been answered with it before.)
    ann.page.keyboard.type("Of felt")
    ann.page.get_by_label("Email").fill(sqlite_site.ann.email)
    ann.page.get_by_label("Password").fill(PASSWORD)
    ann.page.get_by_role("button", name="Sign in").click()
    expect(ann.message("Of straw")).to_be_visible()


def test_the_demonstration_takes_one_click(demo_server: Server, new_page: Open) -> None:
    guest = new_page(demo_server)
    guest.page.goto("/")
    guest.page.get_by_role("button", name="Iris").click()
    expect(guest.page.get_by_role("heading", name="Inbox")).to_be_visible()
    # Not a link of the owner's first steps, which may appear above.
    guest.page.get_by_role("main").locator("a[href*='/narrow/'], a[href*='#narrow/']").first.click()
    guest.say("That was quick")
    expect(guest.message("That was quick")).to_be_visible()
