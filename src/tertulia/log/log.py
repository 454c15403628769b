"""One node's hold on the log: the door to everything in this package.

Commands are decided and committed by a single `Writer`; the state runs ahead of the disk by at most
one group of them, so an answer that saw such a state must wait until it is `settled`. When a commit
fails, the state is thrown away and loaded again; where it cannot be known whether it failed, that
is looked up before anybody is answered.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from tertulia.log.catching_up import CatchingUp
from tertulia.log.commits import Commits, Durability, moment_of
from tertulia.log.errors import stale_error
from tertulia.log.forwarding import Errand, Forwarding
from tertulia.log.freshness import PROOF_WAIT_SECONDS, Freshness, Lag, WriteProbe
from tertulia.log.gathering import Gathering
from tertulia.log.head_watch import HeadWatch
from tertulia.log.measures import Measures
from tertulia.log.recovery import PositionFile, Recovery
from tertulia.log.replica import Follower, Replica, Subscribers
from tertulia.log.requests import Command, Inbox, Snapshot
from tertulia.log.snapshots import NotLoaded, Snapshots, state_only
from tertulia.log.transactions import Transactions
from tertulia.log.unread_loads import UnreadLoads
from tertulia.log.writer import Writer
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
from tertulia.tracing.waits import OnDatabase

logger = logging.getLogger("tertulia.log")

T = TypeVar("T")
R = TypeVar("R")

_ATTEMPTS: Final = 5
"""Snapshots for somebody who is subscribed to other channels each time."""
TICK_SECONDS: Final = 1.0
"""Between two looks at what has waited for too long."""


class Log:
    """The log as the rest of a node uses it."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        *,
        position_file: PositionFile | None = None,
        meeting_place: Path | None = None,
    ) -> None:
        """`clock` tells UNIX seconds, `elapsed` how much time has passed, whatever becomes of the
        clock. `position_file` is a server's. In the directory `meeting_place` it meets the nodes of
        its machine that tell each other what they commit: one of them writes for the others."""
        self.store = store
        self.clock = clock
        self.elapsed = elapsed
        self.freshness = Freshness()
        self.measures = Measures()
        self._position_file = position_file
        self._meeting_place = meeting_place
        self._subscribers = Subscribers()
        self._inbox = Inbox()
        self._durability = Durability()
        self._replica = Replica(store, self.freshness, self._subscribers)
        self._catching_up = CatchingUp(store, self._replica, self._inbox)
        self.follow(self._catching_up.on_entries)
        self.on_reload(self._catching_up.on_reload)
        self._unread_loads = UnreadLoads(store, self._replica, self._catching_up)
        self._forwarding = Forwarding(store, self._inbox, self._replica, self.measures)
        self.follow(self._forwarding.on_entries)
        self.on_reload(self._forwarding.on_reload)
        self._probe = WriteProbe(self._inbox, self.freshness)
        self._writer = self._new_writer()
        self._head_watch = HeadWatch(
            store, self.freshness, self._replica, self._inbox, self._subscribers, position_file
        )
        self._waits: list[Callable[[], bool]] = []
        self._closing = False
        self._ticks: asyncio.Task[None] | None = None
        self._stop_listening: Callable[[], None] | None = None

    def _new_writer(self) -> Writer:
        inbox, replica, durability = self._inbox, self._replica, self._durability
        freshness, subscribers = self.freshness, self._subscribers
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
                self._forwarding,
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
        """The fold up to the newest entry that this node knows, durable or about to be."""
        return self._replica.state

    @property
    def position(self) -> Position:
        """The newest entry that is on disk, as far as this node knows."""
        return self._replica.position

    @property
    def durable(self) -> int:
        """The number of the newest entry that is on disk, as far as this node knows."""
        return self._replica.position.seq

    @property
    def generation(self) -> int:
        """How many times the state had to be thrown away."""
        return self._durability.generation

    @property
    def lag(self) -> Lag:
        """How far this node is behind the log's head, as far as it has heard."""
        return self.freshness.lag(self.durable)

    @property
    def waiting(self) -> int:
        """How many requests wait for the writer, or for another node's."""
        return len(self._inbox) + len(self._forwarding)

    # Beginning and end

    async def open(self, on_announcement: Callable[[str], None] = lambda _: None) -> None:
        """Load the state and begin to write. The database must be migrated.

        `on_announcement` gets what nodes `announce` (`Store.announce`).
        """
        await self._replica.open(self._position_file.read() if self._position_file else None)
        self._stop_listening = self.store.watch(
            self._on_growth, on_announcement, self._on_told, self._is_awaited
        )
        self._writer.start()
        if self._meeting_place is not None and self.store.database.dialect.tell_growth:
            self._forwarding.open(partial(PeerSocket, self._meeting_place))
        self._ticks = asyncio.create_task(self._tick_on(), name="log-ticks")

    async def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._closing = True
        self._forwarding.leave()
        await self._unread_loads.close()
        await self._catching_up.close()
        await self._writer.close()
        self._forwarding.close()
        if self._ticks is not None:
            self._ticks.cancel()
            await asyncio.wait([self._ticks])
        await self._head_watch.close()
        if self._stop_listening is not None:
            await self.store.stop(self._stop_listening)

    # Subscriptions, for as long as the log is open

    def follow(self, follower: Follower) -> None:
        """Call `follower` on the event loop with committed entries, in order, each once."""
        self._subscribers.followers.append(follower)

    def on_reload(self, callback: Callable[[], None]) -> None:
        """Call when the state had to be thrown away and was loaded again."""
        self._subscribers.on_reload.append(callback)

    def on_mail(self, callback: Callable[[], None]) -> None:
        """Call when this node has committed a mail that is to be sent."""
        self._subscribers.on_mail.append(callback)

    def on_call(self, callback: Callable[[], None]) -> None:
        """Call when this node has committed that a bot's service is to be told of something."""
        self._subscribers.on_call.append(callback)

    def on_history(self, callback: Callable[[], None]) -> None:
        """Call when the log has become another history, or a part of it was pruned before this node
        could read it: what was known of its entries is void."""
        self._subscribers.on_history.append(callback)

    def on_stale(self, callback: Callable[[], None]) -> None:
        """Call when the state cannot be verified any more: `require_fresh` refuses from now on."""
        self._subscribers.on_stale.append(callback)

    def on_newer(self, callback: Callable[[str], None]) -> None:
        """Call with the reason when this program is too old for the database: it decides nothing
        any more, and should end."""
        self._subscribers.on_newer.append(callback)

    # Who waits for what other nodes commit

    def attend(self, is_awaited: Callable[[], bool]) -> None:
        """Ask this whether somebody waits for entries; where nobody does, those of other nodes may
        come a tenth of a second later. Who begins to wait must `listen`; who looks, `hear`."""
        self._waits.append(is_awaited)

    def listen(self) -> None:
        """Somebody begins to wait for entries."""
        self.store.listen()

    def hear(self) -> None:
        """Fold what other nodes have told by now, before somebody looks at the state."""
        self.store.hear_gathered()

    def _is_awaited(self) -> bool:
        if self._catching_up.is_awaited or self._forwarding.is_awaited:
            return True
        return any(waits() for waits in self._waits)

    # Health

    def require_fresh(self) -> None:
        """Unavailable where what the state shows may be over for longer than `STALE_SECONDS`."""
        if self.freshness.is_stale:
            raise stale_error()

    def problems(self) -> list[str]:
        """What keeps the node from its work, each in a sentence; nothing where all is well."""
        found = self.freshness.problems()
        if self._closing:
            found.append("The server is shutting down.")
        return found

    async def probed_problems(self) -> list[str]:
        """The problems, once the writer has tried whether something can be written, if it has not
        written just now. Takes some seconds at most."""
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
    ) -> T:
        """Let the verb decide at the head of the log, and return its result when that is on disk.

        `actor_id` None is the server itself (only for verbs that take no actor's permission).
        `notes` are written in the same commit, if the verb does not refuse. Raises what the verb
        refuses with; NotAuthenticated when the actor is deactivated by then; Unavailable when the
        commit failed (nothing was done), and OutcomeUnknown when that cannot be known. None of it
        takes much longer than `ANSWER_SECONDS`.
        """
        self._require_open()
        with OnDatabase():
            if actor_id is not None and not notes and not self.freshness.write_trouble:
                errand = self._forwarding.errand(verb)
                if errand is not None:
                    (argument,) = arguments
                    found: T = await self._forwarding.carried_out(
                        errand,
                        actor_id,
                        argument,
                        lambda last: self._decided(actor_id, verb, (last,)),
                    )
                    return found
            return await self._decided(actor_id, verb, arguments, notes)

    async def _decided(
        self,
        actor_id: int | None,
        verb: Verb[T],
        arguments: tuple[Any, ...],
        notes: Sequence[Note] = (),
    ) -> T:
        """The command's result, decided by this node."""
        self._require_open()
        answer = asyncio.get_running_loop().create_future()
        self._inbox.add(Command(actor_id, verb, arguments, notes, answer))
        try:
            result: T = await answer
        finally:
            del answer  # As with a snapshot.
        return result

    def allow_elsewhere(self, errand: Errand) -> None:
        """Let commands of this kind be carried out by another node of the machine, where that one
        writes at present anyway."""
        self._forwarding.allow(errand)

    def consider(self, actor_id: int, verb: Verb[T], *arguments: Any) -> T:
        """Let a verb decide that changes nothing, on the state as it is. Raises as `submit`."""
        decision = verb(moment_of(self.state, self.clock(), actor_id), *arguments)
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
        """Look at the database and at the state at the same entry of the log.

        `look` runs in a thread, on a transaction that sees exactly what the state has folded.
        `conclude` then runs at once on the event loop. What is unread of `reader_id` is loaded
        (`state.unread`), which nobody else waits for. `queue`, given that entry's sequence number,
        is a queue to register: it is on disk when this returns. It may be asked for several, of
        which the last one counts.
        """

        async def taken() -> R:
            self._require_open()
            loop = asyncio.get_running_loop()
            request = Snapshot(reader_id, look, conclude, queue, loop.create_future())
            self._inbox.add(request)
            try:
                result: R = await request.answer
            finally:
                # An exception knows the frames that it came through, and so the request. If that
                # still led to the exception, all that `conclude` had made by then would stay until
                # a full garbage collection.
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
        """Within the context, what is unread of `reader_id` is loaded (`state.unread`), unless
        they are subscribed to another channel meanwhile or the state is loaded again."""
        self._require_open()
        async with self._unread_loads.held(reader_id):
            yield

    async def with_unread(self, reader_id: int, conclude: Callable[[State], R]) -> R:
        """What follows from the state where what is unread of `reader_id` is loaded
        (`state.unread`). Where it is loaded already, this waits for nothing."""
        if not self.state.unread.missing(self.state, reader_id):
            self.state.unread.note_question(self.state, reader_id)
            return conclude(self.state)
        async with self.unread_held(reader_id):
            self.state.unread.note_question(self.state, reader_id)
            return conclude(self.state)

    def want_reader(self, reader_id: int) -> None:
        """Have what the reader has done with messages loaded, soon. Nobody waits for it."""
        if not self._closing:
            self._unread_loads.want(reader_id)

    async def catch_up(self) -> None:
        """Fold what other processes have written, and return."""
        await self.snapshot(None, state_only, lambda *_: None)

    async def reached(self, seq: int) -> None:
        """Return when the state has the entry of that number, which another node is said to have
        shown; or when it is known that there is none. Unavailable where neither is so within
        `BEHIND_SECONDS`."""
        await self._catching_up.reached(seq)

    def note(self, note: Note, *, soon: bool = True) -> None:
        """Write this with the next commit, or within a moment; or, if it need not be `soon`, with
        the next commit that there is another reason for, if one comes."""
        if soon:
            self._inbox.add_note(note)
        else:
            self._inbox.defer_note(note)

    def mail(self, mail: Mail) -> None:
        """Have the mail sent: it is written with the next commit, or within a moment."""
        self.note(MailQueued(mail, self.clock()))

    def _require_open(self) -> None:
        if self._closing:
            raise Unavailable("The server is shutting down. Try again.")
        if self.freshness.newer:
            raise stale_error()
        self._inbox.require_room()

    # Before an answer leaves

    async def settled(self, since: int | None = None) -> None:
        """Return when everything that the state shows now is on disk. Unavailable if it will not
        be; and, given the `generation` in which one began to look, if that is over."""
        await self._durability.settled(since)

    def when_settled(self, report: Callable[[Exception | None], None]) -> None:
        """Call when everything that the state shows now is on disk, at once if it is; with
        Unavailable if it will not be."""
        self._durability.when_settled(report)

    async def was_reloaded(self, since: int) -> bool:
        """Whether the state was thrown away since that `generation` and is loaded again, for which
        this waits `RELOAD_WAIT_SECONDS` at most."""
        return await self._durability.was_reloaded(since)

    # What happens by itself

    def _on_growth(self, seq: int | None) -> None:
        """The log may have grown, to that entry if it is known; by this node's own commits too."""
        if seq is not None:
            self.freshness.heard(seq)
        if seq is None or seq > self.state.seq:
            self._inbox.add_growth()

    def _on_told(self, texts: Sequence[str]) -> None:
        """Other nodes told what they committed."""
        found: list[EntryBroadcast] = []
        for text in texts:
            self._forwarding.wrote(broadcast.sender_of(text))
            told = broadcast.decode_broadcast(text, self.state.seq)
            if isinstance(told, int):
                self._on_growth(told)
            else:
                self.freshness.heard(told.seq)
                found.append(told)
        if not self._replica.hear(found):
            self._inbox.add_growth()

    async def _tick_on(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            try:
                self._tick()
            except Exception:  # The next tick comes in a second.
                logger.exception("the log could not be looked after")

    def _tick(self) -> None:
        self._inbox.expire()
        self._durability.expire()
        if self.freshness.write_trouble and not self.freshness.newer:
            self._inbox.add_probe()
        self._head_watch.tick()
