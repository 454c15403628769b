"""PostgreSQL, by way of psycopg."""

import contextlib
import json
import selectors
import socket
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import psycopg
from psycopg import sql as pgsql

from tertulia.model.words import Phrase
from tertulia.store.database import Connection, Database, DatabaseError, Dialect, Row
from tertulia.store.serving import this_process

_NOTIFY_LIMIT = 7999
"""Bytes that one notification can carry."""


class PostgresDialect(Dialect):
    name = "postgresql"
    blob = "BYTEA"
    real = "DOUBLE PRECISION"
    begin_read = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
    begin_write = ("BEGIN", "SELECT seq FROM head WHERE id = 1 FOR UPDATE")
    tell_growth = "SELECT pg_notify('tertulia_' || current_schema(), ?)"

    def among(self, column: str) -> str:
        return f"{column} = ANY(?)"

    def array(self, values: Iterable[int] | Iterable[str]) -> list[Any]:
        return list(values)

    def within(self) -> str:
        of_channel = "CAST(? AS jsonb) -> CAST(messages.channel_id AS TEXT)"
        return (
            f"EXISTS (SELECT 1 FROM jsonb_array_elements({of_channel}) AS span"
            " WHERE messages.id > CAST(span ->> 0 AS BIGINT)"
            " AND messages.id <= CAST(span ->> 1 AS BIGINT))"
        )

    def spans(self, spans: Iterable[tuple[int, int, int]]) -> str:
        by_channel: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for channel_id, after, until in spans:
            by_channel[channel_id].append((after, until))
        return json.dumps(by_channel)

    def collected(self, column: str) -> str:
        return f"CAST(json_agg({column}) AS TEXT)"

    def tables(self) -> str:
        return (
            "SELECT table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"
            " AND table_schema = current_schema() AND table_name <> 'message_search'"
            " ORDER BY table_name"
        )

    def columns(self) -> str:
        return (
            "SELECT column_name, data_type = 'bytea' FROM information_schema.columns"
            " WHERE table_schema = current_schema() AND table_name = ? ORDER BY ordinal_position"
        )

    def first_search_schema(self) -> Sequence[str]:
        words = "to_tsvector('simple', COALESCE(messages.topic, '') || ' ' || messages.content)"
        return (f"CREATE INDEX message_search ON messages USING gin ({words})",)

    def search_schema(self) -> Sequence[str]:
        return (
            "DROP INDEX message_search",
            "CREATE TABLE message_search (message_id BIGINT PRIMARY KEY, words TSVECTOR NOT NULL)",
            "CREATE INDEX message_search_words ON message_search USING gin (words)",
        )

    def search_missing(self) -> str:
        return (
            "SELECT COUNT(*) FROM messages WHERE id NOT IN (SELECT message_id FROM message_search)"
        )

    def search_tuning(self) -> Sequence[str]:
        return ()

    def search_insert(self) -> str:
        return "INSERT INTO message_search (message_id, words) VALUES (?, CAST(? AS tsvector))"

    def search_row(
        self, message_id: int, content: Sequence[str], topic: Sequence[str]
    ) -> tuple[Any, ...]:
        places: dict[str, list[str]] = defaultdict(list)
        # No phrase leads from the end of the one to the beginning of the other.
        for words, before in ((topic, 0), (content, len(topic) + 1)):
            for place, word in enumerate(words, before + 1):
                places[word].append(str(min(place, _LAST_PLACE)))
        return message_id, " ".join(f"'{word}':{','.join(at)}" for word, at in places.items())

    def search_delete(self) -> str:
        return f"DELETE FROM message_search WHERE {self.among('message_id')}"

    def search_hits(self, comparison: str, order: str, limit: int) -> str:
        return (
            "SELECT message_id FROM message_search WHERE words @@ CAST(? AS tsquery)"
            f" AND message_id {comparison} ? ORDER BY message_id {order} LIMIT {limit}"
        )

    def named_messages(self) -> str:
        return "unnest(CAST(? AS BIGINT[])) AS named (id) JOIN messages ON messages.id = named.id"

    def search_match(self) -> str:
        return (
            "EXISTS (SELECT 1 FROM message_search WHERE message_search.message_id = messages.id"
            " AND words @@ CAST(? AS tsquery))"
        )

    def search_query(self, phrases: Sequence[Phrase]) -> str:
        return " & ".join(
            "("
            + " <-> ".join(f"'{word}'" for word in phrase.words)
            + (":*)" if phrase.is_open else ")")
            for phrase in phrases
        )


_LAST_PLACE = 16383
"""The largest number of a place in a text that PostgreSQL knows."""


@lru_cache(maxsize=2000)
def _translated(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


_SERVING = 0x7E27
"""The advisory lock that servers share, with the schema's name."""


def _name_of_server() -> str:
    """This process in the database's list of connections, whose names are short."""
    return f"tertulia, {this_process()}".encode()[:63].decode(errors="ignore")


class PostgresConnection:
    """One connection; used by one thread at a time."""

    def __init__(self, url: str) -> None:
        self.dialect = DIALECT
        self._connection = psycopg.connect(url, autocommit=True, application_name="tertulia")
        self._connection.execute("SET client_min_messages TO warning")
        # The default is that of disks which turn: on others a search for a rare word would walk
        # through all messages rather than use its index.
        self._connection.execute("SET random_page_cost TO 1.1")

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        return self._connection.execute(_translated(sql), parameters).fetchall()

    def run(self, sql: str, parameters: Sequence[Any] = ()) -> None:
        self._connection.execute(_translated(sql), parameters)

    def scan(self, sql: str) -> Iterator[Row]:
        with self._connection.cursor(name="stream") as cursor:
            cursor.itersize = 1000
            cursor.execute(_translated(sql))
            yield from cursor

    def run_many(self, sql: str, rows: Iterable[Sequence[Any]]) -> None:
        with self._connection.cursor() as cursor:
            cursor.executemany(_translated(sql), rows)

    def begin_at_once(self) -> bool:
        return False  # The network is between.

    def listen(self, channel: str, heard: Callable[[str], None], stop: socket.socket) -> None:
        """Hand over what is announced on the channel until there is something to read from
        `stop`; at first nothing, for what was said while nobody listened."""
        self._connection.execute(pgsql.SQL("LISTEN {}").format(pgsql.Identifier(channel)))
        heard("")
        with selectors.DefaultSelector() as selector:
            selector.register(self._connection, selectors.EVENT_READ)
            selector.register(stop, selectors.EVENT_READ)
            while True:
                for notification in self._connection.notifies(timeout=0):
                    heard(notification.payload)
                if any(key.fileobj is stop for key, _ in selector.select()):
                    return

    @property
    def process(self) -> int:
        """The server's process behind this connection."""
        return self._connection.info.backend_pid

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase(Database):
    """A database, or a schema of one (`?options=-csearch_path=…`), that several nodes share."""

    is_shared = True

    def __init__(self, url: str) -> None:
        self.dialect = DIALECT
        self.url = url
        self._announcer: PostgresConnection | None = None

    def exists(self) -> bool:
        with contextlib.closing(self._connect()) as connection:
            ((there,),) = connection.query("SELECT to_regclass('installation') IS NOT NULL")
        return bool(there)

    def connect(self, *, readonly: bool) -> Connection:
        return self._connect()

    def _connect(self) -> PostgresConnection:
        try:
            return PostgresConnection(self.url)
        except psycopg.Error as error:
            raise DatabaseError(f"Cannot connect to PostgreSQL: {error}") from error

    def backup_before_migration(self, version: int) -> None:
        """Left to the operator, whose database has means of its own."""

    def watch(
        self, grown: Callable[[int | None], None], heard: Callable[[str], None]
    ) -> Callable[[], None]:
        stopping = threading.Event()
        stop, ring = socket.socketpair()

        def notified(payload: str) -> None:
            if payload.isdigit():
                grown(int(payload))
            elif payload:
                heard(payload)
            else:
                grown(None)

        def listen() -> None:
            while not stopping.is_set():
                try:
                    connection = self._connect()
                except DatabaseError:
                    stopping.wait(1)
                    continue
                with contextlib.suppress(psycopg.Error), contextlib.closing(connection):
                    connection.listen(self._channel(connection), notified, stop)

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

    def served(self) -> contextlib.AbstractContextManager[None]:
        """As many as there are may do it; each says so on a connection that it looks by."""
        return contextlib.nullcontext()

    def servers(self) -> list[str]:
        with contextlib.closing(self._connect()) as connection:
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

    def announce(self, message: str) -> None:
        if len(message.encode()) > _NOTIFY_LIMIT:
            return
        try:
            if self._announcer is None:
                self._announcer = self._connect()
            channel = self._channel(self._announcer)
            self._announcer.run("SELECT pg_notify(?, ?)", (channel, message))
        except (psycopg.Error, DatabaseError):
            # A doorbell, not the news itself: the next one rings on a new connection.
            announcer, self._announcer = self._announcer, None
            if announcer is not None:
                announcer.close()

    @staticmethod
    def _channel(connection: PostgresConnection) -> str:
        ((schema,),) = connection.query("SELECT current_schema()")
        return f"tertulia_{schema}"

    def close(self) -> None:
        if self._announcer is not None:
            self._announcer.close()


DIALECT = PostgresDialect()
