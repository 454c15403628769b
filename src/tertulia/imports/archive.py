"""Opening an export: a directory, or an archive that is extracted with limits."""

import hashlib
import os
import shutil
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO, Final

from tertulia.imports.source import SourceError

MAX_FILES: Final = 20_000_000
MAX_RATIO: Final = 200
"""How much larger than the archive its content may be, beyond `RATIO_FROM`. Text is compressed
to a tenth or twentieth."""
RATIO_FROM: Final = 1024**3
"""Bytes."""
LEAST_FREE: Final = 1024**3
"""Bytes of the disk that extracting leaves free."""
MAX_PATH: Final = 1024
_COMPLETE: Final = ".complete"
_PIECE: Final = 1024 * 1024


def fingerprint_of(path: Path) -> str:
    """Return what identifies the export: for a file, its size and parts of its content; for a
    directory, the names and sizes of its files."""
    digest = hashlib.sha256()
    if path.is_dir():
        for one in sorted(path.rglob("*")):
            if one.is_file():
                digest.update(f"{one.relative_to(path)}\0{one.stat().st_size}\0".encode())
        return digest.hexdigest()[:32]
    size = path.stat().st_size
    digest.update(str(size).encode())
    with path.open("rb") as file:
        for at in sorted({0, size // 2, max(0, size - _PIECE)}):
            file.seek(at)
            digest.update(file.read(_PIECE))
    return digest.hexdigest()[:32]


def opened_directory(path: Path, work: Path) -> Path:
    """Return the directory with the export's files. An archive is extracted into `work`, unless an
    earlier attempt did.

    Raises SourceError for archives that are damaged, unsafe, or too large.
    """
    if path.is_dir():
        return path
    if not path.is_file():
        raise SourceError(f"{path} doesn't exist.")
    target = work / fingerprint_of(path)
    if not (target / _COMPLETE).exists():
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(mode=0o700, parents=True)
        try:
            _extract(path, target)
        except (tarfile.TarError, zipfile.BadZipFile, EOFError, OSError, ValueError) as error:
            shutil.rmtree(target, ignore_errors=True)
            if isinstance(error, OSError) and error.errno is not None:
                raise  # Such as a full disk.
            raise SourceError(
                f"{path.name} can't be read: {error}. It may be incomplete; export or download it"
                " again."
            ) from error
        except SourceError:
            shutil.rmtree(target, ignore_errors=True)
            raise
        (target / _COMPLETE).touch()
    return _root(target)


def _root(directory: Path) -> Path:
    """Return the only subdirectory if there is nothing else, as in exports that have their name as
    first directory."""
    entries = [one for one in directory.iterdir() if one.name not in {_COMPLETE, "__MACOSX"}]
    return entries[0] if len(entries) == 1 and entries[0].is_dir() else directory


def _extract(path: Path, target: Path) -> None:
    budget = _Budget(path.stat().st_size, target)
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.flag_bits & 1:
                    raise SourceError(f"{path.name} is encrypted. Decrypt it first.")
                if not member.is_dir():
                    with archive.open(member) as content:
                        _write(content, target, member.filename, budget)
        return
    if not tarfile.is_tarfile(path):
        raise SourceError(
            f"{path.name} isn't an archive that can be read (.tar.gz or .zip), nor a directory."
        )
    with tarfile.open(path, "r|*") as stream:
        for entry in stream:
            # Links and devices have no place in an export.
            extracted = stream.extractfile(entry) if entry.isfile() else None
            if extracted is not None:
                _write(extracted, target, entry.name, budget)


class _Budget:
    """What extracting may take."""

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


def _write(content: IO[bytes], target: Path, name: str, budget: _Budget) -> None:
    budget.take_file()
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or name.startswith("/") or ".." in parts or len(name) > MAX_PATH or "\0" in name:
        raise SourceError(f"The archive has a file with an unsafe name: {name[:100]!r}.")
    place = target.joinpath(*parts)
    place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        while piece := content.read(_PIECE):
            budget.take(len(piece))
            file.write(piece)


def file_in(directory: Path, name: str) -> Path:
    """Return the path of a file below the directory. Raises FileNotFoundError if it doesn't exist
    or is somewhere else."""
    place = (directory / name).resolve()
    if not place.is_relative_to(directory.resolve()) or not place.is_file():
        raise FileNotFoundError(name)
    return place
