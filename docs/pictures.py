"""Makes the pictures in `docs/pictures/`: `python -m docs.pictures`, with the client built.

With `--all` it makes a contact sheet instead: every view and dialog in every look (light, dark,
more contrast, forced colours, 390, 1024 and 1440 pixels, from right to left, long names), to be
looked at before a release. `index.html` has all of them, `sheet-….png` those of a look beside each
other.

They show the demonstration, so that they can be made again whenever the client changes. The
machine needs Chromium, and fonts for emoji and for the languages that the demonstration's people
write (Debian: fonts-noto-color-emoji, fonts-noto-core, fonts-noto-cjk).

With `--mails DIRECTORY` it writes sheets of all mails there instead, in light and dark, for a
window and a phone, to be looked at: they are not kept.
"""

import argparse
import io
import itertools
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from docs import sheet as contact_sheet
from docs.sheet_views import SETTINGS
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.driving import FLAGS, HOW_TO_GET, PHONE, chromium, settled, sign_in_resident
from tests.e2e.server import Server, ended

HERE = Path(__file__).parent / "pictures"
WIDE = {"width": 1280, "height": 800}
SHEET = Path(__file__).parents[1] / "build" / "pictures"
SHEET_COLUMNS = 4
MAIL_WIDTHS = (640, 390)
MAIL_LANGUAGES = ("en", "de", "ja")
LARGEST = 250_000
"""Bytes that a picture may have."""


@dataclass(frozen=True)
class Picture:
    """What is shown, and how."""

    name: str
    fragment: str
    scheme: str = "light"
    size: dict[str, int] | None = None
    prepare: Callable[[Page], None] | None = None

    @property
    def context(self) -> dict[str, Any]:
        is_phone = self.size == PHONE
        return {
            "viewport": self.size or WIDE,
            "device_scale_factor": 2 if is_phone else 1.5,
            "color_scheme": self.scheme,
            "reduced_motion": "reduce",
            "has_touch": is_phone,
            "is_mobile": is_phone,
            "service_workers": "block",
        }


def welcomed(page: Page) -> None:
    """The welcome has been read."""
    known = page.get_by_role("button", name="Hide", exact=True)
    if known.count():
        known.click()
        # Nothing is hovered.
        page.mouse.move(0, 0)


PICTURES = [
    Picture("inbox", "inbox", prepare=welcomed),
    Picture("topic", "narrow/channel/{workshop}/topic/sales.20by.20hour"),
    Picture("topic-dark", "narrow/channel/{numbers}/topic/November", "dark"),
    Picture("settings", "settings/preferences"),
    Picture("phone", "inbox", size=PHONE, prepare=welcomed),
    Picture("phone-topic", "narrow/channel/{kitchen}/topic/staff.20lunch", size=PHONE),
    Picture("phone-dark", "narrow/channel/{long table}/topic/Miga", "dark", PHONE),
]


def made(browser: Browser, server: Server, picture: Picture, channels: dict[str, str]) -> bytes:
    """The picture as PNG."""
    with browser.new_context(base_url=server.url, **picture.context) as context:
        sign_in_resident(context, server, "iris@cafe.example")
        page = context.new_page()
        page.goto("/#" + picture.fragment.format(**channels))
        settled(page)
        if picture.prepare:
            picture.prepare(page)
            settled(page)
        # Presence and pictures come after.
        page.wait_for_timeout(1200)
        return page.screenshot()


def small(png: bytes) -> bytes:
    """The same as WebP, so exact that nobody sees a difference."""
    with Image.open(io.BytesIO(png)) as image:
        for quality in (92, 86, 80, 70):
            written = io.BytesIO()
            image.convert("RGB").save(written, "WEBP", quality=quality, method=6)
            if written.tell() <= LARGEST:
                return written.getvalue()
    raise SystemExit("A picture is too large.")


def key_of(server: Server) -> str:
    """The owner's, as a demonstration prints it."""
    return str(re.findall(r"key=(\S+)", server.log_text())[0])


def channels_of(server: Server) -> dict[str, str]:
    """How the demonstration's channels are called in addresses, by name."""
    auth = ("iris@cafe.example", key_of(server))
    answer = httpx.get(f"{server.url}/api/v1/streams", auth=auth).json()
    return {one["name"]: f"{one['stream_id']}" for one in answer["streams"]}


def mail_sheets(browser: Browser, server: Server, directory: Path) -> None:
    """Write a sheet of all mails for each language, width and scheme."""
    directory.mkdir(parents=True, exist_ok=True)
    names = re.findall("<h2>(.+?)</h2>", httpx.get(f"{server.url}/dev/mails").text)
    for width, scheme in itertools.product(MAIL_WIDTHS, ("light", "dark")):
        size = {"width": width, "height": 300}
        with browser.new_context(
            base_url=server.url, viewport=size, color_scheme=scheme
        ) as context:
            page = context.new_page()
            for language in MAIL_LANGUAGES:
                shots = []
                for name in names:
                    page.goto(f"/dev/mails/{name}?language={language}")
                    shots.append(page.screenshot(full_page=True))
                sheet(shots).save(directory / f"{language}-{scheme}-{width}.png")


def sheet(shots: list[bytes]) -> Image.Image:
    """The pictures on one, in columns that are about as long as each other."""
    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    images.sort(key=lambda one: -one.height)
    columns: list[list[Image.Image]] = [[] for _ in range(SHEET_COLUMNS)]
    for image in images:
        min(columns, key=lambda column: sum(one.height for one in column)).append(image)
    width = images[0].width
    height = max(sum(one.height for one in column) for column in columns)
    found = Image.new("RGB", (width * len(columns), height), "#808080")
    for number, column in enumerate(columns):
        top = 0
        for image in column:
            found.paste(image, (number * width, top))
            top += image.height
    return found


def main() -> None:
    """Make all of them, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", help="only these pictures, or views of the sheet")
    parser.add_argument("--all", action="store_true", help="make the contact sheet")
    parser.add_argument(
        "--look",
        action="append",
        choices=[look.name for look in contact_sheet.LOOKS],
        help="only this one",
    )
    parser.add_argument(
        "--into", type=Path, default=SHEET, help="where the contact sheet goes (build/pictures)"
    )
    parser.add_argument("--mails", metavar="DIRECTORY", type=Path, help="sheets of all mails")
    options = parser.parse_args()
    wanted = options.names
    program = chromium()
    if program is None:
        raise SystemExit(HOW_TO_GET)
    if options.mails is not None:
        with (
            tempfile.TemporaryDirectory() as directory,
            ended(Server(Path(directory))) as server,
            sync_playwright() as playwright,
        ):
            server.create_organization()
            server.start("/ready", "--dev")
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            mail_sheets(browser, server, options.mails)
            browser.close()
        return
    HERE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory, ended(Server(Path(directory))) as server:
        if options.all:
            Path(directory, "tertulia.toml").write_text(SETTINGS)
        server.start("/ready", "--demo")
        channels = channels_of(server)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
            if options.all:
                troubles = contact_sheet.made(
                    browser,
                    server,
                    options.into,
                    channels,
                    key_of(server),
                    names=wanted,
                    looks=options.look or (),
                )
                sys.stdout.write(f"{options.into / 'index.html'}\n")
                if troubles:
                    raise SystemExit("\n".join(["To be mended:", *troubles]))
            else:
                for picture in PICTURES:
                    if not wanted or picture.name in wanted:
                        content = small(made(browser, server, picture, channels))
                        (HERE / f"{picture.name}.webp").write_bytes(content)
            browser.close()


if __name__ == "__main__":
    main()
