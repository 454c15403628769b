"""The store as the rest of a node uses it: awaitable, with its threads inside."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tertulia.model.errors import Refused
from tertulia.store import history, reading
from tertulia.store.database import Connection, Database, DatabaseError
from tertulia.store.history import Head, Position
from tertulia.store.migrations import migrate, require_known
from tertulia.store.reading import Growth
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

    def __init__(self, database: Database, *, serves: bool = False) -> None:
        """With `serves`, other processes are told that this one serves from the database."""
        self.database = database
        self._serves = serves
        self._looker = ThreadPoolExecutor(1, thread_name_prefix="look")
        self._look_connection: Connection | None = None
        self._writer = ThreadPoolExecutor(1, thread_name_prefix="writer")
        self._readers = ThreadPoolExecutor(READERS, thread_name_prefix="reader")
        self._local = threading.local()
        self._open: list[Connection] = []
        self._lock = threading.Lock()
        self._write_connection: Connection | None = None

    @property
    def is_shared(self) -> bool:
        """Whether several nodes may serve from this database."""
        return self.database.is_shared

    async def migrate(self, tell: Callable[[str], None]) -> None:
        """Bring the database to the program's version. Raises as `migrations.migrate`: a server
        may do it while others serve, a command may not."""
        await self._in(self._writer, migrate, self.database, tell, beside_servers=self._serves)

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

    async def look(self) -> Head:
        """The log's end as it is now, on a connection that nothing else waits for. NewerDatabase
        where a newer program writes it, DatabaseReplaced where that is another one than ours."""
        return await self._in(self._looker, self._look)

    def _look(self) -> Head:
        self.database.require_in_place()
        try:
            if self._look_connection is None:
                self._look_connection = self.database.connect(readonly=True)
                if self._serves:
                    self.database.say_serving(self._look_connection)
            head = history.head(self._look_connection)
        except Exception:
            self._drop_look_connection()
            raise
        require_known(head)
        return head

    def _drop_look_connection(self) -> None:
        connection, self._look_connection = self._look_connection, None
        if connection is not None:
            connection.close()

    # Writing: `begin`, then `commit` or `rollback`, by the log's writer alone

    async def begin(self, after: Position) -> Growth:
        """Keep all other writers out, and return what the log has since `after` (others' commits).
        Raises as `reading.growth`.

        After a failure of this or of `commit`, `rollback` must follow.
        """
        # (A turn of the thread takes several times as long as this, where nobody is in the way.)
        connection = self._write_connection
        if connection is not None and connection.begin_at_once():
            head = history.head(connection)
            if head.position == after:
                require_known(head)
                return Growth(head, [], after)
            return await self._in(self._writer, self._since, connection, after)
        return await self._in(self._writer, self._begin, after)

    def _begin(self, after: Position) -> Growth:
        return self._since(self._locked(), after)

    def _locked(self) -> Connection:
        """The writer's connection, in a transaction that keeps others out."""
        if self._write_connection is None:
            self._write_connection = self.database.connect(readonly=False)
        connection = self._write_connection
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        return connection

    @staticmethod
    def _since(connection: Connection, after: Position) -> Growth:
        page = reading.growth(connection, after, CATCH_UP)
        found = page.entries
        while not page.is_all:
            page = reading.growth(connection, page.position, CATCH_UP)
            found += page.entries
        return Growth(page.head, found, page.position)

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

    async def was_committed(self, batch: Batch, before: Head) -> bool | None:
        """Whether the batch, begun at that head, was committed, where `commit` could not tell: no
        writer is under way any more when it is looked up. After `rollback`.

        None where nobody can tell: it had no entries, and others have written notes since.
        """
        return await self._in(self._writer, self._was_committed, batch, before)

    def _was_committed(self, batch: Batch, before: Head) -> bool | None:
        connection = self._locked()
        try:
            if batch.entries:
                return history.batch_of(connection, batch.entries[0].seq) == batch.id
            noted = history.head(connection).noted
        finally:
            connection.run("ROLLBACK")
        return True if noted == batch.id else False if noted == before.noted else None

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

    async def announce(self, message: str) -> None:
        """See `Database.announce`."""
        await self._in(self._writer, self.database.announce, message)

    async def close(self) -> None:
        """End the threads and connections, when nothing uses them any more."""
        await asyncio.to_thread(self._close)

    def _close(self) -> None:
        self._writer.submit(self._drop_write_connection).result()
        self._looker.submit(self._drop_look_connection).result()
        self._looker.shutdown()
        self._writer.shutdown()
        self._readers.shutdown()
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
