"""Files and directories that only their owner can access, whatever the umask is."""

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
    """Create the directory and its missing parents. An existing one keeps its mode."""
    if not place.parent.exists():
        directory(place.parent)
    place.mkdir(mode=DIRECTORY, exist_ok=True)


def touch(place: Path) -> None:
    """Create an empty file unless it exists."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))


def opener(path: str, flags: int) -> int:
    """For `open`: create files that only their owner can access."""
    return os.open(path, flags, FILE)


def exposed(data_dir: Path) -> tuple[list[Path], list[Path]]:
    """Return what everyone on the machine can read in a data directory, and what only its group
    can. Contents of directories that they can't enter don't count."""
    by_everybody: list[Path] = []
    by_group: list[Path] = []
    for bits, paths in ((_EVERYBODY, by_everybody), (_GROUP, by_group)):
        if not _mode(data_dir) & bits:
            continue
        paths.append(data_dir)
        paths.extend(place for place in sorted(data_dir.iterdir()) if _mode(place) & bits)
    return by_everybody, by_group


def remedy(data_dir: Path) -> str:
    """The command that revokes everyone's access."""
    return f"`chmod -R o-rwx {shlex.quote(str(data_dir))}`"


def _mode(place: Path) -> int:
    try:
        return stat.S_IMODE(place.stat(follow_symlinks=False).st_mode) & ~_links(place)
    except FileNotFoundError:  # SQLite just deleted a file.
        return 0


def _links(place: Path) -> int:
    """Symbolic links' modes mean nothing."""
    return 0o777 if place.is_symlink() else 0
