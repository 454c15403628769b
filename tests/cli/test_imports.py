"""`tertulia import`."""

import json
from pathlib import Path
from typing import Any

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


def test_mattermost(place: Place, tmp_path: Path) -> None:
    export = mattermost_export.written(tmp_path / "export.zip", mattermost_export.sample())
    tried = answer(place, "mattermost", "--dry-run", str(export))
    assert tried["origin"] == "Mattermost 9.5.1"
    assert tried["imported"]["messages"] == 10
    assert "no team named 'moon'" in error(place, "mattermost", "--team", "moon", str(export))
    done = answer(place, "mattermost", "--team", "harbor", str(export))
    assert done["imported"]["messages"] == 10
    assert [one for one in (place.config.data_path / "imports").iterdir() if one.is_dir()] == []


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
