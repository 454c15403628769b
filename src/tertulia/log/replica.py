"""A node's copy of the log, folded: how it is loaded, and follows what other nodes commit."""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from tertulia.log.errors import described
from tertulia.log.freshness import Freshness
from tertulia.model.changes import AnyChange, Entry
from tertulia.model.nouns import NOUNS
from tertulia.state.fold import fold
from tertulia.state.idempotency import RECALLED
from tertulia.state.state import State
from tertulia.store import installation, log_entries, pruning, queries
from tertulia.store.broadcast import EntryBroadcast
from tertulia.store.database import Connection
from tertulia.store.installation import Head, HistoryChanged, HistoryPruned, NewerDatabase, Position
from tertulia.store.log_entries import LogTail
from tertulia.store.store import CATCH_UP, LOAD_SECONDS, Store

logger = logging.getLogger("tertulia.log")

Follower = Callable[[Sequence[Entry]], None]


class Subscribers:
    """The callbacks. All of them are called on the event loop."""

    def __init__(self) -> None:
        self.followers: list[Follower] = []
        self.on_reload: list[Callable[[], None]] = []
        self.on_history: list[Callable[[], None]] = []
        self.on_mail: list[Callable[[], None]] = []
        self.on_call: list[Callable[[], None]] = []
        self.on_stale: list[Callable[[], None]] = []
        self.on_newer: list[Callable[[str], None]] = []

    def committed(self, entries: Sequence[Entry]) -> None:
        """The entries are on disk, and in the state."""
        if not entries:
            return
        for follower in self.followers:
            try:
                follower(entries)
            except Exception:  # It is committed all the same, and must be answered so.
                logger.exception(
                    "entries %d to %d were not followed", entries[0].seq, entries[-1].seq
                )

    def reloaded(self, *, is_other_history: bool) -> None:
        """The state was thrown away and loaded again."""
        for callback in [*self.on_reload, *(self.on_history if is_other_history else ())]:
            try:
                callback()
            except Exception:  # The writer goes on.
                logger.exception("a new state was not followed")

    def mail_written(self) -> None:
        """A mail to be sent is on disk."""
        for callback in self.on_mail:
            callback()

    def call_written(self) -> None:
        """A call of a bot's service is on disk."""
        for callback in self.on_call:
            callback()

    def stale(self) -> None:
        """The state cannot be verified any more."""
        for callback in self.on_stale:
            callback()

    def newer(self, reason: str) -> None:
        """This program is too old for the database."""
        for callback in self.on_newer:
            callback(reason)


_MOST_TOLD: Final = 500
"""What other nodes told that waits to be adopted."""

_Stored = tuple[dict[str, list[Any]], list[AnyChange]]
"""What a state is loaded from: the records by table, and the newest messages' changes."""


class Replica:
    """The state, and the entry of the log that it has come to. Changed by the writer alone."""

    def __init__(self, store: Store, freshness: Freshness, subscribers: Subscribers) -> None:
        self.state: State
        """The fold up to the newest entry that this node knows, durable or about to be. There is
        one as soon as this is open."""
        self.position = Position("", 0, "")
        """The newest entry that is on disk, as far as this node knows."""
        self._store = store
        self._freshness = freshness
        self._subscribers = subscribers
        self._told: deque[EntryBroadcast] = deque(maxlen=_MOST_TOLD)
        """What is still to be adopted. Where the oldest are dropped, they are read from the log."""
        self._is_hearing = False
        self._failure: Exception | None = None
        """What went wrong when something that was told was folded: the state is not true."""

    async def open(self, last_known: Position | None) -> None:
        """Load the state. `last_known` is where this node was when it last ran: where the log does
        not have that any more, it is made another history."""
        if last_known is not None and await self._store.read(installation.is_lost, last_known):
            await self._renew_history(last_known)
        began = time.monotonic()
        head, stored = await self._store.read_log(
            lambda c: (installation.head_position(c), _stored(c)), LOAD_SECONDS
        )
        self.state = State.load(head.seq, *stored)
        self.position = head.position
        self._freshness.loaded(head.seq)
        self._freshness.verified(began)

    def adopt(self, growth: LogTail) -> None:
        """Fold entries that another process committed, and call the followers. Those that were
        heard of already are left out."""
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

    # What other nodes tell

    def hear(self, told: Iterable[EntryBroadcast]) -> bool:
        """Adopt what other nodes told, at once while there is `hearing`, else at its next
        beginning. False where something between is missing, which must be read from the log."""
        self._told.extend(told)
        return not self._is_hearing or self._adopt_told()

    @contextmanager
    def hearing(self) -> Iterator[bool]:
        """Adopt what is told: what came meanwhile now, and all that comes within the context at
        once. So within it the state may change whenever the event loop turns, but for that nobody
        may change it. Yields as `hear` returns."""
        self._is_hearing = True
        try:
            yield self._adopt_told()
        finally:
            self._is_hearing = False

    def _adopt_told(self) -> bool:
        adopted: list[Entry] = []
        is_gapless = True
        while is_gapless and self._told and self._failure is None:
            told = self._told.popleft()
            if told.history == self.position.history and told.seq <= self.position.seq:
                continue  # It was read from the log.
            if not told.follows(self.position):
                self._told.clear()
                is_gapless = False
                continue
            entries = list(told.entries())
            try:
                self._fold(entries, Position(told.history, told.seq, told.batch))
            except Exception as error:  # Only the writer can load the state again.
                self._failure = error
            else:
                adopted += entries
        # Once for all that was told together: most of what followers do, they do for each call.
        self._subscribers.committed(adopted)
        return is_gapless and self._failure is None

    def _require_true(self) -> None:
        """Raise what went wrong when something that was told was folded."""
        if self._failure is not None:
            raise self._failure

    def advance(self, entries: Sequence[Entry], batch_id: str) -> None:
        """Our own entries, which the state has folded already, are on disk."""
        if entries:
            self._move(Position(self.position.history, entries[-1].seq, batch_id))

    def _move(self, position: Position) -> None:
        self.position = position
        self.state.unread.settle(position.seq)

    async def catch_up(self) -> None:
        """Read and adopt what other processes have committed. HistoryChanged, HistoryPruned and
        NewerDatabase; where the database cannot be read it is left for later."""
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
        """Load the state again, and call the followers with what was committed meanwhile: by
        others, or by a commit of ours whose success was not known.

        Returns whether the log is another history, or entries were pruned before they could be
        read here. Where it went back in time, it is made another history.
        """
        known = self.position
        began = time.monotonic()

        def look(connection: Connection) -> tuple[Head, _Stored, LogTail | None]:
            try:
                growth = log_entries.read_tail(connection, known, 2**31)
            except (HistoryChanged, HistoryPruned) as changed:
                return changed.head, _stored(connection), None
            return growth.head, _stored(connection), growth

        head, stored, growth = await self._store.read_log(look, LOAD_SECONDS)
        is_pruned = known.seq < head.pruned and known.seq <= head.seq
        if growth is None and head.history == known.history and not is_pruned:
            await self._renew_history(known)
            return await self.reload()
        # It takes as long as it is large, and nobody sees it yet.
        self.state = await asyncio.to_thread(State.load, head.seq, *stored)
        self.position = head.position
        self._failure = None
        self._freshness.loaded(head.seq)
        self._freshness.verified(began)
        if growth is None:
            return True
        self._subscribers.committed(growth.entries)
        return False

    async def _renew_history(self, known: Position) -> None:
        """Make the log another history, if no other node has done it yet."""
        logger.error(
            "the database went back in time: entry %d, which was in the log, is not any more. The"
            " log gets a new identity, and all event queues end",
            known.seq,
        )
        await self._store.write(lambda connection: installation.renew_where_lost(connection, known))


def _stored(connection: Connection) -> _Stored:
    return queries.records(connection), log_entries.recent_sends(connection, RECALLED)


_PAGE = 1000


def replayed(connection: Connection) -> State:
    """The fold of the whole log; or, where its beginning was forgotten, of what came after the
    checkpoint. ValueError where there is none to begin from, or a gap."""
    state = State()
    if forgotten := log_entries.pruned(connection):
        seq, records = pruning.checkpoint(connection)
        if seq < forgotten:
            raise ValueError("the log's beginning was forgotten, and there is no checkpoint")
        state = State.load(seq, records)
    while page := log_entries.entries(connection, state.seq, _PAGE):
        for entry in page:
            fold(state, entry)
    return state


def replay_differences(connection: Connection) -> list[tuple[str, int]]:
    """The tables that are not what the log makes of them, and in how many records."""
    state = replayed(connection)
    records = queries.records(connection)
    found: list[tuple[str, int]] = []
    for noun in NOUNS:
        stored = {noun.key_of(record): record for record in records[noun.table]}
        folded = state.tables[noun.table].rows
        wrong = sum(stored.get(key) != folded.get(key) for key in stored.keys() | folded.keys())
        if wrong:
            found.append((noun.table, wrong))
    return found
