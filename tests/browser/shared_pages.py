"""Pages that the tests of a module share, so the client starts once per person instead of once per
test."""

from collections.abc import Hashable
from contextlib import ExitStack
from typing import Any, NamedTuple

from playwright.sync_api import Browser, ViewportSize

from tests.browser.driving import LAPTOP, Window, sign_in, window
from tests.e2e.server import Account, Server

LEFT = """async (drafts) => {
    // No test starts or ends in this view: going to the current view would reload the page.
    location.hash = "#later";
    await new Promise((done) => setTimeout(done));
    for (const one of document.querySelectorAll(".toasts button:last-child")) one.click();
    document.activeElement?.blur();
    await new Promise((done) => setTimeout(done));
    const text = (one) => (one.value ?? one.textContent).trim().slice(0, 60);
    const kept = () => Object.keys(localStorage)
        .filter((key) => key.includes(":draft:"))
        .map((key) => JSON.parse(localStorage.getItem(key)))
        .filter(({ gone, content }) => gone === undefined && !drafts.includes(content));
    const seen = "dialog[open], :popover-open, textarea, [contenteditable=true], :root[dir=rtl]";
    const left = () => [
        ...[...document.querySelectorAll(seen)]
            .filter((one) => !one.closest("[data-hidden]"))
            .map((one) => `${one.localName} “${text(one)}”`),
        ...kept().map((one) => `draft “${one.content}”`),
    ];
    // What the test did last may still be going on.
    const until = Date.now() + 10_000;
    while (left().length && Date.now() < until) await new Promise((done) => setTimeout(done, 50));
    return left();
}"""
"""Leave the view and close the banners. Return the dialogs and unsent drafts that stay."""
FORGET = """() => {
    const names = ["tools", "undo-send", "formatted", "left", "people", "width", "folded",
        "channels-open", "inbox-order", "skin tone"].map((name) => `tertulia:${name}`);
    const changed = names.filter((name) => localStorage.getItem(name) !== null);
    for (const name of changed) localStorage.removeItem(name);
    return changed.length > 0;
}"""
"""Forget the settings that this browser stores. Return whether there were any."""


class _SharedPage(NamedTuple):
    window: Window
    size: ViewportSize
    drafts: list[str]
    """Drafts that existed before the first test."""
    closing: ExitStack


class SharedPages:
    """Open pages by server, account, and options."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._pages: dict[Hashable, _SharedPage] = {}

    def open(self, server: Server, account: Account | str, how: dict[str, Any]) -> Window:
        """Return the account's page, opening it first if needed with Playwright's options `how`."""
        key = (server.url, account, repr(sorted(how.items())))
        shared = self._pages.get(key)
        if shared is None:
            closing = ExitStack()
            found = closing.enter_context(window(self._browser, server.url, **how))
            sign_in(found.context, server, account)
            told = found.context.request.get("/api/v1/drafts").json()
            drafts = [one["content"] for one in told["drafts"]]
            self._pages[key] = shared = _SharedPage(
                found, how.get("viewport", LAPTOP), drafts, closing
            )
        return shared.window

    def leave(self, window: Window) -> list[str]:
        """Reset the page for the next test, also where the test used other tools, folded a section,
        or sorted the inbox. Return what the test left behind."""
        shared = next(one for one in self._pages.values() if one.window is window)
        page = window.page
        page.unroute_all(behavior="ignoreErrors")
        window.context.unroute_all(behavior="ignoreErrors")
        window.context.set_offline(False)
        window.context.clear_permissions()
        page.set_viewport_size(shared.size)
        page.mouse.move(0, 0)
        left: list[str] = page.evaluate(LEFT, shared.drafts)
        left += window.troubles
        if page.evaluate(FORGET):
            # The client has read them. The next test starts it again.
            page.goto("about:blank")
        return [*left, "the server is away"] if window.away else left

    def close(self, *windows: Window) -> None:
        """Close these pages, so that the next test gets new ones."""
        # Close all of them, even if one raises an error.
        with ExitStack() as closing:
            for key, shared in [*self._pages.items()]:
                if shared.window in windows:
                    del self._pages[key]
                    closing.callback(shared.closing.close)

    def close_all(self) -> None:
        self.close(*[shared.window for shared in self._pages.values()])
