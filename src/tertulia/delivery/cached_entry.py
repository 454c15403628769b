"""An entry of the log in memory, with its events as they were encoded."""

from collections.abc import Hashable, Sequence
from typing import Any

from tertulia.model.changes import Entry


class CachedEntry:
    """A committed entry, with its events as they were encoded for each distinct view: what
    `views`, `grouping` and `view_groups` hold is the encoder's business."""

    __slots__ = ("entry", "grouping", "view_groups", "view_groups_at", "views")

    def __init__(self, entry: Entry) -> None:
        self.revise(entry)

    def revise(self, entry: Entry) -> None:
        """Show this entry from now on, encoded anew."""
        self.entry = entry
        self.views: dict[Hashable, Any] = {}
        self.view_groups: dict[Hashable, Sequence[bytes]] = {}
        self.grouping: Any = None
        self.view_groups_at = 0
        """The sequence number of the state for which `view_groups` and `grouping` hold."""
