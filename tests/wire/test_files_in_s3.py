"""Files in a bucket: what holds of them on the disk, downloads in both ways, and what goes wrong
there."""

import asyncio
import secrets
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import msgspec
import pytest

from tertulia.jobs.files import file_store
from tertulia.service.config import Config
from tertulia.store import bucket_files, uploads
from tertulia.store.bucket_files import BucketFiles
from tertulia.store.uploads import Uploads
from tests.pictures import picture
from tests.s3 import ACCESS_KEY, SECRET_KEY, S3Server, Trouble
from tests.support import Organization, TestClock, founded, reopened
from tests.wire import test_tus, test_uploads
from tests.wire.test_tus import begun, offset_of, piece
from tests.wire.test_uploads import cleanup, listed, on_disk

MIB = 1024 * 1024


@pytest.fixture
def config(bucket: S3Server, tmp_path: Path) -> Config:
    """A server that keeps its files in a bucket, below a prefix of its own."""
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


# What holds of files on the disk holds here
test_many_at_once = test_uploads.test_many_uploads_at_once_are_all_kept
test_a_deletion = test_uploads.test_a_deleted_file_and_what_was_made_of_it_is_gone_from_the_disk
test_a_cut_off_deletion = (
    test_uploads.test_a_file_whose_deletion_a_crash_cut_off_is_deleted_at_the_next_start
)
test_a_client_that_goes = test_uploads.test_a_client_that_goes_away_leaves_nothing
test_no_room = test_uploads.test_beyond_the_quota_uploads_are_refused_until_there_is_room
small = test_uploads.small
test_in_pieces = test_tus.test_a_file_comes_in_pieces_and_ends_as_any_upload_does
test_a_picture_in_pieces = test_tus.test_a_picture_that_came_in_pieces_can_be_had_smaller
test_the_end_again = test_tus.test_the_end_can_be_heard_again
test_the_beginning = test_tus.test_the_first_piece_may_come_with_the_beginning
test_nothing = test_tus.test_an_empty_file_ends_where_it_begins
test_no_more = test_tus.test_no_more_is_taken_than_was_told
test_checksums = test_tus.test_a_piece_is_held_against_its_checksum
test_who_comes_later = test_tus.test_who_comes_later_goes_on_with_the_file
test_at_once = test_tus.test_of_pieces_that_come_at_once_one_counts
test_giving_up = test_tus.test_an_upload_can_be_given_up
test_not_given_up = test_tus.test_what_is_whole_is_not_given_up_but_deleted
test_expiry = test_tus.test_what_is_not_ended_within_a_day_expires
test_so_many = test_tus.test_so_many_files_can_be_begun_and_not_ended
test_limits = test_tus.test_a_file_beyond_the_limits_does_not_begin
test_somebody_elses = test_tus.test_the_upload_of_somebody_else_is_not_there


async def test_files_and_pictures_are_in_the_bucket_and_nowhere_else(
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


@pytest.fixture(params=["disk", "stream", "redirect"])
async def stored(
    request: pytest.FixtureRequest, config: Config, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """An organization that keeps its files on the disk, or in a bucket with either way of downloads,
    and what a browser gets there in the end."""
    kind = "redirect" if request.param == "redirect" else "stream"
    config = msgspec.structs.replace(config, file_downloads=kind)
    if request.param == "disk":
        config = msgspec.structs.replace(config, files_url="")
    async with founded(config) as org:

        async def got(path: str, **headers: str) -> httpx.Response:
            answer = await org["ann"].open(path, headers=headers, auth=(org["ann"].email, KEY))
            if request.param != "redirect" or answer.status_code >= 304:
                return answer
            assert answer.status_code == 302
            async with httpx.AsyncClient() as client:
                return await client.get(answer.headers["location"], headers=headers)

        KEY = org["ann"].api_key
        yield org, got


@pytest.mark.parametrize(
    ("asked", "status", "start", "end"),
    [
        ("bytes=0-4", 206, 0, 5),
        ("bytes=5-", 206, 5, None),
        ("bytes=99990-200000", 206, 99_990, None),
        ("bytes=100000-", 416, 0, 0),
        ("", 200, 0, None),
    ],
)
async def test_a_part_of_a_file_can_be_had(
    stored: Any, asked: str, status: int, start: int, end: int | None
) -> None:
    org, got = stored
    content = secrets.token_bytes(100_000)
    path = await org["ann"].upload("a.bin", content, "video/mp4")
    answer = await got(f"/user_uploads/{path}", **({"Range": asked} if asked else {}))
    assert answer.status_code == status
    if status < 400:
        assert answer.content == content[start:end]
        assert answer.headers["content-type"] == "video/mp4"
        assert answer.headers["accept-ranges"] == "bytes"
        last = end or len(content)
        assert answer.headers["content-length"] == str(last - start)
        if status == 206:
            assert answer.headers["content-range"] == f"bytes {start}-{last - 1}/{len(content)}"
