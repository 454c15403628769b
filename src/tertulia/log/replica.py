"""A node's copy of the log, folded into the state: loading it, following other nodes' commits, and
waiting for entries that clients have seen on other nodes."""

import asyncio
import heapq
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from tertulia.log.health import Freshness, described
from tertulia.log.requests import Inbox
from tertulia.model.changes import Entry
from tertulia.model.errors import Unavailable
from tertulia.model.nouns import NOUNS
from tertulia.state.folds import fold
from tertulia.state.messages import RECALLED_SENDS
from tertulia.state.recent_gains import GAINING, RECALLED
from tertulia.state.state import State
from tertulia.store import installation, log_entries, pruning, queries
from tertulia.store.broadcast import EntryBroadcast
from tertulia.store.database import Connection, TimeLimitReached
from tertulia.store.installation import Head, HistoryChanged, HistoryPruned, NewerDatabase, Position
from tertulia.store.log_entries import LogTail
from tertulia.store.store import CATCH_UP, LOAD_SECONDS, Store

if TYPE_CHECKING:
    from tertulia.store.transfer import Progress

logger = logging.getLogger("tertulia.log")

Follower = Callable[[Sequence[Entry]], None]
T = TypeVar("T")


class LogSubscribers:
    """Callbacks of the log, which are called on the event loop while it's open."""

    def __init__(self) -> None:
        self.followers: list[Follower] = []
        """Called with committed entries, in order, each once."""
        self.on_reload: list[Callable[[], None]] = []
        """Called when the state was discarded and reloaded."""
        self.on_history: list[Callable[[], None]] = []
        """Called when the log's history changed, or a part of it was pruned before this node read
        it, so that earlier knowledge of its entries is invalid."""
        self.on_mail: list[Callable[[], None]] = []
        """Called when this node has committed an email to send."""
        self.on_call: list[Callable[[], None]] = []
        """Called when this node has committed a call of a bot's service."""
        self.on_stale: list[Callable[[], None]] = []
        """Called when the state can no longer be verified, so that `require_fresh` refuses."""
        self.on_newer: list[Callable[[str], None]] = []
        """Called with the reason when this program is too old for the database. It decides nothing
        more and should exit."""

    def committed(self, entries: Sequence[Entry]) -> None:
        """Call the followers with entries that are on disk and in the state."""
        if not entries:
            return
        for follower in self.followers:
            try:
                follower(entries)
            except Exception:  # It's committed nevertheless, and the response must say so.
                logger.exception(
                    "a follower failed on entries %d to %d", entries[0].seq, entries[-1].seq
                )

    def reloaded(self, *, is_other_history: bool) -> None:
        """Report that the state was discarded and reloaded."""
        for callback in [*self.on_reload, *(self.on_history if is_other_history else ())]:
            try:
                callback()
            except Exception:  # The writer continues.
                logger.exception("a callback failed after the state was reloaded")


_MAX_BROADCASTS: Final = 500
"""The most broadcasts that wait to be folded."""


class Replica:
    """The state, and the log position that it has reached. Only the writer changes it."""

    def __init__(self, store: Store, freshness: Freshness, subscribers: LogSubscribers) -> None:
        self.state: State
        """The fold up to the newest entry that this node knows, which may not be on disk yet. Set
        by `open`."""
        self.position = Position("", 0, "")
        """The newest entry on disk that this node knows."""
        self._store = store
        self._freshness = freshness
        self._subscribers = subscribers
        self._broadcasts: deque[EntryBroadcast] = deque(maxlen=_MAX_BROADCASTS)
        """Broadcasts to fold. If the oldest are dropped, the log is read instead."""
        self._is_hearing = False
        self._failure: Exception | None = None
        """The error of a failed fold: the state is invalid."""

    async def open(self, last_known: Position | None) -> None:
        """Load the state. `last_known` is the node's position when it last ran. If the log no
        longer has it, the log gets a new history."""
        if last_known is not None and await self._store.read(installation.is_lost, last_known):
            await self._renew_history(last_known)
        began = time.monotonic()
        head, self.state = await self._load(_loaded)
        self.position = head.position
        self._freshness.loaded(head.seq)
        self._freshness.verified(began)

    async def _load(self, function: Callable[[Connection], T]) -> T:
        """Run the function, which loads the state, within `LOAD_SECONDS`."""
        began = time.monotonic()
        try:
            return await self._store.read_log(function, LOAD_SECONDS)
        except TimeLimitReached as error:
            if time.monotonic() - began < LOAD_SECONDS:
                raise  # The database had another reason.
            raise TimeLimitReached(
                f"Loading the organization's data took longer than {LOAD_SECONDS} s. The database"
                " or this machine may be overloaded, or this process may have been suspended. Try"
                " again."
            ) from error

    def adopt(self, growth: LogTail) -> None:
        """Fold entries that another process committed, except those already folded, and call the
        followers."""
        self._require_true()
        entries = [entry for entry in growth.entries if entry.seq > self.state.seq]
        self._fold(entries, growth.position)
        self._subscribers.committed(entries)

    def _fold(self, entries: Sequence[Entry], position: Position) -> None:
        for entry in entries:
            fold(self.state, entry)
        if entries:
            self.state.take_dirty()
            self._move(position)

    # Broadcasts of other nodes

    def hear(self, broadcasts: Iterable[EntryBroadcast]) -> bool:
        """Fold broadcasts: immediately while `hearing`, otherwise when it next begins. Return False
        if entries in between are missing and must be read from the log."""
        self._broadcasts.extend(broadcasts)
        return not self._is_hearing or self._fold_broadcasts()

    @contextmanager
    def hearing(self) -> Iterator[bool]:
        """Fold broadcasts: waiting ones now, and others as they arrive within the context.
        Within it the state may change in any turn of the event loop, so nothing else may change it.
        Yields as `hear` returns."""
        self._is_hearing = True
        try:
            yield self._fold_broadcasts()
        finally:
            self._is_hearing = False

    def _fold_broadcasts(self) -> bool:
        adopted: list[Entry] = []
        is_gapless = True
        while is_gapless and self._broadcasts and self._failure is None:
            broadcast = self._broadcasts.popleft()
            if broadcast.history == self.position.history and broadcast.seq <= self.position.seq:
                continue  # It was already read from the log.
            if not broadcast.follows(self.position):
                self._broadcasts.clear()
                is_gapless = False
                continue
            entries = list(broadcast.entries())
            try:
                self._fold(entries, Position(broadcast.history, broadcast.seq, broadcast.batch))
            except Exception as error:  # Only the writer can reload the state.
                self._failure = error
            else:
                adopted += entries
        # Call the followers once for all broadcasts: most of their cost is per call.
        self._subscribers.committed(adopted)
        return is_gapless and self._failure is None

    def _require_true(self) -> None:
        """Raise the error of a failed fold, if any."""
        if self._failure is not None:
            raise self._failure

    def advance(self, entries: Sequence[Entry], batch_id: str) -> None:
        """Record that this node's own entries, which the state has folded, are on disk."""
        if entries:
            self._move(Position(self.position.history, entries[-1].seq, batch_id))

    def _move(self, position: Position) -> None:
        self.position = position
        self.state.unread.settle(position.seq)

    async def catch_up(self) -> None:
        """Read and fold entries that other processes have committed. Raise HistoryChanged,
        HistoryPruned, and NewerDatabase. Do nothing if the database can't be read."""
        self._require_true()
        is_all = False
        while not is_all:
            began = time.monotonic()
            try:
                growth = await self._store.read_log(
                    lambda c: log_entries.read_tail(c, self.position, CATCH_UP)
                )
            except (NewerDatabase, HistoryChanged, HistoryPruned):
                raise
            except Exception as error:  # The next look at the head will find that it has grown.
                self._freshness.look_trouble = described(error)
                return
            self.adopt(growth)
            is_all = growth.is_all
        self._freshness.verified(began)

    async def reload(self) -> bool:
        """Reload the state, and call the followers with entries that were committed in between, by
        others or by this node's commit with an unknown outcome.

        Return whether the log has another history, or entries were pruned that this node hasn't
        read. If the log went back in time, it gets a new history.
        """
        known = self.position
        began = time.monotonic()

        def look(connection: Connection) -> tuple[Head, State, LogTail | None]:
            try:
                growth = log_entries.read_tail(connection, known, CATCH_UP)
            except (HistoryChanged, HistoryPruned):
                growth = None
            return *_loaded(connection), growth

        # This takes time, and nobody sees the new state yet.
        head, state, growth = await self._load(look)
        is_pruned = known.seq < head.pruned and known.seq <= head.seq
        if growth is None and head.history == known.history and not is_pruned:
            await self._renew_history(known)
            return await self.reload()
        self.state = state
        self._failure = None
        self._freshness.loaded(head.seq)
        self._freshness.verified(began)
        return await self._follow_up(head, growth)

    async def _follow_up(self, head: Head, growth: LogTail | None) -> bool:
        """Call the followers with everything up to the new state, beginning with `growth`. Return
        whether the log no longer has some of it. If the database fails, the next reload continues
        from there."""
        while growth is not None and growth.position.seq < head.seq:
            self.position = growth.position
            self._subscribers.committed(growth.entries)
            try:
                growth = await self._store.read_log(
                    lambda c: log_entries.read_tail(c, self.position, CATCH_UP)
                )
            except (HistoryChanged, HistoryPruned):
                growth = None
        self.position = head.position
        if growth is None:
            return True
        # Entries that were committed since then are read by `catch_up`.
        self._subscribers.committed([entry for entry in growth.entries if entry.seq <= head.seq])
        return False

    async def _renew_history(self, known: Position) -> None:
        """Give the log a new history, if no other node has done so."""
        logger.error(
            "the database went back in time: entry %d is missing from the log. The log gets a new"
            " identity, and all event queues end",
            known.seq,
        )
        await self._store.write(lambda connection: installation.renew_where_lost(connection, known))


def _loaded(connection: Connection) -> tuple[Head, State]:
    """Return the state on disk, and the log's entry that it's as of."""
    head = installation.head_position(connection)
    sent = log_entries.recent_sends(connection, RECALLED_SENDS)
    gaining = queries.recent_of(connection, GAINING, RECALLED)
    with queries.scanned(connection, (noun.table for noun in NOUNS)) as records:
        return head, State.load(head.seq, records, sent, gaining)


BEHIND_SECONDS: Final = 2.0
"""The most seconds that a request waits."""
MAX_BEHIND_REQUESTS: Final = 5000
"""The most requests that can wait; others are refused."""
PAUSE_SECONDS: Final = 0.01
"""The pause between checks of the log's head, in seconds. One check is for all waiting requests, so
more clients don't cause more checks."""
LOOK_AGAIN_SECONDS: Final = 0.2
"""The pause after a failed check."""


_Waiter = tuple[int, int, asyncio.Future[None]]
"""The number of an entry, a serial number, and a future that is done when the entry is
available."""


class CatchingUp:
    """Waits for entries that this node doesn't have yet.

    Usually a broadcast brings them within milliseconds. To be independent of that, the log is read
    immediately, and then its head. If the head hasn't reached an entry by then, no client can have
    seen it: the number is made up, or from a log that went back in time.
    """

    def __init__(self, store: Store, replica: Replica, inbox: Inbox) -> None:
        self._store = store
        self._replica = replica
        self._inbox = inbox
        self._waiting: list[_Waiter] = []
        """A heap of waiting requests."""
        self._asked = 0
        self._task: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """Return the number of waiting requests."""
        return sum(not waiter[2].done() for waiter in self._waiting)

    @property
    def is_awaited(self) -> bool:
        """Whether any request waits."""
        return bool(self._waiting)

    async def reached(self, seq: int) -> None:
        """Return when the state has the entry, or when the log is known to lack it. Raise
        Unavailable after `BEHIND_SECONDS`."""
        if seq > self._replica.position.seq:
            self._store.hear()  # The broadcast may have arrived unread.
        if seq <= self._replica.position.seq:
            return
        if len(self._waiting) >= MAX_BEHIND_REQUESTS:
            raise _behind_error()
        future = asyncio.get_running_loop().create_future()
        self._asked += 1
        heapq.heappush(self._waiting, (seq, self._asked, future))
        if self._task is None:
            self._task = asyncio.create_task(self._look_on(), name="log-catching-up")
        try:
            async with asyncio.timeout(BEHIND_SECONDS):
                await future
        except TimeoutError:
            raise _behind_error() from None

    def on_entries(self, _: Sequence[Entry]) -> None:
        """Wake requests whose entries were folded."""
        waiting, seq = self._waiting, self._replica.position.seq
        while waiting and waiting[0][0] <= seq:
            _finish(heapq.heappop(waiting))

    def on_reload(self) -> None:
        """Wake requests whose entries were loaded. The others may wait for entries that were
        committed after the state was read, so their end is for `_look_on` to decide."""
        self.on_entries(())

    async def close(self) -> None:
        """Stop, and refuse all requests that wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        for _, _, future in self._waiting:
            if not future.done():
                future.set_exception(Unavailable("The server is shutting down. Try again."))
        self._waiting = []

    async def _look_on(self) -> None:
        pause = PAUSE_SECONDS
        try:
            while self._waiting:
                self._inbox.add_growth()
                await asyncio.sleep(pause)
                if not self._waiting:
                    return
                asked = list(self._waiting)
                try:
                    head = await self._store.look()
                except Exception:  # `HeadWatch` reports it. Here, look again.
                    pause = LOOK_AGAIN_SECONDS
                else:
                    pause = PAUSE_SECONDS
                    is_same = head.history == self._replica.position.history
                    for waiter in asked:
                        if not is_same or waiter[0] > head.seq:
                            _finish(waiter)
                self._waiting = [waiter for waiter in self._waiting if not waiter[2].done()]
                heapq.heapify(self._waiting)
        finally:
            self._task = None


def _finish(waiter: _Waiter) -> None:
    if not waiter[2].done():
        waiter[2].set_result(None)


def _behind_error() -> Unavailable:
    return Unavailable(
        "This node hasn't caught up with changes that you've already seen on another node."
        " Try again in a moment."
    )


def replayed(connection: Connection, progress: "Progress") -> State:
    """Return the fold of the whole log or, if its beginning was pruned, of the checkpoint and the
    entries after it. Raise ValueError if the checkpoint is missing."""
    state = State()
    if forgotten := log_entries.pruned(connection):
        seq, records = pruning.checkpoint(connection)
        if seq < forgotten:
            raise ValueError("the log's beginning was forgotten, and there is no checkpoint")
        state = State.load(seq, records)
    begin, head = state.seq, installation.head_position(connection).seq
    while page := log_entries.entries(
        connection, state.seq, CATCH_UP, most_bytes=log_entries.TAIL_BYTES
    ):
        for entry in page:
            fold(state, entry)
        # Otherwise, it would keep all changes until they're written.
        state.take_dirty()
        state.unread.settle(state.seq)
        progress("log", state.seq - begin, head - begin)
    return state


def replay_differences(
    connection: Connection, progress: "Progress" = lambda *_: None
) -> list[tuple[str, int]]:
    """Return the tables that differ from what the log produces, each with the number of different
    records. `progress` hears how many entries were read."""
    state = replayed(connection, progress)
    records = queries.records(connection)
    result: list[tuple[str, int]] = []
    for noun in NOUNS:
        stored = {noun.key_of(record): record for record in records[noun.table]}
        folded = state.tables[noun.table].rows
        wrong = sum(stored.get(key) != folded.get(key) for key in stored.keys() | folded.keys())
        if wrong:
            result.append((noun.table, wrong))
    return result
