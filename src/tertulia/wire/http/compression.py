"""Gzip streams assembled from precompressed and other parts.

A part is raw deflate data that ends at a byte boundary and refers to nothing before it. So parts
can be concatenated, and the length of a part reveals nothing about the others. The stream's
checksum is computed from the parts' checksums.
"""

import struct
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

LEVEL: Final = 1
"""The fastest level. The others take several times as long to save another tenth."""
MIN_COMPRESSED: Final = 128
"""Smallest part that is compressed, in bytes."""
_QUICKLY_SUMMED: Final = 8192
"""The size, in bytes, up to which computing a checksum is faster than combining two."""
_HEADER: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
_END: Final = b"\x03\x00"
"""An empty final block."""
_POLYNOMIAL: Final = 0xEDB88320
_ONE: Final = 1 << 31
"""The polynomial 1, with bits reversed as in the checksum."""


@dataclass(frozen=True, slots=True)
class Compressed:
    """Compressed bytes for repeated use."""

    content: bytes
    stream: bytes
    """Raw deflate that ends at a byte boundary."""
    checksum: int
    shift: int
    """The factor that a preceding checksum is multiplied by."""

    def following(self, checksum: int) -> int:
        """Return the checksum of earlier bytes followed by these bytes."""
        if len(self.content) < _QUICKLY_SUMMED:
            return zlib.crc32(self.content, checksum)
        return _product(self.shift, checksum) ^ self.checksum


def compressed(content: bytes) -> Compressed:
    return Compressed(content, _stream(content), zlib.crc32(content), _shift(len(content)))


def _stream(content: bytes) -> bytes:
    if len(content) < MIN_COMPRESSED:
        return struct.pack("<BHH", 0, len(content), len(content) ^ 0xFFFF) + content
    deflate = zlib.compressobj(LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    return deflate.compress(content) + deflate.flush(zlib.Z_FULL_FLUSH)


def joined(parts: Iterable[bytes | Compressed]) -> bytes:
    """Return the parts as one gzip stream, compressing those that are bytes."""
    streams = [_HEADER]
    checksum = size = 0
    for part in parts:
        if isinstance(part, Compressed):
            streams.append(part.stream)
            checksum = part.following(checksum)
            size += len(part.content)
        else:
            streams.append(_stream(part))
            checksum = zlib.crc32(part, checksum)
            size += len(part)
    streams += (_END, struct.pack("<LL", checksum, size & 0xFFFFFFFF))
    return b"".join(streams)


def accepts(encoding: str, accepted: str) -> bool:
    """Return whether a client with this `Accept-Encoding` accepts the encoding, such as `gzip`."""
    weights: dict[str, str] = {}
    for text in accepted.lower().split(","):
        name, _, weight = text.partition(";")
        weights.setdefault(name.strip(), weight.replace(" ", "").rstrip("0").rstrip("."))
    # `*` stands for all encodings that aren't listed.
    return weights.get(encoding, weights.get("*", "q=0")) not in {"q=", "q=0"}


# The checksum of the whole is that of its beginning, multiplied by x^(8 n) modulo the polynomial of
# CRC-32, plus that of its end, whose size is n bytes.


def _product(a: int, b: int) -> int:
    """Multiply two polynomials modulo that of the checksum."""
    product = 0
    while a:
        if a & _ONE:
            product ^= b
        a = a << 1 & 0xFFFFFFFF
        b = b >> 1 ^ (_POLYNOMIAL if b & 1 else 0)
    return product


def _doublings() -> Iterable[int]:
    """Yield x^8, x^16, x^32, and so on, enough for any size."""
    power = 1 << 23
    for _ in range(48):
        yield power
        power = _product(power, power)


_POWERS: Final = tuple(_doublings())


def _shift(size: int) -> int:
    """Return x^(8 size)."""
    factor = _ONE
    for place, power in enumerate(_POWERS):
        if size >> place & 1:
            factor = _product(power, factor)
    return factor
