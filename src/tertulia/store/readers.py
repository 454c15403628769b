"""Threads that read from the database, each on a connection of its own."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tertulia.model.errors import Refused
from tertulia.store.database import (
    READING,
    Connection,
    ConnectionLost,
    Database,
    DatabaseUnavailable,
    TimeLimitReached,
)
from tertulia.store.threads import Threads

logger = logging.getLogger("tertulia.store")

T = TypeVar("T")

MOST_READS = 500
"""Reads that may be waiting or under way at once; beyond it they are refused."""
QUIET_SECONDS = 10
"""Between two lines in the log about reads that fail."""
GRACE_SECONDS = 3
"""How long after its limit a read is given up that has not ended by itself."""


class Readers:
    """The threads, and the queue of reads that wait for them."""

    def __init__(self, database: Database, threads: int, name: str) -> None:
        self._database = database
        self._threads = Threads(threads, name)
        self._local = threading.local()
        self._lock = threading.Lock()
        self._open: list[Connection] = []
        self._reads = 0
        self._quiet_until = 0.0

    async def read(self, function: Callable[[Connection], T], seconds: float) -> T:
        """Run the function in a thread, on a connection that sees one moment of the database
        throughout; once more where the connection was lost. DatabaseUnavailable where it has not
        ended after so many seconds, or too many wait."""
        if self._reads >= MOST_READS:
            raise DatabaseUnavailable("Too much is being read at the moment.")
        self._reads += 1
        ends = time.monotonic() + seconds
        try:
            return await self._timed(function, seconds, ends)
        except DatabaseUnavailable as error:
            self._note(error)
            raise
        finally:
            self._reads -= 1

    async def _timed(self, function: Callable[[Connection], T], seconds: float, ends: float) -> T:
        try:
            # The connection ends it in time, where a thread is free for it.
            async with asyncio.timeout(seconds + GRACE_SECONDS):
                return await self._threads.run(self._read, function, ends)
        except TimeoutError:
            raise TimeLimitReached("The database took too long to answer.") from None

    def _note(self, error: DatabaseUnavailable) -> None:
        """Say in the log what went wrong, now and then."""
        if time.monotonic() > self._quiet_until:
            self._quiet_until = time.monotonic() + QUIET_SECONDS
            logger.warning("a read of the database failed", extra={"fields": {"reason": error}})

    def _read(self, function: Callable[[Connection], T], ends: float) -> T:
        try:
            return self._transaction(function, ends)
        except ConnectionLost:
            return self._transaction(function, ends)

    def _transaction(self, function: Callable[[Connection], T], ends: float) -> T:
        seconds = ends - time.monotonic()
        if seconds <= 0:
            raise TimeLimitReached("The database took too long to answer others.")
        connection = self._connection()
        try:
            connection.begin_read(seconds)
            try:
                result = function(connection)
            except Refused:
                connection.commit()
                raise
            connection.commit()
        except Refused:
            raise
        except BaseException:
            # It may be the connection that broke: the next read gets a new one.
            self._drop_connection()
            raise
        return result

    def _connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._database.connect(readonly=True, limits=READING)
            self._local.connection = connection
            with self._lock:
                self._open.append(connection)
        return connection

    def _drop_connection(self) -> None:
        connection: Connection = self._local.connection
        self._local.connection = None
        with self._lock:
            self._open.remove(connection)
        connection.close()

    def close(self) -> None:
        """End the threads, when they have ended what they do, and the connections."""
        self._threads.close()
        for connection in self._open:
            connection.close()
