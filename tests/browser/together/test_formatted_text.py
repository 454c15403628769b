"""Formatted text, with a key to switch to Markdown."""

import re
from typing import Any

import httpx
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Site

PASTE = """
(element, [html, text]) => {
    const data = new DataTransfer();
    data.setData("text/html", html);
    data.setData("text/plain", text);
    const about = {bubbles: true, cancelable: true, clipboardData: data};
    element.dispatchEvent(new ClipboardEvent("paste", about));
}
"""
DROP = """
(element) => {
    const data = new DataTransfer();
    data.items.add(new File(["flour"], "shopping.txt", {type: "text/plain"}));
    const about = {bubbles: true, cancelable: true, dataTransfer: data};
    element.dispatchEvent(new DragEvent("drop", about));
}
"""
TWICE = """
async (button) => {
    button.click();
    for (let turn = 0; turn < 20; turn += 1) await null;
    getSelection().collapse(document.activeElement, 0);
    button.click();
}
"""
"""Press a button twice without a pause. Chromium may move the caret of a hidden element to its
start, as here, without moving the focus."""
EDITOR = re.compile(r"/FormattedField-[\w-]+\.js")


def last_sent(site: Site) -> dict[str, Any]:
    """The Markdown of the topic's newest message."""
    narrow = '[["channel", "general"], ["topic", "bread"]]'
    answer = httpx.get(
        f"{site.server.url}/api/v1/messages",
        params={
            "narrow": narrow,
            "anchor": "newest",
            "num_before": 1,
            "num_after": 0,
            "apply_markdown": "false",
        },
        auth=(site.ann.email, site.ann.api_key),
        timeout=60,
    ).json()
    found: dict[str, Any] = answer["messages"][-1]
    return found


def is_plain(box: Locator) -> bool:
    return bool(box.evaluate("(element) => element instanceof HTMLTextAreaElement"))


def test_formatted_text_is_sent_as_markdown(sqlite_site: Site, shared_page: Open) -> None:
    """Writing, switching, completing, pasting, undoing, sending, and editing; and an error if the
    editor can't be loaded."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, box = ann.page, ann.box
    switch = page.get_by_role("button", name="Rich text")
    ann.go("narrow/channel/general/topic/bread")
    box.fill("Bake **rye**")

    page.route(EDITOR, lambda route: route.abort())
    box.press("Alt+m")
    expect(page.get_by_text("Rich text couldn’t be loaded")).to_be_visible()
    expect(switch).to_have_attribute("aria-pressed", "false")
    assert is_plain(box)
    page.unroute(EDITOR)

    # Markup characters are visible only around the caret, which hasn't moved.
    box.press("ArrowLeft")
    switch.click()
    expect(box).to_have_attribute("contenteditable", "true")
    expect(switch).to_have_attribute("aria-pressed", "true")
    expect(box).to_be_focused()
    expect(box.locator("strong")).to_have_text("rye")
    expect(box).to_have_text("Bake **rye**")
    page.keyboard.press("End")
    page.keyboard.type(" and ")
    expect(box).to_have_text("Bake rye and ")
    page.keyboard.press("Control+i")
    page.keyboard.type("spelt")
    page.keyboard.press("Alt+m")
    expect(box).to_have_text("Bake **rye** and *spelt*")
    expect(box.locator("strong")).to_have_count(0)
    page.keyboard.type("!")
    page.keyboard.press("Alt+m")
    expect(box.locator("em")).to_have_text("spelt!")

    # An input method can compose within formatted text.
    keyboard = page.context.new_cdp_session(page)
    for text in ("n", "に", "にほ"):
        at = len(text)
        composed = {"text": text, "selectionStart": at, "selectionEnd": at}
        keyboard.send("Input.imeSetComposition", composed)
    keyboard.send("Input.insertText", {"text": "日本"})
    expect(box.locator("em")).to_have_text("spelt!日本")
    page.keyboard.press("Backspace")
    page.keyboard.press("Backspace")
    expect(box.locator("em")).to_have_text("spelt!")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowRight")
    page.keyboard.type("?")
    expect(box.locator("em")).to_have_text("spelt!?")

    # Undo works across a switch of forms.
    page.keyboard.press("Control+z")
    expect(box.locator("em")).to_have_text("spelt!")
    page.keyboard.press("Control+y")
    expect(box.locator("em")).to_have_text("spelt!?")

    # A selection becomes formatted, and one key removes the format.
    page.keyboard.press("Control+End")
    page.keyboard.type(" @Ben")
    expect(page.get_by_role("option").first).to_contain_text("Ben")
    expect(box).to_have_attribute("aria-activedescendant", re.compile("offers-0$"))
    page.keyboard.press("Enter")
    expect(box.locator(".chip")).to_have_text("@Ben")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Backspace")
    expect(box.locator(".chip")).to_have_count(0)
    page.keyboard.press("Control+z")
    expect(box.locator(".chip")).to_have_text("@Ben")

    # The same for menu items. The keyboard focus stays in the text.
    page.get_by_role("group", name="Formatting").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Spoiler").click()
    expect(box).to_be_focused()
    page.keyboard.press("Control+z")

    # Lists continue and end, pasted text becomes Markdown, and files aren't read into the text.
    page.keyboard.press("Control+End")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("* flour")
    page.keyboard.press("Shift+Enter")
    box.evaluate(PASTE, ["<p>much <b>water</b></p>", "much water"])
    expect(box.locator(".item .bullet")).to_have_count(2)
    expect(box.locator(".item strong")).to_have_text("water")
    box.evaluate(DROP)
    expect(page.get_by_role("list", name="Files").get_by_text("Uploaded")).to_be_visible()
    expect(box).not_to_contain_text("shopping")

    page.keyboard.press("Control+Enter")
    expect(ann.message("Bake rye and spelt!?")).to_be_visible()
    expect(box).to_have_text(re.compile("^(Message .*)?$"))
    page.keyboard.press("Control+z")
    expect(box).not_to_contain_text("rye")
    content = last_sent(sqlite_site)["content"]
    text, _, file = content.rpartition("\n")
    assert text == "Bake **rye** and *spelt!?* @**Ben** \n* flour\n* much **water**"
    assert file.startswith("[shopping.txt](/user_uploads/")

    # Editing the last message uses the same form, which is remembered.
    page.keyboard.press("ArrowUp")
    editor = page.get_by_role("textbox", name="Edit message")
    expect(editor).to_be_focused()
    expect(editor.locator("em")).to_have_text("spelt!?")
    # No other key with Alt and an "m" in its name switches.
    page.keyboard.press("Alt+Home")
    expect(editor.locator("em")).to_have_text("spelt!?")
    page.keyboard.press("Control+Home")
    page.keyboard.type("Please ")
    # The caret is where it was before the preview.
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Alt+p")
    expect(page.get_by_role("region", name="Preview")).to_be_focused()
    page.keyboard.press("Escape")
    expect(editor).to_be_focused()
    page.keyboard.type(":")
    expect(editor).to_contain_text("Please: Bake rye")
    ann.message("Bake").get_by_role("button", name="Preview").evaluate(TWICE)
    expect(editor).to_be_focused()
    page.keyboard.type("-)")
    expect(editor).to_contain_text("Please:-) Bake rye")
    page.keyboard.press("Control+Enter")
    expect(editor).to_be_hidden()
    expect(box).to_be_focused()
    expect(ann.message("Please:-) Bake rye")).to_be_visible()
    assert last_sent(sqlite_site)["content"] == f"Please:-) {content}"

    # Scheduled messages use it, too. There, Enter starts a line and Ctrl+Enter saves.
    page.get_by_role("group", name="Formatting").get_by_role("button", name="More").click()
    page.get_by_role("menuitem", name="Saved snippets").click()
    page.get_by_role("button", name="New snippet").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Title").fill("Thanks")
    kept = dialog.get_by_role("textbox", name="Text")
    kept.press_sequentially("So **kind**, @Ben")
    expect(page.get_by_role("option", name="Ben")).to_be_visible()
    page.keyboard.press("Enter")
    page.keyboard.press("Enter")
    page.keyboard.type("bye")
    expect(kept.locator(".chip")).to_have_text("@Ben")
    page.keyboard.press("Control+Enter")
    dialog.get_by_role("button", name="Thanks").first.click()
    expect(dialog).to_have_count(0)
    expect(box).to_have_text(re.compile("So kind, @Ben.*bye"))
    page.keyboard.press("Alt+m")
    expect(box).to_have_text("So **kind**, @**Ben** bye")
    page.keyboard.press("Alt+m")

    ann.go("settings/preferences")
    choice = page.get_by_role("switch", name="Write in rich text")
    expect(choice).to_be_checked()
    choice.click()
    ann.go("narrow/channel/general/topic/bread")
    expect(box).to_be_visible()
    assert is_plain(box)
    box.fill("")
