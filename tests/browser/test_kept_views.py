"""Views that stay rendered while another one is shown, and must not act then."""

import io
import wave
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote_plus

import pytest
import zulip
from playwright.sync_api import Page, expect

from tests.browser.conftest import Open
from tests.browser.driving import SHOWN, Window, eventually, settled
from tests.e2e.conftest import Site
from tests.e2e.people import client_of, ok


@pytest.fixture
def ben(sqlite_site: Site) -> Iterator[zulip.Client]:
    with client_of(sqlite_site.ben, sqlite_site.server) as client:
        yield client


def say(client: zulip.Client, topic: str, content: str) -> int:
    about = {"type": "stream", "to": "general", "topic": topic, "content": content}
    about["read_by_sender"] = "true"
    sent: dict[str, Any] = ok(client.send_message(about))
    return int(sent["id"])


def move(client: zulip.Client, message_id: int, topic: str) -> None:
    """Rename a message's whole topic."""
    about = {"message_id": message_id, "topic": topic, "propagate_mode": "change_all"}
    ok(client.update_message({**about, "send_notification_to_new_thread": False}))


def go(window: Window, topic: str, text: str) -> None:
    """Open a topic without loading the page again."""
    window.page.evaluate("(hash) => { location.hash = hash; }", place(topic))
    expect(window.message(text)).to_be_visible()


def place(topic: str) -> str:
    return f"narrow/channel/general/topic/{topic}"


def mark(page: Page, selector: str) -> Callable[[], bool]:
    """Mark an element. Returns a function that tells whether it's the one in the shown view."""
    handle = page.locator(f"{selector}{SHOWN}").first.element_handle()
    return lambda: bool(
        page.evaluate(
            "([one, selector]) => one === document.querySelector(selector)",
            [handle, f"{selector}{SHOWN}"],
        )
    )


def read(client: zulip.Client, message_id: int) -> bool:
    """Whether anyone has read it, as its sender can see."""
    found = ok(client.call_endpoint(url=f"messages/{message_id}/read_receipts", method="GET"))
    return bool(found["user_ids"])


def test_views_are_the_same_elements_when_they_are_shown_again(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        say(client, "kept two", "First of two.")
        say(client, "kept one", "First of one.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("inbox")
    is_same_row = mark(ann.page, '[data-row$="/kept one"]')
    go(ann, "kept one", "First of one.")
    is_same_message = mark(ann.page, "article[data-message]")
    go(ann, "kept two", "First of two.")
    assert not is_same_message()
    go(ann, "kept one", "First of one.")
    assert is_same_message()
    ann.page.keyboard.press("i")
    ann.page.locator(f"[data-row]{SHOWN}").first.wait_for()
    expect(ann.page.get_by_role("article")).to_have_count(0)
    assert is_same_row()


def test_a_hidden_view_reads_nothing_and_hears_no_keys(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    say(ben, "hidden", "Shown at first.")
    say(ben, "open", "Another topic.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(place("hidden"))
    expect(ann.message("Shown at first.")).to_be_visible()
    go(ann, "open", "Another topic.")
    later = say(ben, "hidden", "Sent while it's hidden.")
    here = say(ben, "open", "Sent while it's shown.")
    expect(ann.message("Sent while it's shown.")).to_be_visible()
    eventually(ann.page, lambda: read(ben, here))
    assert not read(ben, later)
    ann.page.keyboard.press("k")
    expect(ann.page.locator("article.selected")).to_have_count(1)
    expect(ann.page.locator(f"article.selected{SHOWN}")).to_have_count(1)
    # Shown again, it has what came, and begins there.
    go(ann, "hidden", "Sent while it's hidden.")
    expect(
        ann.page.get_by_role("region", name="Messages").get_by_text("New from here")
    ).to_be_visible()
    eventually(ann.page, lambda: read(ben, later))
    expect(ann.page.locator("article.selected")).to_have_count(0)


def test_what_is_written_waits_in_its_box(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    say(ben, "writing", "What do you think?")
    say(ben, "elsewhere", "Something else.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(place("writing"))
    ann.box.fill("I think that")
    is_same_box = mark(ann.page, "main textarea")
    go(ann, "elsewhere", "Something else.")
    expect(ann.box).to_have_value("")
    ann.say("About something else.")
    expect(ann.message("About something else.")).to_be_visible()
    # The topic moves as a whole: its box goes with it.
    found = ok(
        ben.get_messages(
            {
                "anchor": "newest",
                "num_before": 1,
                "num_after": 0,
                "narrow": [["channel", "general"], ["topic", "writing"]],
            }
        )
    )
    move(ben, found["messages"][0]["id"], "thinking")
    hidden = ann.page.locator("[data-hidden] textarea[aria-label$=thinking]")
    expect(hidden).to_have_count(1)
    go(ann, "thinking", "What do you think?")
    expect(ann.box).to_have_value("I think that")
    assert is_same_box()
    ann.box.press("Control+Enter")
    expect(ann.message("I think that")).to_be_visible()


def test_an_edit_is_open_in_one_view(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        say(client, "edited", "A word to change.")
    ann.go("feed")
    expect(ann.message("A word to change.")).to_be_visible()
    go(ann, "edited", "A word to change.")
    ann.page.keyboard.press("k")
    ann.page.keyboard.press("e")
    box = ann.page.get_by_role("textbox", name="Edit message")
    expect(box).to_be_focused()
    expect(ann.page.locator("article textarea")).to_have_count(1)
    ann.page.keyboard.press("Escape")
    expect(ann.page.locator("article textarea")).to_have_count(0)


def test_a_channel_that_is_gone_is_gone_from_the_page(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    ok(
        ben.call_endpoint(
            url="channels/create",
            method="POST",
            request={
                "name": "closing",
                "subscribers": [sqlite_site.ann.user_id, sqlite_site.ben.user_id],
                "invite_only": True,
            },
        )
    )
    channel_id = ok(ben.get_stream_id("closing"))["stream_id"]
    ok(
        ben.send_message(
            {"type": "stream", "to": "closing", "topic": "x", "content": "Private word."}
        )
    )
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(f"narrow/channel/{channel_id}/topic/x")
    expect(ann.message("Private word.")).to_be_visible()
    ann.page.keyboard.press("i")
    kept = ann.page.locator("article").filter(has_text="Private word.")
    expect(kept).to_have_count(1)
    expect(kept).to_be_hidden()
    ok(ben.remove_subscriptions(["closing"], principals=[sqlite_site.ann.email]))
    expect(kept).to_have_count(0)


def test_each_view_that_is_opened_quickly_is_in_the_history(
    sqlite_site: Site, shared_page: Open
) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("drafts")
    expect(ann.page.get_by_role("heading", name="Drafts", exact=True)).to_be_visible()
    ann.page.evaluate(
        """() => {
            const press = (key) => document.body.dispatchEvent(
                new KeyboardEvent("keydown", {key, bubbles: true}));
            for (const key of ["l", "i", "v"]) press(key);
        }"""
    )
    for hash in ["feed", "inbox", "later"]:
        ann.page.wait_for_function("(hash) => location.hash === `#${hash}`", arg=hash)
        ann.page.go_back()
    ann.page.wait_for_function("location.hash === '#drafts'")


def test_a_hidden_inbox_leaves_keys_to_other_views(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    left = say(ben, "left unread", "Nobody reads this.")
    say(ben, "opened", "Somebody reads this.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    ann.go("inbox")
    page.locator('[data-row$="/left unread"]').focus()
    page.keyboard.press("x")
    expect(page.get_by_role("toolbar", name="Selected conversations")).to_be_visible()
    # The selection waits in the inbox.
    go(ann, "opened", "Somebody reads this.")
    page.locator("#main").focus()
    page.keyboard.press("m")
    page.keyboard.press("Escape")
    expect(page.get_by_role("toolbar", name="Selected conversations")).to_be_visible()
    assert not read(ben, left)
    page.keyboard.press("Escape")
    expect(page.get_by_role("toolbar", name="Selected conversations")).to_have_count(0)
    page.evaluate("() => { location.hash = 'settings/preferences'; }")
    expect(page.get_by_role("heading", name="Preferences")).to_be_visible()
    page.locator("#main").focus()
    assert page.evaluate(
        """() => document.activeElement.dispatchEvent(
            new KeyboardEvent("keydown", {key: "ArrowDown", bubbles: true, cancelable: true}))"""
    ), "the key was handled"


def test_what_opens_during_a_navigation_stays_open(sqlite_site: Site, shared_page: Open) -> None:
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("drafts")
    expect(ann.page.get_by_role("heading", name="Drafts", exact=True)).to_be_visible()
    # Open it once before, so that it is loaded.
    ann.page.keyboard.press("Control+k")
    box = ann.page.get_by_role("combobox", name="Search or jump to")
    expect(box).to_be_focused()
    ann.page.keyboard.press("Escape")
    expect(box).to_be_hidden()
    ann.page.evaluate(
        """async () => {
            const press = (key, more) => document.body.dispatchEvent(
                new KeyboardEvent("keydown", {key, bubbles: true, ...more}));
            press("l");
            await Promise.resolve();
            press("k", {ctrlKey: true});
            await new Promise((done) => setTimeout(done, 500));
        }"""
    )
    expect(
        ann.page.get_by_role("heading", name="Later", exact=True, include_hidden=True)
    ).to_be_visible()
    expect(box).to_be_focused()
    ann.page.keyboard.press("Escape")


def test_a_topic_that_moves_while_it_is_hidden_loads_when_it_is_shown(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    message_id = say(ben, "moving", "Read before it moves.")
    say(ben, "staying", "Shown in the meantime.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(place("moving"))
    expect(ann.message("Read before it moves.")).to_be_visible()
    eventually(ann.page, lambda: read(ben, message_id))
    go(ann, "staying", "Shown in the meantime.")
    asked: list[str] = []
    ann.page.on("request", lambda request: asked.append(unquote_plus(request.url)))
    move(ben, message_id, "moved on")
    expect(ann.page.locator("[data-hidden] textarea[aria-label$='moved on']")).to_have_count(1)
    ann.page.evaluate("() => new Promise(requestAnimationFrame)")
    assert not [url for url in asked if "moved on" in url]
    go(ann, "moved on", "Read before it moves.")
    assert [url for url in asked if "moved on" in url]


def test_a_box_stays_the_same_while_its_topic_moves_twice(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    message_id = say(ben, "first name", "A topic with three names.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(place("first name"))
    ann.box.press_sequentially("Half a sentence")
    is_same_box = mark(ann.page, "main textarea")
    # Both moves come in one response.
    ann.away = True
    ann.context.set_offline(True)
    expect(ann.page.get_by_text("Can’t reach the server")).to_be_visible()
    move(ben, message_id, "second name")
    move(ben, message_id, "third name")
    ann.context.set_offline(False)
    box = ann.page.get_by_role("textbox", name="third name")
    expect(box).to_be_focused()
    ann.away = False
    assert is_same_box()
    box.press("Control+a")
    box.press("Delete")


def test_views_rendered_in_advance_load_no_files(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    sound = io.BytesIO()
    with wave.open(sound, "wb") as wav:
        wav.setparams((1, 1, 8000, 0, "NONE", ""))
        wav.writeframes(bytes(8000))
    sound.seek(0)
    sound.name = "bell.wav"
    address = ok(ben.upload_file(sound))["url"]
    say(ben, "bells", f"Listen:\n\n[bell.wav]({address})")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("inbox")
    asked: list[str] = []
    ann.page.on("request", lambda request: asked.append(request.url))
    row = ann.page.locator(f'[data-row$="/bells"]{SHOWN}')
    row.hover()
    expect(ann.page.locator("[data-hidden] article", has_text="Listen")).to_have_count(1)
    assert not [url for url in asked if "bell.wav" in url]
    row.click()
    expect(ann.page.locator(f"article audio{SHOWN}")).to_be_visible()
    eventually(ann.page, lambda: any("bell.wav" in url for url in asked))


def test_hidden_views_are_rendered_again_in_another_language(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    say(ben, "code", "```python\nprint('bread')\n```")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(place("code"))
    expect(ann.message("bread").get_by_role("button", name="Copy", exact=True)).to_be_visible()
    ann.page.keyboard.press("i")
    expect(ann.page.get_by_role("heading", name="Inbox")).to_be_visible()
    with client_of(sqlite_site.ann, sqlite_site.server) as client:

        def speak(language: str) -> None:
            body = {"default_language": language}
            ok(client.call_endpoint(url="settings", method="PATCH", request=body))
            expect(ann.page.locator(f"html[lang={language}]")).to_have_count(1)

        speak("de")
        try:
            go(ann, "code", "bread")
            button = ann.message("bread").get_by_role("button", name="Kopieren", exact=True)
            expect(button).to_be_visible()
        finally:
            speak("en")


def test_undo_leaves_what_was_written_in_a_hidden_view(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    """Chromium has one undo history for all fields."""
    say(ben, "thinking twice", "Take your time.")
    say(ben, "answering", "Quick question.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go(place("thinking twice"))
    ann.box.press_sequentially("On the one hand")
    go(ann, "answering", "Quick question.")
    ann.box.press_sequentially("Yes")
    for _ in range(3):
        ann.box.press("Control+z")
    expect(ann.box).to_have_value("")
    go(ann, "thinking twice", "Take your time.")
    expect(ann.box).to_have_value("On the one hand")
    ann.box.press("Control+a")
    ann.box.press("Delete")


def test_the_new_view_gets_the_focus(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    say(ben, "focused", "Look here.")
    say(ben, "focused next", "And here.")
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page, main = ann.page, ann.page.locator("#main")
    ann.go(place("focused"))
    expect(ann.message("Look here.")).to_be_visible()
    ann.box.focus()
    go(ann, "focused next", "And here.")
    expect(main).to_be_focused()
    ann.box.focus()
    page.go_back()
    expect(ann.message("Look here.")).to_be_visible()
    expect(main).to_be_focused()
    # Also from the search box, which stays in the page.
    main.blur()
    page.keyboard.press("Control+k")
    page.get_by_role("combobox", name="Search or jump to").fill("focused next")
    page.get_by_role("option", name="focused next").first.wait_for()
    page.keyboard.press("Enter")
    expect(ann.message("And here.")).to_be_visible()
    expect(main).to_be_focused()


def test_a_reader_keeps_their_place_when_the_topic_is_resolved(
    sqlite_site: Site, shared_page: Open, ben: zulip.Client
) -> None:
    with client_of(sqlite_site.ann, sqlite_site.server) as client:
        ids = [say(client, "long story", f"Line {number} of it.") for number in range(40)]
        say(ben, "short story", "The end.")
        ann = shared_page(sqlite_site.server, sqlite_site.ann)
        ann.go(f"{place('long story')}/near/{ids[20]}")
        line = ann.message("Line 20 of it.")
        expect(line).to_be_in_viewport()
        settled(ann.page)

        def top() -> float:
            box = line.bounding_box()
            assert box
            return box["y"]

        before = top()
        # Ann's own changes don't add unread messages.
        move(client, ids[0], "✔ long story")
        expect(ann.page.locator(f"main h1 .resolved{SHOWN}")).to_be_visible()
        expect(line).to_be_in_viewport()
        eventually(ann.page, lambda: abs(top() - before) < 2)
        # Also if it's hidden.
        go(ann, "short story", "The end.")
        move(client, ids[0], "long story")
        hidden = ann.page.locator("[data-hidden] textarea[aria-label$='> long story']")
        expect(hidden).to_have_count(1)
        go(ann, "long story", "Line 20 of it.")
        expect(line).to_be_in_viewport()
        eventually(ann.page, lambda: abs(top() - before) < 2)


def test_the_browser_can_open_another_view_before_one_is_in_the_history(
    sqlite_site: Site, shared_page: Open
) -> None:
    """A view's history entry is added once it's painted."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    ann.go("feed")
    page = ann.page
    settled(page)
    page.evaluate(
        "() => { document.querySelector('a[href=\"#inbox\"]').click(); location.hash = 'drafts'; }"
    )
    expect(page.locator(f"main h1{SHOWN}")).to_have_text("Drafts")
    # Its entry would come by now.
    page.evaluate("() => new Promise((go) => requestAnimationFrame(() => setTimeout(go, 50)))")
    assert page.evaluate("() => location.hash") == "#drafts"
    expect(page.locator(f"main h1{SHOWN}")).to_have_text("Drafts")
