"""Tables of text, and times in them."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

_MIB: Final = 2**20


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Lines, each column as wide as its widest cell."""
    lines = [headings, *(list(map(plain, row)) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headings))]
    return ["  ".join(map(str.ljust, line, widths)).rstrip() for line in lines]


def facts(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A line for each name and value."""
    found = list(pairs)
    width = max((len(name) for name, _ in found), default=0)
    return [f"{name:<{width}}  {plain(value)}".rstrip() for name, value in found]


def plain(text: str) -> str:
    """What somebody wrote, with nothing in it that a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


def day(at: float | None) -> str:
    """The day of a time in UNIX seconds, of UTC; `-` for none."""
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d")


def moment(at: float | None) -> str:
    """The same with the time."""
    return "-" if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%MZ")


def mib(size: int) -> str:
    """A number of bytes in MiB."""
    return f"{size / _MIB:.1f} MiB"


def yes(value: bool) -> str:
    """`yes` or `no`."""
    return "yes" if value else "no"
