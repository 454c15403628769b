"""What recent entries have written, so that a command that read the database before it decides
knows whether what it read is still true (see `Conflict`)."""

from collections import OrderedDict
from collections.abc import Hashable, Iterable

KEPT = 50_000
"""Things that are remembered. Of those that are forgotten it is only known that they were written
at `floor` or before."""


class RecentWrites:
    """The newest entry that wrote to each thing: a message by its ID, a conversation by its key."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()
        self.floor = 0

    def note(self, things: Iterable[Hashable], seq: int) -> None:
        """The entry writes to these things."""
        for thing in things:
            self._last[thing] = seq
            self._last.move_to_end(thing)
        while len(self._last) > KEPT:
            _, self.floor = self._last.popitem(last=False)

    def since(self, seq: int, things: Iterable[Hashable]) -> bool:
        """Whether one of the things was written to after that entry, as far as is known."""
        if self.floor > seq:
            return True
        return any(self._last.get(thing, 0) > seq for thing in things)
