"""Requests to the log's writer: commands, snapshots, and the groups in which the writer takes
them."""

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Final, Generic, TypeVar

from tertulia.log.health import BEGIN_SECONDS, not_done_error
from tertulia.log.origin import FROM_SERVER, CommandOrigin
from tertulia.model.errors import OutcomeUnknown, Unavailable
from tertulia.model.queues import QueueRecord
from tertulia.state.decision import Verb
from tertulia.state.state import State
from tertulia.store.database import Connection
from tertulia.store.notes import InputSeen, Note, PresenceSeen, Probe, QueueSeen

T = TypeVar("T")
R = TypeVar("R")

ANSWER_SECONDS: Final = 30.0
"""The number of seconds after which every request gets a response with what is known, whatever the
database does."""


def now() -> float:
    """Return the event loop's time."""
    return asyncio.get_running_loop().time()


@dataclass(eq=False)
class Command:
    """A verb to run at the head of the log."""

    actor_id: int | None
    verb: Verb[Any]
    arguments: tuple[Any, ...]
    notes: Sequence[Note]
    answer: asyncio.Future[Any]
    since: float = field(default_factory=now)
    until: float = math.inf
    """The time after which it must not be decided anymore, by the monotonic clock, because its
    sender will have given up and run it itself."""
    origin: CommandOrigin = FROM_SERVER
    """Its origin, for the audit log."""
    is_begun: bool = False
    """Whether it has begun to decide, so that it may take effect."""
    on_folded: Callable[[], None] | None = None
    """Called when its changes are in the state, which isn't on disk yet."""
    is_expired: bool = False
    """Whether the client was told that nothing was done, so that it must not run anymore."""


@dataclass(eq=False)
class Snapshot(Generic[T, R]):
    """A read of the database and the state at the same entry. See `Log.snapshot`."""

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
    """Commands that the writer processes together."""

    commands: list[Command]
    snapshots: list[Snapshot[Any, Any]]
    notes: list[Note]
    """Notes that don't belong to a command. Cleared when they are on disk or kept for another
    commit."""
    has_probe: bool
    """Whether one of the notes only tests whether writing works."""

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
"""The largest number of commands that are committed together."""
MOST_WAITING: Final = 5000
"""The most requests that can wait; others are refused."""
MOST_NOTES: Final = 10_000
"""The most notes that are kept while nothing can be written."""


class Inbox:
    """The requests that wait for the writer or that it's processing, and its other work."""

    def __init__(self) -> None:
        self.has_grown = False
        """Whether the log may have entries that the state lacks. Cleared before they are read."""
        self.is_committing = False
        """Whether the requests being processed may be on disk already."""
        self.is_blocked = False
        """Whether the writer waits for the database, so that no other request can begin."""
        self._commands: deque[Command] = deque()
        self._snapshots: deque[Snapshot[Any, Any]] = deque()
        self._in_hand: list[Request] = []
        self._notes: list[Note] = []
        self._deferred: list[Note] = []
        """Notes that are written with the next commit for another reason: those of a failed commit,
        and those that aren't urgent."""
        self._must_probe = False
        self._wake = asyncio.Event()

    def __bool__(self) -> bool:
        """Return whether the writer has work."""
        return bool(len(self) or self._notes or self.has_grown or self._must_probe)

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return len(self._commands) + len(self._snapshots)

    @property
    def unanswered(self) -> int:
        """The number of requests that wait or are being processed."""
        return len(self) + len(self._in_hand)

    @property
    def actors(self) -> set[int | None]:
        """The actors of commands that wait."""
        return {command.actor_id for command in self._commands}

    # Adding

    def require_room(self) -> None:
        """Raise Unavailable if too many requests wait."""
        if len(self) >= MOST_WAITING:
            raise Unavailable(
                "Too many changes are waiting to be saved. Nothing was changed. Try again."
            )

    def add(self, request: Request) -> None:
        """Queue the request."""
        if isinstance(request, Command):
            self._commands.append(request)
        else:
            self._snapshots.append(request)
        self._wake.set()

    def add_note(self, note: Note) -> None:
        """Write the note with the next commit, within milliseconds."""
        self._notes.append(note)
        self._wake.set()

    def defer_note(self, note: Note) -> None:
        """Write the note with the next commit that happens for another reason."""
        self._deferred.append(note)

    def add_growth(self) -> None:
        """Record that the log may have grown."""
        self.has_grown = True
        self._wake.set()

    def add_probe(self) -> None:
        """Make the writer test whether writing works."""
        self._must_probe = True
        self._wake.set()

    # For the writer

    def wake(self) -> None:
        """Make `wait` return, even if there is no work."""
        self._wake.set()

    async def wait(self) -> None:
        """Return when something was added since the last call."""
        await self._wake.wait()
        self._wake.clear()

    def take(self) -> Group:
        """Return the next group of commands, all snapshots, and the notes. They count as being
        processed until `finish`."""
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
        """Add commands that arrived later to the group, up to its limit. The group mustn't have
        begun to decide."""
        room = GROUP - len(group.commands)
        joining = [self._commands.popleft() for _ in range(min(room, len(self._commands)))]
        group.commands += joining
        self._in_hand += joining

    @contextmanager
    def blocked(self) -> Iterator[None]:
        """Mark the writer as waiting for the database."""
        self.is_blocked = True
        try:
            yield
        finally:
            self.is_blocked = False

    @contextmanager
    def committing(self) -> Iterator[None]:
        """Mark the requests being processed as possibly on disk."""
        self.is_committing = True
        try:
            with self.blocked():
                yield
        finally:
            self.is_committing = False

    def finish(self) -> None:
        """Record that no request is being processed anymore."""
        self._in_hand = []

    def give_back(self, group: Group) -> None:
        """Queue the group's unanswered requests again, in front."""
        again = [command for command in group.commands if not command.answer.done()]
        for command in again:
            command.is_begun = False
        self._commands.extendleft(reversed(again))
        self._snapshots.extendleft(reversed(group.snapshots))

    def keep_notes(self, group: Group) -> None:
        """Keep the group's notes, which couldn't be written, for another commit."""
        kept = [note for note in group.notes if not isinstance(note, Probe)]
        self._deferred = _bounded([*kept, *self._deferred])

    # Failing requests

    def refuse(self, error: Exception, requests: Iterable[Request]) -> None:
        """Answer the unanswered ones of the requests with the error."""
        for request in requests:
            if not request.answer.done():
                request.answer.set_exception(error)

    def discard(self, error: Exception) -> None:
        """Refuse all requests, and drop other work."""
        self.refuse(error, [*self._in_hand, *self._commands, *self._snapshots])
        self._commands.clear()
        self._snapshots.clear()
        self._notes.clear()
        self.has_grown = self._must_probe = False

    def expire(self) -> None:
        """Respond to requests that have waited too long with what is known about them: after
        `ANSWER_SECONDS`, or, while the writer waits for the database, after `BEGIN_SECONDS` if they
        haven't begun."""
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
    """Return up to `MOST_NOTES` of the notes, as far as possible by dropping the oldest of those
    that record when someone was last seen."""
    surplus = len(notes) - MOST_NOTES
    kept: list[Note] = []
    for note in notes:
        if surplus > 0 and isinstance(note, QueueSeen | PresenceSeen | InputSeen):
            surplus -= 1
        else:
            kept.append(note)
    return kept


GATHERED_SECONDS: Final = 0.001
"""The number of seconds for which a group waits for the next regular actor. (The event loop's
resolution is a millisecond.)"""
MOST_SECONDS: Final = 0.005
"""The most seconds for which it waits for all of them. Requests are read and prepared in the
meantime."""
LULL_SECONDS: Final = 0.003
"""The number of seconds without a group after which other nodes have no regular actors."""
OWN_LULL_SECONDS: Final = 0.02
"""The same for this node, whose first of several concurrent commands is committed before the others
are read and prepared."""
_LOOKED_BACK: Final = 4
"""The number of groups from which regular actors are recognized."""
_OFTEN: Final = 2
"""The number of these groups in which a regular actor has a command. The writer doesn't wait for
occasional actors, however many there are."""


class Gathering:
    """Waits briefly for actors who write all the time, so that a group includes all their commands.
    Only the writer uses it.

    Clients answered by the last group send their next command one shortly after the other. A group
    that began with the first of them would contain half, and each group costs a transaction with
    everything that belongs to it: a commit to disk or two exchanges with the database, a turn of a
    thread, and a wake-up of every other node.
    """

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._groups: deque[frozenset[int | None]] = deque(maxlen=_LOOKED_BACK)
        """The actors of the last groups, the newest first."""
        self._ordered_at = -math.inf
        """The time when a group last contained commands of other nodes."""
        self._ended = -math.inf
        """The time when the last group was committed."""

    async def wait(self, group: Group) -> None:
        """Return when all regular actors have a command in this group or waiting, or when no more
        of them arrive for a while."""
        if not group.commands:
            return
        missing = self._regulars(time.monotonic()) - {
            command.actor_id for command in group.commands
        }
        missing -= self._inbox.actors
        if not missing:
            return
        is_over = False

        def give_up() -> None:
            nonlocal is_over
            is_over = True
            self._inbox.wake()

        loop = asyncio.get_running_loop()
        until = loop.time() + MOST_SECONDS
        timer = loop.call_later(GATHERED_SECONDS, give_up)
        try:
            while missing and not is_over:
                await self._inbox.wait()
                if not missing.isdisjoint(self._inbox.actors):
                    missing -= self._inbox.actors
                    timer.cancel()
                    timer = loop.call_at(min(loop.time() + GATHERED_SECONDS, until), give_up)
        finally:
            timer.cancel()

    def _regulars(self, now: float) -> set[int | None]:
        """Return the regular actors, who write constantly."""
        since = now - self._ended
        if since <= LULL_SECONDS and now - self._ordered_at <= LULL_SECONDS * 2:
            # Commands from other nodes arrive one after the other, in any group.
            return set[int | None]().union(*islice(self._groups, 2))
        if since > OWN_LULL_SECONDS:
            return set()
        counts = Counter(chain.from_iterable(self._groups))
        return {count for count, groups in counts.items() if groups >= _OFTEN}

    def committed(self, group: Group) -> None:
        """Record that the group is on disk."""
        self._ended = time.monotonic()
        if group.commands:
            self._groups.appendleft(frozenset(command.actor_id for command in group.commands))
        if any(command.until < math.inf for command in group.commands):
            self._ordered_at = self._ended
