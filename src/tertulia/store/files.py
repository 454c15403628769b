"""Files, beside the database: uploads and pictures, on a disk or in S3 and its like.

A file is known by its path, with `/` between the parts. Paths are made by us, of random parts: what
lies at one never changes, and a path that leads elsewhere is a mistake and raises ValueError.
"""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

INCOMING: Final = "uploads/incoming"
"""Below it is what still arrives."""
THUMBNAILS: Final = "thumbnails"
"""Below it is what can be made again of uploads."""
MAX_PATH: Final = 800
"""Characters of a path; S3 has 1,024 bytes for it, with the prefix."""
MAX_PART: Final = 200
"""Bytes of each of its parts; disks have 255."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
EXTERNAL: Final = "external"
"""Below it is what can be fetched again from elsewhere. It is on the disk always."""
_PASSING: Final = (f"{EXTERNAL}/", f"{THUMBNAILS}/", f"{INCOMING}/")


@dataclass(frozen=True)
class StoredFile:
    """A file that is there."""

    files: "Files"
    """Where it is."""
    path: str
    size: int
    """Bytes."""
    modified: float
    """UNIX seconds."""
    place: Path | None = None
    """Where it lies, if that is on a disk of this machine."""
    status: os.stat_result | None = None
    """What the disk says of it then."""


class Files(ABC):
    """A place for files, which nodes that share a database share. All methods raise ValueError for
    what is no path of a file, OSError for trouble with a disk, and FilesUnavailable where the place
    does not answer in time; none blocks the event loop.
    """

    is_here: bool
    """Whether new files lie on a disk of this machine, where they can be moved to their place."""
    description: str
    """Where it is, for its operator; without credentials."""

    @abstractmethod
    async def put(self, path: str, content: bytes) -> None:
        """Write the whole file. It is there with all its content, durably, or not at all."""

    @abstractmethod
    async def put_from(self, path: str, source: Path) -> None:
        """The same with what is in a file of this machine, whatever its size."""

    @abstractmethod
    async def read(self, path: str) -> bytes | None:
        """The whole of a small file; None where there is none."""

    @abstractmethod
    async def found(self, path: str) -> StoredFile | None:
        """The file, if it is there."""

    @abstractmethod
    def chunks(self, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """What the file has from byte `start` up to `end` (excluded), as it comes.
        FileNotFoundError where there is none."""

    @abstractmethod
    async def delete(self, path: str) -> None:
        """Delete the file, if it is there."""

    @abstractmethod
    async def delete_below(self, directory: str) -> None:
        """Delete everything whose path begins with `directory/`."""

    @abstractmethod
    def below(self, directory: str) -> AsyncIterator[StoredFile]:
        """Everything whose path begins with `directory/`; with "", everything. What has no path of
        a file is not ours, and left out."""

    @abstractmethod
    def local(self, stored: StoredFile) -> AbstractAsyncContextManager[Path]:
        """The file on a disk of this machine, for the time of the context. FileNotFoundError where
        it has gone since."""

    @abstractmethod
    async def signed(
        self, stored: StoredFile, *, media_type: str, disposition: str, now: float
    ) -> str | None:
        """An address that opens the file to whoever has it, for some minutes, as of that type and
        to be shown or saved as `Content-Disposition` says. None where there are no such addresses.
        """

    @abstractmethod
    async def probe(self) -> None:
        """Return if the place answers; raise otherwise."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections."""

    async def kept(self) -> AsyncIterator[StoredFile]:
        """Every file, without what can be made again and what is still arriving."""
        async for one in self.below(""):
            if not one.path.startswith(_PASSING):
                yield one


def parts_of(path: str) -> list[str]:
    """The parts of a path. ValueError for what is no path of a file."""
    if not is_path(path):
        raise ValueError(f"{path!r:.300} isn't a valid file path")
    return path.split("/")


def is_path(path: str) -> bool:
    """Whether it is a path that a file may have, wherever it is: what a disk could not have, nor a
    bucket, has none at the other either. (On a disk, names that begin with a dot are of what is
    being written.)"""
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    return (
        len(path) <= MAX_PATH
        and _CONTROLS.search(path) is None
        and all(0 < len(part) <= MAX_PART and not part.startswith(b".") for part in parts)
    )
