"""Files in a bucket: the same behavior as on disk, downloads by proxy and by redirect, and
failures."""

import asyncio
import secrets
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from tertulia.jobs import files as pictures
from tertulia.jobs.files import PictureCleanup, file_store
from tertulia.model.errors import FilesUnavailable, Unavailable
from tertulia.service.config import Config
from tertulia.store import bucket_files, bucket_partials, file_transfer, uploads
from tertulia.store.bucket_partials import BucketPartialUploads, BucketPiece, chain
from tertulia.store.disk_files import DiskFiles
from tertulia.store.file_moves import move
from tertulia.store.uploads import UploadStore
from tertulia.wire.pages.web_client import client_page
from tests.external_web import external_web, unvouched
from tests.pictures import picture
from tests.s3 import ACCESS_KEY, SECRET_KEY, S3Server, Trouble
from tests.support import Newcomer, Organization, Person, TestClock, new_organization
from tests.wire import test_file_pages, test_tus, test_uploads
from tests.wire.loopback import serving
from tests.wire.test_tus import create_upload, offset_of, piece
from tests.wire.test_uploads import cleanup, listed

MIB = 1024 * 1024


@pytest.fixture
def config(bucket: S3Server, tmp_path: Path) -> Config:
    """A server that stores its files in a bucket, below its own prefix."""
    return Config(
        data_dir=str(tmp_path / "data"),
        external_url="http://chat.test",
        rate_limits=False,
        files_url=bucket.url(secrets.token_hex(4)),
        s3_access_key_id=ACCESS_KEY,
        s3_secret_access_key=SECRET_KEY,
    )


def objects(bucket: S3Server, config: Config) -> dict[str, bytes]:
    return bucket.objects(urlsplit(config.files_url).path.strip("/"))


# The tests for files on disk
test_concurrent_uploads = test_uploads.test_concurrent_uploads_are_all_stored
test_a_deletion = test_uploads.test_a_deleted_file_and_its_thumbnails_are_removed_from_the_disk
test_a_cut_off_deletion = test_uploads.test_an_interrupted_deletion_is_completed_at_the_next_start
test_a_client_that_goes = test_uploads.test_a_client_that_disconnects_leaves_no_file
test_in_pieces = test_tus.test_a_file_uploaded_in_chunks_is_like_any_other
test_a_picture_in_pieces = test_tus.test_an_image_uploaded_in_chunks_has_a_thumbnail
test_the_beginning = test_tus.test_the_first_chunk_may_come_with_the_creation
test_nothing = test_tus.test_an_empty_file_is_complete_when_created
test_no_more = test_tus.test_no_more_than_the_declared_length_is_accepted
test_checksums = test_tus.test_a_chunk_is_verified_with_its_checksum
test_who_comes_later = test_tus.test_a_later_request_takes_over_the_upload
test_concurrent_chunks = test_tus.test_of_concurrent_chunks_one_counts
small = test_tus.small
test_an_end_not_written_down = test_tus.test_an_upload_whose_completion_was_not_recorded_counts_once
test_giving_up = test_tus.test_an_upload_can_be_terminated
test_expiry = test_tus.test_an_unfinished_upload_expires_after_a_day
test_a_part = test_file_pages.test_a_range_of_a_file_can_be_requested
test_head = test_file_pages.test_head_returns_the_headers_of_get
test_once = test_file_pages.test_a_thumbnail_is_made_once
test_somebody_elses = test_tus.test_another_person_s_upload_is_not_found


async def test_files_and_images_are_only_in_the_bucket(
    org: Organization, bucket: S3Server, config: Config
) -> None:
    content = bytes(range(256)) * 4096 * 11
    path = await org["ben"].upload("big.bin", content, "application/zip")
    await org["ben"].raw("POST", "/users/me/avatar", files={"file": ("a.png", picture(9, 9))})
    await org["ann"].raw("POST", "/realm/emoji/wave", files={"file": ("a.png", picture(9, 9))})
    await org["ann"].raw("POST", "/realm/icon", files={"file": ("a.png", picture(9, 9))})
    found = objects(bucket, config)
    assert sorted({name.split("/")[0] for name in found}) == [
        "avatars",
        "emoji",
        "realm",
        "uploads",
    ]
    realm, digits, key, _ = path.split("/")
    assert found[f"uploads/{realm}/{digits}/{key}"] == content
    assert [p for p in org.node.disk.root.rglob("*") if p.is_file()] == []
    for url in (
        f"/user_uploads/{path}",
        (await org["ben"].get("/users/me", client_gravatar=False)).ok["avatar_url"],
        (await org["ben"].get("/realm/emoji")).ok["emoji"]["1"]["source_url"],
        (await org["ann"].register()).data["realm_icon_url"],
    ):
        answer = await org["ben"].open(url)
        assert (answer.status_code, len(answer.content) > 0) == (200, True), url
    assert (await org["ben"].open(f"/user_uploads/{path}")).content == content


# Downloads from the bucket


@pytest.fixture
async def redirecting(config: Config) -> AsyncIterator[Organization]:
    """A server that redirects browsers to the bucket."""
    config = msgspec.structs.replace(config, file_downloads="redirect")
    async with new_organization(config, others=[Newcomer("ben")]) as org:
        yield org


async def followed(person: Person, path: str, **headers: str) -> httpx.Response:
    """What a browser gets in the end. It sends no credentials to another host."""
    answer = await person.open(path)
    assert answer.status_code == 302, answer.text
    assert answer.headers["cache-control"] == "no-store"
    async with httpx.AsyncClient() as client:
        return await client.get(answer.headers["location"], headers=headers)


@pytest.mark.parametrize(
    ("name", "kind", "shown", "disposition"),
    [
        ("a.png", "image/png", "image/png", "inline"),
        ("ä.mp4", "video/mp4", "video/mp4", "inline"),
        ("a.html", "text/html", "application/octet-stream", "attachment"),
        ("a.svg", "image/svg+xml", "application/octet-stream", "attachment"),
        ("a.zip", "application/zip", "application/octet-stream", "attachment"),
    ],
)
async def test_a_browser_downloads_from_the_bucket_and_runs_nothing_there(
    redirecting: Organization,
    bucket: S3Server,
    name: str,
    kind: str,
    shown: str,
    disposition: str,
) -> None:
    ann = redirecting["ann"]
    path = await ann.upload(name, b"0123456789", kind)
    answer = await followed(ann, f"/user_uploads/{path}")
    assert (answer.status_code, answer.content) == (200, b"0123456789")
    assert answer.headers["content-type"] == shown
    assert answer.headers["content-disposition"].startswith(disposition + "; filename=")
    part = await followed(ann, f"/user_uploads/{path}", Range="bytes=2-4")
    assert (part.status_code, part.content) == (206, b"234")
    saved = await followed(ann, f"/user_uploads/download/{path}")
    assert saved.headers["content-disposition"].startswith("attachment")
    # The stored object has these headers itself, for services that ignore parameters.
    realm, digits, key, _ = path.split("/")
    stored = f"uploads/{realm}/{digits}/{key}"
    prefix = urlsplit(redirecting.node.config.files_url).path.strip("/")
    plain = bucket.head(f"{prefix}/{stored}")
    assert plain["content-type"] == "application/octet-stream"
    assert plain["content-disposition"] == "attachment"


async def test_permission_is_checked_before_each_redirect(redirecting: Organization) -> None:
    ann, ben = redirecting["ann"], redirecting["ben"]
    path = await ann.upload("p.png", picture(900, 600), "image/png")
    for address in (path, f"download/{path}", f"thumbnail/{path}/840x560.webp"):
        assert (await ben.open(f"/user_uploads/{address}")).status_code == 403
        assert (await followed(ann, f"/user_uploads/{address}")).status_code == 200
    head = await ann.http.head(f"/user_uploads/{path}", auth=(ann.email, ann.api_key))
    assert (head.status_code, "location" in head.headers) == (200, False)
    known = {"If-None-Match": head.headers["etag"]}
    answer = await ann.http.get(
        f"/user_uploads/{path}", auth=(ann.email, ann.api_key), headers=known
    )
    assert answer.status_code == 304


async def test_a_redirect_is_for_one_file_and_a_few_minutes_and_cannot_be_altered(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    clock = TestClock()
    config = msgspec.structs.replace(config, file_downloads="redirect")
    async with new_organization(config, clock=clock) as org:
        ann = org["ann"]
        path, other = await ann.upload("a.txt"), await ann.upload("b.txt")
        address = (await ann.open(f"/user_uploads/{path}")).headers["location"]
        async with httpx.AsyncClient() as client:
            assert (await client.get(address)).status_code == 200
            for wrong in (
                address.replace(path.split("/")[2], other.split("/")[2]),
                address.replace("octet-stream", "html"),
                address.replace("attachment", "inline"),
                address.replace("X-Amz-Expires=600", "X-Amz-Expires=6000"),
                address.partition("?")[0],
            ):
                assert wrong != address
                assert (await client.get(wrong)).status_code == 403
            assert (await client.put(address, content=b"x")).status_code == 403
            clock.ahead = -1200
            old = (await ann.open(f"/user_uploads/{path}")).headers["location"]
            assert (await client.get(old)).status_code == 403
    assert "X-Amz-Signature" not in caplog.text


async def test_the_web_client_may_show_files_from_the_bucket(
    redirecting: Organization, bucket: S3Server
) -> None:
    policy = client_page(redirecting.node.config).headers["content-security-policy"]
    assert f"img-src 'self' data: blob: {bucket.endpoint};" in policy
    assert f"media-src 'self' blob: {bucket.endpoint};" in policy


# Failures


async def test_while_the_bucket_is_down_files_are_refused_and_everything_else_works(
    org: Organization, bucket: S3Server, config: Config
) -> None:
    ben = org["ben"]
    path = await ben.upload()
    await ben.raw("POST", "/users/me/avatar", files={"file": ("a.png", picture(9, 9))})
    avatar = (await ben.get("/users/me", client_gravatar=False)).ok["avatar_url"]
    where = await create_upload(ben, 10)
    before = sorted(objects(bucket, config))
    bucket.trouble(Trouble(status=503))
    for answer in (
        await ben.raw("POST", "/user_uploads", files={"file": ("b.txt", b"x")}),
        await ben.raw("POST", "/users/me/avatar", files={"file": ("a.png", picture(9, 9))}),
    ):
        told = answer.refused("SERVER_NOT_READY", 503)
        assert told["msg"] == "The server can't reach its file storage. Try again."
        assert answer.headers["retry-after"]
    assert (await piece(ben, where, 0, b"hello")).status_code == 503
    shown = await ben.open(f"/user_uploads/{path}")
    assert (shown.status_code, bucket.endpoint in shown.text) == (503, False)
    assert (await ben.open(avatar)).status_code == 503
    assert await ben.write([org["cleo"].user_id], "life goes on") > 0
    job = file_store(org.node.files)
    with pytest.raises(FilesUnavailable, match="503"):
        await job.once()
    bucket.trouble()
    await job.once()
    assert sorted(objects(bucket, config)) == before
    assert [p for p in org.node.disk.root.rglob("*") if p.is_file()] == []
    assert [one["path_id"] for one in await listed(ben)] == [path]
    assert (await ben.open(f"/user_uploads/{path}")).content == b"hello"
    assert await offset_of(ben, where) == 0


async def test_an_unresponsive_bucket_is_waited_for_a_limited_time(
    org: Organization, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await org["ben"].upload()
    monkeypatch.setattr(bucket_files, "REQUEST_SECONDS", 0.2)
    bucket.trouble(Trouble(wait=60))
    assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 503
    reply = await org["ben"].raw("POST", "/user_uploads", files={"file": ("b.txt", b"x")})
    reply.refused("SERVER_NOT_READY", 503)


async def test_a_failed_or_interrupted_request_is_retried_once(
    org: Organization, bucket: S3Server
) -> None:
    content = secrets.token_bytes(3 * MIB)
    bucket.trouble(Trouble(methods="PUT", status=500, times=2))
    path = await org["ben"].upload("a.bin", content)
    bucket.trouble(Trouble(methods="GET", cut=True, times=2))
    assert (await org["ben"].open(f"/user_uploads/{path}")).content == content


async def test_a_truncated_response_is_not_taken_for_complete(
    org: Organization,
    bucket: S3Server,
    config: Config,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The bucket claims that it's complete, so it would be moved, backed up, and served."""
    ben, content = org["ben"], secrets.token_bytes(MIB)
    path = await ben.upload("a.bin", content)
    before = objects(bucket, config)
    bucket.trouble(Trouble(methods="GET", part="/uploads/1/", short=True))
    async with serving(org, "endpoint") as server:
        line = await server.connect()
        address = f"/user_uploads/{path}?api_key={ben.api_key}"
        line.write(f"GET {address} HTTP/1.1\r\nHost: chat.test\r\n\r\n".encode())
        with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
            await line.read()
    there = DiskFiles(tmp_path / "there")
    with pytest.raises(ExceptionGroup) as failed:
        await move(org.node.files, there, delete=True, progress=lambda *_: None)
    assert failed.group_contains(FilesUnavailable)
    assert [one async for one in there.below("")] == []
    assert objects(bucket, config) == before
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        files = org.node.files
        with pytest.raises(FilesUnavailable, match="Received only"):
            await file_transfer._added([], archive, files, org.node.disk, lambda *_: None)
    bucket.trouble()
    assert (await ben.open(f"/user_uploads/{path}")).content == content
    assert "Traceback" not in caplog.text
    assert "ASGI" not in caplog.text


async def test_foreign_objects_in_the_bucket_are_ignored(
    org: Organization, bucket: S3Server, config: Config
) -> None:
    """Such as those that consoles create as directories."""
    prefix = urlsplit(config.files_url).path.strip("/")
    odd = ("reserved/1/readme", "reserved/x-1-2", "begun/readme", "begun/1/x", "offered/\u00e9 %41")
    for name in odd:
        bucket.put(f"{prefix}/uploads/incoming/{name}", b"not ours")
    partials = org.node.partials
    now = org.node.clock() + 2 * 86400
    assert await partials.reservations(org.node.clock()) == []
    assert (await partials.begun(), await partials.expired(now)) == ([], [])
    await cleanup(org).once()
    where = await create_upload(org["ben"], 5)
    assert (await piece(org["ben"], where, 0, b"hello")).status_code == 200
    assert len([name for name in objects(bucket, config) if name.endswith(odd)]) == len(odd)


async def test_a_file_that_appears_with_a_delay_is_found(
    org: Organization, bucket: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await org["ben"].upload()
    monkeypatch.setattr(uploads, "LOOK_AGAIN_SECONDS", (0, 0))
    bucket.trouble(Trouble(methods="HEAD", status=404, times=2))
    assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 200
    bucket.trouble(Trouble(methods="HEAD", status=404))
    assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 404


async def test_a_bucket_with_an_untrusted_certificate_is_not_contacted(
    config: Config, tmp_path: Path
) -> None:
    async with external_web(unvouched(tmp_path)) as there:
        url = f"s3://files?endpoint=https://localhost:{there.port}"
        files, _ = msgspec.structs.replace(config, files_url=url).opened_files()
        with pytest.raises(FilesUnavailable):
            await files.probe()
    assert there.asked == []


@pytest.mark.parametrize("path", ["", "..", "a/../../b", "/etc/passwd", "a//b", "a/.", "a\0b"])
async def test_a_path_cannot_leave_the_prefix(config: Config, path: str) -> None:
    files, _ = config.opened_files()
    for attempt in (files.put(path, b""), files.read(path), files.delete(path), files.found(path)):
        with pytest.raises(ValueError, match="valid file path"):
            await attempt


@pytest.mark.parametrize("is_known", [False, True], ids=["before", "after"])
async def test_objects_left_by_a_crash_are_cleaned_up_a_day_later(
    org: Organization,
    bucket: S3Server,
    config: Config,
    monkeypatch: pytest.MonkeyPatch,
    is_known: bool,
) -> None:
    """A crash before or after the log had the file."""
    ben = org["ben"]
    with monkeypatch.context() as patched:
        if is_known:
            patched.setattr(UploadStore, "settle", test_uploads.nothing)
            path = await ben.upload("a.txt", b"hello")
        else:
            patched.setattr(org.node.log, "submit", broken)
            await ben.raw("POST", "/user_uploads", files={"file": ("a.txt", b"hello")})
    left = {name.split("/")[1] for name in objects(bucket, config)}
    assert left == {"1", "incoming"}
    await cleanup(org).once()
    assert len(objects(bucket, config)) == 2
    keep = cleanup(org)
    monkeypatch.setattr(org.node.log, "clock", TestClock(ahead=2 * 86400))
    await keep.once()
    if is_known:
        assert [name.split("/")[1] for name in objects(bucket, config)] == ["1"]
        assert (await ben.open(f"/user_uploads/{path}")).content == b"hello"
    else:
        assert objects(bucket, config) == {}


async def broken(*_: object) -> None:
    """Replaces what a crash prevents."""
    raise Unavailable("cut off")


# Several nodes


async def test_another_node_continues_an_upload(
    org: Organization, config: Config, tmp_path: Path
) -> None:
    """It shares the bucket with the first one, but no disk."""
    ben = org["ben"]
    where = await create_upload(ben, 10)
    await piece(ben, where, 0, b"hel")
    files, disk = msgspec.structs.replace(config, data_dir=str(tmp_path / "other")).opened_files()
    others = BucketPartialUploads(files, UploadStore(files, disk))
    partial = await others.load(ben.user_id, where.rpartition("/")[2])
    assert partial is not None
    async with others.opened(partial) as pieces:
        assert pieces is not None
        assert pieces.size == 3
        await pieces.begin(checked=False)
        await pieces.append(b"lo ")
        # The client gave up, and returns to the first node.
        assert (await piece(ben, where, 3, b"lo w")).status_code == 204
        await pieces.end()
    assert await offset_of(ben, where) == 7
    answer = await piece(ben, where, 7, b"ell")
    assert (await ben.open(answer.json()["url"])).content == b"hello well"


async def test_a_started_upload_reserves_its_room_until_it_ends(
    org: Organization, bucket: S3Server, config: Config
) -> None:
    ben, partials, now = org["ben"], org.node.partials, org.node.clock()
    where = await create_upload(ben, 10)
    assert [one[::2] for one in await partials.reservations(now)] == [(ben.user_id, 10)]
    assert await partials.reservations(now + 2 * 86400) == []
    await piece(ben, where, 0, b"hello well")
    assert await partials.reservations(now) == []
    await test_tus.ask(ben, "DELETE", await create_upload(ben, 10))
    assert await partials.reservations(now) == []
    # What a crash left is cleaned up even if nothing else happens.
    await create_upload(ben, 10)
    assert [name for name in objects(bucket, config) if "/reserved/" in name]
    await partials.expired(now + 2 * 86400)
    assert not [name for name in objects(bucket, config) if "/reserved/" in name]


@pytest.mark.parametrize(
    ("pieces", "expected"),
    [
        ([], []),
        ([(0, 5), (5, 3), (8, 2)], [(0, 5), (5, 3), (8, 2)]),
        ([(5, 3)], []),
        ([(0, 5), (6, 3)], [(0, 5)]),
        ([(0, 9), (0, 5), (5, 6)], [(0, 5), (5, 6)]),
        ([(0, 3), (0, 5), (3, 4), (5, 1), (6, 0)], [(0, 3), (3, 4)]),
    ],
)
def test_parts_are_used_as_far_as_they_are_complete(
    pieces: list[tuple[int, int]], expected: list[tuple[int, int]]
) -> None:
    found = chain(BucketPiece(offset, length, "") for offset, length in pieces)
    assert [(piece.offset, piece.length) for piece in found] == expected


async def test_parts_may_continue_without_limit(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bucket_partials, "MOST_PIECES", 2)
    where = await create_upload(org["ben"], 10)
    for offset in range(2):
        await piece(org["ben"], where, offset, b"x")
    test_tus.refused(await piece(org["ben"], where, 2, b"x"), 400)
    assert await offset_of(org["ben"], where) == 2


async def test_a_change_succeeds_although_the_old_image_cannot_be_deleted(
    org: Organization, bucket: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    ben = org["ben"]
    sent = {"file": ("a.png", picture(9, 9))}
    assert (await ben.raw("POST", "/users/me/avatar", files=sent)).ok
    bucket.trouble(Trouble(methods="DELETE", status=403))
    assert (await ben.raw("POST", "/users/me/avatar", files=sent)).ok
    assert "could not delete an unused file" in caplog.text
    assert (await ben.raw("POST", "/user_uploads", files={"file": ("b.txt", b"x")})).ok


async def test_images_that_could_not_be_deleted_are_deleted_later(
    org: Organization, bucket: S3Server, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = {"file": ("a.png", picture(9, 9))}
    uses = [("ben", "/users/me/avatar"), ("ann", "/realm/icon"), ("ann", "/realm/emoji/sun")]
    for who, path in uses:
        assert (await org[who].raw("POST", path, files=sent)).ok
    before = set(objects(bucket, config))
    assert len(before) == 4
    bucket.trouble(Trouble(methods="DELETE", status=403))
    for who, path in uses[:2]:
        assert (await org[who].raw("POST", path, files=sent)).ok
    # A deactivated emoji stays in its reactions.
    assert (await org["ann"].delete("/realm/emoji/sun")).ok
    used = set(objects(bucket, config)) - before | {p for p in before if p.startswith("emoji/")}
    cleanup = PictureCleanup(org.node)
    # A new object may be in the process of being logged.
    await cleanup.once()
    assert set(objects(bucket, config)) == used | before
    monkeypatch.setattr(pictures, "YOUNG_SECONDS", -60)
    with pytest.raises(FilesUnavailable):
        await cleanup.once()
    bucket.trouble()
    await cleanup.once()
    assert set(objects(bucket, config)) == used
