"""Opening the client, by size of the organization and speed of the network."""

import statistics
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from playwright.sync_api import Browser, CDPSession, Page, Request

from bench.arithmetic import with_unit

FULL, SLOW = "full speed", "400 kbit/s"
_SLOW: Final = {
    "offline": False,
    "latency": 100,
    "downloadThroughput": 400_000 / 8,
    "uploadThroughput": 400_000 / 8,
}
"""Chromium's network throttling; latency in ms."""
PATIENCE: Final = 120_000
"""The longest duration of a page load, in ms."""
QUIET: Final = 3
"""Seconds without requests after which loading is complete. Two seconds after the first view, the
client prefetches data."""


@dataclass(frozen=True)
class Size:
    """The size of an organization."""

    people: int
    channels: int
    messages: int
    targets: Mapping[tuple[str, str], float]
    """By speed and measurement, in its unit."""

    def __str__(self) -> str:
        return f"{self.people:,} people, {self.channels:,} channels"


SIZES: Final = {
    "small": Size(30, 10, 2_000, {(FULL, "usable"): 1, (SLOW, "first paint"): 1}),
    "large": Size(5_200, 520, 20_000, {(FULL, "usable"): 2, (SLOW, "first paint"): 1}),
    "largest": Size(50_000, 2_000, 20_000, {(FULL, "usable"): 4, (SLOW, "first paint"): 1}),
}

UNITS: Final = {
    "first paint": "s",
    "first words": "s",
    "usable": "s",
    "all there": "s",
    "transferred": "KiB",
    "memory": "MiB",
    "longest task": "ms",
    "tasks over 50 ms": "ms",
}

NOTED = """
const here = () => document.querySelector("main h1")
    && document.querySelector("main a[href], main textarea");
const look = () => here()
    ? requestAnimationFrame(() => setTimeout(() => { window.usable = performance.now(); }))
    : requestAnimationFrame(look);
look();
window.longTasks = [];
new PerformanceObserver((list) => {
    for (const one of list.getEntries()) window.longTasks.push(one.duration);
}).observe({type: "longtask", buffered: true});
"""
"""Records when the first usable view is painted, and long tasks."""

_WAITS: Final = "/api/v1/events"
"""The path of the request that is always pending."""

_FOUND = """
(waits) => {
    const paint = (name) => performance.getEntriesByName(name)[0]?.startTime ?? NaN;
    const all = [...performance.getEntriesByType("navigation"),
        ...performance.getEntriesByType("resource")];
    const came = all.filter((one) => !one.name.includes(waits));
    return {
        "first paint": paint("first-paint") / 1000,
        "first words": paint("first-contentful-paint") / 1000,
        "usable": window.usable / 1000,
        "all there": Math.max(...came.map((one) => one.responseEnd)) / 1000,
        "transferred": all.reduce((sum, one) => sum + one.transferSize, 0),
        "longest task": Math.max(0, ...window.longTasks) / 1000,
        "tasks over 50 ms": window.longTasks.reduce((sum, one) => sum + one, 0) / 1000,
    };
}
"""


def opened(
    browser: Browser, site: str, headers: Mapping[str, str], speed: str, rounds: int
) -> dict[str, float]:
    """The medians of opening the inbox with an empty cache, in seconds and bytes."""
    results: list[dict[str, float]] = []
    for _ in range(rounds):
        with browser.new_context(
            base_url=site,
            extra_http_headers=dict(headers),
            viewport={"width": 1280, "height": 800},
            service_workers="block",
        ) as context:
            page = context.new_page()
            page.add_init_script(NOTED)
            devtools = context.new_cdp_session(page)
            if speed == SLOW:
                devtools.send("Network.enable")
                devtools.send("Network.emulateNetworkConditions", _SLOW)
            under_way = _UnderWay(page)
            page.goto("/#inbox", wait_until="commit", timeout=PATIENCE)
            page.wait_for_function("() => window.usable > 0", timeout=PATIENCE)
            # Requests after the first view count for the transferred bytes and memory.
            under_way.wait()
            waits: dict[str, float] = page.evaluate(_FOUND, _WAITS)
            results.append(waits | {"memory": heap(page, devtools)})
    return {name: statistics.median(fields[name] for fields in results) for name in UNITS}


class _UnderWay:
    """The pending requests of a page."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._requests: set[Request] = set()
        self._last = time.monotonic()
        page.on("request", self._begun)
        page.on("requestfinished", self._ended)
        page.on("requestfailed", self._ended)

    def wait(self) -> None:
        """Wait until no request was pending for a while."""
        until = time.monotonic() + PATIENCE / 1000
        while self._requests or time.monotonic() - self._last < QUIET:
            if time.monotonic() > until:
                raise TimeoutError(
                    f"Still under way: {[request.url for request in self._requests]}"
                )
            self._page.wait_for_timeout(100)

    def _begun(self, request: Request) -> None:
        if _WAITS not in request.url:
            self._requests.add(request)
            self._last = time.monotonic()

    def _ended(self, request: Request) -> None:
        if request in self._requests:
            self._requests.remove(request)
            self._last = time.monotonic()


def heap(page: Page, devtools: CDPSession) -> float:
    """The heap in bytes after garbage collection."""
    devtools.send("Performance.enable")
    for _ in range(2):
        devtools.send("HeapProfiler.collectGarbage")
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return float(next(metric["value"] for metric in metrics if metric["name"] == "JSHeapUsedSize"))


def table(opens: Mapping[tuple[str, str], Mapping[str, float]]) -> Iterator[str]:
    """A Markdown table of results by size and speed, with targets."""
    yield "| organization | network | " + " | ".join(UNITS) + " | target |  |"
    yield "|---|---|" + "---:|" * len(UNITS) + "---|---|"
    for (name, speed), values in opens.items():
        size = SIZES[name]
        wanted = {what: most for (at, what), most in size.targets.items() if at == speed}
        missed = [what for what, most in wanted.items() if not values[what] <= most]
        cells = [with_unit(values[what], unit) for what, unit in UNITS.items()]
        target = ", ".join(f"{what} ≤ {most:g} {UNITS[what]}" for what, most in wanted.items())
        verdict = "" if not wanted else "**missed**" if missed else "met"
        yield f"| {size} | {speed} | {' | '.join(cells)} | {target} | {verdict} |"
