"""A node whose database, or the connection to it, is slow, gone, or frozen.

Nothing is timed here: limits are short, and a wait without an end would hang the test.
"""

import asyncio
import contextlib
import logging
import select
import subprocess
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import pytest

from tertulia.log import head_watch, health
from tertulia.model.changes import Entry, RealmChanged
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import (
    installation,
    migrations,
    postgres,
    postgres_connection,
    postgres_driver,
    postgres_listener,
    readers,
    sqlite,
    sqlite_connection,
)
from tertulia.store import store as store_module
from tertulia.store.database import (
    LONG,
    MIGRATING,
    READING,
    WRITING,
    CommitUnknown,
    Connection,
    ConnectionLost,
    Database,
    DatabaseError,
    DatabaseUnavailable,
    TimeLimitReached,
    TimeLimits,
)
from tertulia.store.dialect import Dialect
from tertulia.store.installation import Position
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.notes import FactSet
from tertulia.store.postgres import PostgresDatabase
from tertulia.store.schema_upgrade import migrate, version_of
from tertulia.store.sqlite import SqliteDatabase
from tertulia.store.store import SQLITE_FILE, Store, database_at
from tertulia.store.writing import Batch
from tests import postgres as servers
from tests.proxy import Fault, Proxy, proxy_to
from tests.support import Organization, new_organization, row, until

pytestmark = pytest.mark.usefixtures("anyio_backend")

HANG_SECONDS = 60
"""After this time, something counts as hanging."""
IMPATIENT = TimeLimits(statement=3, lock=1, idle=2, transaction=4)
ENDLESS = (
    "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
    " SELECT COUNT(*) FROM n WHERE x % 5000 = 0 AND pg_sleep(0.05) IS NOT NULL"
)
"""It sleeps repeatedly, to leave the processors to other tests."""


def entry(seq: int) -> Entry:
    return Entry(seq, 5.0, None, RealmChanged(values={"name": f"N{seq}"}))


def rename(context: CommandContext, name: str) -> Decision[str]:
    return Decision(context.state.realm.name, (RealmChanged(values={"name": name}),))


START = Position("the history", 0, "")


def begin_history(database: Database) -> None:
    """Initialize the empty log with `START`."""
    with contextlib.closing(database.connect(readonly=False)) as connection:
        connection.run("UPDATE head SET history = ?", (START.history,))


def go_on_for_ever(connection: Connection) -> None:
    def sleep(*seconds: Any) -> None:
        time.sleep(*seconds)

    if connection.dialect.name == "sqlite":
        driver: apsw.Connection = connection.driver  # type: ignore[attr-defined]
        driver.create_scalar_function("pg_sleep", sleep, 1)
    connection.query(ENDLESS)


def seq(connection: Connection) -> int:
    """The number of the log's newest entry."""
    return installation.head_position(connection).seq


async def began(store: Store) -> list[Entry]:
    """Begin a write transaction at the start of the log. Return its entries."""
    return (await store.begin(START)).entries


async def ends(awaited: Any) -> Any:
    """Return or raise what the awaitable does. Fails if it never ends."""
    return await asyncio.wait_for(awaited, HANG_SECONDS)


@pytest.fixture
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits in the same proportions as the real ones."""
    writing = TimeLimits(statement=8, lock=6, idle=2, transaction=9)
    monkeypatch.setattr(store_module, "WRITING", writing)
    for module in (store_module, readers):
        monkeypatch.setattr(module, "READING", TimeLimits(statement=3, lock=3, idle=3))
    monkeypatch.setattr(store_module, "READ_SECONDS", 3)
    monkeypatch.setattr(store_module, "LOG_READ_SECONDS", 3)
    monkeypatch.setattr(postgres_connection, "_GRACE_SECONDS", 0.5)
    monkeypatch.setattr(postgres_listener, "_HEARTBEAT_SECONDS", 0.1)
    monkeypatch.setattr(postgres, "_BRIEF", TimeLimits(statement=2, lock=2, idle=2))
    monkeypatch.setitem(postgres._CONNECT, "connect_timeout", "2")


@pytest.fixture
def schema_url(postgres_url: str) -> Iterator[str]:
    with servers.schema(postgres_url) as url:
        servers.migrate_lent(url)
        begin_history(PostgresDatabase(url))
        yield url


@pytest.fixture
def proxy(schema_url: str) -> Iterator[Proxy]:
    with proxy_to(servers.socket_of(schema_url)) as proxy:
        yield proxy


@asynccontextmanager
async def store_at(url: str) -> AsyncIterator[Store]:
    store = Store(database_at(Path(), url))
    try:
        yield store
    finally:
        await store.close()


@pytest.fixture
async def far(schema_url: str, proxy: Proxy, short_limits: None) -> AsyncIterator[Store]:
    """The store of a node on the other side of the proxy."""
    async with store_at(servers.through(schema_url, proxy.port)) as store:
        yield store


@pytest.fixture
async def near(schema_url: str, short_limits: None) -> AsyncIterator[Store]:
    """The store of a node with a direct connection to the database."""
    async with store_at(schema_url) as store:
        yield store


# A lock whose holder vanishes


def test_the_wait_for_the_head_is_longer_than_a_frozen_holder_can_keep_it() -> None:
    assert WRITING.idle < WRITING.lock < WRITING.statement < WRITING.transaction
    assert max(WRITING.statement, READING.statement, READING.idle) <= 30
    for limits in (WRITING, READING, LONG, MIGRATING):
        assert min(limits[:3]) > 0


async def test_the_database_session_has_the_limits(schema_url: str) -> None:
    database = PostgresDatabase(schema_url)
    with contextlib.closing(database.connect(readonly=False, limits=WRITING)) as connection:
        names = (
            "statement_timeout",
            "lock_timeout",
            "idle_in_transaction_session_timeout",
            "client_min_messages",
        )
        found = [connection.query(f"SHOW {name}")[0][0] for name in names]
    assert found == ["15s", "10s", "5s", "warning"]


async def test_dead_connections_are_detected(schema_url: str, proxy: Proxy) -> None:
    """By keepalives on the way to the database; a Unix socket needs none."""
    database = PostgresDatabase(servers.through(schema_url, proxy.port))
    with contextlib.closing(database.connect(readonly=False)) as connection:
        named = connection.driver.info.get_parameters()  # type: ignore[attr-defined]
    assert named["connect_timeout"] == "5"
    assert named["keepalives_idle"] == "5"
    assert named["tcp_user_timeout"] == "10000"
    mine = PostgresDatabase(servers.through(schema_url, proxy.port) + "&connect_timeout=7")
    with contextlib.closing(mine.connect(readonly=False)) as connection:
        named = connection.driver.info.get_parameters()  # type: ignore[attr-defined]
    assert named["connect_timeout"] == "7"


async def test_a_frozen_node_holds_the_head_only_for_seconds(
    far: Store, near: Store, proxy: Proxy
) -> None:
    await ends(began(far))
    proxy.freeze()
    await ends(began(near))  # Waits until the server has ended the other transaction.
    await ends(near.commit(Batch([entry(1)], {})))
    proxy.thaw()
    connection = far._writing.opened
    assert connection is not None
    descriptor = connection.driver.fileno()  # type: ignore[attr-defined]
    await asyncio.to_thread(select.select, [descriptor], [], [], HANG_SECONDS)
    # When the frozen node wakes up, its transaction is gone: nothing was done, and it knows.
    with pytest.raises(DatabaseUnavailable) as caught:
        await ends(far.commit(Batch([entry(1)], {})))
    assert not isinstance(caught.value, CommitUnknown)
    await far.rollback()
    assert [e.seq for e in await ends(began(far))] == [1]
    await ends(far.commit(Batch([entry(2)], {})))
    assert await near.read(seq) == 2


async def test_the_commit_of_an_aborted_transaction_raises_an_error(near: Store) -> None:
    """Even if only the commit itself is left to do."""
    await ends(began(near))
    connection = near._writing.opened
    assert connection is not None
    connection.run("UPDATE head SET seq = 7")
    process = connection.process  # type: ignore[attr-defined]

    async def is_there() -> bool:
        found = await near.read(
            lambda c: c.query("SELECT 1 FROM pg_stat_activity WHERE pid = ?", (process,))
        )
        return bool(found)

    while await is_there():  # noqa: ASYNC110 (another process: there is no event)
        await asyncio.sleep(0.1)
    with pytest.raises(ConnectionLost):
        connection.commit()
    await near.rollback()
    assert await near.read(seq) == 0


async def test_a_wait_for_the_head_ends_and_can_be_resumed(
    near: Store, schema_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "WRITING", IMPATIENT)
    patient = PostgresDatabase(schema_url)
    with contextlib.closing(patient.connect(readonly=False, limits=LONG)) as holder:
        for statement in holder.dialect.begin_write:
            holder.run(statement)
        with pytest.raises(DatabaseUnavailable) as caught:
            await ends(began(near))
        assert not isinstance(caught.value, CommitUnknown)
        await near.rollback()
    assert await ends(began(near)) == []
    await near.commit(Batch([], {}, (FactSet("a", "b"),)))


async def test_sqlite_waits_for_another_process_for_a_limited_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "WRITING", IMPATIENT)
    database = SqliteDatabase(tmp_path / "db")
    migrate(database, lambda _: None)
    begin_history(database)
    async with store_at(f"sqlite:///{database.path}") as store:
        with contextlib.closing(database.connect(readonly=False)) as holder:
            holder.run("BEGIN IMMEDIATE")
            with pytest.raises(DatabaseUnavailable):
                await ends(began(store))
            await store.rollback()
        assert await ends(began(store)) == []
        await store.commit(Batch([entry(1)], {}))
        assert await store.read(seq) == 1


async def test_maintenance_that_waits_for_a_lock_leaves_the_loop_s_threads_free(
    database_url: str, tmp_path: Path
) -> None:
    database = database_at(tmp_path, database_url)
    migrate(database, lambda _: None)
    begin_history(database)
    with ThreadPoolExecutor(1) as pool:
        asyncio.get_running_loop().set_default_executor(pool)
        async with store_at(database_url or f"sqlite:///{tmp_path / SQLITE_FILE}") as store:
            with contextlib.closing(database.connect(readonly=False)) as holder:
                for statement in holder.dialect.begin_write:
                    holder.run(statement)
                waiting = asyncio.create_task(store.write(seq))
                await asyncio.sleep(0)
                await asyncio.to_thread(int)
                assert not waiting.done()
                holder.commit()
            assert await ends(waiting) == 0


async def test_maintenance_that_waits_too_long_is_given_up(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    migrate(database_at(tmp_path, database_url), lambda _: None)
    async with store_at(database_url or f"sqlite:///{tmp_path / SQLITE_FILE}") as store:
        begun, gate = threading.Event(), threading.Event()

        def hold(_: Connection) -> bool:
            begun.set()
            return gate.wait(HANG_SECONDS)

        first = asyncio.create_task(store.write(hold))
        second = asyncio.create_task(store.write(seq))
        assert await asyncio.to_thread(begun.wait, HANG_SECONDS)
        monkeypatch.setattr(store_module, "WRITING", WRITING._replace(lock=0))
        gate.set()
        assert await ends(first)
        with pytest.raises(DatabaseUnavailable, match="too busy"):
            await ends(second)


# Cut connections


@pytest.fixture(params=["together", "one by one"])
def is_together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether the writes and the commit are sent together. Very large transactions are sent
    statement by statement."""
    together: bool = request.param == "together"
    if not together:
        monkeypatch.setattr(store_module, "_IN_ONE", 0)
    return together


@pytest.mark.parametrize("fault", [Fault.CUT_BEFORE, Fault.CUT_AFTER])
@pytest.mark.parametrize(
    ("pattern", "begins"),
    [(b"FOR UPDATE", True), (b"INTO log", False), (b"pg_notify", False), (b"COMMIT\0", False)],
)
async def test_a_connection_cut_at_any_step_of_a_commit_has_a_known_outcome(
    far: Store,
    near: Store,
    proxy: Proxy,
    pattern: bytes,
    begins: bool,
    fault: Fault,
    is_together: bool,
) -> None:
    await ends(began(far))
    await ends(far.commit(Batch([], {}, (FactSet("a", "b"),))))
    proxy.when(pattern, fault)
    await ends(began(far))  # If cut here, the transaction is retried: nothing was done.
    if begins:
        assert not proxy.waits_for_pattern
        await ends(far.commit(Batch([entry(1)], {})))
        assert await near.read(seq) == 1
        return
    with pytest.raises(DatabaseUnavailable) as caught:
        await ends(far.commit(Batch([entry(1)], {})))
    assert not proxy.waits_for_pattern
    is_unknown = isinstance(caught.value, CommitUnknown)
    ends_with_it = pattern == b"COMMIT\0" or is_together
    assert is_unknown == ends_with_it
    await far.rollback()
    # The next holder of the head sees the outcome.
    found = [e.seq for e in await ends(began(near))]
    assert found == ([1] if ends_with_it and fault is Fault.CUT_AFTER else [])
    await near.rollback()
    assert await far.read(seq) == len(found)


async def test_a_connection_frozen_at_any_step_of_a_commit_has_a_known_outcome(
    postgres_url: str, short_limits: None, monkeypatch: pytest.MonkeyPatch, is_together: bool
) -> None:
    """All concurrently: most of the time is waiting for the limits."""
    monkeypatch.setattr(store_module, "WRITING", IMPATIENT)
    async with asyncio.TaskGroup() as group:
        for pattern in (b"FOR UPDATE", b"INTO log", b"COMMIT\0"):
            for fault in (Fault.FREEZE_BEFORE, Fault.FREEZE_AFTER):
                group.create_task(
                    frozen_at(postgres_url, pattern, fault, is_together=is_together),
                    name=f"{pattern!r}, {fault}",
                )


async def frozen_at(url: str, pattern: bytes, fault: Fault, *, is_together: bool) -> None:
    with row(pattern, fault):
        async with far_and_near(url) as (far, near, proxy):
            await ends(began(far))
            await ends(far.commit(Batch([], {}, (FactSet("a", "b"),))))
            proxy.when(pattern, fault)
            with pytest.raises(DatabaseUnavailable) as caught:
                await ends(written(far))
            ends_with_it = pattern == b"COMMIT\0" or (is_together and pattern == b"INTO log")
            assert type(caught.value) is (CommitUnknown if ends_with_it else TimeLimitReached)
            await far.rollback()
            found = [e.seq for e in await ends(begin_with_retries(near))]
            assert found == ([1] if ends_with_it and fault is Fault.FREEZE_AFTER else [])
            await near.rollback()
            assert await ends(far.read(seq)) == len(found)


@asynccontextmanager
async def far_and_near(url: str) -> AsyncIterator[tuple[Store, Store, Proxy]]:
    """`far`, `near`, and `proxy` for their own database."""
    with servers.schema(url) as own, proxy_to(servers.socket_of(own)) as proxy:
        servers.migrate_lent(own)
        begin_history(PostgresDatabase(own))
        away = servers.through(own, proxy.port)
        async with store_at(away) as far, store_at(own) as near:
            yield far, near, proxy


async def written(store: Store) -> None:
    """Write the log's first entry."""
    await began(store)
    await store.commit(Batch([entry(1)], {}))


async def begin_with_retries(store: Store) -> list[Entry]:
    """Begin a transaction, with retries: a transaction that was frozen in the middle of a statement
    may hold the head longer than one attempt waits."""
    while True:
        try:
            return await began(store)
        except DatabaseUnavailable:
            await store.rollback()


async def test_a_read_is_retried_once_after_its_connection_was_cut(
    far: Store, proxy: Proxy
) -> None:
    assert await far.read(seq) == 0
    proxy.cut()
    assert await asyncio.gather(*(far.read(seq) for _ in range(10))) == [0] * 10
    runs = 0

    def look(connection: Connection) -> int:
        nonlocal runs
        runs += 1
        proxy.cut()
        return seq(connection)

    with pytest.raises(ConnectionLost):
        await ends(far.read(look))
    assert runs == 2
    assert await far.read(seq) == 0


async def test_maintenance_keeps_its_connection_while_it_works(
    far: Store, near: Store, proxy: Proxy
) -> None:
    def process(connection: Connection) -> int:
        ((found,),) = connection.query("SELECT pg_backend_pid()")
        return int(found)

    first = await far.write(process)
    assert await far.write(process) == first
    # A connection that was closed in the meantime is replaced, and so is one left inside a
    # transaction.
    proxy.cut()
    assert await ends(far.write(process)) != first

    def fail(connection: Connection) -> None:
        connection.run("UPDATE head SET seq = 7")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await far.write(fail)
    assert await near.write(seq) == await far.write(seq) == 0
    # Work before a lost connection isn't done twice.
    runs = 0

    def lose(connection: Connection) -> None:
        nonlocal runs
        runs += 1
        proxy.cut()
        connection.run("UPDATE head SET seq = 7")

    with pytest.raises(ConnectionLost):
        await ends(far.write(lose))
    assert runs == 1
    assert await far.write(seq) == 0


async def test_a_read_on_a_frozen_connection_ends(far: Store, proxy: Proxy) -> None:
    assert await far.read(seq) == 0
    proxy.freeze()
    for failure in await asyncio.gather(
        *(ends(far.read(seq)) for _ in range(8)), return_exceptions=True
    ):
        assert isinstance(failure, DatabaseUnavailable)
    with pytest.raises(DatabaseUnavailable):
        await ends(began(far))
    await far.rollback()
    proxy.thaw()
    await until_it_reads(far)
    assert await ends(began(far)) == []


async def until_it_reads(store: Store) -> None:
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            await store.read(seq)
            return
        except DatabaseUnavailable:
            assert time.monotonic() < deadline


async def test_a_refusing_database_is_reported_as_unavailable(far: Store, proxy: Proxy) -> None:
    proxy.shut()
    with pytest.raises(DatabaseUnavailable, match="Couldn't connect to PostgreSQL"):
        await ends(far.read(seq))
    with pytest.raises(DatabaseUnavailable, match="Couldn't connect to PostgreSQL"):
        await ends(began(far))
    await far.rollback()
    with pytest.raises(DatabaseUnavailable):
        await ends(far.write(lambda c: None))
    proxy.open()
    assert await far.read(seq) == 0
    await far.send_to_peers("hello")


async def test_failed_reads_are_logged_at_intervals(
    far: Store, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    proxy.shut()
    for _ in range(5):
        with pytest.raises(DatabaseUnavailable):
            await ends(far.read(seq))
    (record,) = (r for r in caplog.records if r.name == "tertulia.store")
    assert (record.levelname, record.getMessage()) == ("WARNING", "a read of the database failed")


async def test_an_invalid_url_is_reported() -> None:
    with pytest.raises(DatabaseError, match="isn't valid"):
        PostgresDatabase("postgresql://h/db?nonsense=1").exists()


# Slow reads


async def test_a_slow_read_is_canceled_and_others_continue(
    config: Config, short_limits: None
) -> None:
    async with new_organization(config) as org:
        store = org.node.store
        slow = [asyncio.create_task(store.read(go_on_for_ever)) for _ in range(6)]
        await asyncio.sleep(0)
        # With all readers busy, the log keeps working: writes, reads of new entries, and snapshots.
        await ends(org.node.log.submit(None, rename, "New"))
        await ends(org.node.log.catch_up())
        assert not all(task.done() for task in slow)
        for task in slow:
            with pytest.raises(TimeLimitReached):
                await ends(task)
        assert await store.read(seq) == org.node.log.durable


async def test_a_slow_snapshot_read_affects_only_itself(config: Config, short_limits: None) -> None:
    async with new_organization(config) as org:
        log = org.node.log
        reloads: list[None] = []
        log.subscribers.on_reload.append(lambda: reloads.append(None))
        looking = asyncio.create_task(log.snapshot(None, go_on_for_ever, lambda *_: None))
        await asyncio.sleep(0)
        renamed = asyncio.create_task(log.submit(None, rename, "New"))
        with pytest.raises(Unavailable):
            await ends(looking)
        assert await ends(renamed) == "Example"
        assert reloads == []


async def test_unread_messages_are_loaded_without_the_writer(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        await org["ann"].send("lounge", "t", "hello")
        page = {"anchor": "first_unread", "num_before": 1, "num_after": 1}
        first = (await org["ann"].get("/messages", **page)).ok
        stopped = asyncio.Event()

        async def begin(*_: Any) -> list[Entry]:
            stopped.set()
            await asyncio.sleep(HANG_SECONDS)
            return []

        with monkeypatch.context() as patch:
            patch.setattr(org.node.store, "begin", begin)
            stuck = asyncio.create_task(org.node.log.submit(None, rename, "New"))
            await stopped.wait()
            assert (await ends(org["ann"].get("/messages", **page))).ok == first
        (task,) = (t for t in asyncio.all_tasks() if t.get_name() == "log-writer")
        task.cancel()
        stuck.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        org.node.log._writer._task = None


async def test_waiting_reads_are_limited(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST_READS", 10)
    database = database_at(tmp_path, database_url)
    migrate(database, lambda _: None)
    async with store_at(database_url or f"sqlite:///{tmp_path / SQLITE_FILE}") as store:
        gate = threading.Event()
        waiting = [
            asyncio.create_task(store.read(lambda _: gate.wait(HANG_SECONDS))) for _ in range(5)
        ]
        await asyncio.sleep(0)
        with pytest.raises(DatabaseUnavailable, match="too busy"):
            await store.read(seq)
        gate.set()
        assert all(await asyncio.gather(*waiting))
        assert await store.read(seq) == 0


async def test_a_read_that_waits_too_long_is_given_up(
    config: Config, short_limits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "GRACE_SECONDS", 0.1)
    async with new_organization(config) as org:
        gate = threading.Event()
        stuck = [
            asyncio.create_task(org.node.store.read(lambda _: gate.wait(HANG_SECONDS)))
            for _ in range(3)
        ]
        await asyncio.sleep(0)
        with pytest.raises(TimeLimitReached):
            await ends(org.node.store.read(seq))
        gate.set()
        await asyncio.gather(*stuck, return_exceptions=True)


# Watching threads


async def test_a_frozen_listener_is_noticed_and_replaced(
    far: Store, near: Store, proxy: Proxy
) -> None:
    grown: list[int | None] = []
    end = far.watch(grown.append, lambda _: None)
    try:
        await until(lambda: grown == [None])
        proxy.freeze(new=False)
        await until(lambda: len(grown) > 1)
        assert grown == [None, None]
        await began(near)
        await near.commit(Batch([entry(1)], {}))
        await until(lambda: grown[-1] == 1)
    finally:
        proxy.thaw()
        await asyncio.to_thread(end)


async def test_a_listener_survives_an_outage_and_logs_it_once(
    far: Store, near: Store, proxy: Proxy, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tertulia.store")
    grown: list[int | None] = []
    end = far.watch(grown.append, lambda _: None)
    try:
        await until(lambda: grown == [None])
        proxy.shut()
        await asyncio.sleep(1)
        proxy.open()
        await until(lambda: len(grown) > 1)
        assert grown == [None, None]
    finally:
        await asyncio.to_thread(end)
    levels = [r.levelname for r in caplog.records if r.name == "tertulia.store"]
    assert levels == ["WARNING", "INFO"]


async def test_a_file_watch_survives_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sqlite, "_RETRY_SECONDS", 0.01)
    caplog.set_level(logging.INFO, "tertulia.store")
    database = SqliteDatabase(tmp_path / "db")
    migrate(database, lambda _: None)
    failures = 0

    def failing(self: SqliteDatabase) -> int:
        nonlocal failures
        failures += 1
        raise apsw.IOError("disk I/O error")

    async with store_at(f"sqlite:///{database.path}") as store:
        grown: list[int | None] = []
        end = store.watch(grown.append, lambda _: None)
        try:
            with monkeypatch.context() as patch:
                patch.setattr(SqliteDatabase, "_wal_bytes", failing)
                await until(lambda: failures >= 3)
            await until(lambda: any("again" in r.getMessage() for r in caplog.records))
            known = len(grown)
            with contextlib.closing(database.connect(readonly=False)) as other:
                other.run("UPDATE head SET pruned = 1")
            await until(lambda: len(grown) > known)
        finally:
            await asyncio.to_thread(end)
    assert [r.levelname for r in caplog.records if r.name == "tertulia.store"] == [
        "WARNING",
        "INFO",
    ]


async def test_a_watcher_ends_while_a_check_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def hang(_: SqliteDatabase) -> None:
        hangs.set()
        goes_on.wait(2 * HANG_SECONDS)

    database = SqliteDatabase(tmp_path / "db")
    migrate(database, lambda _: None)
    async with store_at(f"sqlite:///{database.path}") as store:
        end = store.watch(lambda _: None, lambda _: None)
        with monkeypatch.context() as patch:
            patch.setattr(SqliteDatabase, "require_in_place", hang)
            look = asyncio.create_task(store.look())
            await until(hangs.is_set)
        try:
            look.cancel()  # Nothing waits for it, but it's still running.
            await ends(store.stop(end))
        finally:
            goes_on.set()


# Migrations


def test_concurrent_migrations_run_once(database_url: str, tmp_path: Path) -> None:
    count = 4
    barrier = threading.Barrier(count)
    failed: list[BaseException] = []

    def start() -> None:
        database = database_at(tmp_path, database_url)
        barrier.wait()
        try:
            migrate(database, lambda _: None)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=start) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert failed == []
    with contextlib.closing(
        database_at(tmp_path, database_url).connect(readonly=False)
    ) as connection:
        assert version_of(connection) == len(MIGRATIONS)


@pytest.mark.parametrize("before", [0, 3])
def test_a_failed_migration_changes_nothing(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    def broken(dialect: Dialect) -> tuple[str, ...]:
        return ("CREATE TABLE half (id BIGINT)", "CREATE TABLE half (id BIGINT)")

    database = database_at(tmp_path, database_url)
    if before:
        migrate(database, lambda _: None, until=before)
    monkeypatch.setattr(migrations, "MIGRATIONS", (*MIGRATIONS[:before], broken))
    with pytest.raises(Exception, match="half"):
        migrate(database, lambda _: None)
    assert database.exists() == bool(before)
    with contextlib.closing(database.connect(readonly=True)) as connection:
        tables = {name for (name,) in connection.query(connection.dialect.tables)}
    assert "half" not in tables
    assert bool(tables) == bool(before)


def test_an_incomplete_copy_is_not_taken_for_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = SqliteDatabase(tmp_path / "tertulia.db")
    migrate(database, lambda _: None, until=3)

    def full(self: Any, path: Path) -> None:
        path.write_bytes(b"half of it")
        raise DatabaseUnavailable("The database cannot be written: disk is full")

    monkeypatch.setattr(sqlite_connection.SqliteConnection, "copy_to", full)
    with pytest.raises(DatabaseUnavailable):
        migrate(database, lambda _: None)
    assert not (tmp_path / "tertulia.db.before-migration-from-3").exists()
    with contextlib.closing(database.connect(readonly=False)) as connection:
        assert version_of(connection) == 3


# Connection poolers


@pytest.fixture
def pgbouncer(postgres_url: str, proxy: Proxy) -> Iterator[Callable[[str], Any]]:
    """Starts a PgBouncer with this pool mode in front of the server. Returns its port."""
    program = next(
        (p for p in ("/usr/sbin/pgbouncer", "/usr/bin/pgbouncer") if Path(p).exists()), None
    )
    if program is None:
        pytest.skip("PgBouncer is not installed")
    from psycopg.conninfo import conninfo_to_dict

    from tests.e2e.server import free_port

    named = conninfo_to_dict(postgres_url)

    @contextmanager
    def start(mode: str) -> Iterator[int]:
        port = free_port()
        # It refuses to run as root, and must be able to read this.
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pgbouncer-")))
        directory.chmod(0o777)
        user = named["user"]
        (directory / "users").write_text(f'"{user}" ""\n')
        (directory / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={proxy.port} user={user}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"unix_socket_dir =\nauth_type = any\nauth_file = {directory / 'users'}\n"
            f"pool_mode = {mode}\ndefault_pool_size = 20\nlogfile = {directory / 'log'}\n"
            f"ignore_startup_parameters = options,extra_float_digits\n"
        )
        for path in directory.iterdir():
            path.chmod(0o644)
        process = subprocess.Popen(
            [program, "-u", "nobody", str(directory / "ini")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield port
        finally:
            process.terminate()
            process.wait(HANG_SECONDS)

    with contextlib.ExitStack() as stack:
        yield start


def connected(url: str) -> None:
    """Connect once something listens there."""
    deadline = time.monotonic() + HANG_SECONDS
    while True:
        try:
            PostgresDatabase(url).connect(readonly=True).close()
            return
        except DatabaseUnavailable:
            if time.monotonic() > deadline:
                raise


@pytest.mark.parametrize("mode", ["transaction", "session"])
def test_a_pooler_must_keep_sessions(pgbouncer: Any, postgres_url: str, mode: str) -> None:
    with pgbouncer(mode) as port:
        url = servers.through(postgres_url, port)
        if mode == "session":
            connected(url)
            return
        with pytest.raises(DatabaseError, match="pool_mode = session"):
            connected(url)


class Pooled:
    """A connection to a pooler with one session for all clients, or a new one each time."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self.ends = 0.0

    def execute(self, sql: str, parameters: Any = ()) -> Any:
        return self._session().execute(sql, parameters)

    def close(self) -> None:
        pass


@pytest.mark.parametrize("is_fresh", [False, True])
def test_shared_or_changing_sessions_are_refused(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, is_fresh: bool
) -> None:
    import psycopg

    with contextlib.ExitStack() as stack:
        one = stack.enter_context(psycopg.connect(postgres_url, autocommit=True))

        def session() -> Any:
            if not is_fresh:
                return one
            return stack.enter_context(psycopg.connect(postgres_url, autocommit=True))

        monkeypatch.setattr(
            postgres_driver.DeadlineConnection, "connect", lambda *_, **__: Pooled(session)
        )
        with pytest.raises(DatabaseError, match="pooler"):
            postgres._require_direct(postgres_url)


# A server that freezes or stops


@pytest.fixture
def server() -> Iterator[servers.Standalone]:
    with servers.standalone() as server:
        if server is None:
            pytest.skip("the programs of PostgreSQL are not installed")
        yield server


async def answers_from_memory(org: Organization) -> None:
    ann = org["ann"]
    for path in ("/users", "/users/me", "/streams", "/users/me/subscriptions", "/realm/emoji"):
        assert (await ends(ann.get(path))).status == 200, path
    assert (await ends(org.nobody.get("/server_settings"))).ok["realm_name"] == "Example"


async def nothing_breaks(org: Organization) -> None:
    """Every request gets a response without an internal error."""
    ann = org["ann"]
    for path in (
        "/messages?anchor=first_unread&num_before=1&num_after=1",
        '/messages?anchor=newest&num_before=1&num_after=1&narrow=[{"operator":"search","operand":"x"}]',
        "/messages/1/history",
        "/messages/1/read_receipts",
        "/events?queue_id=none&last_event_id=0&dont_block=true",
        "/users/me/1/topics",
        "/attachments",
        "/drafts",
        "/scheduled_messages",
    ):
        assert (await ends(ann.get(path))).status in {200, 400, 503}, path
    for page in ("/", "/login", "/api", "/user_uploads/1/x/y.txt", "/avatar/1", "/health"):
        response = await ends(org.http.get(page))
        assert response.status_code < 500 or response.status_code == 503, page
    assert (await ends(org.http.get("/ready"))).status_code == 503


async def refuses(org: Organization, asked: Any) -> None:
    reply = await ends(asked)
    reply.refused("SERVER_NOT_READY", 503)
    assert reply.headers["retry-after"] == "1"
    assert "postgres" not in str(reply.body).lower()


@pytest.mark.parametrize("way", ["killed", "paused"])
async def test_a_database_that_disappears_and_returns(
    server: servers.Standalone,
    tmp_path: Path,
    short_limits: None,
    no_jobs: None,
    way: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # (`wire/test_readiness.py` tests for how long a node answers from memory.)
    monkeypatch.setattr(health, "STALE_SECONDS", HANG_SECONDS)
    monkeypatch.setattr(head_watch, "PROOF_SECONDS", 0)
    config = Config(
        data_dir=str(tmp_path / "data"),
        database_url=server.url,
        external_url="http://chat.test",
        rate_limits=False,
    )
    page = {"anchor": "newest", "num_before": 10, "num_after": 0}
    message = {"type": "channel", "to": "lounge", "topic": "t", "content": "meanwhile"}
    async with new_organization(config) as org:
        ann = org["ann"]
        await org.channel("lounge", "ann")
        sent = await ann.send("lounge", "t", "before")
        server.kill() if way == "killed" else server.pause()
        await answers_from_memory(org)
        await refuses(org, ann.get("/messages", **page))
        await refuses(org, ann.get(f"/messages/{sent}"))
        await nothing_breaks(org)
        await answers_from_memory(org)
        await refuses(org, ann.post("/messages", **message))
        server.start() if way == "killed" else server.resume()
        await until_it_reads(org.node.store)
        await org.node.log.catch_up()
        assert (await ends(ann.get(f"/messages/{sent}"))).status == 200
        assert await ends(ann.send("lounge", "t", "after")) > sent
