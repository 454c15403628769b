"""A connection to an SQLite file with apsw, which includes a recent SQLite with FTS5.

SQLite makes a writer that finds the file locked sleep longer and longer, so the process that just
released it tends to win again. Writers here try every `_RETRY_SECONDS` instead. Processes that
share a `LocalBus` also ring when they release the file, and those that wait try immediately.
"""

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from tertulia.store import file_modes
from tertulia.store.bus import LocalBus
from tertulia.store.database import (
    CommitUnknown,
    ConnectionLost,
    DatabaseError,
    DatabaseUnavailable,
    Row,
    TimeLimitReached,
    TimeLimits,
    TranslatedErrors,
    never,
)
from tertulia.store.sqlite_dialect import DIALECT

_CHECK_STEPS = 200_000
"""SQLite's virtual-machine steps between two checks of the time limit: some tens of
milliseconds."""
WAL_BYTES = 4 * 1024 * 1024
"""The write-ahead log's size, in bytes, at which the watching thread makes a checkpoint. A commit
that made one would take ten times as long."""
_WAL_PAGES = 16_000
"""The write-ahead log's size, in pages, at which a commit makes a checkpoint anyway."""
_RETRY_SECONDS = 0.02
"""Seconds between two attempts of a writer to lock the file."""
_READING_CACHE, _WRITING_CACHE = 2000, 8000
"""KiB of cached pages. More doesn't speed up searches in a million messages, because the
operating system caches them, too."""


def _translated(error: apsw.Error) -> DatabaseError | None:
    match error:
        case apsw.InterruptError():
            return TimeLimitReached("The database took too long to answer.")
        case apsw.BusyError() | apsw.LockedError():
            return DatabaseUnavailable(f"Another process is locking the database: {error}")
        case apsw.FullError() | apsw.ReadOnlyError() | apsw.NoMemError():
            return DatabaseUnavailable(f"The database can't be written to: {error}")
        case apsw.IOError() | apsw.CantOpenError() | apsw.ConnectionClosedError():
            return ConnectionLost(f"The database file can't be used: {error}")
    return None


_TRANSLATED = TranslatedErrors((apsw.Error,), _translated)


class SqliteConnection:
    def __init__(
        self, path: Path, *, readonly: bool, limits: TimeLimits, bus: LocalBus | None = None
    ) -> None:
        """Open the file. With a `bus`, its processes take turns writing."""
        self.dialect = DIALECT
        self.on_free: Callable[[SqliteConnection], bool] | None = None
        """Called instead of closing; returns whether it keeps the connection."""
        self._limits = limits
        self._bus = bus
        self._is_writing = False
        self._busy_ms = int(limits.lock * 1000)
        self._statement_ends = self._transaction_ends = float("inf")
        self._is_given_up = never
        # SQLite gives its other files the same mode.
        with contextlib.suppress(OSError):  # SQLite's own error is clearer.
            file_modes.touch(path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        with _TRANSLATED:
            self.driver = apsw.Connection(str(path), flags=flags, statementcachesize=200)
            try:
                self._set_up(readonly=readonly)
            except BaseException:
                self.driver.close()
                raise

    def _set_up(self, *, readonly: bool) -> None:
        self.driver.set_busy_timeout(self._busy_ms)
        # Only possible before anything is written.
        if self.driver.execute("PRAGMA page_count").fetchone() == (0,):
            self.driver.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._write_ahead()
        for pragma in (
            "foreign_keys = ON",
            "secure_delete = ON",
            f"wal_autocheckpoint = {_WAL_PAGES}",
            f"journal_size_limit = {WAL_BYTES}",
            *_own_pragmas(readonly=readonly),
        ):
            self.driver.execute(f"PRAGMA {pragma}")
        self.driver.set_progress_handler(self._is_too_late, _CHECK_STEPS)

    def _write_ahead(self) -> None:
        ends = time.monotonic() + self._limits.lock
        while True:
            try:
                self.driver.execute("PRAGMA journal_mode = WAL")
                return
            except apsw.BusyError:
                # SQLite doesn't wait when two processes open a new file at the same time.
                if time.monotonic() > ends:
                    raise
                time.sleep(0.01)

    def _is_too_late(self) -> bool:
        return time.monotonic() > self._statement_ends or self._is_given_up()

    def _allow(self) -> None:
        """Start the time limit of a statement."""
        self.require_time()
        now = time.monotonic()
        is_reading = self._transaction_ends != float("inf")
        self._statement_ends = (
            self._transaction_ends if is_reading else now + self._limits.statement
        )

    @property
    def exchanges(self) -> None:
        return None

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        self._allow()
        with _TRANSLATED:
            return self.driver.execute(sql, tuple(parameters)).fetchall()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._allow()
        with _TRANSLATED:
            if sql in self.dialect.begin_write:
                self._begin_in_turn()
            else:
                self.driver.execute(sql, tuple(parameters))
        if self._is_writing and not self.driver.in_transaction:
            self._let_go()

    def _begin_in_turn(self) -> None:
        """Start a write transaction after other writers."""
        ends = time.monotonic() + self._limits.lock
        while not self._try_to_begin():
            left = ends - time.monotonic()
            if left <= 0:
                raise apsw.BusyError("database is locked")
            wait = time.sleep if self._bus is None else self._bus.wait_for_bell
            wait(min(left, _RETRY_SECONDS))

    def _try_to_begin(self) -> bool:
        """Start a write transaction if no other writer is active."""
        self.driver.set_busy_timeout(0)
        try:
            for statement in self.dialect.begin_write:
                self.driver.execute(statement)
        except apsw.BusyError:
            return False
        finally:
            self.driver.set_busy_timeout(self._busy_ms)
        self._is_writing = True
        return True

    def _let_go(self) -> None:
        self._is_writing = False
        if self._bus is not None:
            self._bus.ring()

    def scan(self, sql: str) -> Iterator[Row]:
        self._allow()
        with _TRANSLATED:
            yield from self.driver.execute(sql)

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._allow()
        with _TRANSLATED:
            self.driver.executemany(sql, [tuple(row) for row in rows])

    def begin_read(self, seconds: float, is_given_up: Callable[[], bool] = never) -> None:
        self._transaction_ends = time.monotonic() + seconds
        self._is_given_up = is_given_up
        self.run(self.dialect.begin_read)

    def require_time(self) -> None:
        if time.monotonic() > self._transaction_ends or self._is_given_up():
            raise TimeLimitReached("The database took too long to answer.")

    def commit(self) -> None:
        self._transaction_ends = float("inf")
        self._is_given_up = never
        try:
            self.run("COMMIT")
        except ConnectionLost as error:
            if isinstance(error.__cause__, apsw.IOError):
                raise CommitUnknown(str(error)) from error
            raise

    def rollback(self) -> None:
        self._transaction_ends = float("inf")
        self._is_given_up = never
        if self.driver.in_transaction:
            self.run("ROLLBACK")

    def begin_at_once(self) -> bool:
        self._allow()
        try:
            return self._try_to_begin()
        except apsw.Error:  # A regular begin raises the same error.
            return False

    def copy_to(self, path: Path) -> None:
        """Copy the whole database consistently while others use it."""
        file_modes.touch(path)
        with (
            _TRANSLATED,
            contextlib.closing(apsw.Connection(str(path))) as target,
            target.backup("main", self.driver, "main") as backup,
        ):
            backup.step()

    def become(self, *, readonly: bool, limits: TimeLimits) -> None:
        """Prepare the connection for another user."""
        self._limits = limits
        self._busy_ms = int(limits.lock * 1000)
        self._statement_ends = self._transaction_ends = float("inf")
        self._is_given_up = never
        self.driver.set_busy_timeout(self._busy_ms)
        for pragma in _own_pragmas(readonly=readonly):
            self.driver.execute(f"PRAGMA {pragma}")

    @property
    def is_idle(self) -> bool:
        """Whether it is open and not in a transaction."""
        try:
            return not self._is_writing and not self.driver.in_transaction
        except apsw.ConnectionClosedError:  # Closing twice is harmless.
            return False

    def close(self) -> None:
        if self.on_free is not None and self.on_free(self):
            return
        self.driver.close()
        if self._is_writing:
            self._let_go()


class WatchConnection(SqliteConnection):
    """A connection that only detects changes of the file. Reading the schema would take ten
    times as long as everything else it does when it starts."""

    def _set_up(self, *, readonly: bool) -> None:
        self.driver.set_busy_timeout(self._busy_ms)
        self.driver.execute("PRAGMA query_only = ON")
        self.driver.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        self.driver.set_progress_handler(self._is_too_late, _CHECK_STEPS)


def _own_pragmas(*, readonly: bool) -> tuple[str, ...]:
    """Return settings that differ between connections, or may have been changed."""
    return (
        "synchronous = FULL",
        f"query_only = {'ON' if readonly else 'OFF'}",
        f"cache_size = -{_READING_CACHE if readonly else _WRITING_CACHE}",
    )


class TrialConnection(SqliteConnection):
    """The only connection to a deleted file, which stays open when closed."""

    def _write_ahead(self) -> None:
        # A write-ahead log would be a named file.
        self.driver.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.driver.execute("PRAGMA journal_mode = MEMORY")

    def close(self) -> None:
        """Do nothing: the next user reuses the connection."""

    def end(self) -> None:
        super().close()
