"""One connection to an SQLite file, by way of apsw, which brings its own recent version with FTS5.

Where several processes serve from one file, they hear of each other by a `LocalBus`. A writer that
finds the file locked sleeps, and looks again, if it is left to SQLite: the one that has just let go
is there first, time and again. So whoever lets go rings, and those that wait try at once.
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
    DatabaseUnavailable,
    Row,
    TimeLimitReached,
    TimeLimits,
    never,
)
from tertulia.store.sqlite_dialect import DIALECT

_CHECK_STEPS = 200_000
"""SQLite's virtual-machine steps between two looks at a statement's time limit: some tens of
milliseconds."""
WAL_BYTES = 4 * 1024 * 1024
"""The size of the write-ahead log at which the thread that watches the file makes a checkpoint: a
commit that made one would take ten times as long as others."""
_WAL_PAGES = 16_000
"""The size of the write-ahead log at which a commit makes a checkpoint all the same."""
_READING_CACHE, _WRITING_CACHE = 2000, 8000
"""KiB of pages that a connection keeps. The operating system has them too, so with more, searches
among a million messages take as long."""


def raise_ours(error: apsw.Error) -> None:
    """Raise ours for an error of the driver's that says that the database cannot be used now."""
    match error:
        case apsw.InterruptError():
            raise TimeLimitReached("The database took too long to answer.") from error
        case apsw.BusyError() | apsw.LockedError():
            raise DatabaseUnavailable(
                f"Another process is locking the database: {error}"
            ) from error
        case apsw.FullError() | apsw.ReadOnlyError() | apsw.NoMemError():
            raise DatabaseUnavailable(f"The database can't be written to: {error}") from error
        case apsw.IOError() | apsw.CantOpenError() | apsw.ConnectionClosedError():
            raise ConnectionLost(f"The database file can't be used: {error}") from error


class SqliteConnection:
    """One connection; used by one thread at a time."""

    def __init__(
        self, path: Path, *, readonly: bool, limits: TimeLimits, bus: LocalBus | None = None
    ) -> None:
        """With a `bus`, the writers among its processes take turns."""
        self.dialect = DIALECT
        self.on_free: Callable[[SqliteConnection], bool] | None = None
        """Offered this instead of closing it: whether it is kept."""
        self._limits = limits
        self._bus = bus
        self._is_writing = False
        self._busy_ms = int(limits.lock * 1000)
        self._statement_ends = self._transaction_ends = float("inf")
        self._is_given_up = never
        # The files that SQLite makes beside it have the same mode.
        with contextlib.suppress(OSError):  # SQLite says better what is wrong.
            file_modes.touch(path)
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
        try:
            self.driver = apsw.Connection(str(path), flags=flags, statementcachesize=200)
            try:
                self._set_up(readonly=readonly)
            except BaseException:
                self.driver.close()
                raise
        except apsw.Error as error:
            raise_ours(error)
            raise

    def _set_up(self, *, readonly: bool) -> None:
        self.driver.set_busy_timeout(self._busy_ms)
        # Before anything is written: of other databases it stays as it was.
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
        """Have changes written to a log beside the file."""
        ends = time.monotonic() + self._limits.lock
        while True:
            try:
                self.driver.execute("PRAGMA journal_mode = WAL")
                return
            except apsw.BusyError:
                # SQLite itself does not wait where two processes open a new file at one moment.
                if time.monotonic() > ends:
                    raise
                time.sleep(0.01)

    def _is_too_late(self) -> bool:
        return time.monotonic() > self._statement_ends or self._is_given_up()

    def _allow(self) -> None:
        """Let a statement begin that may take as long as the limits say."""
        self.require_time()
        now = time.monotonic()
        is_reading = self._transaction_ends != float("inf")
        self._statement_ends = (
            self._transaction_ends if is_reading else now + self._limits.statement
        )

    @property
    def exchanges(self) -> None:
        return None  # A thread does it: a file can only be waited for.

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        self._allow()
        try:
            return self.driver.execute(sql, tuple(parameters)).fetchall()
        except apsw.Error as error:
            raise_ours(error)
            raise

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._allow()
        try:
            if self._bus is not None and sql in self.dialect.begin_write:
                self._begin_in_turn(self._bus)
            else:
                self.driver.execute(sql, tuple(parameters))
        except apsw.Error as error:
            raise_ours(error)
            raise
        if self._is_writing and not self.driver.in_transaction:
            self._let_go()

    def _begin_in_turn(self, bus: LocalBus) -> None:
        """Keep other writers out, when those that do have let go."""
        ends = time.monotonic() + self._limits.lock
        while not self._try_to_begin():
            left = ends - time.monotonic()
            if left <= 0:
                raise apsw.BusyError("database is locked")
            bus.wait_for_bell(left)

    def _try_to_begin(self) -> bool:
        """Keep other writers out, if none is in. Waits for nobody."""
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
        try:
            yield from self.driver.execute(sql)
        except apsw.Error as error:
            raise_ours(error)
            raise

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._allow()
        try:
            self.driver.executemany(sql, [tuple(row) for row in rows])
        except apsw.Error as error:
            raise_ours(error)
            raise

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
        except apsw.Error:  # `begin` meets the same error, and raises it.
            return False

    def copy_to(self, path: Path) -> None:
        """A consistent copy of the whole database, made while others use it."""
        file_modes.touch(path)
        try:
            target = apsw.Connection(str(path))
            try:
                with target.backup("main", self.driver, "main") as backup:
                    backup.step()
            finally:
                target.close()
        except apsw.Error as error:
            raise_ours(error)
            raise

    def become(self, *, readonly: bool, limits: TimeLimits) -> None:
        """Be as one that was made so, after whoever had it before."""
        self._limits = limits
        self._busy_ms = int(limits.lock * 1000)
        self._statement_ends = self._transaction_ends = float("inf")
        self._is_given_up = never
        self.driver.set_busy_timeout(self._busy_ms)
        for pragma in _own_pragmas(readonly=readonly):
            self.driver.execute(f"PRAGMA {pragma}")

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and nothing is under way."""
        try:
            return not self._is_writing and not self.driver.in_transaction
        except apsw.ConnectionClosedError:  # Closing twice does no harm.
            return False

    def close(self) -> None:
        if self.on_free is not None and self.on_free(self):
            return
        self.driver.close()
        if self._is_writing:
            self._let_go()


class WatchConnection(SqliteConnection):
    """One that sees whether the file has changed, and looks at no table: what tables there are
    takes ten times as long to read as all else that it does at its beginning."""

    def _set_up(self, *, readonly: bool) -> None:
        self.driver.set_busy_timeout(self._busy_ms)
        self.driver.execute("PRAGMA query_only = ON")
        self.driver.execute(f"PRAGMA journal_size_limit = {WAL_BYTES}")
        self.driver.set_progress_handler(self._is_too_late, _CHECK_STEPS)


def _own_pragmas(*, readonly: bool) -> tuple[str, ...]:
    """Those that not all connections have alike, or that somebody may have changed."""
    return (
        "synchronous = FULL",
        f"query_only = {'ON' if readonly else 'OFF'}",
        f"cache_size = -{_READING_CACHE if readonly else _WRITING_CACHE}",
    )


class TrialConnection(SqliteConnection):
    """The only one to a file without a name, which stays open when it is closed."""

    def _write_ahead(self) -> None:
        # Files beside this one would have names.
        self.driver.execute("PRAGMA locking_mode = EXCLUSIVE")
        self.driver.execute("PRAGMA journal_mode = MEMORY")

    def close(self) -> None:
        """Whoever connects next goes on with it."""

    def end(self) -> None:
        super().close()
