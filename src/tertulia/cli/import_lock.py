"""The lock of imports: a second one would write everything again."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tertulia.cli.errors import CommandFailed
from tertulia.store import file_modes

DIRECTORY: Final = "imports"
"""The directory below the data directory with extracted archives, and the lock."""
LOCK: Final = "lock"


@contextlib.contextmanager
def alone(work: Path) -> Iterator[None]:
    """Be the only import with this data directory. Raises CommandFailed if there is another."""
    file_modes.directory(work.parent)
    file_modes.directory(work)
    descriptor = os.open(work / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandFailed(
                "Another import is running with this data directory. Wait until it is finished."
            ) from None
        yield
    finally:
        os.close(descriptor)
