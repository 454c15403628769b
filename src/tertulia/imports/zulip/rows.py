"""Reading values of rows in Zulip's exports. A crafted or damaged export can have any value
anywhere."""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tertulia.imports import references
from tertulia.imports.report import ImportReport
from tertulia.model.reactions import EmojiKind

Row = Mapping[str, Any]

EMOJI_KINDS: Final = {
    "unicode_emoji": EmojiKind.UNICODE,
    "realm_emoji": EmojiKind.CUSTOM,
    "zulip_extra_emoji": EmojiKind.EXTRA,
}
MAX_ID: Final = 2**53 - 1
"""The largest number that all clients can represent."""


def number(row: Row, name: str) -> int | None:
    """Return the non-negative integer in the field, or None if it has something else."""
    value = row.get(name)
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_ID:
        return value
    return None


def days(row: Row, name: str) -> int | None:
    """Return the number of days in the field, or -1 for forever; None if it has something else."""
    return -1 if row.get(name) == -1 else number(row, name)


def text(row: Row, name: str) -> str:
    """Return the text in the field without characters that can't be stored; empty if it has
    something else."""
    value = row.get(name)
    return clean(value) if isinstance(value, str) else ""


def clean(value: str) -> str:
    """Return the text without control characters and unpaired surrogates."""
    if not value.isascii():
        value = value.encode("utf-8", "replace").decode()
    return references.clean(value)


def flag(row: Row, name: str, default: bool = False) -> bool:
    """Return the Boolean in the field."""
    value = row.get(name, default)
    return value if isinstance(value, bool) else default


def seconds(row: Row, name: str) -> int:
    """Return the time in the field in UNIX seconds; 0 if it has something else."""
    value = row.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return int(value) if 0 < value < MAX_ID else 0


def numbers(row: Row, name: str) -> tuple[int, ...]:
    """Return the integers of the list in the field."""
    value = row.get(name)
    return tuple(
        item
        for item in (value if isinstance(value, list) else ())
        if isinstance(item, int) and not isinstance(item, bool) and 0 <= item <= MAX_ID
    )


def valid(
    rows: Iterable[Any], kind: str, needed: tuple[str, ...], report: ImportReport
) -> Iterator[Row]:
    """Yield the rows with a unique ID and integers in the `needed` fields. Other rows are
    reported."""
    seen: set[int] = set()
    for row in rows:
        if not isinstance(row, dict) or any(number(row, text) is None for text in ("id", *needed)):
            report.skip(kind, "A row of the export lacks a field, or has the wrong type.", row)
        elif row["id"] in seen:
            report.skip(kind, "Two rows of the export have the same ID.", row["id"])
        else:
            seen.add(row["id"])
            yield row
