"""The mails, as a mail program with Chromium inside shows them: readable in light and in dark, and
on a phone."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser

from tests.browser.driving import PHONE
from tests.browser.test_accessibility import AXE
from tests.e2e.server import Server, ended

CONTRAST = """
async () => (await axe.run({
    runOnly: {type: "rule", values: ["color-contrast"]},
    resultTypes: ["violations"],
})).violations.flatMap((one) => one.nodes.map((node) => node.html))
"""
OVERFLOWS = "document.documentElement.scrollWidth > innerWidth"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_mails_can_be_read(browser: Browser, tmp_path: Path, scheme: str) -> None:
    server = Server(tmp_path / "data")
    server.found()
    how: dict[str, Any] = {"viewport": PHONE, "color_scheme": scheme, "bypass_csp": True}
    with ended(server), browser.new_context(**how) as context:
        server.start("/ready", "--dev")
        page = context.new_page()
        names = re.findall("<h2>(.+?)</h2>", httpx.get(f"{server.url}/dev/mails").text)
        assert len(names) > 15
        for name in names:
            page.goto(f"{server.url}/dev/mails/{name}?language=de")
            assert not page.evaluate(OVERFLOWS), name
            page.add_script_tag(path=AXE)
            assert page.evaluate(CONTRAST) == [], name
            dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert (dark == "rgb(25, 22, 19)") == (scheme == "dark")
