"""The benchmark of key presses, in a small organization."""

import pytest
from bench import presses

from tests.browser.conftest import Open
from tests.e2e.server import Server


def test_every_press_is_measured(
    demo_server: Server, new_page: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(presses, "ROUNDS", 1)
    monkeypatch.setattr(presses, "WARM", 0)
    window = new_page(demo_server, "june@cafe.example")
    window.go("inbox")
    window.page.locator("main [data-row]").first.wait_for()
    window.page.keyboard.press("D")
    window.page.locator("main article").first.wait_for()
    took = dict(presses.pressed(window.page))
    assert len(took) == 6
    assert all(len(times) == 1 and times[0] > 0 for times in took.values())
