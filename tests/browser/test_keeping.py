"""Nothing is lost, and everything is found again: files, drafts, places, searches."""

import base64
import io
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Town
from tests.e2e.server import Account, Server

GIVE = """
(element, {how, type, content}) => {
    const bytes = Uint8Array.from(atob(content), (letter) => letter.charCodeAt(0));
    const data = new DataTransfer();
    data.items.add(new File([bytes], "hat.png", {type}));
    const about = {bubbles: true, cancelable: true};
    const event = how === "paste"
        ? new ClipboardEvent("paste", {...about, clipboardData: data})
        : new DragEvent("drop", {...about, dataTransfer: data});
    element.dispatchEvent(event);
}
"""


def picture() -> str:
    """A small PNG as Base64."""
    written = io.BytesIO()
    Image.new("RGB", (240, 160), "#9c4a1f").save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()


def send(server: Server, account: Account, topic: str, contents: list[str]) -> None:
    """Have somebody send these, in order but for what goes at once."""
    auth = (account.email, account.api_key)
    with httpx.Client(base_url=server.url, auth=auth, timeout=60) as http:

        def one(content: str) -> None:
            about = {"type": "stream", "to": "general", "topic": topic, "content": content}
            assert http.post("/api/v1/messages", data=about).status_code == 200

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(one, contents))


@pytest.fixture
def ann(sqlite_town: Town, opened: Open) -> Window:
    return opened(sqlite_town.server, sqlite_town.ann)


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_file_that_is_given_to_the_box_is_sent(
    sqlite_town: Town, ann: Window, opened: Open, how: str
) -> None:
    place = f"narrow/channel/general/topic/{how}"
    ann.go(place)
    content = {"how": how, "type": "image/png", "content": picture()}
    ann.box.evaluate(GIVE, content)
    expect(ann.box).to_have_value(re.compile(r"\[hat\.png\]\(/user_uploads/"))
    ann.page.get_by_role("button", name="Preview").click()
    expect(ann.page.get_by_role("link", name="hat.png").first).to_be_visible()
    ann.page.get_by_role("button", name="Go on writing").click()
    ann.box.press("Control+Enter")

    ben = opened(sqlite_town.server, sqlite_town.ben)
    ben.go(place)
    shown = ben.page.get_by_role("article").get_by_role("img").last
    expect(shown).to_be_visible()
    ben.page.get_by_role("article").locator("a img").first.click()
    expect(ben.page.get_by_role("dialog")).to_be_visible()
    ben.page.keyboard.press("Escape")
    expect(ben.page.get_by_role("dialog")).to_be_hidden()


def test_what_was_begun_is_there_after_a_reload(ann: Window) -> None:
    ann.go("narrow/channel/general/topic/drafts")
    ann.box.press_sequentially("A thought that is not")
    expect(ann.link("Drafts")).to_contain_text("1")
    ann.page.reload()
    expect(ann.box).to_have_value("A thought that is not")
    ann.go("drafts")
    expect(ann.page.get_by_role("main").get_by_text("A thought that is not")).to_be_visible()


def test_a_search_is_helped_along_and_finds(sqlite_town: Town, ann: Window) -> None:
    send(sqlite_town.server, sqlite_town.ben, "birds", ["A wren is small", "A crow is not"])
    ann.go("inbox")
    expect(ann.page.get_by_role("heading", name="Inbox")).to_be_visible()
    ann.page.keyboard.press("/")
    search = ann.page.get_by_role("combobox").last
    search.press_sequentially("sender:be")
    expect(ann.page.get_by_role("option", name="Ben").first).to_be_visible()
    search.press("Tab")
    search.press_sequentially(" wren")
    search.press("Enter")
    expect(ann.message("A wren is small")).to_be_visible()
    expect(ann.message("A crow is not")).to_be_hidden()


def test_a_long_channel_keeps_its_place_when_it_is_scrolled(sqlite_town: Town, ann: Window) -> None:
    """Through hundreds of messages upwards and down again: what one looks at stays where it is."""
    lines = [f"Line {number}" + "\n\nand more" * (number % 3) for number in range(1200)]
    send(sqlite_town.server, sqlite_town.ben, "long", lines)
    page = ann.page
    for _ in range(3):
        ann.go("narrow/channel/general/topic/long")
        page.reload()
        expect(ann.message("Line").first).to_be_visible()
        page.keyboard.press("End")
        expect(ann.message("Line 1199")).to_be_in_viewport()
        # What is in the middle of the view keeps its place while more is put above it.
        up = page.evaluate(MIDDLE_MOVES, ["up", 90])
        assert up["loaded"] > 300, up
        down = page.evaluate(MIDDLE_MOVES, ["down", 40])
        if max(up["worst"], down["worst"]) <= 2:
            break
        # Where the machine is busy, what comes may be painted before it is known how far one has
        # scrolled. That is not to be so each time.
    else:
        raise AssertionError((up, down))


MIDDLE_MOVES = """
async ([way, times]) => {
    const feed = () => document.querySelector("main");
    const scroller = () => {
        let one = feed().querySelector("article");
        while (!/auto|scroll/.test(getComputedStyle(one).overflowY)) one = one.parentElement;
        return one;
    };
    const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    const middle = () => {
        const {top, height} = scroller().getBoundingClientRect();
        return [...feed().querySelectorAll("article")].find(
            (one) => one.getBoundingClientRect().bottom > top + height / 2);
    };
    const seen = new Set();
    let worst = 0;
    for (let turn = 0; turn < times; turn++) {
        scroller().scrollBy(0, (way === "up" ? -0.8 : 0.8) * scroller().clientHeight);
        await painted();
        const one = middle();
        const before = one.getBoundingClientRect().top;
        for (let frame = 0; frame < 4; frame++) await painted();
        if (one.isConnected)
            worst = Math.max(worst, Math.abs(one.getBoundingClientRect().top - before));
        for (const each of feed().querySelectorAll("article")) seen.add(each.textContent);
    }
    return {loaded: seen.size, worst};
}
"""
