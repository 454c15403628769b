"""The time from a key press to the paint that shows its result, at a quarter of the processor's
speed."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from playwright.sync_api import Page

SLOWER: Final = 4
ROUNDS: Final = 20
WARM: Final = 2
"""Rounds that don't count: they load what is loaded on first use."""
POLLING: Final = 100
"""In ms: to look in each frame would slow the frames that are measured."""
TARGET: Final = 50
"""In ms."""

_WATCH: Final = """
(ready) => {
    const isReady = new Function("before", "shown", `return ${ready}`);
    // Other views stay in the page.
    const shown = (what) => document.querySelector(`main ${what}:not([data-hidden] *)`);
    const before = {
        title: shown("h1")?.textContent.trim(),
        selected: shown("article.selected")?.dataset.message,
        text: shown("textarea")?.value,
    };
    window.pressed = 0;
    const heard = (event) => {
        // The modifier of a shortcut comes first.
        if (event.key === "Control") return;
        removeEventListener("keydown", heard, {capture: true});
        const look = () => {
            if (!isReady(before, shown)) requestAnimationFrame(look);
            // A task after the frame's callbacks runs once it has been painted.
            else setTimeout(() => { window.pressed = performance.now() - event.timeStamp; });
        };
        requestAnimationFrame(look);
    };
    addEventListener("keydown", heard, {capture: true});
}
"""


@dataclass(frozen=True)
class _Press:
    name: str
    keys: tuple[str, ...]
    """The keys, which are pressed in turn."""
    ready: str
    """A JavaScript condition that is true once the page shows the result."""
    first: tuple[str, ...] = ()
    """Keys that are pressed before each measured press."""
    reading: int = 0
    """How long someone reads before the measured press, in ms. The selected conversation is loaded
    and rendered in the meantime."""


_ARTICLE: Final = 'shown("article")'
_TITLE: Final = 'shown("h1")?.textContent.trim()'
_PRESSES: Final = (
    _Press("another channel", ("D", "A"), f"{_TITLE} !== before.title && {_ARTICLE}"),
    _Press(
        "next message",
        ("k",),
        'shown("article.selected")?.dataset.message !== before.selected',
    ),
    _Press("inbox", ("i",), f'{_TITLE} === "Inbox" && shown("[data-row]")'),
    _Press(
        "conversation from the inbox",
        ("Enter",),
        f'{_TITLE} !== "Inbox" && {_ARTICLE}',
        first=("i", "j"),
        reading=1000,
    ),
    _Press("search box", ("Control+k",), 'document.querySelector("dialog[open] input")'),
)


def pressed(page: Page) -> Iterator[tuple[str, list[float]]]:
    """Measure each kind of press in a page that shows a conversation. Yields names and durations in
    ms."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
    for press in _PRESSES:
        took = []
        for number in range(ROUNDS + WARM):
            for key in press.first:
                page.keyboard.press(key)
                _rest(page)
            page.wait_for_timeout(press.reading)
            page.evaluate(f"(ready) => ({_WATCH})(ready)", press.ready)
            page.keyboard.press(press.keys[number % len(press.keys)])
            page.wait_for_function("() => window.pressed > 0", polling=POLLING)
            if number >= WARM:
                took.append(float(page.evaluate("window.pressed")))
            if press.name in {"inbox", "search box"}:
                page.keyboard.press("Escape" if press.name == "search box" else "D")
            _rest(page)
        yield press.name, took
    # Every letter in the text box.
    page.keyboard.press("D")
    _rest(page)
    page.keyboard.press("r")
    box = page.locator("main textarea:not([data-hidden] *)").last
    box.focus()
    took = []
    for number in range(ROUNDS + WARM):
        ready = 'shown("textarea").value !== before.text'
        page.evaluate(f"(ready) => ({_WATCH})(ready)", ready)
        page.keyboard.press("a")
        page.wait_for_function("() => window.pressed > 0", polling=POLLING)
        if number >= WARM:
            took.append(float(page.evaluate("window.pressed")))
        _rest(page)
    box.fill("")
    yield "letter in the text box", took
    devtools.send("Emulation.setCPUThrottlingRate", {"rate": 1})


def _rest(page: Page) -> None:
    """Let requests and prefetching of a view end, since they don't count for the next press."""
    page.wait_for_timeout(400)


def summary(name: str, took: list[float]) -> dict[str, float]:
    ordered = sorted(took)
    return {
        f"{name}, median": statistics.median(ordered),
        f"{name}, 95 %": ordered[min(int(len(ordered) * 0.95), len(ordered) - 1)],
    }
