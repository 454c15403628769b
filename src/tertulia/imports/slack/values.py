"""Reading values of an export, whose types aren't reliable."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeVar

import msgspec

from tertulia.imports.references import clean

T = TypeVar("T")
Record = Mapping[str, Any]
"""A JSON object, with any content."""
MICROSECONDS: Final = 1_000_000
_LATEST: Final = 4_000_000_000
"""UNIX seconds after which a time is a mistake."""

_USUAL_TIME: Final = re.compile(r"[0-9]{10}\.[0-9]{6}")

ANYTHING: Final = msgspec.json.Decoder()
_ESCAPE: Final = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.",
    re.DOTALL,
)


def text(record: Record, *names: str) -> str:
    """Return the first of these fields that is a text and isn't empty."""
    for name in names:
        value = record.get(name)
        if value and isinstance(value, str):
            return value if value.isprintable() else clean(value)
    return ""


def record(parent: Record, name: str) -> Record:
    """Return the object in this field, or an empty one."""
    value = parent.get(name)
    return value if isinstance(value, dict) else {}


def records(parent: Record, name: str) -> Iterator[Record]:
    """Yield the objects of the list in this field."""
    value = parent.get(name)
    if isinstance(value, list):
        yield from (item for item in value if isinstance(item, dict))


def texts(parent: Record, name: str) -> tuple[str, ...]:
    """Return the texts of the list in this field."""
    value = parent.get(name)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def seconds(parent: Record, name: str) -> int:
    """Return the time in this field in UNIX seconds; 0 if it's missing or invalid."""
    value = parent.get(name)
    if isinstance(value, str):
        return microseconds(value) // MICROSECONDS
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and value is not None and 0 <= value <= _LATEST else 0


def microseconds(timestamp: object) -> int:
    """Return a timestamp such as `1355517523.000005` in microseconds; 0 if it is invalid."""
    if isinstance(timestamp, float) and 0 < timestamp < _LATEST:
        return round(timestamp * MICROSECONDS)
    if isinstance(timestamp, str) and _USUAL_TIME.fullmatch(timestamp):
        at = int(timestamp.replace(".", ""))  # Half of the time that the general case takes.
        return at if at < (_LATEST + 1) * MICROSECONDS else 0
    whole, _, part = str(timestamp)[:32].partition(".")
    if not (whole.isascii() and whole.isdecimal()) or int(whole) > _LATEST:
        return 0
    digits = part[:6].ljust(6, "0")
    is_number = digits.isascii() and digits.isdecimal()
    return int(whole) * MICROSECONDS + (int(digits) if is_number else 0)


def decoded(content: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """Decode JSON. Raises ValueError."""
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        pass
    try:
        return decoder.decode(whole_characters(content))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(str(error) or "it is nested too deeply") from error


def whole_characters(content: bytes) -> bytes:
    """Replace unpaired surrogates, which JSON can have but text can't. The length stays the
    same."""
    return _ESCAPE.sub(lambda match: b"\\ufffd" if len(match[0]) == 6 else match[0], content)
