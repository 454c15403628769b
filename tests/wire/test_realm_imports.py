"""Imports that owners start in the browser: uploads, checks, reports, permissions, and restarts."""

import asyncio
import os
import secrets
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.domain.organization import imports
from tertulia.domain.organization.imports import DAY, KEPT_DAYS, MAX_RECORDS
from tertulia.imports import canceling
from tertulia.imports.lock import ImportBusy
from tertulia.imports.progress import FACT, IDS_FACT, Progress
from tertulia.jobs import imports as jobs
from tertulia.jobs.programs import ProgramFailed, environment_of, run_command
from tertulia.model.changes import UserChanged
from tertulia.model.imports import (
    DataImport,
    DataImportSet,
    ImportRemark,
    ImportState,
    ImportSummary,
)
from tertulia.model.messages import Message
from tertulia.service.config import Config
from tertulia.service.node import Node
from tertulia.store import installation, queries
from tests.imports import mattermost_export
from tests.imports.zulip_export import ANN, ZulipExportBuilder, message
from tests.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from tests.support import (
    Organization,
    Person,
    TestClock,
    new_organization,
    open_organization,
    until,
)
from tests.wire.test_tus import PIECE, ask, metadata

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def export(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An export of Zulip."""
    return ZulipExportBuilder().packed(tmp_path_factory.mktemp("export")).read_bytes()


async def uploaded(person: Person, content: bytes, name: str = "export.tar.gz") -> str:
    """Upload an export in two pieces. Return its key."""
    begun = await ask(
        person,
        "POST",
        Upload_Length=str(len(content)),
        Upload_Metadata=metadata(filename=name, purpose="import"),
    )
    assert begun.status_code == 201, begun.text
    place = begun.headers["location"]
    half = len(content) // 2
    first = await ask(person, "PATCH", place, content[:half], Upload_Offset="0", **PIECE)
    assert first.status_code == 204, first.text
    last = await ask(person, "PATCH", place, content[half:], Upload_Offset=str(half), **PIECE)
    assert last.status_code == 200, last.text
    key: str = last.json()["upload"]
    assert place.endswith(key)
    return key


async def ended(org: Organization) -> DataImport:
    """Wait until no import is running: the node's own job runs them. Return the newest."""
    await until(lambda: imports.running_import(org.node.state) is None, seconds=300)
    await org.node.log.durability.settled()
    return max(org.node.state.data_imports, key=lambda one: one.id)


async def listed(person: Person) -> dict[str, Any]:
    """Return the newest import as the API shows it."""
    newest: dict[str, Any] = (await person.get("/imports")).ok["imports"][0]
    return newest


async def test_an_export_is_checked_imported_and_reported(org: Organization, export: bytes) -> None:
    ann = org["ann"]
    listener, other = await ann.register(), await org["ben"].register()
    people = len(org.node.state.users)
    key = await uploaded(ann, export)
    number = (await ann.post("/imports", upload=key, kind="zulip")).ok["id"]
    await ended(org)
    checked = await listed(ann)
    assert (checked["id"], checked["state"], checked["report"]) == (number, "checked", None)
    assert checked["file_name"] == "export.tar.gz"
    assert checked["plan"]["origin"] == "Zulip 11.4"
    assert checked["plan"]["imported"]["messages"] == 7
    assert all(one["reason"] for one in checked["plan"]["skipped"])
    assert len(org.node.state.users) == people
    assert [one["state"] for one in await listener.events()] == ["checking", "checked"]
    assert await other.events() == []

    assert (await ann.post(f"/imports/{number}/start")).ok
    await ended(org)
    finished = await listed(ann)
    assert (finished["state"], finished["progress"]) == ("finished", None)
    assert finished["report"]["imported"]["messages"] == 7
    assert not finished["has_file"]
    await until(lambda: not any((org.node.disk.root / "imports").iterdir()))
    # Clients load everything again, since imported messages have no events.
    (await ann.get("/events", queue_id=listener.queue_id, last_event_id=-1)).refused(
        "BAD_EVENT_QUEUE_ID"
    )
    found = await ann.get("/messages", anchor="newest", num_before=20, num_after=0, narrow=[])
    assert any("finished" in one["content"] for one in found.ok["messages"])
    assert any(one.full_name == "Gus" for one in org.node.state.users)


MANY = 2500
"""The number of messages. While someone else writes, they take 25 commits with a pause after
each."""


@pytest.fixture(scope="module")
def large_export(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """An export whose import takes a while."""
    builder = ZulipExportBuilder()
    builder.messages.append([message(1000 + n, ANN, 131, f"Message {n}") for n in range(MANY)])
    builder.flags.append([])
    return builder.packed(tmp_path_factory.mktemp("export")).read_bytes()


async def started(org: Organization, export: bytes) -> int:
    """Upload an export, and begin to import it. Return the import's ID."""
    key = await uploaded(org["ann"], export)
    reply = await org["ann"].post("/imports", upload=key, kind="zulip", dry_run=False)
    number: int = reply.ok["id"]
    return number


async def imported_messages(org: Organization) -> int:
    """Return the number of messages that were imported."""
    rows = await org.node.store.read(
        lambda c: c.query("SELECT count(*) FROM messages WHERE content LIKE 'Message %'")
    )
    return int(rows[0][0])


async def halfway(org: Organization) -> None:
    """Wait until messages have been imported. Ann writes in the meantime, so that the import makes
    room for others and takes a while."""
    ann = org["ann"]
    async with asyncio.timeout(300):
        while not await imported_messages(org):
            sent = {"type": "direct", "to": [ann.user_id], "content": "Still waiting"}
            await ann.post("/messages", **sent, read_by_sender=True)
            await asyncio.sleep(0.01)


async def test_a_killed_process_is_started_again_and_continues(
    org: Organization, large_export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[Any] = []

    async def killed_once(*words: Any) -> None:
        commands.append(words)
        if len(commands) > 1:
            await run_command(*words)
            return
        process = asyncio.create_task(run_command(*words))
        await halfway(org)
        process.cancel()  # As with `kill -9`.
        await asyncio.wait({process})
        assert 0 < await imported_messages(org) < MANY
        progress = (await listed(org["ann"]))["progress"]
        assert (progress["step"], progress["expected"]) == ("messages", MANY + 7)
        raise ProgramFailed("killed", -9)

    monkeypatch.setattr(jobs, "run_command", killed_once)
    await started(org, large_export)
    done = await ended(org)
    assert len(commands) == 2
    assert done.state is ImportState.FINISHED
    assert done.summary is not None
    assert done.summary.imported["messages"] == MANY + 7
    assert await imported_messages(org) == MANY


async def test_another_node_continues_what_a_stopped_one_began(
    config: Config, several_nodes: Path, large_export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "BUSY_SECONDS", 0.1)
    is_busy, waiting = jobs._is_busy, set[int]()

    async def is_busy_or_waiting(node: Node) -> bool:
        return id(node) in waiting or await is_busy(node)

    monkeypatch.setattr(jobs, "_is_busy", is_busy_or_waiting)
    async with new_organization(config) as staying:
        waiting.add(id(staying.node))
        async with open_organization(config) as leaving:
            await started(leaving, large_export)
            await halfway(leaving)
        assert imports.running_import(leaving.node.state) is not None
        waiting.clear()
        assert (await ended(staying)).state is ImportState.FINISHED
        assert await imported_messages(staying) == MANY


async def test_an_import_continues_after_a_restart(config: Config, large_export: bytes) -> None:
    async with new_organization(config) as org:
        await started(org, large_export)
        await halfway(org)
    async with open_organization(config) as org:
        done = await ended(org)
        assert done.state is ImportState.FINISHED
        assert await imported_messages(org) == MANY


async def test_canceling_stops_it_and_it_can_be_continued(
    org: Organization, large_export: bytes
) -> None:
    ann = org["ann"]
    listener = await ann.register()
    number = await started(org, large_export)
    await halfway(org)
    assert (await ann.delete(f"/imports/{number}")).ok
    (await ann.get("/events", queue_id=listener.queue_id, last_event_id=-1)).refused(
        "BAD_EVENT_QUEUE_ID"
    )
    canceled = await listed(ann)
    assert (canceled["state"], canceled["has_file"]) == ("canceled", True)
    assert canceled["progress"] is None
    before = await imported_messages(org)
    assert 0 < before < MANY
    assert (await ann.post(f"/imports/{number}/start")).ok
    done = await ended(org)
    assert done.state is ImportState.FINISHED
    assert await imported_messages(org) == MANY


async def test_a_canceled_import_is_forgotten_with_its_record(
    org: Organization, large_export: bytes
) -> None:
    ann = org["ann"]
    number = await started(org, large_export)
    await halfway(org)
    (await ann.delete(f"/imports/{number}")).ok

    async def progress() -> Progress:
        found = await canceling.newest(org.node.log)
        assert found is not None
        return found

    async def is_(name: str) -> None:
        async with asyncio.timeout(60):
            while not getattr(await progress(), name):  # noqa: ASYNC110 (it has no event)
                await asyncio.sleep(0.01)

    await is_("is_paused")
    unread = (await ann.register()).data["unread_msgs"]["count"]
    assert unread < MANY  # At most those imported last, whose read state wasn't written yet.
    ids = await org.node.store.read(lambda c: installation.value(c, IDS_FACT))
    assert ids is not None
    (await ann.delete(f"/imports/{number}")).ok
    await is_("is_canceled")
    assert await org.node.store.read(lambda c: installation.value(c, IDS_FACT)) is None


async def test_the_owner_chooses_whether_people_are_matched(
    org: Organization, export: bytes, tmp_path: Path
) -> None:
    ann = org["ann"]
    builder = ZulipExportBuilder()
    builder.realm["zerver_userprofile"][0]["delivery_email"] = ann.email
    key = await uploaded(ann, builder.packed(tmp_path).read_bytes())
    number = (await ann.post("/imports", upload=key, kind="zulip")).ok["id"]
    await ended(org)
    matched = [one for one in (await listed(ann))["plan"]["changed"] if ann.email in one["samples"]]
    assert matched
    (await ann.post(f"/imports/{number}/start", new_accounts=True)).ok
    assert (await ended(org)).new_accounts
    found = await listed(ann)
    assert (found["state"], found["new_accounts"]) == ("finished", True)
    senders = {one.sender_id for one in await all_messages(org)}
    assert ann.user_id not in senders


async def all_messages(org: Organization) -> list[Message]:
    return await org.node.store.read(lambda c: queries.messages(c, range(1, 100)))


async def test_an_unfinished_import_of_the_command_line_is_named(
    org: Organization, export: bytes
) -> None:
    ann = org["ann"]
    assert (await ann.get("/imports")).ok["unfinished"] is None
    before = Progress(
        fingerprint="1", kind="slack", origin="Slack", step="messages", started_at=1_600_000_000
    )
    text = msgspec.json.encode(before).decode()
    await org.node.store.write(lambda c: installation.put(c, FACT, text))
    found = (await ann.get("/imports")).ok["unfinished"]
    assert found == {"origin": "Slack", "started_at": 1_600_000_000}
    await started(org, export)
    failed = await ended(org)
    assert (failed.state, "tertulia import cancel" in failed.reason) == (ImportState.FAILED, True)


async def test_another_export_can_follow_a_canceled_one(
    org: Organization, large_export: bytes, export: bytes
) -> None:
    first = await started(org, large_export)
    await halfway(org)
    path = org.node.state.data_imports[first].path
    assert (await org["ann"].delete(f"/imports/{first}")).ok
    assert (await org["ann"].delete(f"/imports/{first}")).ok
    assert await org.node.files.found(path) is None
    (await org["ann"].post(f"/imports/{first}/start")).refused(status=404)
    assert await started(org, export)
    done = await ended(org)
    assert (done.state, done.reason) == (ImportState.FINISHED, "")


async def test_a_process_ends_with_its_server(
    org: Organization, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(jobs, "run_command", nothing)
    number = await started(org, export)
    config = org.node.config
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tertulia", "import", "requested", str(number)),
        env=environment_of(config, os.environ),
        stdin=asyncio.subprocess.DEVNULL,  # As if the other end was closed.
    )
    assert await asyncio.wait_for(process.wait(), 60) == 1
    assert org.node.state.data_imports[number].state is ImportState.IMPORTING


async def test_only_one_import_runs(org: Organization, export: bytes, large_export: bytes) -> None:
    ann = org["ann"]
    first, second = await uploaded(ann, large_export), await uploaded(ann, export)
    number = (await ann.post("/imports", upload=first, kind="zulip", dry_run=False)).ok["id"]
    (await ann.post("/imports", upload=second, kind="zulip")).refused()
    (await ann.post(f"/imports/{number}/start")).refused()
    await ended(org)
    (await ann.post(f"/imports/{number}/start")).refused()


async def test_an_import_waits_for_one_by_the_command_line(
    org: Organization, export: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "BUSY_SECONDS", 0.01)
    held, free = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        held.set()
        await free.wait()

    async def nothing() -> None: ...

    other = asyncio.create_task(jobs.only_import(org.node.log, tmp_path, hold))
    await held.wait()
    with pytest.raises(ImportBusy):
        await jobs.only_import(org.node.log, tmp_path / "elsewhere", nothing)
    number = await started(org, export)
    with pytest.raises(ProgramFailed) as caught:
        await run_command(org.node.config, "import", "requested", str(number))
    assert caught.value.code == jobs.BUSY
    assert org.node.state.data_imports[number].state is ImportState.IMPORTING
    free.set()
    await other
    assert (await ended(org)).state is ImportState.FINISHED
    # The program reports the end before it gives the lease back.
    for _ in range(1000):
        with suppress(ImportBusy):
            await jobs.only_import(org.node.log, tmp_path / "elsewhere", nothing)
            break
        await asyncio.sleep(0.01)
    else:
        pytest.fail("The lease isn't given back.")


async def test_a_lease_of_the_same_place_is_left_from_a_killed_process(
    org: Organization, tmp_path: Path
) -> None:
    place, store = jobs._location(tmp_path), org.node.store
    now = org.node.clock()
    assert await store.write(lambda c: jobs.LEASE.claimed(c, f"{place}#1", now))
    assert not await store.write(lambda c: jobs.LEASE.claimed(c, "elsewhere#1", now))
    assert not await store.write(lambda c: jobs.LEASE.claimed(c, "1", now))
    assert await store.write(lambda c: jobs.LEASE.claimed(c, f"{place}#2", now))
    assert await store.write(lambda c: jobs.LEASE.claimed(c, "elsewhere#1", now + 61))


async def test_only_owners_import(org: Organization, export: bytes) -> None:
    ann, ben = org["ann"], org["ben"]
    for reply in (
        await ben.get("/imports"),
        await ben.post("/imports", upload="0" * 32, kind="zulip"),
        await ben.post("/imports/1/start"),
        await ben.post("/imports/1/invite"),
        await ben.delete("/imports/1"),
    ):
        reply.refused("UNAUTHORIZED_PRINCIPAL")
    begin = {"Upload_Length": "5", "Upload_Metadata": metadata(filename="x", purpose="import")}
    assert (await ask(ben, "POST", **begin)).json()["code"] == "UNAUTHORIZED_PRINCIPAL"
    made = (await ann.post("/users/me/keys", name="Laptop")).ok
    program = Person(ann.http, ann.user_id, ann.email, made["api_key"])
    assert (await ask(program, "POST", **begin)).json()["code"] == "ACCESS_KEY_INSUFFICIENT"
    # Permissions are checked with each piece, and an upload belongs to one owner.
    place = (await ask(ann, "POST", **begin)).headers["location"]
    assert (await ann.patch(f"/users/{ben.user_id}", role=100)).ok
    key = await uploaded(ann, export)
    (await ben.post("/imports", upload=key, kind="zulip")).refused()
    assert (await ben.patch(f"/users/{ann.user_id}", role=400)).ok
    late = await ask(ann, "PATCH", place, b"12345", Upload_Offset="0")
    assert late.json()["code"] == "UNAUTHORIZED_PRINCIPAL"
    (await ann.post("/imports", upload=key, kind="zulip")).refused("UNAUTHORIZED_PRINCIPAL")


async def test_an_import_that_has_not_begun_ends_with_the_owners_right(
    org: Organization, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = org["ann"], org["ben"]
    assert (await ann.patch(f"/users/{ben.user_id}", role=100)).ok
    waits = asyncio.Event()

    async def later(*words: Any) -> None:
        await waits.wait()
        await run_command(*words)

    monkeypatch.setattr(jobs, "run_command", later)
    number = await started(org, export)
    assert (await ben.patch(f"/users/{ann.user_id}", role=400)).ok
    waits.set()
    failed = await ended(org)
    assert failed.state is ImportState.FAILED
    assert "isn't an owner anymore" in failed.reason
    assert (await ben.post(f"/imports/{number}/start")).ok
    assert (await ended(org)).state is ImportState.FINISHED


async def test_an_import_that_has_begun_goes_on_without_its_owner(
    org: Organization, large_export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = org["ann"], org["ben"]
    assert (await ann.patch(f"/users/{ben.user_id}", role=100)).ok
    commands: list[Any] = []

    async def killed_once(*words: Any) -> None:
        commands.append(words)
        process = asyncio.create_task(run_command(*words))
        if len(commands) == 1:
            await halfway(org)
            assert (await ben.delete(f"/users/{ann.user_id}")).ok
            process.cancel()
            await asyncio.wait({process})
            raise ProgramFailed("killed", -9)
        await process

    monkeypatch.setattr(jobs, "run_command", killed_once)
    await started(org, large_export)
    assert (await ended(org)).state is ImportState.FINISHED
    assert await imported_messages(org) == MANY


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda content: content[: len(content) // 2], "export.tar.gz can't be read"),
        (lambda _: b"not an archive", "is neither a .tar.gz"),
    ],
)
async def test_bad_files_are_refused_in_a_sentence(
    org: Organization, export: bytes, damage: Any, said: str
) -> None:
    ann = org["ann"]
    key = await uploaded(ann, damage(export))
    assert (await ann.post("/imports", upload=key, kind="zulip")).ok
    failed = await ended(org)
    assert (failed.state, failed.plan) == (ImportState.FAILED, None)
    assert said in failed.reason
    assert (await listed(ann))["reason"] == failed.reason
    assert "Traceback" not in failed.reason


async def test_a_check_says_if_the_export_was_imported_before(
    org: Organization, export: bytes
) -> None:
    ann = org["ann"]

    async def said() -> bool:
        key = await uploaded(ann, export)
        assert (await ann.post("/imports", upload=key, kind="zulip")).ok
        checked = await ended(org)
        assert checked.plan is not None
        return any("was imported before" in one.reason for one in checked.plan.changed)

    assert not await said()
    (one,) = org.node.state.data_imports
    finished = msgspec.structs.replace(one, id=one.id + 1, state=ImportState.FINISHED, path="")
    await org.do(DataImportSet(data_import=finished))
    assert await said()


@pytest.mark.parametrize("is_dry_run", [True, False])
async def test_a_report_has_no_samples_if_someone_was_erased_in_the_meantime(
    org: Organization, export: bytes, is_dry_run: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(jobs, "run_command", nothing)
    upload = await uploaded(org["ann"], export)
    number = (
        await org["ann"].post("/imports", upload=upload, kind="zulip", dry_run=is_dry_run)
    ).ok["id"]
    erased = org.node.state.users.erased_count
    await org.do(
        UserChanged(
            user_id=org["ben"].user_id, values={"is_deleted": True}, was={"is_deleted": False}
        )
    )
    remark = ImportRemark(kind="people", reason="No name.", count=1, samples=("Ben",))
    summary = ImportSummary(origin="Zulip 10.1", skipped=(remark,))
    verb = imports.finish_check if is_dry_run else imports.finish
    await org.node.log.submit(None, verb, number, summary, erased)
    one = org.node.state.data_imports[number]
    reported = one.plan if is_dry_run else one.summary
    assert reported is not None
    assert [(one.reason, one.samples) for one in reported.skipped] == [("No name.", ())]


async def test_a_long_file_name_is_shortened(org: Organization, export: bytes) -> None:
    key = await uploaded(org["ann"], export, "\N{CJK UNIFIED IDEOGRAPH-2000B}" * 90 + ".tar.gz")
    assert (await org["ann"].post("/imports", upload=key, kind="zulip")).ok
    checked = await ended(org)
    assert (checked.state, checked.reason) == (ImportState.CHECKED, "")


async def test_a_process_that_crashes_again_and_again_fails(
    org: Organization, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def crashing(*_: object) -> None:
        raise ProgramFailed("out of memory", -9)

    monkeypatch.setattr(jobs, "run_command", crashing)
    monkeypatch.setattr(jobs, "ATTEMPTS", 1)
    await started(org, export)
    failed = await ended(org)
    assert failed.state is ImportState.FAILED
    assert "log" in failed.reason


async def test_options_belong_to_their_kinds(org: Organization, tmp_path: Path) -> None:
    ann = org["ann"]
    lines = mattermost_export.written(tmp_path / "team.zip", mattermost_export.sample())
    key = await uploaded(ann, lines.read_bytes(), "team.zip")
    (await ann.post("/imports", upload=key, kind="zulip", team="harbor")).refused()
    (await ann.post("/imports", upload=key, kind="mattermost", token="x")).refused()
    (await ann.post("/imports", upload="0" * 32, kind="mattermost")).refused()
    assert (await ann.post("/imports", upload=key, kind="mattermost", team="nobody")).ok
    assert "nobody" in (await ended(org)).reason
    again = await uploaded(ann, lines.read_bytes(), "team.zip")
    assert (await ann.post("/imports", upload=again, kind="mattermost", team="harbor")).ok
    checked = await ended(org)
    assert checked.state is ImportState.CHECKED, checked.reason
    (await ann.post("/imports", upload=again, kind="mattermost")).refused()


async def test_a_token_is_sealed_and_forgotten(
    org: Organization, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def nothing(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(jobs, "run_command", nothing)
    key = await uploaded(org["ann"], export)
    reply = await org["ann"].post("/imports", upload=key, kind="slack", token="xoxp-secret")
    one = org.node.state.data_imports[reply.ok["id"]]
    assert "xoxp" not in str(one)
    assert org.node.vault.unsealed(one.token_sealed) == "xoxp-secret"
    assert "token" not in str(await listed(org["ann"]))


async def test_files_and_records_that_are_old_are_deleted(
    config: Config, clock: TestClock, export: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "UNUSED_SECONDS", -(10**9))
    async with new_organization(config, clock=clock) as org:
        ann = org["ann"]
        key = await uploaded(ann, export)
        assert (await ann.post("/imports", upload=key, kind="zulip")).ok
        checked = await ended(org)
        clock.ahead = (KEPT_DAYS - 1) * DAY
        await jobs.imports(org.node).once()
        assert [one.path async for one in org.node.files.below("imports")] == [checked.path]
        clock.ahead = KEPT_DAYS * DAY + 60
        await jobs.imports(org.node).once()
        assert [one async for one in org.node.files.below("imports")] == []
        assert not (await listed(ann))["has_file"]
        (await ann.post(f"/imports/{checked.id}/start")).refused()
        many = [
            msgspec.structs.replace(checked, id=checked.id + n, path="")
            for n in range(1, MAX_RECORDS + 3)
        ]
        await org.do(*(DataImportSet(data_import=one) for one in many))
        await org.node.log.submit(None, imports.expire)
        assert len((await ann.get("/imports")).ok["imports"]) == MAX_RECORDS


async def test_the_file_can_be_in_a_bucket(config: Config, bucket: S3Server, export: bytes) -> None:
    prefix = secrets.token_hex(4)
    stored = msgspec.structs.replace(
        config,
        files_url=bucket.url(prefix),
        s3_access_key_id=ACCESS_KEY,
        s3_secret_access_key=SECRET_KEY,
    )
    async with new_organization(stored) as org:
        await started(org, export)
        done = await ended(org)
        assert (done.state, done.reason) == (ImportState.FINISHED, "")
        await until(lambda: not bucket.objects(f"{prefix}/imports/"))


async def test_people_are_invited_in_one_step(config: Config, export: bytes) -> None:
    async with new_organization(config) as org:
        ann = org["ann"]
        number = await started(org, export)
        (await ann.post(f"/imports/{number}/invite")).refused()
        await ended(org)
        waiting = (await ann.get("/imports")).ok["people_to_invite"]
        assert waiting > 0
        assert (await ann.post(f"/imports/{number}/invite")).ok["invited"] >= waiting
        (await ann.post("/imports/99/invite")).refused(status=404)


async def test_exports_have_their_own_limit_and_no_quota(config: Config) -> None:
    limited = msgspec.structs.replace(
        config, max_import_size_mib=1, max_file_upload_size_mib=2, upload_quota_mib=1
    )
    async with new_organization(limited) as org:
        ann = org["ann"]
        about = metadata(filename="x", purpose="import")
        large = await ask(ann, "POST", Upload_Length=str(2**20 + 1), Upload_Metadata=about)
        assert large.status_code == 413
        for _ in range(2):
            fits = await ask(ann, "POST", Upload_Length=str(2**20), Upload_Metadata=about)
            assert fits.status_code == 201
        assert (await ann.get("/imports")).ok["max_file_size_mib"] == 1
        # An attachment isn't an import.
        place = (await ask(ann, "POST", Upload_Length="5")).headers["location"]
        assert (await ask(ann, "PATCH", place, b"12345", Upload_Offset="0")).status_code == 200
        key = place.rpartition("/")[2]
        (await ann.post("/imports", upload=key, kind="zulip")).refused()
