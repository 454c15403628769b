"""The contact sheet: pictures of every view and dialog in every look.

Each view is opened once in a wide window and once on a phone, and photographed in each look; then
both again after everyone and everything got a long name. Views that extend beyond the window's
sides are listed at the end.
"""

import html
import re
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx
from docs.sheet_views import FEW, LESS, OWNER, PARTS, VIEWS, View, take
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, BrowserContext, Page
from playwright.sync_api import Error as BrowserError
from tests.browser.driving import PHONE, settled, sign_in_resident, spilled
from tests.e2e.server import Server

WIDE: Final = {"width": 1440, "height": 900}


@dataclass(frozen=True)
class Look:
    """A window size and color scheme for the pictures."""

    name: str
    window: str
    """`wide` or `phone`."""
    size: Mapping[str, int]
    scheme: str = "light"
    contrast: bool = False
    """Whether the system asks for more contrast."""
    forced: bool = False
    """Whether the system forces its few colors."""
    rtl: bool = False
    long: bool = False
    """Whether everyone and everything has a long name."""


LOOKS: Final = (
    Look("light-1440", "wide", WIDE),
    Look("dark-1440", "wide", WIDE, "dark"),
    Look("contrast-1440", "wide", WIDE, contrast=True),
    Look("contrast-dark-1440", "wide", WIDE, "dark", contrast=True),
    Look("rtl-1440", "wide", WIDE, rtl=True),
    Look("forced-1440", "wide", WIDE, forced=True),
    Look("forced-dark-1440", "wide", WIDE, "dark", forced=True),
    Look("light-1024", "wide", LESS),
    Look("long-1440", "wide", WIDE, long=True),
    Look("long-1024", "wide", LESS, long=True),
    Look("light-390", "phone", PHONE),
    Look("dark-390", "phone", PHONE, "dark"),
    Look("contrast-390", "phone", PHONE, contrast=True),
    Look("forced-dark-390", "phone", PHONE, "dark", forced=True),
    Look("rtl-390", "phone", PHONE, rtl=True),
    Look("long-390", "phone", PHONE, long=True),
)

_PICTURES_SHOWN: Final = """() => [...document.images].every((one) => {
    const { top, bottom } = one.getBoundingClientRect();
    return one.complete || bottom < 0 || top > innerHeight;
})"""
"""Whether the images in the window are loaded."""

LONG: Final = "Wilhelmina Konstantinopolitanskaya-Featherstonehaugh of the Upper Terrace"
COLUMNS: Final = {"wide": 4, "phone": 8}
ROWS: Final = {"wide": 4, "phone": 2}
"""Rows on a sheet."""
SMALL: Final = {"wide": 480, "phone": 240}
"""The width of a picture on a sheet, in pixels."""


def made(
    browser: Browser,
    server: Server,
    into: Path,
    channels: Mapping[str, str],
    key: str,
    *,
    names: Sequence[str] = (),
    looks: Sequence[str] = (),
) -> list[str]:
    """Make the sheets of these views in these looks, by default of all.

    Return the problems: views that couldn't be opened, and those that extend beyond the window.
    """
    into.mkdir(parents=True, exist_ok=True)
    wanted = [look for look in LOOKS if not looks or look.name in looks]
    shots: dict[str, dict[str, str]] = {}
    troubles: list[str] = []
    _fill(server, channels, key)
    for long in (False, True):
        if not any(look.long is long for look in wanted):
            continue
        if long:
            _lengthen(server, channels, key)
        for window in ("wide", "phone"):
            some = [look for look in wanted if look.long is long and look.window == window]
            if some:
                camera = _Camera(browser, server, into, channels, some)
                troubles += camera.shoot(names, shots)
    _write_sheets(into, shots, wanted)
    return troubles


class _Camera:
    """Opens all views in one kind of window."""

    def __init__(
        self,
        browser: Browser,
        server: Server,
        into: Path,
        channels: Mapping[str, str],
        looks: Sequence[Look],
    ) -> None:
        self._browser, self._server, self._into = browser, server, into
        self._channels, self._looks = channels, looks
        self._window = looks[0].window
        self._contexts: dict[str | None, BrowserContext] = {}
        self._troubles: list[str] = []

    def shoot(self, names: Sequence[str], shots: dict[str, dict[str, str]]) -> list[str]:
        for view in self._all(names):
            began = time.monotonic()
            try:
                self._shown(view, shots.setdefault(view.name, {}))
            except BrowserError as error:
                said = str(error).splitlines()[0]
                self._troubles.append(f"{view.name} ({self._window}): couldn't be opened: {said}")
            sys.stdout.write(f"{self._window} {view.name} {time.monotonic() - began:.1f} s\n")
            sys.stdout.flush()
        for context in self._contexts.values():
            context.close()
        return self._troubles

    def _all(self, names: Sequence[str]) -> Iterator[View]:
        for view in VIEWS:
            if self._window in view.on and (not names or view.name in names):
                yield view
        for part in PARTS:
            if not names or part in names:
                yield from self._pages(part)

    def _pages(self, part: str) -> Iterator[View]:
        """Yield the pages that a part links to."""
        page = self._context(OWNER).new_page()
        page.goto(f"/#{part}")
        settled(page)
        found: list[str] = page.evaluate(
            f"""[...document.querySelectorAll('main a[href^="#{part}/"]')]
                .map((one) => one.hash.slice(1))"""
        )
        page.close()
        places = list(dict.fromkeys([part, *found]))
        for place in places[: FEW.get(part, len(places))]:
            name = re.sub(r"[^\w-]+", "-", place)
            yield View(name, place.replace("{", "{{").replace("}", "}}"))

    def _context(self, who: str | None) -> BrowserContext:
        """Return the browser context where this user is signed in."""
        if who not in self._contexts:
            context = self._browser.new_context(**_how(self._server, self._looks[0]))
            if who is not None:
                sign_in_resident(context, self._server, who)
            self._contexts[who] = context
        return self._contexts[who]

    def _shown(self, view: View, shots: dict[str, str]) -> None:
        context = self._context(view.who)
        page = context.new_page()
        try:
            at = view.at.format(**self._channels)
            page.goto(at if at.startswith("/") else f"/#{at}")
            if at.startswith("/"):
                page.wait_for_load_state("load")
            else:
                settled(page)
            for step in view.steps:
                take(page, step)
            # Presence loads later.
            page.wait_for_timeout(350)
            page.wait_for_function(_PICTURES_SHOWN)
            for look in self._looks:
                _dress(page, look, dict(view.size or look.size))
                out = spilled(page)
                if out:
                    self._troubles.append(f"{view.name} ({look.name}): {out[0]}, {len(out)} in all")
                name = f"{view.name}.{look.name}.jpg"
                page.screenshot(path=self._into / name, type="jpeg", quality=80)
                shots[look.name] = name
        finally:
            context.set_offline(False)
            page.close()


def _how(server: Server, look: Look) -> dict[str, Any]:
    is_phone = look.window == "phone"
    return {
        "base_url": server.url,
        "viewport": dict(look.size),
        "reduced_motion": "reduce",
        "has_touch": is_phone,
        "is_mobile": is_phone,
        "service_workers": "block",
    }


def _dress(page: Page, look: Look, size: dict[str, int]) -> None:
    """Change the open page to a look."""
    page.emulate_media(
        color_scheme=look.scheme,
        contrast="more" if look.contrast else "no-preference",
        forced_colors="active" if look.forced else "none",
    )
    page.evaluate("(dir) => (document.documentElement.dir = dir)", "rtl" if look.rtl else "ltr")
    if page.viewport_size != size:
        page.set_viewport_size(size)
    # Elements that scripts size are laid out again.
    page.evaluate("dispatchEvent(new Event('resize'))")
    page.wait_for_timeout(60)


# The organization


def _fill(server: Server, channels: Mapping[str, str], key: str) -> None:
    """Add one of each thing that a view can show."""
    later = int(time.time()) + 86_400
    kitchen = channels["kitchen"]
    drafts = f"""[{{"type": "stream", "to": [{kitchen}], "topic": "staff lunch",
        "content": "Leek soup, and the rest of the bread"}}]"""
    with httpx.Client(base_url=f"{server.url}/api/v1", auth=(OWNER, key), timeout=60) as http:
        where = {"type": "stream", "to": kitchen, "topic": "staff lunch"}
        http.post("/drafts", data={"drafts": drafts})
        for text in ("Fire drill today at four.", "The **prices** of winter:\n\n- soup 6\n- tea 3"):
            http.post(
                "/scheduled_messages",
                data={**where, "content": text, "scheduled_delivery_timestamp": f"{later}"},
            )
        newest = http.get(
            "/messages", params={"anchor": "newest", "num_before": 1, "num_after": 0}
        ).json()["messages"][0]["id"]
        http.post(
            "/reminders",
            data={"message_id": f"{newest}", "scheduled_delivery_timestamp": f"{later}"},
        )
        lunch = http.post(
            "/messages", data={**where, "content": "Soup is ready at one. Bread, @*bakers*?"}
        ).json()["id"]
        http.patch(
            f"/messages/{lunch}",
            data={"content": "Soup is ready at half past one. Bread, @*bakers*?"},
        )
        for one in (lunch, newest):
            http.post(f"/messages/{one}/pin")
        http.patch("/realm", data={"enable_spectator_access": "true"})
        http.patch(f"/streams/{channels['recipes']}", data={"is_web_public": "true"})
        http.post("/saved_snippets", data={"title": "Opening hours", "content": "8 to 18"})
        for name, kind in (("Weather vane", "1"), ("Letter box", "2")):
            bot = {"full_name": name, "short_name": name.split()[1], "bot_type": kind}
            http.post("/bots", data=bot)
        http.post(
            "/realm/filters",
            data={"pattern": r"#(?P<id>\d+)", "url_template": "https://cafe.example/{id}"},
        )
        http.post(
            "/invites",
            data={"invitee_emails": "zoe@cafe.example", "invite_as": "400", "stream_ids": "[]"},
        )


def _lengthen(server: Server, channels: Mapping[str, str], key: str) -> None:
    """Give everyone and everything a long name."""
    with httpx.Client(base_url=f"{server.url}/api/v1", auth=(OWNER, key), timeout=60) as http:
        for one in http.get("/users").json()["members"]:
            http.patch(
                f"/users/{one['user_id']}",
                data={"full_name": f"{one['full_name'].split()[0]} {LONG}"[:100]},
            )
        for name, number in channels.items():
            http.patch(
                f"/streams/{number}",
                data={"new_name": f"{name} and everything that belongs to it"[:60]},
            )
        http.patch("/realm", data={"name": LONG[:40]})


# The sheets


def _write_sheets(
    into: Path, shots: Mapping[str, Mapping[str, str]], looks: Iterable[Look]
) -> None:
    (into / "index.html").write_text(_page(shots, list(looks)))
    for look in looks:
        names = [(view, found[look.name]) for view, found in shots.items() if look.name in found]
        count = COLUMNS[look.window] * ROWS[look.window]
        for number, first in enumerate(range(0, len(names), count), start=1):
            sheet = _sheet(into, names[first : first + count], look)
            sheet.save(into / f"sheet-{look.name}-{number}.png")


def _sheet(into: Path, names: Sequence[tuple[str, str]], look: Look) -> Image.Image:
    """Return the pictures in a grid, each below its name."""
    width, columns, line = SMALL[look.window], COLUMNS[look.window], 18
    height = width * look.size["height"] // look.size["width"] + line
    rows = -(-len(names) // columns)
    sheet = Image.new("RGB", (columns * (width + 8), rows * (height + 8)), "#777")
    draw, font = ImageDraw.Draw(sheet), ImageFont.load_default(13)
    for number, (view, file) in enumerate(names):
        x, y = number % columns * (width + 8) + 4, number // columns * (height + 8) + 4
        draw.text((x, y), view, fill="white", font=font)
        with Image.open(into / file) as image:
            small = image.resize((width, height - line), Image.Resampling.LANCZOS)
            sheet.paste(small, (x, y + line))
    return sheet


def _page(shots: Mapping[str, Mapping[str, str]], looks: Sequence[Look]) -> str:
    """Return a page with all pictures: a row for each view, a column for each look."""

    def cell(file: str | None) -> str:
        if file is None:
            return "<td></td>"
        return f'<td><a href="{file}"><img loading="lazy" src="{file}"></a></td>'

    head = "".join(f"<th>{look.name}</th>" for look in looks)
    rows = "".join(
        f'<tr id="{html.escape(view)}"><th>{html.escape(view)}</th>'
        + "".join(cell(found.get(look.name)) for look in looks)
        + "</tr>"
        for view, found in shots.items()
    )
    return _HTML.replace("HEAD", head).replace("ROWS", rows)


_HTML: Final = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Every view in every look</title>
<style>
  body { margin: 0; background: #777; color: #fff; font: 13px system-ui, sans-serif; }
  table { border-spacing: 6px; }
  th { position: sticky; top: 0; left: 0; background: #555; padding: 4px; }
  img { display: block; max-width: 320px; max-height: 320px; }
</style>
<table><thead><tr><th></th>HEAD</tr></thead><tbody>ROWS</tbody></table>
"""
