"""Erasing a person leaves nothing of them in the database and its files."""

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.domain.accounts import erasing
from tertulia.domain.accounts.data_exports import KEPT_DAYS
from tertulia.domain.organization import exports as realm_exports
from tertulia.imports.progress import FACT, Progress
from tertulia.imports.report import ImportReport
from tertulia.jobs import upkeep
from tertulia.jobs.exports import exports
from tertulia.jobs.files import FileCleanup
from tertulia.jobs.upkeep import erased_once, words_forgotten_once
from tertulia.log import replica
from tertulia.model.changes import DataImportSet
from tertulia.model.imports import (
    DataImport,
    ImportKind,
    ImportRemark,
    ImportState,
    ImportSummary,
)
from tertulia.model.sessions import LIFETIME
from tertulia.service.config import Config
from tertulia.store import installation, personal_data
from tests.emails import no_email_job
from tests.pictures import picture
from tests.support import Organization, Person, new_organization
from tests.unit.test_pruning import everything
from tests.wire.personal_data import later

pytestmark = pytest.mark.usefixtures(no_email_job.__name__)

PRIVACY = Path(__file__).parents[2] / "docs" / "privacy.md"
TRACES = (
    "Zoë",
    "Secretname",
    "zoe.secret",
    "zoe-old",
    "xqword",
    "friend-of-zoe",
)


@pytest.fixture
async def org(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Organization]:
    monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: ())
    async with new_organization(config) as org:
        yield org


async def live(org: Organization) -> tuple[Person, int]:
    """Zoë joins and leaves traces everywhere. Returns her and a message of hers with a file."""
    ann = org["ann"]
    zoe = await org.add("zoe-old")
    await org.channel("lounge", "ann", "zoe-old")
    field = (await ann.post("/realm/profile_fields", name="Pet", field_type=1)).ok["id"]
    for change in ({"full_name": "Zoë Secretname"}, {"new_email": "zoe.secret@example.com"}):
        assert (await ann.patch(f"/users/{zoe.user_id}", **change)).ok
    zoe.email = "zoe.secret@example.com"
    assert (await zoe.patch("/settings", email="zoe.secret.new@example.com")).ok
    assert (
        await zoe.patch("/users/me/profile_data", data=[{"id": field, "value": "xqword cat"}])
    ).ok
    await zoe.raw(
        "POST", "/users/me/avatar", files={"file": ("me.png", picture(20, 20), "image/png")}
    )
    draft = {"type": "", "to": [], "topic": "", "content": "xqword draft", "timestamp": 1}
    scheduled = {"type": "direct", "to": [ann.user_id], "content": "xqword plan"}
    requests: list[tuple[str, dict[str, Any]]] = [
        ("/saved_snippets", {"title": "xqword", "content": "xqword"}),
        ("/drafts", {"drafts": [draft]}),
        ("/scheduled_messages", {**scheduled, "scheduled_delivery_timestamp": later(org)}),
        ("/users/me/alert_words", {"alert_words": ["xqword"]}),
        ("/users/me/status", {"status_text": "xqword"}),
        ("/invites", {"invitee_emails": "friend-of-zoe@example.com", "stream_ids": []}),
        (f"/users/me/muted_users/{ann.user_id}", {}),
        ("/navigation_views", {"fragment": "narrow/xqword", "is_pinned": True, "name": "xqword"}),
        ("/users/me/presence", {"status": "active"}),
        ("/agents", {"name": "xqword agent"}),
        ("/bots", {"full_name": "Helper", "short_name": "helper", "bot_type": 1}),
        ("/users/me/data_export", {}),
    ]
    for path, parameters in requests:
        assert (await zoe.post(path, **parameters)).ok, path
    assert (await zoe.patch("/settings", default_language="de", timezone="Europe/Madrid")).ok
    await exports(org.node).once()
    await zoe.upload("xqword unlinked.txt", b"xqword unlinked")
    path = await zoe.upload("xqword sent.txt", b"xqword sent")
    message = await zoe.send("lounge", "xqword", f"xqword [file](/user_uploads/{path})")
    topic = {"topic": "xqword", "visibility_policy": 3}
    channel = org.node.state.channel_named("lounge")
    assert channel is not None
    assert (await zoe.post("/user_topics", stream_id=channel.id, **topic)).ok
    assert (await zoe.post("/messages/flags", messages=[message], op="add", flag="starred")).ok
    await zoe.register()
    await org.node.delivery.sweep()
    return zoe, message


async def erase(org: Organization, user_id: int, **actions: bool) -> None:
    """Erase the person, and let the jobs do their part."""
    actions["delete_profile"] = True
    assert (await org["ann"].delete(f"/users/{user_id}", actions=actions)).ok
    await exports(org.node).once()
    await FileCleanup(org.node.log, org.node.uploads, org.node.partials).once()
    await erased_once(org.node.store)
    assert await words_forgotten_once(org.node.store)


def traces_in_files(directory: Path) -> list[tuple[str, str]]:
    """The traces in names and contents of files, ignoring case."""
    found = []
    for file in directory.rglob("*"):
        content = file.read_bytes() if file.is_file() else b""
        text = (file.name.encode() + content).lower()
        found += [(file.name, one) for one in TRACES if one.lower().encode() in text]
    return found


async def test_nothing_is_left_of_an_erased_person_with_messages_and_files(
    config: Config, org: Organization
) -> None:
    zoe, _ = await live(org)
    database = await org.node.store.read(everything)
    assert [one for one in TRACES if one not in database] == []
    every = ("public_channel_messages", "private_channel_messages", "direct_messages", "files")
    await erase(org, zoe.user_id, **{f"delete_{one}": True for one in every})
    left = await org.node.store.read(everything)
    assert [one for one in TRACES if one in left] == []
    assert traces_in_files(Path(config.data_dir)) == []
    assert [one async for one in org.node.files.below("avatars")] == []
    assert [one async for one in org.node.files.below("exports")] == []
    assert await org.node.store.read(replica.replay_differences) == []
    state = org.node.state
    assert state.users[zoe.user_id].full_name == f"Deleted user {zoe.user_id}"
    assert state.settings[zoe.user_id].default_language == "en"


async def test_messages_and_their_files_stay_if_nothing_else_is_wanted(
    config: Config, org: Organization
) -> None:
    zoe, message = await live(org)
    await erase(org, zoe.user_id)
    reply = await org["ann"].get(f"/messages/{message}")
    assert reply.ok["message"]["sender_full_name"].startswith("Deleted user")
    assert "xqword" in reply.ok["message"]["content"]
    (attachment,) = org.node.state.attachments
    assert attachment.name == "xqword sent.txt"
    left = await org.node.store.read(everything)
    others = (
        "Zoë",
        "Secretname",
        "zoe.secret",
        "zoe-old",
        "friend-of-zoe",
        "unlinked",
        "xqword cat",
    )
    assert [one for one in others if one in left] == []
    assert await org.node.store.read(replica.replay_differences) == []


async def test_rows_about_the_erased_person_are_deleted_in_parts(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(personal_data, "BATCH_SIZE", 1)
    monkeypatch.setattr(erasing, "BATCH_SIZE", 1)
    zoe, _ = await live(org)
    sent = [await zoe.send("lounge", f"t{number}", "x") for number in range(4)]
    assert (await zoe.post("/messages/flags", messages=sent, op="add", flag="starred")).ok
    await erase(org, zoe.user_id)

    def rows(connection: Any) -> dict[str, int]:
        tables = personal_data.USAGE_TABLES
        query = "SELECT COUNT(*) FROM {} WHERE user_id = ?"
        counts = {one: connection.query(query.format(one), (zoe.user_id,))[0][0] for one in tables}
        return {table: count for table, count in counts.items() if count}

    assert await org.node.store.read(rows) == {}
    assert not org.node.state.user_topics.of_user[zoe.user_id]


def test_the_privacy_page_states_the_periods_that_apply() -> None:
    page = PRIVACY.read_text("utf-8")
    config = Config()
    assert config.unclaimed_upload_days == 35  # five weeks
    for period in (
        f"{config.log_retention_days} days (`log_retention_days`)",
        f"copies of the database from before migrations | {upkeep.COPIES_DAYS} days",
        f"people's data exports | {KEPT_DAYS} days",
        f"data exports of the organization | {realm_exports.KEPT_DAYS} days",
        f"at most {LIFETIME // 86400} days after their last use",
        f"one a day for {config.backup_keep_days} days and one a week for"
        f" {config.backup_keep_weeks} weeks",
    ):
        assert period in page


async def test_samples_of_an_import_are_forgotten(org: Organization) -> None:
    zoe, _ = await live(org)
    report = ImportReport()
    report.change("people", "The email address isn't valid.", "zoe@xqword.example")
    report.count("people", 7)
    progress = Progress(fingerprint="f", kind="zulip", origin="Zulip 11", report=report)
    stored = msgspec.json.encode(progress).decode()
    for key in (FACT, installation.LIVE_IMPORT):
        await org.node.store.write(partial(installation.put, key=key, value=stored))
    remark = ImportRemark(kind="people", reason="r", count=1, samples=("zoe@xqword.example",))
    summary = ImportSummary(origin="Zulip 11", changed=(remark,))
    done = DataImport(
        id=1,
        started_by=org["ann"].user_id,
        kind=ImportKind.ZULIP,
        state=ImportState.FINISHED,
        path="",
        name="export.tar.gz",
        size=1,
        requested_at=1,
        summary=summary,
    )
    await org.do(DataImportSet(data_import=done))
    await erase(org, zoe.user_id)
    live_move = await org.node.store.read(lambda c: installation.value(c, installation.LIVE_IMPORT))
    assert "xqword" not in (live_move or "")
    left = await org.node.store.read(lambda c: installation.value(c, FACT))
    assert "xqword" not in (left or "")
    shown = org.node.state.data_imports[1].summary
    assert shown == ImportSummary(
        origin="Zulip 11", changed=(ImportRemark(kind="people", reason="r", count=1),)
    )
    kept = msgspec.json.decode(left or "", type=Progress).report
    assert kept.imported == {"people": 7}
    assert [one.count for one in kept.changed.values()] == [1]
