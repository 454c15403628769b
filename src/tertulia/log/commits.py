"""Group commit: waiting commands decide one after the other, and are written together."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tertulia import tracing
from tertulia.log.errors import not_done_error
from tertulia.log.forwarding import Forwarding
from tertulia.log.freshness import Freshness
from tertulia.log.gathering import Gathering
from tertulia.log.measures import Measures
from tertulia.log.replica import Replica, Subscribers
from tertulia.log.requests import BEGIN_SECONDS, GROUP, Command, Group, Inbox
from tertulia.log.transactions import NotBegun, Transactions
from tertulia.model.changes import Entry, MessageSent
from tertulia.model.errors import NotAuthenticated, NotBeforeUpgrade, Refused, Unavailable
from tertulia.state import user_visibility
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.fold import fold
from tertulia.state.service_calls import calls_for
from tertulia.state.state import State
from tertulia.store.installation import Position
from tertulia.store.log_formats import LOG_FORMAT, needed_format
from tertulia.store.notes import CallQueued, MailQueued, Note
from tertulia.store.writing import Batch

TURN_SECONDS: Final = 0.01
"""For so long commands decide one after the other before the event loop runs other tasks."""


class FoldFailed(Exception):
    """A verb decided on a change that cannot be folded: a mistake of ours in that verb."""

    def __init__(self, command: Command) -> None:
        self.command = command
        super().__init__("a change could not be folded")


async def decide(
    state: State,
    command: Command,
    now: float,
    entries: list[Entry],
    asked: list[MailQueued | CallQueued],
    log_format: int = LOG_FORMAT,
) -> Any:
    """Let the command decide, fold its changes into the state, and append them to `entries`; and to
    `asked` its mails, and the calls of bots' services that its messages lead to. Returns its
    result, or its exception. FoldFailed where the state must not be used any more. `log_format` is
    the newest in which something may be written."""
    turn = time.perf_counter()
    command.is_begun = True
    try:
        decision: Decision[Any] = command.verb(
            moment_of(state, now, command.actor_id), *command.arguments
        )
    except Refused as refusal:
        # Its traceback knows the command, whose answer it is: both would stay until a full garbage
        # collection.
        return refusal.with_traceback(None)
    except Exception as error:  # A mistake of ours in one command is that command's alone.
        return error
    if log_format < LOG_FORMAT and needed_format(decision.changes) > log_format:
        return NotBeforeUpgrade()
    if time.perf_counter() - turn > TURN_SECONDS:
        await asyncio.sleep(0)  # The state stays: only the writer changes it.
        turn = time.perf_counter()
    try:
        for change in user_visibility.accompanied(state, decision.changes):
            entry = Entry(state.seq + 1, now, command.actor_id, change)
            fold(state, entry)
            entries.append(entry)
            if isinstance(change, MessageSent):
                asked.extend(CallQueued(call, now) for call in calls_for(state, change.message))
            if time.perf_counter() - turn > TURN_SECONDS:
                # At each entry the state is whole: other nodes come by it as well.
                await asyncio.sleep(0)
                turn = time.perf_counter()
    except Exception as error:
        raise FoldFailed(command) from error
    asked.extend(MailQueued(mail, now) for mail in decision.mails)
    return decision.result


def moment_of(state: State, now: float, actor_id: int | None) -> CommandContext:
    """The state as a verb sees it. NotAuthenticated where the actor is deactivated by now."""
    if actor_id is None:
        return CommandContext(state, now, None)
    actor = state.users.get(actor_id)
    if actor is None or not actor.is_active:
        raise NotAuthenticated("This account is deactivated.")
    return CommandContext(state, now, actor.id)


RELOAD_WAIT_SECONDS: Final = 5.0
"""How long a request that only reads waits for a state that is loaded again."""


class Durability:
    """How the state and the disk stand to each other. The writer says it, answers wait for it."""

    def __init__(self) -> None:
        self.generation = 0
        """How many times the state had to be thrown away."""
        self._settling: asyncio.Future[None] | None = None
        """Is done when it is known whether the state is on disk; None where it is."""
        self._since = 0.0
        self._loaded = asyncio.Event()
        """Not set while the state is thrown away and not yet loaded again."""
        self._loaded.set()

    # For the writer

    def begin(self) -> None:
        """From now on the state is ahead of the disk."""
        self._settling = asyncio.get_running_loop().create_future()
        self._since = time.monotonic()

    def succeed(self) -> None:
        """What the state shows is on disk."""
        if self._settling is not None and not self._settling.done():
            self._settling.set_result(None)
        self._settling = None

    def fail(self) -> None:
        """What the state shows will not be on disk: it is thrown away. Until `restore`, whoever
        waits for it is refused at once."""
        self.generation += 1
        self._loaded.clear()
        if self._settling is None:
            self.begin()
        self._refuse()

    def restore(self) -> None:
        """The state is loaded again."""
        self._settling = None
        self._loaded.set()

    def expire(self) -> None:
        """Refuse those who wait for longer than `BEGIN_SECONDS`."""
        if self._settling is not None and time.monotonic() - self._since > BEGIN_SECONDS:
            self._refuse()

    def _refuse(self) -> None:
        settling = self._settling
        if settling is not None and not settling.done():
            settling.set_exception(not_done_error())
            settling.exception()  # It is no mistake if nobody waits for it.

    # For answers

    async def settled(self, since: int | None = None) -> None:
        """See `Log.settled`."""
        if self._settling is not None:
            await asyncio.shield(self._settling)
        if since is not None and since != self.generation:
            raise Unavailable("The server had to reload its data. Try again.")

    def when_settled(self, report: Callable[[Exception | None], None]) -> None:
        """See `Log.when_settled`."""
        if self._settling is None:
            report(None)
            return
        self._settling.add_done_callback(
            lambda settled: report(not_done_error() if settled.exception() else None)
        )

    async def was_reloaded(self, since: int) -> bool:
        """See `Log.was_reloaded`."""
        if self.generation == since:
            return False
        try:
            async with asyncio.timeout(RELOAD_WAIT_SECONDS):
                await self._loaded.wait()
        except TimeoutError:
            return False
        return True


AT_ONCE: Final = 500
"""Entries of which the followers are told before the event loop runs other tasks."""


class _Decided(NamedTuple):
    """What a group of commands decided."""

    entries: list[Entry]
    asked: list[MailQueued | CallQueued]
    outcomes: list[tuple[Command, Any]]
    """Each command with its result or exception."""

    @property
    def notes(self) -> list[Note]:
        """Those of the commands that were not refused, and what they asked for."""
        done = (c for c, outcome in self.outcomes if not isinstance(outcome, BaseException))
        return [*(note for command in done for note in command.notes), *self.asked]


@dataclass(frozen=True)
class Commits:
    """Commits groups. Used by the writer alone, one at a time."""

    transactions: Transactions
    inbox: Inbox
    replica: Replica
    durability: Durability
    freshness: Freshness
    subscribers: Subscribers
    measures: Measures
    forwarding: Forwarding
    gathering: Gathering
    clock: Callable[[], float]
    """Tells UNIX seconds."""

    async def commit(self, group: Group) -> None:
        """Carry the group's commands out and answer them, write its notes, and register its
        snapshots' queues.

        Where nothing can be written now, what was to be written is refused, and the notes are kept.
        After an exception the state must not be used any more, and nobody was answered. After
        OutcomeNotKnown the group may be on disk, after all others it is not; FoldFailed is the
        mistake of one command.
        """
        try:
            if self.freshness.write_trouble:
                with self.inbox.blocked():
                    growth = await self.transactions.prove(self._position)
                self.replica.adopt(growth)
            with tracing.span("commit", commands=len(group.commands), notes=len(group.notes)):
                await self._commit(group)
        except NotBegun as error:
            self.transactions.failed(error.__cause__ or error)
            self.inbox.keep_notes(group)
            self.inbox.refuse(not_done_error(), [*group.commands, *group.registering])
        group.notes.clear()  # They are on disk, or kept.

    async def _commit(self, group: Group) -> None:
        self.inbox.has_grown = False
        began = time.monotonic()
        with self.replica.hearing():  # What is missing comes with the lock.
            await self.gathering.wait(group)
            with self.inbox.blocked():
                growth = await self.transactions.begin(self._position)
        locked = time.monotonic()
        self.replica.adopt(growth)
        self.freshness.verified(began)
        # What came while others had the lock need not wait for another turn.
        self.inbox.join(group)
        self.durability.begin()
        decided = await self._decide(group.commands, growth.head.log_format)
        notes = [*group.notes, *decided.notes, *self._registered(group)]
        batch = Batch(decided.entries, self.replica.state.take_dirty(), notes)
        with self.inbox.committing():
            await self.transactions.commit(batch, growth.head)
        self.measures.committed(len(group.commands), len(decided.entries), began, locked)
        await self._follow(decided.entries, batch.id)
        self.durability.succeed()
        self.gathering.committed(group)
        if decided.entries:
            self.forwarding.wrote_here()
        if any(isinstance(note, MailQueued) for note in notes):
            self.subscribers.mail_written()
        if any(isinstance(note, CallQueued) for note in notes):
            self.subscribers.call_written()
        _answer(decided.outcomes)
        if len(group.commands) == GROUP:
            # Let the answers leave: once the state is ahead of the disk again, they would have to
            # wait for the next commit too. (After a small group they had better wait: the requests
            # that follow them then come together, and are committed together.)
            await asyncio.sleep(0)

    async def _follow(self, entries: Sequence[Entry], batch_id: str) -> None:
        """Our own entries are on disk: let the followers know, in turns where these are many."""
        for first in range(0, len(entries), AT_ONCE):
            if first:
                await asyncio.sleep(0)
            some = entries[first : first + AT_ONCE]
            self.replica.advance(some, batch_id)
            self.subscribers.committed(some)

    def _position(self) -> Position:
        return self.replica.position

    async def _decide(self, commands: Sequence[Command], log_format: int) -> _Decided:
        decided = _Decided([], [], [])
        turn = time.perf_counter()
        for command in commands:
            if command.until < time.monotonic():
                command.is_expired = True
                self.inbox.refuse(not_done_error(), [command])
            if command.is_expired:
                continue
            outcome = await decide(
                self.replica.state,
                command,
                self.clock(),
                decided.entries,
                decided.asked,
                log_format,
            )
            decided.outcomes.append((command, outcome))
            if time.perf_counter() - turn > TURN_SECONDS:
                # No answer shows what they decided before it is on disk: `Durability.settled`.
                await asyncio.sleep(0)
                turn = time.perf_counter()
        return decided

    def _registered(self, group: Group) -> list[Note]:
        """The queues that begin where the group ends."""
        found: list[Note] = []
        for snapshot in group.snapshots:
            if snapshot.queue is not None and not snapshot.answer.done():
                snapshot.registered = snapshot.queue(self.replica.state.seq)
                found.append(snapshot.registered)
        return found


def _answer(outcomes: Sequence[tuple[Command, Any]]) -> None:
    for command, outcome in outcomes:
        if command.answer.done():
            continue
        if isinstance(outcome, BaseException):
            command.answer.set_exception(outcome)
        else:
            command.answer.set_result(outcome)
