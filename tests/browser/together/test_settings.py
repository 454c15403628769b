"""Settings: agents' keys, devices with push notifications, and password confirmation."""

from dataclasses import replace

import httpx
import pytest
from playwright.sync_api import Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, settled
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok
from tests.e2e.server import PASSWORD
from tests.push_service import Browser

ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "send_message",
        "arguments": {"channel": "general", "topic": "agents", "text": "From a machine."},
    },
}
REFUSED = {
    "result": "error",
    "msg": "Give your password again.",
    "code": "PASSWORD_CONFIRMATION_REQUIRED",
}


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    return shared_page(sqlite_site.server, sqlite_site.ann)


def sent(site: Site, key: str) -> int:
    """The status of the agent's attempt to send a message."""
    headers = {"Authorization": f"Bearer {key}", "MCP-Protocol-Version": "2025-11-25"}
    address = f"{site.server.url}/mcp"
    return httpx.post(address, json=ASKED, headers=headers, timeout=60).status_code


def test_an_agent_s_key_is_created_used_and_revoked(sqlite_site: Site, ann: Window) -> None:
    town, page = sqlite_site, ann.page
    ann.go("settings/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("Helper")
    page.get_by_label("Access", exact=True).select_option("send")
    page.get_by_label("For an agent only").check()
    page.get_by_label("Can access your direct messages").uncheck()
    page.get_by_role("button", name="Create").click()
    key = page.get_by_role("dialog").locator("code").first.inner_text()
    page.get_by_role("dialog").locator("footer").get_by_role("button", name="Close").click()
    row = page.get_by_role("listitem").filter(has_text="Helper")
    expect(row).to_contain_text("read and send · agent only · all your channels · never used")
    assert sent(town, key) == 200
    ann.go("narrow/channel/general/topic/agents")
    expect(page.get_by_text("via agent Helper")).to_be_visible()
    ann.go("settings/keys")
    expect(row).to_contain_text("Last used")
    row.get_by_role("button", name="Revoke key").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke key").click()
    expect(row).to_have_count(0)
    assert sent(town, key) == 401


def test_a_program_s_key_is_limited_and_expires(sqlite_site: Site, ann: Window) -> None:
    town, page = sqlite_site, ann.page
    ann.go("settings/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_label("Name").fill("Dashboard")
    page.get_by_label("Access", exact=True).select_option("read")
    page.get_by_label("Expiration").select_option(label="In 30 days")
    page.get_by_role("button", name="Create").click()
    key = page.get_by_role("dialog").locator("code").first.inner_text()
    page.get_by_role("dialog").locator("footer").get_by_role("button", name="Close").click()
    row = page.get_by_role("listitem").filter(has_text="Dashboard")
    expect(row).to_contain_text("read only · all your channels · direct messages · expires")
    auth = (town.ann.email, key)
    url = f"{town.server.url}/api/v1/users/me"
    assert httpx.get(url, auth=auth, timeout=60).status_code == 200
    assert httpx.delete(url, auth=auth, timeout=60).status_code == 403


def test_devices_are_listed_with_their_actions(sqlite_site: Site, ann: Window) -> None:
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        endpoint = "https://push.example.com/1"
        keys = {**Browser().keys, "name": "My phone"}
        ok(client.call_endpoint("push_subscriptions", "POST", {"endpoint": endpoint, **keys}))
    ann.go("settings/notifications")
    row = ann.page.get_by_role("listitem").filter(has_text="My phone")
    expect(row).to_contain_text("No notifications yet")
    row.get_by_role("button", name="Pause until morning").click()
    expect(row).to_contain_text("Paused")
    row.get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_a_request_continues_after_the_password_is_confirmed(
    sqlite_site: Site, shared_page: Open
) -> None:
    # (Ann's key is in use here.)
    ben = shared_page(sqlite_site.server, sqlite_site.ben)
    page, asked = ben.page, list[str]()

    def refused_once(route: Route) -> None:
        """Refuse once, as the server does some minutes after sign-in."""
        asked.append(route.request.url)
        if len(asked) == 1:
            route.fulfill(status=403, json=REFUSED)
        else:
            route.continue_()

    page.route("**/api_key/regenerate", refused_once)
    ben.go("settings/account")
    settled(page)
    page.get_by_role("button", name="Generate new API key").click()
    page.get_by_role("dialog").get_by_role("button", name="Generate new API key").click()
    again = page.get_by_role("dialog", name="Confirm your password")
    again.get_by_label("Password", exact=True).fill("not it at all")
    again.get_by_role("button", name="Continue").click()
    expect(again.get_by_role("alert")).to_have_text("Incorrect password.")
    again.get_by_label("Password", exact=True).fill(PASSWORD)
    again.get_by_role("button", name="Continue").click()
    expect(again).to_have_count(0)
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.get_by_text("zuliprc")).to_be_visible()
    assert len(asked) == 2
    # Later tests need the new key.
    sent = {"username": sqlite_site.ben.email, "password": PASSWORD}
    answer = httpx.post(f"{sqlite_site.server.url}/api/v1/fetch_api_key", data=sent, timeout=60)
    sqlite_site.ben = replace(sqlite_site.ben, api_key=answer.json()["api_key"])
    # Both refusals were intended.
    ben.troubles[:] = [t for t in ben.troubles if "400" not in t and "403" not in t]
