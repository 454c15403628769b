"""Loading what people have not read (`tertulia.state.unread`), while commands are decided: nobody
waits for it but those who asked."""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from tertulia.log.catching_up import CatchingUp
from tertulia.log.replica import Replica
from tertulia.log.requests import ANSWER_SECONDS
from tertulia.model.errors import Unavailable
from tertulia.state.unread import ChannelMessages, DirectMessages, ReadState
from tertulia.store import installation, message_marks, queries
from tertulia.store.database import Connection
from tertulia.store.installation import Head
from tertulia.store.readers import Requester, current_requester
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")

AT_ONCE: Final = 8
"""People whose unread messages are in use at the same time: what they need is not evicted until
they are done, and between two groups of commands the writer answers no more of them."""
MOST_WAITING: Final = 10_000
"""People who may wait for one of these places; beyond it they are refused."""
_READERS: Final = 32
_CHANNELS: Final = 16
_DIRECTS: Final = 1000
"""What is read in one transaction, of each kind."""
_ATTEMPTS: Final = 5
"""Reads of the same parts, where the state was loaded again in the meantime."""
_MOST_WANTED: Final = 256
"""Readers that may be loaded ahead (`want`); others when they ask again."""
_ASKER: Final = Requester("unread loads")
"""A share of the database's readers that is nobody's: many people may wait for one load."""


@dataclass
class _Parts:
    """What is to be loaded: a future each for those who wait for it."""

    readers: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    channels: dict[int, asyncio.Future[None]] = field(default_factory=dict)
    directs: dict[int, asyncio.Future[None]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.readers or self.channels or self.directs)

    def some(self) -> "_Parts":
        """As many of them as are read together: the ones that were asked for first."""
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
        """All of them."""
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
        self._places = asyncio.Semaphore(AT_ONCE)
        self._waiting = 0

    @asynccontextmanager
    async def held(self, reader_id: int) -> AsyncIterator[None]:
        """Load what the reader has not read, and keep it loaded until the context ends. Unavailable
        where that takes too long."""
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
        """Return when nothing is missing to tell what the reader has not read."""
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
            # One who gives up must not end it for the others.
            await asyncio.wait(waits)
            for wait in waits:
                wait.result()

    def want(self, reader_id: int) -> None:
        """Have what the reader has read loaded, soon. Nobody waits for it."""
        wanted = self._wanted.readers
        if reader_id not in self._replica.state.unread.readers and len(wanted) < _MOST_WANTED:
            _wanted(wanted, [reader_id])
            self._start()

    async def close(self) -> None:
        """Load no more, and refuse those who wait."""
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
                    logger.exception("unread messages could not be loaded")
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
            # The state was thrown away, or the log is another one.
            await self._catching_up.reached(head.seq)
        raise Unavailable("Your unread messages couldn't be loaded. Try again.")


def _wanted(
    table: dict[int, asyncio.Future[None]], keys: Iterable[int]
) -> list[asyncio.Future[None]]:
    loop, found = asyncio.get_running_loop(), []
    for key in keys:
        if key not in table:
            table[key] = loop.create_future()
        found.append(table[key])
    return found


def _finish(parts: _Parts, error: Exception | None = None) -> None:
    for future in parts.futures:
        if future.done():
            continue
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)
            future.exception()  # It is no mistake if nobody waits for it.


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
