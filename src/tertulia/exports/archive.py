"""Writing an export: a `.tar.gz`, file after file, in bounded memory."""

import io
import tarfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from tertulia.store.backups import anonymous_file

_LEVEL: Final = 4
"""Of compression. A higher one takes twice as long for a few percent."""
_MODE: Final = 0o600
_encode = msgspec.json.Encoder().encode


class ExportArchive:
    """Adds files to an archive, all in one directory. Files of unknown length are written to
    `work` first, without a name."""

    def __init__(self, file: BinaryIO, directory: str, work: Path, now: float) -> None:
        # Closed by `close`, or not at all if the export fails.
        self._tar = tarfile.open(  # noqa: SIM115
            fileobj=file, mode="w:gz", compresslevel=_LEVEL
        )
        self._directory = directory
        self._work = work
        self._now = int(now)
        self.files = 0

    def close(self) -> None:
        self._tar.close()

    def temporary_file(self) -> BinaryIO:
        return anonymous_file(self._work)

    def add(self, name: str, content: bytes) -> None:
        self._add(name, len(content), io.BytesIO(content))

    def add_json(self, name: str, value: Any) -> None:
        self.add(name, msgspec.json.format(_encode(value), indent=2))

    async def add_stored(self, name: str, chunks: AsyncIterator[bytes]) -> int:
        """Add a file in pieces. Return its size. Raises FileNotFoundError before anything is
        written."""
        with self.temporary_file() as file:
            async for chunk in chunks:
                file.write(chunk)
            return self._add_written(name, file)

    @contextmanager
    def tables(self, name: str) -> Iterator["TableFile"]:
        """Add a JSON file that is written table by table."""
        with self.temporary_file() as file:
            tables = TableFile(file)
            yield tables
            tables.end()
            self._add_written(name, file)

    @contextmanager
    def text(self, name: str) -> Iterator[BinaryIO]:
        """Add a file that is written in pieces."""
        with self.temporary_file() as file:
            yield file
            self._add_written(name, file)

    def _add_written(self, name: str, file: BinaryIO) -> int:
        size = file.tell()
        file.seek(0)
        self._add(name, size, file)
        return size

    def _add(self, name: str, size: int, file: BinaryIO) -> None:
        entry = tarfile.TarInfo(f"{self._directory}/{name}")
        entry.size, entry.mtime, entry.mode = size, self._now, _MODE
        self._tar.addfile(entry, file)
        self.files += 1


class TableFile:
    """A JSON object of tables: lists of rows."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._begin = b'{"'
        self.counts: dict[str, int] = {}
        """Rows by table."""

    def table(self, name: str, rows: Iterable[Mapping[str, Any]]) -> None:
        self.encoded(name, map(_encode, rows))

    def encoded(self, name: str, rows: Iterable[bytes]) -> None:
        """Write a table from encoded rows."""
        write, count = self._file.write, 0
        write(self._begin + name.encode() + b'":[')
        for row in rows:
            if count:
                write(b",")
            write(row)
            count += 1
        write(b"]")
        self._begin = b',"'
        self.counts[name] = count

    def end(self) -> None:
        self._file.write(b"}" if self.counts else b"{}")
