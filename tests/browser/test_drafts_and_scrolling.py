"""Files, drafts, scroll positions, and searches are kept."""

import base64
import io
import re
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from PIL import Image
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.browser.driving import Window, holding
from tests.e2e.conftest import Site
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
    """A small PNG in Base64."""
    written = io.BytesIO()
    Image.new("RGB", (240, 160), "#9c4a1f").save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()


def send(server: Server, account: Account, topic: str, contents: list[str]) -> None:
    """Send these messages as someone, in order except for those sent concurrently."""
    auth = (account.email, account.api_key)
    with httpx.Client(base_url=server.url, auth=auth, timeout=60) as http:

        def one(content: str) -> None:
            about = {"type": "stream", "to": "general", "topic": topic, "content": content}
            assert http.post("/api/v1/messages", data=about).status_code == 200

        with ThreadPoolExecutor(8) as threads:
            list(threads.map(one, contents))


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    return shared_page(sqlite_site.server, sqlite_site.ann)


@pytest.fixture
def newcomer(sqlite_site: Site, new_page: Open) -> Window:
    """Ann, with a client that hasn't loaded any messages yet."""
    return new_page(sqlite_site.server, sqlite_site.ann)


HOW = ["at once", "slowly", "on a slow machine"]
"""How responses arrive."""
LINES = 600


@pytest.fixture(scope="module")
def long(sqlite_site: Site) -> str:
    """The topic of a long conversation. Its tests come first, because other open windows would
    receive every message, which takes longer than the scrolling."""
    lines = [f"Line {number}" + "\n\nand more" * (number % 3) for number in range(LINES)]
    send(sqlite_site.server, sqlite_site.ben, "long", lines[:-1])
    send(sqlite_site.server, sqlite_site.ben, "long", lines[-1:])
    return "narrow/channel/general/topic/long"


@pytest.mark.parametrize("how", HOW)
def test_scrolling_through_a_long_channel_keeps_the_position(
    newcomer: Window, long: str, how: str
) -> None:
    """Scroll up and down through hundreds of messages: the visible ones don't move."""
    ann, page = newcomer, newcomer.page
    if how == "slowly":
        page.add_init_script(SLOW_ANSWERS)
    ann.go(long)
    expect(ann.message("Line").first).to_be_visible()
    many = 250
    if how == "on a slow machine":
        many = 100  # Keep the processor busy, so that it's slow.
        devtools = page.context.new_cdp_session(page)
        devtools.send("Emulation.setCPUThrottlingRate", {"rate": 6})
    page.keyboard.press("End")
    expect(ann.message(f"Line {LINES - 1}")).to_be_in_viewport()
    # The message in the middle of the view doesn't move when others are added above it.
    up = page.evaluate(SCROLL, {"by": -0.8, "messages": many})
    assert up["messages"] >= many, up
    assert up["worst"] <= 2, up
    down = page.evaluate(SCROLL, {"by": 0.8, "messages": many * 0.6})
    assert down["messages"] >= many * 0.6, down
    assert down["worst"] <= 2, down


@pytest.mark.parametrize("when", ["setTimeout", "requestAnimationFrame"])
def test_content_that_grows_during_scrolling_does_not_move_the_view(
    ann: Window, long: str, when: str
) -> None:
    """Timers fire before the scroll event, which belongs to the previous frame."""
    page = ann.page
    ann.go(long)
    expect(ann.message("Line").first).to_be_visible()
    page.keyboard.press("End")
    expect(ann.message(f"Line {LINES - 1}")).to_be_in_viewport()
    page.evaluate(SCROLL, {"by": -0.8, "messages": 80})
    moved = page.evaluate(GROW, when)
    assert abs(moved - 150) <= 2


def test_the_end_of_loaded_messages_is_not_the_end_of_the_conversation(
    sqlite_site: Site, newcomer: Window, long: str
) -> None:
    """A reader at the end of the loaded messages stays there when newer ones arrive."""
    ann, page = newcomer, newcomer.page
    auth = (sqlite_site.ann.email, sqlite_site.ann.api_key)
    about: dict[str, str | int] = {
        "anchor": "newest",
        "num_before": "32",
        "num_after": "0",
        "narrow": '[["channel", "general"], ["topic", "long"]]',
    }
    found = httpx.get(f"{ann.site}/api/v1/messages", params=about, auth=auth).json()["messages"]
    # The first view loads fewer.
    at_first = 20
    let_go = holding(ann, lambda url: "num_before=0&" in url)
    ann.go(f"{long}/near/{found[0]['id']}")
    # The words are there before the client.
    expect(ann.box).to_be_visible()
    expect(page.locator(f"[data-message='{found[0]['id']}']")).to_be_in_viewport()
    last = page.locator(f"[data-message='{found[at_first]['id']}']")
    page.evaluate(SCROLL, {"by": 0.8, "messages": LINES, "turns": 20})
    expect(last).to_be_in_viewport()
    let_go()
    expect(page.locator(f"[data-message='{found[at_first + 1]['id']}']")).to_be_attached()
    page.evaluate(SCROLL, {"by": 0, "messages": LINES, "turns": 1})
    expect(last).to_be_in_viewport()
    expect(ann.message(f"Line {LINES - 1}")).not_to_be_in_viewport()


@pytest.mark.parametrize("how", ["paste", "drop"])
def test_a_dropped_file_is_sent(
    sqlite_site: Site, ann: Window, shared_page: Open, how: str
) -> None:
    place = f"narrow/channel/general/topic/{how}"
    ann.go(place)
    content = {"how": how, "type": "image/png", "content": picture()}
    ann.box.evaluate(GIVE, content)
    # The file appears next to the text, not in it, with a preview.
    files = ann.page.get_by_role("list", name="Files")
    expect(files.get_by_text("Uploaded")).to_be_visible()
    expect(files.locator("img")).to_have_attribute("src", re.compile("/user_uploads/"))
    expect(ann.box).to_have_value("")
    ann.page.get_by_role("button", name="Preview").click()
    expect(ann.page.get_by_role("link", name="hat.png").first).to_be_visible()
    ann.page.get_by_role("button", name="Continue editing").click()
    ann.box.press("Control+Enter")

    ben = shared_page(sqlite_site.server, sqlite_site.ben)
    ben.go(place)
    shown = ben.page.get_by_role("article").get_by_role("img").last
    expect(shown).to_be_visible()
    ben.page.get_by_role("article").locator("a img").first.click()
    expect(ben.page.get_by_role("dialog")).to_be_visible()
    ben.page.keyboard.press("Escape")
    expect(ben.page.get_by_role("dialog")).to_be_hidden()


def test_drafts_survive_a_reload(ann: Window) -> None:
    ann.go("narrow/channel/general/topic/drafts")
    ann.box.press_sequentially("A thought that is not")
    expect(ann.link("Drafts")).to_contain_text("1")
    ann.page.reload()
    expect(ann.box).to_have_value("A thought that is not")
    ann.go("drafts")
    expect(ann.page.get_by_role("main").get_by_text("A thought that is not")).to_be_visible()
    ann.go("narrow/channel/general/topic/drafts")
    ann.box.fill("")


def test_search_suggestions_lead_to_results(sqlite_site: Site, ann: Window) -> None:
    send(sqlite_site.server, sqlite_site.ben, "birds", ["A wren is small", "A crow is not"])
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


def test_a_search_never_drops_a_filter(sqlite_site: Site, ann: Window) -> None:
    """A unique prefix of a name is enough. A filter without meaning is reported, not dropped."""
    send(sqlite_site.server, sqlite_site.ben, "links", ["See https://example.com/ben"])
    send(sqlite_site.server, sqlite_site.ann, "links", ["See https://example.com/ann"])
    page = ann.page
    ann.go("inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    page.keyboard.press("/")
    search = page.get_by_role("combobox").last
    search.press_sequentially("sender:zoe has:link")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("No one is named “zoe”")
    search.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert "narrow" not in page.url
    search.fill("sender:zoe")
    search.press("Enter")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    assert "narrow" not in page.url

    search.fill("")
    search.press_sequentially("has:link sender:be")
    search.press("Enter")
    expect(page.get_by_role("dialog")).to_be_hidden()
    expect(ann.message("example.com/ben")).to_be_visible()
    expect(ann.message("example.com/ann")).to_be_hidden()


FEED = """
const scroller = document.querySelector("main [role=region]");
const articles = () => [...scroller.querySelectorAll("article")];
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
const middle = () => {
    const {top, height} = scroller.getBoundingClientRect();
    return articles().find((one) => one.getBoundingClientRect().bottom > top + height / 2);
};
"""
SCROLL = f"""
async ({{by, messages, turns = 400}}) => {{
    {FEED}
    const seen = new Set();
    let worst = 0;
    for (let turn = 0; turn < turns && seen.size < messages; turn++) {{
        scroller.scrollBy(0, by * scroller.clientHeight);
        await painted();
        const one = middle();
        const before = one.getBoundingClientRect().top;
        for (let frame = 0; frame < 4; frame++) await painted();
        if (one.isConnected)
            worst = Math.max(worst, Math.abs(one.getBoundingClientRect().top - before));
        for (const each of articles()) seen.add(each.textContent);
    }}
    return {{messages: seen.size, worst}};
}}
"""
"""Scroll in steps until this many messages or steps have been seen. Return the largest distance by
which the message in the middle moved by itself."""
GROW = f"""
async (when) => {{
    {FEED}
    await painted();
    const one = middle();
    const before = one.getBoundingClientRect().top;
    window[when](() => {{
        scroller.scrollBy(0, -150);
        articles()[0].style.paddingTop = "120px";
    }});
    for (let frame = 0; frame < 10; frame++) await painted();
    return one.getBoundingClientRect().top - before;
}}
"""
"""Scroll up and make a row above taller at the same time. Return how far visible messages moved."""
SLOW_ANSWERS = """
const ask = window.fetch;
window.fetch = async (...asked) => {
    const answer = await ask(...asked);
    if (String(asked[0]).includes("/messages?")) await new Promise((done) => setTimeout(done, 700));
    return answer;
};
"""
"""Delay responses so that the end of the loaded messages can be reached."""
