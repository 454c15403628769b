"""What delivery hands out, and who makes it look as clients expect."""

from collections.abc import Collection, Hashable, Sequence
from typing import Any, Protocol

from tertulia.model.changes import Entry
from tertulia.model.queues import QueueRecord
from tertulia.model.transients import Transient


class CachedEntry:
    """A committed entry, with its events as they were encoded for each distinct view: what
    `views` and `view_groups` hold is the encoder's business."""

    __slots__ = ("entry", "view_groups", "view_groups_at", "views")

    def __init__(self, entry: Entry) -> None:
        self.revise(entry)

    def revise(self, entry: Entry) -> None:
        """It is told otherwise from now on."""
        self.entry = entry
        self.views: dict[Hashable, Any] = {}
        self.view_groups: dict[Hashable, Sequence[bytes]] = {}
        self.view_groups_at = 0
        """The number of the state in which they were looked at."""


class Encoder(Protocol):
    """How events look, which is the wire's business."""

    def audience(self, entry: Entry) -> Collection[int] | None:
        """The users who may have events from the entry; None for everybody.

        Queues that follow all public channels are asked in any case.
        """

    def events(self, posted: CachedEntry, queue: QueueRecord) -> Sequence[bytes]:
        """The entry's events for the queue, each complete with its ID."""

    def transient_audience(self, transient: Transient) -> Collection[int] | None:
        """The users who may have an event of it; None for everybody."""

    def transient(self, transient: Transient, queue: QueueRecord, event_id: int) -> bytes | None:
        """The event for the queue, if it has one."""

    def heartbeat(self, event_id: int) -> bytes:
        """The event that says nothing but that the connection is alive."""
