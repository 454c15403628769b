"""PostgreSQL, by way of psycopg."""

import asyncio
import contextlib
import logging
import secrets
import selectors
import socket
import threading
import time
import uuid
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby, islice
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg import sql as pgsql
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from tertulia.store import installation, newest_entries, telling
from tertulia.store.database import (
    LONG,
    READING,
    WRITING,
    AnswerNeeded,
    CommitUnknown,
    Connection,
    ConnectionLost,
    Database,
    DatabaseError,
    DatabaseUnavailable,
    Exchanges,
    Limits,
    Question,
    Row,
    TextRow,
    TimeLimitReached,
    never,
)
from tertulia.store.hearing import Hearing
from tertulia.store.history import HEAD_COLUMNS
from tertulia.store.pipeline import (
    Answer,
    Encoded,
    NotHeard,
    Pipeline,
    Statement,
    Unencodable,
    encoded,
    has_ended,
    together,
)
from tertulia.store.postgres_dialect import CHANNEL, PostgresDialect
from tertulia.store.server_lock import this_process

logger = logging.getLogger("tertulia.store")

T = TypeVar("T")

_WRITING_SESSION = {
    # The statements of a commit are always the same: a plan is made once, not under the lock each
    # time, and compiling one would take longer than all of them.
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "bytea_output": "hex",
}
_GRACE_SECONDS = 2
"""The server itself ends what takes longer than its limit. If it does not answer so long after
that, the connection is given up: the server, or the network, stands still."""
_TOLD_AT_ONCE = 100
"""Texts of what other nodes have committed that are handed on together."""
_HEARTBEAT_SECONDS = 5
"""A connection that listens is tried when it was silent for so long."""
_BRIEF = Limits(statement=3, lock=3, idle=5)
"""For connections that listen or notify: none of their statements takes long."""
_RETRY_SECONDS = (0.2, 5.0)
"""Between two attempts to listen, at first and at most."""
_CONNECT = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "tertulia",
}
"""Unless the URL says otherwise: a machine or a network that vanished is noticed within seconds."""
_SESSION = {
    "client_min_messages": "warning",
    # The default is that of disks which turn: on others a search for a rare word would walk
    # through all messages rather than use its index.
    "random_page_cost": "1.1",
    # So that the server notices as well, and ends the transactions of a vanished node.
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "2",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "10000",
}


@lru_cache(maxsize=2000)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


class _Waiting(psycopg.Connection[Row]):
    """The driver's connection, with a time at which every wait for the server ends."""

    ends = float("inf")
    """By the monotonic clock."""
    is_late = False
    """Whether a wait ended so: the connection is of no use any more."""

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **keywords: Any) -> T:
        try:
            return super().wait(_until(gen, self.ends), *arguments, **keywords)
        except _TooLate:
            self.is_late = True  # The driver may have another error follow, of its own.
            raise


class _TooLate(Exception):
    """The server did not answer in time."""


def _until(gen: Generator[Any, Any, T], ends: float) -> Generator[Wait, Ready | int, T]:
    """The driver's steps; _TooLate where there is nothing to read or write until the time."""
    try:
        wanted = next(gen)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > ends:
                raise _TooLate
            wanted = gen.send(ready)
    except StopIteration as end:
        result: T = end.value
        return result


_SHUT_DOWN = (errors.AdminShutdown, errors.CrashShutdown)
_LOST = (
    errors.IdleInTransactionSessionTimeout,
    errors.TransactionTimeout,
    *_SHUT_DOWN,
    errors.CannotConnectNow,
)
"""After these, the connection is of no use."""
_TAKE_HEAD = (
    "BEGIN ISOLATION LEVEL READ COMMITTED",
    f"SELECT {HEAD_COLUMNS} FROM head WHERE id = 1 FOR UPDATE",
)
_SERVING = 0x7E27
"""The advisory lock that servers share, with the schema's name."""


def _name_of_server() -> str:
    """This process in the database's list of connections, whose names are short."""
    return f"tertulia, {this_process()}".encode()[:63].decode(errors="ignore")


def _ended(connection: PGconn) -> Generator[Wait, Ready, None]:
    """The driver's steps until what was sent is over, whatever came of it."""
    connection.flush()
    while True:
        connection.consume_input()
        while not connection.is_busy():
            if connection.get_result() is None:
                return
        yield Wait.R


class PostgresConnection:
    """One connection; used by one thread at a time."""

    def __init__(self, conninfo: str, limits: Limits) -> None:
        self.dialect = DIALECT
        self._limits = limits
        self._transaction_ends = float("inf")
        self._is_given_up = never
        self._beginning: Sequence[str] = ()
        """What is still to be sent to begin a transaction for reading: with its first statement."""
        self._is_ending = False
        """Whether the end of one was sent, and not heard yet."""
        self._script: list[Statement] | None = None
        """Where what is run is written down instead."""
        self._answers: list[tuple[Question, list[Row]]] = []
        """What was asked before that."""
        self._connection = _Waiting.connect(conninfo, autocommit=True)
        settings = {
            **_SESSION,
            **(_WRITING_SESSION if limits == WRITING else {}),
            "statement_timeout": _milliseconds(limits.statement),
            "lock_timeout": _milliseconds(limits.lock),
            "idle_in_transaction_session_timeout": _milliseconds(limits.idle),
        }
        if limits.transaction and self._connection.info.server_version >= 170000:
            settings["transaction_timeout"] = _milliseconds(limits.transaction)
        try:
            self.query(
                "SELECT " + ", ".join("set_config(?, ?, false)" for _ in settings),
                [word for setting in settings.items() for word in setting],
            )
        except BaseException:
            self.close()
            raise
        self._pipeline = Pipeline(self._connection)
        self._is_ended = False
        """Whether the server said that it ended the session, while nothing was asked."""
        self._connection.add_notice_handler(self._noticed)

    @property
    def exchanges(self) -> Exchanges:
        return self

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        self._is_ended |= notice.severity_nonlocalized in {"FATAL", "PANIC"}

    def _allow(self) -> None:
        """Let a statement begin that may take as long as the limits say."""
        self.require_time()
        now = time.monotonic()
        ends = self._transaction_ends if self._is_reading() else now + self._limits.statement
        self._connection.ends = ends + _GRACE_SECONDS
        if self._is_ending:
            self._is_ending = False
            try:
                self._connection.wait(_ended(self._connection.pgconn))
            except (psycopg.Error, _TooLate) as error:
                self._raise_ours(error)
                raise

    def _is_reading(self) -> bool:
        return self._transaction_ends != float("inf")

    def _raise_ours(self, error: psycopg.Error | _TooLate) -> None:
        """Raise ours for an error of the driver's that says that the database cannot be used."""
        if self._connection.is_late:
            self.close()
            raise TimeLimitReached("The database isn't responding.") from None
        text = f"PostgreSQL: {str(error).strip()}"
        # What was the primary is one no more: the next connection may lead to the one that is.
        was_demoted = isinstance(error, errors.ReadOnlySqlTransaction) and not self._is_reading()
        if isinstance(error, _LOST) or was_demoted or self._connection.closed:
            self.close()
            raise ConnectionLost(text) from error
        if isinstance(error, errors.QueryCanceled):
            raise TimeLimitReached(text) from error
        if isinstance(error, psycopg.OperationalError):
            raise DatabaseUnavailable(text) from error

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        if self._script is not None:
            return self._answered(Question(sql, parameters))
        self._allow()
        try:
            return self._executed(sql, parameters).fetchall()
        except (psycopg.Error, _TooLate) as error:
            self._raise_ours(error)
            raise

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        if self._script is not None:
            self._script.append(Statement(sql, parameters))
            return
        self._allow()
        try:
            self._executed(sql, parameters)
        except (psycopg.Error, _TooLate) as error:
            self._raise_ours(error)
            raise

    def _executed(self, sql: str, parameters: Sequence[Any]) -> psycopg.Cursor[Row]:
        """Run it, together with what is still to be sent before it."""
        beginning, self._beginning = self._beginning, ()
        if not beginning:
            return self._connection.execute(_translated(sql), parameters)
        with self._connection.pipeline():
            for statement in beginning:
                self._connection.execute(statement.encode())
            return self._connection.execute(_translated(sql), parameters)

    def _begin_alone(self) -> None:
        """Send the beginning before what cannot go out with it."""
        if self._beginning:
            self.run("SELECT 1")

    def scan(self, sql: str) -> Iterator[Row]:
        self._begin_alone()
        self._allow()
        try:
            with self._connection.cursor(name="stream") as cursor:
                cursor.itersize = 1000
                cursor.execute(_translated(sql))
                yield from cursor
        except (psycopg.Error, _TooLate) as error:
            self._raise_ours(error)
            raise

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        if self._script is not None:
            self._script += together(sql, rows)
            return
        self._begin_alone()
        self._allow()
        try:
            with self._connection.cursor() as cursor:
                cursor.executemany(_translated(sql), rows)
        except (psycopg.Error, _TooLate) as error:
            self._raise_ours(error)
            raise

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
        try:
            done = self._connection.execute("COMMIT").statusmessage
        except (errors.IdleInTransactionSessionTimeout, errors.TransactionTimeout) as error:
            self._raise_ours(error)  # That ended it before.
            raise
        except (psycopg.Error, _TooLate) as error:
            is_lost = self._connection.is_late or self._connection.closed
            if is_lost or isinstance(error, _SHUT_DOWN):
                self.close()
                raise CommitUnknown(f"PostgreSQL: {str(error).strip()}") from error
            self._raise_ours(error)
            raise
        if done != "COMMIT":
            self.close()
            raise ConnectionLost("PostgreSQL: the transaction was rolled back")

    def _end_reading(self) -> None:
        """Have the transaction end. Nothing waits for it: what was read is true in any case."""
        try:
            self._connection.pgconn.send_query(b"COMMIT")
            self._connection.pgconn.flush()
        except psycopg.Error as error:
            self._raise_ours(error)
            raise
        self._is_ending = True

    def rollback(self) -> None:
        self._transaction_ends = float("inf")
        self._is_given_up = never
        if self._beginning:
            self._beginning = ()  # Nothing was read.
            return
        self.run("ROLLBACK")

    def begin_at_once(self) -> bool:
        return False  # The network is between.

    def listen(
        self,
        channel: str,
        on_payloads: Callable[[Sequence[str]], None],
        stop: socket.socket,
        hearing: Hearing | None,
    ) -> None:
        """Call `on_payloads` with the notifications on the channel, those together that have come
        together, until there is something to read from `stop`; at first with an empty one, for
        those that came before this connection listened. With a `hearing`, the calls that follow
        come on its loop: a thread's turn for each costs more than what is done with it."""
        self.run(f"LISTEN {pgsql.Identifier(channel).as_string()}")
        on_payloads([""])

        def notified(notification: psycopg.Notify) -> None:
            # While this thread asks something.
            if hearing is None:
                on_payloads([notification.payload])
            else:
                hearing.loop.call_soon_threadsafe(on_payloads, [notification.payload])

        self._connection.add_notify_handler(notified)
        while not (
            self._listen(on_payloads, stop)
            if hearing is None
            else self._listen_on(hearing, on_payloads, stop)
        ):
            self.run("SELECT 1")  # Whether anybody is there.

    def _listen(self, on_payloads: Callable[[Sequence[str]], None], stop: socket.socket) -> bool:
        """Until nothing came for `_HEARTBEAT_SECONDS`. Whether it is to end."""
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(stop, selectors.EVENT_READ)
            while ready := selector.select(_HEARTBEAT_SECONDS):
                if any(key.fileobj is stop for key, _ in ready):
                    return True
                self._take_notifications(on_payloads)
        return False

    def _listen_on(
        self,
        hearing: Hearing,
        on_payloads: Callable[[Sequence[str]], None],
        stop: socket.socket,
    ) -> bool:
        """The same, on the loop; this thread waits meanwhile."""
        ended, end = socket.socketpair()
        failures: list[Exception] = []
        heard = time.monotonic()

        def read() -> bool:
            nonlocal heard
            heard = time.monotonic()
            try:
                self._take_notifications(on_payloads)
            except Exception as error:
                failures.append(error)
                end.send(b".")
            return not failures

        descriptor = self._connection.fileno()
        with ended, end, selectors.DefaultSelector() as selector:
            selector.register(ended, selectors.EVENT_READ)
            selector.register(stop, selectors.EVENT_READ)
            _on_loop(hearing.loop, lambda: hearing.attach(descriptor, read))
            try:
                while (left := heard + _HEARTBEAT_SECONDS - time.monotonic()) > 0:
                    ready = selector.select(left)
                    if any(key.fileobj is stop for key, _ in ready):
                        return True
                    if failures:
                        raise failures[0]
            finally:
                # Not before that may the connection be used here, or closed.
                _on_loop(hearing.loop, hearing.detach)
        return False

    def _take_notifications(self, on_payloads: Callable[[Sequence[str]], None]) -> None:
        """Call it with those that have come, if there are any. Does not block."""
        connection = self._connection.pgconn
        payloads: list[str] = []
        try:
            connection.consume_input()
            while notification := connection.notifies():
                payloads.append(notification.extra.decode())
            while has_ended(connection.socket):
                connection.consume_input()  # Raises once nothing is left.
        except psycopg.Error as error:
            self._raise_ours(error)
            raise
        if payloads:
            on_payloads(payloads)

    @property
    def process(self) -> int:
        """The server's process behind this connection."""
        return self._connection.info.backend_pid

    def close(self) -> None:
        self._connection.close()

    # On the event loop (`database.Exchanges`)

    async def take_head(self, batch: str, seq: int) -> tuple[TextRow, Sequence[TextRow]]:
        query = Statement(newest_entries.QUERY, (batch, seq))
        try:
            answers = await self._exchanged(encoded([*map(Statement, _TAKE_HEAD), query]))
        except psycopg.Error as error:
            if error.sqlstate is None:
                self.close()
            self._raise_ours(error)
            raise
        (head,) = answers[-2].rows
        return head, answers[-1].rows

    async def ask(self, questions: Sequence[Question]) -> list[list[Row]]:
        try:
            statements = encoded([Statement(*question) for question in questions])
            answers = await self._exchanged(statements)
        except psycopg.Error as error:
            if error.sqlstate is None:
                self.close()
            self._raise_ours(error)
            raise
        return [answer.typed() for answer in answers]

    def _answered(self, question: Question) -> list[Row]:
        """What was asked before (`written_down`)."""
        for known, rows in self._answers:
            if known == question:
                return rows
        raise AnswerNeeded

    def written_down(
        self,
        write: Callable[[], None],
        asked: Sequence[Question] = (),
        answers: Sequence[list[Row]] = (),
    ) -> list[Encoded]:
        self._script = []
        self._answers = list(zip(asked, answers, strict=True))
        try:
            write()
            return encoded(self._script)
        except Unencodable as error:
            raise AnswerNeeded from error
        finally:
            self._script = None

    async def commit_script(self, script: Sequence[Encoded]) -> None:
        try:
            # The server may have ended it long ago, and said so.
            self._connection.pgconn.consume_input()
            self._connection.pgconn.is_busy()
        except psycopg.Error as error:
            self.close()
            raise ConnectionLost(f"PostgreSQL: {str(error).strip()}") from error
        self._require_transaction()
        try:
            answers = await self._exchanged([*script, *encoded([Statement("COMMIT")])])
        except psycopg.Error as error:
            # It may have been shut down while it committed, or right after.
            is_at_end = self._pipeline.carried_out >= len(script)
            if error.sqlstate is None or (is_at_end and isinstance(error, _SHUT_DOWN)):
                self.close()
                raise CommitUnknown(f"PostgreSQL: {str(error).strip()}") from error
            self._raise_ours(error)
            raise
        except TimeLimitReached as error:
            raise CommitUnknown(str(error)) from None
        if answers[-1].tag != b"COMMIT":
            self.close()
            raise ConnectionLost("PostgreSQL: the transaction was rolled back")

    async def _exchanged(self, statements: Sequence[Encoded]) -> list[Answer]:
        """The answers. Raises the driver's errors, and TimeLimitReached."""
        patience = self._limits.statement + _GRACE_SECONDS
        try:
            return await self._pipeline.exchange(statements, patience)
        except NotHeard:
            self.close()
            raise TimeLimitReached("The database isn't responding.") from None
        except psycopg.Error:
            raise
        except BaseException:
            self.close()  # In the middle of something.
            raise

    def _require_transaction(self) -> None:
        """ConnectionLost where the server is known to have ended the transaction."""
        status = self._connection.info.transaction_status
        if status is not TransactionStatus.INTRANS or self._is_ended:
            self.close()
            raise ConnectionLost("PostgreSQL: the transaction has already ended")


def _on_loop(loop: asyncio.AbstractEventLoop, function: Callable[[], Any]) -> None:
    """Call it on the loop, and wait until that is done. Nothing where the loop is closed."""
    done = threading.Event()

    def call() -> None:
        try:
            function()
        finally:
            done.set()

    try:
        loop.call_soon_threadsafe(call)
    except RuntimeError:
        return
    while not done.wait(1.0):
        if loop.is_closed():
            return


def _milliseconds(seconds: float) -> str:
    return str(int(seconds * 1000))


class PostgresDatabase(Database):
    """A database, or a schema of one (`?options=-csearch_path=…`), that several nodes share."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self.dialect = DIALECT
        self.url = url
        self._announcer: PostgresConnection | None = None

    def exists(self) -> bool:
        with contextlib.closing(self._connect(READING)) as connection:
            ((there,),) = connection.query("SELECT to_regclass('installation') IS NOT NULL")
        return bool(there)

    def connect(self, *, readonly: bool, limits: Limits = LONG) -> Connection:
        return self._connect(limits)

    def _connect(self, limits: Limits) -> PostgresConnection:
        try:
            named: dict[str, Any] = conninfo_to_dict(self.url)
            conninfo = make_conninfo(**{**_CONNECT, **named})
        except psycopg.Error as error:
            raise DatabaseError(f"The database URL isn't valid: {error}") from error
        try:
            place = make_conninfo(**{**named, "options": None})
            if place not in _direct:
                _require_direct(conninfo)
                _direct.add(place)
            return PostgresConnection(conninfo, limits)
        except (psycopg.Error, DatabaseUnavailable) as error:
            raise DatabaseUnavailable(
                f"Couldn't connect to PostgreSQL: {str(error).strip()}"
            ) from error

    def backup_before_migration(self, version: int) -> None:
        """Left to the operator, whose database has means of its own."""

    def delete_copies(self, before: float | None = None) -> None:
        """There are none."""

    def give_back_space(self) -> bool:
        return False  # Autovacuum does, by its own rules.

    def forget_deleted_words(self, *, from_start: bool) -> bool:
        return False  # Autovacuum removes them with their rows.

    def empty_write_ahead_log(self) -> bool:
        return True  # It is the operator's: archives and standbys need it.

    def watch(
        self,
        on_growth: Callable[[int | None], None],
        on_announcement: Callable[[str], None],
        on_told: Callable[[Sequence[str]], None] | None = None,
        hearing: Hearing | None = None,
    ) -> Callable[[], None]:
        stopping = threading.Event()
        stop, ring = socket.socketpair()
        is_away = False
        first, longest = _RETRY_SECONDS
        pause = first

        def notified(payloads: Sequence[str]) -> None:
            for are_told, some in groupby(payloads, key=lambda one: one.startswith(telling.MARK)):
                if not are_told:
                    for payload in some:
                        heard(payload)
                elif on_told is None:
                    on_growth(None)
                else:
                    while texts := list(islice(some, _TOLD_AT_ONCE)):
                        on_told(texts)

        def heard(payload: str) -> None:
            nonlocal is_away, pause
            if payload.isdigit():
                on_growth(int(payload))
            elif payload:
                on_announcement(payload)
            else:
                if is_away:
                    logger.info("notifications of PostgreSQL are heard again")
                is_away = False
                pause = first
                on_growth(None)

        def listen() -> None:
            nonlocal is_away, pause
            while not stopping.is_set():
                try:
                    with contextlib.closing(self._connect(_BRIEF)) as connection:
                        connection.listen(self._channel(connection), notified, stop, hearing)
                except Exception as error:  # Whatever it is, it is tried again.
                    if not is_away:
                        is_away = True
                        logger.warning(
                            "notifications of PostgreSQL are not heard",
                            extra={"fields": {"reason": error}},
                        )
                    stopping.wait(pause)
                    pause = min(pause * 2, longest)

        thread = threading.Thread(target=listen, name="postgres-listen", daemon=True)
        thread.start()

        def end() -> None:
            stopping.set()
            ring.close()  # Which the other end can read.
            thread.join()
            stop.close()

        return end

    def require_in_place(self) -> None:
        """A server is reached by its address, whatever is there."""

    def served(self) -> contextlib.AbstractContextManager[int | None]:
        """As many as there are may do it; each says so on a connection that it looks by."""
        return contextlib.nullcontext()

    def servers(self) -> list[str]:
        with contextlib.closing(self._connect(READING)) as connection:
            rows = connection.query(
                "SELECT DISTINCT activity.application_name FROM pg_locks AS held"
                " JOIN pg_stat_activity AS activity ON activity.pid = held.pid"
                " WHERE held.locktype = 'advisory' AND held.granted"
                " AND activity.datname = current_database()"
                f" AND held.classid = {_SERVING}"
                " AND CAST(held.objid AS BIGINT)"
                " = CAST(hashtext(current_schema()) AS BIGINT) & 4294967295"
            )
        return sorted(name for (name,) in rows if name != _name_of_server())

    def say_serving(self, connection: Connection) -> None:
        connection.query(f"SELECT pg_advisory_lock_shared({_SERVING}, hashtext(current_schema()))")
        connection.query("SELECT set_config('application_name', ?, false)", (_name_of_server(),))

    def making_checkpoint(
        self, goes_on: Callable[[], bool]
    ) -> contextlib.AbstractContextManager[bool]:
        """The dialect claims it, on the connection that makes it."""
        return contextlib.nullcontext(True)

    def tell_growth(self, seq: int) -> None:
        """The commit itself did."""

    def announce(self, messages: Sequence[str]) -> None:
        try:
            if self._announcer is None:
                self._announcer = self._connect(_BRIEF)
                # Commits with a notification are one after the other, those of messages too: this
                # one does not wait for the disk.
                self._announcer.run("SET synchronous_commit TO off")
            self._announcer.run(
                f"SELECT pg_notify({CHANNEL}, message) FROM installation,"
                " unnest(CAST(? AS TEXT[])) AS message WHERE key = 'channel'",
                (list(messages),),
            )
        except (psycopg.Error, DatabaseError):
            # Transient events may be lost. The next ones get a new connection.
            announcer, self._announcer = self._announcer, None
            if announcer is not None:
                announcer.close()

    @staticmethod
    def _channel(connection: PostgresConnection) -> str:
        installation.put_once(connection, installation.CHANNEL, secrets.token_hex(16))
        ((name,),) = connection.query(
            f"SELECT {CHANNEL} FROM installation WHERE key = ?", (installation.CHANNEL,)
        )
        return str(name)

    def close(self) -> None:
        if self._announcer is not None:
            self._announcer.close()


_direct: set[str] = set()
"""The servers that were seen to keep one session for each connection."""

_POOLED = (
    "A connection pooler between this server and PostgreSQL uses a different session for"
    " each transaction (in PgBouncer: pool_mode = transaction or statement). Notifications"
    " and time limits don't work through it, so nodes wouldn't learn of each other's"
    " changes. Connect to PostgreSQL directly, or set the pooler to pool_mode = session."
)


def _require_direct(conninfo: str) -> None:
    """DatabaseError where a connection does not keep its session from one transaction to the
    next."""
    mark = uuid.uuid4().hex
    setting: LiteralString = "SELECT current_setting('tertulia.session', true)"
    with (
        contextlib.closing(_Waiting.connect(conninfo, autocommit=True)) as one,
        contextlib.closing(_Waiting.connect(conninfo, autocommit=True)) as other,
    ):
        one.ends = other.ends = time.monotonic() + _BRIEF.statement
        try:
            one.execute("SELECT set_config('tertulia.session', %s, false)", (mark,))
            # A pooler gives this one the session that the first has just let go of, or keeps it
            # from the first.
            other.execute("BEGIN")
            if other.execute(setting).fetchone() == (mark,):
                raise DatabaseError(_POOLED)
            if one.execute(setting).fetchone() != (mark,):
                raise DatabaseError(_POOLED)
        except _TooLate:
            raise DatabaseUnavailable("The database isn't responding.") from None


DIALECT = PostgresDialect()
