"""Numbers that must not be given twice, even when what had them is gone."""

from msgspec import Struct


class Counter(Struct, frozen=True, kw_only=True):
    """The last ID that was given to a kind of record."""

    name: str
    """The record's table."""
    last: int
