"""Tables of text, and formatting values in them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import msgspec

_MIB: Final = 2**20


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return lines with columns as wide as their widest cell."""
    lines = [headings, *(list(map(plain, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Return a line for each name and value."""
    rows = list(pairs)
    width = max((len(name) for name, _ in rows), default=0)
    return [f"{name:<{width}}  {plain(value)}".rstrip() for name, value in rows]


def plain(text: str) -> str:
    """Return people's text with control characters escaped, so that terminals don't obey them."""
    if text.isprintable():
        return text
    return "".join(name if name.isprintable() else repr(name)[1:-1] for name in text)


def cell(value: Any) -> str:
    """Return text as it is, `-` for None, and any other value as JSON."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def contains(text: str, words: Sequence[str] | None) -> bool:
    """Whether the text contains all words, ignoring case."""
    text = text.casefold()
    return all(word.casefold() in text for word in words or ())


def day(at: float | None) -> str:
    """Return the UTC date of a UNIX time, or `-`."""
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def moment(at: float | None) -> str:
    """Return the UTC date and time of a UNIX time, or `-`."""
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%MZ")


def utc(at: float) -> str:
    """Return a UNIX time for a sentence."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def mib(size: int) -> str:
    """Return a number of bytes in MiB."""
    return f"{size / _MIB:.1f} MiB"


def yes(value: bool) -> str:
    """Return `yes` or `no`."""
    return "yes" if value else "no"
