"""Accessibility: axe checks every page against WCAG 2.2 AA in light and dark themes, on a phone,
with high contrast, and in forced colors."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import ViewportSize, expect

from tests.browser.conftest import Open
from tests.browser.driving import LAPTOP, PHONE, SHOWN, Window, settled, sign_in_resident, spilled
from tests.e2e.server import Server

AXE = Path(__file__).resolve().parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
COLORS = ["color-contrast", "link-in-text-block"]
"""The rules whose result differs between themes. A page's other properties are the same in all of
them."""
ENHANCED = ["color-contrast-enhanced"]
"""The contrast rule of 7:1."""
TABLET: ViewportSize = {"width": 1024, "height": 768}
CHOSEN = """() => {
    const ground = (colour) => {
        const probe = document.body.appendChild(document.createElement("i"));
        probe.style.backgroundColor = colour;
        const { backgroundColor } = getComputedStyle(probe);
        probe.remove();
        return backgroundColor;
    };
    const chosen = ground("SelectedItem");
    return chosen !== ground("Canvas")
        ? [...document.querySelectorAll("nav [aria-current], main [aria-pressed=true]")]
            .filter((one) => one.checkVisibility())
            .map((one) => getComputedStyle(one).backgroundColor === chosen)
        : [];
}"""
"""Whether each selected element is visible in forced colors."""
TINTED = """[...document.querySelectorAll("nav [aria-current] .tinted")].map(
    (one) => getComputedStyle(one).color ===
        getComputedStyle(one.closest("[aria-current]")).color)"""
"""Whether each colored icon in a selected row has the row's color."""
VIEWS = [
    "inbox",
    "recent",
    "catch-up",
    "feed",
    "narrow/is/mentioned",
    "narrow/is/starred",
    "narrow/is/dm",
    "narrow/has/image",
    "narrow/search/coffee",
    "drafts",
    "scheduled",
    "later",
    "nowhere",
]
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": LAPTOP, "color_scheme": "light"},
    "dark": {"viewport": LAPTOP, "color_scheme": "dark"},
    "phone": {"viewport": PHONE, "color_scheme": "light", "has_touch": True, "is_mobile": True},
}

GIVE = """
(element) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(99)], "a.pdf", {type: "application/pdf"}));
    const about = {bubbles: true, cancelable: true, clipboardData: data};
    element.dispatchEvent(new ClipboardEvent("paste", about));
}
"""
FORMATTED = """# Now
@**topic** of *all* ~~kinds~~, in #**general**: `code` and [a link](https://cafe.example)
* one
> said
```python
x = 1
```
1. first"""


@pytest.fixture(
    params=["light", *(pytest.param(look, marks=pytest.mark.slow) for look in ("dark", "phone"))]
)
def iris(request: pytest.FixtureRequest, demo_server: Server, new_page: Open) -> Window:
    """The demonstration's owner, in each theme. The page's content security policy would block axe,
    so it's bypassed."""
    found = new_page(demo_server, bypass_csp=True, reduced_motion="reduce", **LOOKS[request.param])
    sign_in_resident(found.context, demo_server, "iris@cafe.example")
    found.go("inbox")
    settled(found.page)
    found.page.add_script_tag(path=AXE)
    return found


def faults(window: Window, where: str) -> list[str]:
    """The violations that axe finds on the current page."""
    found = window.page.evaluate(
        """([tags, colors, enhanced]) => axe.run({
            runOnly: matchMedia("(prefers-contrast: more)").matches
                ? {type: "rule", values: enhanced}
                : matchMedia("(prefers-color-scheme: dark)").matches
                ? {type: "rule", values: colors}
                : {type: "tag", values: tags},
            resultTypes: ["violations"],
        })""",
        [TAGS, COLORS, ENHANCED],
    )
    return [
        f"{where}: {one['id']} ({one['help']}): {json.dumps(node['target'])} {node['html'][:160]}"
        for one in found["violations"]
        for node in one["nodes"][:3]
    ]


def visit(window: Window, places: list[str]) -> list[str]:
    """All violations on these pages, including content that overflows a phone or a tablet."""
    page, found = window.page, []
    is_phone = page.viewport_size == PHONE
    is_dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for place in places:
        window.go(place)
        settled(page)
        found += faults(window, place)
        # The dark theme has the same layout.
        if not is_dark:
            page.set_viewport_size(PHONE if is_phone else TABLET)
            found += [f"{place}: {one}" for one in spilled(page)]
            page.set_viewport_size(PHONE if is_phone else LAPTOP)
    return found


def test_views_are_accessible(iris: Window) -> None:
    hrefs = iris.page.evaluate(
        """[...document.querySelectorAll('#side a[href*="#narrow"]')]
            .map((one) => one.hash.slice(1))"""
    )
    channel = next(one for one in hrefs if "/channel/" in one)
    direct = next(one for one in hrefs if "/dm/" in one)
    places = [*VIEWS, channel, direct, channel.replace("narrow/channel", "topics/channel")]
    assert visit(iris, places) == []
    if iris.page.viewport_size == PHONE:
        return
    seen: list[bool] = []
    signs: list[bool] = []
    for place in ("narrow/search/coffee", channel, "inbox", "settings/preferences"):
        iris.go(place)
        settled(iris.page)
        iris.page.emulate_media(contrast="more")
        assert faults(iris, place) == []
        iris.page.emulate_media(contrast="no-preference", forced_colors="active")
        seen += iris.page.evaluate(CHOSEN)
        signs += iris.page.evaluate(TINTED)
        iris.page.emulate_media(forced_colors="none")
    assert len(seen) > 3
    assert all(seen)
    assert signs
    assert all(signs)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["settings", "organization", "channels", "groups"])
def test_settings_are_accessible(iris: Window, part: str) -> None:
    """Every settings page opens and has no violations."""
    iris.go(part)
    settled(iris.page)
    inside = iris.page.evaluate(
        f"""[...document.querySelectorAll('main a[href^="#{part}/"]')]
            .map((one) => one.hash.slice(1))"""
    )
    places = list(dict.fromkeys([part, *inside]))
    assert len(places) > 1
    # The first channels and groups represent all others.
    assert visit(iris, places if part in {"settings", "organization"} else places[:4]) == []


def test_dialogs_are_accessible(iris: Window, demo_server: Server) -> None:
    page, found = iris.page, []
    is_phone = page.viewport_size == PHONE
    iris.go("narrow/is/starred")
    settled(page)
    message = iris.message("Winter prices are in")
    message.scroll_into_view_if_needed()
    if is_phone and not message.get_by_role("toolbar").is_visible():
        message.tap(position={"x": 320, "y": 12})
    if not is_phone:
        message.hover()
    message.get_by_role("button", name="More").click()
    expect(page.get_by_role("menu")).to_be_visible()
    found += faults(iris, "menu of a message")
    page.keyboard.press("Escape")
    expect(page.get_by_role("menu")).to_be_hidden()
    message.get_by_role("button", name="Add reaction").last.click()
    expect(page.get_by_role("dialog")).to_be_visible()
    settled(page)
    found += faults(iris, "emoji")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.get_by_role("button", name="New message").click()
    settled(page)
    found += faults(iris, "new message")
    page.keyboard.press("Escape")
    # A file in a message, a rejected voice note, the notification preview, and undo.
    iris.go("narrow/channel/general/topic/files")
    settled(page)
    iris.box.evaluate(GIVE)
    expect(page.get_by_role("list", name="Files").get_by_text("Uploaded")).to_be_visible()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator(".file").last).to_contain_text("PDF ·")
    if not is_phone:
        page.locator(f"article[data-message]{SHOWN}").last.click(button="right")
        page.get_by_role("menuitem", name="Pin for everyone").click()
        page.get_by_role("button", name="1 pinned").click()
        expect(page.get_by_role("dialog", name="Pinned messages")).to_be_visible()
        found += faults(iris, "pinned messages")
        page.get_by_role("dialog").get_by_role("button", name="Unpin").click()
        expect(page.get_by_role("dialog")).to_be_hidden()
    iris.box.click()
    page.get_by_role("button", name="Record a voice note").click()
    expect(page.get_by_role("group", name="Voice note").get_by_role("alert")).to_be_visible()
    if not is_phone:
        iris.box.press("Enter")
        expect(page.get_by_role("group", name="Which key should send messages?")).to_be_visible()
    iris.box.fill("Now, @**topic**!")
    expect(page.get_by_role("list", name="Who will be notified")).to_be_visible()
    page.get_by_role("button", name="Schedule message").click()
    found += faults(iris, "files, a voice note, a call of all")
    page.get_by_role("menuitemradio", name="Allow undo for 20 seconds").click()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("button", name="Undo")).to_be_visible()
    found += faults(iris, "what can be undone")
    page.get_by_role("button", name="Undo").click()
    iris.box.fill(FORMATTED)
    page.get_by_role("button", name="Rich text").click()
    expect(iris.box.locator(".chip")).to_have_count(2)
    found += faults(iris, "rich text")
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox").last).to_be_focused()
    found += faults(iris, "search")
    page.keyboard.press("Escape")
    if not is_phone:  # (In this case it's behind another button.)
        for name in ("Custom…", "Set status"):
            page.locator("#own-menu").click()
            expect(page.get_by_role("menu")).to_be_visible()
            found += faults(iris, "one's own menu")
            page.get_by_role("menuitem", name=name).click()
            expect(page.get_by_role("dialog")).to_be_visible()
            found += faults(iris, name)
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_be_hidden()
    iris.go("inbox")
    page.get_by_role("button", name="Create channels").click()
    settled(page)
    found += faults(iris, "suggested channels")
    # New users see this instead of the owner's first steps.
    page.goto("about:blank")
    sign_in_resident(iris.context, demo_server, "theo@cafe.example")
    iris.go("inbox")
    expect(page.get_by_role("region", name="Quick tour")).to_be_visible()
    page.add_script_tag(path=AXE)
    found += faults(iris, "tour")
    assert found == []
