"""Images and videos from other servers, served by this one."""

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator

import msgspec
import pytest

from tertulia.service.config import Config
from tertulia.store.disk_files import DiskFiles
from tertulia.store.url_cache import FRESH_SECONDS, UrlCache
from tertulia.wire.files import pictures
from tertulia.wire.files.pictures import media_type
from tests.external_web import PNG, ExternalWeb, Page, external_web, redirect
from tests.support import Organization, TestClock, new_organization, open_organization, rows

MP4 = b"\0\0\0\x20ftypisom" + b"film" * 1000


@pytest.fixture
async def there() -> AsyncIterator[ExternalWeb]:
    async with external_web() as served:
        served.pages["/x.png"] = Page(PNG, "image/png")
        yield served


@pytest.fixture
async def org(config: Config, there: ExternalWeb, clock: TestClock) -> AsyncIterator[Organization]:
    """`ann` and `ben`, on a node that can reach the external server."""
    async with new_organization(config, clock=clock, web=there.web()) as organization:
        await organization.add("ben")
        await organization.channel("tea", "ann", "ben")
        yield organization


async def source(org: Organization, url: str) -> str:
    """The address that a message with this URL shows."""
    html = (await org["ben"].post("/messages/render", content=url)).ok["rendered"]
    (found,) = re.findall(r' src="([^"]+)"', html)
    assert found.startswith("/external_content/")
    return str(found)


async def test_a_message_shows_an_external_image(org: Organization, there: ExternalWeb) -> None:
    url = there.url("/x.png")
    listener = await org["ben"].register(apply_markdown=True)
    await org["ann"].send("tea", "x", url)
    (event,) = await listener.events()
    html = event["message"]["content"]
    src = await source(org, url)
    assert html == (
        f'<div class="message_inline_image"><a href="{url}"><img src="{src}"></a></div>'
    )
    assert there.asked == []
    answer = await org.nobody.open(src)
    assert (answer.status_code, answer.content) == (200, PNG)
    assert there.asked == ["/x.png"]


async def test_external_content_is_served_so_that_it_cannot_run(
    org: Organization, there: ExternalWeb
) -> None:
    answer = await org["ben"].open(await source(org, there.url("/x.png")))
    headers = answer.headers
    assert headers["content-type"] == "image/png"
    assert headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in headers["content-security-policy"]
    assert "default-src 'none'" in headers["content-security-policy"]
    assert headers["referrer-policy"] == "no-referrer"
    assert "set-cookie" not in headers


@rows(
    "page",
    [
        Page(b"<svg xmlns='http://www.w3.org/2000/svg'><script>1</script></svg>", "image/svg+xml"),
        Page(b"<html><script>1</script></html>", "image/png"),
        Page(b"GIF8", "image/gif"),
        Page(b"", "image/png"),
        Page(b"\0" * 100, "image/png"),
        Page(b"%PDF-1.7", "image/png"),
        Page(PNG, status=404),
        redirect("http://169.254.169.254/x.png"),
    ],
)
async def test_content_that_is_no_image_is_not_served(
    org: Organization, there: ExternalWeb, page: Page
) -> None:
    asked = len(there.asked)
    path = f"/{asked}.png"
    there.pages[path] = page
    src = await source(org, there.url(path))
    answer = await org["ben"].open(src)
    assert answer.status_code == 404
    assert answer.headers["content-type"] == "image/svg+xml"
    assert b"script" not in answer.content
    # It isn't requested again immediately.
    there.pages[path] = Page(PNG)
    assert (await org["ben"].open(src)).status_code == 404
    assert there.asked[asked:] == [path]


async def test_a_failed_request_is_retried_later(
    org: Organization, there: ExternalWeb, clock: TestClock
) -> None:
    there.pages["/x.png"] = Page(status=500)
    src = await source(org, there.url("/x.png"))
    assert (await org["ben"].open(src)).status_code == 404
    there.pages["/x.png"] = Page(PNG)
    clock.ahead = pictures.MISSING_SECONDS + 1
    assert (await org["ben"].open(src)).status_code == 200


async def test_content_that_is_too_large_is_not_served(
    org: Organization, there: ExternalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pictures, "MAX_BYTES", len(PNG))
    there.pages["/y.png"] = Page(PNG + b"\0")
    assert (await org["ben"].open(await source(org, there.url("/x.png")))).status_code == 200
    assert (await org["ben"].open(await source(org, there.url("/y.png")))).status_code == 404


@rows("change", ["proof", "url", "both", "text", "null", "odd"])
async def test_only_linked_content_is_fetched(
    org: Organization, there: ExternalWeb, change: str
) -> None:
    src = await source(org, there.url("/x.png"))
    _, _, proof, url = src.split("/")
    other = there.url("/secret.png").encode().hex()
    forged = {
        "proof": f"/external_content/{'A' * len(proof)}/{url}",
        "url": f"/external_content/{proof}/{other}",
        "both": f"/external_content/x/{other}",
        "text": f"/external_content/{proof}/secret",
        "null": f"/external_content/%00é/{url}",
        "odd": f"/external_content/{proof}/{url}f",
    }[change]
    answer = await org["ben"].open(forged)
    assert answer.status_code == 403
    assert there.asked == []


async def test_content_is_fetched_once(org: Organization, there: ExternalWeb) -> None:
    src = await source(org, there.url("/x.png"))
    answers = await asyncio.gather(*(org["ben"].open(src) for _ in range(5)))
    assert {answer.status_code for answer in answers} == {200}
    assert (await org["ann"].open(src)).status_code == 200
    assert there.asked == ["/x.png"]


async def test_content_is_fetched_again_after_a_week(
    org: Organization, there: ExternalWeb, clock: TestClock
) -> None:
    src = await source(org, there.url("/x.png"))
    await org["ben"].open(src)
    clock.ahead = FRESH_SECONDS - 60
    await org["ben"].open(src)
    assert len(there.asked) == 1
    clock.ahead = FRESH_SECONDS + 60
    await org["ben"].open(src)
    assert len(there.asked) == 2


async def test_a_video_can_be_played_in_parts(org: Organization, there: ExternalWeb) -> None:
    url = there.url("/f.mp4")
    there.pages["/f.mp4"] = Page(MP4, "video/mp4")
    src = await source(org, url)
    answer = await org["ben"].open(src, headers={"Range": "bytes=4-11"})
    assert (answer.status_code, answer.content) == (206, b"ftypisom")
    assert answer.headers["content-type"] == "video/mp4"


async def test_with_too_many_requests_in_progress_the_next_must_retry(
    org: Organization, there: ExternalWeb, monkeypatch: pytest.MonkeyPatch
) -> None:
    src = await source(org, there.url("/x.png"))
    monkeypatch.setattr(pictures, "WAITING", 0)
    answer = await org["ben"].open(src)
    assert answer.status_code == 503
    assert there.asked == []


async def test_the_server_can_disable_external_content(config: Config, there: ExternalWeb) -> None:
    url = there.url("/x.png")
    async with new_organization(config, web=there.web()) as org:
        src = org.node.links.external(url)
        assert (await org["ann"].open(src)).status_code == 200
    off = msgspec.structs.replace(config, external_content=False)
    async with open_organization(off, web=there.web()) as org:
        html = (await org["ann"].post("/messages/render", content=url)).ok["rendered"]
        assert html == f'<p><a href="{url}">{url}</a></p>'
        assert (await org["ann"].open(src)).status_code == 403
        data = (await org["ann"].register()).data
        assert data["server_inline_url_embed_preview"] is False


async def test_an_image_in_the_private_network_is_not_fetched(
    org: Organization, there: ExternalWeb
) -> None:
    for url in ("http://10.0.0.1/x.png", "http://[::1]/x.png", "http://inside.example/x.png"):
        there.others["inside.example"] = [["192.168.1.1"]]
        assert (await org["ben"].open(await source(org, url))).status_code == 404


async def test_linked_urls_are_not_logged(
    org: Organization, there: ExternalWeb, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    there.pages["/broken.png"] = Page(status=500)
    for path in ("/x.png", "/broken.png"):
        url = there.url(path)
        await org["ben"].open(await source(org, url))
        records = [record for record in caplog.records if record.name.startswith("tertulia")]
        said = "\n".join(f"{record.getMessage()} {vars(record)}" for record in records)
        assert "/external_content/" in said
        assert url.encode().hex() not in said
        assert path not in said


@rows(
    ("begins", "expected"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"GIF87a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", None),
        (b"BM\x10\0\0\0\0\0\0\0", "image/bmp"),
        (b"BM<html>", None),
        (b"\0\0\0\x1cftypavif", "image/avif"),
        (b"\0\0\0\x1cftypmp42", "video/mp4"),
        (b"\0\0\0\x1cftypqt  ", None),
        (b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f\x42\x82\x84webm", "video/webm"),
        (b"\x1a\x45\xdf\xa3\x01\0\0\0\0\0\0\x1f\x42\x82\x88matroska", None),
        (b"<svg", None),
        (b"", None),
    ],
)
def test_the_content_type_is_detected_from_the_bytes(begins: bytes, expected: str | None) -> None:
    assert media_type(begins) == expected


async def test_the_oldest_content_is_evicted(config: Config) -> None:
    files = DiskFiles(config.files_path)
    kept = UrlCache(files, 1000)
    now = time.time()
    for number in range(20):
        url = f"http://a.example/{number}"
        await kept.keep(url, b"x" * 100)
        place = kept.found(url, now)
        assert place is not None
        os.utime(place, (now - 100 + number, now - 100 + number))
        kept.make_room(100)
    found = [n for n in range(20) if kept.found(f"http://a.example/{n}", now)]
    assert 8 <= len(found) <= 10
    assert found == list(range(20 - len(found), 20))
    # It isn't part of the organization's files, so no backup has it.
    assert [one async for one in files.kept()] == []
