"""Uploaded files on the disk: as they arrive, where they stay, and how they go.

A file arrives in `uploads/incoming/<key>`. When the log says whose it is, it is moved to its place,
`uploads/<realm>/<two digits>/<key>`: a crash in between leaves a file that is found all the same,
and moved later. What arrived and never became an attachment is deleted some time later. Names that
people gave never reach the disk.
"""

import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tertulia.store import file_modes
from tertulia.store.files import Files

KEY = re.compile(r"[0-9a-f]{32}")
_UPLOADS = "uploads"
_INCOMING = f"{_UPLOADS}/incoming"
_THUMBNAILS = "thumbnails"


@dataclass
class IncomingFile:
    """A file that has arrived, or does."""

    key: str
    """Random: what it will be known by."""
    place: Path
    """Where it lies until then."""
    is_offered: bool = False
    """Whether the log may have it by now: then it stays where it is, whatever comes of the
    request, until it is moved to its place or found to be nobody's."""


class Draft:
    """A file that is coming in at once. `discard` belongs at its end, whatever happens."""

    def __init__(self, place: Path) -> None:
        self.arriving = IncomingFile(place.name, place)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")

    def finish(self) -> int:
        """Everything has arrived: see to it that it is on disk. Returns its size in bytes."""
        self.file.flush()
        size = os.fstat(self.file.fileno()).st_size
        os.fsync(self.file.fileno())
        self.file.close()
        sync_directory(self.arriving.place.parent)
        return size

    def discard(self) -> None:
        """Close it, and delete it unless it was offered to the log."""
        with contextlib.suppress(OSError):  # What could not be written need not be.
            self.file.close()
        if not self.arriving.is_offered:
            self.arriving.place.unlink(missing_ok=True)


@dataclass(frozen=True)
class ArrivedFile:
    """A file that came with the request, and lies on the disk until the request is answered."""

    name: str
    content_type: str
    size: int
    """Bytes."""
    arriving: IncomingFile


class Uploads:
    """The uploaded files below the root of `Files`. Its methods block: call them in a thread."""

    def __init__(self, files: Files) -> None:
        self._files = files

    @property
    def incoming(self) -> Path:
        """Where files arrive."""
        return self._files.place(_INCOMING)

    def begin(self) -> Draft:
        """A new file, still empty. OSError where there is no room."""
        file_modes.directory(self.incoming)
        return Draft(self.incoming / secrets.token_hex(16))

    def settle(self, path: str) -> None:
        """Move the file of the attachment with this path to its place, if it is not there yet."""
        arrived, place = self.incoming / _key_of(path), self._place(path)
        if not arrived.exists():
            return
        file_modes.directory(place.parent)
        with contextlib.suppress(FileNotFoundError):  # Somebody else has just done it.
            arrived.replace(place)
        sync_directory(place.parent)

    def found(self, path: str) -> tuple[Path, os.stat_result] | None:
        """Where the file of the attachment with this path lies; None where it is nowhere."""
        for place in (self._place(path), self.incoming / _key_of(path)):
            try:
                status = place.lstat()
            except FileNotFoundError:
                continue
            if stat.S_ISREG(status.st_mode):
                return place, status
        return None

    def delete(self, path: str) -> None:
        """Delete the file and what was made of it, as far as they are there."""
        for place in (self._place(path), self.incoming / _key_of(path)):
            place.unlink(missing_ok=True)
        shutil.rmtree(self._files.place(f"{_THUMBNAILS}/{_key_of(path)}"), ignore_errors=True)

    def thumbnail(self, path: str, name: str) -> str:
        """Where the picture that was made of a file is kept, as a path of `Files`."""
        return f"{_THUMBNAILS}/{_key_of(path)}/{name}"

    def place_of(self, path: str) -> str:
        """Where the file of the attachment with this path stays, as a path of `Files`."""
        realm, digits, key, _ = path.split("/")
        return f"{_UPLOADS}/{realm}/{digits}/{key}"

    def arrived(self, before: float) -> Iterator[str]:
        """The keys of files that arrived before that UNIX time and were not settled."""
        for entry in self.entries():
            if KEY.fullmatch(entry.name) and entry.lstat().st_mtime < before:
                yield entry.name

    def forget(self, key: str) -> None:
        """Delete a file that arrived and belongs to nobody."""
        (self.incoming / key).unlink(missing_ok=True)

    def entries(self) -> Collection[Path]:
        """Everything that lies where files arrive."""
        try:
            return list(self.incoming.iterdir())
        except FileNotFoundError:
            return ()

    def _place(self, path: str) -> Path:
        return self._files.place(self.place_of(path))


def _key_of(path: str) -> str:
    return path.split("/")[2]


def sync_directory(directory: Path) -> None:
    """See to it that what was put into the directory is there after a power cut."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
