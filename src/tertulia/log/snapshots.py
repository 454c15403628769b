"""Snapshots, which read the database and the state at the same entry, and loading unread messages
(`tertulia.state.unread`) for them without delaying commands."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from tertulia.log.replica import CatchingUp, Replica
from tertulia.log.requests import ANSWER_SECONDS, Inbox, Snapshot
from tertulia.model.errors import Unavailable
from tertulia.state.unread_bitmaps import ChannelMessages, DirectMessages, ReadState
from tertulia.store import installation, log_entries, message_marks, queries
from tertulia.store.database import Connection, DatabaseUnavailable
from tertulia.store.installation import Head, HistoryChanged, HistoryPruned, NewerDatabase
from tertulia.store.log_entries import LogTail
from tertulia.store.notes import QueueDeleted
from tertulia.store.readers import Requester, current_requester
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")

MAX_CONCURRENT: Final = 8
"""The most people whose unread messages are kept from eviction at the same time. It also bounds the
responses that the writer makes between two groups of commands."""
MOST_WAITING: Final = 10_000
"""The most people who can wait for one of these slots; others are refused."""
_READERS: Final = 32
_CHANNELS: Final = 16
_DIRECTS: Final = 1000
"""The most parts of each kind that are read in one transaction."""
_ATTEMPTS: Final = 5
"""The most reads of the same parts, if the state was reloaded in the meantime."""
_MOST_WANTED: Final = 256
"""The most readers that are loaded ahead (`want`). Others are loaded on demand."""
_ASKER: Final = Requester("unread loads")
"""The requester of these reads, which belong to no person, since many people may wait for one
load."""


@dataclass
class _Parts:
    """The parts to load, each with a future for the callers that wait for it."""

    readers: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    channels: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    directs: dict[int, asyncio.Future[None]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.readers or self.channels or self.directs)

    def some(self) -> "_Parts":
        """Return the oldest parts, up to the number that is read together."""
        return _Parts(
            dict(islice(self.readers.items(), _READERS)),
            dict(islice(self.channels.items(), _CHANNELS)),
            dict(islice(self.directs.items(), _DIRECTS)),
        )

    def without(self, done: "_Parts") -> None:
        for mine, others in (
            (self.readers, done.readers),
            (self.channels, done.channels),
            (self.directs, done.directs),
        ):
            for key in others:
                mine.pop(key, None)

    @property
    def futures(self) -> list[asyncio.Future[None]]:
        return [*self.readers.values(), *self.channels.values(), *self.directs.values()]


@dataclass
class _Loaded:
    head: Head
    readers: dict[int, ReadState]
    channels: dict[int, ChannelMessages]
    directs: dict[int, DirectMessages]


class UnreadLoads:
    """Loads readers, channels and direct conversations, each once for all who wait for it."""

    def __init__(self, store: Store, replica: Replica, catching_up: CatchingUp) -> None:
        self._store = store
        self._replica = replica
        self._catching_up = catching_up
        self._wanted = _Parts()
        self._task: asyncio.Task[None] | None = None
        self._places = asyncio.Semaphore(MAX_CONCURRENT)
        self._waiting = 0

    @asynccontextmanager
    async def held(self, reader_id: int) -> AsyncIterator[None]:
        """Load the reader's unread messages, and keep them loaded within the context. Raise
        Unavailable if that takes too long."""
        if self._waiting >= MOST_WAITING:
            raise Unavailable("Too many people are signing in right now. Try again.")
        self._waiting += 1
        try:
            async with asyncio.timeout(ANSWER_SECONDS) as limit:
                async with self._places:
                    with self._replica.state.unread.held():
                        await self.load(reader_id)
                        limit.reschedule(None)
                        yield
        except TimeoutError:
            if limit.expired():
                raise Unavailable(
                    "Your unread messages couldn't be loaded in time. Try again."
                ) from None
            raise
        finally:
            self._waiting -= 1

    async def load(self, reader_id: int) -> None:
        """Load everything that the reader's unread messages depend on, and wait for it."""
        while True:
            state = self._replica.state
            missing = state.unread.missing(state, reader_id)
            if not missing:
                return
            wanted = self._wanted
            waits = [
                *_wanted(wanted.readers, [reader_id] if missing.reader else ()),
                *_wanted(wanted.channels, missing.channel_ids),
                *_wanted(wanted.directs, missing.direct_ids),
            ]
            self._start()
            # If one caller gives up, the others still wait.
            await asyncio.wait(waits)
            for wait in waits:
                wait.result()

    def want(self, reader_id: int) -> None:
        """Load the reader's read state soon, without waiting."""
        wanted = self._wanted.readers
        if reader_id not in self._replica.state.unread.readers and len(wanted) < _MOST_WANTED:
            _wanted(wanted, [reader_id])
            self._start()

    async def close(self) -> None:
        """Stop, and refuse the callers that wait."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._work(), name="unread-loads")

    async def _work(self) -> None:
        current_requester.set(_ASKER)
        parts = self._wanted
        try:
            while self._wanted:
                parts = self._wanted.some()
                try:
                    await self._load_parts(parts)
                except Unavailable as error:
                    _finish(parts, error)
                except Exception as error:
                    logger.exception("could not load unread messages")
                    _finish(parts, error)
                else:
                    _finish(parts)
                self._wanted.without(parts)
        finally:
            self._task = None
            _finish(self._wanted, Unavailable("The server is shutting down. Try again."))
            self._wanted = _Parts()

    async def _load_parts(self, parts: _Parts) -> None:
        for _ in range(_ATTEMPTS):
            index = self._replica.state.unread
            with index.loading():
                loaded = await self._store.read(
                    _read, list(parts.readers), list(parts.channels), list(parts.directs)
                )
                head = loaded.head
                if head.seq > self._replica.state.seq:  # Another node wrote it.
                    await self._catching_up.reached(head.seq)
                is_same = head.history == self._replica.position.history
                if is_same and index is self._replica.state.unread:
                    index.install(head.seq, loaded.readers, loaded.channels, loaded.directs)
                    return
            # The state was discarded, or the log has another history.
            await self._catching_up.reached(head.seq)
        raise Unavailable("Your unread messages couldn't be loaded. Try again.")


def _wanted(
    table: dict[int, asyncio.Future[None]], keys: Iterable[int]
) -> list[asyncio.Future[None]]:
    loop, futures = asyncio.get_running_loop(), []
    for key in keys:
        if key not in table:
            table[key] = loop.create_future()
        futures.append(table[key])
    return futures


def _finish(parts: _Parts, error: Exception | None = None) -> None:
    for future in parts.futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
            future.exception()  # It's not an error if nobody waits for it.


def _read(
    connection: Connection, user_ids: list[int], channel_ids: list[int], direct_ids: list[int]
) -> _Loaded:
    return _Loaded(
        installation.head_position(connection),
        {
            user_id: ReadState(*marked)
            for user_id, marked in message_marks.marks_of_users(connection, user_ids).items()
        },
        {
            channel_id: ChannelMessages(messages.all, messages.topics, messages.wildcards)
            for channel_id, messages in queries.channel_messages(connection, channel_ids).items()
        },
        {
            direct_id: DirectMessages(ids)
            for direct_id, ids in queries.direct_messages(connection, direct_ids).items()
        },
    )


class NotLoaded(Exception):
    """The reader's unread messages aren't loaded, or were evicted. Load them, and try again."""


def state_only(_: Connection) -> None:
    """Read nothing: the `look` of a snapshot that needs only the state."""


@dataclass(frozen=True)
class Snapshots:
    """Takes snapshots between two groups of commands. Only the writer uses it."""

    store: Store
    inbox: Inbox
    replica: Replica

    async def take(self, snapshot: Snapshot[Any, Any]) -> None:
        """Answer the snapshot. Nothing is decided in the meantime; other nodes' commits are folded
        first. Raise as `log_entries.read_tail`."""

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
                # Nothing was changed, so only this snapshot fails.
                if not isinstance(error, DatabaseUnavailable):
                    logger.exception("could not read the database")
                if queue is not None:
                    self.inbox.defer_note(QueueDeleted(queue.id))
                self.inbox.refuse(Unavailable("The database couldn't be read."), [snapshot])
                return
            self.replica.adopt(newer)
            if queue is not None and queue.start != self.replica.state.seq:
                # The queue begins before this point, so try again with another queue.
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
                # The reader's subscriptions may have changed while this waited.
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
        """Return whether the state has all of the data, and is where the snapshot's queue
        begins."""
        queue = snapshot.registered
        return (
            snapshot.look is state_only
            and queue is not None
            and queue.start == self.replica.state.seq
        )
