"""The collections of a dump of Rocket.Chat's database."""

import base64
import gzip
import io
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Final, cast

import apsw
import msgspec

from tertulia.imports.archive import LEAST_FREE
from tertulia.imports.rocketchat.bson import MAX_DOCUMENT, BadBson, documents
from tertulia.imports.sorting import require_room
from tertulia.imports.source import SourceError

BUCKETS: Final = {
    "uploads": "rocketchat_uploads.chunks",
    "avatars": "rocketchat_avatars.chunks",
    "emoji": "custom_emoji.chunks",
}
"""Collections with the content of files, in chunks."""
_ENDINGS: Final = (".bson", ".bson.gz", ".json", ".json.gz")
_ARCHIVE: Final = bytes.fromhex("6de29981")
"""The first bytes of `mongodump --archive`."""
_GZIP: Final = b"\x1f\x8b"
_DEEPEST: Final = 4
"""Levels of directories above the files of a dump."""
_PIECE: Final = 1024 * 1024
_DATE: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?)(?:Z|\+00:?00)?")


def dump_directory(directory: Path) -> Path:
    """Return the directory with the collections: this one or one below it. Raises SourceError."""
    paths = [
        place
        for depth in range(_DEEPEST)
        for ending in _ENDINGS
        for place in sorted(directory.glob("*/" * depth + f"users{ending}"))
        if any((place.parent / f"rocketchat_message{item}").exists() for item in _ENDINGS)
    ]
    if not paths:
        raise SourceError(
            "The export has no collections `users` and `rocketchat_message`, so it isn't a dump of"
            " Rocket.Chat's database. Create one with `mongodump`."
        )
    if len({path.parent for path in paths}) > 1:
        names = ", ".join(str(path.parent.relative_to(directory)) for path in paths[:5])
        raise SourceError(
            f"The export has several databases ({names}). Pass the directory of one of them."
        )
    return paths[0].parent


def require_directory_dump(path: Path) -> None:
    """Raise SourceError for a dump in a single file, whose collections are interleaved."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        begin = file.read(4)
    if begin.startswith(_GZIP):
        try:
            with gzip.open(path) as packed:
                begin = packed.read(4)
        except (OSError, EOFError, zlib.error):
            return  # Extracting it will say what's wrong.
    if begin == _ARCHIVE:
        raise SourceError(
            f"{path.name} was made by `mongodump --archive`, which isn't supported. Run `mongodump`"
            " without `--archive`, and pass its directory."
        )


class Dump:
    """Reads collections, in BSON or JSON (`mongoexport`), compressed or not."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def place(self, collection: str) -> Path | None:
        """Return the path of a collection's file, or None if it's missing."""
        for ending in _ENDINGS:
            place = self.directory / f"{collection}{ending}"
            if place.is_file():
                return place
        return None

    def read(
        self,
        collection: str,
        wanted: Collection[str] | None,
        count: Callable[[int], None] = lambda _: None,
    ) -> Iterator[dict[str, Any]]:
        """Yield the documents of a collection, with only the wanted fields; none if it's missing.
        `count` is as in `opened`. Raises SourceError."""
        place = self.place(collection)
        if place is None:
            return
        with opened(place, count) as file:
            for _, document in _read(place, file, wanted):
                yield document

    def size(self, collections: Iterable[str]) -> int:
        """Return the size of the collections' files, in bytes."""
        return sum(place.stat().st_size for c in collections if (place := self.place(c)))


class _CountedFile(io.FileIO):
    """A file that counts the bytes that are read from it."""

    def __init__(self, place: Path, count: Callable[[int], None]) -> None:
        super().__init__(place)
        self._count = count

    def readinto(self, buffer: Any) -> int:
        number = super().readinto(buffer) or 0
        self._count(number)
        return number


def opened(place: Path, count: Callable[[int], None] = lambda _: None) -> BinaryIO:
    """Open a file of a dump. `count` is called with the number of bytes of each piece that is read
    from the disk."""
    file = io.BufferedReader(_CountedFile(place, count), _PIECE)
    if place.suffix != ".gz":
        return file
    packed: Any = gzip.GzipFile(fileobj=file)
    packed.myfileobj = file  # Closing `packed` closes the file, too.
    return cast(BinaryIO, packed)


def _read(
    place: Path, file: BinaryIO, wanted: Collection[str] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        is_json = ".json" in place.suffixes[-2:]
        yield from _json_lines(file, wanted) if is_json else documents(file, wanted)
    except (BadBson, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise SourceError(
            f"{place.name} can't be read: {error}. The dump may be incomplete; create or copy it"
            " again."
        ) from error


# mongoexport's JSON


def _json_lines(
    file: BinaryIO, wanted: Collection[str] | None
) -> Iterator[tuple[int, dict[str, Any]]]:
    offset = 0
    while line := file.readline(2 * MAX_DOCUMENT):
        if line.startswith(b"["):
            raise BadBson("it's one list; run mongoexport without --jsonArray")
        if line.strip():
            try:
                decoded = msgspec.json.decode(line)
                if not isinstance(decoded, dict):
                    raise BadBson(f"the line at byte {offset} isn't an object")
                kept = {
                    name: value
                    for name, value in decoded.items()
                    if wanted is None or name in wanted
                }
                document = {name: _plain(value) for name, value in kept.items()}
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise BadBson(f"the line at byte {offset} isn't JSON") from error
            except RecursionError as error:
                raise BadBson(f"the line at byte {offset} is nested too deeply") from error
            yield offset, document
        offset += len(line)


def _plain(value: Any) -> Any:
    """Return a value of MongoDB's extended JSON as `documents` does."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    if not value or not next(iter(value)).startswith("$"):
        return {name: _plain(item) for name, item in value.items()}
    name, given = next(iter(value.items()))
    try:
        if name == "$date":
            return _time(_plain(given))
        if name in {"$numberLong", "$numberInt"}:
            return int(given)
        if name == "$numberDouble":
            return float(given)
        if name == "$binary":
            return base64.b64decode(given["base64"] if isinstance(given, dict) else given)
    except (ValueError, TypeError, KeyError, OverflowError):
        return None
    return given if name == "$oid" else None


def _time(given: Any) -> int | None:
    if isinstance(given, int):
        return given
    match = _DATE.fullmatch(given) if isinstance(given, str) else None
    if match is None:
        return None
    return round(datetime.fromisoformat(f"{match[1]}+00:00").timestamp() * 1000)


# Files in the database (GridFS)


class GridFiles:
    """The files in a dump's GridFS. An index has the position of each chunk."""

    def __init__(self, dump: Dump, scratch: Path) -> None:
        """`scratch` is the path of the index. Decompressed collections are next to it."""
        self._dump = dump
        self._scratch = scratch
        self._database: apsw.Connection | None = None

    def index(self, count: Callable[[int], None] = lambda _: None) -> None:
        """Read all chunks once, and store their positions. `count` is as in `opened`."""
        self.close()
        self._scratch.unlink(missing_ok=True)
        database = self._database = apsw.Connection(str(self._scratch))
        database.execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF").fetchall()
        database.execute(
            "CREATE TABLE pieces (bucket TEXT, file TEXT, number INTEGER, offset INTEGER,"
            " PRIMARY KEY (bucket, file, number)) WITHOUT ROWID"
        ).fetchall()
        database.execute(
            "CREATE TABLE stores (file TEXT PRIMARY KEY, store TEXT) WITHOUT ROWID"
        ).fetchall()
        with database:
            for upload in self._dump.read("rocketchat_uploads", {"_id", "store"}):
                if isinstance(upload.get("_id"), str) and isinstance(upload.get("store"), str):
                    row = (upload["_id"], upload["store"][:100])
                    database.execute("INSERT OR IGNORE INTO stores VALUES (?, ?)", row)
            for bucket, collection in BUCKETS.items():
                place = self._dump.place(collection)
                if place is None:
                    continue
                plain = self._seekable(place, count)
                with opened(plain, count if plain == place else lambda _: None) as file:
                    for offset, piece in _read(_without_gz(place), file, {"files_id", "n"}):
                        file_id, number = piece.get("files_id"), piece.get("n")
                        if isinstance(file_id, str) and isinstance(number, int):
                            database.execute(
                                "INSERT OR IGNORE INTO pieces VALUES (?, ?, ?, ?)",
                                (bucket, file_id, max(0, min(number, 2**40)), offset),
                            )

    def has(self, bucket: str, file_id: str) -> bool:
        """Whether the dump has a chunk of the file."""
        return bool(self._offsets(bucket, file_id, 1))

    def store(self, file_id: str) -> str:
        """Return the store of an upload in Rocket.Chat, such as `AmazonS3:Uploads`; empty if the
        dump doesn't say."""
        database = self._connected()
        if database is None:
            return ""
        result = database.execute("SELECT store FROM stores WHERE file = ?", (file_id,)).fetchone()
        return "" if result is None else result[0]

    def open(self, bucket: str, file_id: str) -> BinaryIO:
        """Open a file. Raises FileNotFoundError."""
        place = self._dump.place(BUCKETS.get(bucket, ""))
        offsets = self._offsets(bucket, file_id, -1)
        if place is None or not offsets:
            raise FileNotFoundError(file_id)
        content = self._seekable(place).open("rb")
        return io.BufferedReader(_Pieces(_without_gz(place), content, offsets))

    def close(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def _connected(self) -> apsw.Connection | None:
        """Return the index, or None if it doesn't exist."""
        if self._database is None and self._scratch.exists():
            self._database = apsw.Connection(str(self._scratch), flags=apsw.SQLITE_OPEN_READONLY)
        return self._database

    def _offsets(self, bucket: str, file_id: str, most: int) -> list[int]:
        database = self._connected()
        if database is None:
            return []
        rows = database.execute(
            "SELECT offset FROM pieces WHERE bucket = ? AND file = ? ORDER BY number LIMIT ?",
            (bucket, file_id, most),
        )
        return [row[0] for row in rows]

    def _seekable(self, place: Path, count: Callable[[int], None] = lambda _: None) -> Path:
        """Return the path of the collection's file, decompressed if necessary."""
        if place.suffix != ".gz":
            return place
        target = self._scratch.parent / place.stem
        if not target.exists():
            part = target.with_name(f"{target.name}.part")
            with opened(place, count) as packed, part.open("wb") as file:
                try:
                    while piece := packed.read(_PIECE):
                        require_room(self._scratch, LEAST_FREE)
                        file.write(piece)
                except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                    raise SourceError(f"{place.name} can't be read: {error}.") from error
            part.rename(target)
        return target


def _without_gz(place: Path) -> Path:
    return place.with_suffix("") if place.suffix == ".gz" else place


class _Pieces(io.RawIOBase):
    """The content of a file, read from its chunks."""

    def __init__(self, place: Path, content: BinaryIO, offsets: list[int]) -> None:
        self._place = place
        self._content = content
        self._offsets = iter(offsets)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            offset = next(self._offsets, None)
            if offset is None:
                return 0
            self._content.seek(offset)
            _, piece = next(_read(self._place, self._content, {"data"}))
            data = piece.get("data")
            self._rest = memoryview(data if isinstance(data, bytes) else b"")
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def close(self) -> None:
        self._content.close()
        super().close()
