"""A node's copy of the log, folded: how it is loaded, and follows what other nodes commit."""

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any

from tertulia.log.errors import described
from tertulia.log.freshness import Freshness
from tertulia.log.subscribers import Subscribers
from tertulia.model.changes import AnyChange, Entry
from tertulia.state.fold import fold
from tertulia.state.idempotency import RECALLED
from tertulia.state.organization import State
from tertulia.store import history, log_entries, queries
from tertulia.store.database import Connection
from tertulia.store.history import Head, HistoryChanged, HistoryPruned, NewerDatabase, Position
from tertulia.store.log_entries import Growth
from tertulia.store.store import CATCH_UP, LOAD_SECONDS, Store

logger = logging.getLogger("tertulia.log")

_Stored = tuple[dict[str, list[Any]], list[AnyChange]]
"""What a state is loaded from: the records by table, and the newest messages' changes."""


class Replica:
    """The state, and the entry of the log that it has come to. Changed by the writer alone."""

    def __init__(self, store: Store, freshness: Freshness, subscribers: Subscribers) -> None:
        self.state = State()
        """The fold up to the newest entry that this node knows, durable or about to be."""
        self.position = Position("", 0, "")
        """The newest entry that is on disk, as far as this node knows."""
        self._store = store
        self._freshness = freshness
        self._subscribers = subscribers

    async def open(self, last_known: Position | None) -> None:
        """Load the state. `last_known` is where this node was when it last ran: where the log does
        not have that any more, it is made another history."""
        if last_known is not None and await self._store.read(history.is_lost, last_known):
            await self._renew_history(last_known)
        began = time.monotonic()
        head, stored = await self._store.read_log(
            lambda c: (history.head(c), _stored(c)), LOAD_SECONDS
        )
        self.state = State.load(head.seq, *stored)
        self.position = head.position
        self._freshness.loaded(head.seq)
        self._freshness.verified(began)

    def adopt(self, growth: Growth) -> None:
        """Fold entries that another process committed, and call the followers."""
        for entry in growth.entries:
            fold(self.state, entry)
        if growth.entries:
            self.state.take_dirty()
            self.position = growth.position
            self._subscribers.committed(growth.entries)

    def advance(self, entries: Sequence[Entry], batch_id: str) -> None:
        """Our own entries, which the state has folded already, are on disk."""
        if entries:
            self.position = Position(self.position.history, self.state.seq, batch_id)

    async def catch_up(self) -> None:
        """Read and adopt what other processes have committed. HistoryChanged, HistoryPruned and
        NewerDatabase; where the database cannot be read it is left for later."""
        is_all = False
        while not is_all:
            began = time.monotonic()
            try:
                growth = await self._store.read_log(
                    lambda c: log_entries.growth(c, self.position, CATCH_UP)
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

        def look(connection: Connection) -> tuple[Head, _Stored, Growth | None]:
            try:
                growth = log_entries.growth(connection, known, 2**31)
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
        await self._store.write(lambda connection: history.renew_where_lost(connection, known))


def _stored(connection: Connection) -> _Stored:
    return queries.records(connection), log_entries.recent_sends(connection, RECALLED)
