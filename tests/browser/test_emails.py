"""Emails in a Chromium-based email program: readable in light and dark themes, and on a phone."""

import re
from pathlib import Path
from typing import Literal

import httpx
from playwright.sync_api import Browser

from tests.browser.driving import PHONE
from tests.browser.test_accessibility import AXE
from tests.e2e.server import Server, ended
from tests.support import row

CONTRAST = """
async () => (await axe.run({
    runOnly: {type: "rule", values: ["color-contrast"]},
    resultTypes: ["violations"],
})).violations.flatMap((one) => one.nodes.map((node) => node.html))
"""
OVERFLOWS = "document.documentElement.scrollWidth > innerWidth"


SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
DARK = "getComputedStyle(document.body).backgroundColor === 'rgb(25, 22, 19)'"


def test_emails_are_readable(browser: Browser, tmp_path: Path) -> None:
    server = Server(tmp_path / "data")
    server.create_organization()
    with (
        ended(server),
        browser.new_context(viewport=PHONE, bypass_csp=True) as context,
        httpx.Client(base_url=server.url, verify=False) as http,
    ):
        server.start("/ready", "--dev")
        page = context.new_page()
        names = re.findall("<h2>(.+?)</h2>", http.get("/dev/mails").text)
        assert len(names) > 15
        # (Except on the list, which shows all of them.)
        page.goto(f"{server.url}/dev/mails/{names[0]}")
        page.add_script_tag(path=AXE)
        for name in names:
            # Reuse the page, so that axe loads once.
            page.set_content(http.get(f"/dev/mails/{name}?language=de").text)
            for scheme in SCHEMES:
                with row(name, scheme):
                    page.emulate_media(color_scheme=scheme)
                    assert not page.evaluate(OVERFLOWS)
                    assert page.evaluate(CONTRAST) == []
                    assert page.evaluate(DARK) == (scheme == "dark")
