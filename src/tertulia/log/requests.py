"""Requests to the log's writer: commands and snapshots, and the group in which it takes them up."""

import asyncio
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from tertulia.model.queues import QueueRecord
from tertulia.state.moment import Verb
from tertulia.state.organization import State
from tertulia.store.database import Connection
from tertulia.store.writing import Note

T = TypeVar("T")
R = TypeVar("R")

ANSWER_SECONDS: Final = 30.0
"""After so long every request is answered with what is known by then, whatever the database
does."""
BEGIN_SECONDS: Final = 6.0
"""While the writer waits for the database, a request that has not begun is refused after this time.
Longer than a node that stands still may hold the head (`WRITING.idle`); and together with
`FORWARDED_SECONDS` and the log's tick, less than 10 seconds."""


def now() -> float:
    """The event loop's time."""
    return asyncio.get_running_loop().time()


@dataclass(eq=False)
class Command:
    """A verb that is to decide at the head of the log."""

    actor_id: int | None
    verb: Verb[Any]
    arguments: tuple[Any, ...]
    notes: Sequence[Note]
    answer: asyncio.Future[Any]
    since: float = field(default_factory=now)
    until: float = math.inf
    """When it must not be decided any more, by the monotonic clock: whoever asked for it gave up
    by then, and decides by itself."""
    is_begun: bool = False
    """Whether it decides or has decided, so that it may come to be done."""
    is_expired: bool = False
    """Whether it was answered that nothing was done, so that nothing may be done."""


@dataclass(eq=False)
class Snapshot(Generic[T, R]):
    """A read of the database and of the state at the same entry. See `Log.snapshot`."""

    reader_id: int | None
    look: Callable[[Connection], T]
    conclude: Callable[[State, T], R]
    queue: Callable[[int], QueueRecord] | None
    answer: asyncio.Future[R]
    registered: QueueRecord | None = None
    """The queue that was committed for it."""
    since: float = field(default_factory=now)


Request = Command | Snapshot[Any, Any]


@dataclass(eq=False)
class Group:
    """What the writer takes up at once."""

    commands: list[Command]
    snapshots: list[Snapshot[Any, Any]]
    notes: list[Note]
    """Those that no command brings. Emptied when they are on disk, or kept for another commit."""
    has_probe: bool
    """Whether one of the notes is there to try whether something can be written."""

    @property
    def registering(self) -> list[Snapshot[Any, Any]]:
        """The snapshots that register a queue."""
        return [snapshot for snapshot in self.snapshots if snapshot.queue is not None]

    @property
    def requests(self) -> list[Request]:
        """The commands and snapshots."""
        return [*self.commands, *self.snapshots]

    @property
    def needs_commit(self) -> bool:
        """Whether there is anything to write."""
        return bool(self.commands or self.notes or self.registering)
