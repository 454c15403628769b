"""The most common actions work in Chromium, Firefox, and WebKit."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Playwright

from tests.browser.driving import SHOWN
from tests.browser.screens import BROWSERS, Screen, missing, screen
from tests.e2e.conftest import Site
from tests.e2e.server import PASSWORD

ARTICLE = f"main article{SHOWN}"
BOX = f"main [aria-label^='Message ']{SHOWN}"
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
    """The position of a reader at the end of the loaded messages stays when newer ones arrive."""
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


WRITTEN = """() => document.querySelector(
    "main textarea[aria-label^='Message ']:not([data-hidden] *)").value"""
"""The text in the conversation's text box."""
CONVERTING = """
(event) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {
    key: "Enter", bubbles: true, cancelable: true, ...event,
}))
"""
"""The Enter key that confirms an input method's choice. Safari sends it after the composition."""


def test_input_methods_selecting_and_pasting(ann: Screen, sqlite_site: Site) -> None:
    """Actions that work differently in each browser."""
    about = {
        "type": "stream",
        "to": "general",
        "topic": f"paste in {ann.browser}",
        "content": "Take **rye** flour\n\n* first\n* second",
    }
    auth = (sqlite_site.ben.email, sqlite_site.ben.api_key)
    httpx.post(f"{ann.site}/api/v1/messages", data=about, auth=auth).raise_for_status()
    ann.go(f"narrow/channel/general/topic/paste.20in.20{ann.browser}")
    ann.find(f"{ARTICLE} strong", "rye")

    # Confirming an input method's choice neither completes a name nor sends.
    ann.fill(BOX, "Ask @Be")
    ann.find("[role=option]", "Ben")
    for event in ({"isComposing": True}, {"keyCode": 229}):
        assert ann.evaluate(CONVERTING, event), "the key was handled"
    ann.find("[role=option]", "Ben")
    assert ann.evaluate(WRITTEN) == "Ask @Be"
    ann.press("Escape")
    ann.press("Control+a")
    ann.press("Control+x")
    ann.find_none("[role=option]")

    # Words of a message are selected with the mouse, without selecting the message.
    ann.select(f"{ARTICLE} .content p")
    ann.wait("() => getSelection().toString().trim() === 'Take rye flour'")
    assert not ann.evaluate("() => document.querySelector('main article.selected') !== null")

    # Copied text keeps its formatting as Markdown, and pasting can be undone.
    ann.press("Control+c")
    ann.click(BOX)
    ann.press("Control+v")
    ann.wait(f"(text) => ({WRITTEN})().includes(text)", "**rye** flour")
    if ann.browser != "webkit":  # WebKitGTK has no key to undo, not even on an empty page.
        ann.press("Control+z")
        ann.wait(f"() => ({WRITTEN})() === ''")

    if ann.browser == "firefox":
        return  # Clipboard events that scripts make there have no files.
    # An image from the clipboard is attached.
    ann.evaluate(
        """(css) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(64)], "image.png", {type: "image/png"}));
            const about = {bubbles: true, cancelable: true, clipboardData: data};
            document.querySelector(css).dispatchEvent(new ClipboardEvent("paste", about));
        }""",
        f"textarea{BOX.removeprefix('main ')}",
    )
    ann.find("main [aria-label='Files']", "image-20")
    ann.find("main [aria-label='Files']", "Uploaded")
    ann.click("main [aria-label^='Remove image-20']")
    ann.find_none("main [aria-label='Files']")


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
    ann.find_none("main", "Sending")
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
    ann.find("main [contenteditable=true]:focus")
    ann.type("Bake it ")
    ann.press("Control+b")
    ann.type("slowly")
    ann.find("main [contenteditable=true] strong", "slowly")
    ann.press("Control+Enter")
    ann.find(f"{ARTICLE} strong", "slowly")
    ann.find_none("main", "Sending")
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
    ann.find_none("body", "Can’t reach")


KEPT = """async (text) => {
    const done = (request) => new Promise((resolve, reject) => {
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
    });
    const known = await indexedDB.databases();
    if (!known.some((one) => one.name === "tertulia-offline")) return false;
    const database = await done(indexedDB.open("tertulia-offline"));
    try {
        const all = (store) => done(database.transaction(store).objectStore(store).getAll());
        const [[key], records] = [await all("keys"), await all("records")];
        for (const {iv, sealed} of records) {
            const plain = await crypto.subtle.decrypt({name: "AES-GCM", iv}, key, sealed);
            if (new TextDecoder().decode(plain).includes(text)) return true;
        }
        return false;
    } finally {
        database.close();
    }
}"""
"""Whether the browser keeps a message with this text for reading offline."""
SERVICE_WORKER = "() => 'serviceWorker' in navigator && navigator.serviceWorker.controller !== null"


@pytest.mark.slow
def test_reading_offline(ann: Screen, sqlite_site: Site) -> None:
    """Without the server, the client starts and shows what was read before."""
    server, place = sqlite_site.server, f"tides.20in.20{ann.browser}"
    about = {
        "type": "stream",
        "to": "general",
        "topic": f"tides in {ann.browser}",
        "content": "High at nine",
    }
    auth = (sqlite_site.ben.email, sqlite_site.ben.api_key)
    httpx.post(f"{ann.site}/api/v1/messages", data=about, auth=auth).raise_for_status()
    ann.go(f"narrow/channel/general/topic/{place}")
    ann.find(ARTICLE, "High at nine")
    ann.wait(SERVICE_WORKER)
    ann.wait(KEPT, "High at nine")
    server.stop()
    try:
        ann.evaluate("() => void setTimeout(() => location.reload())")
        ann.find("body", "Showing messages as of")
        ann.find(ARTICLE, "High at nine")
        write(ann, "Written at sea")
        ann.find(ARTICLE, "Written at sea")
    finally:
        server.start()
    ann.find_none("body", "Showing messages as of")
    ann.find_none("main", "Sending")
    assert sent(ann, sqlite_site, "Written at sea") == ["Written at sea"]


@pytest.mark.slow
def test_push_notifications_are_offered_where_they_exist(ann: Screen) -> None:
    """A browser without push notifications says so instead."""
    ann.go("settings/notifications")
    if ann.evaluate("() => 'PushManager' in window && 'serviceWorker' in navigator"):
        ann.find("main button", "Turn on notifications on this device")
    else:
        ann.find("main", "doesn’t support push notifications")
