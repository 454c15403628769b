"""The lock beside an SQLite file that its server holds: there is one server at most, and no command
migrates the database while it runs."""

import contextlib
import fcntl
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

from tertulia.store import file_modes
from tertulia.store.database import DatabaseError

_TRIES = 20
_PAUSE_SECONDS = 0.05
"""Between two tries: a command that looks whether a server runs holds the lock for a moment."""


def this_process() -> str:
    """This process, as errors of other processes name it."""
    return f"process {os.getpid()} on {socket.gethostname()}"


@contextlib.contextmanager
def exclusive_server(database: Path) -> Iterator[int]:
    """Be the only server on the file for the time of the context; the lock's descriptor. Whoever
    inherits it holds the lock as well: it ends with the last of these processes, however they end.
    DatabaseError where there is a server already."""
    path = _lock_of(database)
    file_modes.directory(path.parent)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        for attempt in range(_TRIES):
            if _is_locked(descriptor, fcntl.LOCK_EX):
                break
            if attempt == _TRIES - 1:
                raise DatabaseError(
                    f"A server is already using {database}: {_holder(descriptor)}. Only one"
                    " server can use an SQLite database, although it can have several"
                    " workers. Stop that server first, or use PostgreSQL."
                )
            time.sleep(_PAUSE_SECONDS)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, this_process().encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def running_server(database: Path) -> str | None:
    """The process that serves from the file, other than this one; None where none does."""
    try:
        descriptor = os.open(_lock_of(database), os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        if _is_locked(descriptor, fcntl.LOCK_SH):
            return None
        holder = _holder(descriptor)
        return None if holder == this_process() else holder
    finally:
        os.close(descriptor)


def _lock_of(database: Path) -> Path:
    return database.with_name(f"{database.name}.lock")


def _is_locked(descriptor: int, kind: int) -> bool:
    """Try to lock the file; whether that succeeded."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(descriptor: int) -> str:
    return os.pread(descriptor, 200, 0).decode(errors="replace") or "another process"
