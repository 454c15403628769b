"""Moving all files from one place to another, while servers use both (`MovingFiles`).

Nothing is remembered of it: what is at the new place in its full length was moved. So it can be
broken off at any time, and begun again.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Final

from msgspec import Struct

from tertulia.store.bucket_files import BucketFiles, S3Keys
from tertulia.store.bucket_partials import DIRECTORIES
from tertulia.store.disk_files import DiskFiles
from tertulia.store.files import THUMBNAILS, Files, StoredFile
from tertulia.store.s3_addresses import s3_address

AT_ONCE: Final = 4
"""Files that are moved at the same time."""


class MoveResult(Struct, kw_only=True):
    """What was done."""

    files: int = 0
    """That were copied."""
    size: int = 0
    """Bytes of them."""
    present: int = 0
    """Files that were there already."""
    deleted: int = 0
    """Files that were deleted at the old place."""


class CopyMismatch(Exception):
    """What was written is not what was read. `str(error)` is for the operator."""


async def move(
    old: Files, new: Files, *, delete: bool, progress: Callable[[int, int], None]
) -> MoveResult:
    """Copy every file that is not at the new place in its full length, and read it there again.
    With `delete`, those that are at both are deleted at the old place, and so are what can be made
    again and pieces of files that no node goes on with. `progress` is called with the files that
    are done, and how many there are.

    Raises FilesUnavailable, OSError, and NotTheSame; what was moved until then is.
    """
    there = {one.path: one.size async for one in new.kept()}
    files = [one async for one in old.kept()]
    moved = MoveResult()
    done = 0
    free = asyncio.Semaphore(AT_ONCE)
    progress(0, len(files))

    async def one_moved(stored: StoredFile) -> None:
        nonlocal done
        async with free:
            if there.get(stored.path) == stored.size:
                moved.present += 1
            elif await copy_file(stored, new):
                moved.files += 1
                moved.size += stored.size
            if delete:
                await old.delete(stored.path)
                moved.deleted += 1
        done += 1
        progress(done, len(files))

    # Some at a time: a task for each file would be too much for the memory.
    for start in range(0, len(files), 1000):
        async with asyncio.TaskGroup() as group:
            for stored in files[start : start + 1000]:
                group.create_task(one_moved(stored))
    if delete:
        for directory in (THUMBNAILS, *DIRECTORIES):
            await old.delete_below(directory)
    return moved


async def copy_file(stored: StoredFile, new: Files) -> bool:
    """Copy one file and look whether it is the same there; False where it was deleted meanwhile."""
    old, path = stored.files, stored.path
    try:
        async with old.local(stored) as place:
            before = await asyncio.to_thread(_digest_of, str(place))
            await new.put_from(path, place)
    except FileNotFoundError:
        return False
    digest = hashlib.sha256()
    async for chunk in new.chunks(path):
        digest.update(chunk)
    if digest.digest() != before:
        await new.delete(path)
        raise CopyMismatch(
            f"{path} in {new.description} differs from the original, so the original was kept."
        )
    if await old.found(path) is None:
        # A server deleted it while it was copied: it does so at the old place first.
        await new.delete(path)
        return False
    return True


def _digest_of(place: str) -> bytes:
    with open(place, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


class MovingFiles(Files):
    """The files of two places: written to the first, and read there or else in the second."""

    def __init__(self, files: Files, others: Files) -> None:
        self.files = files
        self.others = others
        self.is_here = files.is_here
        self.description = f"{files.description}, and {others.description} before"

    async def put(self, path: str, content: bytes) -> None:
        await self.files.put(path, content)

    async def put_from(self, path: str, source: Path) -> None:
        await self.files.put_from(path, source)

    async def read(self, path: str) -> bytes | None:
        content = await self.files.read(path)
        return await self.others.read(path) if content is None else content

    async def found(self, path: str) -> StoredFile | None:
        return await self.files.found(path) or await self.others.found(path)

    async def chunks(
        self, path: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        stored = await self.found(path)
        if stored is None:
            raise FileNotFoundError(path)
        async for chunk in stored.files.chunks(path, start, end):
            yield chunk

    async def delete(self, path: str) -> None:
        # In this order: whoever copies it meanwhile sees that it has gone (`copied_over`).
        await self.others.delete(path)
        await self.files.delete(path)

    async def delete_below(self, directory: str) -> None:
        await self.others.delete_below(directory)
        await self.files.delete_below(directory)

    async def below(self, directory: str) -> AsyncIterator[StoredFile]:
        seen = set[str]()
        async for one in self.files.below(directory):
            seen.add(one.path)
            yield one
        async for one in self.others.below(directory):
            if one.path not in seen:
                yield one

    def local(self, stored: StoredFile) -> AbstractAsyncContextManager[Path]:
        return stored.files.local(stored)

    async def signed(
        self, stored: StoredFile, *, media_type: str, disposition: str, now: float
    ) -> str | None:
        return await stored.files.signed(
            stored, media_type=media_type, disposition=disposition, now=now
        )

    async def probe(self) -> None:
        await self.files.probe()
        await self.others.probe()

    async def close(self) -> None:
        await self.files.close()
        await self.others.close()


def files_at(url: str, disk: DiskFiles, keys: S3Keys) -> Files:
    """The files at the place that a setting names. ValueError for what is none."""
    address = s3_address(url)
    return disk if address is None else BucketFiles(address, keys, disk)


def opened_files(directory: Path, url: str, also_at: str, keys: S3Keys) -> tuple[Files, DiskFiles]:
    """The files at `url`, with those at `also_at` (empty: nowhere else) that are not there yet; and
    the disk, below that directory, whether files are on it or only arrive there."""
    disk = DiskFiles(directory)
    files = files_at(url, disk, keys)
    return (MovingFiles(files, files_at(also_at, disk, keys)) if also_at else files), disk
