"""Agents' keys: made in the settings, used, and taken away."""

import httpx
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Town

ASKED = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "send_message",
        "arguments": {"channel": "general", "topic": "agents", "text": "From a machine."},
    },
}


def sent(town: Town, key: str) -> int:
    """The status of a message that the agent wants to send."""
    headers = {"Authorization": f"Bearer {key}", "MCP-Protocol-Version": "2025-11-25"}
    address = f"{town.server.url}/mcp"
    return httpx.post(address, json=ASKED, headers=headers, timeout=60).status_code


def test_a_key_is_made_used_and_taken_away(sqlite_town: Town, opened: Open) -> None:
    town = sqlite_town
    ann = opened(town.server, town.ann)
    page = ann.page
    ann.go("settings/agents")
    page.get_by_role("button", name="New agent").click()
    page.get_by_label("Name").fill("Helper")
    page.get_by_label("It may write").check()
    page.get_by_role("button", name="Create").click()
    key = page.get_by_role("dialog").locator("code").first.inner_text()
    page.get_by_role("dialog").get_by_role("button", name="Close").last.click()
    row = page.get_by_role("listitem").filter(has_text="Helper")
    expect(row).to_contain_text("reads and writes · all your channels · never used")
    assert sent(town, key) == 200
    ann.go("narrow/channel/general/topic/agents")
    expect(page.get_by_text("by agent Helper")).to_be_visible()
    ann.go("settings/agents")
    expect(row).to_contain_text("Last used")
    row.get_by_role("button", name="Take the key away").click()
    page.get_by_role("dialog").get_by_role("button", name="Take the key away").click()
    expect(row).to_have_count(0)
    assert sent(town, key) == 401
    assert ann.troubles == []
