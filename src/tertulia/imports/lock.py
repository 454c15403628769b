"""The lock of a data directory's imports, and the files that they extract there."""

import contextlib
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tertulia.imports.progress import ImportRefused
from tertulia.store import file_modes

DIRECTORY: Final = "imports"
"""The directory below the data directory with extracted archives, and the lock."""
LOCK: Final = "lock"


class ImportBusy(ImportRefused):
    """Another import is running."""


@contextlib.contextmanager
def import_lock(work: Path) -> Iterator[None]:
    """Hold the lock of this data directory's imports. Raises ImportBusy if another import holds
    it."""
    file_modes.directory(work.parent)
    file_modes.directory(work)
    descriptor = os.open(work / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ImportBusy(
                "Another import is running with this data directory. Wait until it is finished."
            ) from None
        yield
    finally:
        os.close(descriptor)


def delete_extracted(work: Path, older_than: float = 0) -> None:
    """Delete extracted and sorted files older than `older_than` seconds. The caller must hold the
    lock."""
    before = time.time() - older_than
    for path in work.iterdir():
        if path.name == LOCK or path.lstat().st_mtime > before:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
