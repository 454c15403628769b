"""`python -m bench.browser`: the web client in Chromium. Measures opening it in a small and in
large organizations, at full speed and at 400 kbit/s, and using it in a large one.
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from tests.browser.driving import FLAGS, HOW_TO_GET, chromium

from bench import archive, machine, opening, presses
from bench.serving import ROOT, served
from tertulia.service.config import Config

PEOPLE, CHANNELS, MESSAGES = 5_200, 520, 20_000
"""The size of the organization. Half of the messages are unread."""
ROUNDS: Final = 9
SWITCHES: Final = 30
TRAFFIC: Final = 3_000
"""Messages of a busy hour."""
WARM: Final = 500
"""Messages before the growth is measured."""

PAINTED = """
addEventListener("keydown", (event) => {
    const shown = (what) => document.querySelector(`main ${what}:not([data-hidden] *)`);
    const before = shown("h1")?.textContent;
    const look = () => {
        if (shown("h1")?.textContent !== before && shown("article"))
            setTimeout(() => { window.painted = performance.now() - event.timeStamp; });
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
}, {capture: true});
"""
"""Records the time from a key press to a painted conversation."""

SENT = """
addEventListener("keydown", (event) => {
    if (event.key === "Enter") window.sent = performance.timeOrigin + event.timeStamp;
}, {capture: true});
"""
SEEN = """
(text) => new Promise((resolve) => {
    const look = () => {
        const all = [...document.querySelectorAll("main article:not([data-hidden] *)")].slice(-3);
        if (all.some((one) => one.textContent.includes(text)))
            setTimeout(() => resolve(performance.timeOrigin + performance.now()));
        else requestAnimationFrame(look);
    };
    look();
})
"""


class Client:
    """Browsers that show the organization to its reader."""

    def __init__(self, browser: Browser, site: str, made: archive.Archive):
        self._browser = browser
        self._site = site
        self._headers = {"Authorization": made.authorization}
        self._place = f"narrow/channel/{quote(made.channel)}/topic/{quote(made.topic)}"

    def context(self) -> BrowserContext:
        """Return a new browser profile."""
        return self._browser.new_context(
            base_url=self._site,
            extra_http_headers=self._headers,
            viewport={"width": 1280, "height": 800},
            service_workers="block",
        )

    def opened(self, context: BrowserContext, fragment: str = "inbox") -> Page:
        page = context.new_page()
        page.add_init_script(opening.NOTED)
        page.goto(f"/#{fragment}")
        page.wait_for_function("() => window.usable > 0")
        return page

    def script(self) -> dict[str, float]:
        """Return the compressed script of the first load, in KB."""
        with self.context() as context:
            sizes: dict[str, int] = self.opened(context).evaluate(
                """Object.fromEntries(performance.getEntriesByType("resource")
                    .filter((one) => new URL(one.name).pathname.endsWith(".js"))
                    .map((one) => [one.name, one.encodedBodySize]))"""
            )
        return {"kilobytes": sum(sizes.values()) / 1000, "files": len(sizes)}

    def usable(self) -> dict[str, float]:
        """Measure the time from navigation to the inbox, in ms, with an empty and with a full
        cache."""
        cold, warm, asked, empty = [], [], [], []
        for _ in range(ROUNDS):
            with self.context() as context:
                page = context.new_page()
                page.goto("/health")
                empty.append(_loaded(page))
                page = self.opened(context)
                cold.append(float(page.evaluate("window.usable")))
                page.close()
                page = self.opened(context)
                warm.append(float(page.evaluate("window.usable")))
                asked.append(
                    float(
                        page.evaluate(
                            """performance.getEntriesByType("resource")
                                .find((one) => one.name.endsWith("/register")).duration"""
                        )
                    )
                )
        return {
            **_spread("cold", cold),
            **_spread("warm", warm),
            "of which register": statistics.median(asked),
            "limit: an empty page": statistics.median(empty),
        }

    def switch(self) -> dict[str, float]:
        """Measure the time from a key press to the next or previous channel, both loaded, in ms."""
        results = []
        with self.context() as context:
            page = self.opened(context, "narrow/channel/" + self._place.split("/")[2])
            page.evaluate(PAINTED)
            for number in range(SWITCHES + 6):
                page.evaluate("window.painted = 0")
                page.keyboard.press("D" if number % 2 else "A")
                page.wait_for_function("() => window.painted > 0")
                if number >= 6:
                    results.append(float(page.evaluate("window.painted")))
                # Requests of this view don't count for the next.
                page.wait_for_timeout(150)
            frame = float(
                page.evaluate(
                    """new Promise((done) => requestAnimationFrame((one) =>
                        requestAnimationFrame((other) => done(other - one))))"""
                )
            )
        return {**_spread("switch", results), "limit: one frame": frame}

    def presses(self) -> dict[str, float]:
        """Measure the time from key presses to paint with a slower processor, in ms."""
        results: dict[str, float] = {}
        with self.context() as context:
            page = self.opened(context, "narrow/channel/" + self._place.split("/")[2])
            for name, took in presses.pressed(page):
                results |= presses.summary(name, took)
        return {**results, "target": presses.TARGET}

    def seen(self) -> dict[str, float]:
        """Measure the time from Ctrl+Enter in one browser to the painted message in another, in
        ms."""
        results = []
        with self.context() as browser_context, self.context() as other:
            place = f"narrow/dm/{self._own_id()}"
            writer, reader = self.opened(browser_context, place), self.opened(other, place)
            box = writer.get_by_role("textbox", name="Message ")
            box.wait_for()
            writer.evaluate(SENT)
            for number in range(SWITCHES):
                text = f"Seen at once, {number}."
                box.fill(text)
                reader.evaluate(f"void (window.waiting = ({SEEN})({json.dumps(text)}))")
                box.press("Control+Enter")
                at = float(reader.evaluate("window.waiting"))
                if number >= 3:
                    results.append(at - float(writer.evaluate("window.sent")))
                writer.wait_for_timeout(100)
        return {**_spread("seen", results), "limit: an empty request": self._request()}

    def memory(self) -> dict[str, float]:
        """Measure the growth of a window's memory while others send messages, in MB after garbage
        collection."""
        with self.context() as context:
            page = self.opened(context, self._place)
            devtools = context.new_cdp_session(page)
            self._talk(WARM)
            page.wait_for_timeout(1_500)
            first = opening.heap(page, devtools) / 1e6
            began = time.monotonic()
            self._talk(TRAFFIC)
            took = time.monotonic() - began
            page.wait_for_timeout(1_500)
            last = opening.heap(page, devtools) / 1e6
            nodes = float(page.evaluate("document.querySelectorAll('*').length"))
        return {
            "before": first,
            f"after {TRAFFIC} messages": last,
            "per 1,000 messages": (last - first) / TRAFFIC * 1000,
            "elements in the page": nodes,
            "seconds": took,
        }

    def _talk(self, count: int) -> None:
        with httpx.Client(base_url=self._site, headers=self._headers, timeout=60) as http:
            for number in range(count):
                channel = number % 5
                form = {
                    "type": "stream",
                    "to": f"channel {channel}",
                    "topic": f"topic {7 + number % 3}",
                    "content": f"Number {number} of many, with **some** words to show.",
                }
                http.post("/api/v1/messages", data=form).raise_for_status()

    def _own_id(self) -> int:
        return int(
            httpx.get(f"{self._site}/api/v1/users/me", headers=self._headers).json()["user_id"]
        )

    def _request(self) -> float:
        with httpx.Client(base_url=self._site, headers=self._headers) as http:
            took = []
            for _ in range(50):
                began = time.perf_counter()
                http.get("/api/v1/users/me")
                took.append((time.perf_counter() - began) * 1000)
        return statistics.median(took)


def _loaded(page: Page) -> float:
    return float(page.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd"))


def _spread(name: str, results: list[float]) -> dict[str, float]:
    ordered = sorted(results)
    return {
        f"{name}, median": statistics.median(ordered),
        f"{name}, 95 %": ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)],
    }


def main() -> None:
    """Run the benchmarks and print the results."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.browser",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there as well")
    parser.add_argument(
        "--directory", type=Path, default=ROOT / "build", help="where the database is to lie"
    )
    parser.add_argument(
        "--size",
        action="append",
        choices=list(opening.SIZES),
        help="open it in such an organization only; may be repeated",
    )
    parser.add_argument(
        "--rounds", type=int, default=5, help="how often it is opened in each case (default: 5)"
    )
    parser.add_argument(
        "--opening", action="store_true", help="measure only what it takes to open it"
    )
    parser.add_argument(
        "--presses", action="store_true", help="measure only from key presses to paint"
    )
    options = parser.parse_args()
    program = chromium()
    if program is None:
        raise SystemExit(HOW_TO_GET)
    options.directory.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        about = {"browser": f"Chromium {browser.version}", **machine.described(options.directory)}
        opens = {}
        if not options.presses:
            opens = _opened(browser, options.directory, options.size, max(1, options.rounds))
            sys.stdout.writelines(f"{line}\n" for line in opening.table(opens))
        used = {} if options.opening else _used(browser, options.directory, options.presses)
        browser.close()
    sys.stdout.writelines(f"{name}: {value}\n" for name, value in about.items())
    if options.json:
        values_by_name = {f"{name}, {speed}": values for (name, speed), values in opens.items()}
        result = {"about": about, "opening": values_by_name, **used}
        options.json.write_text(json.dumps(result, indent=2) + "\n")


def _opened(
    browser: Browser, directory: Path, sizes: list[str] | None, rounds: int
) -> dict[tuple[str, str], dict[str, float]]:
    """Measure opening the client, by size and network speed."""
    result: dict[tuple[str, str], dict[str, float]] = {}
    for name in sizes or opening.SIZES:
        size = opening.SIZES[name]
        with tempfile.TemporaryDirectory(prefix="bench-", dir=directory) as place:
            config = Config(data_dir=place)
            made = _made(archive.create(config, size.messages, size.people, size.channels))
            headers = {"Authorization": made.authorization}
            with served(Path(place)) as port:
                for speed in (opening.FULL, opening.SLOW):
                    result[name, speed] = opening.opened(
                        browser, f"http://127.0.0.1:{port}", headers, speed, rounds
                    )
                    sys.stderr.write(f"{size}, {speed}\n")
    return result


def _used(
    browser: Browser, directory: Path, only_presses: bool = False
) -> dict[str, dict[str, float]]:
    """Measure using the client."""
    result: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=directory) as place:
        config = Config(data_dir=place)
        made = _made(archive.create(config, MESSAGES, PEOPLE, CHANNELS))
        with served(Path(place)) as port:
            client = Client(browser, f"http://127.0.0.1:{port}", made)
            measures = (
                ("script at first load (KB)", client.script),
                ("from navigation to usable (ms)", client.usable),
                ("another conversation (ms)", client.switch),
                ("from one browser to another (ms)", client.seen),
                ("from a key press to paint, 4 times slower (ms)", client.presses),
                ("memory (MB)", client.memory),
            )
            for title, measure in measures:
                if only_presses and measure != client.presses:
                    continue
                result[title] = measure()
                sys.stdout.write(f"{title}\n")
                for what, value in result[title].items():
                    sys.stdout.write(f"  {what:<32}{value:>10.1f}\n")
                sys.stdout.flush()
    return result


def _made(making: Coroutine[Any, Any, archive.Archive]) -> archive.Archive:
    """Create the organization in a thread, because the browser's event loop runs in this one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, making).result()


if __name__ == "__main__":
    main()
