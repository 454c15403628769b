"""Counters of what the log's writer does: plain numbers, read when somebody asks for them."""

import time
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

SECONDS: Final = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
"""Upper bounds for what takes between half a millisecond and some seconds."""
SIZES: Final = (1, 2, 4, 8, 16, 32, 64, 128, 256)
"""Upper bounds for the sizes of groups."""


class Histogram:
    """How many values lay between which bounds. One observation costs a fraction of a
    microsecond."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        """Upper bounds, each belonging to its range."""
        self.counts = [0] * (len(bounds) + 1)
        """By range; the last is beyond all bounds."""
        self.total = 0.0
        """The sum of all values."""

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value


class Measures:
    """What one node's writer has done since the node began."""

    def __init__(self) -> None:
        self.group_sizes = Histogram(SIZES)
        """Commands that were committed together."""
        self.lock_seconds = Histogram(SECONDS)
        """From asking for the log's head until it was this node's."""
        self.commit_seconds = Histogram(SECONDS)
        """From asking for the log's head until the group was on disk."""
        self.entries = 0
        """Entries that were committed."""
        self.forwarded = 0
        """Commands of this node that another one carried out."""
        self.carried_out = 0
        """Commands of other nodes that this one carried out."""
        self.retried = 0
        """Transactions that were begun once more, because the database was lost."""
        self.failed = 0
        """Begins and commits that failed, whatever became of them."""

    def committed(self, commands: int, entries: int, began: float, locked: float) -> None:
        """A group is on disk. The times are of `time.monotonic`: when the writer asked for the
        head, and when it had it."""
        if commands:
            self.group_sizes.observe(commands)
        self.entries += entries
        self.lock_seconds.observe(locked - began)
        self.commit_seconds.observe(time.monotonic() - began)
