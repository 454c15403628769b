"""Moving all files from one place to another, while servers use both (`MovingFiles`).

Nothing is remembered of it: what is at the new place in its full length was moved. So it can be
broken off at any time, and begun again.
"""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from tertulia.store.bucket_partials import DIRECTORIES
from tertulia.store.files import THUMBNAILS, Files, StoredFile

AT_ONCE: Final = 4
"""Files that are moved at the same time."""


class Moved(Struct, kw_only=True):
    """What was done."""

    files: int = 0
    """That were copied."""
    size: int = 0
    """Bytes of them."""
    present: int = 0
    """Files that were there already."""
    deleted: int = 0
    """Files that were deleted at the old place."""


class NotTheSame(Exception):
    """What was written is not what was read. `str(error)` is for the operator."""


async def move(
    old: Files, new: Files, *, delete: bool, progress: Callable[[int, int], None]
) -> Moved:
    """Copy every file that is not at the new place in its full length, and read it there again.
    With `delete`, those that are at both are deleted at the old place, and so are what can be made
    again and pieces of files that no node goes on with. `progress` is called with the files that
    are done, and how many there are.

    Raises FilesUnavailable, OSError, and NotTheSame; what was moved until then is.
    """
    there = {one.path: one.size async for one in new.kept()}
    files = [one async for one in old.kept()]
    moved = Moved()
    done = 0
    free = asyncio.Semaphore(AT_ONCE)
    progress(0, len(files))

    async def one_moved(stored: StoredFile) -> None:
        nonlocal done
        async with free:
            if there.get(stored.path) == stored.size:
                moved.present += 1
            elif await copied_over(stored, new):
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


async def copied_over(stored: StoredFile, new: Files) -> bool:
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
        raise NotTheSame(
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
