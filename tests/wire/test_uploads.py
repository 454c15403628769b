"""Uploading, listing, and deleting files, and messages that link to them."""

import asyncio
import errno
import re
from collections.abc import Callable
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

import msgspec
import pytest
from starlette.requests import ClientDisconnect

from tertulia.domain.accounts import users
from tertulia.domain.messages import attachments
from tertulia.jobs.files import PERIOD_SECONDS, FileCleanup
from tertulia.model.users import Bot, BotKind, User
from tertulia.service.config import Config
from tertulia.store.uploads import UploadDraft, UploadStore
from tests.pictures import picture
from tests.s3 import files_of
from tests.support import (
    Organization,
    Person,
    Reply,
    TestClock,
    new_organization,
    open_organization,
    row,
)

PATH = re.compile(r"1/[0-9a-f]{2}/[0-9a-f]{32}/[^/]+")


async def upload(person: Person, *files: tuple[str, tuple[Any, ...]], **how: Any) -> Reply:
    return await person.raw("POST", "/user_uploads", files=list(files), **how)


async def listed(person: Person) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await person.get("/attachments")).ok["attachments"]
    return found


def on_disk(org: Organization) -> list[PurePath]:
    """The existing files, wherever they are stored."""
    return files_of(org.node)


async def nothing(*_: object) -> None:
    """Replaces what a crash prevents."""


def cleanup(org: Organization) -> FileCleanup:
    return FileCleanup(org.node.log, org.node.uploads, org.node.partials)


# Uploading


async def test_an_upload_returns_its_address_and_original_name(
    org: Organization,
) -> None:
    reply = (await upload(org["ben"], ("file", ("My Note [1].txt", b"hello", "text/plain")))).ok
    assert reply["uri"] == reply["url"]
    assert reply["filename"] == "My Note [1].txt"
    path = reply["url"].removeprefix("/user_uploads/")
    assert PATH.fullmatch(path)
    assert path.endswith("/My-Note-1.txt")
    answer = await org["ben"].open(reply["url"])
    assert (answer.status_code, answer.content) == (200, b"hello")


async def test_the_file_field_may_have_any_name(org: Organization) -> None:
    for field in ["file", "filename", "avatar", "é"]:
        with row(field):
            assert (await upload(org["ben"], (field, ("a.txt", b"x", "text/plain")))).ok


NAMES = [
    ("a.txt", "a.txt", "a.txt"),
    ("two  words.txt", "two  words.txt", "two-words.txt"),
    ("naïve — 漢字.txt", "naïve — 漢字.txt", "naïve-漢字.txt"),
    ("../../etc/passwd", "passwd", "passwd"),
    ("..", "..", "uploaded-file"),
    ("...", "...", "uploaded-file"),
    ('quo"te.txt', 'quo"te.txt', "quote.txt"),
    ("line\nbreak\r.txt", "linebreak.txt", "linebreak.txt"),
    ("[x](http://evil).txt", "evil).txt", "evil.txt"),
    ("a&b<c>;d.txt", "a&b<c>;d.txt", "abcd.txt"),
    ("archive.tar.gz", "archive.tar.gz", "archive.tar.gz"),
    ("🙂", "🙂", "uploaded-file"),
    ("\u202egnp.exe", "gnp.exe", "gnp.exe"),
    ("x" * 500 + ".png", "x" * 196 + ".png", "x" * 196 + ".png"),
    (".", ".", "uploaded-file"),
    ("100%.txt", "100%.txt", "100.txt"),
]
"""A file's name as uploaded, as shown, and as in an address."""


async def test_a_name_is_made_displayable_and_safe_for_an_address(
    org: Organization,
) -> None:
    for name, shown, in_address in NAMES:
        with row(name):
            reply = (await upload(org["ben"], ("file", (name, b"x", "text/plain")))).ok
            assert reply["filename"] == shown
            assert reply["url"].rpartition("/")[2] == in_address
            (own,) = (
                one for one in await listed(org["ben"]) if reply["url"].endswith(one["path_id"])
            )
            assert own["name"] == shown
            assert (await org["ben"].open(reply["url"])).status_code == 200


def form(*parts: bytes, end: bytes = b"--x--\r\n") -> dict[str, Any]:
    body = b"".join(b"--x\r\n" + part + b"\r\n" for part in parts) + end
    return {"content": body, "headers": MULTIPART}


MULTIPART = {"Content-Type": "multipart/form-data; boundary=x"}


def part(disposition: str, content: bytes = b"hello", kind: str = "text/plain") -> bytes:
    head = f"Content-Disposition: form-data; {disposition}\r\nContent-Type: {kind}\r\n\r\n"
    return head.encode() + content


async def posted(person: Person, how: dict[str, Any]) -> Reply:
    headers = how.pop("headers", {})
    return await person.raw("POST", "/user_uploads", **how, headers=headers)


FORMS = [
    ("name=f; filename*=UTF-8''na%C3%AFve%20%E2%82%AC.txt", "naïve €.txt"),
    ("name=f; filename=\"n.txt\"; filename*=UTF-8''%E2%82%AC.txt", "€.txt"),
    ("name=f; filename*=iso-8859-1''caf%E9.txt", "café.txt"),
    ('name=f; filename="a%22b%0D%0Ac.txt"', 'a"bc.txt'),
    ('name=f; filename="null\0byte.txt"', "nullbyte.txt"),
    ('name=f; filename="C:\\\\fakepath\\\\x.txt"', "x.txt"),
]
"""How a form gives the file's name."""


async def test_a_name_may_be_encoded_in_all_forms_that_multipart_allows(org: Organization) -> None:
    for disposition, name in FORMS:
        with row(disposition):
            assert (await posted(org["ben"], form(part(disposition)))).ok["filename"] == name


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"data": {"file": "text"}}, id="a form that is not multipart"),
        pytest.param({}, id="nothing"),
        pytest.param({"content": b"hello"}, id="a bare body"),
        pytest.param(form(part('name="f"')), id="a field that is no file"),
        pytest.param(form(part('name="f"; filename=""', b"")), id="a file without a name"),
        pytest.param(
            form(part('name="a"; filename="a"'), part('name="b"; filename="b"')), id="two files"
        ),
        pytest.param(
            form(part('name="a"; filename="a"'), part('name="a"; filename="a"')),
            id="two files of one name",
        ),
        pytest.param(form(part('name="a"; filename="a"'), end=b""), id="a form without an end"),
        pytest.param(form(part('filename="a"')), id="a part without a name"),
        pytest.param(form(part("name=f; filename*=UTF-8''%FF")), id="a name that is no text"),
        pytest.param(form(part("name=f; filename*=klingon''a")), id="a name of no charset"),
        pytest.param(
            {"content": b"--x", "headers": {"Content-Type": "multipart/form-data"}},
            id="no boundary",
        ),
        pytest.param(
            form(part('name="f"', b"\xff"), part('name="a"; filename="a"')), id="no UTF-8"
        ),
        pytest.param(
            {
                "content": b"\0\xff" * 999,
                "headers": MULTIPART,
            },
            id="noise",
        ),
    ],
)
async def test_a_request_without_exactly_one_file_is_refused_and_leaves_nothing(
    readonly_org: Organization, how: dict[str, Any]
) -> None:
    (await posted(readonly_org["ben"], dict(how))).refused()
    assert on_disk(readonly_org) == []
    assert await listed(readonly_org["ben"]) == []


async def test_other_fields_are_reported_as_ignored(org: Organization) -> None:
    reply = await org["ben"].raw(
        "POST", "/user_uploads?also=1", files={"file": ("a", b"x")}, data={"color": "red"}
    )
    assert sorted(reply.ok["ignored_parameters_unsupported"]) == ["also", "color"]


async def test_an_empty_file_is_a_file(org: Organization) -> None:
    path = await org["ben"].upload("empty.txt", b"")
    assert (await listed(org["ben"]))[0]["size"] == 0
    answer = await org["ben"].open(f"/user_uploads/{path}")
    assert (answer.status_code, answer.content) == (200, b"")


@pytest.mark.parametrize("who", ["ann", "gus", "robo"])
async def test_everyone_with_an_account_can_upload(org: Organization, who: str) -> None:
    path = await org[who].upload()
    assert (await org[who].open(f"/user_uploads/{path}")).status_code == 200


async def test_uploading_needs_an_account(org: Organization) -> None:
    (await upload(org.nobody, ("file", ("a", b"x")))).refused("UNAUTHORIZED", 401)
    stranger = Person(org.http, 0, org["ben"].email, "x" * 32)
    (await upload(stranger, ("file", ("a", b"x")))).refused("INVALID_API_KEY", 401)
    assert on_disk(org) == []


async def test_an_incoming_webhook_bot_cannot_upload(org: Organization) -> None:
    credential = await org.node.vault.credential(0, None)
    bot = User(
        id=org.node.state.users.next_id(),
        address="hook-bot@example.com",
        full_name="Hook",
        bot=Bot(kind=BotKind.INCOMING_WEBHOOK, owner_id=org["ben"].user_id),
    )
    await org.do(users.creation_change(org.node.state, bot, credential))
    hook = org.person_of("hook", bot)
    (await upload(hook, ("file", ("a", b"x")))).refused()
    path = await org["ben"].upload()
    assert (await hook.open(f"/user_uploads/{path}")).status_code == 403


# Limits


@pytest.fixture
def small(config: Config) -> Config:
    """A server that accepts files up to 1 MiB, and 2 MiB of them in total."""
    return msgspec.structs.replace(
        config, max_file_upload_size_mib=1, upload_quota_mib=2, max_body_mib=1
    )


MIB = 1024 * 1024


async def test_a_file_of_the_maximum_size_is_accepted_and_one_byte_more_is_refused(
    small: Config,
) -> None:
    async with new_organization(small) as org:
        path = await org["ann"].upload("full", b"x" * MIB)
        assert (await listed(org["ann"]))[0]["size"] == MIB
        (await upload(org["ann"], ("file", ("over", b"x" * (MIB + 1))))).refused()
        assert [p.name for p in on_disk(org)] == [path.split("/")[2]]
        data = (await org["ann"].register()).data
        assert data["max_file_upload_size_mib"] == 1
        assert data["realm_upload_quota_mib"] == 2


async def test_only_the_upload_endpoint_accepts_a_large_body(config: Config) -> None:
    config = msgspec.structs.replace(config, max_body_mib=1)
    async with new_organization(config) as org:
        content = bytes(range(256)) * 4096 * 6
        path = await org["ann"].upload("big.bin", content)
        assert (await org["ann"].open(f"/user_uploads/{path}")).content == content
        reply = await org["ann"].raw("POST", "/messages", files={"content": ("a", content)})
        reply.refused(status=413)


async def test_other_fields_are_limited(small: Config) -> None:
    async with new_organization(small) as org:
        reply = await org["ann"].raw(
            "POST", "/user_uploads", files={"file": ("a", b"x")}, data={"b": "x" * (MIB + 1)}
        )
        reply.refused()
        assert on_disk(org) == []


async def test_beyond_the_quota_uploads_are_refused_until_there_is_room(small: Config) -> None:
    async with new_organization(small) as org:
        ann = org["ann"]
        await ann.upload("one", b"x" * MIB)
        await ann.upload("two", b"x" * (MIB - 1))
        (await upload(ann, ("file", ("three", b"xx")))).refused("REALM_UPLOAD_QUOTA")
        assert len(on_disk(org)) == 2
        await ann.upload("last", b"x")
        first = (await listed(ann))[0]["id"]
        assert (await ann.delete(f"/attachments/{first}")).ok
        await ann.upload("three", b"xx")


async def test_without_a_quota_register_says_so(org: Organization) -> None:
    assert (await org["ben"].register()).data["realm_upload_quota_mib"] is None


async def test_a_full_disk_is_reported_and_leaves_nothing(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    for owner, method in ((UploadStore, "begin"), (UploadDraft, "finish")):
        with monkeypatch.context() as patched:
            patched.setattr(owner, method, full)
            (await upload(org["ben"], ("file", ("a", b"x")))).refused("SERVER_NOT_READY", 503)
        assert on_disk(org) == []
    assert await org["ben"].upload()


async def test_a_client_that_disconnects_leaves_no_file(org: Organization) -> None:
    async def body() -> Any:
        yield b"--x\r\n" + part('name="f"; filename="f"', b"x" * 1000)
        assert len(on_disk(org)) == 1
        raise ClientDisconnect

    response = await org.http.post(
        "/api/v1/user_uploads",
        content=body(),
        headers=MULTIPART,
        auth=(org["ben"].email, org["ben"].api_key),
    )
    assert response.status_code == 499
    assert on_disk(org) == []


async def test_concurrent_uploads_are_all_stored(org: Organization) -> None:
    paths = await asyncio.gather(
        *(org["ben"].upload(f"{n}.txt", str(n).encode()) for n in range(60))
    )
    assert len(set(paths)) == 60
    for n in (0, 31, 59):
        assert (await org["ben"].open(f"/user_uploads/{paths[n]}")).content == str(n).encode()
    assert len(on_disk(org)) == 60


async def test_concurrent_uploads_cannot_share_the_last_room(small: Config) -> None:
    async with new_organization(small) as org:
        replies = await asyncio.gather(
            *(upload(org["ann"], ("file", (f"{n}", b"x" * MIB))) for n in range(4))
        )
        assert sorted(reply.status for reply in replies) == [200, 200, 400, 400]
        assert len(on_disk(org)) == 2


# Listing and deleting


async def test_the_list_has_the_client_s_own_files_and_everyone_s_space(org: Organization) -> None:
    before = int(org.node.clock())
    path = await org["ben"].upload("a b.txt", b"12345")
    await org["cleo"].upload("other.txt", b"123")
    answer = (await org["ben"].get("/attachments")).ok
    (one,) = answer["attachments"]
    assert before <= one.pop("create_time") <= org.node.clock()
    assert one == {"id": 1, "name": "a b.txt", "path_id": path, "size": 5, "message_ids": []}
    assert answer["upload_space_used"] == 8
    (await org.nobody.get("/attachments")).refused("UNAUTHORIZED", 401)


DELETING = [("ben", True), ("ann", True), ("cleo", False), ("gus", False), ("robo", False)]
"""Who deletes a file of ben's, and whether that's allowed."""


async def test_a_file_is_deleted_by_its_owner_or_an_administrator(org: Organization) -> None:
    for who, may in DELETING:
        with row(who):
            path = await org["ben"].upload()
            (one,) = await listed(org["ben"])
            reply = await org[who].delete(f"/attachments/{one['id']}")
            if not may:
                refused = reply.refused()
                other = (await org[who].delete("/attachments/999")).refused()
                assert other == refused
                assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 200
                (await org["ben"].delete(f"/attachments/{one['id']}")).ok
                continue
            assert reply.ok
            assert await listed(org["ben"]) == []
            assert (await org["ben"].open(f"/user_uploads/{path}")).status_code == 404
            (await org["ben"].delete(f"/attachments/{one['id']}")).refused()


async def test_a_deleted_file_and_its_thumbnails_are_removed_from_the_disk(
    org: Organization,
) -> None:
    path = await org["ben"].upload("p.png", picture(900, 600), "image/png")
    thumbnail = await org["ben"].open(f"/user_uploads/thumbnail/{path}/840x560.webp")
    assert thumbnail.status_code == 200
    kept = await org["ben"].upload("kept.txt")
    assert len(on_disk(org)) == 3
    await org["ben"].delete("/attachments/1")
    await cleanup(org).once()
    assert [file.name for file in on_disk(org)] == [kept.split("/")[2]]
    assert not len(org.node.state.removed_files)
    await cleanup(org).once()


async def test_an_id_is_not_reused(org: Organization, config: Config) -> None:
    await org["ben"].upload()
    await org["ben"].delete("/attachments/1")
    await org["ben"].upload()
    assert (await listed(org["ben"]))[0]["id"] == 2


@pytest.mark.parametrize("attachment_id", ["0", "999", "9007199254740993", "x", "-1"])
async def test_an_unknown_attachment_cannot_be_deleted(
    readonly_org: Organization, attachment_id: str
) -> None:
    reply = await readonly_org["ben"].delete(f"/attachments/{attachment_id}")
    assert reply.status in {400, 404}


async def test_of_two_concurrent_deletions_one_is_refused(org: Organization) -> None:
    await org["ben"].upload()
    replies = await asyncio.gather(*(org[who].delete("/attachments/1") for who in ("ben", "ann")))
    assert sorted(reply.status for reply in replies) == [200, 400]


# Events


async def test_file_events_are_sent_to_the_owner_only(org: Organization) -> None:
    await org.channel("lounge", "ben", "cleo")
    ben, cleo = await org["ben"].register(), await org["cleo"].register()
    path = await org["ben"].upload("a.txt", b"12345")
    (added,) = await ben.events()
    assert (added["type"], added["op"], added["upload_space_used"]) == ("attachment", "add", 5)
    assert added["attachment"] == (await listed(org["ben"]))[0]

    message_id = await org["ben"].send("lounge", "t", f"[a.txt](/user_uploads/{path})")
    message, updated = await ben.events()
    assert message["type"] == "message"
    assert (updated["type"], updated["op"], updated["upload_space_used"]) == (
        "attachment",
        "update",
        5,
    )
    assert updated["attachment"] == {**added["attachment"], "message_ids": [message_id]}
    assert [event["type"] for event in await cleo.events()] == ["message"]

    await org["ann"].delete("/attachments/1")
    (removed,) = await ben.events()
    assert (removed["type"], removed["op"]) == ("attachment", "remove")
    assert removed["attachment"] == {"id": 1}
    assert removed["upload_space_used"] == 0
    assert await cleo.events() == []


async def test_the_owner_gets_an_event_about_a_message_they_do_not_receive(
    org: Organization,
) -> None:
    await org.channel("lounge", "ben", "cleo")
    path = await org["ben"].upload()
    await org["ben"].send("lounge", "t", f"/user_uploads/{path}")
    ben = await org["ben"].register()
    message_id = await org["cleo"].write([org["gus"].user_id], f"see /user_uploads/{path}")
    (updated,) = await ben.events()
    assert updated["attachment"]["message_ids"][-1] == message_id


async def test_a_late_poll_has_events_that_are_still_true(config: Config) -> None:
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        ann = await org["ann"].register()
        path = await org["ann"].upload()
        await org["ann"].send("lounge", "t", f"/user_uploads/{path}")
        await org["ann"].delete("/attachments/1")
        queue = (ann.queue_id, ann.last_event_id)
    async with open_organization(config) as org:
        reply = await org["ann"].get(
            "/events", queue_id=queue[0], last_event_id=queue[1], dont_block=True
        )
        told = [(e["type"], e.get("op")) for e in reply.ok["events"] if e["type"] != "heartbeat"]
        assert told == [("message", None), ("attachment", "remove")]


# Messages with files


async def flags(person: Person, message_id: int) -> set[str]:
    found = set()
    for kind in ("attachment", "image", "link"):
        reply = await person.get(
            "/messages",
            anchor="oldest",
            num_before=0,
            num_after=100,
            narrow=[{"operator": "has", "operand": kind}],
        )
        if message_id in [message["id"] for message in reply.ok["messages"]]:
            found.add(kind)
    return found


WAYS: list[tuple[str, Callable[[str], str]]] = [
    ("a link", lambda path: f"[a](/user_uploads/{path})"),
    ("the bare address", lambda path: f"look: /user_uploads/{path}."),
    ("a whole address", lambda path: f"http://chat.test/user_uploads/{path} and more"),
    ("an image", lambda path: f"![a](/user_uploads/{path})"),
    ("the address to save it", lambda path: f"/user_uploads/download/{path}"),
    ("percent signs", lambda path: f"/user_uploads/{quote(path)}"),
    ("twice", lambda path: f"/user_uploads/{path} /user_uploads/{path}"),
]


async def test_a_message_with_a_file_gives_its_readers_access(org: Organization) -> None:
    for write in [way for _, way in WAYS]:
        with row(write("path")):
            path = await org["ben"].upload("naïve.txt")
            assert (await org["cleo"].open(f"/user_uploads/{path}")).status_code == 403
            message_id = await org["ben"].write([org["cleo"].user_id], write(path))
            assert (await org["cleo"].open(f"/user_uploads/{path}")).status_code == 200
            assert (await org["ann"].open(f"/user_uploads/{path}")).status_code == 403
            linked = {one["path_id"]: one["message_ids"] for one in await listed(org["ben"])}
            assert linked[path] == [message_id]
            assert await flags(org["cleo"], message_id) == {"attachment", "link"}


async def test_a_message_with_an_image_is_found_as_such(org: Organization) -> None:
    path = await org["ben"].upload("p.png", picture(3, 2), "image/png")
    message_id = await org["ben"].write([org["cleo"].user_id], f"[p](/user_uploads/{path})")
    assert await flags(org["cleo"], message_id) == {"attachment", "image", "link"}


async def test_linking_an_inaccessible_file_gives_nobody_access(
    org: Organization,
) -> None:
    path = await org["ben"].upload()
    message_id = await org["cleo"].write([org["gus"].user_id], f"/user_uploads/{path}")
    assert (await org["gus"].open(f"/user_uploads/{path}")).status_code == 403
    assert (await org["cleo"].open(f"/user_uploads/{path}")).status_code == 403
    assert (await listed(org["ben"]))[0]["message_ids"] == []
    assert await flags(org["cleo"], message_id) == {"link"}


async def test_anyone_with_access_to_a_file_can_share_it(org: Organization) -> None:
    path = await org["ben"].upload()
    await org["ben"].write([org["cleo"].user_id], f"/user_uploads/{path}")
    await org["cleo"].write([org["gus"].user_id], f"/user_uploads/{path}")
    assert (await org["gus"].open(f"/user_uploads/{path}")).status_code == 200


@pytest.mark.parametrize(
    "content",
    ["/user_uploads/1/ab/" + "0" * 32 + "/a.txt", "/user_uploads/", "/user_uploads/../../x"],
)
async def test_a_link_to_an_unknown_file_is_ordinary_text(org: Organization, content: str) -> None:
    message_id = await org["ben"].write([org["cleo"].user_id], content)
    assert "attachment" not in await flags(org["cleo"], message_id)


async def test_a_link_to_a_deleted_file_has_no_effect(org: Organization) -> None:
    path = await org["ben"].upload()
    await org["ben"].delete("/attachments/1")
    message_id = await org["ben"].write([org["cleo"].user_id], f"/user_uploads/{path}")
    assert await flags(org["cleo"], message_id) == set()


async def test_links_are_known_after_a_restart(config: Config) -> None:
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        path = await org["ann"].upload("p.png", picture(3, 2), "image/png")
        await org["ann"].upload("unclaimed.txt", b"123")
        message_id = await org["ann"].send("lounge", "t", f"/user_uploads/{path}")
        before = (await org["ann"].get("/attachments")).ok
    async with open_organization(config) as org:
        assert (await org["ann"].get("/attachments")).ok == before
        assert before["attachments"][0]["message_ids"] == [message_id]
        kept, other = (
            org.node.state.uploads.at_path(one["path_id"]) for one in before["attachments"]
        )
        assert kept is not None
        assert (kept.path, kept.media_type) == (path, "image/png")
        assert kept.picture is not None
        assert (kept.picture.width, kept.picture.height) == (3, 2)
        assert other is not None
        assert other.picture is None


async def test_an_edit_attaches_and_detaches_files(org: Organization) -> None:
    ben, cleo = org["ben"], org["cleo"]
    one, two = [await ben.upload(name) for name in ("one.txt", "two.txt")]
    message_id = await ben.write([cleo.user_id], f"/user_uploads/{one}")
    queue = await ben.register()
    answer = (await ben.patch(f"/messages/{message_id}", content=f"/user_uploads/{two}")).ok
    assert [file["name"] for file in answer["detached_uploads"]] == ["one.txt"]
    told = [event for event in await queue.events() if event["type"] == "attachment"]
    assert [(e["attachment"]["id"], e["attachment"]["message_ids"]) for e in told] == [
        (2, [message_id]),
        (1, []),
    ]
    assert (await cleo.open(f"/user_uploads/{one}")).status_code == 403
    assert (await cleo.open(f"/user_uploads/{two}")).status_code == 200
    answer = (await ben.patch(f"/messages/{message_id}", content="nothing")).ok
    assert [file["name"] for file in answer["detached_uploads"]] == ["two.txt"]
    assert await flags(cleo, message_id) == set()


async def test_deleting_a_message_detaches_its_files(org: Organization) -> None:
    path = await org["ben"].upload()
    message_id = await org["ben"].write([org["cleo"].user_id], f"/user_uploads/{path}")
    queue = await org["ben"].register()
    assert (await org["ben"].delete(f"/messages/{message_id}")).ok
    told = [event for event in await queue.events() if event["type"] == "attachment"]
    assert [event["attachment"]["message_ids"] for event in told] == [[]]
    assert (await listed(org["ben"]))[0]["message_ids"] == []
    assert (await org["cleo"].open(f"/user_uploads/{path}")).status_code == 403


# Unused files


async def test_a_file_without_messages_is_deleted_after_some_weeks(
    config: Config, clock: TestClock
) -> None:
    async with new_organization(config, clock=clock) as org:
        await org.channel("lounge", "ann")
        linked = await org["ann"].upload("linked.txt")
        await org["ann"].upload("unclaimed.txt")
        await org["ann"].send("lounge", "t", f"/user_uploads/{linked}")
        await org.tick()
        assert len(await listed(org["ann"])) == 2
        clock.ahead = config.unclaimed_upload_days * 86400 - 300
        await org.tick()
        assert len(await listed(org["ann"])) == 2
        ann = await org["ann"].register()
        clock.ahead = config.unclaimed_upload_days * 86400 + 5
        await org.tick()
        assert [one["name"] for one in await listed(org["ann"])] == ["linked.txt"]
        (removed,) = await ann.events()
        assert (removed["op"], removed["attachment"]) == ("remove", {"id": 2})
        await cleanup(org).once()
        assert [file.name for file in on_disk(org)] == [linked.split("/")[2]]


@pytest.mark.parametrize("restart", [False, True])
async def test_scheduled_messages_and_drafts_keep_their_files(
    config: Config, clock: TestClock, restart: bool
) -> None:
    async with new_organization(config, clock=clock) as org:
        ann = org["ann"]
        channel_id = await org.channel("lounge", "ann")
        links = [f"/user_uploads/{await ann.upload(f'{n}.txt')}" for n in range(4)]
        when = int(clock()) + 90 * 86400
        to = {"type": "channel", "to": channel_id, "topic": "t"}
        scheduled = await ann.post(
            "/scheduled_messages", content=links[0], scheduled_delivery_timestamp=when, **to
        )
        assert scheduled.ok
        draft = {"type": "stream", "to": [channel_id], "topic": "t", "content": links[1]}
        assert (await ann.post("/drafts", drafts=[draft])).ok
        assert (await ann.post("/saved_snippets", title="s", content=links[2])).ok
        if not restart:
            await looked_after(org, clock, when)
    if restart:
        async with open_organization(config, clock=clock) as org:
            await looked_after(org, clock, when)


async def looked_after(org: Organization, clock: TestClock, when: int) -> None:
    clock.ahead = 60 * 86400
    await org.tick()
    assert [one["name"] for one in await listed(org["ann"])] == ["0.txt", "1.txt", "2.txt"]
    clock.ahead += 40 * 86400
    await org.tick()
    assert [len(one["message_ids"]) for one in await listed(org["ann"])] == [1, 0, 0]
    drafts = (await org["ann"].get("/drafts")).ok["drafts"]
    await org["ann"].delete(f"/drafts/{drafts[0]['id']}")
    await org.tick()
    assert [one["name"] for one in await listed(org["ann"])] == ["0.txt", "2.txt"]


async def test_a_crash_before_a_file_was_moved_loses_nothing(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UploadStore, "settle", nothing)
    path = await org["ben"].upload("a.txt", b"hello")
    assert (await org["ben"].open(f"/user_uploads/{path}")).content == b"hello"
    monkeypatch.undo()
    place = org.node.uploads.incoming / path.split("/")[2]
    assert place.exists()
    await cleanup(org).once()
    assert place.exists()
    keep = cleanup(org)
    monkeypatch.setattr(org.node.log, "clock", TestClock(ahead=2 * 86400))
    await keep.once()
    assert not place.exists()
    assert (await org["ben"].open(f"/user_uploads/{path}")).content == b"hello"


async def test_a_file_that_was_never_recorded_is_deleted_a_day_later(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = org.node.uploads.begin()
    draft.file.write(b"hello")
    draft.finish()
    await cleanup(org).once()
    assert len(on_disk(org)) == 1
    monkeypatch.setattr(org.node.log, "clock", TestClock(ahead=2 * 86400))
    await cleanup(org).once()
    assert on_disk(org) == []


async def test_deleting_a_file_that_another_node_deletes_is_not_retried_forever(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(*_: object) -> None:
        raise OSError("away")

    monkeypatch.setattr(UploadStore, "delete", failing)
    job = cleanup(org).job()
    await org["ann"].upload()
    await org["ann"].delete("/attachments/1")
    assert await job.once() < PERIOD_SECONDS
    assert job.trouble is not None
    await org.node.log.submit(None, attachments.record_deleted_files, [1])
    assert await job.once() == PERIOD_SECONDS
    assert job.trouble is None


async def test_an_interrupted_deletion_is_completed_at_the_next_start(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(FileCleanup, "once", lambda self: asyncio.sleep(0))
        async with new_organization(config) as org:
            await org["ann"].upload()
            await org["ann"].delete("/attachments/1")
            assert len(on_disk(org)) == 1
    async with open_organization(config) as org:
        await cleanup(org).once()
        assert on_disk(org) == []
        assert not len(org.node.state.removed_files)
