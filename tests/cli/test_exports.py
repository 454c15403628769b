"""`tertulia export`: files, options, errors, and a process that is killed."""

import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from tests.cli.support import Place


def names_in(file: Path) -> set[str]:
    with tarfile.open(file) as tar:
        return set(tar.getnames())


def test_an_export_is_a_private_file_of_one_directory(place: Place, tmp_path: Path) -> None:
    place.create_organization()
    file = tmp_path / "export.tar.gz"
    written = place.answer("export", str(file))
    assert (written["kind"], written["missing"]) == ("full_without_consent", [])
    names = names_in(file)
    assert written["files"] == len(names)
    assert {"export/realm.json", "export/attachment.json", "export/stats.json"} <= names
    assert file.stat().st_mode & 0o777 == 0o600
    assert "already exists" in place.run("export", str(file)).output


def test_pages_and_public_exports(place: Place, tmp_path: Path) -> None:
    place.create_organization()
    file = tmp_path / "pages.tar.gz"
    written = place.answer("export", str(file), "--format", "html", "--public-only")
    assert (written["kind"], written["format"]) == ("public", "html")
    assert {"export/index.html", "export/style.css"} <= names_in(file)


@pytest.mark.parametrize(
    "arguments",
    [
        ("x.tar.gz", "--public-only", "--with-consent"),
        ("x.tar.gz", "--format", "pdf"),
        ("missing/x.tar.gz",),
        (),
    ],
    ids=" ".join,
)
def test_wrong_arguments_write_nothing(
    place: Place, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    place.create_organization()
    paths = [str(tmp_path / one) if one.endswith(".gz") else one for one in arguments]
    result = place.run("export", *paths)
    assert result.exit_code != 0
    assert "Traceback" not in result.output
    assert list(tmp_path.rglob("x.tar.gz*")) == []


def test_without_an_organization(place: Place, tmp_path: Path) -> None:
    result = place.run("export", str(tmp_path / "x.tar.gz"))
    assert result.exit_code != 0
    assert "no organization" in result.output
    assert list(tmp_path.glob("x.*")) == []


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_export_leaves_no_file(place: Place, tmp_path: Path, number: int) -> None:
    place.create_organization()
    file = tmp_path / "export.tar.gz"
    # Stops where the archive has been begun.
    code = (
        "import sys, time\n"
        "from tertulia.exports import exporting\n"
        "def begun(*_):\n"
        f"    open({str(tmp_path / 'begun')!r}, 'w').close()\n"
        "    time.sleep(60)\n"
        "exporting.load_state = begun\n"
        "from tertulia.cli import main\n"
        f"sys.argv = ['tertulia', 'export', {str(file)!r}, *{place.flags!r}]\n"
        "main()\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], env=dict(os.environ))
    while not (tmp_path / "begun").exists():
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(number)
    assert process.wait() != 0
    assert not file.exists()
    left = list(tmp_path.glob("*.partial"))
    assert bool(left) == (number == signal.SIGKILL)
    assert place.run("export", str(file)).exit_code == 0
