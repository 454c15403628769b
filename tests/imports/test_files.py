"""Storing the files of an import's messages."""

import asyncio
import cProfile
import errno
import pstats
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from msgspec.structs import replace

from tertulia.imports import importer, preparation
from tertulia.imports import messages as writing
from tertulia.imports.preparation import FILES_TOGETHER
from tertulia.imports.records import SourceAttachment, SourceFile, SourceMessage
from tertulia.service.config import Config
from tertulia.store.uploads import UploadDraft
from tests.imports.invented import Invented, imported
from tests.imports.rendering import SameProcess

pytestmark = pytest.mark.anyio
MESSAGES = 40


@pytest.fixture(autouse=True)
def same_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importer, "RenderPool", SameProcess)


@pytest.fixture
def sqlite_config(tmp_path: Path) -> Config:
    return Config(data_dir=str(tmp_path))


class WithFiles(Invented):
    """Each message links a file of its sender's."""

    def __init__(self, messages: int = MESSAGES) -> None:
        super().__init__(messages)
        self.opened: list[str] = []
        self.files = {f"{n:02}": b"%d" % n for n in range(messages)}

    def message(self, n: int) -> SourceMessage:
        message, path = super().message(n), f"1/{n:02}/{n:032}/plan.txt"
        file = SourceFile(place=f"{n:02}", name="plan.txt")
        attachment = SourceAttachment(key=n, owner=message.sender, path=path, file=file)
        content = f"[plan](/user_uploads/{path})"
        return replace(message, content=content, attachments=(attachment,))

    def open(self, place: str) -> BinaryIO:
        self.opened.append(place)
        return super().open(place)


async def test_files_are_opened_in_the_order_of_their_messages(
    sqlite_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files are fetched from other servers in this order, before they're opened."""
    choose = random.Random(1)

    async def later(function: Callable[..., Any], *arguments: Any, **more: Any) -> Any:
        for _ in range(choose.randrange(10)):
            await asyncio.sleep(0)
        return function(*arguments, **more)

    monkeypatch.setattr(asyncio, "to_thread", later)
    source = WithFiles()
    progress = await imported(sqlite_config, source)
    assert progress.report.imported["files"] == MESSAGES
    assert source.opened == sorted(source.files)


async def test_no_more_files_are_stored_after_one_could_not_be(
    sqlite_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[str] = []

    def finish(draft: UploadDraft) -> int:
        tried.append(draft.arriving.key)
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(UploadDraft, "finish", finish)
        with pytest.raises(OSError, match="No space left on device"):
            await imported(sqlite_config, WithFiles())
    assert len(tried) <= FILES_TOGETHER
    assert (await imported(sqlite_config, WithFiles())).report.imported["files"] == MESSAGES


async def test_an_import_that_is_killed_leaves_no_part_of_a_file(
    sqlite_config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing would delete it. Files that are still arriving are deleted by the server."""
    arrived: list[int] = []
    finish = UploadDraft.finish

    def finished(draft: UploadDraft) -> int:
        arrived.append(draft.arriving.path.stat().st_ino)
        return finish(draft)

    monkeypatch.setattr(UploadDraft, "finish", finished)
    await imported(sqlite_config, WithFiles())
    stored = (sqlite_config.data_path / "files" / "uploads" / "1").glob("*/*")
    assert {file.stat().st_ino for file in stored} == {*arrived}


@pytest.mark.parametrize("size", [1, 10])
async def test_of_two_files_with_the_same_key_the_first_is_imported(
    sqlite_config: Config, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They're in the same batch, or in different ones."""
    monkeypatch.setattr(preparation, "TOGETHER", size)

    class Damaged(WithFiles):
        def message(self, n: int) -> SourceMessage:
            message = super().message(n)
            (file,) = message.attachments
            return replace(message, attachments=(replace(file, path=f"1/aa/key/{n}.txt"),))

    source = Damaged(10)
    source._size = 1
    progress = await imported(sqlite_config, source)
    assert progress.report.imported["files"] == 1
    assert progress.report.skipped["files: Another file has the same key."].count == 9
    files = (sqlite_config.data_path / "files").rglob("key")
    assert [file.read_bytes() for file in files] == [b"0"]


async def test_the_work_for_a_commit_grows_with_its_files(tmp_path: Path) -> None:
    calls: list[int] = []
    for messages in (25, 100):
        config = Config(data_dir=str(tmp_path / str(messages)))
        config.data_path.mkdir()
        profile = cProfile.Profile()
        with profile:
            await imported(config, WithFiles(messages))
        found: Any = pstats.Stats(profile)
        calls.append(
            sum(
                calls
                for (file, *_), (_, calls, *_) in found.stats.items()
                if file == writing.__file__
            )
        )
    assert calls[1] < 5 * calls[0]
