"""The store: awaitable access to the database, with threads inside."""

import asyncio
import logging
import secrets
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit

from tertulia import tracing
from tertulia.model.narrow import MessageSearch
from tertulia.store import broadcast, installation, log_entries, message_search
from tertulia.store.database import (
    READING,
    WRITING,
    Connection,
    ConnectionLost,
    ConnectionSlot,
    Database,
    DatabaseError,
    DatabaseUnavailable,
    ResultNeeded,
    WritePipeline,
)
from tertulia.store.installation import Head, Position, require_known
from tertulia.store.log_entries import LogTail
from tertulia.store.notification_reader import NotificationReader
from tertulia.store.readers import Readers
from tertulia.store.schema_upgrade import is_settled, migrate, settle
from tertulia.store.threads import Threads
from tertulia.store.writing import Batch, prefetch_queries, row_count, text_length, write
from tertulia.tracing import DatabaseWait

logger = logging.getLogger("tertulia.store")

T = TypeVar("T")
P = ParamSpec("P")

READERS = 3
READ_SECONDS = 10
"""The time limit of a read in seconds, including waiting for its turn."""
LOG_READ_SECONDS = 5
LOAD_SECONDS = 120
"""The time limit for loading the whole state, in seconds: reading its records, and building it from
them."""
SQLITE_FILE = "tertulia.db"
CATCH_UP = 1000
"""The number of entries read in one query."""
UPKEEP_THREADS = 3
"""The number of threads for upkeep: one for each job that prunes or rewrites stored data."""
UPKEEP_CLOSING_SECONDS = 10.0
"""The number of seconds for which a stopping node waits for each of them."""
_BATCH_SIZE = 300
"""The most rows encoded on the event loop. A thread encodes larger batches."""
_TEXT_BATCH = 50_000
"""The most characters of messages encoded on the event loop. 10,000 take about a millisecond."""
_IN_ONE = 3000
"""The most rows sent in one pipeline. Larger batches are sent while they are encoded, because
PostgreSQL ends a transaction that is idle for too long."""


def database_at(data_dir: Path, url: str | None, bus: Path | None = None) -> Database:
    """Return the database at the URL, or the file in the data directory.

    `bus` is the directory for sockets if one server has several processes. Raise DatabaseError for
    an unsupported URL.
    """
    scheme = urlsplit(url).scheme if url else "sqlite"
    # Load only the driver in use. Each takes time and megabytes.
    if scheme in {"postgresql", "postgres"}:
        from tertulia.store.postgres import PostgresDatabase

        return PostgresDatabase(str(url))
    if scheme == "sqlite":
        from tertulia.store.sqlite import SqliteDatabase

        return SqliteDatabase(
            Path(url.removeprefix("sqlite:///")) if url else data_dir / SQLITE_FILE, bus
        )
    raise DatabaseError(f"'{scheme}' isn't a supported database: use postgresql://… or sqlite:///…")


class Store:
    """A node's access to the database. It has threads for the log's writer, other writes, reads for
    the log, looking at the log's head, peer messages, the list of nodes, and other reads.

    Methods raise DatabaseUnavailable if the database is unreachable or too slow. Then nothing was
    done, except after CommitUnknown.
    """

    def __init__(self, database: Database, *, serves: bool = False) -> None:
        """Use the database. With `serves`, other processes see that this one serves from it."""
        self.database = database
        self._serves = serves
        self.name = secrets.token_hex(4)
        """Identifies its own broadcasts."""
        self._peer_sender = Threads(1, "peer-messages")
        self._readers = Readers(database, READERS, "reader")
        # Other slow reads must not delay the log.
        self._log_reader = Readers(database, 1, "log-reader")
        # Each of these threads has a separate connection.
        self._looker = Threads(1, "look")
        self._looking = ConnectionSlot(
            database, readonly=True, limits=READING, prepare=self._announce_serving
        )
        self._writer = Threads(1, "writer")
        self._writing = ConnectionSlot(database, readonly=False, limits=WRITING)
        self._lister = Threads(1, "lister")
        self._listing = ConnectionSlot(
            database, readonly=False, limits=READING, prepare=self._make_hasty
        )
        self._housekeeper = Threads(1, "housekeeper")
        self._upkeep = Threads(UPKEEP_THREADS, "upkeep")
        self._housekeeping = ConnectionSlot(database, readonly=False, limits=WRITING)
        self._hearing: NotificationReader | None = None
        self.announced: Sequence[str] = ()
        """The last broadcast."""

    @property
    def is_shared(self) -> bool:
        return self.database.is_shared

    async def migrate(self, report: Callable[[str], None]) -> None:
        """Migrate the database, as `schema_upgrade.migrate`. Only servers can migrate while others
        serve."""
        step = partial(migrate, self.database, report, beside_servers=self._serves)
        await self._writer.run(step)

    async def settle(self, report: Callable[[str], None]) -> None:
        """Finish an upgrade, as `schema_upgrade.settle`."""
        if not await self.tend_list(is_settled):
            await asyncio.to_thread(settle, self.database, report)

    # Reading

    async def read(
        self,
        function: Callable[Concatenate[Connection, P], T],
        *arguments: P.args,
        **keywords: P.kwargs,
    ) -> T:
        """Run the function on a connection with one snapshot. It may run twice."""
        with tracing.span("read"), DatabaseWait():
            return await self._readers.read(
                lambda c: function(c, *arguments, **keywords), READ_SECONDS
            )

    async def search(self, search: MessageSearch, function: Callable[[Connection], T]) -> T:
        """Run the function, which performs the search. Unless an index bounds it, it counts as a
        search: see `Readers.search`."""
        if message_search.is_bounded(search):
            return await self.read(function)
        with tracing.span("search"), DatabaseWait():
            return await self._readers.search(function)

    async def read_log(
        self, function: Callable[[Connection], T], seconds: float | None = None
    ) -> T:
        """Run the function for the log, which doesn't wait for other readers and delays writes,
        so it has `LOG_READ_SECONDS` by default."""
        with tracing.span("read_log"):
            return await self._log_reader.read(function, seconds or LOG_READ_SECONDS)

    async def look(self) -> Head:
        """Return the log's head, on a separate connection. Raise NewerDatabase and
        DatabaseReplaced."""
        return await self._looker.run(self._look)

    def _look(self) -> Head:
        self.database.require_in_place()
        try:
            head = installation.head_position(self._looking.get())
        except Exception:  # After any error, the next look has a new connection.
            self._looking.drop()
            raise
        require_known(head)
        return head

    def _announce_serving(self, connection: Connection) -> None:
        if self._serves:
            self.database.say_serving(connection)

    # Writing: `begin`, then `commit` or `rollback`, by the log's writer alone

    async def begin(self, after: Position, heard: Callable[[], Position] | None = None) -> LogTail:
        """Lock out other writers, and return the log's entries after `after`, or after what `heard`
        returns once they are locked out. Raise the errors of `log_entries.read_tail`.

        If this or `commit` fails, `rollback` must follow. DatabaseUnavailable may be retried.
        """
        connection = self._writing.opened
        if connection is not None and connection.exchanges is not None:
            try:
                return await self._exchanged(connection, connection.exchanges, after, heard)
            except ConnectionLost:  # It was lost while idle.
                await self.rollback()
        # Switching threads would take several times as long.
        elif connection is not None and connection.begin_at_once():
            head = installation.head_position(connection)
            if head.position == after:
                require_known(head)
                return LogTail(head, [], after)
            return await self._writer.run(self._since, connection, after)
        return await self._writer.run(self._begin, after)

    async def _exchanged(
        self,
        connection: Connection,
        exchanges: WritePipeline,
        after: Position,
        heard: Callable[[], Position] | None,
    ) -> LogTail:
        """Begin without a thread."""
        row, rows = await exchanges.take_head(after.batch, after.seq)
        head = installation.head_of(row)
        require_known(head)
        self.hear()
        known = heard() if heard is not None else after
        result = log_entries.tail_from_rows(head, rows, known)
        if result is None:
            result = await self._writer.run(self._since, connection, known)
        return result

    def _begin(self, after: Position) -> LogTail:
        return self._since(self._writing.begin_write(), after)

    @staticmethod
    def _since(connection: Connection, after: Position) -> LogTail:
        page = log_entries.read_tail(connection, after, CATCH_UP)
        entries = page.entries
        while not page.is_all:
            page = log_entries.read_tail(connection, page.position, CATCH_UP)
            entries += page.entries
        return LogTail(page.head, entries, page.position)

    async def commit(self, batch: Batch, before: Position | None = None) -> None:
        """Write the batch and commit durably. Raise CommitUnknown if the result is unknown. After
        any other error, nothing was written. With `before`, the entries are broadcast to other
        nodes."""
        connection = self._writing.opened
        if connection is None:
            raise RuntimeError("commit without begin")
        exchanges = connection.exchanges
        if exchanges is not None:
            script = await self._script(connection, exchanges, batch, before)
            if script is not None:
                await exchanges.commit_script(script)
                return
        await self._writer.run(self._commit, connection, batch, before)

    async def _script(
        self,
        connection: Connection,
        exchanges: WritePipeline,
        batch: Batch,
        before: Position | None,
    ) -> Sequence[Any] | None:
        """Return the recorded statements, or None if a thread must run them one by one because
        there are too many or they depend on queries."""
        rows = row_count(batch)
        if rows > _IN_ONE:
            return None
        asked = prefetch_queries(connection.dialect, batch)
        answers = await exchanges.ask(asked) if asked else ()

        def script() -> Sequence[Any]:
            return exchanges.written_down(
                lambda: self._write(connection, batch, before), asked, answers
            )

        try:
            if rows <= _BATCH_SIZE and text_length(batch) <= _TEXT_BATCH:
                return script()
            return await self._writer.run(script)
        except ResultNeeded:
            return None

    def _commit(self, connection: Connection, batch: Batch, before: Position | None) -> None:
        self._write(connection, batch, before)
        connection.commit()
        if batch.entries:
            self.database.tell_growth(batch.entries[-1].seq)

    def _write(self, connection: Connection, batch: Batch, before: Position | None) -> None:
        write(connection, batch)
        if batch.entries and connection.dialect.tell_growth:
            announcements = [str(batch.entries[-1].seq)]
            if before is not None:
                announcements = broadcast.encode_broadcast(
                    self.name, batch.entries, batch.id, before
                )
            self.announced = announcements
            connection.run_many(connection.dialect.tell_growth, [(text,) for text in announcements])

    async def was_committed(self, batch: Batch, before: Head) -> bool | None:
        """Return whether the batch, begun at that head, was committed after CommitUnknown and
        `rollback`, or None if that can't be known because the batch had no entries and others
        have written since. A batch that writes nothing counts as committed."""
        if not batch.entries and not batch.notes:
            return True
        return await self._writer.run(self._was_committed, batch, before)

    def _was_committed(self, batch: Batch, before: Head) -> bool | None:
        connection = self._writing.begin_write()
        try:
            if batch.entries:
                return installation.batch_of(connection, batch.entries[0].seq) == batch.id
            noted = installation.head_position(connection).noted
        finally:
            connection.run("ROLLBACK")
        return True if noted == batch.id else False if noted == before.noted else None

    async def rollback(self) -> None:
        """End the transaction by closing the connection."""
        await self._writer.run(self._writing.drop)

    async def write(self, function: Callable[[Connection], T]) -> T:
        """Run the function in a write transaction apart from the log.

        It has its own thread and connection, because the log's writer may be between `begin` and
        `commit`. The function must leave the connection unchanged. Raise DatabaseUnavailable if its
        turn doesn't come within a writer's lock timeout.
        """
        return await self._housekeeper.run(self._keep_house, function, time.monotonic())

    async def maintain(
        self, function: Callable[P, T], *arguments: P.args, **keywords: P.kwargs
    ) -> T:
        """Run the function, which opens its own connections and may take long, on a thread for
        upkeep. `close` doesn't wait long for it."""
        return await self._upkeep.run(partial(function, *arguments, **keywords))

    def _keep_house(self, function: Callable[[Connection], T], asked: float) -> T:
        if time.monotonic() - asked > WRITING.lock:
            raise DatabaseUnavailable("The database is too busy. Try again.")
        try:
            connection = self._housekeeping.begin_write()
            result = function(connection)
            connection.commit()
        except BaseException:
            self._housekeeping.drop()
            raise
        # Connecting to a server takes longer than the work. An open connection to a file could be
        # in the way of others.
        if connection.exchanges is None:
            self._housekeeping.drop()
        return result

    # Other nodes

    async def tend_list(self, function: Callable[[Connection], T]) -> T:
        """Run the function on the connection for the list of nodes (`tertulia.store.nodes`).
        Each statement commits by itself, without waiting for the disk."""
        return await self._lister.run(self._tend_list, function)

    def _tend_list(self, function: Callable[[Connection], T]) -> T:
        try:
            return function(self._listing.get())
        except Exception:  # After any error, the next call has a new connection.
            self._listing.drop()
            raise

    def _make_hasty(self, connection: Connection) -> None:
        for statement in self.database.dialect.hasty:
            connection.run(statement)

    def watch(
        self,
        on_growth: Callable[[int | None], None],
        on_peer_message: Callable[[str], None],
        on_broadcast: Callable[[Sequence[str]], None] | None = None,
        is_awaited: Callable[[], bool] = lambda: True,
    ) -> Callable[[], None]:
        """Watch for other processes' writes, as `Database.watch`. Callbacks run on this event loop
        and don't get this store's own broadcasts. While nobody waits (`is_awaited`), broadcasts may
        be `DEFER_SECONDS` late."""
        loop = asyncio.get_running_loop()

        def on_loop(function: Callable[..., None]) -> Callable[..., None]:
            def call(*arguments: Any) -> None:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(function, *arguments)

            return call

        if on_broadcast is None:
            return self.database.watch(on_loop(on_growth), on_loop(on_peer_message))

        def on_notifications(texts: Sequence[str]) -> None:
            if others := [text for text in texts if broadcast.sender_of(text) != self.name]:
                on_broadcast(others)

        self._hearing = NotificationReader(is_awaited)
        return self.database.watch(
            on_loop(on_growth), on_loop(on_peer_message), on_notifications, self._hearing
        )

    def listen(self) -> None:
        """Resume reading broadcasts soon, because someone waits."""
        if self._hearing is not None:
            self._hearing.listen()

    def hear(self) -> None:
        """Read broadcasts immediately."""
        if self._hearing is not None:
            self._hearing.now()

    def hear_gathered(self) -> None:
        """Read broadcasts immediately if reading was paused."""
        if self._hearing is not None:
            self._hearing.gathered()

    async def stop(self, watching: Callable[[], None]) -> None:
        """End the watching that `watch` started."""
        if self._looker.is_idle:
            await self._looker.run(watching)
        else:  # A look may hang with the database, so it's waited for after it was told to end.
            await asyncio.to_thread(watching)

    async def send_to_peers(self, messages: Sequence[str]) -> None:
        """Send messages to other processes, as `Database.send_to_peers`. No read or write waits for
        it."""
        await self._peer_sender.run(self.database.send_to_peers, messages)

    async def close(self) -> None:
        # The event loop's own threads would be made for this, and ended by another one.
        await self._looker.run(self._close)
        self._looker.close()

    def _close(self) -> None:
        self._upkeep.close(drops=True, seconds=UPKEEP_CLOSING_SECONDS)
        for thread in (self._writer, self._lister, self._housekeeper):
            thread.close()
        for slot in (self._writing, self._looking, self._listing, self._housekeeping):
            slot.drop()
        self._readers.close()
        self._log_reader.close()
        self._peer_sender.close(drops=True)
        self.database.close()
