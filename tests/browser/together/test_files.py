"""The list of a conversation's files, previews, and edited pictures."""

import io
import re

import httpx
import pytest
from PIL import Image
from playwright.sync_api import Locator, Route, expect

from tests.browser.conftest import Open
from tests.browser.driving import Window
from tests.e2e.conftest import Site
from tests.e2e.server import Account
from tests.pictures import picture


def upload(site: Site, account: Account, name: str, content: bytes) -> str:
    """Upload a file. Returns a link to it."""
    auth = (account.email, account.api_key)
    url = f"{site.server.url}/api/v1/user_uploads"
    answer = httpx.post(url, files={"file": (name, content)}, auth=auth, timeout=60)
    return f"[{name}]({answer.raise_for_status().json()['url']})"


def send(site: Site, account: Account, topic: str, content: str) -> int:
    about = {"type": "stream", "to": "general", "topic": topic, "content": content}
    auth = (account.email, account.api_key)
    answer = httpx.post(f"{site.server.url}/api/v1/messages", data=about, auth=auth, timeout=60)
    return int(answer.raise_for_status().json()["id"])


@pytest.fixture
def ann(sqlite_site: Site, shared_page: Open) -> Window:
    return shared_page(sqlite_site.server, sqlite_site.ann)


def test_files_of_a_topic_are_listed_filtered_and_shown(sqlite_site: Site, ann: Window) -> None:
    site, page, topic = sqlite_site, ann.page, "list of files"
    main = page.get_by_role("main")
    for name, content in (
        ("sunset.png", picture(40, 30)),
        ("Größen.txt", "Größe: 38 to 42".encode()),
        ("backup.zip", b"PK\x05\x06" + b"\0" * 18),
    ):
        send(site, site.ben, topic, f"Here: {upload(site, site.ben, name, content)}")
    send(site, site.ben, "list of other files", upload(site, site.ben, "elsewhere.txt", b"x"))
    secret = upload(site, site.ben, "secret.png", picture(41, 30))
    send(site, site.ben, topic, f"```spoiler Who wins?\n{secret}\n```")

    ann.go("narrow/channel/general/topic/list.20of.20files")
    expect(ann.message("sunset.png")).to_be_visible()
    page.get_by_role("button", name="Topic actions").click()
    page.get_by_role("menuitem", name="Files").click()
    expect(main.get_by_role("heading", level=1)).to_contain_text("list of files")
    pictures, files = (
        main.get_by_role("list", name="Images"),
        main.get_by_role("list", name="Files"),
    )
    expect(pictures.get_by_role("img")).to_have_count(1)
    # A picture in a spoiler has no thumbnail here.
    expect(files.get_by_role("listitem")).to_have_count(3)
    expect(files).to_contain_text(re.compile("secret.png.*backup.zip.*Größen.txt", re.S))
    expect(main.get_by_text("elsewhere.txt")).to_have_count(0)

    # By name, regardless of case and accents, and by kind.
    main.get_by_role("textbox", name="Find by name").fill("GRÖ")
    expect(files.get_by_role("listitem")).to_have_count(1)
    main.get_by_role("textbox", name="Find by name").fill("")
    main.get_by_role("button", name="Other files").click()
    expect(files.get_by_role("listitem")).to_have_count(1)
    expect(files).to_contain_text("backup.zip")
    main.get_by_role("button", name="Other files").click()

    # The first letters of a text are shown in place, a picture in full size.
    text = files.get_by_role("link", name="Größen.txt", exact=True)
    expect(files).to_contain_text("17 bytes")
    text.click()
    shown = page.get_by_role("dialog", name="Größen.txt")
    expect(shown).to_contain_text("Größe: 38 to 42")
    page.keyboard.press("Escape")
    expect(shown).to_have_count(0)
    expect(text).to_be_focused()
    pictures.get_by_role("link", name="sunset.png", exact=True).click()
    expect(page.get_by_role("dialog", name="sunset.png").get_by_role("img")).to_be_visible()
    page.keyboard.press("Escape")

    # Files come and go while the list is shown.
    late = send(
        site, site.ben, topic, upload(site, site.ben, "late.zip", b"PK\x05\x06" + b"\0" * 18)
    )
    expect(files).to_contain_text("late.zip")
    auth = (site.ben.email, site.ben.api_key)
    changed = {"content": "Without it"}
    url = f"{site.server.url}/api/v1/messages/{late}"
    httpx.patch(url, auth=auth, data=changed, timeout=60).raise_for_status()
    expect(files).not_to_contain_text("late.zip")

    files.get_by_role("link", name="Go to the message with backup.zip").click()
    expect(ann.message("backup.zip")).to_be_visible()


def test_a_picture_is_edited_before_it_is_sent(sqlite_site: Site, ann: Window) -> None:
    """Half of it is cropped, and the rest blurred. The sent picture can't show what was there."""
    page = ann.page
    ann.go("narrow/channel/general/topic/edited.20picture")
    original = Image.new("RGB", (400, 200), "white")
    for x in range(0, 400, 2):  # Fine stripes, like letters.
        original.paste("black", (x, 0, x + 1, 200))
    content = io.BytesIO()
    original.save(content, "PNG")
    expect(ann.box).to_be_visible()
    page.locator("main input[type=file]").last.set_input_files(
        {"name": "plan.png", "mimeType": "image/png", "buffer": content.getvalue()}
    )
    attached = page.get_by_role("list", name="Files")
    expect(attached.get_by_text("Uploaded")).to_be_visible()
    attached.get_by_role("button", name="Edit plan.png").click()
    dialog = page.get_by_role("dialog", name="Edit plan.png")
    area = dialog.get_by_role("application")
    save = dialog.get_by_role("button", name="Save")
    expect(save).to_be_disabled()

    # The right half, with the mouse.
    drag(area, (0.5, 0.0), (1.0, 1.0))
    expect(area.locator("canvas")).to_have_attribute("width", "200")
    # A mistake is undone.
    drag(area, (0.1, 0.1), (0.3, 0.3))
    expect(area.locator("canvas")).to_have_attribute("width", "40")
    dialog.get_by_role("button", name="Undo").click()
    expect(area.locator("canvas")).to_have_attribute("width", "200")

    # Blurred with the keyboard, whose selection begins in the middle.
    dialog.get_by_role("button", name="Blur").click()
    area.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    save.click()
    expect(dialog).to_have_count(0)
    expect(attached.get_by_text("Uploaded")).to_be_visible()
    expect(attached.get_by_role("listitem")).to_have_count(1)
    ann.box.fill("As planned")
    ann.box.press("Control+Enter")
    sent = ann.message("As planned").locator(".message_inline_image a")
    address = sent.get_attribute("href")
    assert address
    response = page.context.request.get(f"{sqlite_site.server.url}{address}")
    result = Image.open(io.BytesIO(response.body())).convert("L")
    assert result.size == (200, 200)
    # The stripes are gone in the middle, and stay at the edge.
    pixels = result.tobytes()  # One byte each.
    middle = pixels[100 * 200 + 70 : 100 * 200 + 130]
    edge = pixels[10 * 200 : 10 * 200 + 60]
    assert max(middle) - min(middle) < 30
    assert max(edge) - min(edge) > 200


def drag(area: Locator, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drag over an element, between places given as parts of its width and height."""
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    assert box
    mouse = area.page.mouse
    places = [(box["x"] + x * box["width"], box["y"] + y * box["height"]) for x, y in (start, end)]
    mouse.move(*places[0])
    mouse.down()
    mouse.move(*places[1], steps=3)
    mouse.up()


def test_a_file_that_cannot_be_loaded_says_so(sqlite_site: Site, ann: Window) -> None:
    site = sqlite_site
    send(site, site.ben, "lost file", upload(site, site.ben, "lost.txt", b"Gone"))
    ann.go("files/narrow/channel/general/topic/lost.20file")
    link = ann.page.get_by_role("link", name="lost.txt", exact=True)
    expect(ann.page.get_by_role("main")).to_contain_text("4 bytes")

    def lose(route: Route) -> None:
        route.fulfill(status=404)

    ann.page.route("**/user_uploads/**", lose)
    link.click()
    expect(ann.page.get_by_role("dialog")).to_contain_text("can’t be shown")
    ann.page.keyboard.press("Escape")
    ann.page.unroute("**/user_uploads/**", lose)
