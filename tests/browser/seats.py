"""Windows in which the tests of a module sit down one after the other: the client starts once for
each person, not once for each test."""

from collections.abc import Hashable
from contextlib import ExitStack
from typing import Any, NamedTuple

from playwright.sync_api import Browser, ViewportSize

from tests.browser.driving import LAPTOP, Window, sign_in, window
from tests.e2e.server import Account, Server

LEFT = """async (drafts) => {
    // No test begins or ends there: to go to where a page is already is to load it anew.
    location.hash = "#reminders";
    await new Promise((done) => setTimeout(done));
    for (const one of document.querySelectorAll(".toasts button:last-child")) one.click();
    document.activeElement?.blur();
    await new Promise((done) => setTimeout(done));
    const text = (one) => (one.value ?? one.textContent).trim().slice(0, 60);
    const kept = Object.keys(localStorage)
        .filter((key) => key.includes(":draft:"))
        .map((key) => JSON.parse(localStorage.getItem(key)))
        .filter(({ gone, content }) => gone === undefined && !drafts.includes(content));
    const seen = "dialog[open], :popover-open, textarea, [contenteditable=true], :root[dir=rtl]";
    return [
        ...[...document.querySelectorAll(seen)].map((one) => `${one.localName} “${text(one)}”`),
        ...kept.map((one) => `draft “${one.content}”`),
    ];
}"""
"""Leaves the view, and puts away the notes, which would go by themselves in some seconds. What is
open after that, and what was begun and not sent."""


class _Seat(NamedTuple):
    window: Window
    size: ViewportSize
    drafts: list[str]
    """What had been begun before any test."""
    closing: ExitStack


class Seats:
    """The windows, each opened for who first sits down in it."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._seats: dict[Hashable, _Seat] = {}

    def at(self, server: Server, account: Account | str, how: dict[str, Any]) -> Window:
        """The window of the account; `how` as Playwright's `new_context` takes it."""
        key = (server.url, account, repr(sorted(how.items())))
        seat = self._seats.get(key)
        if seat is None:
            closing = ExitStack()
            found = closing.enter_context(window(self._browser, server.url, **how))
            sign_in(found.context, server, account)
            told = found.context.request.get("/api/v1/drafts").json()
            drafts = [one["content"] for one in told["drafts"]]
            self._seats[key] = seat = _Seat(found, how.get("viewport", LAPTOP), drafts, closing)
        return seat.window

    def leave(self, window: Window) -> list[str]:
        """Get up: the window is as the next one expects it. Returns what is in the way of that."""
        seat = next(one for one in self._seats.values() if one.window is window)
        page = window.page
        page.unroute_all(behavior="ignoreErrors")
        window.context.unroute_all(behavior="ignoreErrors")
        window.context.set_offline(False)
        window.context.clear_permissions()
        page.set_viewport_size(seat.size)
        page.mouse.move(0, 0)
        left: list[str] = page.evaluate(LEFT, seat.drafts)
        left += window.troubles
        return [*left, "the server is away"] if window.away else left

    def close(self, *windows: Window) -> None:
        """Whoever comes next has another one."""
        # All of them, also where one did what none may.
        with ExitStack() as closing:
            for key, seat in [*self._seats.items()]:
                if seat.window in windows:
                    del self._seats[key]
                    closing.callback(seat.closing.close)

    def close_all(self) -> None:
        self.close(*[seat.window for seat in self._seats.values()])
