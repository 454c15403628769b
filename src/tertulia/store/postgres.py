"""A PostgreSQL server as the store's database."""

import contextlib
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tertulia.store import postgres_listener
from tertulia.store.database import (
    LONG,
    READING,
    Connection,
    Database,
    DatabaseError,
    DatabaseUnavailable,
    TimeLimits,
)
from tertulia.store.installation import this_process
from tertulia.store.notification_reader import NotificationReader
from tertulia.store.postgres_connection import PostgresConnection
from tertulia.store.postgres_dialect import CHANNEL, DIALECT
from tertulia.store.postgres_driver import ServerTimeout, connect

_BRIEF = TimeLimits(statement=3, lock=3, idle=5)
"""The limits of connections that listen or notify."""
_CONNECT = {
    "connect_timeout": "5",
    "keepalives": "1",
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "application_name": "tertulia",
}
"""Defaults that detect a vanished machine or network within seconds."""
_SERVING = 0x7E27
"""The advisory lock that servers share, together with the schema's name."""


def _name_of_server() -> str:
    """Return the name of this process in the server's list of connections, where names are
    short."""
    return f"tertulia, {this_process()}".encode()[:63].decode(errors="ignore")


class PostgresDatabase(Database):
    """A database, or one of its schemas (`?options=-csearch_path=…`), that several nodes share."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self.dialect = DIALECT
        self.url = url
        self._peer_sender: PostgresConnection | None = None

    def exists(self) -> bool:
        with contextlib.closing(self._connect(READING)) as connection:
            ((there,),) = connection.query("SELECT to_regclass('installation') IS NOT NULL")
        return bool(there)

    def connect(self, *, readonly: bool, limits: TimeLimits = LONG) -> Connection:
        return self._connect(limits)

    def _connect(self, limits: TimeLimits) -> PostgresConnection:
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
        """Do nothing: backups are up to the operator."""

    def delete_copies(self, before: float | None = None) -> None:
        """Do nothing: no copies are made."""

    def give_back_space(self) -> bool:
        return False  # Autovacuum does that by its own rules.

    def forget_deleted_words(self, *, from_start: bool) -> bool:
        return False  # Autovacuum removes them with their rows.

    def empty_write_ahead_log(self) -> bool:
        return True  # The write-ahead log belongs to the operator, for archives and standbys.

    def watch(
        self,
        on_growth: Callable[[int | None], None],
        on_peer_message: Callable[[str], None],
        on_broadcast: Callable[[Sequence[str]], None] | None = None,
        hearing: NotificationReader | None = None,
    ) -> Callable[[], None]:
        return postgres_listener.watch(
            lambda: self._connect(_BRIEF), on_growth, on_peer_message, on_broadcast, hearing
        )

    def require_in_place(self) -> None:
        """Do nothing: a server can't be moved away."""

    def served(self) -> contextlib.AbstractContextManager[int | None]:
        """Do nothing: any number of servers can serve."""
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
        """Do nothing: `Dialect.claim_checkpoint` takes the lock."""
        return contextlib.nullcontext(True)

    def tell_growth(self, seq: int) -> None:
        """Do nothing: the commit itself notified."""

    def send_to_peers(self, messages: Sequence[str]) -> None:
        try:
            if self._peer_sender is None:
                self._peer_sender = self._connect(_BRIEF)
                # Commits with notifications run one at a time, so don't wait for the disk here.
                self._peer_sender.run("SET synchronous_commit TO off")
            self._peer_sender.run(
                f"SELECT pg_notify({CHANNEL}, message) FROM installation,"
                " unnest(CAST(? AS TEXT[])) AS message WHERE key = 'channel'",
                (list(messages),),
            )
        except (psycopg.Error, DatabaseError):
            # Transient events may be lost. The next ones get a new connection.
            peer_sender, self._peer_sender = self._peer_sender, None
            if peer_sender is not None:
                peer_sender.close()

    def close(self) -> None:
        if self._peer_sender is not None:
            self._peer_sender.close()


_direct: set[str] = set()
"""Servers that are known to keep a session per connection."""

_POOLED = (
    "A connection pooler between this server and PostgreSQL uses a different session for"
    " each transaction (in PgBouncer: pool_mode = transaction or statement). Notifications"
    " and time limits don't work through it, so nodes wouldn't learn of each other's"
    " changes. Connect to PostgreSQL directly, or set the pooler to pool_mode = session."
)


def _require_direct(conninfo: str) -> None:
    """Raise DatabaseError if a connection doesn't keep its session across transactions."""
    mark = uuid.uuid4().hex
    setting: LiteralString = "SELECT current_setting('tertulia.session', true)"
    with (
        contextlib.closing(connect(conninfo)) as deadline_connection,
        contextlib.closing(connect(conninfo)) as other,
    ):
        deadline_connection.ends = other.ends = time.monotonic() + _BRIEF.statement
        try:
            deadline_connection.execute("SELECT set_config('tertulia.session', %s, false)", (mark,))
            # A pooler gives this one the session that the first just released, or keeps it.
            other.execute("BEGIN")
            if other.execute(setting).fetchone() == (mark,):
                raise DatabaseError(_POOLED)
            if deadline_connection.execute(setting).fetchone() != (mark,):
                raise DatabaseError(_POOLED)
        except ServerTimeout:
            raise DatabaseUnavailable("The database isn't responding.") from None
