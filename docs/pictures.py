"""Take the pictures in `docs/pictures/`: `python -m docs.pictures`, with the client built.

They show the demonstration, so they can be taken again when the client changes. The machine needs
Chromium, and fonts for emoji and for the languages of the demonstration (on Debian:
fonts-noto-color-emoji, fonts-noto-core, and fonts-noto-cjk).

`--all` makes a contact sheet instead, to look through before a release: every view and dialog in
light and dark mode, with more contrast and forced colors, at 390, 1024, and 1440 pixels, from right
to left, and with long names. `index.html` lists all pictures, and `sheet-….png` has those of one
look.

`--mails DIRECTORY` writes sheets of all emails, in light and dark mode, for a window and a phone.
"""

import argparse
import io
import itertools
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
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
"""The maximum size of a picture in bytes."""


@dataclass(frozen=True)
class Picture:
    """A picture of one view."""

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
            "timezone_id": afternoon(),
        }


def afternoon() -> str:
    """Return a time zone where it's between four and five in the afternoon."""
    ahead = (16 - datetime.now(UTC).hour + 12) % 24 - 12
    return f"Etc/GMT{-ahead:+d}"  # The sign in these names is that of UTC minus local time.


def hide_welcome(page: Page) -> None:
    hide = page.get_by_role("button", name="Hide", exact=True)
    if hide.count():
        hide.click()
        # Otherwise the pointer would hover over what is there now.
        page.mouse.move(0, 0)


PICTURES = [
    Picture("inbox", "inbox", prepare=hide_welcome),
    Picture("topic", "narrow/channel/{workshop}/topic/sales.20by.20hour"),
    Picture("topic-dark", "narrow/channel/{numbers}/topic/November", "dark"),
    Picture("settings", "settings/preferences"),
    Picture("phone", "inbox", size=PHONE, prepare=hide_welcome),
    Picture("phone-topic", "narrow/channel/{kitchen}/topic/staff.20lunch", size=PHONE),
    Picture("phone-dark", "narrow/channel/{long table}/topic/Miga", "dark", PHONE),
]


def take(browser: Browser, server: Server, picture: Picture, channels: dict[str, str]) -> bytes:
    """Return the picture as PNG."""
    with browser.new_context(base_url=server.url, **picture.context) as context:
        sign_in_resident(context, server, "iris@cafe.example")
        page = context.new_page()
        page.goto("/#" + picture.fragment.format(**channels))
        settled(page)
        if picture.prepare:
            picture.prepare(page)
            settled(page)
        # Presence and images load later.
        page.wait_for_timeout(1200)
        return page.screenshot()


def as_webp(png: bytes) -> bytes:
    """Return the picture as WebP, with the best quality that fits `LARGEST`."""
    with Image.open(io.BytesIO(png)) as image:
        for quality in (92, 86, 80, 70):
            written = io.BytesIO()
            image.convert("RGB").save(written, "WEBP", quality=quality, method=6)
            if written.tell() <= LARGEST:
                return written.getvalue()
    raise SystemExit("A picture is too large.")


def key_of(server: Server) -> str:
    """Return the owner's API key, which the demonstration prints."""
    return str(re.findall(r"key=(\S+)", server.log_text())[0])


def channels_of(server: Server) -> dict[str, str]:
    """Return the IDs of the demonstration's channels by name, as addresses have them."""
    auth = ("iris@cafe.example", key_of(server))
    streams = httpx.get(f"{server.url}/api/v1/streams", auth=auth).json()["streams"]
    return {stream["name"]: f"{stream['stream_id']}" for stream in streams}


def mail_sheets(browser: Browser, server: Server, directory: Path) -> None:
    """Write a sheet of all emails for each language, width, and color scheme."""
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
    """Return one image with all pictures, in columns of about the same height."""
    images = [Image.open(io.BytesIO(shot)).convert("RGB") for shot in shots]
    images.sort(key=lambda image: -image.height)
    columns: list[list[Image.Image]] = [[] for _ in range(SHEET_COLUMNS)]
    for image in images:
        min(columns, key=lambda column: sum(other.height for other in column)).append(image)
    width = images[0].width
    height = max(sum(image.height for image in column) for column in columns)
    result = Image.new("RGB", (width * len(columns), height), "#808080")
    for number, column in enumerate(columns):
        top = 0
        for image in column:
            result.paste(image, (number * width, top))
            top += image.height
    return result


def main() -> None:
    """Take all pictures, or the named ones."""
    parser = argparse.ArgumentParser(prog="python -m docs.pictures", description=__doc__)
    parser.add_argument(
        "names", nargs="*", help="only these pictures, or views of the contact sheet"
    )
    parser.add_argument("--all", action="store_true", help="make the contact sheet")
    parser.add_argument(
        "--look",
        action="append",
        choices=[look.name for look in contact_sheet.LOOKS],
        help="only this look",
    )
    parser.add_argument(
        "--into",
        type=Path,
        default=SHEET,
        help="the directory of the contact sheet (default: build/pictures)",
    )
    parser.add_argument(
        "--mails", metavar="DIRECTORY", type=Path, help="write sheets of all emails"
    )
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
                    raise SystemExit("\n".join(["Problems:", *troubles]))
            else:
                for picture in PICTURES:
                    if not wanted or picture.name in wanted:
                        content = as_webp(take(browser, server, picture, channels))
                        (HERE / f"{picture.name}.webp").write_bytes(content)
            browser.close()


if __name__ == "__main__":
    main()
