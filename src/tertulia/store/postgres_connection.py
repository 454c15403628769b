"""A connection to PostgreSQL with psycopg."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from tertulia.store import log_entries
from tertulia.store.database import (
    WRITING,
    CommitUnknown,
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    Query,
    ResultNeeded,
    Row,
    TextRow,
    TimeLimitReached,
    TimeLimits,
    TranslatedErrors,
    WritePipeline,
    never,
)
from tertulia.store.installation import HEAD_COLUMNS
from tertulia.store.pipeline import (
    EncodedStatement,
    Pipeline,
    PipelineTimeout,
    QueryResult,
    Statement,
    Unencodable,
    encoded,
    grouped_inserts,
)
from tertulia.store.postgres_dialect import DIALECT
from tertulia.store.postgres_driver import ServerTimeout, connect, drain, to_psycopg

_WRITING_SESSION = {
    # A commit's statements are always the same, so they're planned once, and never compiled.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "bytea_output": "hex",
}
_GRACE_SECONDS = 2
"""The server stops statements at their limit. If it doesn't answer within this many seconds after
that, the connection is given up."""
_SESSION = {
    "client_min_messages": "warning",
    # The default is for spinning disks, and makes searches for rare words scan all messages.
    "random_page_cost": "1.1",
    # Let the server notice a vanished node and end its transactions.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
_SHUT_DOWN = (errors.AdminShutdown, errors.CrashShutdown)
_LOST = (
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    *_SHUT_DOWN,
    errors.CannotConnectNow,
)
"""After these errors, the connection is unusable."""
_TAKE_HEAD = (
    "BEGIN ISOLATION LEVEL READ COMMITTED",
    f"SELECT {HEAD_COLUMNS} FROM head WHERE id = 1 FOR UPDATE",
)


class PostgresConnection:
    def __init__(self, conninfo: str, limits: TimeLimits) -> None:
        self.dialect = DIALECT
        self._limits = limits
        self._transaction_ends = float("inf")
        self._is_given_up = never
        self._beginning: Sequence[str] = ()
        """Statements that begin a read transaction, sent with its first query."""
        self._is_ending = False
        """Whether the end of a read transaction was sent but not confirmed."""
        self._script: list[Statement] | None = None
        """Records statements instead of running them."""
        self._answers: list[tuple[Query, list[Row]]] = []
        """Results for queries while recording."""
        self.driver = connect(conninfo)
        self.translating = TranslatedErrors((psycopg.Error, ServerTimeout), self._translated)
        settings = {
            **_SESSION,
            **(_WRITING_SESSION if limits == WRITING else {}),
            "statement_timeout": _milliseconds(limits.statement),
            "lock_timeout": _milliseconds(limits.lock),
            "idle_in_transaction_session_timeout": _milliseconds(limits.idle),
        }
        if limits.transaction and self.driver.info.server_version >= 170000:
            settings["transaction_timeout"] = _milliseconds(limits.transaction)
        try:
            self.query(
                "SELECT " + ", ".join("set_config(?, ?, false)" for _ in settings),
                [word for setting in settings.items() for word in setting],
            )
        except BaseException:
            self.close()
            raise
        self._pipeline = Pipeline(self.driver)
        self._is_ended = False
        """Whether the server announced the end of the session."""
        self.driver.add_notice_handler(self._noticed)

    @property
    def exchanges(self) -> WritePipeline:
        return self

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        self._is_ended |= notice.severity_nonlocalized in {"FATAL", "PANIC"}

    def _allow(self) -> None:
        """Start the time limit of a statement."""
        self.require_time()
        now = time.monotonic()
        ends = self._transaction_ends if self._is_reading() else now + self._limits.statement
        self.driver.ends = ends + _GRACE_SECONDS
        if self._is_ending:
            self._is_ending = False
            with self.translating:
                self.driver.wait(drain(self.driver.pgconn))

    def _is_reading(self) -> bool:
        return self._transaction_ends != float("inf")

    def _translated(self, error: psycopg.Error | ServerTimeout) -> DatabaseError | None:
        if self.driver.is_late:
            self.close()
            return TimeLimitReached("The database isn't responding.")
        text = f"PostgreSQL: {str(error).strip()}"
        # The server is no longer the primary. A new connection may lead to the new one.
        was_demoted = isinstance(error, errors.ReadOnlySqlTransaction) and not self._is_reading()
        if isinstance(error, _LOST) or was_demoted or self.driver.closed:
            self.close()
            return ConnectionLost(text)
        if isinstance(error, errors.QueryCanceled):
            return TimeLimitReached(text)
        return DatabaseUnavailable(text) if isinstance(error, psycopg.OperationalError) else None

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        if self._script is not None:
            return self._answered(Query(sql, parameters))
        self._allow()
        with self.translating:
            return self._executed(sql, parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        if self._script is not None:
            self._script.append(Statement(sql, parameters))
            return
        self._allow()
        with self.translating:
            self._executed(sql, parameters)

    def _executed(self, sql: str, parameters: Sequence[Any]) -> psycopg.Cursor[Row]:
        """Run a statement, together with those that begin the transaction."""
        beginning, self._beginning = self._beginning, ()
        if not beginning:
            return self.driver.execute(to_psycopg(sql), parameters)
        with self.driver.pipeline():
            for statement in beginning:
                self.driver.execute(statement.encode())
            return self.driver.execute(to_psycopg(sql), parameters)

    def _begin_alone(self) -> None:
        """Begin the transaction before statements that can't be sent with its beginning."""
        if self._beginning:
            self.run("SELECT 1")

    def scan(self, sql: str) -> Iterator[Row]:
        self._begin_alone()
        self._allow()
        with self.translating, self.driver.cursor(name="stream") as cursor:
            cursor.itersize = 1000
            cursor.execute(to_psycopg(sql))
            yield from cursor

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        if self._script is not None:
            self._script += grouped_inserts(sql, rows)
            return
        self._begin_alone()
        self._allow()
        with self.translating, self.driver.cursor() as cursor:
            cursor.executemany(to_psycopg(sql), rows)

    def begin_read(self, seconds: float, is_given_up: Callable[[], bool] = never) -> None:
        self._transaction_ends = time.monotonic() + seconds
        self._is_given_up = is_given_up
        self._beginning = (self.dialect.begin_read,)
        if not 0.9 <= seconds / self._limits.statement <= 1:
            self._beginning += (f"SET LOCAL statement_timeout = {_milliseconds(seconds)}",)

    def require_time(self) -> None:
        if time.monotonic() > self._transaction_ends or self._is_given_up():
            raise TimeLimitReached("The database took too long to answer.")

    def commit(self) -> None:
        is_reading = self._is_reading()
        self._transaction_ends = float("inf")
        self._is_given_up = never
        if self._beginning:
            self._beginning = ()  # Nothing was read.
            return
        self._require_transaction()
        if is_reading:
            self._end_reading()
            return
        self._allow()
        with self.translating:
            try:
                done = self.driver.execute("COMMIT").statusmessage
            except (errors.IdleInTransactionSessionTimeout, errors.TransactionTimeout):
                raise  # That already ended it.
            except (psycopg.Error, ServerTimeout) as error:
                is_lost = self.driver.is_late or self.driver.closed
                if is_lost or isinstance(error, _SHUT_DOWN):
                    self.close()
                    raise CommitUnknown(f"PostgreSQL: {str(error).strip()}") from error
                raise
        if done != "COMMIT":
            self.close()
            raise ConnectionLost("PostgreSQL: the transaction was rolled back")

    def _end_reading(self) -> None:
        """End a read transaction without waiting, because its results are final."""
        with self.translating:
            self.driver.pgconn.send_query(b"COMMIT")
            self.driver.pgconn.flush()
        self._is_ending = True

    def rollback(self) -> None:
        self._transaction_ends = float("inf")
        self._is_given_up = never
        if self._beginning:
            self._beginning = ()  # Nothing was read.
            return
        self.run("ROLLBACK")

    def begin_at_once(self) -> bool:
        return False

    @property
    def process(self) -> int:
        """The server's process ID."""
        return self.driver.info.backend_pid

    def close(self) -> None:
        self.driver.close()

    # On the event loop (`database.Exchanges`)

    async def take_head(self, batch: str, seq: int) -> tuple[TextRow, Sequence[TextRow]]:
        query = Statement(log_entries.TAIL_QUERY, (batch, seq))
        with self.translating:
            answers = await self._exchanged(encoded([*map(Statement, _TAKE_HEAD), query]))
        (head,) = answers[-2].rows
        return head, answers[-1].rows

    async def ask(self, questions: Sequence[Query]) -> list[list[Row]]:
        with self.translating:
            statements = encoded([Statement(*question) for question in questions])
            answers = await self._exchanged(statements)
        return [answer.typed() for answer in answers]

    def _answered(self, question: Query) -> list[Row]:
        """Return a known result while recording."""
        for known, rows in self._answers:
            if known == question:
                return rows
        raise ResultNeeded

    def written_down(
        self,
        write: Callable[[], None],
        asked: Sequence[Query] = (),
        answers: Sequence[list[Row]] = (),
    ) -> list[EncodedStatement]:
        self._script = []
        self._answers = list(zip(asked, answers, strict=True))
        try:
            write()
            return encoded(self._script)
        except Unencodable as error:
            raise ResultNeeded from error
        finally:
            self._script = None

    async def commit_script(self, script: Sequence[EncodedStatement]) -> None:
        try:
            # The server may have ended the session before.
            self.driver.pgconn.consume_input()
            self.driver.pgconn.is_busy()
        except psycopg.Error as error:
            self.close()
            raise ConnectionLost(f"PostgreSQL: {str(error).strip()}") from error
        self._require_transaction()
        with self.translating:
            try:
                answers = await self._exchanged([*script, *encoded([Statement("COMMIT")])])
            except psycopg.Error as error:
                # It may have been shut down during the commit or right after.
                is_at_end = self._pipeline.carried_out >= len(script)
                if error.sqlstate is None or (is_at_end and isinstance(error, _SHUT_DOWN)):
                    self.close()
                    raise CommitUnknown(f"PostgreSQL: {str(error).strip()}") from error
                raise
            except TimeLimitReached as error:
                raise CommitUnknown(str(error)) from None
        if answers[-1].tag != b"COMMIT":
            self.close()
            raise ConnectionLost("PostgreSQL: the transaction was rolled back")

    async def _exchanged(self, statements: Sequence[EncodedStatement]) -> list[QueryResult]:
        """Run the statements. Raise the driver's errors and TimeLimitReached."""
        patience = self._limits.statement + _GRACE_SECONDS
        try:
            return await self._pipeline.exchange(statements, patience)
        except PipelineTimeout:
            self.close()
            raise TimeLimitReached("The database isn't responding.") from None
        except BaseException as error:
            if not isinstance(error, psycopg.Error) or error.sqlstate is None:
                self.close()  # The connection's state is unknown.
            raise

    def _require_transaction(self) -> None:
        """Raise ConnectionLost if the server has ended the transaction."""
        status = self.driver.info.transaction_status
        if status is not TransactionStatus.INTRANS or self._is_ended:
            self.close()
            raise ConnectionLost("PostgreSQL: the transaction has already ended")


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))
