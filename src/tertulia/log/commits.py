"""Group commit: waiting commands decide one after the other, and are written in one transaction."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tertulia import tracing
from tertulia.log.forwarding import Forwarding
from tertulia.log.health import Durability, Freshness, Measures, described, not_done_error
from tertulia.log.replica import LogSubscribers, Replica
from tertulia.log.requests import GROUP, Command, Gathering, Group, Inbox
from tertulia.model.changes import Entry, MessageSent
from tertulia.model.errors import NotAuthenticated, NotBeforeUpgrade, Refused
from tertulia.state import user_visibility
from tertulia.state.audit_log import AUDITED, audited
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.folds import fold
from tertulia.state.state import State
from tertulia.state.users import calls_for
from tertulia.store.database import CommitUnknown, ConnectionLost, DatabaseUnavailable
from tertulia.store.installation import Head, HistoryChanged, HistoryPruned, NewerDatabase, Position
from tertulia.store.log_entries import LogTail
from tertulia.store.log_formats import LOG_FORMAT, needed_format
from tertulia.store.notes import Audited, CallQueued, MailQueued, Note, Probe
from tertulia.store.store import Store
from tertulia.store.writing import Batch

logger = logging.getLogger("tertulia.log")

RETRY_SECONDS: Final = 0.5
"""The pause between attempts while the database is unavailable."""


class NotBegun(Exception):
    """The database accepts no writes. Nothing was decided, and the state is still valid."""


class OutcomeNotKnown(Exception):
    """The server can't find out whether the batch was committed."""


class Transactions:
    """The transactions of a node's writer, one at a time."""

    def __init__(self, store: Store, freshness: Freshness, measures: Measures) -> None:
        self._store = store
        self._freshness = freshness
        self._measures = measures
        self.is_closing = False
        """Whether the node is shutting down, so that it waits for nothing."""

    async def begin(self, position: Callable[[], Position]) -> LogTail:
        """Lock the log's head against other writers and return what they wrote after `position()`,
        which may advance during the wait.

        If the connection was lost, this is retried once on a new one. Raise NotBegun if the
        database can't be reached or doesn't answer in time; HistoryChanged, HistoryPruned and
        NewerDatabase. If anything fails between this and `commit`, call `abandon`.
        """
        try:
            return await self._begin_or_retry(position)
        except (NewerDatabase, HistoryChanged, HistoryPruned):
            raise
        except Exception as error:
            self._measures.failed += 1
            await self.abandon()
            raise NotBegun from error

    async def _begin_or_retry(self, position: Callable[[], Position]) -> LogTail:
        try:
            return await self._store.begin(position(), position)
        except (NewerDatabase, HistoryChanged, HistoryPruned):
            raise
        except Exception as error:
            if isinstance(error, DatabaseUnavailable) and not isinstance(error, ConnectionLost):
                raise  # Another try would take as long again.
            logger.warning("lost the connection to the database; retrying: %s", described(error))
            self._measures.retried += 1
            await self.abandon()
        return await self._store.begin(position(), position)

    async def commit(self, batch: Batch, before: Head) -> None:
        """Write the batch. It's on disk when this returns, and certainly isn't when this raises an
        error other than OutcomeNotKnown. If the connection is lost, the batch is looked up once the
        database responds again, however long that takes."""
        try:
            await self._store.commit(batch, before.position)
        except Exception as error:
            self._freshness.write_trouble = described(error)
            self._measures.failed += 1
            if isinstance(error, DatabaseUnavailable) and not isinstance(error, CommitUnknown):
                raise
            if not await self._was_committed(batch, before, error):
                raise
            logger.warning("lost the connection to the database, but the commit had succeeded")
        self._freshness.written()

    async def _was_committed(self, batch: Batch, before: Head, error: Exception) -> bool:
        while True:
            try:
                await self._store.rollback()
                made = await self._store.was_committed(batch, before)
                break
            except Exception as again:  # The database may come back: until then, wait.
                logger.warning("can't check yet what was committed: %s", described(again))
                if self.is_closing:
                    raise OutcomeNotKnown from error
                await asyncio.sleep(RETRY_SECONDS)
        if made is None:
            raise OutcomeNotKnown from error
        return made

    async def prove(self, position: Callable[[], Position]) -> LogTail:
        """Commit an empty batch after a failed commit, to make sure that commands don't decide in
        vain. Raise as `begin`, and NotBegun if the commit fails."""
        growth = await self.begin(position)
        try:
            await self._store.commit(Batch([], {}, (Probe(),)))
        except Exception as error:
            await self.abandon()
            raise NotBegun from error
        logger.warning("the database accepts writes again")
        self._freshness.written()
        return growth

    async def abandon(self) -> None:
        """Roll the transaction back."""
        try:
            await self._store.rollback()
        except Exception:  # The connection is gone in any case.
            logger.exception("could not roll back a transaction")

    def failed(self, error: BaseException) -> None:
        """Record that nothing can be written at present."""
        if not self._freshness.write_trouble:
            logger.error("can't write to the database: %s", described(error))
        self._freshness.write_trouble = described(error)


TURN_SECONDS: Final = 0.01
"""The number of seconds for which commands decide before other tasks of the event loop run."""


class FoldFailed(Exception):
    """A verb decided on a change that can't be folded: a bug in the verb."""

    def __init__(self, command: Command) -> None:
        self.command = command
        super().__init__("a change could not be folded")


async def decide(
    state: State,
    command: Command,
    now: float,
    entries: list[Entry],
    asked: list[MailQueued | CallQueued | Audited],
    log_format: int = LOG_FORMAT,
) -> Any:
    """Let the command decide, fold its changes into the state, and append them to `entries`, and
    its emails, calls of bots' services, and records of the audit log to `asked`.

    Return the command's result or its exception. After FoldFailed the state is invalid. Changes
    that need a newer log format than `log_format` are refused.
    """
    turn = time.perf_counter()
    command.is_begun = True
    try:
        decision: Decision[Any] = command.verb(
            command_context(state, now, command.actor_id), *command.arguments
        )
    except Refused as refusal:
        # Its traceback references the command, whose response it becomes: a cycle that only a full
        # garbage collection would free.
        return refusal.with_traceback(None)
    except Exception as error:  # A bug in one command must only affect that command.
        return error
    if log_format < LOG_FORMAT and needed_format(decision.changes) > log_format:
        return NotBeforeUpgrade()
    if time.perf_counter() - turn > TURN_SECONDS:
        await asyncio.sleep(0)  # The state stays: only the writer changes it.
        turn = time.perf_counter()
    try:
        for change in user_visibility.accompanied(state, decision.changes):
            entry = Entry(state.seq + 1, now, command.actor_id, change)
            if type(change) in AUDITED:
                asked.extend(map(Audited, audited(state, entry, command.origin.origin())))
            fold(state, entry)
            entries.append(entry)
            if isinstance(change, MessageSent) and not change.imported:
                asked.extend(CallQueued(call, now) for call in calls_for(state, change.message))
            if time.perf_counter() - turn > TURN_SECONDS:
                # The state is consistent after each entry: that is how other nodes see it, too.
                await asyncio.sleep(0)
                turn = time.perf_counter()
    except Exception as error:
        raise FoldFailed(command) from error
    asked.extend(MailQueued(mail, now) for mail in decision.mails)
    return decision.result


def command_context(state: State, now: float, actor_id: int | None) -> CommandContext:
    """Return the context that a verb decides in. Raise NotAuthenticated if the actor is
    deactivated."""
    if actor_id is None:
        return CommandContext(state, now, None)
    actor = state.users.get(actor_id)
    if actor is None or not actor.is_active:
        raise NotAuthenticated("This account is deactivated.")
    return CommandContext(state, now, actor.id)


BATCH_SIZE: Final = 500
"""The number of entries that followers get before other tasks of the event loop run."""


class _Decided(NamedTuple):
    """The decisions of a group of commands."""

    entries: list[Entry]
    asked: list[MailQueued | CallQueued | Audited]
    outcomes: list[tuple[Command, Any]]
    """Each command with its result or exception."""

    @property
    def notes(self) -> list[Note]:
        """The notes of the commands that succeeded, and the notes that they asked for."""
        done = (c for c, outcome in self.outcomes if not isinstance(outcome, BaseException))
        return [*(note for command in done for note in command.notes), *self.asked]


@dataclass(frozen=True)
class Commits:
    """Commits groups, one at a time. Only the writer uses it."""

    transactions: Transactions
    inbox: Inbox
    replica: Replica
    durability: Durability
    freshness: Freshness
    subscribers: LogSubscribers
    measures: Measures
    forwarding: Forwarding
    gathering: Gathering
    clock: Callable[[], float]
    """Returns UNIX seconds."""

    async def commit(self, group: Group) -> None:
        """Execute the group's commands and respond to them, write its notes, and register its
        snapshots' queues.

        If nothing can be written, the commands are refused and the notes kept. After an exception
        the state is invalid, and nobody got a response. After OutcomeNotKnown the group may be on
        disk, after other exceptions it isn't; FoldFailed names one command.
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
        group.notes.clear()  # The notes are on disk, or kept.

    async def _commit(self, group: Group) -> None:
        self.inbox.has_grown = False
        began = time.monotonic()
        with self.replica.hearing():  # Missing entries are read with the lock.
            await self.gathering.wait(group)
            with self.inbox.blocked():
                growth = await self.transactions.begin(self._position)
        locked = time.monotonic()
        self.replica.adopt(growth)
        self.freshness.verified(began)
        # Include what arrived while other nodes had the lock.
        self.inbox.join(group)
        self.durability.begin()
        decided = await self._decide(group.commands, growth.head.log_format)
        notes = [*group.notes, *decided.notes, *self._registered(group)]
        batch = Batch(decided.entries, self.replica.state.take_dirty(), notes)
        for command, outcome in decided.outcomes:
            if command.on_folded is not None and not isinstance(outcome, BaseException):
                command.on_folded()
        with self.inbox.committing():
            await self.transactions.commit(batch, growth.head)
        self.measures.committed(len(group.commands), len(decided.entries), began, locked)
        await self._follow(decided.entries, batch.id)
        self.durability.succeed()
        self.gathering.committed(group)
        if decided.entries:
            self.forwarding.wrote_here()
        if any(isinstance(note, MailQueued) for note in notes):
            for callback in self.subscribers.on_mail:
                callback()
        if any(isinstance(note, CallQueued) for note in notes):
            for callback in self.subscribers.on_call:
                callback()
        _answer(decided.outcomes)
        if len(group.commands) == GROUP:
            # Let the responses leave: when the state is ahead of the disk again, they'd have to
            # wait for the next commit, too. (After a small group, they should wait, so that the
            # requests that follow them arrive, and are committed, together.)
            await asyncio.sleep(0)

    async def _follow(self, entries: Sequence[Entry], batch_id: str) -> None:
        """Pass this node's own entries to the followers, in several turns if there are many."""
        for first in range(0, len(entries), BATCH_SIZE):
            if first:
                await asyncio.sleep(0)
            some = entries[first : first + BATCH_SIZE]
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
                # `Durability.settled` keeps responses from showing this before it is on disk.
                await asyncio.sleep(0)
                turn = time.perf_counter()
        return decided

    def _registered(self, group: Group) -> list[Note]:
        """Return the queues that begin where the group ends."""
        result: list[Note] = []
        for snapshot in group.snapshots:
            if snapshot.queue is not None and not snapshot.answer.done():
                snapshot.registered = snapshot.queue(self.replica.state.seq)
                result.append(snapshot.registered)
        return result


def _answer(outcomes: Sequence[tuple[Command, Any]]) -> None:
    for command, outcome in outcomes:
        if command.answer.done():
            continue
        if isinstance(outcome, BaseException):
            command.answer.set_exception(outcome)
        else:
            command.answer.set_result(outcome)
