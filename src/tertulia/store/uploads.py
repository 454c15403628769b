"""Uploaded files: arriving, in place, and deleted.

A file arrives on the local disk as `uploads/incoming/<key>`. Once the log has it, it is moved to
`uploads/<realm>/<two digits>/<key>`. After a crash in between it is still found, and moved later. A
bucket gets the file before the log does, because this machine may not come back, with a marker
`uploads/incoming/offered/<key>` that is deleted afterwards. Files that never become attachments are
deleted later. No path contains a name that people chose.
"""

import asyncio
import contextlib
import os
import re
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from tertulia.model.attachments import key_in
from tertulia.store import file_modes
from tertulia.store.disk_files import DiskFiles, sync_directory
from tertulia.store.files import INCOMING, THUMBNAILS, Files, StoredFile

KEY = re.compile(r"[0-9a-f]{32}")
_UPLOADS: Final = "uploads"
_OFFERED: Final = f"{INCOMING}/offered"
LOOK_AGAIN_SECONDS: Final = (0.2, 0.8)
"""The pauses in seconds before looking again, because S3-like services may take a moment to show a
new object."""


@dataclass
class IncomingFile:
    key: str
    """A random key."""
    path: Path
    is_offered: bool = False
    """Whether the log may refer to it, so that it must stay even if the request fails."""


class UploadDraft:
    """A file being received. Call `discard` at the end in any case."""

    def __init__(self, path: Path) -> None:
        self.arriving = IncomingFile(path.name, path)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        self.file: BinaryIO = os.fdopen(descriptor, "wb")

    def finish(self) -> int:
        """Make the received file durable and return its size in bytes."""
        self.file.flush()
        size = os.fstat(self.file.fileno()).st_size
        os.fsync(self.file.fileno())
        self.file.close()
        sync_directory(self.arriving.path.parent)
        return size

    def discard(self) -> None:
        """Close the file, and delete it unless it was offered to the log."""
        with contextlib.suppress(OSError):  # Data that couldn't be written doesn't matter.
            self.file.close()
        if not self.arriving.is_offered:
            self.arriving.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class ArrivedFile:
    """A file that came with a request and is on disk until the response."""

    name: str
    content_type: str
    size: int
    arriving: IncomingFile


class UploadStore:
    def __init__(self, files: Files, disk: DiskFiles) -> None:
        self._files = files
        self._disk = disk
        self._has_offered = files is not disk
        """Whether markers may exist."""

    @property
    def incoming(self) -> Path:
        return self._disk.local_path(INCOMING)

    def begin(self) -> UploadDraft:
        """Create an empty file. Raise OSError if there is no room."""
        file_modes.directory(self.incoming)
        return UploadDraft(self.incoming / secrets.token_hex(16))

    async def offer(self, arriving: IncomingFile, path: str) -> None:
        """Keep the file from being deleted, before the log gets it under that path."""
        if not self._files.is_here:
            final = self.final_path(path)
            await self._files.put(f"{_OFFERED}/{arriving.key}", final.encode())
            await self._files.put_from(final, arriving.path)
            await asyncio.to_thread(arriving.path.unlink, missing_ok=True)
        arriving.is_offered = True

    async def settle(self, path: str) -> None:
        """Move the file to its final path, now that the log has it."""
        key, final = key_in(path), self.final_path(path)
        arrived = self.incoming / key
        if self._files.is_here:
            await asyncio.to_thread(self._move, arrived, self._disk.local_path(final))
        elif await asyncio.to_thread(arrived.exists):  # It predates the bucket.
            if await self._files.found(final) is None:
                await self._files.put_from(final, arrived)
            await asyncio.to_thread(arrived.unlink, missing_ok=True)
        if self._has_offered:
            await self._files.delete(f"{_OFFERED}/{key}")

    async def keep(self, arriving: IncomingFile, path: str) -> None:
        """Store a file that arrived under that path, as something else than an attachment.
        Repeating it changes nothing."""
        if self._files.is_here:
            await asyncio.to_thread(self._move, arriving.path, self._disk.local_path(path))
        elif await self._files.found(path) is None:
            await self._files.put_from(path, arriving.path)

    def _move(self, arrived: Path, target: Path) -> None:
        if not arrived.exists():
            return
        file_modes.directory(target.parent)
        with contextlib.suppress(FileNotFoundError):  # Another request has just done that.
            arrived.replace(target)
        sync_directory(target.parent)

    async def found(self, path: str) -> StoredFile | None:
        """Return an attachment's file, or None."""
        final = self.final_path(path)
        arrived = f"{INCOMING}/{key_in(path)}"
        stored_file = await self._files.found(final) or await self._disk.found(arrived)
        if stored_file is not None or self._files.is_here:
            return stored_file
        for seconds in LOOK_AGAIN_SECONDS:
            await asyncio.sleep(seconds)
            stored_file = await self._files.found(final)
            if stored_file is not None:
                return stored_file
        return None

    async def delete(self, path: str) -> None:
        """Delete the file and its thumbnails."""
        key = key_in(path)
        await self._files.delete(self.final_path(path))
        await self._disk.delete(f"{INCOMING}/{key}")
        if self._has_offered:
            await self._files.delete(f"{_OFFERED}/{key}")
        await self._files.delete_below(f"{THUMBNAILS}/{key}")

    def thumbnail(self, path: str, name: str) -> str:
        """Return the path of a thumbnail."""
        return f"{THUMBNAILS}/{key_in(path)}/{name}"

    def final_path(self, path: str) -> str:
        """Return an attachment's final path."""
        realm, digits, key, _ = path.split("/")
        return f"{_UPLOADS}/{realm}/{digits}/{key}"

    async def arrived(self, before: float) -> set[str]:
        """Return the keys of files that arrived before a UNIX time and weren't settled."""
        result = await asyncio.to_thread(lambda: set(self._arrived(before)))
        if self._has_offered:
            async for stored_file in self._files.below(_OFFERED):
                key = stored_file.path.rpartition("/")[2]
                if stored_file.modified < before and KEY.fullmatch(key):
                    result.add(key)
        return result

    def _arrived(self, before: float) -> Iterator[str]:
        for entry in self.entries():
            # Requests delete files at any time, also between the listing and this.
            with contextlib.suppress(FileNotFoundError):
                if KEY.fullmatch(entry.name) and entry.lstat().st_mtime < before:
                    yield entry.name

    async def forget(self, key: str) -> None:
        """Delete a file that arrived and isn't an attachment."""
        await self._disk.delete(f"{INCOMING}/{key}")
        if self._has_offered:
            place = await self._files.read(f"{_OFFERED}/{key}")
            if place is not None:
                await self._files.delete(place.decode())
                await self._files.delete(f"{_OFFERED}/{key}")

    def entries(self) -> Collection[Path]:
        """Return everything in the incoming directory. Blocks."""
        try:
            return list(self.incoming.iterdir())
        except FileNotFoundError:
            return ()
