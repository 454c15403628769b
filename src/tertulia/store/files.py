"""Files outside the database, on a disk or in S3: uploads, pictures, and thumbnails. Paths are
separated by `/` and contain random parts. The content at a path never changes. A path outside the
storage raises ValueError."""

import os
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

INCOMING: Final = "uploads/incoming"
"""The directory of files that are still arriving."""
THUMBNAILS: Final = "thumbnails"
"""The directory of files that can be created again from uploads."""
MAX_PATH: Final = 800
"""The most characters of a path. S3 allows 1,024 bytes including the prefix."""
MAX_PART: Final = 200
"""The most bytes of a part of a path. Disks allow 255."""
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
EXTERNAL: Final = "external"
"""The directory of files that can be fetched again, always on disk."""
EXPORTS: Final = "exports"
"""The directory of data exports, which are deleted after some days."""
IMPORTS: Final = "imports"
"""The directory of uploaded exports of other chat servers, until they're imported."""
_PASSING: Final = (f"{EXTERNAL}/", f"{THUMBNAILS}/", f"{INCOMING}/", f"{EXPORTS}/", f"{IMPORTS}/")


@dataclass(frozen=True)
class StoredFile:
    files: "Files"
    """The storage that has the file."""
    path: str
    size: int
    modified: float
    local_path: Path | None = None
    """The file's path on a disk of this machine."""
    status: os.stat_result | None = None
    """The file's status on that disk."""


class Files(ABC):
    """A storage shared by all nodes of a database. Methods raise ValueError for invalid paths,
    OSError for disk errors, and FilesUnavailable if the storage doesn't respond in time. None
    blocks the event loop."""

    is_here: bool
    """Whether files are on a disk of this machine, so that new ones can be moved into place."""
    description: str
    """A description for the operator, without credentials."""

    @abstractmethod
    async def put(self, path: str, content: bytes) -> None:
        """Write a whole file atomically and durably."""

    @abstractmethod
    async def put_from(self, path: str, source: Path) -> None:
        """Copy a local file of any size."""

    @abstractmethod
    async def read(self, path: str) -> bytes | None:
        """Return a small file's content, or None."""

    @abstractmethod
    async def found(self, path: str) -> StoredFile | None:
        """Return the file if it exists."""

    @abstractmethod
    def chunks(self, path: str, start: int = 0, end: int | None = None) -> AsyncIterator[bytes]:
        """Yield the bytes from `start` to `end` (exclusive). Raise FileNotFoundError."""

    @abstractmethod
    async def delete(self, path: str) -> None:
        """Delete the file if it exists."""

    @abstractmethod
    async def delete_below(self, directory: str) -> None:
        """Delete everything below a directory."""

    @abstractmethod
    def below(self, directory: str) -> AsyncIterator[StoredFile]:
        """Yield everything below a directory ("": all). Files without a valid path are skipped."""

    @abstractmethod
    def local(self, stored: StoredFile) -> AbstractAsyncContextManager[Path]:
        """Provide the file on a local disk for the duration of the context. Raise
        FileNotFoundError."""

    @abstractmethod
    async def signed(
        self, stored: StoredFile, *, media_type: str, disposition: str, now: float
    ) -> str | None:
        """Return a URL that opens the file without signing in, for some minutes and with that
        type and `Content-Disposition`, or None if the storage has no such URLs."""

    @abstractmethod
    async def probe(self) -> None:
        """Raise if the storage doesn't respond."""

    @abstractmethod
    async def close(self) -> None: ...

    async def kept(self) -> AsyncIterator[StoredFile]:
        """Yield every file that must be kept."""
        async for stored_file in self.below(""):
            if not stored_file.path.startswith(_PASSING):
                yield stored_file


def parts_of(path: str) -> list[str]:
    """Split a path. Raise ValueError if it is invalid."""
    if not is_path(path):
        raise ValueError(f"{path!r:.300} isn't a valid file path")
    return path.split("/")


def is_path(path: str) -> bool:
    """Return whether both disks and buckets can have the path. Names that begin with a period
    are files being written on disk."""
    try:
        parts = path.encode().split(b"/")
    except UnicodeEncodeError:
        return False
    return (
        len(path) <= MAX_PATH
        and _CONTROLS.search(path) is None
        and all(0 < len(part) <= MAX_PART and not part.startswith(b".") for part in parts)
    )
