"""A disk cache of files fetched from the web, bounded by deleting the oldest."""

import hashlib
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import EXTERNAL

logger = logging.getLogger("tertulia.store")

FRESH_SECONDS: Final = 7 * 86400.0
"""Files that are older than this many seconds are fetched again."""
_LEFT: Final = 0.9
"""The share of the space that is in use after deleting the oldest."""


class UrlCache:
    """Contents by URL. Several nodes may share it, each making room independently."""

    def __init__(self, files: DiskFiles, room: int) -> None:
        self._files = files
        self._room = room
        self._used: int | None = None
        """The number of bytes that this node knows of, or None before it has looked."""

    def found(self, url: str, now: float) -> Path | None:
        """Return the fresh content's path, or None."""
        path = self._files.local_path(_path(url))
        try:
            age = now - path.stat().st_mtime
        except FileNotFoundError:
            return None
        return path if age < FRESH_SECONDS else None

    async def keep(self, url: str, content: bytes) -> None:
        """Store content. Raise OSError if the disk is full."""
        await self._files.put(_path(url), content)

    def make_room(self, added: int) -> None:
        """Delete the oldest files if the cache is too large after `added` bytes were added."""
        if self._used is not None and self._used + added <= self._room:
            self._used += added
            return
        files = sorted(self._cached_files(), key=lambda item: item[0])
        used = sum(size for _, size, _ in files)
        for _, size, file in files:
            if used <= self._room * _LEFT:
                break
            file.unlink(missing_ok=True)
            used -= size
        self._used = used

    def _cached_files(self) -> Iterator[tuple[float, int, Path]]:
        for file in self._files.local_path(EXTERNAL).glob("*/*"):
            try:
                status = file.stat()
            except FileNotFoundError:  # Another node deleted it.
                continue
            yield status.st_mtime, status.st_size, file


def _path(url: str) -> str:
    digest = hashlib.sha256(url.encode()).hexdigest()
    return f"{EXTERNAL}/{digest[:2]}/{digest[2:]}"
