"""Snapshots: reading the database and the state at the same entry of the log."""

import logging
from dataclasses import dataclass
from typing import Any

from tertulia.log.inbox import Inbox
from tertulia.log.replica import Replica
from tertulia.log.requests import Snapshot
from tertulia.model.errors import Unavailable
from tertulia.state.organization import State
from tertulia.state.unread import ChannelMessages, DirectMessages, Reader
from tertulia.store import log_entries, queries
from tertulia.store.database import Connection, DatabaseUnavailable
from tertulia.store.history import HistoryChanged, HistoryPruned, NewerDatabase
from tertulia.store.log_entries import Growth
from tertulia.store.store import Store
from tertulia.store.writing import QueueDeleted

logger = logging.getLogger("tertulia.log")


def state_only(_: Connection) -> None:
    """The `look` of a snapshot that needs the state alone."""


@dataclass(frozen=True)
class Snapshots:
    """Takes snapshots between two groups of commands. Used by the writer alone."""

    store: Store
    inbox: Inbox
    replica: Replica

    async def take(self, snapshot: Snapshot[Any, Any]) -> None:
        """Answer the snapshot. Nothing is decided while this runs; another node's commit is folded
        first. Raises as `log_entries.growth`."""
        reader_id = snapshot.reader_id

        def look(connection: Connection) -> tuple[Growth, Any, Any]:
            newer = log_entries.growth(connection, self.replica.position, 2**31)
            # What other nodes committed may bring new channels: then it is loaded afterwards.
            unread = (
                None if newer.entries else _load_unread(self.replica.state, connection, reader_id)
            )
            return newer, unread, snapshot.look(connection)

        if snapshot.answer.done():
            return
        queue = snapshot.registered
        unread = seen = None
        while not self._needs_state_only(snapshot):
            try:
                newer, unread, seen = await self.store.read_log(look)
            except (NewerDatabase, HistoryChanged, HistoryPruned):
                raise
            except Exception as error:
                # Nothing was changed: it concerns this snapshot alone.
                if not isinstance(error, DatabaseUnavailable):
                    logger.exception("the database could not be read")
                if queue is not None:
                    self.inbox.defer_note(QueueDeleted(queue.id))
                self.inbox.refuse(Unavailable("The database could not be read."), [snapshot])
                return
            self.replica.adopt(newer)
            if queue is not None and queue.start != self.replica.state.seq:
                # It begins before what would be seen now: once more, with another queue.
                self.inbox.add_note(QueueDeleted(queue.id))
                self.inbox.add(snapshot)
                return
            if not newer.entries:
                break
        self._conclude(snapshot, unread, seen)

    def _conclude(self, snapshot: Snapshot[Any, Any], unread: Any, seen: Any) -> None:
        state = self.replica.state
        if unread is not None:
            _install_unread(state, unread)
        if snapshot.reader_id is not None:
            state.unread.asked(state, snapshot.reader_id)
        try:
            result = snapshot.conclude(state, seen)
        except Exception as error:
            if not snapshot.answer.done():
                snapshot.answer.set_exception(error)
        else:
            if not snapshot.answer.done():
                snapshot.answer.set_result(result)

    def _needs_state_only(self, snapshot: Snapshot[Any, Any]) -> bool:
        """Whether the state has all that is asked for, and is where the snapshot's queue begins."""
        queue, reader_id = snapshot.registered, snapshot.reader_id
        state = self.replica.state
        if snapshot.look is not state_only or queue is None or queue.start != state.seq:
            return False
        return reader_id is None or not state.unread.missing(state, reader_id)


def _load_unread(state: State, connection: Connection, reader_id: int | None) -> Any:
    """What the state is missing to tell what is unread of the reader; None where it has all."""
    if reader_id is None:
        return None
    missing = state.unread.missing(state, reader_id)
    if not missing:
        return None
    return (
        (reader_id, queries.reader(connection, reader_id)) if missing.reader else None,
        queries.channel_messages(connection, missing.channel_ids),
        queries.direct_messages(connection, missing.direct_ids),
    )


def _install_unread(state: State, loaded: Any) -> None:
    """Put into the state what `_load_unread` found when the state was at the same entry."""
    reader, channels, directs = loaded
    index = state.unread
    if reader is not None:
        index.readers[reader[0]] = Reader(*reader[1])
    for channel_id, messages in channels.items():
        index.channels[channel_id] = ChannelMessages(
            messages.all, messages.topics, messages.wildcards
        )
    for direct_id, ids in directs.items():
        index.directs[direct_id] = DirectMessages(ids)
