"""Requests to the log's writer: commands and snapshots, and the group in which it takes them up."""

import asyncio
import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from tertulia.log.errors import not_done_error
from tertulia.model.errors import OutcomeUnknown, Unavailable
from tertulia.model.queues import QueueRecord
from tertulia.state.decision import Verb
from tertulia.state.state import State
from tertulia.store.database import Connection
from tertulia.store.notes import InputSeen, Note, PresenceSeen, Probe, QueueSeen

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


GROUP: Final = 256
"""Commands that are committed together at most."""
MOST_WAITING: Final = 5000
"""Requests that may wait; beyond it they are refused."""
MOST_NOTES: Final = 10_000
"""Notes that are kept while nothing can be written."""


class Inbox:
    """The requests that wait for the writer, those that it has in hand, and its other work."""

    def __init__(self) -> None:
        self.has_grown = False
        """Whether the log may have entries that the state has not. Set false before they are
        read."""
        self.is_committing = False
        """Whether what is in hand may be on disk already."""
        self.is_blocked = False
        """Whether the writer waits for the database, so that nothing else can begin."""
        self._commands: deque[Command] = deque()
        self._snapshots: deque[Snapshot[Any, Any]] = deque()
        self._in_hand: list[Request] = []
        self._notes: list[Note] = []
        self._deferred: list[Note] = []
        """Notes that are written with the next commit that there is another reason for: those of
        a commit that failed, and those without hurry."""
        self._must_probe = False
        self._wake = asyncio.Event()

    def __bool__(self) -> bool:
        """Whether there is something to do for the writer."""
        return bool(len(self) or self._notes or self.has_grown or self._must_probe)

    def __len__(self) -> int:
        """How many requests wait."""
        return len(self._commands) + len(self._snapshots)

    @property
    def unanswered(self) -> int:
        """How many requests wait or are in hand."""
        return len(self) + len(self._in_hand)

    @property
    def actors(self) -> set[int | None]:
        """Whose commands wait."""
        return {command.actor_id for command in self._commands}

    # What comes in

    def require_room(self) -> None:
        """Unavailable where too many requests wait already."""
        if len(self) >= MOST_WAITING:
            raise Unavailable(
                "Too many changes are waiting to be saved. Nothing was changed. Try again."
            )

    def add(self, request: Request) -> None:
        """Let the request wait for its turn."""
        if isinstance(request, Command):
            self._commands.append(request)
        else:
            self._snapshots.append(request)
        self._wake.set()

    def add_note(self, note: Note) -> None:
        """Have the note written within a moment."""
        self._notes.append(note)
        self._wake.set()

    def defer_note(self, note: Note) -> None:
        """Have the note written with the next commit that there is another reason for."""
        self._deferred.append(note)

    def add_growth(self) -> None:
        """The log may have grown."""
        self.has_grown = True
        self._wake.set()

    def add_probe(self) -> None:
        """Have the writer try whether something can be written."""
        self._must_probe = True
        self._wake.set()

    # The writer's side

    def wake(self) -> None:
        """Have `wait` return, although there may be nothing to do."""
        self._wake.set()

    async def wait(self) -> None:
        """Return when something came in since the last time."""
        await self._wake.wait()
        self._wake.clear()

    def take(self) -> Group:
        """The next group of commands, all snapshots, and the notes. They are in hand until
        `finish`."""
        commands = [self._commands.popleft() for _ in range(min(GROUP, len(self._commands)))]
        snapshots = list(self._snapshots)
        self._snapshots.clear()
        notes, self._notes = self._notes, []
        has_probe, self._must_probe = self._must_probe, False
        if has_probe:
            notes.append(Probe())
        group = Group(commands, snapshots, notes, has_probe)
        if group.needs_commit:
            notes[:0] = self._deferred
            self._deferred = []
        self._in_hand = group.requests
        return group

    def join(self, group: Group) -> None:
        """Let the commands that came since the group was taken be of it too, as far as there is
        room. Nothing of it may be decided yet."""
        room = GROUP - len(group.commands)
        joining = [self._commands.popleft() for _ in range(min(room, len(self._commands)))]
        group.commands += joining
        self._in_hand += joining

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """For the time that the writer waits for the database."""
        self.is_blocked = True
        try:
            yield
        finally:
            self.is_blocked = False

    @contextmanager
    def committing(self) -> Iterator[None]:
        """For the time in which what is in hand may come to be on disk."""
        self.is_committing = True
        try:
            with self.blocked():
                yield
        finally:
            self.is_committing = False

    def finish(self) -> None:
        """Nothing is in hand any more."""
        self._in_hand = []

    def give_back(self, group: Group) -> None:
        """Let the group's requests that have no answer be the next."""
        again = [command for command in group.commands if not command.answer.done()]
        for command in again:
            command.is_begun = False
        self._commands.extendleft(reversed(again))
        self._snapshots.extendleft(reversed(group.snapshots))

    def keep_notes(self, group: Group) -> None:
        """Have the group's notes, which could not be written, written with another commit."""
        kept = [note for note in group.notes if not isinstance(note, Probe)]
        self._deferred = _bounded([*kept, *self._deferred])

    # Answers without success

    def refuse(self, error: Exception, requests: Iterable[Request]) -> None:
        """Answer those of the requests that have no answer yet with the error."""
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)

    def discard(self, error: Exception) -> None:
        """Nothing will be done any more: refuse what waits and what is in hand, and forget the
        rest."""
        self.refuse(error, [*self._in_hand, *self._commands, *self._snapshots])
        self._commands.clear()
        self._snapshots.clear()
        self._notes.clear()
        self.has_grown = self._must_probe = False

    def expire(self) -> None:
        """Answer the requests that have waited for too long with what is known of them: after
        `ANSWER_SECONDS`, and while the writer waits for the database, after `BEGIN_SECONDS` if they
        have not begun."""
        time = now()
        waiting = BEGIN_SECONDS if self.is_blocked else ANSWER_SECONDS
        for queue in (self._commands, self._snapshots):
            while queue and queue[0].since <= time - waiting:
                self.refuse(not_done_error(), [queue.popleft()])
        for request in self._in_hand:
            if request.answer.done():
                continue
            if isinstance(request, Command):
                if self.is_committing or request.is_begun:
                    if request.since <= time - ANSWER_SECONDS:
                        self.refuse(OutcomeUnknown(), [request])
                    continue
                request.is_expired = request.since <= time - waiting
            if request.since <= time - waiting:
                self.refuse(not_done_error(), [request])


def _bounded(notes: Sequence[Note]) -> list[Note]:
    """At most `MOST_NOTES` of the notes, as far as that goes by giving up the oldest of those that
    only say when somebody was last seen."""
    surplus = len(notes) - MOST_NOTES
    kept: list[Note] = []
    for note in notes:
        if surplus > 0 and isinstance(note, QueueSeen | PresenceSeen | InputSeen):
            surplus -= 1
        else:
            kept.append(note)
    return kept
