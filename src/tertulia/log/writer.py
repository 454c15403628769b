"""The single writer: lets waiting commands decide, commits them together, tells who follows.

The state runs ahead of the disk by at most one group of commands. An answer that saw such a state
must wait for it: `settled`. When a commit fails, the state is thrown away and loaded again.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tertulia.model.changes import AnyChange, Entry
from tertulia.model.errors import NotAuthenticated, Refused, Unavailable
from tertulia.model.mail import Mail
from tertulia.model.queues import QueueRecord
from tertulia.state.fold import fold
from tertulia.state.moment import Decision, Moment, Verb
from tertulia.state.organization import State
from tertulia.state.reading import ChannelMessages, DirectMessages, Reader
from tertulia.store import reading
from tertulia.store.database import Connection, DatabaseUnavailable
from tertulia.store.store import CATCH_UP, LOAD_SECONDS, Store
from tertulia.store.writing import Batch, MailAsked, Note, QueueDeleted

logger = logging.getLogger("tertulia.log")

T = TypeVar("T")
R = TypeVar("R")

GROUP = 256
"""Commands that are committed together at most."""
RETRY_SECONDS = 0.5


def unseen(_: Connection) -> None:
    """What a snapshot looks at that wants nothing of the database."""


Follower = Callable[[Sequence[Entry]], None]


@dataclass
class _Command:
    actor_id: int | None
    verb: Verb[Any]
    arguments: tuple[Any, ...]
    notes: Sequence[Note]
    answer: asyncio.Future[Any]


@dataclass
class _Snapshot(Generic[T, R]):
    reader_id: int | None
    look: Callable[[Connection], T]
    conclude: Callable[[State, T], R]
    queue: Callable[[int], QueueRecord] | None
    answer: asyncio.Future[R]
    registered: QueueRecord | None = None
    """The queue that was written down for it."""


class _Misfold(Exception):
    """A verb asked for a change that cannot be folded: a mistake of ours in that verb."""

    def __init__(self, command: _Command) -> None:
        self.command = command
        super().__init__("a change could not be folded")


class Log:
    """One node's hold on the log.

    `state` is the fold up to the newest entry that this node knows, durable or about to be.
    """

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float] = time.time,
        elapsed: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` tells UNIX seconds, `elapsed` how much time has passed, whatever becomes of the
        clock."""
        self.store = store
        self.clock = clock
        self.elapsed = elapsed
        self.state = State()
        self.durable = 0
        """The newest entry that is on disk, as far as this node knows."""
        self.generation = 0
        """How many times the state had to be thrown away."""
        self._commands: deque[_Command] = deque()
        self._snapshots: deque[_Snapshot[Any, Any]] = deque()
        self._notes: deque[Note] = deque()
        self._held: list[Note] = []
        """Notes of a commit that failed, and others without hurry: for the next one that there is
        a reason for."""
        self._wake = asyncio.Event()
        self._grown = False
        self._closing = False
        self._failed = False
        """Whether the node stops without a true state."""
        self._settling: asyncio.Future[None] | None = None
        self._followers: list[Follower] = []
        self._reloads: list[Callable[[], None]] = []
        self._postmen: list[Callable[[], None]] = []
        self._task: asyncio.Task[None] | None = None
        self._end_watch: Callable[[], None] | None = None

    # Beginning and end

    async def open(self, heard: Callable[[str], None] = lambda _: None) -> None:
        """Load the state and begin to write. The database must be migrated.

        `heard` gets what other nodes `announce`.
        """
        seq, records = await self.store.read_log(
            lambda c: (reading.head(c), reading.records(c)), LOAD_SECONDS
        )
        self.state = State.load(seq, records)
        self.durable = seq
        self._end_watch = self.store.watch(self._notice, heard)
        self._task = asyncio.create_task(self._work(), name="log-writer")

    async def close(self) -> None:
        """Finish what is waiting, then stop."""
        self._closing = True
        self._wake.set()
        if self._task is not None:
            await self._task
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
        the commit failed (nothing was done).
        """
        self._admit()
        answer = asyncio.get_running_loop().create_future()
        self._commands.append(_Command(actor_id, verb, arguments, notes, answer))
        result: T = await answer
        return result

    def consider(self, actor_id: int, verb: Verb[T], *arguments: Any) -> T:
        """Let a verb decide that changes nothing, on the state as it is. Raises as `submit`."""
        decision = verb(self._moment(actor_id, self.clock()), *arguments)
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
        once on the event loop. What is unread of `reader_id` is loaded (`state.reading`). `queue`,
        given that entry's sequence number, is a queue to register: it is on disk when this
        returns. It may be asked for several, of which the last one counts.
        """
        self._admit()
        answer = asyncio.get_running_loop().create_future()
        self._snapshots.append(_Snapshot(reader_id, look, conclude, queue, answer))
        result: R = await answer
        return result

    async def with_unread(self, reader_id: int, conclude: Callable[[State], R]) -> R:
        """What follows from the state where what is unread of `reader_id` is loaded
        (`state.reading`). Where it is loaded already, nothing is waited for."""
        if self.state.reading.missing(self.state, reader_id):
            return await self.snapshot(reader_id, unseen, lambda state, _: conclude(state))
        self.state.reading.asked(self.state, reader_id)
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

    def when_settled(self, told: Callable[[Exception | None], None]) -> None:
        """Call when everything that the state shows now is on disk, at once if it is; with
        Unavailable if it will not be."""
        if self._settling is None:
            told(None)
            return
        self._settling.add_done_callback(
            lambda settled: told(_unavailable() if settled.exception() else None)
        )

    async def catch_up(self) -> None:
        """Fold what other processes have written, and return."""
        await self.snapshot(None, unseen, lambda *_: None)

    def _admit(self) -> None:
        if self._closing:
            raise Unavailable("The server is stopping.")
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
            while self._commands or self._snapshots or self._notes or self._grown:
                await self._round()
            if self._closing:
                return

    async def _round(self) -> None:
        commands = [self._commands.popleft() for _ in range(min(GROUP, len(self._commands)))]
        snapshots = list(self._snapshots)
        self._snapshots.clear()
        notes = list(self._notes)
        self._notes.clear()
        must_commit = commands or notes or any(snapshot.queue for snapshot in snapshots)
        if must_commit:
            notes[:0] = self._held
            self._held = []
        try:
            if must_commit:
                await self._commit(commands, snapshots, notes)
            elif self._grown:
                self._grown = False
                await self._tail()
            for snapshot in snapshots:
                await self._take(snapshot)
        except _Misfold as error:
            # Nothing was written: the others have their turn once more.
            logger.exception("a command of %s made no sense", error.command.verb)
            if not error.command.answer.done():
                error.command.answer.set_exception(error.__cause__ or error)
            self._held = notes
            await self._recover([])
            self._commands.extendleft(c for c in reversed(commands) if c is not error.command)
            self._snapshots.extendleft(reversed(snapshots))
            if self._failed:
                self._refuse_all()
        except Exception:  # Whatever failed, nothing of the group is true.
            logger.exception("the log could not be written")
            self._held = notes
            await self._recover([*commands, *snapshots])

    async def _commit(
        self,
        commands: Sequence[_Command],
        snapshots: Sequence[_Snapshot[Any, Any]],
        notes: Sequence[Note],
    ) -> None:
        self._grown = False
        self._adopt(await self.store.begin(self.state.seq))
        self._settling = asyncio.get_running_loop().create_future()
        entries: list[Entry] = []
        mails: list[MailAsked] = []
        outcomes = [(command, self._decide(command, entries, mails)) for command in commands]
        done = (c for c, outcome in outcomes if not isinstance(outcome, BaseException))
        written = [*notes, *(note for command in done for note in command.notes), *mails]
        for snapshot in snapshots:
            if snapshot.queue is not None and not snapshot.answer.done():
                snapshot.registered = snapshot.queue(self.state.seq)
                written.append(snapshot.registered)
        await self.store.commit(Batch(entries, self.state.take_dirty(), written))
        self.durable = self.state.seq
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

    def _decide(self, command: _Command, entries: list[Entry], mails: list[MailAsked]) -> Any:
        """The command's result, its changes folded and added to the entries, its mails to the
        mails; or its exception."""
        now = self.clock()
        try:
            decision: Decision[Any] = command.verb(
                self._moment(command.actor_id, now), *command.arguments
            )
        except Refused as refusal:
            return refusal
        except Exception as error:  # A mistake of ours in one command is that command's alone.
            return error
        try:
            for change in decision.changes:
                entry = self._entry(command.actor_id, change, now)
                fold(self.state, entry)
                entries.append(entry)
        except Exception as error:
            raise _Misfold(command) from error
        mails.extend(MailAsked(mail, now) for mail in decision.mails)
        return decision.result

    def _moment(self, actor_id: int | None, now: float) -> Moment:
        if actor_id is None:
            return Moment(self.state, now, None)
        actor = self.state.users.get(actor_id)
        if actor is None or not actor.is_active:
            raise NotAuthenticated("The account has been deactivated.")
        return Moment(self.state, now, actor.id)

    def _entry(self, actor_id: int | None, change: AnyChange, now: float) -> Entry:
        return Entry(self.state.seq + 1, now, actor_id, change)

    async def _tail(self) -> None:
        def newer(connection: Connection) -> list[Entry]:
            return reading.entries(connection, self.state.seq, CATCH_UP)

        while found := await self.store.read_log(newer):
            self._adopt(found)

    def _adopt(self, entries: Sequence[Entry]) -> None:
        """Fold entries that another process committed."""
        for entry in entries:
            fold(self.state, entry)
        if entries:
            self.state.take_dirty()
            self.durable = self.state.seq
            self._tell(entries)

    def _tell(self, entries: Sequence[Entry]) -> None:
        if not entries:
            return
        for follower in self._followers:
            try:
                follower(entries)
            except Exception:  # It is committed all the same, and must be answered so.
                logger.exception("entries %d to %d were not followed", entries[0].seq, self.durable)

    async def _take(self, snapshot: _Snapshot[Any, Any]) -> None:
        """Nothing is decided while this runs; another node's commit is folded first."""
        reader_id = snapshot.reader_id

        def look(connection: Connection) -> tuple[list[Entry], Any, Any]:
            newer = reading.entries(connection, self.state.seq, 2**31)
            # What other nodes committed may bring new channels: then it is loaded afterwards.
            loaded = None if newer else self._load_reading(connection, reader_id)
            return newer, loaded, snapshot.look(connection)

        if snapshot.answer.cancelled():
            return
        queue = snapshot.registered
        loaded = seen = None
        while not self._is_at_hand(snapshot):
            try:
                newer, loaded, seen = await self.store.read_log(look)
            except DatabaseUnavailable as error:
                # Nothing was changed: it concerns nobody but the one who looks.
                if queue is not None:
                    self._held.append(QueueDeleted(queue.id))
                if not snapshot.answer.done():
                    snapshot.answer.set_exception(error)
                return
            self._adopt(newer)
            if queue is not None and queue.start != self.state.seq:
                # It begins before what would be seen now: once more, with another queue.
                self._notes.append(QueueDeleted(queue.id))
                self._snapshots.append(snapshot)
                return
            if not newer:
                break
        if loaded is not None:
            self._install(loaded)
        if snapshot.reader_id is not None:
            self.state.reading.asked(self.state, snapshot.reader_id)
        try:
            result = snapshot.conclude(self.state, seen)
        except Exception as error:
            if not snapshot.answer.done():
                snapshot.answer.set_exception(error)
        else:
            if not snapshot.answer.done():
                snapshot.answer.set_result(result)

    def _is_at_hand(self, snapshot: _Snapshot[Any, Any]) -> bool:
        """Whether the state alone shows what is asked for, as it is where the queue begins."""
        queue, reader_id = snapshot.registered, snapshot.reader_id
        if snapshot.look is not unseen or queue is None or queue.start != self.state.seq:
            return False
        return reader_id is None or not self.state.reading.missing(self.state, reader_id)

    def _load_reading(self, connection: Connection, reader_id: int | None) -> Any:
        if reader_id is None:
            return None
        missing = self.state.reading.missing(self.state, reader_id)
        if not missing:
            return None
        return (
            (reader_id, reading.reader(connection, reader_id)) if missing.reader else None,
            reading.channel_messages(connection, missing.channel_ids),
            reading.direct_messages(connection, missing.direct_ids),
        )

    def _install(self, loaded: Any) -> None:
        reader, channels, directs = loaded
        kept = self.state.reading
        if reader is not None:
            kept.readers[reader[0]] = Reader(*reader[1])
        for channel_id, messages in channels.items():
            kept.channels[channel_id] = ChannelMessages(
                messages.all, messages.topics, messages.wildcards
            )
        for direct_id, ids in directs.items():
            kept.directs[direct_id] = DirectMessages(ids)

    async def _recover(self, waiting: Sequence[Any]) -> None:
        """The commit failed: nothing of it is true. Say so, and load the state again."""
        unavailable = _unavailable()
        self.generation += 1
        # Until it is loaded, what the state shows is in doubt: `settled` says so at once.
        if self._settling is None:
            self._settling = asyncio.get_running_loop().create_future()
        self._settling.set_exception(unavailable)
        self._settling.exception()  # It is no mistake if nobody waits for it.
        for request in waiting:
            if not request.answer.done():
                request.answer.set_exception(unavailable)
        while True:
            try:
                await self.store.rollback()
                await self._reload()
                break
            except Exception:  # The database may come back: until then, wait.
                logger.exception("the state could not be loaded again")
                if self._closing:
                    self._failed = True
                    self._refuse_all()
                    return
                await asyncio.sleep(RETRY_SECONDS)
        self._settling = None
        for callback in self._reloads:
            callback()

    async def _reload(self) -> None:
        """Load the state, and tell what was committed meanwhile (by others, or by a commit whose
        success was not heard of)."""
        seq, records, missed = await self.store.read_log(
            lambda c: (
                reading.head(c),
                reading.records(c),
                reading.entries(c, self.durable, 2**31),
            ),
            LOAD_SECONDS,
        )
        self.state = State.load(seq, records)
        self.durable = seq
        self._tell(missed)

    def _refuse_all(self) -> None:
        """There is no way on, and the end is near."""
        waiting: list[_Command | _Snapshot[Any, Any]] = [*self._commands, *self._snapshots]
        for request in waiting:
            if not request.answer.done():
                request.answer.set_exception(_unavailable())
        self._commands.clear()
        self._snapshots.clear()
        self._notes.clear()
        self._grown = False


def _unavailable() -> Unavailable:
    return Unavailable("The change could not be written. Nothing was done.")
