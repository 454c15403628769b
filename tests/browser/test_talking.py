"""Two people who talk, each in a browser of their own."""

from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.e2e.conftest import Town

PLACE = "narrow/channel/general/topic/greetings"


def test_what_one_sends_the_other_sees(town: Town, opened: Open) -> None:
    ann = opened(town.server, town.ann)
    ben = opened(town.server, town.ben)
    for one in (ann, ben):
        one.go(PLACE)

    box = ann.page.get_by_role("textbox", name="Write to")
    box.fill("Good **morning**, Ben")
    box.press("Control+Enter")

    said = ben.page.get_by_role("article").filter(has_text="Good morning, Ben")
    expect(said).to_be_visible()
    expect(said.locator("strong", has_text="morning")).to_be_visible()
    expect(box).to_have_value("")
