"""Voice notes, which need the full browser."""

import re

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Site

MEASURE = """
async (audio) => {
    for (let at = 0; at < 300 && !(audio.duration > 0 && audio.duration < 60); at++)
        await new Promise((done) => setTimeout(done, 50));
    return audio.duration;
}
"""


@pytest.fixture(scope="module")
def browser(full_browser: Browser) -> Browser:
    return full_browser


def test_a_voice_note_is_recorded_and_played(sqlite_site: Site, shared_page: Open) -> None:
    """Also after denying access to the microphone the first time."""
    ann = shared_page(sqlite_site.server, sqlite_site.ann)
    page = ann.page
    ann.go("narrow/channel/general/topic/voices")
    ann.box.click()
    page.get_by_role("button", name="Record a voice note").click()
    note = page.get_by_role("group", name="Voice note")
    expect(note.get_by_role("alert")).to_contain_text("Microphone access is blocked")
    ann.context.grant_permissions(["microphone"])
    note.get_by_role("button", name="Try again").click()
    expect(note.get_by_role("timer")).to_have_text(re.compile("0:(?!00)"))
    note.get_by_role("button", name="Stop").click()
    assert 0 < note.locator("audio").evaluate(MEASURE) < 60
    note.get_by_role("button", name="Attach").click()
    expect(note).to_be_hidden()
    expect(page.get_by_role("list", name="Files").get_by_text("Uploaded")).to_be_visible()
    ann.box.press("Control+Enter")

    ben = shared_page(sqlite_site.server, sqlite_site.ben)
    ben.go("narrow/channel/general/topic/voices")
    card = ben.page.get_by_role("article").locator(".file")
    expect(card).to_contain_text("Voice note 2")
    expect(card).to_contain_text(re.compile(r"(WEBA|M4A|OGG) · \d"))
    assert 0 < card.locator("audio").evaluate(MEASURE) < 60

    # After leaving the conversation, the recording so far is in the draft.
    page.get_by_role("button", name="Record a voice note").click()
    expect(note.get_by_role("timer")).to_have_text(re.compile("0:(?!00)"))
    ann.go("inbox")
    expect(page.get_by_role("heading", name="Inbox")).to_be_visible()
    ann.go("narrow/channel/general/topic/voices")
    files = page.get_by_role("list", name="Files")
    expect(files.get_by_text("Uploaded")).to_be_visible()
    expect(files).to_contain_text("Voice note 2")
    files.get_by_role("button", name="Remove Voice note").click()
    expect(files).to_have_count(0)
