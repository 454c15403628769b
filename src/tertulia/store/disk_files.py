"""Files on a disk of this machine, or on one that nodes share."""

import asyncio
import contextlib
import os
import re
import secrets
import shutil
import stat
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from tertulia.store import file_modes
from tertulia.store.files import Files, StoredFile, is_path, parts_of

_CHUNK: Final = 256 * 1024
_PIECE: Final = 1024 * 1024
_DRAFT: Final = re.compile(r"\..{1,20}\.[0-9a-f]{16}")
"""The names of files being written, as `DiskFiles._put` makes them."""


class DiskFiles(Files):
    is_here = True

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.description = str(root)

    def local_path(self, path: str) -> Path:
        """Return the path on disk."""
        return self.root.joinpath(*parts_of(path))

    async def put(self, path: str, content: bytes) -> None:
        await asyncio.to_thread(self._put, path, lambda file: file.write(content))

    async def put_from(self, path: str, source: Path) -> None:
        def copy(file: BinaryIO) -> None:
            with source.open("rb") as content:
                shutil.copyfileobj(content, file, _PIECE)

        await asyncio.to_thread(self._put, path, copy)

    def _put(self, path: str, write: Callable[[BinaryIO], object]) -> None:
        target = self.local_path(path)
        file_modes.directory(target.parent)
        replace(target, target.with_name(f".{target.name[:20]}.{secrets.token_hex(8)}"), write)

    async def read(self, path: str) -> bytes | None:
        try:
            return await asyncio.to_thread(self.local_path(path).read_bytes)
        except FileNotFoundError:
            return None

    async def found(self, path: str) -> StoredFile | None:
        return await asyncio.to_thread(self.find, path)

    def find(self, path: str) -> StoredFile | None:
        """Return the file if it exists, without using a separate thread."""
        local = self.local_path(path)
        try:
            status = local.lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISREG(status.st_mode):
            return None
        return StoredFile(self, path, status.st_size, status.st_mtime, local, status)

    async def chunks(
        self, path: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        file = await asyncio.to_thread(self.local_path(path).open, "rb")
        try:
            file.seek(start)
            left = None if end is None else end - start
            while left is None or left > 0:
                size = _CHUNK if left is None else min(_CHUNK, left)
                chunk = await asyncio.to_thread(file.read, size)
                if not chunk:
                    return
                left = None if left is None else left - len(chunk)
                yield chunk
        finally:
            file.close()

    async def delete(self, path: str) -> None:
        await asyncio.to_thread(self.local_path(path).unlink, missing_ok=True)

    async def delete_below(self, directory: str) -> None:
        await asyncio.to_thread(shutil.rmtree, self.local_path(directory), ignore_errors=True)

    async def below(self, directory: str) -> AsyncIterator[StoredFile]:
        root = self.local_path(directory) if directory else self.root
        for stored_file in await asyncio.to_thread(lambda: list(self._below(root))):
            yield stored_file

    def _below(self, root: Path) -> Iterator[StoredFile]:
        for file in sorted(root.rglob("*")):
            path = file.relative_to(self.root).as_posix()
            # Files being written have no valid path.
            if is_path(path) and (stored_file := self.find(path)) is not None:
                yield stored_file

    async def delete_drafts(self, before: float) -> None:
        """Delete unfinished files of processes that were killed while writing them into the root
        directory: those that weren't written to since `before` (UNIX seconds)."""
        await asyncio.to_thread(self._delete_drafts, before)

    def _delete_drafts(self, before: float) -> None:
        for file in self.root.iterdir():
            # Another process may have just finished it.
            with contextlib.suppress(FileNotFoundError):
                if _DRAFT.fullmatch(file.name) and file.lstat().st_mtime < before:
                    file.unlink()

    @contextlib.asynccontextmanager
    async def local(self, stored: StoredFile) -> AsyncIterator[Path]:
        yield self.local_path(stored.path)

    async def signed(
        self, stored: StoredFile, *, media_type: str, disposition: str, now: float
    ) -> str | None:
        return None

    async def probe(self) -> None:
        """Do nothing: a disk that doesn't respond also stops the database."""

    async def close(self) -> None: ...


def replace(target: Path, draft: Path, write: Callable[[BinaryIO], object]) -> None:
    """Write a file durably, as a whole or not at all. `draft` is a path next to it."""
    try:
        with open(draft, "wb", opener=file_modes.opener) as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Make changes to the directory survive a power failure."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
