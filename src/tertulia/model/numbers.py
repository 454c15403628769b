"""Numbers with units, pauses between retries, and counters of IDs."""

import random

from msgspec import Struct

UnixSeconds = int
"""A time, in seconds since the UNIX epoch."""


def counted(number: int, text: str, several: str = "") -> str:
    """Return a number with its unit: `1 day`, `2,000 days`. `several` is the plural of units that
    don't form it with `s`."""
    return f"{number:,} {text if number == 1 else several or text + 's'}"


def retry_pause(failures: int, first: float, longest: float, *, spread: float = 0) -> float:
    """Return the pause in seconds before the next attempt, after `failures` failures in a row:
    `first`, doubled with each failure up to `longest`. `spread` is the fraction by which it varies
    at random, so that things that failed together aren't retried together."""
    pause = min(first * 2 ** min(max(failures - 1, 0), 30), longest)
    return float(pause * random.uniform(1 - spread, 1 + spread))  # noqa: S311 (no secret)


class Counter(Struct, frozen=True, kw_only=True):
    """The highest ID that a kind of record ever had."""

    name: str
    """The name of the records' table."""
    last: int
