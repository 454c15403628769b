"""Resumable uploads with the tus protocol."""

import asyncio
import base64
import errno
import hashlib
from email.utils import parsedate_to_datetime
from pathlib import PurePath
from typing import Any

import httpx
import msgspec
import pytest
from starlette.requests import ClientDisconnect

from tertulia.jobs.files import FileCleanup
from tertulia.service.config import Config
from tertulia.store import partial_uploads
from tertulia.store.bucket_partials import BucketPartialUploads
from tertulia.store.partial_uploads import DiskPartialUploads, DiskPieces, Reservation, UploadInUse
from tertulia.store.uploads import UploadStore
from tertulia.wire.files import tus
from tests.pictures import picture
from tests.s3 import files_of
from tests.support import Organization, Person, TestClock, new_organization, open_organization, row

TUS = {"Tus-Resumable": "1.0.0"}
PIECE = {**TUS, "Content-Type": "application/offset+octet-stream"}
MIB = 1024 * 1024


async def ask(
    person: Person, method: str, path: str = "/api/v1/tus/", content: Any = b"", **headers: str
) -> httpx.Response:
    """A tus request. Underscores in header names stand for hyphens."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    base = PIECE if content or method == "PATCH" else TUS
    return await person.http.request(
        method,
        path,
        content=content or None,
        headers={k: v for k, v in {**base, **named}.items() if v},
        auth=(person.email, person.api_key) if person.api_key else None,
    )


def metadata(**values: str) -> str:
    return ",".join(f"{k} {base64.b64encode(v.encode()).decode()}" for k, v in values.items())


async def create_upload(person: Person, length: int, **values: str) -> str:
    """Create an upload. Returns its address."""
    values = values or {"filename": "big file.txt", "filetype": "text/plain"}
    answer = await ask(
        person, "POST", Upload_Length=str(length), Upload_Metadata=metadata(**values)
    )
    assert answer.status_code == 201, answer.text
    assert answer.content == b""
    return answer.headers["location"]


async def piece(
    person: Person, where: str, offset: int, content: Any, **headers: str
) -> httpx.Response:
    return await ask(person, "PATCH", where, content, Upload_Offset=str(offset), **headers)


async def offset_of(person: Person, where: str) -> int:
    answer = await ask(person, "HEAD", where)
    assert answer.status_code == 200
    return int(answer.headers["upload-offset"])


def refused(answer: httpx.Response, status: int, code: str = "BAD_REQUEST") -> None:
    assert (answer.status_code, answer.json()["code"]) == (status, code), answer.text
    assert answer.headers["tus-resumable"] == "1.0.0"


def on_disk(org: Organization) -> list[PurePath]:
    return files_of(org.node)


def cleanup(org: Organization) -> FileCleanup:
    return FileCleanup(org.node.log, org.node.uploads, org.node.partials)


# A complete upload


async def test_a_file_uploaded_in_chunks_is_like_any_other(org: Organization) -> None:
    ben = org["ben"]
    queue = await ben.register()
    where = await create_upload(ben, 11)
    first = await piece(ben, where, 0, b"hello ")
    assert (first.status_code, first.headers["upload-offset"], first.content) == (204, "6", b"")
    assert (await ben.get("/attachments")).ok["attachments"] == []
    head = await ask(ben, "HEAD", where)
    assert (head.headers["upload-offset"], head.headers["upload-length"]) == ("6", "11")
    assert head.headers["upload-metadata"] == metadata(
        filename="big file.txt", filetype="text/plain"
    )
    assert head.headers["cache-control"] == "no-store"
    last = await piece(ben, where, 6, b"world")
    assert last.status_code == 200
    assert last.headers["upload-offset"] == "11"
    answer = last.json()
    assert answer["filename"] == "big file.txt"
    assert answer["url"] == answer["uri"]
    opened = await ben.open(answer["url"])
    assert (opened.content, opened.headers["content-type"].partition(";")[0]) == (
        b"hello world",
        "text/plain",
    )
    (one,) = (await ben.get("/attachments")).ok["attachments"]
    assert (one["size"], one["path_id"]) == (11, answer["url"].removeprefix("/user_uploads/"))
    (added,) = await queue.events()
    assert (added["type"], added["op"], added["attachment"]) == ("attachment", "add", one)


async def test_an_image_uploaded_in_chunks_has_a_thumbnail(shared_org: Organization) -> None:
    content = picture(30, 20)
    where = await create_upload(
        shared_org["ben"], len(content), filename="p.png", filetype="image/png"
    )
    url = (await piece(shared_org["ben"], where, 0, content)).json()["url"]
    smaller = await shared_org["ben"].open(
        url.replace("uploads/", "uploads/thumbnail/", 1) + "/840x560.webp"
    )
    assert smaller.status_code == 200


async def test_the_last_response_can_be_repeated(org: Organization) -> None:
    """A client that missed it asks for the offset and continues there."""
    where = await create_upload(org["ben"], 5)
    first = await piece(org["ben"], where, 0, b"hello")
    assert await offset_of(org["ben"], where) == 5
    again = await piece(org["ben"], where, 5, b"")
    assert (again.status_code, again.json()) == (200, first.json())
    assert len((await org["ben"].get("/attachments")).ok["attachments"]) == 1
    refused(await piece(org["ben"], where, 4, b"o"), 409)
    await org["ben"].delete("/attachments/1")
    refused(await piece(org["ben"], where, 5, b""), 410)


@pytest.mark.parametrize("path", ["/api/v1/tus", "/api/v1/tus/"])
async def test_the_address_may_end_with_a_slash(shared_org: Organization, path: str) -> None:
    assert (await ask(shared_org["ben"], "POST", path, Upload_Length="3")).status_code == 201


async def test_the_first_chunk_may_come_with_the_creation(shared_org: Organization) -> None:
    part = await ask(shared_org["ben"], "POST", content=b"hel", Upload_Length="5")
    assert (part.status_code, part.headers["upload-offset"]) == (201, "3")
    last = await piece(shared_org["ben"], part.headers["location"], 3, b"lo")
    assert last.json()["filename"] == "uploaded-file"
    whole = await ask(shared_org["ben"], "POST", content=b"hello", Upload_Length="5")
    assert (whole.status_code, whole.headers["upload-offset"]) == (201, "5")
    assert (await shared_org["ben"].open(whole.json()["url"])).content == b"hello"


async def test_an_empty_file_is_complete_when_created(shared_org: Organization) -> None:
    answer = await ask(shared_org["ben"], "POST", Upload_Length="0")
    assert answer.status_code == 201
    assert (await shared_org["ben"].open(answer.json()["url"])).content == b""


async def test_uppys_names_for_metadata_are_understood(shared_org: Organization) -> None:
    where = await create_upload(
        shared_org["ben"], 1, name="a b.png", type="image/png", relativePath="null"
    )
    assert (await piece(shared_org["ben"], where, 0, b"x")).json()["filename"] == "a b.png"


async def test_a_large_file_is_uploaded_in_many_chunks(shared_org: Organization) -> None:
    content = bytes(range(256)) * 4096 * 7

    async def slowly(part: bytes) -> Any:
        for start in range(0, len(part), 100_000):
            yield part[start : start + 100_000]

    where = await create_upload(shared_org["ben"], len(content))
    for start in range(0, len(content), 2 * MIB):
        answer = await piece(
            shared_org["ben"], where, start, slowly(content[start : start + 2 * MIB])
        )
    assert (await shared_org["ben"].open(answer.json()["url"])).content == content


# OPTIONS and common rules


async def test_options_describes_the_server_without_credentials(
    shared_org: Organization,
) -> None:
    answer = await shared_org.http.options("/api/v1/tus/")
    assert answer.status_code == 204
    assert answer.headers["tus-version"] == "1.0.0"
    assert answer.headers["tus-extension"].split(",") == [
        "creation",
        "creation-with-upload",
        "termination",
        "checksum",
        "expiration",
    ]
    assert answer.headers["tus-max-size"] == str(100 * MIB)
    assert answer.headers["tus-checksum-algorithm"] == "sha1,sha256,md5"
    assert "Upload-Offset" in answer.headers["access-control-allow-headers"]
    assert "Location" in answer.headers["access-control-expose-headers"]


async def test_another_version_of_the_protocol_is_refused(shared_org: Organization) -> None:
    for method in ["POST", "HEAD", "PATCH", "DELETE"]:
        with row(method):
            where = (
                "/api/v1/tus/" if method == "POST" else await create_upload(shared_org["ben"], 5)
            )
            for version in ("", "0.2.2", "2.0.0", "1.0"):
                sent = {"Tus_Resumable": version, "Upload_Length": "5", "Upload_Offset": "0"}
                answer = await ask(shared_org["ben"], method, where, **sent)
                found = (answer.status_code, answer.headers["tus-version"])
                assert found == (412, "1.0.0"), version


async def test_every_request_needs_credentials(shared_org: Organization) -> None:
    for method in ["POST", "HEAD", "PATCH", "DELETE"]:
        with row(method):
            where = (
                "/api/v1/tus/" if method == "POST" else await create_upload(shared_org["ben"], 5)
            )
            answer = await ask(
                shared_org.nobody, method, where, Upload_Length="5", Upload_Offset="0"
            )
            assert answer.status_code == 401
            stranger = Person(shared_org.http, 0, shared_org["ben"].email, "x" * 32)
            answer = await ask(stranger, method, where, Upload_Length="5", Upload_Offset="0")
            assert answer.status_code == 401


async def test_another_person_s_upload_is_not_found(shared_org: Organization) -> None:
    for method in ["HEAD", "PATCH", "DELETE"]:
        with row(method):
            where = await create_upload(shared_org["ben"], 5)
            for who, address in (
                ("cleo", where),
                ("ann", where),
                ("ben", "/api/v1/tus/" + "0" * 32),
                ("ben", "/api/v1/tus/..%2f..%2fsecret"),
                ("ben", "/api/v1/tus/x"),
            ):
                answer = await ask(shared_org[who], method, address, Upload_Offset="0")
                assert answer.status_code == 404
            assert await offset_of(shared_org["ben"], where) == 0


OTHERS = [("GET", False), ("PUT", False), ("PATCH", False), ("POST", True)]
"""A method, and whether an unfinished upload exists at the address."""


async def test_other_methods_are_refused(shared_org: Organization) -> None:
    for method, key in OTHERS:
        with row(method, key):
            where = await create_upload(shared_org["ben"], 5) if key else "/api/v1/tus/"
            assert (
                await ask(shared_org["ben"], method, where, Upload_Length="5")
            ).status_code == 405


async def test_the_method_may_be_overridden_by_a_header(shared_org: Organization) -> None:
    where = await create_upload(shared_org["ben"], 5)
    answer = await ask(
        shared_org["ben"], "POST", where, b"hel", Upload_Offset="0", X_HTTP_Method_Override="PATCH"
    )
    assert (answer.status_code, answer.headers["upload-offset"]) == (204, "3")


# Creation


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Upload_Length": "-1"},
        {"Upload_Length": "x"},
        {"Upload_Length": "1.5"},
        {"Upload_Length": "9" * 40},
        {"Upload_Defer_Length": "1"},
        {"Upload_Length": "5", "Upload_Metadata": "filename ###"},
        {"Upload_Length": "5", "Upload_Metadata": ","},
        {"Upload_Length": "5", "Upload_Metadata": "a eA==,a eA=="},
        {"Upload_Length": "5", "Upload_Metadata": "filename /w=="},
        {"Upload_Length": "5", "Upload_Checksum": "crc32 eA=="},
        {"Upload_Length": "5", "Upload_Checksum": "sha1 ###"},
    ],
    ids=str,
)
async def test_an_invalid_creation_is_refused(
    readonly_org: Organization, headers: dict[str, str]
) -> None:
    before = {*on_disk(readonly_org)}
    refused(await ask(readonly_org["ben"], "POST", **headers), 400)
    assert {*on_disk(readonly_org)} <= before


@pytest.fixture
def small(config: Config) -> Config:
    return msgspec.structs.replace(config, max_file_upload_size_mib=1, upload_quota_mib=2)


async def test_a_file_beyond_the_limits_cannot_be_created(small: Config) -> None:
    clock = TestClock()
    async with new_organization(small, clock=clock) as org:
        ann = org["ann"]
        assert (await org.http.options("/api/v1/tus")).headers["tus-max-size"] == str(MIB)
        refused(await ask(ann, "POST", Upload_Length=str(MIB + 1)), 413)
        first = await create_upload(ann, MIB)
        await ann.upload("a", b"x" * (MIB - 3))
        # The created upload has its room, and nothing else does until it's terminated.
        refused(await ask(ann, "POST", Upload_Length="4"), 413, "REALM_UPLOAD_QUOTA")
        (await ann.raw("POST", "/user_uploads", files={"file": ("b", b"1234")})).refused(
            "REALM_UPLOAD_QUOTA"
        )
        last = await create_upload(ann, 3)
        assert (await piece(ann, first, 0, b"x" * MIB)).status_code == 200
        assert (await piece(ann, last, 0, b"xxx")).status_code == 200
        refused(await ask(ann, "POST", Upload_Length="1"), 413, "REALM_UPLOAD_QUOTA")
        await ann.delete("/attachments/1")
        given_up = await create_upload(ann, MIB - 3)
        refused(await ask(ann, "POST", Upload_Length="1"), 413, "REALM_UPLOAD_QUOTA")
        assert (await ask(ann, "DELETE", given_up)).status_code == 204
        tries = [ask(ann, "POST", Upload_Length=str(MIB - 3)) for _ in range(3)]
        assert sorted(one.status_code for one in await asyncio.gather(*tries)) == [201, 413, 413]
        clock.ahead += tus.EXPIRY_SECONDS + 1
        await create_upload(ann, MIB - 3)


async def none(*_: object) -> list[Reservation]:
    """No room."""
    return []


async def test_an_upload_without_room_cannot_be_completed(
    small: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with new_organization(small) as org:
        where = await create_upload(org["ann"], 4)
        await org["ann"].upload("a", b"x" * MIB)
        # (Only if the limit was lowered in the meantime, or by two nodes concurrently.)
        with monkeypatch.context() as patched:
            patched.setattr(DiskPartialUploads, "reservations", none)
            patched.setattr(BucketPartialUploads, "reservations", none)
            await org["ann"].upload("b", b"x" * (MIB - 3))
        refused(await piece(org["ann"], where, 0, b"1234"), 400, "REALM_UPLOAD_QUOTA")
        await org["ann"].delete("/attachments/1")
        assert await offset_of(org["ann"], where) == 4
        assert (await piece(org["ann"], where, 4, b"")).status_code == 200


async def test_of_concurrent_uploads_the_first_has_the_room(
    small: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = TestClock()
    async with new_organization(small, clock=clock) as org:
        begun_files = []
        with monkeypatch.context() as patched:  # As two nodes may do.
            patched.setattr(DiskPartialUploads, "reservations", none)
            patched.setattr(BucketPartialUploads, "reservations", none)
            for _ in range(3):
                begun_files.append(await create_upload(org["ann"], MIB))
                clock.ahead += 1
        first, second, third = begun_files
        assert (await piece(org["ann"], first, 0, b"x" * MIB)).status_code == 200
        assert (await piece(org["ann"], second, 0, b"x" * MIB)).status_code == 200
        refused(await piece(org["ann"], third, 0, b"x" * MIB), 400, "REALM_UPLOAD_QUOTA")


async def test_the_number_of_unfinished_uploads_is_limited(
    org: Organization,
) -> None:
    await org["ann"].patch("/realm", max_unfinished_uploads_per_user=2)
    first = await create_upload(org["ben"], 1)
    await create_upload(org["ben"], 1)
    refused(await ask(org["ben"], "POST", Upload_Length="1"), 400, "QUOTA_REACHED")
    await create_upload(org["cleo"], 1)
    await piece(org["ben"], first, 0, b"x")
    await create_upload(org["ben"], 1)


# Chunks


async def test_a_chunk_continues_at_the_offset(shared_org: Organization) -> None:
    where = await create_upload(shared_org["ben"], 11)
    await piece(shared_org["ben"], where, 0, b"hello")
    for offset in [0, 4, 6, 99]:
        with row(offset):
            refused(await piece(shared_org["ben"], where, offset, b"x"), 409)
            assert await offset_of(shared_org["ben"], where) == 5


async def test_a_chunk_has_its_content_type(shared_org: Organization) -> None:
    where = await create_upload(shared_org["ben"], 5)
    for kind in ["application/octet-stream", "text/plain", ""]:
        with row(kind):
            refused(await piece(shared_org["ben"], where, 0, b"hello", Content_Type=kind), 415)
            assert await offset_of(shared_org["ben"], where) == 0


async def test_the_offset_is_a_number(shared_org: Organization) -> None:
    for offset in ["", "-1", "x", "9" * 30]:
        with row(offset):
            where = await create_upload(shared_org["ben"], 5)
            refused(await ask(shared_org["ben"], "PATCH", where, b"x", Upload_Offset=offset), 400)


async def test_no_more_than_the_declared_length_is_accepted(shared_org: Organization) -> None:
    where = await create_upload(shared_org["ben"], 5)
    refused(await piece(shared_org["ben"], where, 0, b"hello!"), 413)

    async def untold() -> Any:
        yield b"hello!"

    refused(await piece(shared_org["ben"], where, 0, untold()), 413)
    assert await offset_of(shared_org["ben"], where) == 0
    assert (await piece(shared_org["ben"], where, 0, b"hello")).status_code == 200


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "md5"])
async def test_a_chunk_is_verified_with_its_checksum(
    shared_org: Organization, algorithm: str
) -> None:
    def checksum(content: bytes) -> str:
        digest = hashlib.new(algorithm, content).digest()
        return f"{algorithm} {base64.b64encode(digest).decode()}"

    where = await create_upload(shared_org["ben"], 10)
    await piece(shared_org["ben"], where, 0, b"hello", Upload_Checksum=checksum(b"hello"))
    refused(
        await piece(shared_org["ben"], where, 5, b"world", Upload_Checksum=checksum(b"w0rld")), 460
    )
    assert await offset_of(shared_org["ben"], where) == 5
    for wrong in ("crc32 eA==", "sha1", "sha1 ###", "shake_128 eA=="):
        answer = await piece(shared_org["ben"], where, 5, b"world", Upload_Checksum=wrong)
        assert answer.status_code in {400, 460}
    last = await piece(shared_org["ben"], where, 5, b"world", Upload_Checksum=checksum(b"world"))
    assert (await shared_org["ben"].open(last.json()["url"])).content == b"helloworld"


@pytest.mark.parametrize(("headers", "kept"), [({}, 5), ({"Upload_Checksum": "sha1 eA=="}, 0)])
async def test_an_interrupted_chunk_counts_unless_it_has_a_checksum(
    org: Organization, headers: dict[str, str], kept: int
) -> None:
    async def cut_off() -> Any:
        yield b"hello"
        raise ClientDisconnect

    where = await create_upload(org["ben"], 10)
    assert (await piece(org["ben"], where, 0, cut_off(), **headers)).status_code == 499
    assert await offset_of(org["ben"], where) == kept


async def test_a_later_request_takes_over_the_upload(shared_org: Organization) -> None:
    """The earlier connection may have been dead for long."""
    where = await create_upload(shared_org["ben"], 10)
    came, never = asyncio.Event(), asyncio.Event()

    async def stuck() -> Any:
        yield b"hel"
        came.set()
        await never.wait()

    async def once_stuck() -> int:
        await came.wait()
        return await offset_of(shared_org["ben"], where)

    first = asyncio.create_task(piece(shared_org["ben"], where, 0, stuck()))
    assert await once_stuck() == 3
    answer = await piece(shared_org["ben"], where, 3, b"lo world"[:7])
    assert answer.status_code == 200
    never.set()
    assert (await first).status_code == 423


async def test_of_concurrent_chunks_one_counts(shared_org: Organization) -> None:
    where = await create_upload(shared_org["ben"], 10)
    answers = await asyncio.gather(
        *(piece(shared_org["ben"], where, 0, b"hello") for _ in range(5))
    )
    statuses = sorted(answer.status_code for answer in answers)
    assert set(statuses) <= {204, 409, 423}
    assert await offset_of(shared_org["ben"], where) == 5
    assert statuses.count(204) <= 1


async def test_of_three_requests_the_last_takes_over(shared_org: Organization) -> None:
    where = await create_upload(shared_org["ben"], 10)
    never = asyncio.Event()
    requests = []
    for _ in range(3):
        came = asyncio.Event()

        async def stuck(came: asyncio.Event = came) -> Any:
            came.set()
            yield b""
            await never.wait()

        requests.append(asyncio.create_task(piece(shared_org["ben"], where, 0, stuck())))
        await came.wait() if len(requests) == 1 else await asyncio.sleep(0)
    answer = await piece(shared_org["ben"], where, 0, b"helloworld")
    assert answer.status_code == 200
    never.set()
    assert {(await one).status_code for one in requests} <= {409, 423}


async def test_a_silent_request_at_another_process_releases_the_upload(org: Organization) -> None:
    where = await create_upload(org["ben"], 10)
    came, never = asyncio.Event(), asyncio.Event()

    async def stuck() -> Any:
        yield b"hello"
        came.set()
        await never.wait()

    first = asyncio.create_task(piece(org["ben"], where, 0, stuck()))
    await came.wait()
    # As another process opens it: with its own descriptor.
    partials = DiskPartialUploads(org.node.uploads)
    partial = await partials.load(org["ben"].user_id, where.rpartition("/")[2])
    assert partial is not None
    async with partials.opened(partial) as pieces:
        assert pieces is not None
        assert pieces.size == 5
    assert (await first).status_code == 423


async def test_of_three_processes_the_last_gets_the_upload(org: Organization) -> None:
    where = await create_upload(org["ben"], 10)
    processes = [DiskPartialUploads(org.node.uploads) for _ in range(3)]
    partial = await processes[0].load(org["ben"].user_id, where.rpartition("/")[2])
    assert partial is not None
    asked: list[int] = []

    async def write(number: int) -> int:
        asked.append(number)
        async with processes[number].opened(partial) as pieces:
            assert pieces is not None
            assert not pieces.is_wanted
            return pieces.size

    async with processes[0].opened(partial) as pieces:
        assert pieces is not None
        await pieces.begin(checked=True)
        waiting = []
        for number in (1, 2):
            waiting.append(asyncio.create_task(write(number)))
            await asyncio.sleep(0)
        assert asked == [1, 2]
        assert pieces.is_wanted
        await pieces.append(b"hello")
        await pieces.end()
    with pytest.raises(UploadInUse):
        await waiting[0]
    # Bytes written since it started waiting are included.
    assert await waiting[1] == 5


async def test_a_revoked_key_completes_no_upload(org: Organization) -> None:
    where = await create_upload(org["ben"], 10)
    came, renewed = asyncio.Event(), asyncio.Event()

    async def slow(rest: bytes) -> Any:
        yield b"hello"
        came.set()
        await renewed.wait()
        yield rest

    form = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    plain = {"Content-Type": "multipart/form-data; boundary=x"}

    async def whole() -> Any:
        yield form
        async for some in slow(b"world\r\n--x--\r\n"):
            yield some

    pieces = asyncio.create_task(piece(org["ben"], where, 0, slow(b"world")))
    await came.wait()
    came.clear()
    once = asyncio.create_task(
        org["ben"].http.post("/api/v1/user_uploads", content=whole(), headers=plain)
    )
    await came.wait()
    (await org["ben"].post("/users/me/api_key/regenerate")).ok
    renewed.set()
    assert [(await one).status_code for one in (pieces, once)] == [401, 401]
    assert not org.node.state.attachments


async def test_an_upload_that_another_process_is_writing_is_left_alone(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partial_uploads, "TAKE_OVER_SECONDS", 0)
    where = await create_upload(org["ben"], 10)
    partials = DiskPartialUploads(org.node.uploads)
    partial = await partials.load(org["ben"].user_id, where.rpartition("/")[2])
    assert partial is not None
    async with partials.opened(partial):
        refused(await piece(org["ben"], where, 0, b"hello"), 423)
    assert (await piece(org["ben"], where, 0, b"hello")).status_code == 204


async def test_a_full_disk_is_reported_and_earlier_bytes_stay(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = await create_upload(org["ben"], 10)
    await piece(org["ben"], where, 0, b"hello")

    async def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(DiskPieces, "append", full)
    refused(await piece(org["ben"], where, 5, b"world"), 503, "SERVER_NOT_READY")
    monkeypatch.undo()
    monkeypatch.setattr(DiskPartialUploads, "begin", full)
    refused(await ask(org["ben"], "POST", Upload_Length="5"), 503, "SERVER_NOT_READY")
    monkeypatch.undo()
    assert (await piece(org["ben"], where, 5, b"world")).status_code == 200


# Completion and termination


async def test_an_upload_can_be_terminated(org: Organization) -> None:
    where = await create_upload(org["ben"], 10)
    await piece(org["ben"], where, 0, b"hello")
    answer = await ask(org["ben"], "DELETE", where)
    assert (answer.status_code, answer.content) == (204, b"")
    assert on_disk(org) == []
    for method in ("HEAD", "PATCH", "DELETE"):
        assert (await ask(org["ben"], method, where, Upload_Offset="5")).status_code == 404


async def test_a_complete_upload_cannot_be_terminated_but_deleted(org: Organization) -> None:
    where = await create_upload(org["ben"], 5)
    url = (await piece(org["ben"], where, 0, b"hello")).json()["url"]
    refused(await ask(org["ben"], "DELETE", where), 403)
    assert (await org["ben"].open(url)).content == b"hello"


async def test_an_unfinished_upload_expires_after_a_day(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        answer = await ask(org["ann"], "POST", Upload_Length="10")
        where = answer.headers["location"]
        expires = parsedate_to_datetime(answer.headers["upload-expires"]).timestamp()
        assert abs(expires - clock() - 86400) < 60
        first = await piece(org["ann"], where, 0, b"hello")
        assert first.headers["upload-expires"] == answer.headers["upload-expires"]
        ended = await create_upload(org["ann"], 5)
        url = (await piece(org["ann"], ended, 0, b"hello")).json()["url"]
        clock.ahead = 86400 - 60
        await cleanup(org).once()
        assert await offset_of(org["ann"], where) == 5
        clock.ahead = 86400 + 60
        refused(await piece(org["ann"], where, 5, b"world"), 410)
        await cleanup(org).once()
        assert [file.name for file in on_disk(org)] == [url.split("/")[4]]
        assert (await ask(org["ann"], "HEAD", where)).status_code == 404


async def test_an_upload_continues_after_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        where = await create_upload(org["ann"], 10)
        await piece(org["ann"], where, 0, b"hello")
    async with open_organization(config) as org:
        assert await offset_of(org["ann"], where) == 5
        url = (await piece(org["ann"], where, 5, b"world")).json()["url"]
        assert (await org["ann"].open(url)).content == b"helloworld"


async def test_bytes_left_unverified_by_a_crash_are_sent_again(org: Organization) -> None:
    where = await create_upload(org["ben"], 10)
    await piece(org["ben"], where, 0, b"hello")
    partials = DiskPartialUploads(org.node.uploads)
    partial = await partials.load(org["ben"].user_id, where.rpartition("/")[2])
    assert partial is not None
    async with partials.opened(partial) as pieces:
        assert pieces is not None
        await pieces.begin(checked=True)
        await pieces.append(b"wo")
    assert await offset_of(org["ben"], where) == 5
    assert (await piece(org["ben"], where, 5, b"wor")).status_code == 204
    assert await offset_of(org["ben"], where) == 8


async def test_an_upload_whose_completion_was_not_recorded_counts_once(
    small: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The node was killed after the attachment was created."""

    async def killed(*_: Any) -> None:
        raise RuntimeError("cut off")

    async def idle(_: FileCleanup) -> float:
        return 3600.0  # The node's own job would repair it at any time.

    monkeypatch.setattr(FileCleanup, "_round", idle)
    async with new_organization(small) as org:
        ann, partials = org["ann"], org.node.partials
        where = await create_upload(ann, MIB)
        with monkeypatch.context() as patched:
            patched.setattr(type(partials), "finish", killed)
            assert (await piece(ann, where, 0, b"x" * MIB)).status_code == 500
        assert (await partials.unfinished([ann.user_id]), len(await partials.begun())) == (1, 1)
        assert await ann.upload("as much again", b"x" * MIB)
        # The next start tells it apart.
        await cleanup(org).once()
        assert (await partials.unfinished([ann.user_id]), await partials.begun()) == (0, [])
        assert await partials.reservations(org.node.clock()) == []
        assert await offset_of(ann, where) == MIB
        assert (await piece(ann, where, MIB, b"")).status_code == 200


async def test_a_crash_at_completion_is_repaired_by_the_next_request(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method in ["HEAD", "PATCH"]:
        for lost in ["the change", "the move", "the note"]:
            with row(method, lost):
                where = await create_upload(org["ben"], 5)

                async def broken(*_: Any) -> None:
                    raise RuntimeError("cut off")

                with monkeypatch.context() as patched:
                    if lost == "the change":
                        patched.setattr(tus, "store_upload", broken)
                    elif lost == "the move":
                        patched.setattr(UploadStore, "settle", broken)
                    else:
                        patched.setattr(DiskPartialUploads, "save", broken)
                    assert (await piece(org["ben"], where, 0, b"hello")).status_code == 500
                answer = await ask(org["ben"], method, where, Upload_Offset="5")
                assert (answer.status_code, answer.headers["upload-offset"]) == (200, "5")
                (one,) = (await org["ben"].get("/attachments")).ok["attachments"]
                assert (
                    await org["ben"].open(f"/user_uploads/{one['path_id']}")
                ).content == b"hello"
                assert (
                    (await piece(org["ben"], where, 5, b"")).json()["url"].endswith(one["path_id"])
                )
                assert (await org["ben"].delete(f"/attachments/{one['id']}")).ok
