"""The files that name the version, and the conditions for releasing it.

`python packaging/versions.py 0.3.0` sets the version everywhere. It needs nothing but Python.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCE: Final = "src/tertulia/__init__.py"
_VERSION: Final = r"(\d+\.\d+\.\d+)"
_FILE_NAME: Final = rf"tertulia-(?:chart-)?{_VERSION}(?=[-.](?:py3|requirements|tgz))"
_WRITTEN: Final = {
    SOURCE: rf'^__version__ = "{_VERSION}"$',
    "web/package.json": rf'^  "version": "{_VERSION}"',
    "web/package-lock.json": rf'"name": "tertulia-web",\n +"version": "{_VERSION}"',
    "deploy/chart/Chart.yaml": rf'^(?:version|appVersion): "?{_VERSION}"?$',
}
"""Expressions that find the version in files. Commands in `docs/` name it, too."""
RECORDED: Final = "tests/stored"
"""The folder with a folder for each release."""


class NotReady(Exception):
    """A release can't be made. `str(error)` says why."""


def versions_in(root: Path) -> dict[str, set[str]]:
    """The versions that each file names. Raises NotReady if one of `_WRITTEN` names none."""
    found = {}
    for name, expression in _expressions(root).items():
        text = (root / name).read_text(encoding="utf-8")
        found[name] = set(re.findall(expression, text, re.MULTILINE))
        if not found[name] and name in _WRITTEN:
            raise NotReady(f"{name} doesn't name a version.")
    return {name: versions for name, versions in found.items() if versions}


def _expressions(root: Path) -> dict[str, str]:
    pages = (page.relative_to(root).as_posix() for page in sorted((root / "docs").glob("*.md")))
    return {**_WRITTEN, **dict.fromkeys(pages, _FILE_NAME)}


def version_of(root: Path) -> str:
    """The version of the package."""
    (version,) = versions_in(root)[SOURCE]
    return version


def set_version(root: Path, version: str) -> None:
    """Write the version to all files that name it. Raises NotReady unless it's like 0.3.0."""
    if not re.fullmatch(_VERSION, version):
        raise NotReady(f"{version} isn't a version like 0.3.0.")
    for name in versions_in(root):
        expression = _expressions(root)[name]
        text = (root / name).read_text(encoding="utf-8")
        text = re.sub(
            expression, lambda found: found[0].replace(found[1], version), text, flags=re.MULTILINE
        )
        (root / name).write_text(text, encoding="utf-8")


def obstacles(root: Path) -> Iterator[str]:
    """The reasons not to release the working tree, as sentences."""
    version = version_of(root)
    for name, found in versions_in(root).items():
        if found != {version}:
            others = ", ".join(sorted(found - {version}))
            yield (
                f"{name} says {others}, but {SOURCE} says {version}. Run: python"
                f" packaging/versions.py {version}"
            )
    if git(root, "status", "--porcelain"):
        yield "The working tree has changes that aren't committed."
    tags = set(git(root, "tag", "--list", "v*").split())
    if f"v{version}" in tags:
        yield f"The tag v{version} exists, so {version} was released. Raise the version."
    recorded = {path.parent.name for path in (root / RECORDED).glob("*/shapes.json")}
    if version in recorded:
        yield f"{RECORDED}/{version} exists, so {version} was released. Raise the version."
    for tag in sorted(tags - {f"v{one}" for one in recorded} - {f"v{version}"}):
        yield f"{RECORDED} has no {tag[1:]}, which was released: see docs/releases.md."
    try:
        notes_of(version, (root / "CHANGELOG.md").read_text(encoding="utf-8"))
    except NotReady as error:
        yield str(error)


def notes_of(version: str, changelog: str, *, draft: bool = False) -> str:
    """The changelog's section for the version; for a draft without one, the unreleased changes.
    Raises NotReady if the section doesn't exist or is empty, or if there are unreleased changes."""
    sections = {
        title.split()[0]: text.strip()
        for title, text in re.findall(
            r"^## (.+?)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
        )
    }
    text = sections.get(version) or (sections.get("Unreleased") if draft else None)
    if not text:
        raise NotReady(f"CHANGELOG.md has no entries for {version} below `## {version}`.")
    if not draft and sections.get("Unreleased"):
        raise NotReady(f"CHANGELOG.md has unreleased changes: move them to `## {version}`.")
    return text + "\n"


def git(root: Path, *words: str) -> str:
    """What Git prints. Raises NotReady if it fails."""
    done = subprocess.run(  # noqa: S603 (fixed arguments of this file)
        ["git", *words],  # noqa: S607 (the maintainer's own git)
        cwd=root,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotReady(f"`git {' '.join(words)}` failed.")
    return done.stdout.strip()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Usage: python packaging/versions.py 0.3.0")
    try:
        set_version(ROOT, sys.argv[1])
    except NotReady as error:
        sys.exit(str(error))
