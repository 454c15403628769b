"""Snapshots: reading the database and the state at the same entry of the log."""

import logging
from dataclasses import dataclass
from typing import Any

from tertulia.log.replica import Replica
from tertulia.log.requests import Inbox, Snapshot
from tertulia.model.errors import Unavailable
from tertulia.store import log_entries
from tertulia.store.database import Connection, DatabaseUnavailable
from tertulia.store.installation import HistoryChanged, HistoryPruned, NewerDatabase
from tertulia.store.log_entries import LogTail
from tertulia.store.notes import QueueDeleted
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")


class NotLoaded(Exception):
    """What the reader has not read is not loaded, or was evicted: load it, and try again."""


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

        def look(connection: Connection) -> tuple[LogTail, Any]:
            newer = log_entries.read_tail(connection, self.replica.position, 2**31)
            return newer, snapshot.look(connection)

        if snapshot.answer.done():
            return
        queue = snapshot.registered
        seen = None
        while not self._needs_state_only(snapshot):
            try:
                newer, seen = await self.store.read_log(look)
            except (NewerDatabase, HistoryChanged, HistoryPruned):
                raise
            except Exception as error:
                # Nothing was changed: it concerns this snapshot alone.
                if not isinstance(error, DatabaseUnavailable):
                    logger.exception("the database could not be read")
                if queue is not None:
                    self.inbox.defer_note(QueueDeleted(queue.id))
                self.inbox.refuse(Unavailable("The database couldn't be read."), [snapshot])
                return
            self.replica.adopt(newer)
            if queue is not None and queue.start != self.replica.state.seq:
                # It begins before what would be seen now: once more, with another queue.
                self.inbox.add_note(QueueDeleted(queue.id))
                self.inbox.add(snapshot)
                return
            if not newer.entries:
                break
        self._conclude(snapshot, seen)

    def _conclude(self, snapshot: Snapshot[Any, Any], seen: Any) -> None:
        state, reader_id = self.replica.state, snapshot.reader_id
        try:
            if reader_id is not None:
                # Somebody may have been subscribed to another channel while this waited.
                if state.unread.missing(state, reader_id):
                    raise NotLoaded
                state.unread.note_question(state, reader_id)
            result = snapshot.conclude(state, seen)
        except Exception as error:
            if isinstance(error, NotLoaded) and snapshot.registered is not None:
                self.inbox.add_note(QueueDeleted(snapshot.registered.id))
            if not snapshot.answer.done():
                snapshot.answer.set_exception(error)
        else:
            if not snapshot.answer.done():
                snapshot.answer.set_result(result)

    def _needs_state_only(self, snapshot: Snapshot[Any, Any]) -> bool:
        """Whether the state has all that is asked for, and is where the snapshot's queue begins."""
        queue = snapshot.registered
        return (
            snapshot.look is state_only
            and queue is not None
            and queue.start == self.replica.state.seq
        )
