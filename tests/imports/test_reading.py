"""Reading a source in a separate process."""

import io
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

import pytest
from msgspec.structs import replace

from tertulia.imports.reading import SUBSCRIPTIONS, SeparateSource
from tertulia.imports.records import SourceOrganization
from tertulia.imports.report import ImportReport
from tertulia.imports.source import FileUnavailable, MessageBatch, SourceError, Survey
from tertulia.imports.stages import StageCounter, StageProgress, TellStage, tell_nobody
from tests.imports.invented import Invented

pytestmark = pytest.mark.filterwarnings("error")


class Exported(Invented):
    """An invented source with files."""

    kind = "exported"

    def __init__(self, trouble: str, work: Path, *, tell: TellStage = tell_nobody) -> None:
        super().__init__(25)
        self._tell = tell
        self._trouble = trouble
        StageCounter(tell, "extracting", 50)
        self._work = work
        if trouble == "opening":
            raise SourceError("The archive is damaged.")

    def survey(self) -> Survey:
        self._tell(StageProgress("reading", 20, 100))
        return super().survey()

    def organization(self, report: ImportReport) -> SourceOrganization:
        few = super().organization(report)
        return replace(few, subscriptions=few.subscriptions * SUBSCRIPTIONS)

    def messages(self, after: str, report: ImportReport) -> Iterator[MessageBatch]:
        for batch in super().messages(after, report):
            report.skip("messages", "It's secret.", batch.position)
            if self._trouble == "reading" and batch.position == "20":
                raise ValueError("damaged")
            if self._trouble == "memory" and batch.position == "20":
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch
        report.skip("messages", "They come after the last one that can be read.", number=3)

    def open(self, place: str) -> BinaryIO:
        if place == "away":
            raise FileUnavailable("Its server doesn't respond.")
        if place == "packed":
            return io.BytesIO(b"unpacked")
        return (self._work / place).open("rb")

    def close(self) -> None:
        (self._work / "closed").touch()


def separate(work: Path, trouble: str = "") -> SeparateSource:
    return SeparateSource(partial(Exported, trouble), work)


def test_it_yields_what_the_source_does(tmp_path: Path) -> None:
    (tmp_path / "plain").write_bytes(b"plain")
    here, there = Exported("", tmp_path), separate(tmp_path)
    reports = ImportReport(), ImportReport()
    try:
        assert (there.kind, there.keeps_ids) == ("exported", True)
        assert there.survey() == here.survey()
        organization = here.organization(reports[1])
        assert there.organization(reports[0]) == organization
        assert len(organization.subscriptions) > SUBSCRIPTIONS  # They're sent in pieces.
        messages = there.messages("10", reports[0])
        expected = list(here.messages("10", reports[1]))
        assert next(messages) == expected[0]
        # Files are opened while messages are read.
        for place, content in (("plain", b"plain"), ("packed", b"unpacked")):
            with there.open(place) as file:
                assert file.read() == content
        with pytest.raises(FileUnavailable, match="doesn't respond"):
            there.open("away")
        with pytest.raises(FileNotFoundError):
            there.open("missing")
        assert list(messages) == expected[1:]
        assert reports[0] == reports[1]
    finally:
        there.close()
    assert (tmp_path / "closed").exists()


def test_it_tells_how_far_it_is_before_the_first_message(tmp_path: Path) -> None:
    told: list[StageProgress] = []
    source = SeparateSource(partial(Exported, ""), tmp_path, told.append)
    try:
        assert told == [StageProgress("extracting", 0, 50)]
        source.survey()
        assert told[1:] == [StageProgress("reading", 20, 100)]
    finally:
        source.close()


def test_it_can_be_closed_while_messages_are_read(tmp_path: Path) -> None:
    source = separate(tmp_path)
    next(source.messages("", ImportReport()))
    source.close()
    assert (tmp_path / "closed").exists()


@pytest.mark.parametrize(
    ("trouble", "reason"), [("reading", "can't be read: ValueError: damaged"), ("memory", "memory")]
)
def test_it_fails_as_the_source_does(tmp_path: Path, trouble: str, reason: str) -> None:
    source = separate(tmp_path, trouble)
    messages = source.messages("", ImportReport())
    assert next(messages).position == "10"
    with pytest.raises(SourceError, match=reason):
        next(messages)
    source.close()


def test_it_says_why_the_source_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"The archive is damaged\."):
        separate(tmp_path, "opening")
