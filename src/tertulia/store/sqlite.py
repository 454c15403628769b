"""An SQLite file as the store's database."""

import contextlib
import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw

from tertulia.store.bus import LocalBus
from tertulia.store.database import (
    LONG,
    READING,
    UPKEEP,
    Connection,
    Database,
    DatabaseError,
    DatabaseReplaced,
    DatabaseUnavailable,
    TimeLimits,
)
from tertulia.store.installation import exclusive_server, running_server
from tertulia.store.notification_reader import NotificationReader
from tertulia.store.sqlite_connection import (
    WAL_BYTES,
    SqliteConnection,
    TrialConnection,
    WatchConnection,
)
from tertulia.store.sqlite_dialect import DIALECT

logger = logging.getLogger("tertulia.store")

_WATCH_SECONDS = 0.1
_RETRY_SECONDS = 1.0
"""Seconds before watching the file again after a failure."""
_COPY = "before-migration-from-"
"""The suffix of copies made before migrations, followed by the schema version."""
_VACUUM_PAGES = 1000
"""The number of pages returned to the operating system in one transaction."""
_MERGE_PAGES = 500
"""The number of pages of the search index rewritten in one transaction, in about 15 ms."""
_TOMBSTONES = 1 << 53
"""The first ID of pages in the search index that list deleted rows whose words are still stored:
FTS5 numbers them by segment, from 2^16, shifted left by 37 bits."""


class SqliteDatabase(Database):
    """A file, which command-line tools may use at the same time."""

    def __init__(self, path: Path, bus: Path | None = None) -> None:
        """Use the file. `bus` is the directory for notifications if several processes serve."""
        self.dialect = DIALECT
        self.path = path
        self.is_shared = bus is not None
        self._bus = None if bus is None else LocalBus(bus)
        self._opened: tuple[int, int] | None = None
        """The identity of the file that was opened first."""
        self._free_lock = threading.Lock()
        self._free: list[SqliteConnection] | None = None
        """Connections to reuse in the context of `opening`, or None outside."""

    def exists(self) -> bool:
        if not self.path.exists():
            return False
        with contextlib.closing(self.connect(readonly=True, limits=READING)) as connection:
            return bool(
                connection.query(
                    "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'installation'"
                )
            )

    def connect(self, *, readonly: bool, limits: TimeLimits = LONG) -> Connection:
        return self._connect(readonly=readonly, limits=limits)

    @contextlib.contextmanager
    def opening(self) -> Iterator[None]:
        self._free = []
        try:
            yield
        finally:
            # An aborted start may leave a thread that still uses one.
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

    def _connect(self, *, readonly: bool, limits: TimeLimits) -> SqliteConnection:
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
        """Add the file's name to errors of opening it."""
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
        with contextlib.closing(self._connect(readonly=False, limits=UPKEEP)) as connection:
            ((free,),) = connection.query("PRAGMA freelist_count")
            connection.query(f"PRAGMA incremental_vacuum({_VACUUM_PAGES})")
            ((left,),) = connection.query("PRAGMA freelist_count")
        return bool(0 < left < free)

    def forget_deleted_words(self, *, from_start: bool) -> bool:
        # A negative number makes one merge of everything; a positive one continues it.
        pages = -_MERGE_PAGES if from_start else _MERGE_PAGES
        has_more = False
        with contextlib.closing(self._connect(readonly=False, limits=UPKEEP)) as connection:
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
        # First without locks, so that writers hardly wait for the rest. With a lock limit of zero,
        # the second checkpoint gives up instead of waiting for readers.
        limits = UPKEEP._replace(lock=0)
        with contextlib.closing(self._connect(readonly=False, limits=limits)) as connection:
            connection.query("PRAGMA wal_checkpoint(PASSIVE)")
            ((is_busy, _, _),) = connection.query("PRAGMA wal_checkpoint(TRUNCATE)")
        return not is_busy

    def watch(
        self,
        on_growth: Callable[[int | None], None],
        on_peer_message: Callable[[str], None],
        on_broadcast: Callable[[Sequence[str]], None] | None = None,
        hearing: NotificationReader | None = None,
    ) -> Callable[[], None]:
        """Watch through the bus, and for writes of command-line tools through the data version. The
        same thread makes checkpoints."""
        stop = threading.Event()
        listener = None if self._bus is None else self._bus.listener()

        def pause() -> None:
            if listener is None:
                stop.wait(_WATCH_SECONDS)
            else:
                listener.hear(_WATCH_SECONDS, on_growth, on_peer_message)

        def look() -> None:
            is_away = False
            while not stop.is_set():
                try:
                    with self._saying_which():
                        watcher = WatchConnection(self.path, readonly=True, limits=READING)
                    with contextlib.closing(watcher) as connection:
                        version = connection.query("PRAGMA data_version")
                        on_growth(None)  # Another process may have written before.
                        while True:
                            pause()
                            if stop.is_set():
                                break
                            now = connection.query("PRAGMA data_version")
                            if now != version:
                                version = now
                                on_growth(None)
                            if self._wal_bytes() > WAL_BYTES:
                                # Does nothing if another process is making one.
                                connection.run("PRAGMA wal_checkpoint(PASSIVE)")
                            if is_away:
                                is_away = False
                                logger.info("watching the database file works again")
                except Exception as error:  # Retry after any error.
                    if not is_away:
                        is_away = True
                        logger.warning(
                            "watching the database file failed",
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
        result = running_server(self.path)
        return [result] if result else []

    def say_serving(self, connection: Connection) -> None:
        """Do nothing: the lock of `served` shows that."""

    def making_checkpoint(
        self, goes_on: Callable[[], bool]
    ) -> contextlib.AbstractContextManager[bool]:
        return contextlib.nullcontext(True) if self._bus is None else self._bus.alone(goes_on)

    def tell_growth(self, seq: int) -> None:
        if self._bus is not None:
            self._bus.tell_growth(seq)

    def send_to_peers(self, messages: Sequence[str]) -> None:
        if self._bus is not None:
            self._bus.send_to_peers(messages)

    def close(self) -> None:
        if self._bus is not None:
            self._bus.close()


class TrialDatabase(SqliteDatabase):
    """A file that is deleted when it is first opened, so it disappears with `close` or the
    process. Used by one thread."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._only: TrialConnection | None = None

    def exists(self) -> bool:
        return self._only is not None

    def connect(self, *, readonly: bool, limits: TimeLimits = LONG) -> Connection:
        if self._only is None:
            self._only = TrialConnection(self.path, readonly=False, limits=LONG)
            self.path.unlink()
        return self._only

    def backup_before_migration(self, version: int) -> None:
        """Do nothing: a copy needs no backup."""

    def close(self) -> None:
        if self._only is not None:
            self._only.end()


def _identity_of(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
