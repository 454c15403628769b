"""`tertulia import`."""

import asyncio
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.app.founding import opened_log
from tertulia.cli import imports
from tertulia.imports.progress import FACT, Progress
from tertulia.jobs.imports import only_import
from tertulia.log.log import Log
from tertulia.model.errors import Unavailable
from tertulia.store import installation
from tertulia.store.database import Connection, DatabaseUnavailable
from tertulia.store.installation import NewerDatabase
from tertulia.store.store import Store
from tests.cli.support import Place, run
from tests.imports import mattermost_export, rocketchat_dump


def answer(place: Place, kind: str, *arguments: str) -> dict[str, Any]:
    result = run("import", kind, *place.flags, "--json", *arguments)
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def error(place: Place, kind: str, *arguments: str) -> str:
    result = run("import", kind, *place.flags, *arguments)
    assert result.exit_code == 1
    return " ".join(result.output.split())


FULL = "The database can't be written to: the disk is full"


def failing(
    method: Callable[..., Any], error: Exception, fails: Callable[[int], bool]
) -> Callable[..., Any]:
    """Return the method, which raises the error in the calls, counted from 1, that `fails`
    selects."""
    calls = count(1)

    async def called(*args: Any, **more: Any) -> Any:
        if fails(next(calls)):
            raise error
        return await method(*args, **more)

    return called


def test_mattermost(place: Place, tmp_path: Path) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    tried = answer(place, "mattermost", "--dry-run", str(export))
    assert tried["origin"] == "Mattermost 9.5.1"
    assert tried["imported"]["messages"] == 10
    assert "no team named 'moon'" in error(place, "mattermost", "--team", "moon", str(export))
    done = answer(place, "mattermost", "--team", "harbor", str(export))
    assert done["imported"]["messages"] == 10
    assert [one for one in (place.config.data_path / "imports").iterdir() if one.is_dir()] == []


def test_progress_is_shown_from_the_first_moment(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imports, "LOGGED_SECONDS", 0)
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    shown = run("import", "mattermost", *place.flags, str(export)).stderr.splitlines()
    begins = ("Extracting the export (0%)", "Reading the export (0%)", "Sorting the messages (0%)")
    steps = ("Importing people…", "10 of 10 messages (100%)", "Finishing…")
    lines = iter(shown)
    for begin in (*begins, *steps):  # In this order.
        assert any(line.startswith(begin) for line in lines), shown


def test_an_unfinished_import_can_be_canceled(place: Place, tmp_path: Path) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    answer(place, "mattermost", str(export))
    assert "nothing to cancel" in " ".join(run("import", "cancel", *place.flags).output.split())

    def interrupt(connection: Connection) -> None:
        stored = installation.value(connection, FACT)
        progress = msgspec.json.decode(stored or "", type=Progress)
        progress.step = "messages"
        installation.put(connection, FACT, msgspec.json.encode(progress).decode())

    async def stop() -> None:
        async with opened_log(place.config, print) as log:
            await log.store.write(interrupt)

    asyncio.run(stop())
    second = cut(tmp_path)
    assert "tertulia import cancel" in error(place, "mattermost", str(second))
    canceled = run("import", "cancel", *place.flags)
    assert canceled.exit_code == 0
    assert "Imported 10 of 10 messages." in " ".join(canceled.output.split())
    answer(place, "mattermost", str(second))


def test_a_full_disk_stops_an_import_that_continues_later(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    with monkeypatch.context() as patch:
        patch.setattr(
            Store, "commit", failing(Store.commit, DatabaseUnavailable(FULL), lambda call: call > 3)
        )
        stopped = error(place, "mattermost", str(export))
    assert (
        "The import stopped: The database can't be written to: the disk is full. Run the same"
        " command again to continue it." in stopped
    )
    assert "isn't finished" in error(place, "mattermost", str(cut(tmp_path)))
    assert answer(place, "mattermost", str(export))["imported"]["messages"] == 10


def test_a_slow_database_is_not_mistaken_for_a_full_disk(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())

    async def slow(*_: Any, **__: Any) -> Any:
        raise Unavailable("The change couldn't be saved.")

    with monkeypatch.context() as patch:
        patch.setattr(Log, "submit", slow)
        stopped = error(place, "mattermost", str(export))
    assert "The database didn't respond in time" in stopped
    assert "disk" not in stopped


def test_the_reason_why_an_import_stopped_is_named_even_if_it_is_over(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())

    async def recovering(log: Log, *args: Any) -> Any:
        try:
            return await only_import(log, *args)
        except Unavailable:
            log.freshness.written()
            raise

    with monkeypatch.context() as patch:
        patch.setattr(
            Store,
            "commit",
            failing(Store.commit, DatabaseUnavailable(FULL), lambda call: call == 4),
        )
        patch.setattr(imports, "only_import", recovering)
        stopped = error(place, "mattermost", str(export))
    assert "The import stopped: The database can't be written to: the disk is full." in stopped


def test_an_import_that_a_newer_version_stops_says_so(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    newer = NewerDatabase("The log was written by a newer version. Install that version.")
    with monkeypatch.context() as patch:
        patch.setattr(Store, "begin", failing(Store.begin, newer, lambda call: call > 3))
        stopped = error(place, "mattermost", str(export))
    assert (
        "The import stopped: The log was written by a newer version. Install that version. Run the"
        " same command again to continue it." in stopped
    )


def cut(directory: Path) -> Path:
    """Another export."""
    lines = mattermost_export.sample()
    lines.pop()
    return mattermost_export.written(directory / "second.zip", lines)


def test_rocketchat(place: Place, tmp_path: Path) -> None:
    dump = rocketchat_dump.written(tmp_path / "dump", rocketchat_dump.sample(), is_packed=True)
    files = tmp_path / "files"
    files.mkdir()
    (files / "up2.pdf").write_bytes(b"plan")
    done = answer(place, "rocketchat", "--files", str(files), str(dump))
    assert done["imported"]["messages"] == 11
    assert done["imported"]["files"] == 2
    missing = error(place, "rocketchat", "--files", str(tmp_path / "none"), str(dump))
    assert "none isn't a directory" in missing
