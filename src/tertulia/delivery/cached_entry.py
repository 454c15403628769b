"""An entry of the log in memory, with its events as they were encoded."""

from collections.abc import Hashable, Sequence
from sys import getsizeof
from typing import Any, Final

from pyroaring import BitMap

from tertulia.model.changes import (
    Entry,
    MessageEdited,
    MessagesDeleted,
    MessageSent,
    MessagesMoved,
    OnMessage,
)

_NOTHING: Final = BitMap()
OVERHEAD = 1000
"""Bytes that an entry counts for besides what people wrote."""


def entry_size(entry: Entry) -> int:
    """Return the bytes, roughly, that an entry takes in memory."""
    change, size = entry.change, OVERHEAD
    match change:
        case MessageSent():
            size += change.message.text_size
        case MessageEdited():
            size += change.message.text_size
            size += getsizeof(change.was_content) + getsizeof(change.was_rendered)
        case MessagesMoved():
            size += 32 * len(change.message_ids) + len(change.whole_topic)
            size += sum(one.message.text_size for one in change.arrivals if one.message)
        case MessagesDeleted():
            size += 32 * len(change.message_ids)
        case _:
            pass
    return size


def _messages_of(entry: Entry) -> BitMap:
    change = entry.change
    if isinstance(change, MessageSent | MessageEdited):
        return BitMap((change.message.id,))
    if isinstance(change, OnMessage):
        return BitMap((change.place.id,))
    return change.ids if isinstance(change, MessagesMoved) else _NOTHING


class CachedEntry:
    """A committed entry, with its events as they were encoded for each distinct view: what
    `views`, `grouping` and `view_groups` hold is the encoder's business."""

    __slots__ = ("about", "entry", "grouping", "size", "view_groups", "view_groups_at", "views")

    def __init__(self, entry: Entry) -> None:
        self.about = _messages_of(entry)
        """The messages whose deletion, or move to another channel, changes what it shows."""
        self.revise(entry)

    def revise(self, entry: Entry) -> None:
        """Show this entry from now on, encoded anew."""
        self.entry = entry
        self.size = entry_size(entry)
        """Bytes, roughly: of the entry, and of its events as far as they are encoded."""
        self.views: dict[Hashable, Any] = {}
        self.view_groups: dict[Hashable, Sequence[bytes]] = {}
        self.grouping: Any = None
        self.view_groups_at = 0
        """The sequence number of the state for which `view_groups` and `grouping` hold."""
