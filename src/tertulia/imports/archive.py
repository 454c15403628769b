"""Opening an export: a directory, or an archive that is extracted with limits."""

import bz2
import gzip
import hashlib
import lzma
import os
import shutil
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, TypeVar

import msgspec
from msgspec import Struct

from tertulia.imports.source import SourceError
from tertulia.imports.stages import StageCounter, TellStage, tell_nobody

MAX_FILES: Final = 20_000_000
MAX_RATIO: Final = 200
"""The largest allowed ratio of extracted to compressed size, beyond `RATIO_FROM` bytes. Text
usually compresses to a tenth or a twentieth."""
RATIO_FROM: Final = 1024**3
"""The size in bytes from which `MAX_RATIO` applies."""
LEAST_FREE: Final = 1024**3
"""Free disk space that extracting leaves, in bytes."""
MAX_PATH: Final = 1024
_MAX_NAME: Final = 255
"""Longest name of a file or directory, in bytes."""
MAX_HEADERS: Final = 16 * 1024 * 1024
"""The most bytes of headers in a tar file between the contents of two files."""
_PIECE: Final = 1024 * 1024
_COMPRESSED: Final[Mapping[bytes, Callable[[IO[bytes]], Any]]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ": lzma.open,
}
"""The function that decompresses a file, by the file's first bytes. It verifies checksums."""

Found = TypeVar("Found", bound=Struct)


def fingerprint_of(path: Path) -> str:
    """Return a text that identifies the export: for a file, from its size and parts of its content;
    for a directory, from the names and sizes of its files."""
    digest = hashlib.sha256()
    if path.is_dir():
        for item in sorted(path.rglob("*")):
            if item.is_file():
                digest.update(os.fsencode(f"{item.relative_to(path)}\0{item.stat().st_size}\0"))
        return digest.hexdigest()[:32]
    size = path.stat().st_size
    digest.update(str(size).encode())
    with path.open("rb") as file:
        for at in sorted({0, size // 2, max(0, size - _PIECE)}):
            file.seek(at)
            digest.update(file.read(_PIECE))
    return digest.hexdigest()[:32]


def save_findings(place: Path, findings: Struct) -> None:
    """Store the findings of the first reading. The file exists only if the reading was complete."""
    part = place.with_suffix(".tmp")
    part.write_bytes(msgspec.json.encode(findings))
    part.rename(place)


def stored_findings(place: Path, kind: type[Found]) -> Found | None:
    """Return the findings of an earlier first reading, or None."""
    try:
        return msgspec.json.decode(place.read_bytes(), type=kind)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def opened_directory(path: Path, work: Path, tell: TellStage = tell_nobody) -> Path:
    """Return the directory with the export's files. An archive is extracted into `work`, unless an
    earlier attempt did.

    Raises SourceError for archives that are damaged, unsafe, or too large.
    """
    if path.is_dir():
        return path
    if not path.is_file():
        raise SourceError(f"{path} doesn't exist.")
    target = work / fingerprint_of(path)
    complete = target.with_suffix(".complete")
    if not complete.exists():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700, parents=True)
        try:
            _extract(path, target, StageCounter(tell, "extracting", path.stat().st_size))
        except SourceError:
            shutil.rmtree(target, ignore_errors=True)
            raise
        except Exception as error:
            shutil.rmtree(target, ignore_errors=True)
            if isinstance(error, OSError) and error.errno is not None:
                raise  # For example, a full disk.
            if not isinstance(error, _DAMAGED):
                raise
            raise SourceError(
                f"{path.name} can't be read: {error}. It may be incomplete; export or download it"
                " again."
            ) from error
        complete.touch()
    return _root(target)


_DAMAGED: Final = (
    *(tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError),
    # zipfile raises NotImplementedError for compression methods that it can't read.
    *(ValueError, NotImplementedError),
)


def _root(directory: Path) -> Path:
    """Return the only subdirectory if the directory has nothing else, as in archives with a single
    top directory."""
    entries = [path for path in directory.iterdir() if path.name != "__MACOSX"]
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else directory


def _extract(path: Path, target: Path, counter: StageCounter) -> None:
    budget = _Budget(path.stat().st_size, target)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.flag_bits & 1:
                    raise SourceError(f"{path.name} is encrypted. Decrypt it first.")
                if not member.is_dir():
                    with archive.open(member) as content:
                        _write(content, target, member.filename, budget)
                counter.add(member.compress_size)
        return
    with _Unpacked(path, counter) as unpacked:
        try:
            # tarfile needs only `read`, whatever its type says. The `with` below closes the file.
            stream = tarfile.open(fileobj=unpacked, mode="r|")  # type: ignore[call-overload]  # noqa: SIM115
        except tarfile.ReadError:
            raise SourceError(
                f"{path.name} is neither a .tar.gz or .zip archive nor a directory."
            ) from None
        with stream:
            while (entry := stream.next()) is not None:
                stream.members.clear()  # Otherwise, tarfile keeps all of them.
                # Links and devices have no place in an export.
                extracted = stream.extractfile(entry) if entry.isfile() else None
                if extracted is not None:
                    _write(extracted, target, entry.name, budget, unpacked.expect)
        while unpacked.read(_PIECE):  # The checksum comes last.
            pass


class _Unpacked:
    """A tar file that may be compressed. Reading is limited between the contents of two files,
    because a crafted file can have endless headers."""

    def __init__(self, path: Path, counter: StageCounter) -> None:
        self._packed: IO[bytes] = path.open("rb")
        self._counter = counter
        self._counted = 0
        begin = self._packed.read(6)
        self._packed.seek(0)
        self._file = self._packed
        for magic, unpacked in _COMPRESSED.items():
            if begin.startswith(magic):
                self._file = unpacked(self._packed)
        self._room = MAX_HEADERS

    def __enter__(self) -> "_Unpacked":
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        self._packed.close()

    def expect(self, size: int) -> None:
        """Allow reading `size` bytes of content in addition to headers."""
        self._room = MAX_HEADERS + size

    def read(self, size: int) -> bytes:
        piece = self._file.read(size)
        at = self._packed.tell()
        self._counter.add(at - self._counted)
        self._counted = at
        self._room -= len(piece)
        if self._room < 0:
            raise SourceError(
                "The archive is damaged: the data between two files is far too large."
            )
        return piece


class _Budget:
    """The limits of extracting an archive."""

    def __init__(self, compressed: int, target: Path) -> None:
        self._limit = max(RATIO_FROM, compressed * MAX_RATIO)
        self._room = shutil.disk_usage(target).free - LEAST_FREE
        self._bytes = self._files = 0

    def take(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._limit:
            raise SourceError("The archive's content is far too large for its size.")
        if self._bytes > self._room:
            raise SourceError("The disk doesn't have enough room to extract the archive.")

    def take_file(self) -> None:
        self._files += 1
        if self._files > MAX_FILES:
            raise SourceError(f"The archive has more than {MAX_FILES} files.")


def _write(
    content: IO[bytes],
    target: Path,
    name: str,
    budget: _Budget,
    expect: Callable[[int], None] = lambda _: None,
) -> None:
    budget.take_file()
    parts = PurePosixPath(name.replace("\\", "/")).parts
    is_long = len(name) > MAX_PATH or any(len(os.fsencode(part)) > _MAX_NAME for part in parts)
    if not parts or name.startswith("/") or ".." in parts or "\0" in name or is_long:
        raise SourceError(f"The archive has a file with an unsafe name: {name[:100]!r}.")
    place = target.joinpath(*parts)
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    except (FileExistsError, NotADirectoryError):
        raise SourceError(
            f"The archive has two files with the same name: {name[:100]!r}. It is damaged."
        ) from None
    with os.fdopen(descriptor, "wb") as file:
        expect(_PIECE)
        while piece := content.read(_PIECE):
            budget.take(len(piece))
            file.write(piece)
            expect(_PIECE)


def file_in(directory: Path, name: str) -> Path:
    """Return the path of a file below the directory. Raises FileNotFoundError if the file doesn't
    exist or is outside the directory, or if the name is invalid."""
    try:
        place = (directory / name).resolve()
        if place.is_relative_to(directory.resolve()) and place.is_file():
            return place
    except (OSError, ValueError, RuntimeError):  # Too long, a null byte, or a loop of links.
        pass
    raise FileNotFoundError(name)
