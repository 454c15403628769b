"""Reading BSON, the binary JSON format of MongoDB (https://bsonspec.org).

Fields that aren't wanted are skipped without decoding them, which is faster than decoding whole
documents: Rocket.Chat stores each message a second time, parsed.
"""

import struct
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Any, BinaryIO, Final

MAX_DOCUMENT: Final = 17 * 1024 * 1024
"""Largest document, in bytes. MongoDB's limit is 16 MiB."""
MAX_DEPTH: Final = 60
_SMALL: Final = 200
"""Size in bytes up to which decoded embedded documents are cached."""
_int32: Final = struct.Struct("<i").unpack_from
_INT64: Final = struct.Struct("<q")
_DOUBLE: Final = struct.Struct("<d")
_SIZED: Final = frozenset({0x02, 0x03, 0x04})
"""Texts, documents, and lists, which begin with their size."""
_FIXED: Final = {
    0x01: 8, 0x06: 0, 0x07: 12, 0x08: 1, 0x09: 8, 0x0A: 0, 0x10: 4, 0x11: 8, 0x12: 8, 0x13: 16,
    0x7F: 0, 0xFF: 0,
}  # fmt: skip
"""Size in bytes of values whose type determines it, by type."""


class BadBson(ValueError):
    """The data isn't BSON. `str(error)` says what's wrong."""


def documents(
    file: BinaryIO, wanted: Collection[str] | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the offset and the fields of each document; with `wanted`, only those fields.

    Times are integers, in milliseconds since 1970; object IDs are hexadecimal texts. Documents may
    share embedded ones, so don't change them. Raises BadBson.
    """
    names = None if wanted is None else {name.encode(): name for name in wanted}
    offset = 0
    while header := file.read(4):
        length = _int32(header)[0] if len(header) == 4 else 0
        if not 5 <= length <= MAX_DOCUMENT:
            raise BadBson(f"no document begins at byte {offset}")
        data = header + file.read(length - 4)
        if len(data) != length:
            raise BadBson(f"it ends in the middle of the document at byte {offset}")
        try:
            yield offset, _document(data, 0, length, names, 0)
        except BadBson:
            raise
        except (struct.error, IndexError, KeyError, ValueError) as error:
            raise BadBson(f"the document at byte {offset} is damaged") from error
        offset += length


def _document(
    data: bytes, begin: int, end: int, names: Mapping[bytes, str] | None, depth: int
) -> dict[str, Any]:
    """Decode the document between two positions. `names` are the wanted fields by encoded name."""
    if depth > MAX_DEPTH:
        raise BadBson("documents are nested too deeply")
    result: dict[str, Any] = {}
    at, last = begin + 4, end - 1
    while at < last:
        kind = data[at]
        stop = data.index(0, at + 1, last)
        encoded = data[at + 1 : stop]
        at = stop + 1
        if kind in _SIZED:  # The most frequent kinds.
            size = _int32(data, at)[0]
            if kind == 0x02:
                size += 4
            if size < 5:
                raise IndexError
        else:
            size = _FIXED.get(kind, -1)
            if size < 0:
                size = _size(data, at, kind, last)
        following = at + size
        if following > last:
            raise IndexError
        name = encoded.decode("utf-8", "replace") if names is None else names.get(encoded)
        if name is None:
            pass
        elif kind == 0x02:
            result[name] = data[at + 4 : following - 1].decode("utf-8", "replace")
        else:
            result[name] = _value(data, at, size, kind, depth)
        at = following
    return result


def _size(data: bytes, at: int, kind: int, last: int) -> int:
    """Return the size in bytes of a value whose type doesn't determine it."""
    if kind == 0x0F:  # Code with its scope.
        size = _int32(data, at)[0]
        if size < 5:
            raise IndexError
    elif kind in {0x0D, 0x0E}:  # Code and symbols, with their final zero.
        size = 4 + _int32(data, at)[0]
        if size < 5:
            raise IndexError
    elif kind == 0x05:  # Binary data, after a byte for its kind.
        size = 5 + _int32(data, at)[0]
        if size < 5:
            raise IndexError
    elif kind == 0x0B:  # A regular expression: its pattern and options.
        size = data.index(0, data.index(0, at, last) + 1, last) + 1 - at
    elif kind == 0x0C:  # A pointer: a text and an object ID.
        size = 16 + _int32(data, at)[0]
        if size < 17:
            raise IndexError
    else:
        raise KeyError(kind)
    return int(size)


@lru_cache(maxsize=4096)
def _small_document(data: bytes, depth: int) -> dict[str, Any]:
    """Decode an embedded document. Messages repeat the same ones: their sender, for example."""
    return _document(data, 0, len(data), None, depth)


def _value(data: bytes, at: int, size: int, kind: int, depth: int) -> Any:
    match kind:
        case 0x01:
            return _DOUBLE.unpack_from(data, at)[0]
        case 0x0D | 0x0E:
            return data[at + 4 : at + size - 1].decode("utf-8", "replace")
        case 0x03 if size <= _SMALL:
            return _small_document(data[at : at + size], depth + 1)
        case 0x03:
            return _document(data, at, at + size, None, depth + 1)
        case 0x04:
            return list(_document(data, at, at + size, None, depth + 1).values())
        case 0x05:
            # An older kind of binary data repeats its length.
            return data[at + (9 if data[at + 4] == 2 else 5) : at + size]
        case 0x07:
            return data[at : at + size].hex()
        case 0x08:
            return data[at] != 0
        case 0x09 | 0x12:
            return _INT64.unpack_from(data, at)[0]
        case 0x10:
            return _int32(data, at)[0]
    return None  # Nothing that Rocket.Chat uses.
