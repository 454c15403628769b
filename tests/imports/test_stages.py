"""The progress of opening an export."""

import shutil
from collections.abc import Callable
from contextlib import closing
from itertools import groupby, pairwise
from pathlib import Path

import pytest

from tertulia.imports import stages
from tertulia.imports.mattermost.source import MattermostExport
from tertulia.imports.report import ImportReport
from tertulia.imports.rocketchat.source import RocketChatDump
from tertulia.imports.slack.export import SlackExport
from tertulia.imports.source import Source
from tertulia.imports.stages import StageProgress
from tertulia.imports.zulip.source import ZulipExport
from tests.imports import exports

KINDS: dict[str, tuple[Callable[..., Source], list[str]]] = {
    "zulip": (ZulipExport, ["reading"]),
    "slack": (SlackExport, ["reading", "sorting"]),
    "mattermost": (MattermostExport, ["reading", "sorting"]),
    "rocketchat": (RocketChatDump, ["reading", "sorting"]),
}


def written(kind: str, directory: Path) -> Path:
    (directory / "export").mkdir()
    return exports.WRITERS[kind](200, directory / "export")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("packed", ["zip", "gztar"])
def test_every_stage_is_told_from_its_begin_to_its_end(
    kind: str, packed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "TOLD_SECONDS", 0)
    export = written(kind, tmp_path)
    if export.is_dir():
        export = Path(shutil.make_archive(str(tmp_path / "packed"), packed, export))
    told: list[StageProgress] = []
    opened, expected = KINDS[kind]
    with closing(opened(export, tmp_path / "work", tell=told.append)) as source:
        source.survey()
        source.organization(ImportReport())
    found = [(stage, list(some)) for stage, some in groupby(told, lambda one: one.stage)]
    assert [stage for stage, _ in found] == ["extracting", *expected]
    for _, some in found:
        assert some[0].done == 0
        assert all(a.done <= b.done and a.whole == b.whole for a, b in pairwise(some))
        assert some[-1].whole / 2 < some[-1].done <= some[-1].whole


def test_an_import_that_continues_tells_what_it_reads_again(tmp_path: Path) -> None:
    place, work = written("zulip", tmp_path), tmp_path / "work"
    with closing(ZulipExport(place, work)) as first:
        first.survey()
    told: list[StageProgress] = []
    with closing(ZulipExport(place, work, tell=told.append)) as second:
        second.survey()
        second.organization(ImportReport())
    sizes = ((place / name).stat().st_size for name in ("realm.json", "attachment.json"))
    assert told[0] == StageProgress("reading", 0, sum(sizes))
