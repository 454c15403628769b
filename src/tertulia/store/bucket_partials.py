"""Resumable uploads in a bucket, which any node can continue.

An upload is described in `begun/<user>/<key>`, and in `whole/<user>/<key>` once it is an
attachment. Its pieces are objects named `pieces/<key>/<offset>-<length>`. The space it reserves is
encoded in an empty object's name, so that one listing finds all reservations. Nodes need no lock:
an object is never overwritten, and the file extends as far as pieces follow each other without a
gap, so it never shrinks. If two requests bring the same bytes, they are stored twice and count
once.
"""

import asyncio
import contextlib
import re
import secrets
from collections.abc import AsyncIterator, Collection, Iterable, Sequence
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

import msgspec

from tertulia.model.errors import FilesUnavailable, Refused
from tertulia.store import file_modes
from tertulia.store.backups import anonymous_file
from tertulia.store.bucket_files import copied
from tertulia.store.files import INCOMING, Files
from tertulia.store.partial_uploads import (
    PartialUpload,
    PartialUploads,
    Reservation,
    UploadPieces,
    decoder,
)
from tertulia.store.uploads import KEY, ArrivedFile, IncomingFile, UploadStore

_BEGUN: Final = f"{INCOMING}/begun"
_WHOLE: Final = f"{INCOMING}/whole"
_PIECES: Final = f"{INCOMING}/pieces"
_RESERVED: Final = f"{INCOMING}/reserved"
DIRECTORIES: Final = (_BEGUN, _WHOLE, _PIECES, _RESERVED)
"""The directories that contain everything that the bucket has of resumable uploads."""
# Other objects, such as the empty ones that consoles create for directories, are ignored.
_RECORD: Final = re.compile(rf"{_BEGUN}/([0-9]{{1,16}})/({KEY.pattern})")
_RESERVATION: Final = re.compile(
    rf"{_RESERVED}/([0-9]{{1,16}})/({KEY.pattern})-([0-9]{{1,16}})-([0-9]{{1,16}})"
)
PIECE: Final = 4 * 1024 * 1024
"""The most bytes of an object, all of which are in memory while it is written."""
MOST_PIECES: Final = 10_000
"""The most objects per file, as protection against clients that send a few bytes at a time."""
MOST_LISTINGS: Final = 4
"""Up to this many accounts are listed one by one."""
_OLD_SECONDS: Final = 43_200
"""Objects that are newer than this many seconds can't have expired."""


class BucketPiece(NamedTuple):
    """An object with a part of a file."""

    offset: int
    length: int
    name: str

    @property
    def end(self) -> int:
        return self.offset + self.length


def chain(pieces: Iterable[BucketPiece]) -> list[BucketPiece]:
    """Return the consecutive pieces that reach furthest from the beginning."""
    before: dict[int, BucketPiece | None] = {0: None}
    for piece in sorted(pieces):
        if piece.offset in before and piece.length and piece.end not in before:
            before[piece.end] = piece
    results: list[BucketPiece] = []
    last = before[max(before)]
    while last is not None:
        results.append(last)
        last = before[last.offset]
    return results[::-1]


class BucketPieces(UploadPieces):
    """The pieces of one file, including those of the current request, which are gathered in a local
    temporary file until they are large enough for an object or have been checked."""

    def __init__(
        self, files: Files, key: str, present: Sequence[BucketPiece], gathered: BinaryIO
    ) -> None:
        self._files = files
        self._directory = f"{_PIECES}/{key}"
        self._count = len(present)
        self._kept = max((piece.end for piece in chain(present)), default=0)
        """The number of bytes in the bucket."""
        self._begun = self._kept
        self._written: list[str] = []
        """The objects written by this request."""
        self._gathered = gathered
        self._first = 0
        """The offset in `_gathered` of the bytes that aren't in the bucket."""
        self._waiting = 0
        """The number of bytes that are gathered but not yet in the bucket."""
        self._is_checked = False
        self._is_dropped = False

    @property
    def size(self) -> int:  # type: ignore[override]  # it is not set
        return self._kept + self._waiting

    async def begin(self, *, checked: bool) -> None:
        self._begun = self._kept
        self._is_checked = checked

    async def append(self, piece: bytes) -> None:
        await asyncio.to_thread(self._gathered.write, piece)
        self._waiting += len(piece)
        if self._waiting >= PIECE and not self._is_checked:
            await self._put_gathered()

    def drop(self) -> None:
        self._is_dropped = True

    async def end(self) -> None:
        if self._is_dropped:
            await self._undo()
        else:
            await self._put_gathered()

    async def _put_gathered(self) -> None:
        while self._waiting:
            await asyncio.to_thread(self._gathered.seek, self._first)
            content = await asyncio.to_thread(self._gathered.read, PIECE)
            await self._put(content)
            self._first += len(content)
            self._waiting -= len(content)
        await asyncio.to_thread(_emptied, self._gathered)
        self._first = 0

    async def _put(self, content: bytes) -> None:
        if self._count >= MOST_PIECES:
            raise Refused(
                "The file was uploaded in too many parts. Upload it again in larger parts."
            )
        name = f"{self._kept:014d}-{len(content)}-{secrets.token_hex(4)}"
        await self._files.put(f"{self._directory}/{name}", content)
        self._written.append(name)
        self._count += 1
        self._kept += len(content)

    async def _undo(self) -> None:
        self._waiting = 0
        self._kept = self._begun
        for name in reversed(self._written):
            await self._files.delete(f"{self._directory}/{name}")
        self._written.clear()


def _nameless(directory: Path) -> BinaryIO:
    file_modes.directory(directory)
    return anonymous_file(directory)


def _emptied(file: BinaryIO) -> None:
    file.seek(0)
    file.truncate()


class BucketPartialUploads(PartialUploads):
    def __init__(self, files: Files, uploads: UploadStore) -> None:
        self._files = files
        self._uploads = uploads

    async def begin(self, partial: PartialUpload) -> None:
        if not partial.is_import:
            await self._files.put(_reservation(partial), b"")
        await self._files.put(_record(_BEGUN, partial), msgspec.json.encode(partial))

    async def finish(self, partial: PartialUpload) -> None:
        await self._files.put(_record(_WHOLE, partial), msgspec.json.encode(partial))
        await self._files.delete(_record(_BEGUN, partial))
        await self._files.delete(_reservation(partial))
        await self._files.delete_below(f"{_PIECES}/{partial.key}")

    async def load(self, user_id: int, key: str) -> PartialUpload | None:
        if not KEY.fullmatch(key):
            return None
        # In this order, because it may be finished in between.
        begun = await self._files.read(f"{_BEGUN}/{user_id}/{key}")
        whole = await self._files.read(f"{_WHOLE}/{user_id}/{key}")
        text = whole or begun
        return None if text is None else decoder.decode(text)

    @contextlib.asynccontextmanager
    async def opened(self, partial: PartialUpload) -> AsyncIterator[BucketPieces | None]:
        if partial.path is not None:
            yield None
            return
        present = await self._pieces(partial.key)
        with await asyncio.to_thread(_nameless, self._uploads.incoming) as gathered:
            yield BucketPieces(self._files, partial.key, present, gathered)

    async def _pieces(self, key: str) -> list[BucketPiece]:
        pieces: list[BucketPiece] = []
        async for stored_file in self._files.below(f"{_PIECES}/{key}"):
            name = stored_file.path.rpartition("/")[2]
            offset = name.partition("-")[0]
            if offset.isdecimal():
                pieces.append(BucketPiece(int(offset), stored_file.size, stored_file.path))
        return pieces

    @contextlib.asynccontextmanager
    async def whole(self, partial: PartialUpload) -> AsyncIterator[ArrivedFile]:
        path = self._uploads.incoming / secrets.token_hex(16)
        arriving = IncomingFile(partial.key, path)
        try:
            await self._compose(partial, path)
            yield ArrivedFile(partial.name, partial.media_type, partial.length, arriving)
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)

    async def _compose(self, partial: PartialUpload, path: Path) -> None:
        async def chunks() -> AsyncIterator[bytes]:
            for piece in chain(await self._pieces(partial.key)):
                async for chunk in self._files.chunks(piece.name):
                    yield chunk

        try:
            size = await copied(chunks(), path)
        except FileNotFoundError:  # Another request has just finished it.
            raise FilesUnavailable(f"parts of {partial.key} have been deleted") from None
        if size != partial.length:
            raise FilesUnavailable(f"some parts of {partial.key} are missing")

    async def delete(self, partial: PartialUpload) -> None:
        if partial.path is None:
            await self._uploads.forget(partial.key)
        await self._files.delete_below(f"{_PIECES}/{partial.key}")
        await self._files.delete(_record(_BEGUN, partial))
        await self._files.delete(_reservation(partial))
        await self._files.delete(_record(_WHOLE, partial))

    async def unfinished(self, user_ids: Collection[int]) -> int:
        results = [_RECORD.fullmatch(text) async for text in self._below(_BEGUN, user_ids)]
        return sum(match is not None and int(match[1]) in user_ids for match in results)

    async def _below(self, directory: str, user_ids: Collection[int] | None) -> AsyncIterator[str]:
        """Yield paths in a directory with one subdirectory per account: those of the given
        accounts, and maybe of others. Listing one account takes a request, so more than a few
        are listed together."""
        is_whole = user_ids is None or len(user_ids) > MOST_LISTINGS
        for place in (
            [directory] if is_whole else [f"{directory}/{user_id}" for user_id in user_ids or ()]
        ):
            async for stored_file in self._files.below(place):
                yield stored_file.path

    async def begun(self) -> list[tuple[int, str]]:
        results = [
            _RECORD.fullmatch(stored_file.path) async for stored_file in self._files.below(_BEGUN)
        ]
        return [(int(match[1]), match[2]) for match in results if match]

    async def reservations(
        self, now: float, user_ids: Collection[int] | None = None
    ) -> list[Reservation]:
        return [
            item
            for _, item in await self._reserved(user_ids)
            if item.expires > now and (user_ids is None or item.user_id in user_ids)
        ]

    async def _reserved(
        self, user_ids: Collection[int] | None = None
    ) -> list[tuple[str, Reservation]]:
        """Return reservations with their object paths."""
        result: list[tuple[str, Reservation]] = []
        async for path in self._below(_RESERVED, user_ids):
            if match := _RESERVATION.fullmatch(path):
                user_id, key, length, expires = match.groups()
                reserved = Reservation(int(user_id), key, int(length), int(expires))
                result.append((path, reserved))
        return result

    async def keys(self) -> set[str]:
        return {
            stored_file.path.rpartition("/")[2]
            for directory in (_BEGUN, _WHOLE)
            async for stored_file in self._files.below(directory)
        }

    async def expired(self, now: float) -> list[PartialUpload]:
        # A crash may have left only the reservation.
        for path, reserved in await self._reserved():
            if reserved.expires <= now:
                await self._files.delete(path)
        partial_uploads: list[PartialUpload] = []
        for directory in (_BEGUN, _WHOLE):
            async for stored_file in self._files.below(directory):
                key = stored_file.path.rpartition("/")[2]
                if stored_file.modified > now - _OLD_SECONDS or not KEY.fullmatch(key):
                    continue
                text = await self._files.read(stored_file.path)
                partial = None if text is None else decoder.decode(text)
                if partial is not None and partial.expires <= now:
                    partial_uploads.append(partial)
        return partial_uploads


def _record(directory: str, partial: PartialUpload) -> str:
    return f"{directory}/{partial.user_id}/{partial.key}"


def _reservation(partial: PartialUpload) -> str:
    return f"{_RESERVED}/{partial.user_id}/{partial.key}-{partial.length}-{partial.expires}"
