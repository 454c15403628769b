"""Numbers of things, in words."""

from msgspec import Struct


def counted(number: int, one: str, several: str = "") -> str:
    """`1 day`, `2 days`: the number, and what it counts. `several` is for what takes no `s`."""
    return f"{number} {one}" if number == 1 else f"{number} {several or one + 's'}"


class Counter(Struct, frozen=True, kw_only=True):
    """The last ID that was given to a kind of record."""

    name: str
    """The record's table."""
    last: int
