"""What people do most works in Chromium, Firefox, and WebKit."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Playwright

from tests.browser.screens import BROWSERS, Screen, missing, screen
from tests.e2e.conftest import Site
from tests.e2e.server import PASSWORD

ARTICLE = "main article"
BOX = "main [aria-label^='Message ']"
"""The conversation's text box."""


@pytest.fixture(scope="module", params=BROWSERS)
def ann(
    request: pytest.FixtureRequest,
    driver: Playwright,
    sqlite_site: Site,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Screen]:
    """Ann, signed in with her password in each browser."""
    browser: str = request.param
    if packages := missing(browser):
        pytest.skip(packages)
    directory = tmp_path_factory.mktemp(browser)
    with screen(browser, driver, directory, sqlite_site.server.url) as found:
        found.open(found.site)
        found.fill("input[type=email]", sqlite_site.ann.email)
        found.fill("input[type=password]", PASSWORD)
        found.press("Enter")
        found.find("main h1", "Inbox")
        yield found


def write(screen: Screen, text: str) -> None:
    """Send a message to the conversation that is shown."""
    screen.fill(BOX, text)
    screen.press("Control+Enter")


def sent(ann: Screen, site: Site, text: str) -> list[str]:
    """The contents of messages with this text that this browser sent."""
    asked = {"anchor": "newest", "num_before": "50", "num_after": "0", "apply_markdown": "false"}
    auth = (site.ann.email, site.ann.api_key)
    answer = httpx.get(f"{site.server.url}/api/v1/messages", params=asked, auth=auth, timeout=60)
    mine = [one for one in answer.json()["messages"] if one["subject"].endswith(ann.browser)]
    return [one["content"] for one in mine if text in one["content"]]


def test_reading_writing_and_searching(ann: Screen, sqlite_site: Site) -> None:
    about = {
        "type": "stream",
        "to": "general",
        "topic": f"bread in {ann.browser}",
        "content": "Rye or spelt?",
    }
    auth = (sqlite_site.ben.email, sqlite_site.ben.api_key)
    httpx.post(f"{ann.site}/api/v1/messages", data=about, auth=auth).raise_for_status()
    ann.go(f"narrow/channel/general/topic/bread.20in.20{ann.browser}")
    ann.find(ARTICLE, "Rye or spelt?")
    ann.fill(BOX, "Rye, with @Be")
    ann.find("[role=option]", "Ben")
    ann.press("Enter")
    ann.press("Control+Enter")
    ann.find(ARTICLE, "Rye, with @Ben")
    ann.press("Control+k")
    ann.find("[role=dialog] input, dialog input")
    ann.type("spelt")
    ann.find("[role=option]", "Search")
    ann.press("Enter")
    ann.find("main mark, main .highlight", "spelt")


@pytest.mark.slow
def test_files_editing_formatting_and_being_offline(
    ann: Screen, sqlite_site: Site, tmp_path: Path
) -> None:
    ann.go(f"narrow/channel/general/topic/cake.20in.20{ann.browser}")
    ann.find(BOX)
    recipe = tmp_path / "recipe.txt"
    recipe.write_text("Flour and eggs")
    ann.choose("main input[type=file]", recipe)
    ann.find("main", "Uploaded")
    write(ann, "As promised")
    ann.find(f"{ARTICLE} a", "recipe.txt")

    # Edit.
    write(ann, "Without shugar")
    ann.find(ARTICLE, "Without shugar")
    ann.click(BOX)
    ann.press("ArrowUp")
    editor = "[aria-label='Edit message']"
    ann.find(editor, "Without shugar")
    ann.press("Control+a")
    ann.type("Without sugar")
    ann.press("Control+Enter")
    ann.find(ARTICLE, "Without sugar")
    ann.find_none(editor)

    # Format.
    ann.click(BOX)
    ann.press("Alt+m")
    ann.find("main [contenteditable=true]")
    ann.type("Bake it ")
    ann.press("Control+b")
    ann.type("slowly")
    ann.find("main [contenteditable=true] strong", "slowly")
    ann.press("Control+Enter")
    ann.find(f"{ARTICLE} strong", "slowly")
    assert sent(ann, sqlite_site, "slowly") == ["Bake it **slowly**"]
    ann.click(BOX)
    # The same editor shows Markdown as it is, and writes the next message.
    ann.press("Alt+m")

    # A message that is written while the server is away is sent once, when it's back.
    sqlite_site.server.stop()
    write(ann, "From the cellar")
    ann.find("main", "Sending")
    sqlite_site.server.start()
    ann.find_none("main", "Sending")
    ann.find(ARTICLE, "From the cellar")
    assert sent(ann, sqlite_site, "From the cellar") == ["From the cellar"]
    assert not re.search("can’t reach", ann.evaluate("() => document.body.innerText"), re.I)
