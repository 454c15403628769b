"""Build the documentation as a site into the Python package, which serves it: `make docs`.

Requires `requirements-docs.txt`. Fails if a link is broken, if a page is missing from the sidebar,
or if the site is too large for a package.
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
"""The maximum size of the site in bytes. Compressed, it takes a quarter of that."""
FROM_ELSEWHERE: Final = {
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
    "bench/README.md": "bench.md",
}
"""Pages from outside `docs/`, and their names in the site."""
COPIED: Final = ("deploy", "Containerfile")
"""Files that pages offer as downloads."""
NOT_IN_SIDEBAR: Final = ("decisions", "specification")
"""Folders whose pages are listed on another page."""
_STYLE: Final = re.compile(r' style="[^"]*"(?=[^<]*>)')
_LINK: Final = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")


def build() -> None:
    """Build the site into `src/tertulia/manual`, and replace what is there."""
    from sphinx.cmd.build import build_main

    work = ROOT / "build" / "site"
    shutil.rmtree(work, ignore_errors=True)
    pages = work / "docs"
    gather(pages)
    version = re.search(
        r'^__version__ = "(.+)"$', (ROOT / "src/tertulia/__init__.py").read_text(), re.MULTILINE
    )
    os.environ["TERTULIA_VERSION"] = version[1] if version else ""
    html = work / "html"
    settings = Path(__file__).resolve().parent
    listed = runpy.run_path(str(settings / "conf.py"))["PAGES"].values()
    if missing := pages_of(pages) - {name for group in listed for name in group}:
        raise SystemExit(f"Pages missing from docs/site/conf.py: {', '.join(sorted(missing))}.")
    options = ["-q", "-W", "--keep-going", "-n", "-E", "-b", "html", "-d", str(work / "doctrees")]
    if code := build_main([*options, "-c", str(settings), str(pages), str(html)]):
        raise SystemExit(code)
    for name in ("objects.inv", ".buildinfo"):  # Only other builds use them.
        (html / name).unlink(missing_ok=True)
    for page in html.rglob("*.html"):  # The server's policy allows no inline styles.
        text = page.read_text(encoding="utf-8")
        page.write_text(_STYLE.sub("", text), encoding="utf-8")
    size = sum(file.stat().st_size for file in html.rglob("*") if file.is_file())
    if size > LARGEST:
        raise SystemExit(f"The site has {size:,} bytes, and can have at most {LARGEST:,}.")
    shutil.rmtree(SITE, ignore_errors=True)
    shutil.copytree(html, SITE)
    print(f"{SITE.relative_to(ROOT)}: {size / 2**20:.1f} MiB")


def pages_of(folder: Path) -> set[str]:
    """Return the names of the pages that must be in the sidebar."""
    pages = (page.relative_to(folder).with_suffix("") for page in folder.rglob("*.md"))
    return {page.as_posix() for page in pages if page.parts[0] not in NOT_IN_SIDEBAR} - {"index"}


def gather(pages: Path) -> None:
    """Copy the sources into one tree, and adapt the links between them."""
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
    """Return a page's text with its links, which are relative to `home` in the repository, relative
    to `folder` in the site."""

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
