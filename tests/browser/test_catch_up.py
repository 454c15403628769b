"""Catching up on missed messages, with and without a language model."""

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import PHONE
from tests.e2e.conftest import Site, running
from tests.e2e.server import Account, Server


class Model(BaseHTTPRequestHandler):
    """A language model that writes one word at a time, and links to other sites."""

    asked: list[dict[str, Any]]
    may_end: threading.Event

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        self.asked.append(json.loads(self.rfile.read(length)))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        words = [
            "- Tea at",
            " five [1].",
            " <img src=x onerror=alert(1)>",
            " [go](https://evil.test)",
        ]
        for number, word in enumerate(words):
            if number == 2:
                self.may_end.wait(120)
            piece = {"choices": [{"delta": {"content": f"{word} and some more of it"}}]}
            self.wfile.write(b"data: " + json.dumps(piece).encode() + b"\n\n")
            self.wfile.flush()

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture(scope="module")
def model() -> Iterator[type[Model]]:
    Model.asked, Model.may_end = [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    Model.port = server.server_port  # type: ignore[attr-defined]
    yield Model
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def site(model: type[Model], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    port = model.port  # type: ignore[attr-defined]
    settings = f'llm_url = "http://127.0.0.1:{port}/v1"\nllm_model = "small"\n'
    with running(tmp_path_factory.mktemp("site"), settings=settings) as site:
        yield site


def client(server: Server, account: Account) -> httpx.Client:
    auth = (account.email, account.api_key)
    return httpx.Client(base_url=f"{server.url}/api/v1", auth=auth, timeout=60)


def say(http: httpx.Client, topic: str, content: str) -> int:
    about = {"type": "stream", "to": "general", "topic": topic, "content": content}
    about["read_by_sender"] = "true"
    found: int = http.post("/messages", data=about).raise_for_status().json()["id"]
    return found


def test_what_was_missed_is_read_from_top_to_bottom(
    site: Site, model: type[Model], shared_page: Open
) -> None:
    server = site.server
    with client(server, site.ben) as ben_http:
        ben_http.post("/mark_all_as_read").raise_for_status()
    with client(server, site.ann) as http:
        say(http, "tea", "Tea at five?")
        decided = say(http, "tea", "So it is: tea at five.")
        http.post(f"/messages/{decided}/reactions", data={"emoji_name": "check"}).raise_for_status()
        say(http, "cake", "Who brings cake?")
    ben = shared_page(server, site.ben)
    page = ben.page
    ben.go("inbox")
    page.get_by_role("button", name="Catch up").click()
    rows = page.locator("[data-missed]")
    expect(rows).to_have_count(2)
    expect(rows.nth(0)).to_contain_text("cake")
    tea = rows.nth(1)
    expect(tea).to_contain_text("2 unread messages")
    expect(tea).to_contain_text("Ann")
    expect(tea.get_by_role("heading", name="Decisions")).to_be_visible()
    assert model.asked == []  # Nothing is sent before anyone asks.

    # By keyboard, with a way back.
    page.keyboard.press("j")
    page.keyboard.press("j")
    expect(tea.get_by_role("link").first).to_be_focused()
    page.keyboard.press("m")
    expect(tea).to_contain_text("Caught up")
    page.get_by_role("button", name="Undo").click()
    expect(tea).not_to_contain_text("Caught up")

    # A summary appears while it's written, and links only to its messages.
    tea.get_by_role("button", name="Summarize").click()
    summary = tea.get_by_role("region", name="Summary")
    expect(summary).to_contain_text("Tea at")
    expect(summary).to_have_attribute("aria-busy", "true")
    expect(summary).not_to_contain_text("evil.test")
    model.may_end.set()
    expect(summary).to_have_attribute("aria-busy", "false")
    expect(summary).to_contain_text("[go](https://evil.test)")
    expect(summary.locator("img")).to_have_count(0)
    expect(summary.get_by_role("link")).to_have_count(1)
    summary.get_by_role("link").click()
    expect(page.get_by_text("Tea at five?").first).to_be_visible()

    # From the topic's menu.
    page.get_by_role("button", name="Topic actions").click()
    page.get_by_role("menuitem", name="Catch up").click()
    expect(page.get_by_role("heading", name="Catch up on #general > tea")).to_be_visible()


def test_conversations_are_shown_however_old_their_messages_are(
    sqlite_site: Site, shared_page: Open
) -> None:
    """Mentions come first, even if hundreds of messages are newer."""
    server = sqlite_site.server
    with client(server, sqlite_site.ann) as http:
        say(http, "tea", "Which tea, @**Ben**?")
        for number in range(450):
            say(http, "log", f"Line {number}")
    ben = shared_page(server, sqlite_site.ben, viewport=PHONE, has_touch=True, is_mobile=True)
    page = ben.page
    ben.go("catch-up")
    rows = page.locator("[data-missed]")
    expect(rows.nth(0)).to_contain_text("Which tea, @Ben?")
    expect(rows.nth(1)).to_contain_text("Line 449")
    expect(rows.nth(1)).to_contain_text("Ann")
    # Phones have no keys to mention.
    expect(page.get_by_text("What you missed")).to_have_text("What you missed, by conversation.")
    ben.go("narrow/channel/general/topic/log")
    newest = page.get_by_role("button", name="new messages")
    expect(newest).to_have_text(re.compile(r"4\d\d new messages"))
