"""A node's access to the log, and the entry point of this package.

A single `Writer` decides and commits commands. The state is ahead of the disk by at most one group
of them, so a response based on it must wait until the state is `settled`. If a commit fails, the
state is discarded and reloaded. If it's unknown whether it failed, the server finds out before it
responds to anyone.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from tertulia.log.commits import Commits, Transactions, command_context
from tertulia.log.forwarding import Forwarding
from tertulia.log.head_watch import PROOF_WAIT_SECONDS, HeadWatch, PositionFile, WriteProbe
from tertulia.log.health import Durability, Freshness, Lag, Measures, stale_error
from tertulia.log.origin import command_origin
from tertulia.log.replica import CatchingUp, LogSubscribers, Replica
from tertulia.log.requests import Command, Gathering, Inbox, Snapshot
from tertulia.log.snapshots import NotLoaded, Snapshots, UnreadLoads, state_only
from tertulia.log.writer import Recovery, Writer
from tertulia.model.errors import Unavailable
from tertulia.model.mail import Mail
from tertulia.model.queues import QueueRecord
from tertulia.state.decision import Verb
from tertulia.state.state import State
from tertulia.store import broadcast
from tertulia.store.broadcast import EntryBroadcast
from tertulia.store.bus import PeerSocket
from tertulia.store.database import Connection
from tertulia.store.installation import Position
from tertulia.store.notes import MailQueued, Note
from tertulia.store.store import Store
from tertulia.tracing import DatabaseWait

logger = logging.getLogger("tertulia.log")

T = TypeVar("T")
R = TypeVar("R")

_ATTEMPTS: Final = 5
"""The most snapshots for a reader whose subscriptions keep changing."""
TICK_SECONDS: Final = 1.0
"""The interval, in seconds, of checks for requests that have waited too long."""


class Log:
    """A node's log."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        *,
        position_file: PositionFile | None = None,
        meeting_place: Path | None = None,
    ) -> None:
        """Create a node's log. `clock` returns UNIX seconds, and `elapsed` is a monotonic clock. A
        server has a `position_file`. In the directory `meeting_place`, it finds the other nodes of
        its machine, one of which writes for all."""
        self.store = store
        self.clock = clock
        self.elapsed = elapsed
        self.freshness = Freshness()
        self.measures = Measures()
        self._position_file = position_file
        self._meeting_place = meeting_place
        self.subscribers = LogSubscribers()
        self._inbox = Inbox()
        self.durability = Durability()
        self._replica = Replica(store, self.freshness, self.subscribers)
        self.catching_up = CatchingUp(store, self._replica, self._inbox)
        self.subscribers.followers.append(self.catching_up.on_entries)
        self.subscribers.on_reload.append(self.catching_up.on_reload)
        self._unread_loads = UnreadLoads(store, self._replica, self.catching_up)
        self.forwarding = Forwarding(store, self._inbox, self._replica, self.measures)
        self.subscribers.followers.append(self.forwarding.on_entries)
        self.subscribers.on_reload.append(self.forwarding.on_reload)
        self._probe = WriteProbe(self._inbox, self.freshness)
        self._writer = self._new_writer()
        self._head_watch = HeadWatch(
            store, self.freshness, self._replica, self._inbox, self.subscribers, position_file
        )
        self._demands: list[Callable[[], bool]] = []
        self._closing = False
        self._ticks: asyncio.Task[None] | None = None
        self._stop_listening: Callable[[], None] | None = None

    def _new_writer(self) -> Writer:
        inbox, replica, durability = self._inbox, self._replica, self.durability
        freshness, subscribers = self.freshness, self.subscribers
        transactions = Transactions(self.store, freshness, self.measures)
        return Writer(
            inbox,
            replica,
            transactions,
            Commits(
                transactions,
                inbox,
                replica,
                durability,
                freshness,
                subscribers,
                self.measures,
                self.forwarding,
                Gathering(inbox),
                self.clock,
            ),
            Snapshots(self.store, inbox, replica),
            Recovery(self.store, transactions, inbox, replica, durability, freshness, subscribers),
            self._probe,
            freshness,
        )

    @property
    def state(self) -> State:
        """The fold up to the newest entry that this node knows, which may not be on disk yet."""
        return self._replica.state

    @property
    def position(self) -> Position:
        """The newest entry on disk that this node knows."""
        return self._replica.position

    @property
    def durable(self) -> int:
        """The sequence number of the newest entry on disk that this node knows."""
        return self._replica.position.seq

    @property
    def lag(self) -> Lag:
        """The distance of this node from the newest entry that it has heard of."""
        return self.freshness.lag(self.durable)

    @property
    def waiting(self) -> int:
        """The number of requests that wait for this node's writer or another's."""
        return len(self._inbox) + len(self.forwarding)

    # Start and stop

    async def open(self, on_peer_message: Callable[[str], None] = lambda _: None) -> None:
        """Load the state and start the writer. The database must be migrated.

        `on_peer_message` gets messages of other nodes (`Store.send_to_peers`).
        """
        await self._replica.open(self._position_file.read() if self._position_file else None)
        self._stop_listening = self.store.watch(
            self._on_growth, on_peer_message, self._on_broadcasts, self._is_awaited
        )
        self._writer.start()
        if self._meeting_place is not None and self.store.database.dialect.tell_growth:
            self.forwarding.open(partial(PeerSocket, self._meeting_place))
        self._ticks = asyncio.create_task(self._tick_on(), name="log-ticks")

    async def close(self) -> None:
        """Finish waiting requests, then stop."""
        self._closing = True
        self.forwarding.leave()
        await self._unread_loads.close()
        await self.catching_up.close()
        await self._writer.close()
        self.forwarding.close()
        if self._ticks is not None:
            self._ticks.cancel()
            await asyncio.wait([self._ticks])
        await self._head_watch.close()
        if self._stop_listening is not None:
            await self.store.stop(self._stop_listening)

    # Demand for other nodes' entries

    def add_demand(self, has_demand: Callable[[], bool]) -> None:
        """Register a check whether anyone waits for entries. Without demand, other nodes' entries
        may arrive a tenth of a second late. Call `Store.listen` when a wait begins, and
        `Store.hear_gathered` before reading the state."""
        self._demands.append(has_demand)

    def _is_awaited(self) -> bool:
        if self.catching_up.is_awaited or self.forwarding.is_awaited:
            return True
        return any(has_demand() for has_demand in self._demands)

    # Health

    def require_fresh(self) -> None:
        """Raise Unavailable if the state may have been outdated for longer than `STALE_SECONDS`."""
        if self.freshness.is_stale:
            raise stale_error()

    def problems(self) -> list[str]:
        """Return the problems that keep the node from working, one sentence each."""
        problems = self.freshness.problems()
        if self._closing:
            problems.append("The server is shutting down.")
        return problems

    async def probed_problems(self) -> list[str]:
        """Return the problems after testing whether the writer can write, unless it just did. Takes
        up to several seconds."""
        if not self._closing and not await self._probe.is_answered() and not self.problems():
            return [f"The writer didn't respond within {PROOF_WAIT_SECONDS:g} s."]
        return self.problems()

    # Requests

    async def submit(
        self,
        actor_id: int | None,
        verb: Verb[T],
        *arguments: Any,
        notes: Sequence[Note] = (),
        on_folded: Callable[[], None] | None = None,
    ) -> T:
        """Run the verb at the head of the log, and return its result when that is on disk. An
        `actor_id` of None is the server itself, for verbs that check no permission. `notes` are
        written in the same commit unless the verb refuses. `on_folded` is called when the changes
        are in the state and only have to be written to disk. If that fails, the state is reloaded.

        Raise what the verb raises; NotAuthenticated if the actor was deactivated; Unavailable if
        the commit failed and nothing was changed, and OutcomeUnknown if that is unknown. It takes
        little longer than `ANSWER_SECONDS`.
        """
        self._require_open()
        with DatabaseWait():
            is_local = notes or on_folded is not None or self.freshness.write_trouble
            if actor_id is not None and not is_local:
                forwardable = self.forwarding.forwardable(verb)
                if forwardable is not None:
                    (argument,) = arguments
                    result: T = await self.forwarding.carried_out(
                        forwardable,
                        actor_id,
                        argument,
                        lambda last: self._decided(actor_id, verb, (last,)),
                    )
                    return result
            return await self._decided(actor_id, verb, arguments, notes, on_folded)

    async def _decided(
        self,
        actor_id: int | None,
        verb: Verb[T],
        arguments: tuple[Any, ...],
        notes: Sequence[Note] = (),
        on_folded: Callable[[], None] | None = None,
    ) -> T:
        """Return the command's result, decided by this node."""
        self._require_open()
        answer = asyncio.get_running_loop().create_future()
        command = Command(
            actor_id, verb, arguments, notes, answer, origin=command_origin(), on_folded=on_folded
        )
        self._inbox.add(command)
        try:
            result: T = await answer
        finally:
            del answer  # The reference would form a cycle, as in `snapshot`.
        return result

    def consider(self, actor_id: int, verb: Verb[T], *arguments: Any) -> T:
        """Return the result of a verb that changes nothing, on the current state. Raise as
        `submit`."""
        decision = verb(command_context(self.state, self.clock(), actor_id), *arguments)
        if decision.changes:
            raise ValueError("a verb that changes something must be submitted")
        return decision.result

    async def snapshot(
        self,
        reader_id: int | None,
        look: Callable[[Connection], T],
        conclude: Callable[[State, T], R],
        queue: Callable[[int], QueueRecord] | None = None,
    ) -> R:
        """Read the database and the state at the same entry of the log.

        `look` runs in a thread, on a transaction that sees exactly what the state has folded. Then
        `conclude` runs on the event loop. The unread messages of `reader_id` (`state.unread`) are
        loaded for it. `queue` returns a queue to register from that entry's sequence number; it is
        on disk when this returns. It may be called several times, of which the last counts.
        """

        async def taken() -> R:
            self._require_open()
            loop = asyncio.get_running_loop()
            request = Snapshot(reader_id, look, conclude, queue, loop.create_future())
            self._inbox.add(request)
            try:
                result: R = await request.answer
            finally:
                # The frames of an exception reference the request. If the request still referenced
                # the exception, everything that `conclude` made would stay until a full garbage
                # collection.
                request.answer = loop.create_future()
                request.answer.cancel()
            return result

        if reader_id is None:
            return await taken()
        async with self.unread_held(reader_id):
            for _ in range(_ATTEMPTS):
                try:
                    return await taken()
                except NotLoaded:
                    await self._unread_loads.load(reader_id)
        raise Unavailable("Your unread messages couldn't be loaded. Try again.")

    @asynccontextmanager
    async def unread_held(self, reader_id: int) -> AsyncIterator[None]:
        """Keep the unread messages of `reader_id` loaded (`state.unread`) within the context,
        unless their subscriptions change or the state is reloaded."""
        self._require_open()
        async with self._unread_loads.held(reader_id):
            yield

    async def with_unread(self, reader_id: int, conclude: Callable[[State], R]) -> R:
        """Return `conclude(state)` with the unread messages of `reader_id` loaded (`state.unread`).
        If they are loaded already, this doesn't wait."""
        if not self.state.unread.missing(self.state, reader_id):
            self.state.unread.note_question(self.state, reader_id)
            return conclude(self.state)
        async with self.unread_held(reader_id):
            self.state.unread.note_question(self.state, reader_id)
            return conclude(self.state)

    def want_reader(self, reader_id: int) -> None:
        """Start loading the reader's read state, without waiting."""
        if not self._closing:
            self._unread_loads.want(reader_id)

    async def catch_up(self) -> None:
        """Fold entries that other processes have written."""
        await self.snapshot(None, state_only, lambda *_: None)

    def note(self, note: Note, *, soon: bool = True) -> None:
        """Write the note soon or, if not `soon`, with the next commit for another reason."""
        if soon:
            self._inbox.add_note(note)
        else:
            self._inbox.defer_note(note)

    def mail(self, mail: Mail) -> None:
        """Queue the email. It's written soon, with the next commit."""
        self.note(MailQueued(mail, self.clock()))

    def _require_open(self) -> None:
        if self._closing:
            raise Unavailable("The server is shutting down. Try again.")
        if self.freshness.newer:
            raise stale_error()
        self._inbox.require_room()

    # Background work

    def _on_growth(self, seq: int | None) -> None:
        """Handle growth of the log, up to this entry if known. This node's own commits are
        reported, too."""
        if seq is not None:
            self.freshness.heard(seq)
        if seq is None or seq > self.state.seq:
            self._inbox.add_growth()

    def _on_broadcasts(self, texts: Sequence[str]) -> None:
        """Fold entries that other nodes broadcast."""
        broadcasts: list[EntryBroadcast] = []
        for text in texts:
            self.forwarding.wrote(broadcast.sender_of(text))
            received = broadcast.decode_broadcast(text, self.state.seq)
            if isinstance(received, int):
                self._on_growth(received)
            else:
                self.freshness.heard(received.seq)
                broadcasts.append(received)
        if not self._replica.hear(broadcasts):
            self._inbox.add_growth()

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                self._tick()
            except Exception:  # The next tick follows in a second.
                logger.exception("the log's periodic check failed")

    def _tick(self) -> None:
        self._inbox.expire()
        self.durability.expire()
        if self.freshness.write_trouble and not self.freshness.newer:
            self._inbox.add_probe()
        self._head_watch.tick()
