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


def directory(path: Path) -> None:
    """Create the directory and its missing parents. An existing one keeps its mode."""
    if not path.parent.exists():
        directory(path.parent)
    path.mkdir(mode=DIRECTORY, exist_ok=True)


def touch(path: Path) -> None:
    """Create an empty file unless it exists."""
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE))


def opener(path: str, flags: int) -> int:
    """For `open`: create files that only their owner can access."""
    return os.open(path, flags, FILE)


def exposed(data_dir: Path) -> tuple[list[Path], list[Path]]:
    """Return the files in a data directory that everyone on the machine can read, and those that
    only its group can read. Contents of directories that they can't enter are ignored."""
    by_everybody: list[Path] = []
    by_group: list[Path] = []
    for bits, paths in ((_EVERYBODY, by_everybody), (_GROUP, by_group)):
        if not _mode(data_dir) & bits:
            continue
        paths.append(data_dir)
        paths.extend(path for path in sorted(data_dir.iterdir()) if _mode(path) & bits)
    return by_everybody, by_group


def remedy(data_dir: Path) -> str:
    """Return the command that revokes everyone's access."""
    return f"`chmod -R o-rwx {shlex.quote(str(data_dir))}`"


def _mode(path: Path) -> int:
    try:
        return stat.S_IMODE(path.stat(follow_symlinks=False).st_mode) & ~_links(path)
    except FileNotFoundError:  # SQLite just deleted a file.
        return 0


def _links(path: Path) -> int:
    """Return the number of hard links; 0 for symbolic links, whose modes have no effect."""
    return 0o777 if path.is_symlink() else 0
