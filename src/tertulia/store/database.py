"""What a database must offer, and the few things in which the two kinds differ.

SQL is written once, with `?` for parameters, in the subset that SQLite and PostgreSQL share. Where
they do not share one, a `Dialect` method gives the fragment.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, Protocol

from tertulia.model.errors import Unavailable
from tertulia.store.dialect import Dialect
from tertulia.store.notification_reader import NotificationReader

Row = tuple[Any, ...]
TextRow = tuple[bytes | None, ...]
"""A row as text, as a server sends it."""


def never() -> bool:
    return False


class DatabaseError(Exception):
    """The database cannot be used. `str(error)` says why and what to do, to the operator."""


class DatabaseUnavailable(DatabaseError, Unavailable):
    """The database cannot be reached, or did not answer in time. Nothing was done; it may be tried
    again."""


class ConnectionLost(DatabaseUnavailable):
    """The connection ended, and with it the transaction, of which nothing is left. The next one
    may do better."""


class TimeLimitReached(DatabaseUnavailable):
    """A statement or transaction took longer than its limit, and was stopped."""


class CommitUnknown(DatabaseUnavailable):
    """The connection was lost while a commit was under way: whether it was made must be looked up
    in the log. The lost transaction may still be ending: who looks while holding the log's head
    (`Dialect.begin_write`) sees what became of it."""


class TimeLimits(NamedTuple):
    """How long something may take on a connection, in seconds. What takes longer is stopped."""

    statement: float
    """A statement, with what it waits for."""
    lock: float
    """Waiting for a lock."""
    idle: float
    """Between two statements of a transaction. The database ends the connection of a process that
    stands still for longer, and so what it holds. (PostgreSQL.)"""
    transaction: float = 0
    """A transaction altogether, 0 for as long as it takes: also where a process stopped in the
    middle of a statement. (PostgreSQL 17 and newer.)"""


READING = TimeLimits(statement=10, lock=5, idle=30)
"""For reads whose answer somebody waits for."""
WRITING = TimeLimits(statement=15, lock=10, idle=5, transaction=20)
"""For writing to the log. A writer waits for the head's lock longer than a writer that stands still
may hold it."""
MIGRATING = TimeLimits(statement=86_400, lock=86_400, idle=60)
"""For a migration, and for waiting for one."""
LONG = TimeLimits(statement=14_400, lock=60, idle=3_600)
"""For an operator's commands, which read everything."""


class DatabaseReplaced(DatabaseError):
    """The database was moved away while it is in use: what is written to it is lost."""


class Query(NamedTuple):
    """A statement that asks something, and its parameters."""

    sql: str
    parameters: Sequence[Any]


class ResultNeeded(Exception):
    """What is only written down was to be answered."""


class WritePipeline(Protocol):
    """A connection to a server as the event loop uses it for writing to the log: what belongs
    together is sent together, and no thread waits for the answers. Errors are those of
    `Connection`. Nobody else may use the connection meanwhile, and after an exception it is of no
    use any more."""

    async def take_head(self, batch: str, seq: int) -> tuple[TextRow, Sequence[TextRow]]:
        """Start a transaction that no other writer can enter before it ends. Returns the log's
        head for `history.head_of`, and its entries from that number on for
        `newest_entries.growth`; none where the head's batch is that one."""

    async def ask(self, questions: Sequence[Query]) -> Sequence[list[Row]]:
        """The rows of each."""

    def written_down(
        self,
        write: Callable[[], None],
        asked: Sequence[Query] = (),
        answers: Sequence[list[Row]] = (),
    ) -> Sequence[Any]:
        """What the function runs on the connection, for `commit_script`; what it asks the
        connection is answered if it was `asked` before. AnswerNeeded where it asks for something
        else, or runs what only the connection itself can send."""

    async def commit_script(self, script: Sequence[Any]) -> None:
        """Run what was written down, and end the transaction; all of it is on disk then.
        CommitUnknown where the connection was lost, since the end goes out with the beginning; of
        all other errors nothing is left."""


class Connection(Protocol):
    """One connection; used by one thread at a time.

    Each method raises DatabaseUnavailable where the database cannot be reached, is too busy or took
    longer than the connection's limits: as ConnectionLost where the connection is of no use any
    more, as TimeLimitReached where time was short. A mistake in a statement is the driver's error.
    """

    @property
    def dialect(self) -> "Dialect":
        """The kind of database behind it."""

    @property
    def exchanges(self) -> WritePipeline | None:
        """The same connection for the event loop; None where there is no server to talk to."""

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        """Run one statement and return its rows."""

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        """Run one statement for what it does."""

    def scan(self, sql: str) -> Iterator[Row]:
        """Run one statement and yield its rows without having them all in memory. Only inside a
        transaction."""

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        """Run one statement for each row of parameters."""

    def begin_read(self, seconds: float, is_given_up: Callable[[], bool] = never) -> None:
        """Start a transaction that sees one moment throughout. Its statements may take `seconds`
        altogether: TimeLimitReached afterwards, and also when nobody waits for the result anymore
        (`is_given_up`)."""

    def require_time(self) -> None:
        """Raise TimeLimitReached if the transaction has no time left. For computations between two
        statements that may take long."""

    def commit(self) -> None:
        """End the transaction; what it wrote is on disk then. CommitUnknown where the connection
        was lost meanwhile; of all other errors nothing is left."""

    def rollback(self) -> None:
        """End the transaction without a trace, also if it has no time left."""

    def begin_at_once(self) -> bool:
        """Start a transaction as `begin_write` does, if that is known to take no time: False, and
        nothing has happened, where it might have to wait."""

    def close(self) -> None: ...


class Database(ABC):
    """A place to connect to."""

    dialect: Dialect
    is_shared: bool
    """Whether several nodes may serve from it."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether something of ours is there already. DatabaseError when that cannot be told."""

    @abstractmethod
    def connect(self, *, readonly: bool, limits: TimeLimits = LONG) -> Connection:
        """A new connection. DatabaseUnavailable where there is nothing to connect to; DatabaseError
        where what is there cannot be used."""

    def opening(self) -> AbstractContextManager[None]:
        """For the time of the context, whoever connects may get the connection that somebody before
        has closed: a start needs several, one after another, and most of what each takes is to read
        what there is in the database."""
        return nullcontext()

    @abstractmethod
    def backup_before_migration(self, version: int) -> str | None:
        """Copy the database as it is; no other migration may begin meanwhile. Returns where to, or
        None where the operator has means of their own."""

    @abstractmethod
    def delete_copies(self, before: float | None = None) -> None:
        """Delete the copies that were made before migrations; only those from before that UNIX
        time, if it is given."""

    @abstractmethod
    def give_back_space(self) -> bool:
        """Give some of the space that deleted rows took back to the operating system. Returns
        whether there may be more to give."""

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
        on_announcement: Callable[[str], None],
        on_told: Callable[[Sequence[str]], None] | None = None,
        hearing: NotificationReader | None = None,
    ) -> Callable[[], None]:
        """Call `on_growth` (from any thread) when another process may have written, with the log's
        newest sequence number if it is known, and `on_announcement` with what another process
        announced. Returns a function that ends this, which blocks for a moment.

        Where another process told its entries themselves (`Dialect.tell_growth`), `on_told` is
        called with the texts instead of `on_growth`, if it is given, with some at once where
        several have come. With a `hearing`, whose loop must run until the end, that is done on it
        where no thread is needed for it.

        After a failure of the database this is tried again within seconds, without end, and then
        `on_growth` is called for what may have been missed."""

    @abstractmethod
    def require_in_place(self) -> None:
        """DatabaseReplaced where the database that the connections lead to was moved away."""

    @abstractmethod
    def served(self) -> AbstractContextManager[int | None]:
        """Be a server of this database for the time of the context. DatabaseError where only one
        may serve from it, and another one does; then this is the descriptor of a lock, which
        processes that inherit it hold as well."""

    @abstractmethod
    def servers(self) -> list[str]:
        """The processes that serve from it, other than this one, in words."""

    @abstractmethod
    def say_serving(self, connection: Connection) -> None:
        """Appear among the `servers` of other processes as long as the connection lasts."""

    @abstractmethod
    def making_checkpoint(self, goes_on: Callable[[], bool]) -> AbstractContextManager[bool]:
        """Make a checkpoint for the time of the context, in which no other process does, where
        `Dialect.claim_checkpoint` does not see to that; others are waited for as long as `goes_on`
        returns True. False where it did not."""

    @abstractmethod
    def tell_growth(self, seq: int) -> None:
        """Tell other nodes that the log has come to that entry, which is on disk, where
        `Dialect.tell_growth` does not. Waits for nobody; called by the thread that commits."""

    @abstractmethod
    def announce(self, messages: Sequence[str]) -> None:
        """Send messages to other processes, without storing them. Blocks, for a moment at most; one
        thread at a time may call it."""

    @abstractmethod
    def close(self) -> None: ...
