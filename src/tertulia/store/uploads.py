"""Uploaded files: as they arrive, where they stay, and how they go.

A file arrives on the disk of this machine, in `uploads/incoming/<key>`. When the log says whose it
is, it is moved to its place, `uploads/<realm>/<two digits>/<key>`: a crash in between leaves a file
that is found all the same, and moved later. Into a bucket it goes before the log is asked, since
this machine may be gone afterwards: first a note that it is offered to the log,
`uploads/incoming/offered/<key>`, which is taken away when the log has it. What arrived and never
became an attachment is deleted some time later. Names that people gave are in no path.
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
"""Services like S3 may take a moment until everybody sees what was written."""


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


class UploadDraft:
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


class UploadStore:
    """The uploaded files among some files, and those that arrive on the disk."""

    def __init__(self, files: Files, disk: DiskFiles) -> None:
        self._files = files
        self._disk = disk
        self._has_offered = files is not disk
        """Whether there may be notes of what was offered."""

    @property
    def incoming(self) -> Path:
        """Where files arrive."""
        return self._disk.place(INCOMING)

    def begin(self) -> UploadDraft:
        """A new file, still empty. OSError where there is no room."""
        file_modes.directory(self.incoming)
        return UploadDraft(self.incoming / secrets.token_hex(16))

    async def offer(self, arriving: IncomingFile, path: str) -> None:
        """See to it that the file stays, before the log is asked to have it at that path."""
        if not self._files.is_here:
            place = self.place_of(path)
            await self._files.put(f"{_OFFERED}/{arriving.key}", place.encode())
            await self._files.put_from(place, arriving.place)
            await asyncio.to_thread(arriving.place.unlink, missing_ok=True)
        arriving.is_offered = True

    async def settle(self, path: str) -> None:
        """The log has the file: see to it that it is in its place, and is not looked for among
        those that arrive."""
        key, place = key_in(path), self.place_of(path)
        arrived = self.incoming / key
        if self._files.is_here:
            await asyncio.to_thread(self._move, arrived, self._disk.place(place))
        elif await asyncio.to_thread(arrived.exists):  # From before files were in a bucket.
            if await self._files.found(place) is None:
                await self._files.put_from(place, arrived)
            await asyncio.to_thread(arrived.unlink, missing_ok=True)
        if self._has_offered:
            await self._files.delete(f"{_OFFERED}/{key}")

    def _move(self, arrived: Path, place: Path) -> None:
        if not arrived.exists():
            return
        file_modes.directory(place.parent)
        with contextlib.suppress(FileNotFoundError):  # Somebody else has just done it.
            arrived.replace(place)
        sync_directory(place.parent)

    async def found(self, path: str) -> StoredFile | None:
        """The file of the attachment with this path; None where it is nowhere."""
        place = self.place_of(path)
        arrived = f"{INCOMING}/{key_in(path)}"
        found = await self._files.found(place) or await self._disk.found(arrived)
        if found is not None or self._files.is_here:
            return found
        for seconds in LOOK_AGAIN_SECONDS:
            await asyncio.sleep(seconds)
            found = await self._files.found(place)
            if found is not None:
                return found
        return None

    async def delete(self, path: str) -> None:
        """Delete the file and what was made of it, as far as they are there."""
        key = key_in(path)
        await self._files.delete(self.place_of(path))
        await self._disk.delete(f"{INCOMING}/{key}")
        if self._has_offered:
            await self._files.delete(f"{_OFFERED}/{key}")
        await self._files.delete_below(f"{THUMBNAILS}/{key}")

    def thumbnail(self, path: str, name: str) -> str:
        """Where the picture that was made of a file is kept, as a path of `Files`."""
        return f"{THUMBNAILS}/{key_in(path)}/{name}"

    def place_of(self, path: str) -> str:
        """Where the file of the attachment with this path stays, as a path of `Files`."""
        realm, digits, key, _ = path.split("/")
        return f"{_UPLOADS}/{realm}/{digits}/{key}"

    async def arrived(self, before: float) -> set[str]:
        """The keys of files that arrived before that UNIX time and were not settled."""
        found = await asyncio.to_thread(lambda: set(self._arrived(before)))
        if self._has_offered:
            async for one in self._files.below(_OFFERED):
                key = one.path.rpartition("/")[2]
                if one.modified < before and KEY.fullmatch(key):
                    found.add(key)
        return found

    def _arrived(self, before: float) -> Iterator[str]:
        for entry in self.entries():
            if KEY.fullmatch(entry.name) and entry.lstat().st_mtime < before:
                yield entry.name

    async def forget(self, key: str) -> None:
        """Delete a file that arrived and belongs to nobody."""
        await self._disk.delete(f"{INCOMING}/{key}")
        if self._has_offered:
            place = await self._files.read(f"{_OFFERED}/{key}")
            if place is not None:
                await self._files.delete(place.decode())
                await self._files.delete(f"{_OFFERED}/{key}")

    def entries(self) -> Collection[Path]:
        """Everything that lies on the disk where files arrive. In a thread."""
        try:
            return list(self.incoming.iterdir())
        except FileNotFoundError:
            return ()
