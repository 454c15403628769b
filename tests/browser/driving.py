"""Drive a browser, and check what a page must never do."""

import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import (
    APIResponse,
    Browser,
    BrowserContext,
    ConsoleMessage,
    Locator,
    Page,
    Playwright,
    Request,
    Route,
    ViewportSize,
    expect,
)
from playwright.sync_api import Error as BrowserError

from tests.e2e.server import PASSWORD, Account, Server

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SHELL = "chromium-headless-shell"
HOW_TO_GET = "no Chromium: install it (apt-get install chromium), or name one: CHROMIUM=…"
WITHOUT = (
    # Chromium's own suggestion list opens two pages in each window, which take as long to load as
    # ours.
    "WebUIOmniboxPopup",
    "WebUIOmniboxAimPopup",
    # Playwright disables features too, and Chromium uses only the last such list.
    "AvoidCorsURLLoaderRestartOnRedirect",
    "AvoidUnnecessaryBeforeUnloadCheckSync",
    "DestroyProfileOnBrowserClose",
    "HttpsFirstBalancedModeAutoEnable",
    "HttpsUpgrades",
    "MediaRouter",
    "NetworkTimeServiceQuerying",
    "OptimizationHints",
    "PaintHolding",
    "PreconnectToSearch",
    "ThirdPartyStoragePartitioning",
)
"""Chromium features that no test needs."""
FLAGS = [
    f"--disable-features={','.join(WITHOUT)}",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # A fake microphone, since test machines don't have one.
    "--use-fake-device-for-media-stream",
]
EXPECTED = r"Failed to load resource|blocked by Playwright"
"""Allowed console output: refusals are normal responses, but the console reports each."""
SHOWN = ":not([data-hidden] *)"
"""Ends CSS selectors of what may be in several views: hidden ones stay in the page."""
PATIENCE = 120
"""Seconds that a browser has for each step, since the machine may be busy with other tests."""
LAPTOP: ViewportSize = {"width": 1280, "height": 800}
PHONE: ViewportSize = {"width": 390, "height": 844}


def chromium() -> str | None:
    """The path of the browser, or None if it isn't installed."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


def headless_shell() -> str | None:
    """The path of Chromium's headless shell, which shows a page in four fifths of the time. None if
    it isn't installed or another browser is configured."""
    return None if "CHROMIUM" in os.environ else shutil.which(SHELL)


def launched(driver: Playwright, program: str | None) -> Browser:
    """Start this Chromium; Playwright's own for None."""
    return driver.chromium.launch(executable_path=program, args=FLAGS, timeout=1000 * PATIENCE)


@dataclass
class Window:
    """Someone's browser, signed in or not, and its page. `troubles` collects what a page must never
    do: errors, and requests to other hosts.
    """

    page: Page
    site: str
    troubles: list[str] = field(default_factory=list)
    away: bool = False
    """Whether the server is currently down, so that requests fail."""

    def __post_init__(self) -> None:
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        self.page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        is_expected = re.search(EXPECTED, message.text)
        if message.type in {"error", "warning"} and not is_expected and not self.away:
            self.troubles.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.site, "data:", "blob:")):
            self.troubles.append(f"asked another host: {request.url}")

    def go(self, fragment: str = "") -> None:
        """Open the client at a fragment."""
        self.page.goto(f"{self.site}/#{fragment}")

    @property
    def box(self) -> Locator:
        """The text box of the conversation."""
        return self.page.get_by_role("textbox", name=re.compile("^(Message .|Enviar mensaje)"))

    def say(self, text: str) -> None:
        """Send a message to the conversation that is shown."""
        self.box.fill(text)
        self.box.press("Control+Enter")

    def message(self, text: str) -> Locator:
        """The shown message with this text, once it's sent: until then it can't be selected."""
        return self.page.locator(f"article[data-message]{SHOWN}").filter(has_text=text)

    def pending(self, text: str) -> Locator:
        """The message with this text that hasn't been sent yet."""
        return self.page.locator(f"article:not([data-message]){SHOWN}").filter(has_text=text)

    def undo(self, said: str) -> None:
        """Press Undo in the toast with this text, since other toasts may offer to undo something
        else."""
        note = self.page.locator(".toasts").get_by_role("status").filter(has_text=said)
        note.get_by_role("button", name="Undo", disabled=False).click()

    def link(self, name: str) -> Locator:
        """The sidebar link of a view or channel."""
        side = self.page.get_by_role("navigation", name="Views and channels")
        return side.get_by_role("link", name=re.compile(rf"\b{re.escape(name)}\b"))

    @property
    def context(self) -> BrowserContext:
        return self.page.context


OPEN_WINDOWS: list[Window] = []
"""All open windows, for the reports of failed tests."""


LOADING = """() => {
    const parts = [...document.querySelectorAll("script[src], link[rel=modulepreload]")];
    const wanted = parts.map((one) => one.src ?? one.href);
    const lacking = wanted.filter((url) => !performance.getEntriesByName(url).length);
    return [document.readyState, ...lacking].join(" ");
}"""


def outline(window: Window) -> str:
    """Return what the window's page shows to assistive technology: its address, what isn't loaded
    yet, the focused element, and the end of the main part."""
    page = window.page
    try:
        focus = page.evaluate("document.activeElement.outerHTML.slice(0, 200)")
        loading = page.evaluate(LOADING)
        shown = page.locator("body").aria_snapshot(timeout=5_000)
    except BrowserError as error:
        return f"{page.url}: {error}"
    return f"{page.url}\nloading: {loading}\nfocus: {focus}\n{shown[-4000:]}"


@contextmanager
def window(browser: Browser, site: str, **how: Any) -> Iterator[Window]:
    """Open a new browser profile with one page, signed out. Fails if the page did something
    forbidden."""
    how.setdefault("viewport", LAPTOP)
    # Service workers have their own tests.
    how.setdefault("service_workers", "block")
    context = browser.new_context(base_url=site, **how)
    context.set_default_timeout(1000 * PATIENCE)
    try:
        found = Window(context.new_page(), site)
        OPEN_WINDOWS.append(found)
        try:
            yield found
        finally:
            OPEN_WINDOWS.remove(found)
        assert not found.troubles, "\n".join(found.troubles)
    finally:
        with suppress(BrowserError):
            context.close()


def sign_in(context: BrowserContext, server: Server, account: Account | str) -> None:
    """Give the browser a session of the account, or of the demonstration user with this address."""
    if isinstance(account, str):
        sign_in_resident(context, server, account)
        return
    answer = context.request.post(
        f"{server.url}/api/v1/sessions",
        form={"username": account.email, "password": PASSWORD},
    )
    assert answer.ok, answer.text()


def sign_in_resident(context: BrowserContext, server: Server, address: str) -> None:
    """Give the browser a session of a demonstration user, as the user's button does."""
    answer = context.request.post(f"{server.url}/login", form={"resident": address})
    assert answer.ok, answer.text()


def eventually(page: Page, holds: Callable[[], bool]) -> None:
    """Wait until something outside the page holds. For what is on the page, use `expect`."""
    until = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < until
        page.wait_for_timeout(50)


def settled(page: Page) -> None:
    """Wait until the view is complete and idle."""
    page.wait_for_function(
        """() => document.querySelector("main h1:not([data-hidden] *)")
            && !document.querySelector("main [aria-busy=true]:not([data-hidden] *)")
            && document.fonts.size && document.fonts.status === "loaded"
            && document.getAnimations().every((one) => one.playState !== "running")""",
        # By default this checks on every frame, which makes the page paint without need.
        polling=50,
    )


SPILLED = """() => {
    const width = document.documentElement.clientWidth;
    const isScrolled = (one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowX);
    const isMeant = (one) => {
        for (let above = one; (above = above.parentElement); ) {
            if (isScrolled(above) || above.matches(".ellipsis, .unseen, svg")) return true;
        }
        return one.matches(".unseen");
    };
    return [...document.querySelectorAll("body *")]
        .filter((one) => {
            const { left, right, height } = one.getBoundingClientRect();
            return height && right > left && (right > width + 1 || left < -1);
        })
        .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
        .filter((one) => !isMeant(one))
        .map((one) => {
            const { left, right } = one.getBoundingClientRect();
            const about = `${one.tagName.toLowerCase()}.${one.getAttribute("class") ?? ""}`;
            const said = one.textContent.trim().slice(0, 40);
            return `${Math.round(left)} to ${Math.round(right)} of ${width}: ${about} “${said}”`;
        });
}"""


def spilled(page: Page) -> list[str]:
    """Elements that extend beyond the window's sides and can't be scrolled into view."""
    found: list[str] = page.evaluate(SPILLED)
    return found


class HeldAnswers:
    """Responses from the server that the window doesn't get until this is called."""

    def __init__(self, window: Window, asked: Callable[[str], bool]) -> None:
        self._window = window
        self._asked = asked
        self._held: list[tuple[Route, APIResponse]] = []
        self._is_open = False

    def hold(self, route: Route) -> None:
        if self._is_open or not self._asked(route.request.url):
            route.continue_()
        else:
            self._held.append((route, route.fetch()))

    def wait(self) -> None:
        """Return as soon as a response is held."""
        eventually(self._window.page, lambda: bool(self._held))

    def __call__(self) -> None:
        self._is_open = True
        for route, response in self._held:
            route.fulfill(response=response)


def holding(window: Window, asked: Callable[[str], bool]) -> HeldAnswers:
    """Hold the responses to the window's requests for messages at these addresses."""
    held = HeldAnswers(window, asked)
    window.page.route("**/messages?*", held.hold)
    return held


def tap_away(item: Locator) -> None:
    """Tap to close the menu that a long press opened. Immediately after that press, a tap counts as
    its release and does nothing."""
    for _ in range(10):
        item.page.wait_for_timeout(500)
        item.tap()
        with suppress(AssertionError):
            expect(item).to_be_hidden(timeout=3000)
            return
    raise AssertionError("the menu stays open")
