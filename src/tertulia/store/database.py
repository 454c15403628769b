"""The interface of a database and its connections.

SQL is written once, with `?` for parameters, in the subset that SQLite and PostgreSQL share. A
`Dialect` has the rest.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any, NamedTuple, Protocol

from tertulia.model.errors import Unavailable
from tertulia.store.dialect import Dialect
from tertulia.store.notification_reader import NotificationReader

Row = tuple[Any, ...]
TextRow = tuple[bytes | None, ...]
"""A row in text format, as the server sends it."""


def never() -> bool:
    return False


class DatabaseError(Exception):
    """The database can't be used. The text tells the operator why and what to do."""


class DatabaseUnavailable(DatabaseError, Unavailable):
    """The database is unreachable or didn't answer in time. Nothing was done. Retrying is safe."""


class ConnectionLost(DatabaseUnavailable):
    """The connection and its transaction ended without effect. A new connection may work."""


class TimeLimitReached(DatabaseUnavailable):
    """A statement or transaction exceeded its time limit and was stopped."""


class CommitUnknown(DatabaseUnavailable):
    """The connection was lost during a commit, so only the log shows whether it succeeded. The lost
    transaction may still be ending: look it up while holding the log's head
    (`Dialect.begin_write`)."""


class TranslatedErrors:
    """A context that raises a DatabaseError in place of a driver's error if the database can't be
    used."""

    def __init__(
        self,
        kinds: tuple[type[Exception], ...],
        translated: Callable[[Any], DatabaseError | None],
    ) -> None:
        """Translate errors of these `kinds`. `translated` returns None for errors to leave as they
        are, such as mistakes in statements."""
        self._kinds = kinds
        self._translated = translated

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, self._kinds) and (ours := self._translated(error)) is not None:
            raise ours from error


class TimeLimits(NamedTuple):
    """Time limits of a connection in seconds. Whatever takes longer is stopped."""

    statement: float
    """The limit for a statement, including its waits."""
    lock: float
    """The limit for waiting for a lock."""
    idle: float
    """The limit between two statements of a transaction, so that a stalled process doesn't hold
    locks (PostgreSQL)."""
    transaction: float = 0
    """The limit for a whole transaction, or 0 for none (PostgreSQL 17 and later)."""


READING = TimeLimits(statement=10, lock=5, idle=30)
"""The limits of reads that someone waits for."""
WRITING = TimeLimits(statement=15, lock=10, idle=5, transaction=20)
"""Limits of writes to the log. A writer waits longer for the head's lock than a stalled writer can
hold it."""
MIGRATING = TimeLimits(statement=86_400, lock=86_400, idle=60)
"""Limits of a migration, and of waiting for one."""
UPKEEP = TimeLimits(statement=600, lock=60, idle=600)
"""Limits of background work, whose statements each read or write a part."""
LONG = TimeLimits(statement=14_400, lock=60, idle=3_600)
"""Limits of an operator's commands and of checkpoints, which read everything."""


class DatabaseReplaced(DatabaseError):
    """The database file was moved away while in use, so writes would be lost."""


class Query(NamedTuple):
    """A query and its parameters."""

    sql: str
    parameters: Sequence[Any]


class ResultNeeded(Exception):
    """A recorded write needs a result that isn't known yet."""


class WritePipeline(Protocol):
    """Writes to the log from the event loop, in as few round trips as possible and without a
    thread. Raises the errors of `Connection`. Nothing else may use the connection in the meantime,
    and it is unusable after an exception."""

    async def take_head(self, batch: str, seq: int) -> tuple[TextRow, Sequence[TextRow]]:
        """Start a transaction that keeps other writers out. Return the log's head for
        `installation.head_of`, and its entries from `seq` on for `log_entries.tail_from_rows`,
        unless the head's batch is still `batch`."""

    async def ask(self, questions: Sequence[Query]) -> Sequence[list[Row]]:
        """Return the rows of each query."""

    def written_down(
        self,
        write: Callable[[], None],
        asked: Sequence[Query] = (),
        answers: Sequence[list[Row]] = (),
    ) -> Sequence[Any]:
        """Record the statements that `write` runs, for `commit_script`. Queries are answered with
        the given results. Raise ResultNeeded for any other query, and for statements that can't be
        recorded."""

    async def commit_script(self, script: Sequence[Any]) -> None:
        """Run the recorded statements and commit durably. Raise CommitUnknown if the connection is
        lost. After any other error, nothing was written."""


class Connection(Protocol):
    """One connection, used by one thread at a time.

    Methods raise DatabaseUnavailable if the database is unreachable, too busy, or exceeds a limit:
    ConnectionLost if the connection is unusable afterwards, TimeLimitReached if time ran out.
    Mistakes in statements raise the driver's errors.
    """

    @property
    def dialect(self) -> "Dialect": ...

    @property
    def exchanges(self) -> WritePipeline | None:
        """The pipeline for writing from the event loop, or None for SQLite."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement."""

    def scan(self, sql: str) -> Iterator[Row]:
        """Yield a statement's rows without loading all of them. Only inside a transaction."""

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters."""

    def begin_read(self, seconds: float, is_given_up: Callable[[], bool] = never) -> None:
        """Start a read transaction on one snapshot. Its statements may take `seconds` altogether,
        and end with TimeLimitReached after that or once `is_given_up` returns True."""

    def require_time(self) -> None:
        """Raise TimeLimitReached if the transaction has no time left. For long computations between
        statements."""

    def commit(self) -> None:
        """Commit durably. Raise CommitUnknown if the connection is lost. After any other error,
        nothing was written."""

    def rollback(self) -> None:
        """Roll back, even if no time is left."""

    def begin_at_once(self) -> bool:
        """Start a write transaction if that doesn't block. Return False, without effect,
        otherwise."""

    def close(self) -> None: ...


class ConnectionSlot:
    """A connection that is opened on demand, and reopened after it was dropped. Used by one thread
    at a time."""

    def __init__(
        self,
        database: "Database",
        *,
        readonly: bool,
        limits: TimeLimits,
        prepare: Callable[[Connection], None] = lambda _: None,
    ) -> None:
        """`prepare` sets up a new connection."""
        self._connect = partial(database.connect, readonly=readonly, limits=limits)
        self._prepare = prepare
        self.opened: Connection | None = None

    def get(self) -> Connection:
        if self.opened is None:
            self.opened = self._connect()
            try:
                self._prepare(self.opened)
            except BaseException:
                self.drop()
                raise
        return self.opened

    def begin_write(self) -> Connection:
        """Return the connection in a transaction that locks out other writers."""
        if self.opened is not None:
            try:
                return self._begun(self.opened)
            except ConnectionLost:  # It was lost while unused, so nothing had been done.
                self.drop()
        return self._begun(self.get())

    @staticmethod
    def _begun(connection: Connection) -> Connection:
        for statement in connection.dialect.begin_write:
            connection.run(statement)
        return connection

    def drop(self) -> None:
        """Close the connection, which rolls back its transaction."""
        connection, self.opened = self.opened, None
        if connection is not None:
            connection.close()


class Database(ABC):
    dialect: Dialect
    is_shared: bool
    """Whether several nodes can serve from it."""

    @abstractmethod
    def exists(self) -> bool:
        """Return whether the database has Tertulia's tables. Raise DatabaseError if that isn't
        known."""

    @abstractmethod
    def connect(self, *, readonly: bool, limits: TimeLimits = LONG) -> Connection:
        """Return a new connection. Raise DatabaseUnavailable if the database can't be reached, and
        DatabaseError if it can't be used."""

    def opening(self) -> AbstractContextManager[None]:
        """Reuse closed connections in this context. A start opens several in a row, which mostly
        costs reading the schema."""
        return nullcontext()

    @abstractmethod
    def backup_before_migration(self, version: int) -> str | None:
        """Copy the database and return the path, or None if backups are up to the operator."""

    @abstractmethod
    def delete_copies(self, before: float | None = None) -> None:
        """Delete copies made before migrations, or only those older than a UNIX time."""

    @abstractmethod
    def give_back_space(self) -> bool:
        """Return some free space to the operating system. Return whether there may be more."""

    @abstractmethod
    def forget_deleted_words(self, *, from_start: bool) -> bool:
        """Rewrite a part of the search indexes, without the words of messages that were deleted
        or edited, and of topics that were deleted or renamed. Return whether there is more to
        rewrite. `from_start` starts over."""

    @abstractmethod
    def empty_write_ahead_log(self) -> bool:
        """Remove copies of deleted rows from the write-ahead log. Return False if readers or
        writers were in the way."""

    @abstractmethod
    def watch(
        self,
        on_growth: Callable[[int | None], None],
        on_peer_message: Callable[[str], None],
        on_broadcast: Callable[[Sequence[str]], None] | None = None,
        hearing: NotificationReader | None = None,
    ) -> Callable[[], None]:
        """Call `on_growth`, from any thread, when another process may have written to the log, with
        the newest sequence number if it's known, and `on_peer_message` with peer messages. Return a
        blocking function that ends this.

        If other processes broadcast their entries (`Dialect.tell_growth`), `on_broadcast` gets the
        texts instead, several at a time. With a `hearing`, whose loop must run until the end, this
        happens on the loop where no thread is needed.

        After a failure it reconnects within seconds, without end, and then calls `on_growth`.
        """

    @abstractmethod
    def require_in_place(self) -> None:
        """Raise DatabaseReplaced if the open database was moved away."""

    @abstractmethod
    def served(self) -> AbstractContextManager[int | None]:
        """Serve from this database for the duration of the context. If only one process may, raises
        DatabaseError when another one does, and yields the lock's file descriptor, which child
        processes inherit."""

    @abstractmethod
    def servers(self) -> list[str]:
        """Describe the other processes that serve from it."""

    @abstractmethod
    def say_serving(self, connection: Connection) -> None:
        """Be listed in the `servers` of other processes as long as the connection is open."""

    @abstractmethod
    def making_checkpoint(self, goes_on: Callable[[], bool]) -> AbstractContextManager[bool]:
        """Keep other processes from making a checkpoint for the duration of the context, unless
        `Dialect.claim_checkpoint` does. Yields False once `goes_on` returns False."""

    @abstractmethod
    def tell_growth(self, seq: int) -> None:
        """Notify other nodes of a committed entry, unless `Dialect.tell_growth` does."""

    @abstractmethod
    def send_to_peers(self, messages: Sequence[str]) -> None:
        """Send messages to other processes without storing them. Blocks briefly, and is called by
        one thread at a time."""

    @abstractmethod
    def close(self) -> None: ...
