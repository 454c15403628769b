"""Imports of each kind of export that are interrupted at any point and run again."""

import errno
import json
import random
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from msgspec.structs import replace

from tertulia.app.founding import opened_log
from tertulia.imports import importer, sorting
from tertulia.imports.mattermost.source import MattermostExport
from tertulia.imports.pace import Pace
from tertulia.imports.progress import Progress
from tertulia.imports.records import (
    Holders,
    SourceAttachment,
    SourceChannel,
    SourceDraft,
    SourceEmoji,
    SourceFile,
    SourceGroup,
    SourceInvitation,
    SourceLinkifier,
    SourceOrganization,
    SourceSnippet,
    SourceStatus,
    SourceSubscription,
    SourceView,
)
from tertulia.imports.rocketchat.source import RocketChatDump
from tertulia.imports.slack.export import SlackExport
from tertulia.imports.slack.index import _Builder
from tertulia.imports.sorting import MessageSorter
from tertulia.imports.source import Source, SourceError
from tertulia.imports.zulip.source import ZulipExport
from tertulia.log.log import Log
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tests.imports import exports
from tests.imports.invented import Killed, imported
from tests.imports.rendering import SameProcess
from tests.imports.test_importer import contents

pytestmark = pytest.mark.anyio
MESSAGES: Final = 60
ATTEMPTS: Final = 4
"""Interruptions per import."""
KINDS: Final[Mapping[str, Callable[[Path, Path], Source]]] = {
    "zulip": ZulipExport,
    "slack": SlackExport,
    "mattermost": MattermostExport,
    "rocketchat": RocketChatDump,
}


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "RenderPool", SameProcess)
    monkeypatch.setattr(sorting, "BATCH", 7)
    monkeypatch.setattr("tertulia.imports.zulip.messages.BATCH", 7)
    monkeypatch.setattr("tertulia.imports.slack.export.BATCH_SIZE", 7)
    monkeypatch.setattr("tertulia.imports.message_import.READ_STATE_BATCH", 25)
    monkeypatch.setattr("tertulia.imports.message_import.MESSAGE_BATCH", 1)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def export(kind: str, tmp_path: Path) -> Path:
    directory = tmp_path / "export"
    directory.mkdir()
    return exports.WRITERS[kind](MESSAGES, directory)


class Run:
    """Imports the export into the data directory, as often as necessary."""

    def __init__(self, kind: str, export: Path, data: Path) -> None:
        self.config = Config(data_dir=str(data))
        self._kind = kind
        self._export = export
        self.commits = 0
        data.mkdir()

    async def __call__(self, is_last: Callable[[Progress], bool] = lambda _: False) -> Progress:
        """`is_last` says after each commit whether the import is killed."""

        def tell(progress: Progress) -> None:
            self.commits += 1
            if is_last(progress):
                raise Killed

        source = KINDS[self._kind](self._export, self.config.data_path / "import")
        try:
            return await imported(self.config, source, tell)
        finally:
            source.close()


async def outcome(config: Config, progress: Progress) -> dict[str, Any]:
    files = config.data_path / "files"
    return {
        **await contents(config),
        "report": progress.report.to_json(),
        "files": {one.name: one.read_bytes() for one in files.rglob("*.txt")},
    }


async def test_an_import_that_is_killed_after_any_commit_ends_equal(
    kind: str, export: Path, tmp_path: Path
) -> None:
    whole = Run(kind, export, tmp_path / "whole")
    expected = await outcome(whole.config, await whole())
    assert len(expected["messages"]) == MESSAGES
    choose = random.Random(kind)
    run = Run(kind, export, tmp_path / "interrupted")
    for _ in range(ATTEMPTS):
        last = run.commits + choose.randrange(1, max(3, whole.commits // (ATTEMPTS + 1)))

        def is_last(_: Progress, last: int = last) -> bool:
            return run.commits == last

        with pytest.raises(Killed):
            await run(is_last)
    assert await outcome(run.config, await run()) == expected


def damage(kind: str, export: Path) -> None:
    """Add messages that can't be imported, also after the last one that can."""
    if kind == "slack":
        empty = [
            {"type": "message", "user": "U10", "ts": f"1900000000.00{n}000", "text": ""}
            for n in range(5)
        ]
        with zipfile.ZipFile(export, "a") as archive:
            archive.writestr("channel-1/2030-03-17.json", json.dumps(empty))
        return
    path = export / "messages-000001.json"
    tables = json.loads(path.read_bytes())
    rows = tables["zerver_message"]
    for n in (len(rows), 30, 30, 0):
        rows.insert(n, {"id": 1000 + n})
    path.write_text(json.dumps(tables))


async def test_remarks_are_counted_once_however_often_an_import_is_killed(
    kind: str, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind not in {"zulip", "slack"}:
        pytest.skip("Its messages are read before the import begins.")
    monkeypatch.setattr("tertulia.imports.preparation.TOGETHER", 1)
    damage(kind, export)
    whole = Run(kind, export, tmp_path / "whole")
    expected = await outcome(whole.config, await whole())
    skipped = {one["kind"]: one["count"] for one in expected["report"]["skipped"]}
    assert skipped["messages"] == (5 if kind == "slack" else 4)
    run = Run(kind, export, tmp_path / "interrupted")

    def is_last(now: Progress) -> bool:
        is_all_written = now.position == now.read_position
        return now.step == "messages" and (is_all_written or run.commits % 3 == 0)

    killed = 0
    while killed < whole.commits:
        try:
            progress = await run(is_last)
        except Killed:
            killed += 1
            continue
        break
    assert killed > 3
    assert await outcome(run.config, progress) == expected


def with_faults(found: SourceOrganization) -> SourceOrganization:
    """Add records that each step skips or changes, between some that it imports."""
    ann, ben, *others = found.users
    lost = SourceFile(place="lost")
    places = {one.channel for one in found.subscriptions}
    return replace(
        found,
        settings={**found.settings, "unheard_of": 1, "description": "Tea"},
        user_defaults={"unheard_of": 1},
        icon=lost,
        domains=(("example.com", False), ("no domain", False), ("example.org", False)),
        users=(
            replace(ann, alert_words=("tea", "x" * 500), settings={"unheard_of": 1}),
            replace(
                ben,
                address="nowhere",
                alert_words=("x" * 500, "cake"),
                timezone="Mars/Olympus",
                status=SourceStatus(text="Out", emoji="unheard_of"),
            ),
            *others,
        ),
        groups=(
            SourceGroup(key=901, name="cooks", subgroups=(901, 902)),
            SourceGroup(
                key=902, name="@guests", permissions={"unheard_of": Holders(groups=(901,))}
            ),
        ),
        channels=(
            *found.channels,
            SourceChannel(key="N1", name="@bad\n"),
            SourceChannel(key="N2", name="@bad\n", retention_days=-7),
        ),
        subscriptions=(
            *(
                replace(one, is_muted=True, settings={"unheard_of": True})
                for one in found.subscriptions
            ),
            *(SourceSubscription(channel=one, user="nobody") for one in places),
            SourceSubscription(channel="0 lost", user=ann.key),
            SourceSubscription(channel="lost", user=ann.key),
        ),
        emoji=(SourceEmoji(key=905, name="lost", file=lost),),
        linkifiers=tuple(
            SourceLinkifier(key=910 + n, pattern=pattern, url_template="https://example.com/")
            for n, pattern in enumerate(("A-[0-9]+", "(", "B-[0-9]+", "[", "C-[0-9]+"))
        ),
        drafts=(
            SourceDraft(key=921, user=ann.key, content=""),
            SourceDraft(key=922, user=ann.key, content="Cake"),
            SourceDraft(key=923, user=ben.key, content=""),
        ),
        snippets=(
            SourceSnippet(key=931, user=ann.key, title="Cake", content="Cake"),
            SourceSnippet(key=932, user=ann.key, title="", content=""),
        ),
        views=(
            SourceView(key=941, user=ann.key, fragment="x" * 5000),
            SourceView(key=942, user=ann.key, fragment="narrow/is/starred", name="Stars"),
        ),
        invitations=(
            SourceInvitation(address="dora@example.com", inviter=ann.key, expires_at=1),
            SourceInvitation(address="emil@example.com", inviter=ann.key),
        ),
        attachments=tuple(
            SourceAttachment(
                key=950 + n,
                owner=ann.key if n else "nobody",
                path=f"2/aa/{n:024}/lost.txt",
                file=lost,
            )
            for n in range(2)
        ),
    )


async def test_an_import_that_is_killed_before_the_messages_ends_equal_and_reports_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind not in {"zulip", "slack"}:
        pytest.skip("What isn't messages is written in the same way for all kinds.")
    for name, number in {"PEOPLE": 4, "MEMBERS": 2, "CHANNELS": 2}.items():
        monkeypatch.setattr(exports, name, number)
    monkeypatch.setattr(Pace, "most", lambda _, alone: min(alone, 3))
    monkeypatch.setattr("tertulia.imports.channels.SUBSCRIBER_BATCH", 1)
    source: Any = KINDS[kind]
    true = source.organization
    monkeypatch.setattr(source, "organization", lambda *given: with_faults(true(*given)))
    directory = tmp_path / "export"
    directory.mkdir()
    export = exports.WRITERS[kind](10, directory)
    steps: list[str] = []

    def noted(now: Progress) -> bool:
        steps.append(now.step)
        return False

    whole = Run(kind, export, tmp_path / "whole")
    expected = await outcome(whole.config, await whole(noted))
    report = expected["report"]
    assert len(expected["muted"]) == 4
    assert {one["kind"] for one in (*report["skipped"], *report["changed"])} >= {
        *("alert words", "channels", "custom emoji", "default settings", "drafts"),
        *("email domains", "files", "groups", "invitations", "linkifiers", "logos", "people"),
        *("permissions", "personal settings", "saved snippets", "settings of subscriptions"),
        *("settings of the organization", "statuses", "subgroups", "subscriptions", "views"),
    }
    assert set(steps) >= {"accounts", "groups", "channels", "rest", "messages"}
    for last in range(1, len(steps)):
        run = Run(kind, export, tmp_path / f"killed-{last}")

        def is_last(_: Progress, run: Run = run, last: int = last) -> bool:
            return run.commits in {last, last + 1}  # The next start is killed after one commit.

        for _ in range(2):
            with pytest.raises(Killed):
                await run(is_last)
        assert await outcome(run.config, await run()) == expected, (last, steps[last - 1])


async def test_an_import_that_is_killed_while_the_export_is_read_reads_it_again(
    kind: str, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "zulip":
        pytest.skip("It's read in place.")
    whole = Run(kind, export, tmp_path / "whole")
    expected = await outcome(whole.config, await whole())
    run = Run(kind, export, tmp_path / "interrupted")
    owner, name = (_Builder, "read") if kind == "slack" else (MessageSorter, "add")
    true: Any = getattr(owner, name)
    calls: Iterator[int] = iter(range(1000))

    def killed(*args: Any, **more: Any) -> None:
        if next(calls) == 3:
            raise Killed
        true(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, killed)
        with pytest.raises(Killed):
            await run()
    assert await outcome(run.config, await run()) == expected


async def test_an_import_continues_when_the_disk_has_room_again(
    kind: str, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Run(kind, export, tmp_path / "whole")
    expected = await outcome(whole.config, await whole())
    run = Run(kind, export, tmp_path / "interrupted")
    true: Any = Log.submit
    calls: Iterator[int] = iter(range(1000))

    async def full(*args: Any, **more: Any) -> Any:
        if next(calls) == whole.commits - 4:  # While messages are written.
            raise Unavailable("The change couldn't be saved.")
        return await true(*args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Log, "submit", full)
        with pytest.raises(Unavailable):
            await run()
    assert 0 < run.commits < whole.commits
    assert await outcome(run.config, await run()) == expected


async def test_a_disk_that_is_full_while_the_export_is_read_is_no_damage_of_the_export(
    kind: str, export: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Temporary SQLite files and others report it in different ways."""
    run = Run(kind, export, tmp_path / "run")

    class Small(apsw.Connection):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, **more)
            if "import" in Path(self.filename).parts:
                self.execute("PRAGMA max_page_count = 3")

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        if kind in {"zulip", "slack"}:
            patch.setattr(apsw, "Connection", Small)
        else:
            patch.setattr(MessageSorter, "add", full)
        with pytest.raises(OSError, match="No space left on device"):
            await run()
    assert run.commits == 0
    progress = await run()
    assert progress.messages == MESSAGES


@pytest.mark.parametrize("other", KINDS)
async def test_an_export_of_another_service_is_refused(
    kind: str, other: str, export: Path, tmp_path: Path
) -> None:
    if kind == other:
        pytest.skip("It's the right importer.")
    config = Config(data_dir=str(tmp_path / "data"))
    config.data_path.mkdir()
    work = config.data_path / "import"
    with pytest.raises(SourceError) as caught, closing(KINDS[other](export, work)) as source:
        await imported(config, source)
    assert "so it isn't" in str(caught.value)
    async with opened_log(config, print) as log:
        assert log.state.is_empty
