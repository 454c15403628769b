"""What waits for the log's writer: how much may, and for how long."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from tertulia.model.errors import OutcomeUnknown, Unavailable
from tertulia.model.queues import QueueRecord
from tertulia.state.moment import Verb
from tertulia.state.organization import State
from tertulia.store.database import Connection
from tertulia.store.writing import InputSeen, Note, PresenceSeen, QueueSeen

T = TypeVar("T")
R = TypeVar("R")

GROUP: Final = 256
"""Commands that are committed together at most."""
QUEUE: Final = 5000
"""Requests that may wait."""
ANSWER_SECONDS: Final = 30.0
"""After so long whoever waits is told how it stands, whatever the database does."""
HELD: Final = 10_000
"""Notes that are kept while nothing can be written."""


def _now() -> float:
    return asyncio.get_running_loop().time()


@dataclass(eq=False)
class Command:
    """One that is to be carried out."""

    actor_id: int | None
    verb: Verb[Any]
    arguments: tuple[Any, ...]
    notes: Sequence[Note]
    answer: asyncio.Future[Any]
    since: float = field(default_factory=_now)
    is_expired: bool = False
    """It was answered that nothing was done, so nothing may be done."""


@dataclass(eq=False)
class Snapshot(Generic[T, R]):
    """A look at the database and at the state at the same entry."""

    reader_id: int | None
    look: Callable[[Connection], T]
    conclude: Callable[[State, T], R]
    queue: Callable[[int], QueueRecord] | None
    answer: asyncio.Future[R]
    registered: QueueRecord | None = None
    """The queue that was written down for it."""
    since: float = field(default_factory=_now)


Request = Command | Snapshot[Any, Any]


class Requests:
    """Those that wait, and those that the writer has in hand."""

    def __init__(self) -> None:
        self.commands: deque[Command] = deque()
        self.snapshots: deque[Snapshot[Any, Any]] = deque()
        self.in_hand: list[Request] = []
        self.is_committing = False
        """Whether what is in hand may be on disk already."""

    def __bool__(self) -> bool:
        return bool(self.commands or self.snapshots)

    def __len__(self) -> int:
        return len(self.commands) + len(self.snapshots)

    def admit(self) -> None:
        """Unavailable where too many wait already."""
        if len(self) >= QUEUE:
            raise Unavailable("Too many changes wait to be written. Nothing was done.")

    def take(self) -> tuple[list[Command], list[Snapshot[Any, Any]]]:
        """The next group of commands, and all snapshots."""
        commands = [self.commands.popleft() for _ in range(min(GROUP, len(self.commands)))]
        snapshots = list(self.snapshots)
        self.snapshots.clear()
        self.in_hand = [*commands, *snapshots]
        return commands, snapshots

    def give_back(
        self, commands: Sequence[Command], snapshots: Sequence[Snapshot[Any, Any]]
    ) -> None:
        """Let those that were taken and have no answer be the next."""
        self.commands.extendleft(c for c in reversed(commands) if not c.answer.done())
        self.snapshots.extendleft(reversed(snapshots))

    def refuse(self, error: Exception, requests: Iterable[Request] | None = None) -> None:
        """Answer these with the error, or else all that wait."""
        if requests is None:
            requests = [*self.commands, *self.snapshots]
            self.commands.clear()
            self.snapshots.clear()
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)

    def expire(self) -> None:
        """Answer those that have waited for too long: they learn what is known."""
        before = _now() - ANSWER_SECONDS
        for queue in (self.commands, self.snapshots):
            while queue and queue[0].since <= before:
                self.refuse(not_done(), [queue.popleft()])
        for request in self.in_hand:
            if request.since > before or request.answer.done():
                continue
            if self.is_committing and isinstance(request, Command):
                self.refuse(OutcomeUnknown(), [request])
                continue
            if isinstance(request, Command):
                request.is_expired = True
            self.refuse(not_done(), [request])


def bounded(notes: Sequence[Note]) -> list[Note]:
    """The notes as far as they may be kept until something can be written again: the oldest of
    those that only say when somebody was seen are given up."""
    surplus = len(notes) - HELD
    kept: list[Note] = []
    for note in notes:
        if surplus > 0 and isinstance(note, QueueSeen | PresenceSeen | InputSeen):
            surplus -= 1
        else:
            kept.append(note)
    return kept


def not_done() -> Unavailable:
    """What is told of a change that was certainly not made."""
    return Unavailable("The change could not be written. Nothing was done.")
