"""The store as the rest of a node uses it: awaitable, with its threads inside."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tertulia.model.changes import Entry
from tertulia.model.errors import Refused
from tertulia.store import reading
from tertulia.store.database import Connection, Database, DatabaseError
from tertulia.store.migrations import migrate
from tertulia.store.sqlite import SqliteDatabase
from tertulia.store.writing import Batch, write

T = TypeVar("T")
P = ParamSpec("P")

READERS = 3
SQLITE_FILE = "tertulia.db"
CATCH_UP = 1000
"""Entries read at once."""


def database_at(data_dir: Path, url: str | None) -> Database:
    """The database that the settings name: the URL's, or the file in the data directory.

    DatabaseError for a URL of a kind that is not known.
    """
    if not url:
        return SqliteDatabase(data_dir / SQLITE_FILE)
    scheme = urlsplit(url).scheme
    if scheme in {"postgresql", "postgres"}:
        from tertulia.store.postgres import PostgresDatabase  # Its driver takes a moment to load.

        return PostgresDatabase(url)
    if scheme == "sqlite":
        return SqliteDatabase(Path(url.removeprefix("sqlite:///")))
    raise DatabaseError(f"'{scheme}' is no kind of database: use postgresql://… or sqlite:///…")


class Store:
    """One node's access to the database: one thread that writes, a few that read."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._announcer = ThreadPoolExecutor(1, thread_name_prefix="announcer")
        self._local = threading.local()
        self._open: list[Connection] = []
        self._lock = threading.Lock()
        self._write_connection: Connection | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several nodes may serve from this database."""
        return self.database.is_shared

    async def migrate(self, tell: Callable[[str], None]) -> None:
        """Bring the database to the program's version. Raises DatabaseError when it is newer."""
        await self._in(self._writer, migrate, self.database, tell)

    # Reading

    async def read(
        self,
        function: Callable[Concatenate[Connection, P], T],
        *arguments: P.args,
        **keywords: P.kwargs,
    ) -> T:
        """Run the function on a connection that sees one moment of the database throughout."""

        def transaction() -> T:
            connection = self._reader_connection()
            try:
                connection.run(connection.dialect.begin_read)
                try:
                    return function(connection, *arguments, **keywords)
                finally:
                    connection.run("COMMIT")
            except Refused:
                raise
            except Exception:
                # It may be the connection that broke: the next one who reads gets a new one.
                self._drop_reader_connection()
                raise

        return await self._in(self._readers, transaction)

    def _drop_reader_connection(self) -> None:
        connection: Connection = self._local.connection
        self._local.connection = None
        with self._lock:
            self._open.remove(connection)
        connection.close()

    def _reader_connection(self) -> Connection:
        connection: Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self.database.connect(readonly=True)
            self._local.connection = connection
            with self._lock:
                self._open.append(connection)
        return connection

    # Writing: `begin`, then `commit` or `rollback`, by the log's writer alone

    async def begin(self, after: int) -> list[Entry]:
        """Keep all other writers out, and return the entries since `after` (others' commits).

        After a failure of this or of `commit`, `rollback` must follow.
        """
        # (A turn of the thread takes several times as long as this, where nobody is in the way.)
        connection = self._write_connection
        if connection is not None and connection.begin_at_once():
            if reading.head(connection) == after:
                return []
            return await self._in(self._writer, self._since, connection, after)
        return await self._in(self._writer, self._begin, after)

    def _begin(self, after: int) -> list[Entry]:
        if self._write_connection is None:
            self._write_connection = self.database.connect(readonly=False)
        connection = self._write_connection
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        return self._since(connection, after)

    @staticmethod
    def _since(connection: Connection, after: int) -> list[Entry]:
        head = reading.head(connection)
        if head == after:
            return []
        if head < after:
            raise DatabaseError(f"The log ends at {head}, and {after} was thought to be in it.")
        found: list[Entry] = []
        while page := reading.entries(connection, found[-1].seq if found else after, CATCH_UP):
            found += page
        return found

    async def commit(self, batch: Batch) -> None:
        """Write the batch and end the transaction. Returns when it is on disk."""
        await self._in(self._writer, self._commit, batch)

    def _commit(self, batch: Batch) -> None:
        connection = self._write_connection
        if connection is None:
            raise RuntimeError("commit without begin")
        write(connection, batch)
        if batch.entries and connection.dialect.tell_growth:
            connection.run(connection.dialect.tell_growth, (str(batch.entries[-1].seq),))
        connection.run("COMMIT")

    async def rollback(self) -> None:
        """End the transaction without a trace. The connection is made anew for the next one."""
        await self._in(self._writer, self._drop_write_connection)

    def _drop_write_connection(self) -> None:
        connection, self._write_connection = self._write_connection, None
        if connection is not None:
            connection.close()

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run the function in a write transaction of its own: housekeeping only.

        It has a connection of its own too, because the log's writer may be between `begin` and
        `commit`; the two wait for each other as two processes would.
        """

        def transaction() -> T:
            connection = self.database.connect(readonly=False)
            try:
                for statement in connection.dialect.begin_write:
                    connection.run(statement)
                result = function(connection)
                connection.run("COMMIT")
            finally:
                connection.close()
            return result

        return await asyncio.to_thread(transaction)

    # Other nodes

    def watch(
        self, grown: Callable[[int | None], None], heard: Callable[[str], None]
    ) -> Callable[[], None]:
        """See `Database.watch`; the callbacks come on the event loop that this is called on."""
        loop = asyncio.get_running_loop()

        def on_loop(function: Callable[..., None]) -> Callable[..., None]:
            def call(*arguments: Any) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(function, *arguments)

            return call

        return self.database.watch(on_loop(grown), on_loop(heard))

    async def announce(self, messages: Sequence[str]) -> None:
        """See `Database.announce`. Nothing that is written or read waits for it."""
        await self._in(self._announcer, self.database.announce, messages)

    async def close(self) -> None:
        """End the threads and connections, when nothing uses them any more."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.submit(self._drop_write_connection).result()
        self._writer.shutdown()
        self._readers.shutdown()
        self._announcer.shutdown(cancel_futures=True)
        for connection in self._open:
            connection.close()
        self.database.close()

    @staticmethod
    async def _in(
        executor: ThreadPoolExecutor,
        function: Callable[P, T],
        *arguments: P.args,
        **keywords: P.kwargs,
    ) -> T:
        loop = asyncio.get_running_loop()
        if keywords:
            return await loop.run_in_executor(executor, lambda: function(*arguments, **keywords))
        return await loop.run_in_executor(executor, function, *arguments)
