"""Integration bots in the settings: incoming and outgoing webhooks, feeds, and embedded bots."""

import json
import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx
import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, eventually
from tests.e2e.conftest import Site

FEED = (
    b"<rss version='2.0'><channel><title>The blog</title><item><guid>1</guid>"
    b"<title>It is out</title></item></channel></rss>"
)


class Program(BaseHTTPRequestHandler):
    """An external program: a bot's service, and a feed."""

    def do_GET(self) -> None:
        self._answer("application/rss+xml", FEED)

    def do_POST(self) -> None:
        told = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self._answer("application/json", json.dumps({"content": f"Done: {told['text']}"}).encode())

    def _answer(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def program() -> Iterator[str]:
    """The program's address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Program) as server:
        thread = Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


def new_bot(window: Window, name: str, kind: str, **fields: str) -> Locator:
    """Create a bot. Return its row."""
    page = window.page
    window.go("settings/your-bots")
    page.get_by_role("button", name="New bot").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(name)
    dialog.get_by_label("Name", exact=True).press("Tab")
    dialog.get_by_label("Type", exact=True).select_option(kind)
    for label, text in fields.items():
        dialog.get_by_label(label).fill(text)
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("listitem").filter(has_text=name)
    expect(row).to_be_visible()
    expect(dialog).to_have_count(0)
    return row


def pick(page: Page, label: str, option: str) -> None:
    """Choose an option in a picker of the dialog."""
    field = page.get_by_role("dialog").get_by_role("combobox", name=label).last
    field.fill(option)
    page.get_by_role("listbox").get_by_role("option").first.click()


def wait_for_message(window: Window, topic: str) -> None:
    """Return as soon as the topic has a message."""
    narrow = json.dumps([["topic", topic]])
    asked: dict[str, str | float | bool] = {
        "anchor": "newest",
        "num_before": 1,
        "num_after": 0,
        "narrow": narrow,
    }

    def is_said() -> bool:
        answer = window.context.request.get("/api/v1/messages", params=asked)
        assert answer.ok, answer.text()
        return bool(answer.json()["messages"])

    eventually(window.page, is_said)


def refresh_until(listed: Locator, text: str) -> None:
    """Load the list again until it contains the text, since the server notes a delivery only after
    its effect."""
    shown = listed.get_by_role("listitem").filter(has_text=text)

    def is_shown() -> bool:
        listed.get_by_role("button", name="Refresh").click()
        return shown.count() > 0

    eventually(listed.page, is_shown)


def test_an_incoming_webhook_is_addressed_signed_and_listed(
    bots_site: Site, shared_page: Open
) -> None:
    town = bots_site
    ann = shared_page(town.server, town.ann)
    page = ann.page
    new_bot(ann, "Leaks", "Incoming webhook").get_by_role("button", name="Webhook URL").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Service").select_option("GitHub")
    dialog.get_by_label("Send messages to").select_option("A channel")
    pick(page, "A channel", "general")
    dialog.get_by_label("Topic", exact=True).fill("pushes")
    pick(page, "Only these events", "issues")
    dialog.get_by_label("Only these branches").fill("main")
    address = dialog.locator("code")
    expect(address).to_contain_text(re.compile(r"/external/github\?api_key=\w+&stream=\d+"))
    expect(address).to_contain_text("&topic=pushes&only_events=")
    issue = {
        "action": "opened",
        "issue": {"number": 1, "title": "A leak", "html_url": "https://x.test/1", "body": ""},
        "repository": {"full_name": "chat", "name": "chat"},
        "sender": {"login": "ben"},
    }
    sent = httpx.post(address.inner_text(), json=issue, headers={"X-GitHub-Event": "issues"})
    assert sent.status_code == 200, sent.text
    refused = httpx.post(address.inner_text(), content=b"{", headers={"X-GitHub-Event": "issues"})
    assert refused.status_code == 400
    deliveries = dialog.locator("section").last
    refresh_until(deliveries, "The request body isn't valid JSON.")
    expect(deliveries.get_by_role("listitem")).to_have_count(2)
    expect(deliveries.get_by_role("listitem").first).to_contain_text(
        "The request body isn't valid JSON."
    )
    expect(deliveries.get_by_role("listitem").last).to_contain_text("Sent as message")
    dialog.get_by_label("Secret").fill("between us")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("button", name="Remove secret")).to_be_visible()
    unsigned = httpx.post(address.inner_text(), json=issue, headers={"X-GitHub-Event": "issues"})
    assert unsigned.status_code == 400
    dialog.locator("footer").get_by_role("button", name="Close").click()
    ann.go("narrow/channel/general/topic/pushes")
    expect(ann.message("A leak")).to_be_visible()


def test_an_outgoing_webhook_sends_a_command_and_posts_the_reply(
    bots_site: Site, shared_page: Open, program: str
) -> None:
    town = bots_site
    ann = shared_page(town.server, town.ann)
    page = ann.page
    row = new_bot(ann, "Deployer", "Outgoing webhook", **{"Endpoint URL": program})
    row.get_by_role("button", name="Outgoing webhook").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(program)
    dialog.get_by_label("Commands").fill("/Deploy")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("isn't a valid command name")
    dialog.get_by_label("Commands").fill("deploy")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Commands")).to_have_value("/deploy")
    token = dialog.locator("code").last.inner_text()
    dialog.get_by_role("button", name="Generate new token").click()
    expect(dialog.locator("code").last).not_to_have_text(token)
    dialog.locator("footer").get_by_role("button", name="Close").click()
    ann.go("narrow/channel/general/topic/ops")
    ann.say("/deploy staging")
    expect(ann.message("Done: staging")).to_be_visible()
    ann.go("settings/your-bots")
    row.get_by_role("button", name="Outgoing webhook").click()
    refresh_until(dialog, "Delivered")


def test_a_feed_is_followed_and_removed(bots_site: Site, shared_page: Open, program: str) -> None:
    town = bots_site
    ann = shared_page(town.server, town.ann)
    page = ann.page
    row = new_bot(ann, "Reader", "Incoming webhook")
    row.get_by_role("button", name="Webhook URL").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Feed URL").fill(f"{program}feed.xml")
    pick(page, "Channel for new entries", "general")
    dialog.get_by_role("button", name="Follow", exact=True).click()
    feeds = dialog.locator("section").filter(has_text="Feeds (RSS, Atom)")
    expect(feeds.get_by_role("listitem")).to_contain_text("feed.xml")
    wait_for_message(ann, "The blog")
    refresh_until(feeds, "The blog")
    feeds.get_by_role("button", name="Stop following").click()
    expect(feeds.get_by_role("listitem")).to_have_count(0)
    dialog.locator("footer").get_by_role("button", name="Close").click()
    ann.go("narrow/channel/general/topic/The.20blog")
    expect(ann.message("It is out")).to_be_visible()


def test_an_embedded_bot_is_chosen_and_configured(bots_site: Site, shared_page: Open) -> None:
    ann = shared_page(bots_site.server, bots_site.ann)
    ann.go("settings/your-bots")
    page = ann.page
    page.get_by_role("button", name="New bot").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("Images")
    dialog.get_by_label("Name", exact=True).press("Tab")
    dialog.get_by_label("Type", exact=True).select_option("Embedded bot")
    expect(dialog.get_by_role("button", name="Create")).to_be_disabled()
    dialog.get_by_label("Program").select_option("giphy")
    dialog.get_by_label("key", exact=True).fill("secret")
    dialog.get_by_role("button", name="Create").click()
    row = page.get_by_role("listitem").filter(has_text="Images")
    row.get_by_role("button", name="Recent deliveries").click()
    expect(dialog).to_contain_text("No deliveries yet")
    dialog.locator("footer").get_by_role("button", name="Close").click()
    row.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("key", exact=True)).to_have_value("")
    dialog.get_by_label("key", exact=True).fill("another")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
