"""Group commit: waiting commands decide one after the other, and are written together."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tertulia import tracing
from tertulia.log.deciding import TURN_SECONDS, decide
from tertulia.log.durability import Durability
from tertulia.log.errors import not_done_error
from tertulia.log.forwarding import Forwarding
from tertulia.log.freshness import Freshness
from tertulia.log.gathering import Gathering
from tertulia.log.inbox import GROUP, Inbox
from tertulia.log.measures import Measures
from tertulia.log.replica import Replica
from tertulia.log.requests import Command, Group
from tertulia.log.subscribers import Subscribers
from tertulia.log.transactions import NotBegun, Transactions
from tertulia.model.changes import Entry
from tertulia.store.history import Position
from tertulia.store.writing import Batch, CallAsked, MailAsked, Note

AT_ONCE: Final = 500
"""Entries of which the followers are told before the event loop runs other tasks."""


class _Decided(NamedTuple):
    """What a group of commands decided."""

    entries: list[Entry]
    asked: list[MailAsked | CallAsked]
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
        if any(isinstance(note, MailAsked) for note in notes):
            self.subscribers.mail_written()
        if any(isinstance(note, CallAsked) for note in notes):
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
