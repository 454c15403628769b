"""The single writer: lets waiting commands decide, commits them together, tells who follows.

The state runs ahead of the disk by at most one group of commands. An answer that saw such a state
must wait for it: `settled`. When a commit fails, the state is thrown away and loaded again; where
it cannot be known whether it failed, that is looked up before anybody is answered.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from tertulia.log.bookmark import Bookmark
from tertulia.log.commits import RETRY_SECONDS, Commits, NotBegun, Unknown
from tertulia.log.deciding import TURN_SECONDS, Misfold, decide, moment_of
from tertulia.log.freshness import PROOF_SECONDS, Freshness, described
from tertulia.log.requests import (
    ANSWER_SECONDS,
    GROUP,
    Command,
    Requests,
    Snapshot,
    bounded,
    not_done,
)
from tertulia.log.snapshots import install_reading, load_reading
from tertulia.log.watching import Watch
from tertulia.model.changes import AnyChange, Entry
from tertulia.model.errors import OutcomeUnknown, Unavailable
from tertulia.model.mail import Mail
from tertulia.model.queues import QueueRecord
from tertulia.state.fold import fold
from tertulia.state.moment import Verb
from tertulia.state.organization import State
from tertulia.state.sent import RECALLED
from tertulia.store import history, queries
from tertulia.store.database import Connection, DatabaseError, DatabaseUnavailable
from tertulia.store.history import (
    Head,
    HistoryChanged,
    HistoryPruned,
    NewerDatabase,
    Position,
)
from tertulia.store.queries import Growth
from tertulia.store.store import CATCH_UP, LOAD_SECONDS, Store
from tertulia.store.writing import Batch, MailAsked, Note, Probe, QueueDeleted

logger = logging.getLogger("tertulia.log")

T = TypeVar("T")
R = TypeVar("R")

BEAT_SECONDS: Final = 1.0
"""Between two looks at who has waited for too long."""
RELOAD_WAIT_SECONDS: Final = 5.0
"""How long who only asks waits for a state that is loaded again."""
PROOF_WAIT_SECONDS: Final = 2.0
"""How long whoever asks whether something can be written waits for the writer to try."""


def unseen(_: Connection) -> None:
    """What a snapshot looks at that wants nothing of the database."""


Follower = Callable[[Sequence[Entry]], None]


class Log:
    """One node's hold on the log.

    `state` is the fold up to the newest entry that this node knows, durable or about to be.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
        *,
        bookmark: Bookmark | None = None,
    ) -> None:
        """`clock` tells UNIX seconds, `elapsed` how much time has passed, whatever becomes of the
        clock."""
        self.store = store
        self.clock = clock
        self.elapsed = elapsed
        self.state = State()
        self.position = Position("", 0, "")
        """The newest entry that is on disk, as far as this node knows."""
        self.generation = 0
        """How many times the state had to be thrown away."""
        self.freshness = Freshness()
        self._bookmark = bookmark
        self._watch = Watch(
            store, self.freshness, bookmark, lambda: self.position, lambda: self._notice(None)
        )
        self._commits = Commits(store, self.freshness)
        self._requests = Requests()
        self._notes: deque[Note] = deque()
        self._held: list[Note] = []
        """Notes of a commit that failed, and others without hurry: for the next one that there is
        a reason for."""
        self._wake = asyncio.Event()
        self._grown = False
        self._must_probe = False
        self._probed: asyncio.Future[None] | None = None
        """Is done when the writer has tried to write."""
        self._closing = False
        self._failed = False
        """Whether the node stops without a true state."""
        self._settling: asyncio.Future[None] | None = None
        self._settling_since = 0.0
        self._loaded = asyncio.Event()
        """Whether the state is what the log makes of it: not while it is loaded again."""
        self._loaded.set()
        self._followers: list[Follower] = []
        self._reloads: list[Callable[[], None]] = []
        self._postmen: list[Callable[[], None]] = []
        self._histories: list[Callable[[], None]] = []
        self._newers: list[Callable[[str], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._beat: asyncio.Task[None] | None = None
        self._end_watch: Callable[[], None] | None = None

    @property
    def durable(self) -> int:
        """The number of the newest entry that is on disk, as far as this node knows."""
        return self.position.seq

    # Beginning and end

    async def open(self, heard: Callable[[str], None] = lambda _: None) -> None:
        """Load the state and begin to write. The database must be migrated.

        `heard` gets what other nodes `announce`.
        """
        known = self._bookmark.read() if self._bookmark is not None else None
        if known is not None and await self.store.read(history.is_lost, known):
            await self._renew(known)
        began = time.monotonic()
        head, stored = await self.store.read_log(
            lambda c: (history.head(c), _stored(c)), LOAD_SECONDS
        )
        self.state = State.load(head.seq, *stored)
        self.position = head.position
        self.freshness.verified(began)
        self._end_watch = self.store.watch(self._notice, heard)
        self._task = asyncio.create_task(self._work(), name="log-writer")
        self._beat = asyncio.create_task(self._keep_beating(), name="log-beat")

    async def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._closing = self._commits.is_closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
        if self._beat is not None:
            self._beat.cancel()
            await asyncio.wait([self._beat])
        await self._watch.close()
        if self._end_watch is not None:
            await asyncio.to_thread(self._end_watch)

    def follow(self, follower: Follower) -> None:
        """Call `follower` on the event loop with committed entries, in order, each once."""
        self._followers.append(follower)

    def on_reload(self, callback: Callable[[], None]) -> None:
        """Call when the state had to be thrown away and loaded again."""
        self._reloads.append(callback)

    def on_mail(self, callback: Callable[[], None]) -> None:
        """Call when this node has written down a mail to be sent."""
        self._postmen.append(callback)

    def on_history(self, callback: Callable[[], None]) -> None:
        """Call when the log has become another history, or a part of it was pruned that this node
        has not read: what was known of its entries is void."""
        self._histories.append(callback)

    def on_stale(self, callback: Callable[[], None]) -> None:
        """Call when the state cannot be verified any more: `require_fresh` refuses from now on."""
        self._watch.on_stale.append(callback)

    def on_newer(self, callback: Callable[[str], None]) -> None:
        """Call with the reason when this program is too old for the database: it decides nothing
        any more, and should end."""
        self._newers.append(callback)

    # How it is

    def require_fresh(self) -> None:
        """Unavailable where what the state shows may be over for longer than `STALE_SECONDS`."""
        if self.freshness.is_stale:
            raise stale()

    def problems(self) -> list[str]:
        """What keeps the node from its work, each in a sentence; nothing where all is well."""
        found = self.freshness.problems()
        if self._closing:
            found.append("The server is stopping.")
        return found

    async def examined(self) -> list[str]:
        """The problems, where the writer has tried whether something can be written, if it has not
        written just now. Takes some seconds at most."""
        if time.monotonic() - self.freshness.written_at > PROOF_SECONDS and not self._closing:
            if self._probed is None:
                self._probed = asyncio.get_running_loop().create_future()
            self._probe()
            done, _ = await asyncio.wait([self._probed], timeout=PROOF_WAIT_SECONDS)
            if not done and not self.problems():
                return [f"The writer did not come forward within {PROOF_WAIT_SECONDS:g} s."]
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
        `notes` are written down in the same commit, if the verb does not refuse. Raises what the
        verb refuses with; NotAuthenticated when the actor is deactivated by then; Unavailable when
        the commit failed (nothing was done), and OutcomeUnknown when that cannot be known. None of
        it takes much longer than `ANSWER_SECONDS`.
        """
        self._admit()
        answer = asyncio.get_running_loop().create_future()
        self._requests.commands.append(Command(actor_id, verb, arguments, notes, answer))
        result: T = await answer
        return result

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

        `look` runs in a thread, on a transaction that sees exactly what the state has folded;
        with `unseen` the database is read only where something is missing. `conclude` then runs at
        once on the event loop. What is unread of `reader_id` is loaded (`state.unread`). `queue`,
        given that entry's sequence number, is a queue to register: it is on disk when this
        returns. It may be asked for several, of which the last one counts.
        """
        self._admit()
        answer = asyncio.get_running_loop().create_future()
        self._requests.snapshots.append(Snapshot(reader_id, look, conclude, queue, answer))
        result: R = await answer
        return result

    async def with_unread(self, reader_id: int, conclude: Callable[[State], R]) -> R:
        """What follows from the state where what is unread of `reader_id` is loaded
        (`state.unread`). Where it is loaded already, nothing is waited for."""
        if self.state.unread.missing(self.state, reader_id):
            return await self.snapshot(reader_id, unseen, lambda state, _: conclude(state))
        self.state.unread.asked(self.state, reader_id)
        return conclude(self.state)

    def note(self, note: Note, *, soon: bool = True) -> None:
        """Write this down with the next commit, or within a moment; or, if it need not be `soon`,
        with the next commit that there is another reason for, if one comes."""
        if not soon:
            self._held.append(note)
            return
        self._notes.append(note)
        self._wake.set()

    def mail(self, mail: Mail) -> None:
        """Have the mail sent: it is written down with the next commit, or within a moment."""
        self.note(MailAsked(mail, self.clock()))

    async def settled(self, since: int | None = None) -> None:
        """Return when everything that the state shows now is on disk. Unavailable if it will not
        be; and, given the `generation` in which one began to look, if that is over."""
        if self._settling is not None:
            await asyncio.shield(self._settling)
        if since is not None and since != self.generation:
            raise Unavailable("The server had to begin anew. Try again.")

    async def was_reloaded(self, since: int) -> bool:
        """Whether the state was thrown away since that `generation` and is there again, which is
        waited for (`RELOAD_WAIT_SECONDS` at most)."""
        if self.generation == since:
            return False
        try:
            async with asyncio.timeout(RELOAD_WAIT_SECONDS):
                await self._loaded.wait()
        except TimeoutError:
            return False
        return True

    def when_settled(self, told: Callable[[Exception | None], None]) -> None:
        """Call when everything that the state shows now is on disk, at once if it is; with
        Unavailable if it will not be."""
        if self._settling is None:
            told(None)
            return
        self._settling.add_done_callback(
            lambda settled: told(not_done() if settled.exception() else None)
        )

    async def catch_up(self) -> None:
        """Fold what other processes have written, and return."""
        await self.snapshot(None, unseen, lambda *_: None)

    def _admit(self) -> None:
        if self._closing:
            raise Unavailable("The server is stopping.")
        if self.freshness.newer:
            raise stale()
        self._requests.admit()
        self._wake.set()

    def _notice(self, seq: int | None) -> None:
        """The log may have grown, to that entry if it is known. A node hears of its own commits
        too."""
        if seq is None or seq > self.state.seq:
            self._grown = True
            self._wake.set()

    # The writer

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._requests or self._notes or self._grown or self._must_probe:
                self.freshness.busy_since = time.monotonic()
                await self._round()
                self._requests.in_hand = []
                self._requests.is_committing = False
            self.freshness.busy_since = None
            if self._closing:
                return

    async def _round(self) -> None:
        commands, snapshots = self._requests.take()
        notes = list(self._notes)
        self._notes.clear()
        is_probed = self._must_probe
        if is_probed:
            self._must_probe = False
            notes.append(Probe())
        if commands or notes or any(snapshot.queue for snapshot in snapshots):
            notes[:0] = self._held
            self._held = []
        try:
            await self._carry_out(commands, snapshots, notes)
        except Misfold as error:
            # Nothing was written: the others have their turn once more.
            logger.exception("a command of %s made no sense", error.command.verb)
            if not error.command.answer.done():
                error.command.answer.set_exception(error.__cause__ or error)
            self._hold(notes)
            await self._recover(not_done())
            if not self._failed:
                self._requests.give_back(commands, snapshots)
        except NewerDatabase as error:
            await self._give_up(error)
        except Exception as error:  # Whatever failed, nothing of the group is true.
            if isinstance(error, DatabaseError):  # It is no mistake of ours.
                logger.error("the log could not be written: %s", described(error))
            else:
                logger.exception("the log could not be written")
            self._hold(notes)
            answer = OutcomeUnknown() if isinstance(error, Unknown) else not_done()
            await self._recover(answer, [*commands, *snapshots])
        finally:
            if self._probed is not None and is_probed:
                self._probed.set_result(None)
                self._probed = None

    async def _carry_out(
        self,
        commands: Sequence[Command],
        snapshots: Sequence[Snapshot[Any, Any]],
        notes: list[Note],
    ) -> None:
        registering = [snapshot for snapshot in snapshots if snapshot.queue is not None]
        if commands or notes or registering:
            try:
                if self.freshness.write_trouble:
                    self._adopt(await self._commits.prove(self.position))
                await self._commit(commands, snapshots, notes)
            except NotBegun as error:
                self._commits.failed(error.__cause__ or error)
                self._hold(notes)
                self._requests.refuse(not_done(), [*commands, *registering])
            notes.clear()  # They are on disk, or held.
        elif self._grown:
            await self._tail()
        for snapshot in snapshots:
            await self._take(snapshot)

    def _hold(self, notes: Sequence[Note]) -> None:
        kept = [note for note in notes if not isinstance(note, Probe)]
        self._held = bounded([*kept, *self._held])

    def _probe(self) -> None:
        """Have the writer try whether something can be written."""
        self._must_probe = True
        self._wake.set()

    async def _commit(
        self,
        commands: Sequence[Command],
        snapshots: Sequence[Snapshot[Any, Any]],
        notes: Sequence[Note],
    ) -> None:
        self._grown = False
        began = time.monotonic()
        growth = await self._commits.begin(self.position)
        self._adopt(growth)
        self.freshness.verified(began)
        self._settling = asyncio.get_running_loop().create_future()
        self._settling_since = time.monotonic()
        entries: list[Entry] = []
        mails: list[MailAsked] = []
        outcomes: list[tuple[Command, Any]] = []
        turn = time.perf_counter()
        for command in commands:
            if command.is_expired:
                continue
            outcome = await decide(self.state, command, self.clock(), entries, mails)
            outcomes.append((command, outcome))
            if time.perf_counter() - turn > TURN_SECONDS:
                # What they decided is not on disk yet: nobody is told of it meanwhile (`settled`).
                await asyncio.sleep(0)
                turn = time.perf_counter()
        done = (c for c, outcome in outcomes if not isinstance(outcome, BaseException))
        written = [*notes, *(note for command in done for note in command.notes), *mails]
        for snapshot in snapshots:
            if snapshot.queue is not None and not snapshot.answer.done():
                snapshot.registered = snapshot.queue(self.state.seq)
                written.append(snapshot.registered)
        batch = Batch(entries, self.state.take_dirty(), written)
        self._requests.is_committing = True
        await self._commits.commit(batch, growth.head)
        self._requests.is_committing = False
        if entries:
            self.position = Position(self.position.history, self.state.seq, batch.id)
        if not self._settling.done():
            self._settling.set_result(None)
        self._settling = None
        self._tell(entries)
        if any(isinstance(note, MailAsked) for note in written):
            for callback in self._postmen:
                callback()
        for command, outcome in outcomes:
            if command.answer.done():
                continue
            if isinstance(outcome, BaseException):
                command.answer.set_exception(outcome)
            else:
                command.answer.set_result(outcome)
        if len(commands) == GROUP:
            # Let them be answered. Once the state is ahead of the disk again they would have to
            # wait for that, behind those who came after them. (Of few it is better so: what they
            # ask next comes together, and is committed together.)
            await asyncio.sleep(0)

    async def _tail(self) -> None:
        self._grown, is_all = False, False
        while not is_all:
            began = time.monotonic()
            try:
                growth = await self.store.read_log(
                    lambda c: queries.growth(c, self.position, CATCH_UP)
                )
            except (NewerDatabase, HistoryChanged, HistoryPruned):
                raise
            except Exception as error:  # The next look at the head will find that it has grown.
                self.freshness.look_trouble = described(error)
                return
            self._adopt(growth)
            is_all = growth.is_all
        self.freshness.verified(began)

    def _adopt(self, growth: Growth) -> None:
        """Fold entries that another process committed."""
        for entry in growth.entries:
            fold(self.state, entry)
        if growth.entries:
            self.state.take_dirty()
            self.position = growth.position
            self._tell(growth.entries)

    def _tell(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        for follower in self._followers:
            try:
                follower(entries)
            except Exception:  # It is committed all the same, and must be answered so.
                logger.exception("entries %d to %d were not followed", entries[0].seq, self.durable)

    async def _take(self, snapshot: Snapshot[Any, Any]) -> None:
        """Nothing is decided while this runs; another node's commit is folded first."""
        reader_id = snapshot.reader_id

        def look(connection: Connection) -> tuple[Growth, Any, Any]:
            newer = queries.growth(connection, self.position, 2**31)
            # What other nodes committed may bring new channels: then it is loaded afterwards.
            loaded = None if newer.entries else load_reading(self.state, connection, reader_id)
            return newer, loaded, snapshot.look(connection)

        if snapshot.answer.done():
            return
        queue = snapshot.registered
        loaded = seen = None
        while not self._is_at_hand(snapshot):
            try:
                newer, loaded, seen = await self.store.read_log(look)
            except (NewerDatabase, HistoryChanged, HistoryPruned):
                raise
            except Exception as error:
                # Nothing was changed: it concerns nobody but the one who looks.
                if not isinstance(error, DatabaseUnavailable):
                    logger.exception("the database could not be read")
                if queue is not None:
                    self._held.append(QueueDeleted(queue.id))
                self._requests.refuse(Unavailable("The database could not be read."), [snapshot])
                return
            self._adopt(newer)
            if queue is not None and queue.start != self.state.seq:
                # It begins before what would be seen now: once more, with another queue.
                self._notes.append(QueueDeleted(queue.id))
                self._requests.snapshots.append(snapshot)
                return
            if not newer.entries:
                break
        if loaded is not None:
            install_reading(self.state, loaded)
        if snapshot.reader_id is not None:
            self.state.unread.asked(self.state, snapshot.reader_id)
        try:
            result = snapshot.conclude(self.state, seen)
        except Exception as error:
            if not snapshot.answer.done():
                snapshot.answer.set_exception(error)
        else:
            if not snapshot.answer.done():
                snapshot.answer.set_result(result)

    def _is_at_hand(self, snapshot: Snapshot[Any, Any]) -> bool:
        """Whether the state alone shows what is asked for, as it is where the queue begins."""
        queue, reader_id = snapshot.registered, snapshot.reader_id
        if snapshot.look is not unseen or queue is None or queue.start != self.state.seq:
            return False
        return reader_id is None or not self.state.unread.missing(self.state, reader_id)

    async def _recover(
        self,
        answer: Exception,
        waiting: Sequence[Command | Snapshot[Any, Any]] = (),
    ) -> None:
        """What the state shows is not true: say so, and load it again."""
        self._requests.is_committing = False
        self.generation += 1
        self._loaded.clear()
        # Until it is loaded, what the state shows is in doubt: `settled` says so at once.
        if self._settling is None:
            self._settling = asyncio.get_running_loop().create_future()
            self._settling_since = time.monotonic()
        if not self._settling.done():
            self._settling.set_exception(not_done())
            self._settling.exception()  # It is no mistake if nobody waits for it.
        self._requests.refuse(answer, waiting)
        while True:
            try:
                await self.store.rollback()
                is_other = await self._reload()
                break
            except NewerDatabase as newer:
                await self._give_up(newer)
                return
            except Exception as again:  # The database may come back: until then, wait.
                logger.warning("the state could not be loaded again: %s", described(again))
                if self._closing:
                    self._failed = True
                    self._refuse_all()
                    return
                await asyncio.sleep(RETRY_SECONDS)
        self._settling = None
        self._loaded.set()
        for callback in [*self._reloads, *(self._histories if is_other else ())]:
            try:
                callback()
            except Exception:  # The writer goes on.
                logger.exception("a new state was not followed")

    async def _reload(self) -> bool:
        """Load the state, and tell what was committed meanwhile (by others, or by a commit whose
        success was not heard of). Returns whether the log is another history, or a part was pruned
        that nobody here has heard of; where it went back in time, it is made another one."""
        known = self.position
        began = time.monotonic()

        def look(connection: Connection) -> tuple[Head, _Stored, Growth | None]:
            try:
                growth = queries.growth(connection, known, 2**31)
            except (HistoryChanged, HistoryPruned) as changed:
                return changed.head, _stored(connection), None
            return growth.head, _stored(connection), growth

        head, stored, growth = await self.store.read_log(look, LOAD_SECONDS)
        is_pruned = known.seq < head.pruned and known.seq <= head.seq
        if growth is None and head.history == known.history and not is_pruned:
            await self._renew(known)
            return await self._reload()
        # It takes as long as it is large, and nobody sees it yet.
        self.state = await asyncio.to_thread(State.load, head.seq, *stored)
        self.position = head.position
        self.freshness.verified(began)
        if growth is None:
            return True
        self._tell(growth.entries)
        return False

    async def _renew(self, known: Position) -> None:
        """Make the log another history, if no other node has done it yet."""
        logger.error(
            "the database went back in time: entry %d, which was in the log, is not any more. The"
            " log gets a new identity, and all event queues end",
            known.seq,
        )
        await self.store.write(lambda connection: history.renew_where_lost(connection, known))

    async def _give_up(self, error: NewerDatabase) -> None:
        """This program is too old for the database: it decides nothing any more."""
        if not self.freshness.newer:
            logger.error("this program is too old for the database: %s", error)
        self.freshness.newer = str(error)
        await self._commits.abandon()
        self._refuse_all(self._requests.in_hand)
        for callback in self._newers:
            callback(str(error))

    def _refuse_all(self, in_hand: Sequence[Command | Snapshot[Any, Any]] = ()) -> None:
        """There is no way on, and the end is near."""
        self._requests.refuse(not_done(), in_hand)
        self._requests.refuse(not_done())
        self._notes.clear()
        self._grown = self._must_probe = False

    # What is looked at every second

    async def _keep_beating(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            try:
                self._look_after()
            except Exception:  # It is looked after again in a second.
                logger.exception("the log could not be looked after")

    def _look_after(self) -> None:
        now = time.monotonic()
        self._requests.expire()
        settling = self._settling
        if (
            settling is not None
            and not settling.done()
            and now - self._settling_since > ANSWER_SECONDS
        ):
            settling.set_exception(not_done())
            settling.exception()  # It is no mistake if nobody waits for it.
        if self.freshness.write_trouble and not self.freshness.newer:
            self._probe()
        self._watch.beat()


_Stored = tuple[dict[str, list[Any]], list[AnyChange]]
"""What the state is loaded from: the records by table, and what was sent of late."""


def _stored(connection: Connection) -> _Stored:
    return queries.records(connection), queries.recent_sends(connection, RECALLED)


def stale() -> Unavailable:
    """What is told by a node that does not know enough to answer."""
    return Unavailable(
        "This node cannot see at present whether what it knows is up to date. Try again."
    )
