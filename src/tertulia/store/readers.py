"""Reader threads, each with its own connection, shared fairly.

The event loop schedules the reads. Each person has one queue for reads that an index bounds and one
for searches, and the server has its own. The queues take turns, and one thread never runs searches
or the server's reads, so a page of messages doesn't wait for them. Clients without an account share
one thread for searches.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from typing import TypeVar

from msgspec import Struct

from tertulia.model.errors import Refused, SearchTooSlow, TooOften, Unavailable
from tertulia.store.database import (
    READING,
    Connection,
    ConnectionLost,
    ConnectionSlot,
    Database,
    DatabaseUnavailable,
    TimeLimitReached,
    never,
)
from tertulia.store.threads import Threads

logger = logging.getLogger("tertulia.store")

T = TypeVar("T")

MOST_READS = 500
"""The most reads that can wait or run at the same time. Further reads are refused."""
SHARES = 8
"""A person can use one part in this many of the remaining room, and the server as much as that
leaves. So it takes dozens of people to fill it."""
MOST_SEARCHES = 6
"""The most searches of one person that can wait or run at the same time. One runs at a time."""
SEARCH_SECONDS = 1.0
"""The time limit of a search in seconds."""
SEARCH_WAIT_SECONDS = 5.0
"""The number of seconds that a search can wait for its turn."""
QUIET_SECONDS = 10
"""Seconds between two log lines about failed reads."""
GRACE_SECONDS = 3
"""The number of seconds after its limit at which a read that hasn't ended is given up."""

Person = int | str | None
"""The person that a read counts for: an account's ID, the network of a client without an account,
the name of work for several people, or None for the server itself."""


class Requester(Struct, frozen=True):
    """The person that a read is for."""

    person: Person
    is_gone: Callable[[], bool] = never
    """Whether the client has closed its connection, so that nobody waits for the result. May be
    called from any thread."""


_SERVER = Requester(None)
current_requester: ContextVar[Requester] = ContextVar("asker", default=_SERVER)
"""Set once a request's account is known (`wire/http/rate_limits.py`)."""


@contextmanager
def reading_for(asker: Requester) -> Iterator[None]:
    """Read on behalf of this requester within the context."""
    before = current_requester.set(asker)
    try:
        yield
    finally:
        current_requester.reset(before)


def _gone() -> Unavailable:
    return Unavailable("The client closed the connection.")


class _Read:
    """A read that waits or runs."""

    def __init__(self, asker: Requester, seconds: float, *, is_search: bool) -> None:
        self.asker = asker
        self.is_search = is_search
        self.ends = time.monotonic() + seconds
        """The time limit of a read, or, while a search waits, the time by which it must begin; by
        `time.monotonic`."""
        self.has_turn = False
        self.turn: asyncio.Future[None] | None = None
        """Done when a thread is free for the read; None if it never had to wait."""
        self.is_over = False
        """Whether nobody waits for the result anymore."""

    def is_given_up(self) -> bool:
        """Whether nobody needs the result. Can be called from any thread. A read that isn't a
        search counts as needed, because it ends soon and others may wait for its result."""
        if self.is_over or (self.turn is not None and self.turn.cancelled()):
            return True
        return self.is_search and self.asker.is_gone()


class _Line:
    """The reads of one person that share a limit."""

    def __init__(self, key: tuple[Person, bool], shared: int) -> None:
        """Create a queue. `shared` is the number of threads that one person can use at the same
        time."""
        self.key = key
        """The person, and whether these reads are searches."""
        person, self.is_search = key
        self.is_of_server = person is None
        self.is_search_of_stranger = self.is_search and isinstance(person, str)
        self.is_slow = self.is_search or self.is_of_server
        """Whether its reads may take long, so that they must leave a thread to others."""
        self.max_concurrent = 1 if self.is_slow else shared
        """The most of its reads that can run at the same time."""
        self.waiting: deque[_Read] = deque()
        self.running = 0

    @property
    def size(self) -> int:
        return len(self.waiting) + self.running

    def most(self, room: int) -> int:
        """Return how many of its reads can wait or run if there is room for `room` more."""
        if self.is_of_server:
            return room
        share = max(room // SHARES, 1)
        return min(share, MOST_SEARCHES) if self.is_search else share


class Readers:
    """The threads, and the queues of reads that wait for them. Used on the event loop."""

    def __init__(self, database: Database, threads: int, name: str) -> None:
        self._database = database
        self._threads = Threads(threads, name)
        self._idle = threads
        """The number of idle threads."""
        self._shared = max(threads - 1, 1)
        """The most threads that one queue can use, and that all slow queues can use together."""
        self._slow_running = 0
        self._strangers_searching = 0
        self._lines: dict[tuple[Person, bool], _Line] = {}
        """The queues, in the order of their turns."""
        self._local = threading.local()
        """Each thread's connection."""
        self._slots: list[ConnectionSlot] = []
        self._reads = 0
        self._quiet_until = 0.0

    async def read(self, function: Callable[[Connection], T], seconds: float) -> T:
        """Run the function in a thread, on a connection that sees one snapshot of the database, and
        again if the connection was lost.

        Raise DatabaseUnavailable if it hasn't ended after `seconds`, including the time that it
        waits for a thread, or if too many reads wait; TooOften if one person has too many.
        """
        read = _Read(current_requester.get(), seconds, is_search=False)
        try:
            return await self._read(read, function)
        except DatabaseUnavailable as error:
            self._note(error)
            raise

    async def search(self, function: Callable[[Connection], T]) -> T:
        """Run a function whose work grows with the stored data, as `read` does. Raise Unavailable
        if its turn hasn't come after `SEARCH_WAIT_SECONDS`, and SearchTooSlow if it hasn't ended
        `SEARCH_SECONDS` after it began."""
        read = _Read(current_requester.get(), SEARCH_WAIT_SECONDS, is_search=True)
        try:
            return await self._read(read, function)
        except TimeLimitReached as error:
            if read.has_turn:
                raise SearchTooSlow from None
            raise Unavailable("The server is busy with other searches. Try again.") from error
        except DatabaseUnavailable as error:
            self._note(error)
            raise

    async def _read(self, read: _Read, function: Callable[[Connection], T]) -> T:
        if read.is_given_up():
            raise _gone()
        room = MOST_READS - self._reads
        line = self._line(read, room)
        if room <= 0 or (line.is_of_server and line.size >= room):
            self._forget_unused(line)
            raise DatabaseUnavailable("The server is too busy. Try again.")
        if line.size >= line.most(room):
            raise TooOften(1, "You have too many requests in progress. Wait for some to finish.")
        self._reads += 1
        try:
            await self._turn(line, read)
            if read.is_search:
                read.ends = time.monotonic() + SEARCH_SECONDS
            # The connection ends it in time, unless it hangs.
            async with asyncio.timeout(read.ends + GRACE_SECONDS - time.monotonic()):
                return await self._begun(line, read, function)
        except TimeoutError:
            raise TimeLimitReached("The database took too long to answer.") from None
        finally:
            read.is_over = True
            self._reads -= 1

    def _begun(
        self, line: _Line, read: _Read, function: Callable[[Connection], T]
    ) -> "asyncio.Future[T]":
        ended = partial(self._end, line)
        try:
            return self._threads.begin(ended, self._in_thread, function, read)
        except RuntimeError:
            ended()
            raise

    def _note(self, error: DatabaseUnavailable) -> None:
        """Log the error, at most once per `QUIET_SECONDS`."""
        if time.monotonic() > self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            logger.warning("a read of the database failed", extra={"fields": {"reason": error}})

    # Turns

    def _line(self, read: _Read, room: int) -> _Line:
        """Return the queue that the read belongs to. If it's full for a server with room for `room`
        more reads, remove reads that were given up."""
        key = read.asker.person, read.is_search
        line = self._lines.get(key)
        if line is None:
            line = self._lines[key] = _Line(key, self._shared)
        elif line.size >= line.most(room):
            self._drop_given_up(line)
        return line

    async def _turn(self, line: _Line, read: _Read) -> None:
        """Wait until a thread is free, and reserve it for the read. `_end` must follow."""
        line.waiting.append(read)
        self._give_turns()
        if read.has_turn:
            return
        read.turn = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(read.ends - time.monotonic()):
                await read.turn
        except BaseException as error:
            if read.has_turn:  # The turn came at the same moment.
                self._end(line)
            else:
                if read in line.waiting:
                    line.waiting.remove(read)
                self._forget_unused(line)
            if isinstance(error, TimeoutError):
                raise TimeLimitReached("The database is too busy. Try again.") from None
            raise

    def _give_turns(self) -> None:
        """Start waiting reads on idle threads, one queue after the other."""
        while self._idle:
            line = next(filter(self._may_begin, self._lines.values()), None)
            if line is None:
                return
            # The other queues come first from now on.
            self._lines[line.key] = self._lines.pop(line.key)
            self._drop_given_up(line)
            if line.waiting:
                read = line.waiting.popleft()
                self._idle -= 1
                self._slow_running += line.is_slow
                self._strangers_searching += line.is_search_of_stranger
                line.running += 1
                read.has_turn = True
                if read.turn is not None:
                    read.turn.set_result(None)

    def _may_begin(self, line: _Line) -> bool:
        if line.is_slow and self._slow_running >= self._shared:
            return False
        # One person can come from many networks.
        if line.is_search_of_stranger and self._strangers_searching:
            return False
        return bool(line.waiting) and line.running < line.max_concurrent

    def _end(self, line: _Line) -> None:
        """Mark the thread that a read of the queue had as idle again."""
        self._idle += 1
        self._slow_running -= line.is_slow
        self._strangers_searching -= line.is_search_of_stranger
        line.running -= 1
        self._give_turns()
        self._forget_unused(line)

    def _drop_given_up(self, line: _Line) -> None:
        """Remove reads from the queue whose results nobody waits for."""
        for read in [read for read in line.waiting if read.is_given_up()]:
            line.waiting.remove(read)
            if read.turn is not None and not read.turn.done():
                read.turn.set_exception(_gone())

    def _forget_unused(self, line: _Line) -> None:
        # (Another queue may have its key by now.)
        if not line.size and self._lines.get(line.key) is line:
            del self._lines[line.key]

    # Running in a thread

    def _in_thread(self, function: Callable[[Connection], T], read: _Read) -> T:
        try:
            return self._transaction(function, read)
        except ConnectionLost:
            return self._transaction(function, read)

    def _transaction(self, function: Callable[[Connection], T], read: _Read) -> T:
        seconds = read.ends - time.monotonic()
        if seconds <= 0:
            raise TimeLimitReached("The database is too busy. Try again.")
        slot = self._slot()
        connection = slot.get()
        try:
            connection.begin_read(seconds, read.is_given_up)
            result = function(connection)
            connection.commit()
        except BaseException as error:
            self._end_failed(slot, connection, error)
            raise
        return result

    def _end_failed(
        self, slot: ConnectionSlot, connection: Connection, error: BaseException
    ) -> None:
        """End a transaction that raised an error. The connection is kept with its caches, unless it
        may be broken."""
        if isinstance(error, Refused | TimeLimitReached):
            with suppress(Exception):
                connection.rollback()
                return
        slot.drop()

    def _slot(self) -> ConnectionSlot:
        slot: ConnectionSlot | None = getattr(self._local, "slot", None)
        if slot is None:
            slot = ConnectionSlot(self._database, readonly=True, limits=READING)
            self._local.slot = slot
            self._slots.append(slot)
        return slot

    def close(self) -> None:
        """End the threads, once they have finished their work, and the connections."""
        self._threads.close()
        for slot in self._slots:
            slot.drop()
