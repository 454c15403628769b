"""What was written of late, for commands that look at the database before they decide.

Such a command reads at one entry of the log and decides at a later one. What it has read is still
so if nothing that it read was touched in between.
"""

from collections import OrderedDict
from collections.abc import Hashable, Iterable

KEPT = 50_000
"""Things that are remembered. Of those that are forgotten it is only known that they were touched
at `floor` or before."""


class Touched:
    """The newest entry that touched each thing: a message by its ID, a conversation by its key."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()
        self.floor = 0

    def note(self, things: Iterable[Hashable], seq: int) -> None:
        """The entry touches these things."""
        for thing in things:
            self._last[thing] = seq
            self._last.move_to_end(thing)
        while len(self._last) > KEPT:
            _, self.floor = self._last.popitem(last=False)

    def since(self, seq: int, things: Iterable[Hashable]) -> bool:
        """Whether one of the things was touched after that entry, as far as is known."""
        if self.floor > seq:
            return True
        return any(self._last.get(thing, 0) > seq for thing in things)
