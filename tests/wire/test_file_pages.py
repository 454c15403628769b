"""Serving uploaded files: permissions, headers, and safety."""

import io
import os
from typing import Any

import pytest
from PIL import Image

from tertulia.model.changes import RealmChanged, Unsubscribed
from tertulia.service.config import Config
from tertulia.service.files import uploads
from tertulia.wire.files.downloads import disposition
from tests.pictures import picture
from tests.support import Organization, Person, TestClock, new_organization, rows

SPECTATORS = RealmChanged(values={"enable_spectator_access": True})


async def linked(org: Organization, channel: str, **settings: Any) -> str:
    """A file of ben's, linked by his message in a new channel. Returns its address."""
    await org.channel(channel, "ben", **settings)
    path = await org["ben"].upload()
    await org["ben"].send(channel, "t", f"[a](/user_uploads/{path})")
    return f"/user_uploads/{path}"


async def names_told(person: Person, *addresses: str) -> list[str]:
    """The files at these addresses whose names the person gets."""
    paths = [address.removeprefix("/user_uploads/") for address in addresses]
    reply = await person.get("/attachments/facts", path_ids=paths)
    return [one["name"] for one in reply.ok["files"]]


# Permissions


@rows(
    ("settings", "who", "status"),
    [
        ({}, "ben", 200),
        ({}, "cleo", 200),
        ({}, "gus", 403),
        ({"is_private": True}, "ben", 200),
        ({"is_private": True}, "ann", 403),
        ({"is_private": True}, "cleo", 403),
        ({"is_private": True}, "gus", 403),
        ({"is_web_public": True}, "gus", 200),
        ({"is_web_public": True}, "cleo", 200),
    ],
)
async def test_a_file_is_served_to_people_who_can_read_a_message_with_it(
    org: Organization, settings: dict[str, Any], who: str, status: int
) -> None:
    address = await linked(org, f"{settings} for {who}", **settings)
    assert (await org[who].open(address)).status_code == status
    assert (await org[who].open(address.replace("uploads/", "uploads/download/"))).status_code == (
        status
    )
    temporary = await org[who].get(address)
    assert temporary.status == status
    smaller = await org[who].open(address.replace("uploads/", "uploads/thumbnail/") + "/x.webp")
    assert smaller.status_code == (404 if status == 200 else status)
    assert await names_told(org[who], address) == (["note.txt"] if status == 200 else [])


async def test_of_several_files_the_accessible_ones_are_described(
    org: Organization,
) -> None:
    """Each once, however often it's requested. Unknown files are left out."""
    shown = await linked(org, "shown")
    hidden = await linked(org, "hidden", is_private=True)
    own = "/user_uploads/" + await org["cleo"].upload("own.txt")
    asked = [own, hidden, shown, own, "/user_uploads/1/nothing"]
    assert await names_told(org["cleo"], *asked) == ["own.txt", "note.txt"]
    assert await names_told(org["cleo"]) == []
    too_many = await org["cleo"].get("/attachments/facts", path_ids=["x"] * 51)
    assert too_many.refused("REQUEST_VARIABLE_INVALID")


async def test_a_later_subscriber_can_open_only_files_in_the_visible_history(
    org: Organization,
) -> None:
    hidden = await linked(org, "hidden", is_private=True, history_public=False)
    shown = await linked(org, "shown", is_private=True)
    for channel in ("hidden", "shown"):
        reply = await org["ben"].post(
            "/users/me/subscriptions",
            subscriptions=[{"name": channel}],
            principals=[org["cleo"].user_id],
        )
        assert reply.ok
    assert (await org["cleo"].open(hidden)).status_code == 403
    assert (await org["cleo"].open(shown)).status_code == 200


async def test_someone_who_leaves_a_private_channel_cannot_open_its_files(
    org: Organization,
) -> None:
    channel_id = await org.channel("den", "ben", "cleo", is_private=True)
    path = await org["ben"].upload()
    await org["ben"].send("den", "t", f"/user_uploads/{path}")
    assert (await org["cleo"].open(f"/user_uploads/{path}")).status_code == 200
    await org.do(
        Unsubscribed(
            channel_id=channel_id,
            user_ids=(org["cleo"].user_id,),
            until=org.node.state.last_message_id,
            name="den",
        )
    )
    assert (await org["cleo"].open(f"/user_uploads/{path}")).status_code == 403


@rows(
    ("open_to_all", "web_public", "status"),
    [(False, True, 403), (False, False, 403), (True, True, 200), (True, False, 403)],
)
async def test_spectators_can_open_files_linked_in_web_public_channels(
    org: Organization, open_to_all: bool, web_public: bool, status: int
) -> None:
    if open_to_all:
        await org.do(SPECTATORS)
    address = await linked(org, f"{open_to_all}, {web_public}", is_web_public=web_public)
    answer = await org.nobody.open(address)
    assert answer.status_code == status
    assert "www-authenticate" not in answer.headers
    temporary = await org.nobody.get(address)
    assert temporary.status == (status if open_to_all else 401)
    if open_to_all:
        assert await names_told(org.nobody, address) == (["note.txt"] if status == 200 else [])


async def test_only_file_addresses_may_contain_the_key(org: Organization) -> None:
    path = await org["ben"].upload()
    key = {"api_key": org["ben"].api_key}
    assert (await org.nobody.open(f"/user_uploads/{path}", params=key)).status_code == 200
    png = await org["ben"].upload("p.png", picture(9, 9), "image/png")
    thumbnail = f"/user_uploads/thumbnail/{png}/840x560.webp"
    assert (await org.nobody.open(thumbnail, params=key)).status_code == 200
    assert (
        await org.nobody.open(f"/user_uploads/{path}", params={"api_key": "x"})
    ).status_code == (401)
    (await org.nobody.get("/attachments", **key)).refused("UNAUTHORIZED", 401)


@rows(
    ("header", "status"),
    [
        ("Basic " + "x" * 9, 401),
        ("Bearer abc", 400),
        ("Basic YTpi", 401),
    ],
)
async def test_wrong_credentials_are_reported(org: Organization, header: str, status: int) -> None:
    path = await org["ben"].upload()
    answer = await org.http.get(f"/user_uploads/{path}", headers={"Authorization": header})
    assert answer.status_code == status
    assert "www-authenticate" not in answer.headers


async def test_a_deactivated_account_cannot_open_files(org: Organization) -> None:
    path = await org["ben"].upload()
    await org["ann"].delete(f"/users/{org['ben'].user_id}")
    assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 401


# Missing files


@rows(
    "address",
    [
        "/user_uploads/1/ab/" + "0" * 32 + "/a.txt",
        "/user_uploads/2/ab/" + "0" * 32 + "/a.txt",
        "/user_uploads/",
        "/user_uploads/x",
        "/user_uploads/1/../../secret",
        "/user_uploads/1/..%2f..%2f..%2fsecret",
        "/user_uploads/%2e%2e/%2e%2e/secret",
        "/user_uploads/incoming/" + "0" * 32,
        "/user_uploads/1/ab/%00/a",
        "/user_uploads/" + "a/" * 2000,
        "/user_uploads/download/x",
        "/user_uploads/thumbnail/x/840x560.webp",
        "/user_uploads/temporary/x/y",
    ],
)
async def test_a_missing_file_is_not_found(readonly_org: Organization, address: str) -> None:
    answer = await readonly_org["ben"].open(address)
    assert answer.status_code == 404
    assert b"secret" not in answer.content


async def test_an_address_works_only_with_its_whole_path(org: Organization) -> None:
    path = await org["ben"].upload("a.txt")
    for other in (path[:-1], path + "x", path + "/", path.replace("1/", "2/", 1), path.upper()):
        assert (await org["ben"].open(f"/user_uploads/{other}")).status_code == 404


async def test_a_lost_file_and_a_symbolic_link_are_not_found(
    org: Organization,
) -> None:
    path = await org["ben"].upload()
    found = await org.node.uploads.found(path)
    assert found is not None
    place = found.local_path
    assert place is not None
    place.unlink()
    assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 404
    os.symlink("/etc/hostname", place)
    assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 404


@rows(
    ("headers", "kind"),
    [
        ({"Accept": "text/html,*/*"}, "text/html"),
        ({"Accept": "*/*"}, "text/html"),
        ({}, "text/html"),
        ({"Accept": "image/avif,image/webp,*/*"}, "image/svg+xml"),
        ({"Accept": "*/*", "Sec-Fetch-Dest": "image"}, "image/svg+xml"),
    ],
)
async def test_a_refusal_is_an_image_where_one_is_expected(
    org: Organization, headers: dict[str, str], kind: str
) -> None:
    path = await org["ben"].upload()
    for address, status in ((f"/user_uploads/{path}", 403), ("/user_uploads/1/x", 404)):
        answer = await org["cleo"].open(address, headers=headers)
        assert answer.status_code == status
        assert answer.headers["content-type"].partition(";")[0] == kind
        assert "sandbox" in answer.headers["content-security-policy"]
        assert answer.headers["cache-control"] == "no-store"


# Headers


@rows(
    ("name", "kind", "inline"),
    [
        ("a.pdf", "application/pdf", True),
        ("a.mp3", "audio/mpeg", True),
        ("a.wav", "audio/wav", True),
        ("a.weba", "audio/webm", True),
        ("a.apng", "image/apng", True),
        ("a.avif", "image/avif", True),
        ("a.gif", "image/gif", True),
        ("a.jpg", "image/jpeg", True),
        ("a.png", "image/png", True),
        ("a.webp", "image/webp", True),
        ("a.mp4", "video/mp4", True),
        ("a.webm", "video/webm", True),
        ("a.svg", "image/svg+xml", False),
        ("a.html", "text/html", False),
        ("a.xhtml", "application/xhtml+xml", False),
        ("a.xml", "text/xml", False),
        ("a.js", "text/javascript", False),
        ("a.txt", "text/plain", False),
        ("a.zip", "application/zip", False),
        ("a.png.html", "text/html", False),
        ("a.html.png", "text/html", False),
        ("a.tiff", "image/tiff", False),
        ("a", "application/octet-stream", False),
    ],
)
async def test_only_harmless_types_are_shown_in_the_browser(
    shared_org: Organization, name: str, kind: str, inline: bool
) -> None:
    path = await shared_org["ben"].upload(name, b"<script>alert(1)</script>", kind)
    answer = await shared_org["ben"].open(f"/user_uploads/{path}")
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert answer.headers["content-disposition"].partition(";")[0] == (
        "inline" if inline else "attachment"
    )
    [facts] = (await shared_org["ben"].get("/attachments/facts", path_ids=[path])).ok["files"]
    assert facts == {
        "path_id": path,
        "name": name,
        "size": 25,
        "media_type": kind,
        "opens": inline,
    }
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert ("sandbox" in policy) is (kind != "application/pdf")
    assert answer.headers["x-content-type-options"] == "nosniff"
    saved = await shared_org["ben"].open(f"/user_uploads/download/{path}")
    assert saved.headers["content-disposition"].startswith("attachment;")


@rows(
    ("name", "said", "kind"),
    [
        ("a.png", "", "image/png"),
        ("a.webp", "application/octet-stream", "image/webp"),
        ("a.md", "", "text/markdown"),
        ("a.txt", "TEXT/Plain; charset=latin-1", "text/plain"),
        ("a.png", "not a type", "image/png"),
        ("a.png", "text/html\r\nX-Evil: 1", "text/html"),
        ("a.unknown", "", "application/octet-stream"),
        ("a.bin", "x" * 300 + "/y", "application/octet-stream"),
        ("a", "application/vnd.ms-excel", "application/vnd.ms-excel"),
    ],
)
async def test_the_type_comes_from_the_uploader_or_the_name(
    shared_org: Organization, name: str, said: str, kind: str
) -> None:
    head = f'--x\r\nContent-Disposition: form-data; name="f"; filename="{name}"\r\n'
    body = f"{head}Content-Type: {said}\r\n\r\nhello\r\n--x--\r\n"
    reply = await shared_org["ben"].raw(
        "POST",
        "/user_uploads",
        content=body.encode(),
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    )
    answer = await shared_org["ben"].open(reply.ok["url"])
    assert answer.headers["content-type"].partition(";")[0] == kind
    assert "x-evil" not in answer.headers


@rows(
    ("name", "header"),
    [
        ("a.txt", "inline; filename=\"a.txt\"; filename*=UTF-8''a.txt"),
        ("a b.txt", "inline; filename=\"a b.txt\"; filename*=UTF-8''a%20b.txt"),
        ('a"b\\c.txt', "inline; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt"),
        ("é€.txt", "inline; filename=\"__.txt\"; filename*=UTF-8''%C3%A9%E2%82%AC.txt"),
        ("100%41.txt", "inline; filename=\"100_41.txt\"; filename*=UTF-8''100%2541.txt"),
        ("a;b'c.txt", "inline; filename=\"a;b'c.txt\"; filename*=UTF-8''a%3Bb%27c.txt"),
        ("a\r\nb", "inline; filename=\"a__b\"; filename*=UTF-8''a%0D%0Ab"),
    ],
)
def test_the_download_name_survives_the_header(name: str, header: str) -> None:
    assert disposition("inline", name) == header
    assert header.isascii()


async def test_a_file_can_be_cached_and_revalidated(org: Organization) -> None:
    path = await org["ben"].upload()
    first = await org["ben"].open(f"/user_uploads/{path}")
    assert "private" in first.headers["cache-control"]
    assert "public" not in first.headers["cache-control"]
    assert "Authorization" in first.headers["vary"]
    known = {"If-None-Match": first.headers["etag"]}
    again = await org["ben"].open(f"/user_uploads/{path}", headers=known)
    assert (again.status_code, again.content) == (304, b"")
    assert (await org["cleo"].open(f"/user_uploads/{path}", headers=known)).status_code == 403


@rows(
    ("asked", "status", "content", "told"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=8-", 206, b"89", "bytes 8-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=5-99", 206, b"56789", "bytes 5-9/10"),
        ("bytes=10-", 416, None, "bytes */10"),
    ],
)
async def test_a_range_of_a_file_can_be_requested(
    org: Organization, asked: str, status: int, content: bytes | None, told: str
) -> None:
    path = await org["ben"].upload("a.mp4", b"0123456789", "video/mp4")
    answer = await org["ben"].open(f"/user_uploads/{path}", headers={"Range": asked})
    assert answer.status_code == status
    assert answer.headers["content-range"] == told
    if content is not None:
        assert answer.content == content
        assert answer.headers["accept-ranges"] == "bytes"


async def test_head_returns_the_headers_of_get(org: Organization) -> None:
    path = await org["ben"].upload()
    answer = await org.http.head(
        f"/user_uploads/{path}", auth=(org["ben"].email, org["ben"].api_key)
    )
    assert (answer.status_code, answer.content) == (200, b"")
    assert answer.headers["content-length"] == "5"


async def test_web_clients_of_other_origins_may_fetch_files(org: Organization) -> None:
    path = await org["ben"].upload()
    answer = await org["ben"].open(f"/user_uploads/{path}")
    assert answer.headers["access-control-allow-origin"] == "*"
    asked = await org.http.options(f"/user_uploads/{path}")
    assert asked.status_code == 204
    assert "Authorization" in asked.headers["access-control-allow-headers"]


# Temporary addresses


async def test_a_temporary_address_opens_the_file_to_anyone_for_a_minute(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        path = await org["ann"].upload("naïve.txt")
        url = (await org["ann"].get(f"/user_uploads/{path}")).ok["url"]
        assert url.startswith("/user_uploads/temporary/")
        assert url.endswith("/naïve.txt")
        answer = await org.nobody.open(url)
        assert (answer.status_code, answer.content) == (200, b"hello")
        clock.ahead = 58
        assert (await org.nobody.open(url)).status_code == 200
        clock.ahead = 62
        assert (await org.nobody.open(url)).status_code == 404


async def test_a_temporary_address_is_for_one_file_and_cannot_be_forged(org: Organization) -> None:
    path = await org["ben"].upload("one.txt", b"one")
    other = await org["ben"].upload("two.txt", b"two")
    url = (await org["ben"].get(f"/user_uploads/{path}")).ok["url"]
    ticket = url.split("/")[3]
    said, _, signature = ticket.partition(".")
    forged = org.node.vault.ticket("another purpose", other, 2**40)
    for made_up in (
        said,
        f"{said}.",
        f"{said}.{signature[:-1]}",
        f"{said}x.{signature}",
        f".{signature}",
        "é.é",
        forged,
        f"{forged.partition('.')[0]}.{signature}",
    ):
        assert (await org.nobody.open(f"/user_uploads/temporary/{made_up}/a")).status_code == 404
    assert (await org.nobody.open(f"/user_uploads/temporary/{ticket}/a")).content == b"one"
    await org["ben"].delete("/attachments/1")
    assert (await org.nobody.open(url)).status_code == 404


async def test_a_missing_file_gets_no_temporary_address(org: Organization) -> None:
    (await org["ben"].get(f"/user_uploads/1/ab/{'0' * 32}/a.txt")).refused(status=404)
    (await org["ben"].get("/user_uploads/1/a")).refused(status=404)
    path = await org["ben"].upload()
    (await org["cleo"].get(f"/user_uploads/{path}")).refused(status=403)
    (await org.nobody.get(f"/user_uploads/{path}")).refused("UNAUTHORIZED", 401)


# Thumbnails


def image_properties(content: bytes) -> tuple[str | None, tuple[int, int], int]:
    with Image.open(io.BytesIO(content)) as found:
        return found.format, found.size, getattr(found, "n_frames", 1)


async def test_register_lists_the_thumbnail_formats(readonly_org: Organization) -> None:
    assert (await readonly_org["ben"].register()).data["server_thumbnail_formats"] == [
        {
            "name": "840x560.webp",
            "max_width": 840,
            "max_height": 560,
            "format": "webp",
            "animated": False,
        },
        {
            "name": "840x560-anim.webp",
            "max_width": 840,
            "max_height": 560,
            "format": "webp",
            "animated": True,
        },
    ]


@rows("kind", ["PNG", "JPEG", "GIF", "WEBP", "TIFF", "AVIF"])
@rows(
    ("size", "smaller"),
    [((960, 320), (840, 280)), ((320, 640), (280, 560)), ((30, 20), (30, 20))],
)
async def test_a_thumbnail_is_smaller_and_never_larger(
    shared_org: Organization, kind: str, size: tuple[int, int], smaller: tuple[int, int]
) -> None:
    path = await shared_org["ben"].upload("p", picture(*size, kind), f"image/{kind.lower()}")
    answer = await shared_org["ben"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/webp"
    assert image_properties(answer.content) == ("WEBP", smaller, 1)
    assert (await shared_org["ben"].get(f"/thumbnail/status/{path}")).ok["has_thumbnail"] is True


@rows(
    ("frames", "form", "shows"),
    [
        (3, "840x560-anim.webp", 3),
        (3, "840x560.webp", 1),
        (1, "840x560-anim.webp", 1),
        (3, "9999x1-anim.gif", 3),
        (3, "100x75.jpg", 1),
        (3, "nonsense", 1),
        (1, "99999999999x1.webp", 1),
    ],
)
async def test_an_unknown_format_gets_the_nearest(
    shared_org: Organization, frames: int, form: str, shows: int
) -> None:
    path = await shared_org["ben"].upload("p.gif", picture(40, 30, "GIF", frames), "image/gif")
    answer = await shared_org["ben"].open(f"/user_uploads/thumbnail/{path}/{form}")
    assert answer.status_code == 200
    assert image_properties(answer.content) == ("WEBP", (40, 30), shows)


async def test_a_thumbnail_respects_the_camera_orientation(org: Organization) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    path = await org["ben"].upload("p.jpg", picture(40, 20, "JPEG", exif=exif), "image/jpeg")
    answer = await org["ben"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
    assert image_properties(answer.content)[1] == (20, 40)
    attachment = org.node.state.uploads.at_path(path)
    assert attachment is not None
    assert attachment.picture is not None
    assert (attachment.picture.width, attachment.picture.height) == (20, 40)


BOMB = picture(1, 1).replace(
    b"\x00\x00\x00\x01\x00\x00\x00\x01\x08", b"\x00\x01\x00\x00\x00\x01\x00\x00\x08", 1
)
"""It claims to have four billion pixels."""


@rows(
    ("name", "content", "kind"),
    [
        ("a.txt", b"hello", "text/plain"),
        ("a.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
        ("a.png", b"no picture", "image/png"),
        ("a.png", b"", "image/png"),
        ("a.png", picture(99, 99)[:60], "image/png"),
        ("a.png", BOMB, "image/png"),
        ("a.heic", b"\0\0\0\x18ftypheic", "image/heic"),
        ("a.pdf", b"%PDF-1.4", "application/pdf"),
    ],
    ids=["text", "svg", "lies", "empty", "cut off", "bomb", "heic", "pdf"],
)
async def test_a_file_that_is_no_image_has_no_thumbnail(
    shared_org: Organization, name: str, content: bytes, kind: str
) -> None:
    path = await shared_org["ben"].upload(name, content, kind)
    answer = await shared_org["ben"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
    assert 400 <= answer.status_code < 500
    assert answer.headers["content-type"] == "image/svg+xml"
    whole = await shared_org["ben"].open(f"/user_uploads/{path}")
    assert (whole.status_code, whole.content) == (200, content)


async def test_a_thumbnail_reveals_nothing_without_permission(org: Organization) -> None:
    path = await org["ben"].upload("p.png", picture(9, 9), "image/png")
    assert (await org["cleo"].get(f"/thumbnail/status/{path}")).refused(status=403)
    assert (await org["ben"].get("/thumbnail/status/1/nothing")).refused(status=404)
    text = await org["ben"].upload()
    assert (await org["ben"].get(f"/thumbnail/status/{text}")).ok["has_thumbnail"] is False


async def test_a_thumbnail_is_made_once(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    path = await org["ben"].upload("p.png", picture(9, 9), "image/png")
    address = f"/user_uploads/thumbnail/{path}/840x560.webp"
    first = await org["ben"].open(address)

    async def never(*_: Any, **__: Any) -> None:
        raise AssertionError("it is there already")

    monkeypatch.setattr("tertulia.pictures.thumbnail", never)
    again = await org["ben"].open(address)
    assert again.content == first.content
    known = {"If-None-Match": first.headers["etag"]}
    assert (await org["ben"].open(address, headers=known)).status_code == 304


async def test_with_too_many_waiting_for_thumbnails_the_next_must_retry(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await org["ben"].upload("p.png", picture(9, 9), "image/png")
    monkeypatch.setattr(uploads, "WAITING", 0)
    answer = await org["ben"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
    assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
    monkeypatch.undo()
    answer = await org["ben"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
    assert answer.status_code == 200
