"""Resumable uploads, which continue after a restart.

On disk, the received bytes are a file among incoming uploads (`tertulia.store.uploads`), described
in `<user>-<key>.json` until it expires. In a bucket, they are objects
(`tertulia.store.bucket_partials`).
"""

import asyncio
import contextlib
import fcntl
import os
import secrets
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Collection, Container, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from tertulia.store import file_modes
from tertulia.store.disk_files import replace
from tertulia.store.uploads import KEY, ArrivedFile, IncomingFile, UploadStore

_ENDING: Final = ".json"
TAKE_OVER_SECONDS = 5.0
"""The number of seconds for which a request waits for a file that another process writes."""


class PartialUpload(Struct, frozen=True, kw_only=True, omit_defaults=True):
    user_id: int
    key: str
    length: int
    """The final size in bytes."""
    metadata: str
    """The metadata as the client sent it."""
    name: str
    media_type: str
    expires: int
    """UNIX seconds."""
    doubtful: int | None = None
    """The size beyond which bytes haven't been checked against their checksum."""
    path: str | None = None
    """The file's path once it is complete: an attachment's, or that of an export to import."""
    is_import: bool = False
    """Whether it's an export of another chat server, which never becomes an attachment."""


class Reservation(NamedTuple):
    """Space reserved by an unfinished upload."""

    user_id: int
    key: str
    length: int
    expires: int
    """When the reservation ends (UNIX seconds). Earlier uploads have smaller values."""


decoder: Final = msgspec.json.Decoder(PartialUpload)


class UploadInUse(Exception):
    """Another process is writing the file."""


class UploadPieces(ABC):
    """The bytes received so far, open for appending. Methods raise OSError and FilesUnavailable if
    there is no room."""

    size: int

    @property
    def is_wanted(self) -> bool:
        """Whether another process waits for the file."""
        return False

    @abstractmethod
    async def begin(self, *, checked: bool) -> None:
        """Begin a request's bytes. They count as soon as they are appended, or, if they are
        `checked`, at the `end`."""

    @abstractmethod
    async def append(self, piece: bytes) -> None:
        """Store the piece. After a failure a part of it may be stored."""

    @abstractmethod
    def drop(self) -> None:
        """Discard everything since `begin`. `end` must follow."""

    @abstractmethod
    async def end(self) -> None:
        """Make everything that counts durable."""


class PartialUploads(ABC):
    @abstractmethod
    async def begin(self, partial: PartialUpload) -> None:
        """Create an upload, whose key comes from `new_key`."""

    @abstractmethod
    async def finish(self, partial: PartialUpload) -> None:
        """Record that the upload is complete and an attachment."""

    @abstractmethod
    async def load(self, user_id: int, key: str) -> PartialUpload | None: ...

    @abstractmethod
    def opened(self, partial: PartialUpload) -> AbstractAsyncContextManager[UploadPieces | None]:
        """Open the received bytes; None if it is complete. Raise UploadInUse."""

    @abstractmethod
    def whole(self, partial: PartialUpload) -> AbstractAsyncContextManager[ArrivedFile]:
        """Provide the complete upload as an arrived file."""

    @abstractmethod
    async def delete(self, partial: PartialUpload) -> None:
        """Delete the description and the received bytes, unless they are an attachment."""

    @abstractmethod
    async def unfinished(self, user_ids: Collection[int]) -> int:
        """Return the number of these accounts' unfinished uploads."""

    @abstractmethod
    async def begun(self) -> list[tuple[int, str]]:
        """Return user and key of all unfinished uploads."""

    @abstractmethod
    async def reservations(
        self, now: float, user_ids: Collection[int] | None = None
    ) -> list[Reservation]:
        """Return the unexpired reservations of all accounts or these. Exports to import have none:
        they don't count as people's files."""

    @abstractmethod
    async def keys(self) -> set[str]: ...

    @abstractmethod
    async def expired(self, now: float) -> list[PartialUpload]: ...


class DiskPieces(UploadPieces):
    """A file that is locked against other processes."""

    def __init__(
        self, partials: "DiskPartialUploads", partial: PartialUpload, descriptor: int, ticket: int
    ) -> None:
        self._partials = partials
        self._partial = partial
        self._descriptor = descriptor
        self._begun = 0
        self._is_checked = False
        self._ticket = ticket

    @property
    def is_wanted(self) -> bool:
        return os.fstat(self._descriptor).st_atime_ns > self._ticket

    @property
    def size(self) -> int:  # type: ignore[override]  # it is not set
        return os.fstat(self._descriptor).st_size

    async def begin(self, *, checked: bool) -> None:
        self._begun = self.size
        self._is_checked = checked
        if checked:
            # If the server stops before that, these bytes are discarded.
            doubtful = msgspec.structs.replace(self._partial, doubtful=self._begun)
            await self._partials.save(doubtful)

    async def append(self, piece: bytes) -> None:
        await asyncio.to_thread(self._append, piece)

    def _append(self, piece: bytes) -> None:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    def drop(self) -> None:
        os.ftruncate(self._descriptor, self._begun)

    async def end(self) -> None:
        await asyncio.to_thread(os.fsync, self._descriptor)
        if self._is_checked:
            await self._partials.save(self._partial)


class DiskPartialUploads(PartialUploads):
    def __init__(self, uploads: UploadStore) -> None:
        self._uploads = uploads

    async def begin(self, partial: PartialUpload) -> None:
        await asyncio.to_thread(self._begin, partial)

    def _begin(self, partial: PartialUpload) -> None:
        file_modes.directory(self._uploads.incoming)
        path = self._uploads.incoming / partial.key
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
        self._save(partial)

    async def finish(self, partial: PartialUpload) -> None:
        await self.save(partial)

    async def save(self, partial: PartialUpload) -> None:
        """Write the description durably."""
        await asyncio.to_thread(self._save, partial)

    def _save(self, partial: PartialUpload) -> None:
        path = self._uploads.incoming / f"{partial.user_id}-{partial.key}{_ENDING}"
        content = msgspec.json.encode(partial)
        draft = path.with_suffix(f".{secrets.token_hex(4)}")
        replace(path, draft, lambda file: file.write(content))

    async def load(self, user_id: int, key: str) -> PartialUpload | None:
        return await asyncio.to_thread(self._load, user_id, key)

    def _load(self, user_id: int, key: str) -> PartialUpload | None:
        if not KEY.fullmatch(key):
            return None
        try:
            text = (self._uploads.incoming / f"{user_id}-{key}{_ENDING}").read_bytes()
        except FileNotFoundError:
            return None
        return decoder.decode(text)

    @contextlib.asynccontextmanager
    async def opened(self, partial: PartialUpload) -> AsyncIterator[DiskPieces | None]:
        flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._uploads.incoming / partial.key, flags)
        except FileNotFoundError:
            yield None
            return
        try:
            ticket = await _locked(descriptor)
            # Another process may have written it while this one waited.
            now = await self.load(partial.user_id, partial.key)
            if now is None or now.path is not None:
                yield None
                return
            if now.doubtful is not None:
                os.ftruncate(descriptor, now.doubtful)
                now = msgspec.structs.replace(now, doubtful=None)
                await self.save(now)
            yield DiskPieces(self, now, descriptor, ticket)
        finally:
            os.close(descriptor)

    @contextlib.asynccontextmanager
    async def whole(self, partial: PartialUpload) -> AsyncIterator[ArrivedFile]:
        path = self._uploads.incoming / partial.key
        yield ArrivedFile(
            partial.name, partial.media_type, partial.length, IncomingFile(partial.key, path)
        )

    async def delete(self, partial: PartialUpload) -> None:
        await self._uploads.forget(partial.key)
        name = f"{partial.user_id}-{partial.key}{_ENDING}"
        await asyncio.to_thread((self._uploads.incoming / name).unlink, missing_ok=True)

    async def unfinished(self, user_ids: Collection[int]) -> int:
        return await asyncio.to_thread(
            lambda: sum(
                partial_upload.path is None for partial_upload in self._all(frozenset(user_ids))
            )
        )

    async def begun(self) -> list[tuple[int, str]]:
        return await asyncio.to_thread(
            lambda: [
                (partial_upload.user_id, partial_upload.key)
                for partial_upload in self._all()
                if partial_upload.path is None
            ]
        )

    async def reservations(
        self, now: float, user_ids: Collection[int] | None = None
    ) -> list[Reservation]:
        of = None if user_ids is None else frozenset(user_ids)
        return await asyncio.to_thread(
            lambda: [
                Reservation(
                    partial_upload.user_id,
                    partial_upload.key,
                    partial_upload.length,
                    partial_upload.expires,
                )
                for partial_upload in self._all(of)
                if partial_upload.path is None
                and partial_upload.expires > now
                and not partial_upload.is_import
            ]
        )

    async def keys(self) -> set[str]:
        return await asyncio.to_thread(
            lambda: {partial_upload.key for partial_upload in self._all()}
        )

    async def expired(self, now: float) -> list[PartialUpload]:
        return await asyncio.to_thread(lambda: [p for p in self._all() if p.expires <= now])

    def _all(self, of: Container[int] | None = None) -> Iterator[PartialUpload]:
        """Yield the uploads of all accounts or these. Other accounts' files aren't read."""
        for entry in self._uploads.entries():
            user_id, _, key = entry.name.removesuffix(_ENDING).partition("-")
            if (
                entry.suffix == _ENDING
                and user_id.isdecimal()
                and (of is None or int(user_id) in of)
            ):
                partial = self._load(int(user_id), key)
                if partial is not None:
                    yield partial


async def _locked(descriptor: int) -> int:
    """Lock the file and return a ticket higher than those of earlier requests. If another process
    has it, ask for it (`UploadPieces.is_wanted`) and wait a little, because its connection may be
    dead. Raise UploadInUse if it keeps the file or a later request asks for it.

    The last ticket is the file's access time, which is otherwise unused. It grows by whole seconds,
    the smallest unit of some file systems. The random part distinguishes simultaneous requests.
    """
    status = os.fstat(descriptor)
    ticket = status.st_atime_ns + 2_000_000_000 + secrets.randbelow(1_000_000_000)
    os.utime(descriptor, ns=(ticket, status.st_mtime_ns))
    loop = asyncio.get_running_loop()
    until = loop.time() + TAKE_OVER_SECONDS
    while True:
        if os.fstat(descriptor).st_atime_ns > ticket:
            raise UploadInUse
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if loop.time() >= until:
                raise UploadInUse from None
        else:
            return ticket
        await asyncio.sleep(0.1)


def new_key() -> str:
    """Return a random key."""
    return secrets.token_hex(16)
