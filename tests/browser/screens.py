"""The same few steps in Chromium, Firefox, and WebKit: Playwright drives the first two, and
WebKitGTK's own WebDriver the third."""

import json
import os
import shutil
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.sync_api import Error as BrowserError
from playwright.sync_api import Page, Playwright

from tests.browser.driving import LAPTOP, PATIENCE, chromium, headless_shell, launched
from tests.browser.firefox_relay import PROGRAM as FIREFOX
from tests.e2e.server import free_port

ROOT: Final = Path(__file__).parents[2]

_FIND: Final = """(css, text) => {
    const found = [...document.querySelectorAll(css)].filter(
        (one) => one.checkVisibility({visibilityProperty: true})
            && (one.matches("input, textarea") ? one.value : one.textContent).includes(text));
    const last = found.at(-1);
    if (!last) return null;
    last.scrollIntoView({block: "nearest"});
    const {left, top, width, height} = last.getBoundingClientRect();
    return [left + width / 2, top + height / 2];
}"""
"""Finds the middle of the last visible element with this text."""


_LINE: Final = """(css) => {
    const element = [...document.querySelectorAll(css)].at(-1);
    if (!element) return null;
    const text = document.createRange();
    text.selectNodeContents(element);
    const {left, right, top, bottom} = text.getBoundingClientRect();
    return [left, right, (top + bottom) / 2];
}"""
"""Finds where the only line of the last such element begins and ends, and its height."""


class Screen(ABC):
    """A browser's window."""

    def __init__(self, browser: str, site: str) -> None:
        self.browser = browser
        self.site = site

    @abstractmethod
    def open(self, url: str) -> None: ...

    @abstractmethod
    def evaluate(self, function: str, *arguments: Any) -> Any:
        """Call a JavaScript function in the page."""

    @abstractmethod
    def press(self, keys: str) -> None:
        """Press keys, such as `Control+Enter`."""

    @abstractmethod
    def type(self, text: str) -> None: ...

    @abstractmethod
    def choose(self, css: str, path: Path) -> None:
        """Choose a file in a file field, which may be hidden."""

    @abstractmethod
    def _click(self, x: float, y: float) -> None: ...

    @abstractmethod
    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """Press the mouse at one place and release it at another."""

    def wait(self, function: str, *arguments: Any) -> Any:
        """Wait until a JavaScript function returns something true. Return it."""
        until = time.monotonic() + PATIENCE
        while not (found := self._result(function, arguments)):
            assert time.monotonic() < until, f"never true: {function}"
            time.sleep(0.05)  # A browser can only be polled.
        return found

    def _result(self, function: str, arguments: tuple[Any, ...]) -> Any:
        # While a page loads, scripts fail.
        with suppress(BrowserError):
            return self.evaluate(function, *arguments)
        return None

    def go(self, fragment: str) -> None:
        self.open(f"{self.site}/#{fragment}")

    def find(self, css: str, text: str = "") -> tuple[float, float]:
        """Wait until such an element is visible. Return its middle."""
        until = time.monotonic() + PATIENCE
        while not (place := self._place(css, text)):
            if time.monotonic() > until:
                shown = self.evaluate("() => document.body.innerText")
                raise AssertionError(f"No {css} with “{text}” in:\n{shown}")
            time.sleep(0.05)  # A browser can only be polled.
        return place[0], place[1]

    def _place(self, css: str, text: str) -> list[float] | None:
        # While a page loads, scripts fail.
        with suppress(BrowserError):
            found: list[float] | None = self.evaluate(_FIND, css, text)
            return found
        return None

    def find_none(self, css: str, text: str = "") -> None:
        """Wait until no such element is visible."""
        until = time.monotonic() + PATIENCE
        while self._place(css, text):
            assert time.monotonic() < until, f"{css} with “{text}” stays"
            time.sleep(0.05)  # A browser can only be polled.

    def click(self, css: str, text: str = "") -> None:
        """Click such an element, once it no longer moves."""
        place, before = self.find(css, text), (0.0, 0.0)
        while place != before:
            time.sleep(0.05)  # A browser can only be polled.
            place, before = self.find(css, text), place
        self._click(*place)

    def select(self, css: str) -> None:
        """Select the text of an element with the mouse, once it no longer moves."""
        place, before = self.wait(_LINE, css), None
        while place != before:
            time.sleep(0.05)  # A browser can only be polled.
            place, before = self.wait(_LINE, css), place
        start, end, middle = place
        self.drag((start + 1, middle), (end - 1, middle))

    def fill(self, css: str, text: str) -> None:
        """Click an empty field and type."""
        self.click(css)
        self.type(text)


class PlaywrightScreen(Screen):
    """Chromium or Firefox."""

    def __init__(self, browser: str, site: str, page: Page) -> None:
        super().__init__(browser, site)
        self._page = page
        # The machine may be busy with other tests.
        page.set_default_timeout(1000 * PATIENCE)
        page.on("pageerror", self._failed)
        self.errors: list[str] = []

    def _failed(self, error: Exception) -> None:
        self.errors.append(str(error))

    def open(self, url: str) -> None:
        self._page.goto(url)

    def evaluate(self, function: str, *arguments: Any) -> Any:
        return self._page.evaluate(f"(all) => ({function})(...all)", [*arguments])

    def press(self, keys: str) -> None:
        self._page.keyboard.press(keys)

    def type(self, text: str) -> None:
        self._page.keyboard.type(text)

    def choose(self, css: str, path: Path) -> None:
        self._page.locator(css).last.set_input_files(path)

    def _click(self, x: float, y: float) -> None:
        self._page.mouse.click(x, y)

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        mouse = self._page.mouse
        mouse.move(*start)
        mouse.down()
        mouse.move(*end, steps=4)
        mouse.up()


_KEYS: Final = {
    "Control": "\ue009",
    "Alt": "\ue00a",
    "Shift": "\ue008",
    "Enter": "\ue007",
    "Escape": "\ue00c",
    "ArrowUp": "\ue013",
    "End": "\ue010",
    "ArrowLeft": "\ue012",
    "ArrowRight": "\ue014",
    "ArrowDown": "\ue015",
}
"""WebDriver's codes of keys."""


class WebKitScreen(Screen):
    """WebKitGTK."""

    def __init__(self, site: str, session: httpx.Client) -> None:
        super().__init__("webkit", site)
        self._session = session

    def _do(self, command: str, **body: Any) -> Any:
        answer = self._session.post(command, json=body).json()["value"]
        if isinstance(answer, dict) and "error" in answer:
            raise BrowserError(f"{command}: {json.dumps(answer)[:500]}")
        return answer

    def open(self, url: str) -> None:
        self._do("url", url=url)

    def evaluate(self, function: str, *arguments: Any) -> Any:
        return self._do("execute/sync", script=f"return ({function})(...arguments)", args=arguments)

    def _act(self, kind: str, actions: list[dict[str, Any]]) -> None:
        self._do("actions", actions=[{"type": kind, "id": kind, "actions": actions}])

    def press(self, keys: str) -> None:
        codes = [_KEYS.get(key, key) for key in keys.split("+")]
        down = [{"type": "keyDown", "value": code} for code in codes]
        self._act("key", [*down, *({"type": "keyUp", "value": code} for code in reversed(codes))])

    def type(self, text: str) -> None:
        kinds = ("keyDown", "keyUp")
        self._act("key", [{"type": kind, "value": letter} for letter in text for kind in kinds])

    def choose(self, css: str, path: Path) -> None:
        element = self._do("elements", using="css selector", value=css)[-1]
        self._do(f"element/{next(iter(element.values()))}/value", text=str(path))

    def _click(self, x: float, y: float) -> None:
        self.drag((x, y), (x, y))

    def drag(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        moves: list[dict[str, Any]] = [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)}
            for x, y in (start, end)
        ]
        down, up = ({"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp"))
        self._act("pointer", [moves[0], down, *(moves[1:] if start != end else []), up])


BROWSERS: Final = ("chromium", "firefox", "webkit")
_MOUSE: Final[dict[str, str | float | bool]] = {
    "ui.primaryPointerCapabilities": 6,
    "ui.allPointerCapabilities": 6,
}
"""A precise pointer that hovers. Without a display, Firefox takes the machine for a phone."""
_WEBKIT_DRIVER, _DISPLAY = "WebKitWebDriver", "Xvfb"


def missing(browser: str) -> str:
    """What must be installed for this browser, or empty."""
    wanted = {
        "chromium": [] if chromium() else ["chromium"],
        "firefox": [] if shutil.which(FIREFOX) else [FIREFOX],
        "webkit": [
            package
            for program, package in ((_WEBKIT_DRIVER, "webkit2gtk-driver"), (_DISPLAY, "xvfb"))
            if not shutil.which(program)
        ],
    }[browser]
    return f"apt-get install {' '.join(wanted)}" if wanted else ""


@contextmanager
def screen(browser: str, driver: Playwright, directory: Path, site: str) -> Iterator[Screen]:
    """A new window of a browser, signed out. `directory` is for temporary files."""
    if browser == "webkit":
        with _webkit(directory) as session:
            yield WebKitScreen(site, session)
        return
    if browser == "firefox":
        start = directory / "firefox"
        start.write_text(
            f'#!/bin/sh\ncd "{ROOT}"\nexec "{sys.executable}" -m tests.browser.firefox_relay "$@"\n'
        )
        start.chmod(0o700)
        opened = driver.firefox.launch(
            channel="moz-firefox",
            executable_path=start,
            firefox_user_prefs=_MOUSE,
            timeout=1000 * PATIENCE,
        )
    else:
        opened = launched(driver, headless_shell() or chromium())
    with opened:
        found = PlaywrightScreen(browser, site, opened.new_context(viewport=LAPTOP).new_page())
        yield found
        assert not found.errors


@contextmanager
def _webkit(directory: Path) -> Iterator[httpx.Client]:
    """A session of WebKitGTK on a separate display."""
    run = [_DISPLAY, "-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]
    with _program(run, stdout=subprocess.PIPE) as display:
        assert display.stdout
        number = display.stdout.readline().decode().strip()
        port = free_port()
        environment = {
            **os.environ,
            "DISPLAY": f":{number}",
            "HOME": str(directory),
            "LIBGL_ALWAYS_SOFTWARE": "1",
            "NO_AT_BRIDGE": "1",
            # The sandbox needs user namespaces, which containers lack.
            "WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS": "1",
        }
        url = f"http://127.0.0.1:{port}"
        run = [_WEBKIT_DRIVER, f"--port={port}"]
        with _program(run, env=environment), httpx.Client(timeout=120) as http:
            _await(http, f"{url}/status")
            created = http.post(f"{url}/session", json={"capabilities": {}}).json()["value"]
            http.base_url = httpx.URL(f"{url}/session/{created['sessionId']}/")
            http.post("window/rect", json={"x": 0, "y": 0, **LAPTOP})
            try:
                yield http
            finally:
                with suppress(httpx.HTTPError):
                    http.delete("")


def _await(http: httpx.Client, url: str) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            http.get(url)
        except httpx.HTTPError:
            assert time.monotonic() < until, f"{url} doesn't answer"
            time.sleep(0.05)  # Another process can only be polled.
        else:
            return


@contextmanager
def _program(run: list[str], **how: Any) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(run, stderr=subprocess.DEVNULL, **how) as process:
        try:
            yield process
        finally:
            process.terminate()
