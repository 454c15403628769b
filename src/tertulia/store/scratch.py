"""Directories of the data directory in which a backup is made or opened, and which go with the
process: at once where it ends, and where it was killed as soon as somebody looks.

What is in one is as secret as the database. So that of a backup which is to be encrypted nothing
readable is ever left, whatever kills the process, that lies there in files without a name: the
system takes these away with the process. That its process lives is told by a lock, which the system
gives up alike, and which also other machines see that share the directory.
"""

import contextlib
import fcntl
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, cast

from tertulia.store import file_modes

PREFIX: Final = "backup-"
"""Begins their names."""
_NEW: Final = f".{PREFIX}"
"""Begins them until they are locked; there is nothing in them then."""
_HELD: Final = "held"
"""The file that is locked."""
_OURS: Final = re.compile(r"tertulia-\w+\.zip(\.age)?|trial|backup\.zip")
"""What older versions have in one that they do not lock: another directory may be called so too."""
_UNHELD_SECONDS: Final = 86400
"""What is not locked yet, and what an older version never locks: after so long nobody is at it."""


@contextlib.contextmanager
def scratch_directory(data_path: Path) -> Iterator[Path]:
    """An empty directory for the time of the context, which nobody but the owner can read. Those
    whose process is gone are deleted first."""
    file_modes.directory(data_path)
    sweep(data_path)
    # It is locked before anybody can take it for one that was left.
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=data_path))
    with open(new / _HELD, "wb", opener=file_modes.opener) as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        directory = new.rename(new.with_name(new.name.removeprefix(".")))
        try:
            yield directory
        finally:
            shutil.rmtree(directory)


def nameless_file(directory: Path) -> BinaryIO:
    """An empty file that goes when it is closed, or with the process. Nobody can open it anew."""
    return cast(BinaryIO, tempfile.TemporaryFile(dir=directory))


def found(data_path: Path) -> list[Path]:
    """Those that there are, and what else is called so."""
    try:
        names = os.listdir(data_path)
    except PermissionError:
        return []
    return [data_path / name for name in names if name.startswith((PREFIX, _NEW))]


def sweep(data_path: Path) -> None:
    """Delete those whose process is gone. What cannot be looked at is not ours."""
    for left in found(data_path):
        # Somebody else's, which cannot be looked into, or one that goes just now.
        with contextlib.suppress(OSError):
            if left.is_dir() and _is_left(left):
                shutil.rmtree(left, ignore_errors=True)


def _is_left(directory: Path) -> bool:
    if directory.name.startswith("."):
        return _age(directory) > _UNHELD_SECONDS
    try:
        held = os.open(directory / _HELD, os.O_RDWR)
    except FileNotFoundError:
        is_ours = all(_OURS.fullmatch(one.name) for one in directory.iterdir())
        return is_ours and _age(directory) > _UNHELD_SECONDS
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(held)
    return True


def _age(directory: Path) -> float:
    return time.time() - directory.stat().st_mtime
