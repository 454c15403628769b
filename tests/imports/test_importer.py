"""The importer: the imported data, and that an interrupted import neither loses nor doubles
data."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tertulia.app.founding import opened_log
from tertulia.domain.organization import lifecycle, linkifiers
from tertulia.imports import canceling
from tertulia.imports.dry_run import dry_run
from tertulia.imports.identifiers import MATCHED
from tertulia.imports.messages import LINK_FACT
from tertulia.imports.preparation import BATCHES_TOGETHER, Preparation, PreparedBatch
from tertulia.imports.progress import FACT, IDS_FACT, ImportRefused, Progress
from tertulia.imports.records import (
    SourceAttachment,
    SourceChannel,
    SourceFile,
    SourceGroup,
    SourceInvitation,
    SourceLinkifier,
    SourceMessage,
    SourceOrganization,
    SourceSubscription,
)
from tertulia.imports.report import ImportReport
from tertulia.imports.source import MessageBatch, SourceError
from tertulia.log.log import Log
from tertulia.log.replica import replay_differences
from tertulia.model.changes import MessageSent, RealmChanged, UserChanged
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store import installation, message_details
from tertulia.store.database import READING, DatabaseUnavailable
from tertulia.store.store import Store, database_at
from tertulia.store.writing import Batch
from tests.imports.invented import Invented, Killed, imported, kill_after, kill_at_message
from tests.imports.rendering import SameProcess

pytestmark = pytest.mark.anyio
PLAN = f"2/ab/{'k' * 24}/plan.txt"


@pytest.fixture(autouse=True)
def small_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Write each batch of the source in a separate commit."""
    monkeypatch.setattr("tertulia.imports.message_import.MESSAGE_BATCH", 1)


async def contents(config: Config) -> dict[str, Any]:
    """Return all of the organization's data that an import decides."""
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        assert replay_differences(connection) == []
        messages = connection.query(
            "SELECT m.id, sender_id, sent_at, m.channel_id, t.name, direct_id, content, rendered"
            " FROM messages AS m LEFT JOIN message_topics AS t ON t.id = m.topic_id"
            # Without the reports to the owners.
            f" WHERE sender_id <> {lifecycle.NOTIFICATION_BOT} ORDER BY m.id"
        )
        edits = connection.query("SELECT message_id, at, user_id, was_content FROM message_edits")
        reactions = connection.query("SELECT message_id, user_id, name FROM reactions")
    async with opened_log(config, print) as log:
        state = log.state
        await log.store.read(lambda c: message_details)
        return {
            "messages": [tuple(row) for row in messages],
            "edits": sorted(map(tuple, edits)),
            "reactions": sorted(map(tuple, reactions)),
            "users": {one.id: (one.full_name, one.role, one.is_active) for one in state.users},
            "channels": {one.id: (one.name, one.is_private) for one in state.channels},
            "spans": {
                (one.channel_id, one.user_id): one.spans for one in state.tables["subscriptions"]
            },
            "muted": {
                (one.channel_id, one.user_id)
                for one in state.tables["subscriptions"]
                if one.is_muted
            },
        }


async def copied_state(config: Config) -> State:
    async with opened_log(config, print) as log:
        return log.state


async def unread_ids(config: Config, user_id: int) -> set[int]:
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        query = "SELECT id FROM messages WHERE sender_id <> ?"
        ids = {row[0] for row in connection.query(query, (lifecycle.NOTIFICATION_BOT,))}
        rows = connection.query(
            "SELECT chunk, bitmap FROM read_state WHERE user_id = ?", (user_id,)
        )
    from pyroaring import BitMap

    read = {
        (chunk << 16) + low for chunk, bitmap in rows for low in BitMap.deserialize(bytes(bitmap))
    }
    return ids - read


async def test_a_new_organization_has_what_the_source_has(config: Config) -> None:
    source = Invented(60)
    progress = await imported(config, source)
    assert progress.step == "done"
    found = await contents(config)
    assert [row[0] for row in found["messages"]] == list(range(101, 161))
    assert found["users"][11] == ("Ann", 100, True)
    assert found["users"][13] == ("Cleo", 400, False)
    assert found["channels"][22] == ("office", True)
    assert found["spans"][22, 12] == ((110, 120), (130, None))
    assert len(found["edits"]) == len([n for n in range(60) if n % 7 == 0])
    assert {row[0] for row in found["reactions"]} == {101 + n for n in range(0, 60, 5)}
    assert 'data-user-id="12"' in found["messages"][0][7]
    assert await unread_ids(config, 12) == {101 + n for n in range(0, 60, 3)}
    assert await unread_ids(config, 11) == set()
    report = progress.report.to_json()
    assert report["imported"]["messages"] == 60
    assert [one["kind"] for one in report["skipped"]] == [
        "invoices",
        "settings of the organization",
    ]


@pytest.mark.parametrize("commits", [1, 2, 4, 6, 7, 9])
async def test_an_interrupted_import_ends_as_one_that_was_not(
    config: Config, tmp_path: Any, commits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.imports.message_import.READ_STATE_BATCH", 25)
    whole = msgspec.structs.replace(config, data_dir=str(tmp_path / "whole"), database_url="")
    await imported(whole, Invented(60))
    expected = await contents(whole)
    with pytest.raises(Killed):
        await imported(config, Invented(60), kill_after(commits))
    progress = await imported(config, Invented(60))
    assert progress.report.imported["messages"] == 60
    assert await contents(config) == expected
    assert await unread_ids(config, 12) == {101 + n for n in range(0, 60, 3)}


async def test_large_messages_are_not_all_read_ahead(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each batch of the source has only one message, as if messages took a megabyte each."""
    monkeypatch.setattr("tertulia.imports.importer.RenderPool", SameProcess)
    read: list[MessageBatch] = []
    ahead: list[int] = []

    class Large(Invented):
        def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
            for batch in super().messages(after, report):
                read.append(batch)
                yield batch

    def tell(progress: Progress) -> None:
        ahead.append(len(read) - progress.messages)

    await imported(config, Large(8 * BATCHES_TOGETHER, size=1), tell)
    assert max(ahead) <= 4 * BATCHES_TOGETHER


async def test_a_finished_import_is_not_repeated(config: Config) -> None:
    await imported(config, Invented(20))
    before = await contents(config)
    again = await imported(config, Invented(20))
    assert again.report.imported["messages"] == 20
    assert await contents(config) == before


@pytest.mark.parametrize("commits", [2, 4, 7])
async def test_samples_stay_forgotten_when_someone_is_erased_while_it_runs(
    config: Config, commits: int
) -> None:
    """Erasing an account removes the stored samples, and the running import removes its own."""

    async def stored() -> str:
        async with opened_log(config, print) as log:
            return await log.store.read(lambda c: installation.value(c, FACT)) or ""

    with pytest.raises(Killed):
        await imported(config, Invented(60), kill_after(commits))
    assert '"samples":["May"]' in await stored()
    async with opened_log(config, print) as log:
        erased = UserChanged(user_id=12, values={"is_deleted": True}, was={"is_deleted": False})
        await log.submit(None, lambda _: Decision(None, (erased,)))
    # The importer's own report, which was read from the fact before, still has them.
    progress = await imported(config, Invented(60))
    assert progress.step == "done"
    assert '"May"' not in await stored()
    assert progress.report.skipped["invoices: There is no place for them here."].count == 1


async def test_a_new_organization_has_the_default_quotas(config: Config) -> None:
    await imported(config, Invented(4))
    async with opened_log(config, print) as log:
        realm = log.state.realm
    assert realm.upload_quota_per_user_mib == lifecycle.UPLOAD_QUOTA_MIB
    assert realm.max_channels_per_user == 500


async def test_another_export_must_wait_for_an_unfinished_import(config: Config) -> None:
    with pytest.raises(Killed):
        await imported(config, Invented(20), kill_at_message(1))
    with pytest.raises(ImportRefused, match="isn't finished"):
        await imported(config, Invented(30))


async def test_messages_of_an_untrusted_export_are_not_those_of_people_here(
    config: Config,
) -> None:
    await imported(config, Invented(12))
    before = await contents(config)
    progress = await imported(config, Invented(24, keeps_ids=False), matches_accounts=False)
    found = await contents(config)
    fresh = found["users"].keys() - before["users"].keys()
    assert {found["users"][one][0] for one in fresh} == {"Ann", "Ben", "Cleo"}
    assert {row[1] for row in found["messages"] if row[0] > 112} <= fresh
    remarks = [one.reason for one in progress.report.changed.values() if one.kind == "people"]
    assert any(one.startswith("Another account here has this email address") for one in remarks)


async def test_an_import_does_not_open_files_of_people_who_did_not_send_the_message(
    config: Config,
) -> None:
    class Linking(Invented):
        """Ann's and Ben's messages link a file of Ann's."""

        def message(self, n: int) -> SourceMessage:
            message = super().message(n)
            return replace(message, content=f"[plan](/user_uploads/{PLAN})", attachments=())

    source = Invented(4)
    source.files["plan"] = b"secret"
    made = source.message

    def with_file(n: int) -> SourceMessage:
        file = SourceAttachment(key=1, owner=11, path=PLAN, file=SourceFile(place="plan"))
        content = f"[plan](/user_uploads/{PLAN})"
        return replace(made(n), sender=11, content=content, attachments=(file,) * (n == 0))

    source.message = with_file  # type: ignore[method-assign]
    await imported(config, source)
    await imported(config, Linking(24, keeps_ids=False))
    query = "SELECT sender_id, has_attachment FROM messages WHERE id > 105 AND sender_id > 10"
    with closing(
        database_at(config.data_path, config.database_url).connect(readonly=True, limits=READING)
    ) as connection:
        found = {(row[0], bool(row[1])) for row in connection.query(query)}
    assert found == {(11, True), (12, False)}


async def test_the_report_and_a_dry_run_name_the_people_who_have_an_account(
    config: Config,
) -> None:
    await imported(config, Invented(12))
    tried = await dry_run(Invented(24), lambda _: None, await copied_state(config))
    progress = await imported(config, Invented(24, keeps_ids=False))
    for one in (progress, tried):
        assert one.report.changed[f"people: {MATCHED}"].samples == [
            "ann@example.com",
            "ben@example.com",
        ]


async def test_people_with_an_account_keep_it(config: Config) -> None:
    await imported(config, Invented(12))
    await imported(config, Invented(24, keeps_ids=False))
    found = await contents(config)
    assert sorted(name for name, _, _ in found["users"].values() if " " not in name) == [
        "Ann",
        "Ben",
        "Cleo",
        "Cleo",
    ]
    assert sorted(name for name, _ in found["channels"].values()) == [
        "kitchen",
        "kitchen (2)",
        "office",
        "office (2)",
    ]
    assert [row[0] for row in found["messages"]] == [*range(101, 113), *range(114, 138)]


class Crowded(Invented):
    """An organization with names that the invented one uses, and with more than fits."""

    def organization(self, report: ImportReport) -> SourceOrganization:
        found = super().organization(report)
        ben = replace(found.users[1], alert_words=("soup", "x" * 500), timezone="Mars/Olympus")
        return replace(
            found,
            users=(found.users[0], ben, *found.users[2:]),
            groups=(SourceGroup(key=31, name="cooks", members=(12,), subgroups=(31,)),),
            channels=(*found.channels, SourceChannel(key=23, name="@bad\n", retention_days=-7)),
            domains=(("example.com", False),),
            linkifiers=tuple(
                SourceLinkifier(key=n, pattern=f"{n}-[0-9]+", url_template="https://example.com/")
                for n in range(linkifiers.MAX_LINKIFIERS + 2)
            ),
            invitations=(SourceInvitation(address="ann@example.com", inviter=11),),
        )

    def message(self, n: int) -> SourceMessage:
        found = super().message(n)
        file = SourceAttachment(key=1, owner=11, path=PLAN, file=SourceFile(place="plan"))
        missing = SourceAttachment(
            key=2, owner=11, path=PLAN.replace("k", "g"), file=SourceFile(place="gone")
        )
        match n:
            case 1:
                return replace(found, sender=99)
            case 2:
                return replace(found, content="x" * 20_000)
            case 3:
                return replace(found, people=(11, 99))
            case 4 | 5:  # Both link the same file.
                return replace(found, attachments=(file,))
            case 6:
                return replace(found, attachments=(missing,), content="\0")
            case _:
                return found

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        yield from super().messages(after, report)
        report.skip("messages", "They come after the last one that can be read.", number=3)


@pytest.mark.parametrize("is_new", [True, False])
async def test_a_dry_run_tells_what_the_import_then_does(config: Config, is_new: bool) -> None:
    if not is_new:
        await imported(config, Crowded(12))
    state = State() if is_new else await copied_state(config)
    source = Crowded(24, keeps_ids=is_new)
    source.files["plan"] = b"A plan"
    tried = (await dry_run(source, lambda _: None, state)).report.to_json()
    done = (await imported(config, source)).report.to_json()
    assert tried == done
    reasons = {one["reason"] for one in [*tried["skipped"], *tried["changed"]]}
    assert (done["imported"]["messages"], done["imported"]["files"]) == (22, 1)
    assert done["imported"]["topics"] == 6
    assert {
        "The sender isn't in the export.",
        "The conversation isn't in the export.",
        "It was shortened to 10,000 characters.",
        "The message was empty.",
        "The file is missing.",
        "They come after the last one that can be read.",
    } <= reasons
    if not is_new:
        assert {MATCHED, "The name is already used here, so a number was added."} <= reasons
        assert "This organization keeps its own." in reasons


@pytest.mark.parametrize("messages", [10, 20])
async def test_an_interrupted_import_reports_everything_once(
    config: Config, tmp_path: Any, messages: int
) -> None:
    class Damaged(Invented):
        """Every message is empty, so each one is reported."""

        def message(self, n: int) -> SourceMessage:
            return replace(super().message(n), content="")

    whole = msgspec.structs.replace(config, data_dir=str(tmp_path / "whole"), database_url="")
    expected = (await imported(whole, Damaged(30))).report.to_json()
    assert [one["count"] for one in expected["changed"]] == [30]
    with pytest.raises(Killed):
        await imported(config, Damaged(30), kill_at_message(messages))
    assert (await imported(config, Damaged(30))).report.to_json() == expected


async def test_an_export_that_fails_while_the_disk_is_full_does_not_hide_that(
    config: Config, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Ending(Invented):
        def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
            yield next(iter(super().messages(after, report)))
            raise SourceError("The archive ends too early.")

    has_failed = asyncio.Event()
    batches: Any = Preparation.batches
    commit: Any = Store.commit

    async def until_failure(*arguments: Any) -> AsyncIterator[PreparedBatch]:
        try:
            async for batch in batches(*arguments):
                yield batch
        finally:
            has_failed.set()

    async def full(store: Store, batch: Batch, *more: Any) -> None:
        if any(isinstance(entry.change, MessageSent) for entry in batch.entries):
            await has_failed.wait()
            raise DatabaseUnavailable("The database can't be written to: disk full")
        await commit(store, batch, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Preparation, "batches", until_failure)
        patch.setattr(Store, "commit", full)
        with pytest.raises(Unavailable, match="Nothing was changed") as caught:
            await imported(config, Ending(20))
    assert isinstance(caught.value.__context__, SourceError)
    assert "SourceError: The archive ends too early." in caplog.text
    assert "disk full" in caplog.text
    # Once the disk has room, the messages before the end are imported.
    with pytest.raises(SourceError, match="ends too early"):
        await imported(config, Ending(20))
    assert len((await contents(config))["messages"]) == 10


class Joining(Invented):
    """Ben joins four more channels, one after another."""

    def organization(self, report: ImportReport) -> SourceOrganization:
        found = super().organization(report)
        keys = range(31, 35)
        return replace(
            found,
            channels=(*found.channels, *(SourceChannel(key=n, name=f"room {n}") for n in keys)),
            subscriptions=(
                *found.subscriptions,
                *(
                    SourceSubscription(channel=n, user=12, spans=((102 + 10 * (n - 31), None),))
                    for n in keys
                ),
            ),
        )


def misfold(_: CommandContext) -> Decision[None]:
    """A change that can't be folded, so that the log reloads its state."""
    return Decision(None, (RealmChanged(values={"no such": 1}),))


async def test_an_import_continues_with_the_state_that_the_log_reloaded(
    config: Config, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def colors(state: State) -> list[tuple[int, int, str]]:
        found = state.tables["subscriptions"]
        return sorted((one.channel_id, one.user_id, one.color) for one in found)

    whole = msgspec.structs.replace(config, data_dir=str(tmp_path / "whole"), database_url="")
    expected_report = (await imported(whole, Joining(60))).report
    expected = colors(await copied_state(whole))
    true: Any = Log.submit

    async def submit(log: Log, *arguments: Any, **more: Any) -> Any:
        before = log.state
        if not before.is_empty:
            with pytest.raises(KeyError, match="no such"):
                await true(log, None, misfold)
            await log.catch_up()
            assert log.state is not before
        return await true(log, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "submit", submit)
        report = (await imported(config, Joining(60))).report
    assert report == expected_report
    assert await contents(config) == await contents(whole)
    assert colors(await copied_state(config)) == expected


async def test_changes_that_were_decided_twice_are_not_counted_twice(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a later command of the same group can't be folded, the others are decided again."""
    true: Any = Log.submit
    failing: list[asyncio.Task[None]] = []

    async def submit(log: Log, *arguments: Any, **more: Any) -> Any:
        if log.state.last_message_id and not failing:
            failing.append(asyncio.create_task(true(log, None, misfold)))
        return await true(log, *arguments, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "submit", submit)
        with pytest.raises(Unavailable, match="Nothing was changed"):
            await imported(config, Invented(60))
        with pytest.raises(KeyError, match="no such"):
            await failing[0]
    progress = await imported(config, Invented(60))
    assert (progress.messages, progress.report.imported["messages"]) == (60, 60)
    assert len((await contents(config))["messages"]) == 60


async def test_a_canceled_import_leaves_nothing_half_done(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.imports.message_import.READ_STATE_BATCH", 1000)

    with pytest.raises(Killed):
        await imported(config, Invented(60), kill_at_message(30))
    assert await unread_ids(config, 11) != set()
    with pytest.raises(ImportRefused, match="tertulia import cancel"):
        await imported(config, Invented(24, keeps_ids=False))
    async with opened_log(config, print) as log:
        progress = await canceling.cancel(log)
        assert (progress.messages, progress.is_new) == (30, True)
        with pytest.raises(ImportRefused, match="nothing to cancel"):
            await canceling.cancel(log)
        assert await log.store.read(lambda c: installation.values(c, IDS_FACT)) == {}
        assert await log.store.read(lambda c: installation.values(c, LINK_FACT)) == {}
    assert await unread_ids(config, 12) == await unread_ids(config, 11) == set()
    # The same export is imported again as a new one, and then another export.
    again = await imported(config, Invented(60))
    assert (again.step, again.is_new, again.messages) == ("done", False, 60)
    assert len((await contents(config))["messages"]) == 90
    await imported(config, Invented(24, keeps_ids=False))
