"""`make docs`: the documentation as a site, into the Python package, where the server finds it.

`python docs/site/build.py` needs what `requirements-docs.txt` has. It fails where a link leads
nowhere, where no page is listed at the side that is not below one that is, and where the site is
larger than a package should carry.
"""

import os
import re
import runpy
import shutil
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
SITE: Final = ROOT / "src" / "tertulia" / "manual"
LARGEST: Final = 4 * 2**20
"""Bytes that the site may have; packed it is a quarter of that."""
FROM_ELSEWHERE: Final = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "bench/README.md": "bench.md",
}
"""Pages that lie elsewhere in the repository, and what they are called here."""
COPIED: Final = ("deploy", "Containerfile")
"""What pages link to be downloaded."""
BELOW: Final = ("decisions", "specification")
"""Folders of pages that another page lists."""
_STYLE: Final = re.compile(r' style="[^"]*"(?=[^<]*>)')
_LINK: Final = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def build() -> None:
    """Build the site again into `src/tertulia/manual`."""
    from sphinx.cmd.build import build_main

    work = ROOT / "build" / "site"
    shutil.rmtree(work, ignore_errors=True)
    pages = work / "docs"
    gather(pages)
    version = re.search(
        r'^__version__ = "(.+)"$', (ROOT / "src/tertulia/__init__.py").read_text(), re.MULTILINE
    )
    os.environ["TERTULIA_VERSION"] = version[1] if version else ""
    made = work / "html"
    settings = Path(__file__).resolve().parent
    listed = runpy.run_path(str(settings / "conf.py"))["PAGES"].values()
    if forgotten := pages_of(pages) - {name for some in listed for name in some}:
        raise SystemExit(f"docs/site/conf.py lists no {', '.join(sorted(forgotten))}.")
    options = ["-q", "-W", "--keep-going", "-n", "-E", "-b", "html", "-d", str(work / "doctrees")]
    if code := build_main([*options, "-c", str(settings), str(pages), str(made)]):
        raise SystemExit(code)
    for name in ("objects.inv", ".buildinfo"):  # For other builds alone.
        (made / name).unlink(missing_ok=True)
    for page in made.rglob("*.html"):  # The server's policy has no styles within pages.
        text = page.read_text(encoding="utf-8")
        page.write_text(_STYLE.sub("", text), encoding="utf-8")
    size = sum(file.stat().st_size for file in made.rglob("*") if file.is_file())
    if size > LARGEST:
        raise SystemExit(f"The site has {size:,} bytes: more than {LARGEST:,}.")
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(made, SITE)
    print(f"{SITE.relative_to(ROOT)}: {size / 2**20:.1f} MiB")


def pages_of(folder: Path) -> set[str]:
    """The pages that somebody must find at the side: all but the first one and those below one."""
    found = (page.relative_to(folder).with_suffix("") for page in folder.rglob("*.md"))
    return {page.as_posix() for page in found if page.parts[0] not in BELOW} - {"index"}


def gather(pages: Path) -> None:
    """Put the sources into one tree, with the links between them as they are there."""
    shutil.copytree(ROOT / "docs", pages, ignore=shutil.ignore_patterns("site", "*.py"))
    for origin, name in FROM_ELSEWHERE.items():
        shutil.copy(ROOT / origin, pages / name)
    for name in COPIED:
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, pages.parent / name)
    homes = {name: Path(origin).parent for origin, name in FROM_ELSEWHERE.items()}
    for page in pages.rglob("*.md"):
        here = page.relative_to(pages)
        home = homes.get(str(here), Path("docs") / here.parent)
        text = page.read_text(encoding="utf-8")
        page.write_text(_moved(text, home, here.parent), encoding="utf-8")


def _moved(text: str, home: Path, folder: Path) -> str:
    """A page's text with its links as they are from `folder` of the site, which were written from
    `home` of the repository."""

    def link(found: re.Match[str]) -> str:
        target = os.path.normpath(home / found["path"])
        if found["path"].endswith("/"):
            target += "/README.md"
        if target in FROM_ELSEWHERE:
            target = FROM_ELSEWHERE[target]
        elif target.startswith("docs/"):
            target = target.removeprefix("docs/")
        else:
            target = f"../{target}"
        return f"]({os.path.relpath(target, folder)}{found['anchor'] or ''})"

    return _LINK.sub(link, text)


if __name__ == "__main__":
    if sys.argv[1:]:
        raise SystemExit(__doc__)
    build()
