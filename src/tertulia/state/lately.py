"""What happened lately to things that are not in memory.

A command about a message reads rows first, and decides later. Whether what it read is still so is
told here: the newest entries that touched such rows are remembered, each by what it touched.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

ROOM: Final = 10_000
"""How many things are remembered."""


class Lately:
    """The newest entries by what they touched."""

    def __init__(self, room: int = ROOM) -> None:
        self.floor = 0
        """Of what was touched up to this entry, something may have been forgotten."""
        self._room = room
        self._touched: OrderedDict[Hashable, int] = OrderedDict()

    def touch(self, thing: Hashable, seq: int) -> None:
        """The entry `seq` touched the thing."""
        self._touched[thing] = seq
        self._touched.move_to_end(thing)
        if len(self._touched) > self._room:
            _, forgotten = self._touched.popitem(last=False)
            self.floor = max(self.floor, forgotten)

    def touched(self, thing: Hashable, since: int) -> bool:
        """Whether the thing was touched after the entry `since`, or may have been."""
        return since < self.floor or self._touched.get(thing, 0) > since
