"""Files and directories that nobody but their owner can read, whatever the umask is."""

import contextlib
import os
import shlex
import stat
from pathlib import Path
from typing import Final

DIRECTORY: Final = 0o700
FILE: Final = 0o600
_EVERYBODY: Final = 0o007
_GROUP: Final = 0o070


def directory(place: Path) -> None:
    """Make the directory, and those that are missing above it. One that is there stays as it is."""
    if not place.parent.exists():
        directory(place.parent)
    place.mkdir(mode=DIRECTORY, exist_ok=True)


def touch(place: Path) -> None:
    """Make an empty file, where there is none."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))


def opener(path: str, flags: int) -> int:
    """For `open`: a file that it makes is its owner's alone."""
    return os.open(path, flags, FILE)


def exposed(data_dir: Path) -> tuple[list[Path], list[Path]]:
    """Of a data directory and what lies in it: what everybody on the machine can read, and what
    only its group can. What lies in a directory that they cannot enter is none of it."""
    by_everybody: list[Path] = []
    by_group: list[Path] = []
    for bits, found in ((_EVERYBODY, by_everybody), (_GROUP, by_group)):
        if not _mode(data_dir) & bits:
            continue
        found.append(data_dir)
        found.extend(place for place in sorted(data_dir.iterdir()) if _mode(place) & bits)
    return by_everybody, by_group


def remedy(data_dir: Path) -> str:
    """The command that takes from everybody what they need not read."""
    return f"`chmod -R o-rwx {shlex.quote(str(data_dir))}`"


def _mode(place: Path) -> int:
    try:
        return stat.S_IMODE(place.stat(follow_symlinks=False).st_mode) & ~_links(place)
    except FileNotFoundError:  # A file that SQLite has just taken away.
        return 0


def _links(place: Path) -> int:
    """What the mode of a symbolic link says, which is nothing."""
    return 0o777 if place.is_symlink() else 0
