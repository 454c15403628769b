"""SQLite, by way of apsw, which brings its own recent version with FTS5.

Where several processes serve from one file, they hear of each other by a `LocalBus`. A writer that
finds the file locked sleeps, and looks again, if it is left to SQLite: the one that has just let go
is there first, time and again. So whoever lets go rings, and those that wait try at once.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from tertulia.store import file_modes
from tertulia.store.database import (
    LONG,
    READING,
    CommitUnknown,
    Connection,
    ConnectionLost,
    Database,
    DatabaseError,
    DatabaseReplaced,
    DatabaseUnavailable,
    Limits,
    Row,
    TimeLimitReached,
    never,
)
from tertulia.store.hearing import Hearing
from tertulia.store.local_bus import LocalBus
from tertulia.store.server_lock import exclusive_server, running_server
from tertulia.store.sqlite_dialect import SqliteDialect

logger = logging.getLogger("tertulia.store")

_WATCH_SECONDS = 0.1
_RETRY_SECONDS = 1.0
"""Between a failure to watch the file and the next attempt."""
_CHECK_STEPS = 200_000
"""SQLite's virtual-machine steps between two looks at a statement's time limit: some tens of
milliseconds."""
_WAL_BYTES = 4 * 1024 * 1024
"""The size of the write-ahead log at which the thread that watches the file makes a checkpoint: a
commit that made one would take ten times as long as others."""
_WAL_PAGES = 16_000
"""The size of the write-ahead log at which a commit makes a checkpoint all the same."""
_READING_CACHE, _WRITING_CACHE = 2000, 8000
"""KiB of pages that a connection keeps. The operating system has them too, so with more, searches
among a million messages take as long."""
_COPY = "before-migration-from-"
"""The suffix of copies made before migrations; the schema's version follows."""
_VACUUM_PAGES = 1000
"""Pages given back to the operating system in one transaction."""
_MERGE_PAGES = 500
"""Pages of the search index rewritten in one transaction: about 15 ms."""
_TOMBSTONES = 1 << 53
"""The first ID in the search index's data of pages that list deleted rows whose words are still
stored: FTS5 numbers them by segment, from 2^16, shifted left by 37 bits."""


def _raise_ours(error: apsw.Error) -> None:
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
        self, path: Path, *, readonly: bool, limits: Limits, bus: LocalBus | None = None
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
            self._connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
            try:
                self._set_up(readonly=readonly)
            except BaseException:
                self._connection.close()
                raise
        except apsw.Error as error:
            _raise_ours(error)
            raise

    def _set_up(self, *, readonly: bool) -> None:
        self._connection.set_busy_timeout(self._busy_ms)
        # Before anything is written: of other databases it stays as it was.
        if self._connection.execute("PRAGMA page_count").fetchone() == (0,):
            self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        self._write_ahead()
        for pragma in (
            "foreign_keys = ON",
            "secure_delete = ON",
            f"wal_autocheckpoint = {_WAL_PAGES}",
            f"journal_size_limit = {_WAL_BYTES}",
            *_own_pragmas(readonly=readonly),
        ):
            self._connection.execute(f"PRAGMA {pragma}")
        self._connection.set_progress_handler(self._is_too_late, _CHECK_STEPS)

    def _write_ahead(self) -> None:
        """Have changes written to a log beside the file."""
        ends = time.monotonic() + self._limits.lock
        while True:
            try:
                self._connection.execute("PRAGMA journal_mode = WAL")
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
            return self._connection.execute(sql, tuple(parameters)).fetchall()
        except apsw.Error as error:
            _raise_ours(error)
            raise

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._allow()
        try:
            if self._bus is not None and sql in self.dialect.begin_write:
                self._begin_in_turn(self._bus)
            else:
                self._connection.execute(sql, tuple(parameters))
        except apsw.Error as error:
            _raise_ours(error)
            raise
        if self._is_writing and not self._connection.in_transaction:
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
        self._connection.set_busy_timeout(0)
        try:
            for statement in self.dialect.begin_write:
                self._connection.execute(statement)
        except apsw.BusyError:
            return False
        finally:
            self._connection.set_busy_timeout(self._busy_ms)
        self._is_writing = True
        return True

    def _let_go(self) -> None:
        self._is_writing = False
        if self._bus is not None:
            self._bus.ring()

    def scan(self, sql: str) -> Iterator[Row]:
        self._allow()
        try:
            yield from self._connection.execute(sql)
        except apsw.Error as error:
            _raise_ours(error)
            raise

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        self._allow()
        try:
            self._connection.executemany(sql, [tuple(row) for row in rows])
        except apsw.Error as error:
            _raise_ours(error)
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
        if self._connection.in_transaction:
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
                with target.backup("main", self._connection, "main") as backup:
                    backup.step()
            finally:
                target.close()
        except apsw.Error as error:
            _raise_ours(error)
            raise

    def become(self, *, readonly: bool, limits: Limits) -> None:
        """Be as one that was made so, after whoever had it before."""
        self._limits = limits
        self._busy_ms = int(limits.lock * 1000)
        self._statement_ends = self._transaction_ends = float("inf")
        self._is_given_up = never
        self._connection.set_busy_timeout(self._busy_ms)
        for pragma in _own_pragmas(readonly=readonly):
            self._connection.execute(f"PRAGMA {pragma}")

    @property
    def is_idle(self) -> bool:
        """Whether it is open, and nothing is under way."""
        try:
            return not self._is_writing and not self._connection.in_transaction
        except apsw.ConnectionClosedError:  # Closing twice does no harm.
            return False

    def close(self) -> None:
        if self.on_free is not None and self.on_free(self):
            return
        self._connection.close()
        if self._is_writing:
            self._let_go()


class _Watcher(SqliteConnection):
    """One that sees whether the file has changed, and looks at no table: what tables there are
    takes ten times as long to read as all else that it does at its beginning."""

    def _set_up(self, *, readonly: bool) -> None:
        self._connection.set_busy_timeout(self._busy_ms)
        self._connection.execute("PRAGMA query_only = ON")
        self._connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        self._connection.set_progress_handler(self._is_too_late, _CHECK_STEPS)


def _own_pragmas(*, readonly: bool) -> tuple[str, ...]:
    """Those that not all connections have alike, or that somebody may have changed."""
    return (
        "synchronous = FULL",
        f"query_only = {'ON' if readonly else 'OFF'}",
        f"cache_size = -{_READING_CACHE if readonly else _WRITING_CACHE}",
    )


class SqliteDatabase(Database):
    """A file. Other processes (the command line) may use it at the same time."""

    def __init__(self, path: Path, bus: Path | None = None) -> None:
        """`bus` is the directory by which the processes that serve from the file know each other,
        where there are several."""
        self.dialect = DIALECT
        self.path = path
        self.is_shared = bus is not None
        self._bus = None if bus is None else LocalBus(bus)
        self._opened: tuple[int, int] | None = None
        """The file that was opened first, as its file system knows it."""
        self._free_lock = threading.Lock()
        self._free: list[SqliteConnection] | None = None
        """For who connects next, in the context of `opening`; None outside of it."""

    def exists(self) -> bool:
        if not self.path.exists():
            return False
        with contextlib.closing(self.connect(readonly=True, limits=READING)) as connection:
            return bool(
                connection.query(
                    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'installation'"
                )
            )

    def connect(self, *, readonly: bool, limits: Limits = LONG) -> Connection:
        return self._connect(readonly=readonly, limits=limits)

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        self._free = []
        try:
            yield
        finally:
            # A start that is given up may leave a thread that is not done with one yet.
            with self._free_lock:
                free, self._free = self._free, None
            for connection in free or ():
                connection.close()

    def _keep_free(self, connection: SqliteConnection) -> bool:
        with self._free_lock:
            if self._free is None or not connection.is_idle:
                return False
            self._free.append(connection)
            return True

    def _take_free(self) -> SqliteConnection | None:
        with self._free_lock:
            return self._free.pop() if self._free else None

    def _connect(self, *, readonly: bool, limits: Limits) -> SqliteConnection:
        with self._saying_which():
            if (free := self._take_free()) is not None:
                free.become(readonly=readonly, limits=limits)
                return free
            connection = SqliteConnection(
                self.path, readonly=readonly, limits=limits, bus=self._bus
            )
        connection.on_free = self._keep_free
        if self._opened is None:
            self._opened = _identity_of(self.path)
        return connection

    @contextlib.contextmanager
    def _saying_which(self) -> Iterator[None]:
        """Raise ours for what keeps the file from being opened, with its name."""
        try:
            yield
        except DatabaseUnavailable as error:
            raise DatabaseUnavailable(f"Can't open {self.path}: {error}") from error
        except apsw.Error as error:
            raise DatabaseError(f"Can't open {self.path}: {error}") from error

    def backup_before_migration(self, version: int) -> str | None:
        target = self.path.with_name(f"{self.path.name}.{_COPY}{version}")
        partial = target.with_name(f"{target.name}.partial")
        partial.unlink(missing_ok=True)
        with contextlib.closing(self._connect(readonly=True, limits=LONG)) as connection:
            connection.copy_to(partial)
        partial.replace(target)
        return str(target)

    def delete_copies(self, before: float | None = None) -> None:
        for copy in self.path.parent.glob(f"{self.path.name}.{_COPY}*"):
            if before is None or copy.stat().st_mtime < before:
                copy.unlink(missing_ok=True)

    def give_back_space(self) -> bool:
        with contextlib.closing(self._connect(readonly=False, limits=LONG)) as connection:
            ((free,),) = connection.query("PRAGMA freelist_count")
            connection.query(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
            ((left,),) = connection.query("PRAGMA freelist_count")
        return bool(0 < left < free)

    def forget_deleted_words(self, *, from_start: bool) -> bool:
        # A negative number makes one merge of everything; a positive one continues it.
        pages = -_MERGE_PAGES if from_start else _MERGE_PAGES
        has_more = False
        with contextlib.closing(self._connect(readonly=False, limits=LONG)) as connection:
            for index in ("message_search", "topic_search"):
                if not connection.query(
                    f"SELECT 1 FROM {index}_data WHERE id >= ? LIMIT 1", (_TOMBSTONES,)
                ):
                    continue
                ((before,),) = connection.query("SELECT total_changes()")
                for statement in self.dialect.begin_write:
                    connection.run(statement)
                connection.run(f"INSERT INTO {index} ({index}, rank) VALUES ('merge', ?)", (pages,))
                connection.commit()
                ((after,),) = connection.query("SELECT total_changes()")
                # The statement itself counts as a change.
                has_more = has_more or after - before > 1
        return has_more

    def empty_write_ahead_log(self) -> bool:
        # First without locks. What remains then is so little that writers hardly wait for it, and
        # nobody waits for readers: with a time limit of zero, the second gives up instead.
        limits = LONG._replace(lock=0)
        with contextlib.closing(self._connect(readonly=False, limits=limits)) as connection:
            connection.query("PRAGMA wal_checkpoint(PASSIVE)")
            ((is_busy, _, _),) = connection.query("PRAGMA wal_checkpoint(TRUNCATE)")
        return not is_busy

    def watch(
        self,
        on_growth: Callable[[int | None], None],
        on_announcement: Callable[[str], None],
        on_told: Callable[[Sequence[str]], None] | None = None,
        hearing: Hearing | None = None,
    ) -> Callable[[], None]:
        """Of other nodes this hears by the bus. Command-line tools say nothing; that they wrote
        shows in the file's data version. The same thread makes checkpoints."""
        stop = threading.Event()
        listener = None if self._bus is None else self._bus.listener()

        def pause() -> None:
            if listener is None:
                stop.wait(_WATCH_SECONDS)
            else:
                listener.hear(_WATCH_SECONDS, on_growth, on_announcement)

        def look() -> None:
            is_away = False
            while not stop.is_set():
                try:
                    with self._saying_which():
                        watcher = _Watcher(self.path, readonly=True, limits=READING)
                    with contextlib.closing(watcher) as connection:
                        version = connection.query("PRAGMA data_version")
                        on_growth(
                            None
                        )  # Something may have been written before this began to watch.
                        while True:
                            pause()
                            if stop.is_set():
                                break
                            now = connection.query("PRAGMA data_version")
                            if now != version:
                                version = now
                                on_growth(None)
                            if self._wal_bytes() > _WAL_BYTES:
                                # (Where another process is at it, this does nothing.)
                                connection.run("PRAGMA wal_checkpoint(PASSIVE)")
                            if is_away:
                                is_away = False
                                logger.info("the database's file can be watched again")
                except Exception as error:  # Whatever it is, it may be over soon.
                    if not is_away:
                        is_away = True
                        logger.warning(
                            "the database's file cannot be watched",
                            extra={"fields": {"reason": error}},
                        )
                    stop.wait(_RETRY_SECONDS)

        thread = threading.Thread(target=look, name="sqlite-watch", daemon=True)
        thread.start()

        def end() -> None:
            stop.set()
            if listener is not None:
                listener.wake()
            thread.join()
            if listener is not None:
                listener.close()

        return end

    def _wal_bytes(self) -> int:
        try:
            return self.path.with_name(self.path.name + "-wal").stat().st_size
        except FileNotFoundError:
            return 0

    def require_in_place(self) -> None:
        if self._opened is not None and self._opened != _identity_of(self.path):
            raise DatabaseReplaced(
                f"{self.path} was moved or replaced while the server was running, and the"
                " server is still writing to the old file. Stop the server, put the right"
                " file in place, and start the server again"
            )

    def served(self) -> contextlib.AbstractContextManager[int | None]:
        return exclusive_server(self.path)

    def servers(self) -> list[str]:
        found = running_server(self.path)
        return [found] if found else []

    def say_serving(self, connection: Connection) -> None:
        """The process that serves holds a lock: `served`."""

    def making_checkpoint(
        self, goes_on: Callable[[], bool]
    ) -> contextlib.AbstractContextManager[bool]:
        return contextlib.nullcontext(True) if self._bus is None else self._bus.alone(goes_on)

    def tell_growth(self, seq: int) -> None:
        if self._bus is not None:
            self._bus.tell_growth(seq)

    def announce(self, messages: Sequence[str]) -> None:
        if self._bus is not None:
            self._bus.announce(messages)

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()


class _OnlyConnection(SqliteConnection):
    """The only one to a file without a name, which stays open when it is closed."""

    def _write_ahead(self) -> None:
        # Files beside this one would have names.
        self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._connection.execute("PRAGMA journal_mode = MEMORY")

    def close(self) -> None:
        """Whoever connects next goes on with it."""

    def end(self) -> None:
        super().close()


class NamelessDatabase(SqliteDatabase):
    """A file for a trial, whose name is taken away at once: it goes with the `close`, or with the
    process, however that ends. Used by one thread at a time, as by one connection."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._only: _OnlyConnection | None = None

    def exists(self) -> bool:
        return self._only is not None

    def connect(self, *, readonly: bool, limits: Limits = LONG) -> Connection:
        if self._only is None:
            self._only = _OnlyConnection(self.path, readonly=False, limits=LONG)
            self.path.unlink()
        return self._only

    def backup_before_migration(self, version: int) -> None:
        """It is a copy itself."""

    def close(self) -> None:
        if self._only is not None:
            self._only.end()


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


DIALECT = SqliteDialect()
