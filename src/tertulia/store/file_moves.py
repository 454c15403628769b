"""Moving all files to another storage while servers use both (`MovingFiles`).

No state is kept: a file whose copy has its full length was moved. The move can be stopped and
started again at any time.
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

MAX_CONCURRENT: Final = 4
"""Files that are moved at the same time."""


class MoveResult(Struct, kw_only=True):
    files: int = 0
    """The number of copied files..."""
    size: int = 0
    """... and their bytes."""
    present: int = 0
    """The number of files that were already copied."""
    deleted: int = 0
    """The number of files deleted from the old storage."""


class CopyMismatch(Exception):
    """The copy differs from the original. The text is for the operator."""


async def move(
    old: Files, new: Files, *, delete: bool, progress: Callable[[int, int], None]
) -> MoveResult:
    """Copy every file that the new storage lacks, and verify it. With `delete`, delete copied
    files, thumbnails, and abandoned uploads from the old storage. Calls `progress` with the files
    done and the total. Raise FilesUnavailable, OSError, and CopyMismatch, and can then be
    continued."""
    there = {stored_file.path: stored_file.size async for stored_file in new.kept()}
    files = [stored_file async for stored_file in old.kept()]
    moved = MoveResult()
    done = 0
    free = asyncio.Semaphore(MAX_CONCURRENT)
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

    # In batches, because a task for each file would take too much memory.
    for start in range(0, len(files), 1000):
        async with asyncio.TaskGroup() as group:
            for stored in files[start : start + 1000]:
                group.create_task(one_moved(stored))
    if delete:
        for directory in (THUMBNAILS, *DIRECTORIES):
            await old.delete_below(directory)
    return moved


async def copy_file(stored: StoredFile, new: Files) -> bool:
    """Copy and verify one file. Return False if it was deleted in the meantime."""
    old, path = stored.files, stored.path
    try:
        async with old.local(stored) as local:
            before = await asyncio.to_thread(_digest_of, str(local))
            await new.put_from(path, local)
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
        # A server deleted it during the copy. It deletes from the old storage first.
        await new.delete(path)
        return False
    return True


def _digest_of(path: str) -> bytes:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").digest()


class MovingFiles(Files):
    """Files in two storages: written to the first, and read from the first that has them."""

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
        # In this order, so that a concurrent `copy_file` notices.
        await self.others.delete(path)
        await self.files.delete(path)

    async def delete_below(self, directory: str) -> None:
        await self.others.delete_below(directory)
        await self.files.delete_below(directory)

    async def below(self, directory: str) -> AsyncIterator[StoredFile]:
        seen = set[str]()
        async for stored_file in self.files.below(directory):
            seen.add(stored_file.path)
            yield stored_file
        async for stored_file in self.others.below(directory):
            if stored_file.path not in seen:
                yield stored_file

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
    """Return the storage that a setting names. Raise ValueError if the URL is invalid."""
    address = s3_address(url)
    return disk if address is None else BucketFiles(address, keys, disk)


def opened_files(directory: Path, url: str, also_at: str, keys: S3Keys) -> tuple[Files, DiskFiles]:
    """Return the storage at `url`, backed by the one at `also_at` if it's set, and the local disk,
    where uploads arrive."""
    disk = DiskFiles(directory)
    files = files_at(url, disk, keys)
    return (MovingFiles(files, files_at(also_at, disk, keys)) if also_at else files), disk
