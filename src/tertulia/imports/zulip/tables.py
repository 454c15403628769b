"""Reading the JSON files of Zulip's exports, which can be larger than memory.

A file is one object whose values are tables: lists of rows. It's read through a window. A row that
doesn't fit in the window enlarges it, up to `MAX_ROW`.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec
from msgspec import Struct

from tertulia.imports.source import SourceError

WINDOW: Final = 256 * 1024
"""Bytes read in one piece."""
MAX_ROW: Final = 64 * 1024 * 1024
"""Largest row, in bytes."""
_BLANKS: Final = b" \t\r\n"
_CLOSED: Final = re.compile(rb"\}[ \t\r\n]*\]")
_MESSAGES: Final = re.compile(r"messages-([0-9]{1,9})\.json")
_COMMA: Final = re.compile(r"[ \t\r\n]*,[ \t\r\n]*")

Rows = list[Any]
RowTypes = Mapping[str, type[Struct]]
"""Types of rows, by table."""


class IgnoredRow(Struct):
    """A row that isn't decoded."""


class ReaderRow(Struct):
    """A row of `zerver_usermessage`: what a person has done with a message."""

    user_profile: int
    message: int
    flags_mask: int


class MessageRow(Struct):
    """The part of a row of `zerver_message` that says who received the message."""

    id: int
    recipient: int


COUNTED: Final[RowTypes] = {"zerver_message": IgnoredRow, "zerver_usermessage": IgnoredRow}
"""Row types for counting rows, which is faster than decoding them."""
_decode_rows = msgspec.json.Decoder(list[Any]).decode
_scan = json.JSONDecoder().raw_decode


def tables(
    path: Path, types: RowTypes | None = None, count: Callable[[int], None] = lambda _: None
) -> Iterator[tuple[str, Rows]]:
    """Yield the rows of the file's tables in pieces, each with the name of its table. A table
    without rows is yielded with an empty list. Rows of tables in `types` have that type, or stay
    plain if they can't be converted. `count` is called with the number of bytes of each piece that
    is read. Raises SourceError if the file is missing or isn't such an object."""
    try:
        file = path.open("rb")
    except OSError:
        raise SourceError(
            f"{path.name} is missing, so the export is incomplete. Export or download it again."
        ) from None
    with file:
        try:
            yield from _Reader(file, path.name, types or {}, count).tables()
        except (ValueError, RecursionError, msgspec.DecodeError) as error:
            raise _invalid(path.name, error) from None


def records(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file that is one list; nothing if it doesn't exist. Raises SourceError if
    it isn't one."""
    if not path.exists():
        return
    with path.open("rb") as file:
        name = f"{path.parent.name}/{path.name}"
        try:
            for rows in _Reader(file, name).list():
                yield from (row for row in rows if isinstance(row, dict))
        except (ValueError, RecursionError, msgspec.DecodeError) as error:
            raise _invalid(name, error) from None


def message_files(directory: Path) -> list[Path]:
    """Return the files with messages, in order. Raises SourceError if some are missing."""
    if any(directory.glob("*.partial*")):
        raise SourceError(
            "The export isn't finished: it has `.partial` files. Run Zulip's export again, and wait"
            " until it ends."
        )
    result = {
        int(name[1]): path
        for path in directory.glob("messages-*.json")
        if (name := _MESSAGES.fullmatch(path.name))
    }
    missing = sorted(set(range(1, max(result, default=0) + 1)) - result.keys())
    if missing:
        raise SourceError(
            f"messages-{missing[0]:06}.json is missing, so the export is incomplete. Export or"
            " download it again."
        )
    return [result[number] for number in sorted(result)]


def is_closed(path: Path) -> bool:
    """Whether the file ends like a JSON object. A truncated file doesn't."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 64))
        return file.read().rstrip(_BLANKS).endswith(b"}")


def _invalid(name: str, error: Exception) -> SourceError:
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    elif "integer string conversion" in str(error):
        reason = "it has a number that is too long"
    else:
        reason = str(error)[:100]
    return SourceError(f"{name} isn't valid JSON ({reason}). Export or download it again.")


@cache
def _decoder(type_: type[Struct]) -> "msgspec.json.Decoder[list[Any]]":
    # The type is known only at run time, so mypy can't check it.
    return msgspec.json.Decoder(list[type_])  # type: ignore[valid-type]


class _Reader:
    def __init__(
        self,
        file: BinaryIO,
        name: str,
        types: RowTypes | None = None,
        count: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._file = file
        self._count = count
        self._name = name
        self._types = types or {}
        self._type: type[Struct] | None = None
        self._window = b""
        self._at = 0
        self._is_whole = False
        """Whether the window reaches the end of the file."""

    def tables(self) -> Iterator[tuple[str, Rows]]:
        self._expect(b"{")
        if self._next() == b"}":
            return
        while True:
            name = self._value()
            if not isinstance(name, str):
                raise ValueError("a name is missing")
            self._expect(b":")
            if self._next() != b"[" and not name.startswith("zerver_"):
                self._value()  # Converters of other exports add such keys.
                yield name, []
            elif self._next() != b"[":
                raise SourceError(
                    f"'{name[:100]}' in {self._name} isn't a list of rows, so the export can't be"
                    " read."
                )
            else:
                yield name, []
                self._type = self._types.get(name)
                for rows in self.list():
                    yield name, rows
            if self._next() == b"}":
                return
            self._expect(b",")

    def list(self) -> Iterator[Rows]:
        """Yield the rows of a list, in pieces."""
        self._expect(b"[")
        yield from self._rows()

    def _rows(self) -> Iterator[Rows]:
        if self._next() == b"]":
            self._at += 1
            return
        separator = b""
        while True:
            if separator:
                yield self._together(separator) or self._separately()
            else:  # The text after one row shows where other rows end.
                yield self._typed([self._value()])
            end = self._at
            after = self._next()
            self._at += 1
            if after == b"]":
                return
            if after != b",":
                raise ValueError("a comma is missing between rows")
            if self._next() == b"{" and end < self._at:
                separator = b"}" + self._window[end : self._at] + b"{"

    def _together(self, separator: bytes) -> Rows:
        """Decode all rows that are complete in the window, if their end can be found quickly.

        The end is a guess from the separator of earlier rows. It's right if everything up to it is
        valid as a list, which it isn't if the guess is within a text or a row.
        """
        if len(self._window) - self._at < WINDOW // 2 and not self._is_whole:
            self._read(0)
        closed = _CLOSED.search(self._window, self._at)
        guesses = (closed.start() if closed else -1, self._window.rfind(separator, self._at))
        for end in guesses:
            if end >= 0:
                try:
                    rows = self._rows_of(b"[" + self._window[self._at : end + 1] + b"]")
                except (msgspec.DecodeError, RecursionError):
                    continue
                self._at = end + 1
                return rows
        return []

    def _rows_of(self, content: bytes) -> Rows:
        if self._type is not None:
            with suppress(msgspec.ValidationError):
                return _decoder(self._type).decode(content)
        return self._typed(_decode_rows(content))

    def _typed(self, rows: Rows) -> Rows:
        """Convert the rows that can be converted."""
        if self._type is None:
            return rows
        result = []
        for row in rows:
            try:
                result.append(msgspec.convert(row, self._type))
            except (msgspec.ValidationError, ValueError):
                result.append(row)
        return result

    def _separately(self) -> Rows:
        """Decode the rows that are complete in the window one by one; at least one."""
        rows = [self._value()]
        text = self._window[self._at :].decode("utf-8", "surrogateescape")
        end = 0
        while (comma := _COMMA.match(text, end)) is not None:
            try:
                value, after = _scan(text, comma.end())
            except json.JSONDecodeError:
                break
            if not isinstance(value, dict):
                break
            rows.append(value)
            end = after
        self._at += len(text[:end].encode("utf-8", "surrogateescape"))
        return self._typed(rows)

    def _value(self) -> Any:
        """Decode one value of any length."""
        while True:
            self._next()
            text = self._window[self._at :].decode("utf-8", "surrogateescape")
            try:
                value, end = _scan(text, 0)
            except json.JSONDecodeError:
                if self._is_whole:
                    raise
            else:
                # A number could continue after the window.
                if end < len(text) or self._is_whole:
                    self._at += len(text[:end].encode("utf-8", "surrogateescape"))
                    return value
            self._read(len(self._window) - self._at)

    def _next(self) -> bytes:
        """Skip white space, and return the next byte without consuming it."""
        while True:
            while self._at < len(self._window):
                byte = self._window[self._at : self._at + 1]
                if byte not in _BLANKS:
                    return byte
                self._at += 1
            if self._is_whole:
                raise ValueError("it ends too early")
            self._read(0)

    def _expect(self, byte: bytes) -> None:
        if self._next() != byte:
            raise ValueError(f"'{byte.decode()}' is missing")
        self._at += 1

    def _read(self, more: int) -> None:
        """Read more into the window, and drop the decoded part."""
        if len(self._window) - self._at > MAX_ROW:
            raise SourceError(f"{self._name} has a row that is far too large.")
        piece = self._file.read(max(WINDOW, more))
        self._count(len(piece))
        self._is_whole = not piece
        self._window = self._window[self._at :] + piece
        self._at = 0
