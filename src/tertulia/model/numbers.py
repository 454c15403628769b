"""Numbers with units, and counters of IDs."""

from msgspec import Struct

UnixSeconds = int
"""A time, in seconds since the UNIX epoch."""


def counted(number: int, one: str, several: str = "") -> str:
    """Return a number with its unit: `1 day`, `2 days`. `several` is for units that don't form
    their plural with `s`."""
    return f"{number} {one}" if number == 1 else f"{number} {several or one + 's'}"


class Counter(Struct, frozen=True, kw_only=True):
    """The last ID that was given to a kind of record."""

    name: str
    """The record's table."""
    last: int
