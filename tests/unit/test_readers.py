"""Reader threads are shared fairly among people, searches, and the server itself."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from contextvars import copy_context
from pathlib import Path
from typing import Any

import apsw
import pytest

from tertulia.model.errors import SearchTooSlow, TooOften, Unavailable
from tertulia.store import readers
from tertulia.store.database import Connection, DatabaseUnavailable, Row
from tertulia.store.readers import Person, Readers, Requester, current_requester
from tertulia.store.sqlite import SqliteDatabase
from tertulia.store.store import database_at
from tests.support import until

THREADS = 3
PATIENCE = 60.0
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT COUNT(*) FROM n"


class Served:
    """Readers, and the order in which reads started."""

    def __init__(self, sqlite_org: Readers) -> None:
        self.readers = sqlite_org
        self.order: list[str] = []
        """The reads that a thread has started, by name."""
        self.tasks: list[asyncio.Task[Any]] = []
        self._gates: list[threading.Event] = []

    def ask(
        self,
        person: Person,
        name: str,
        *,
        searches: bool = False,
        gate: threading.Event | None = None,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> asyncio.Task[Any]:
        """Start a read that records its name and ends when its gate opens."""

        def look(_: Connection) -> str:
            self.order.append(name)
            if gate is not None:
                gate.wait(PATIENCE)
            return name

        return self.begin(person, look, searches=searches, is_gone=is_gone)

    def begin(
        self,
        person: Person,
        look: Callable[[Connection], Any],
        *,
        searches: bool = False,
        is_gone: Callable[[], bool] = lambda: False,
    ) -> asyncio.Task[Any]:
        context = copy_context()
        context.run(current_requester.set, Requester(person, is_gone))
        work = self.readers.search(look) if searches else self.readers.read(look, PATIENCE)
        task = asyncio.get_running_loop().create_task(work, context=context)
        self.tasks.append(task)
        return task

    def gate(self) -> threading.Event:
        made = threading.Event()
        self._gates.append(made)
        return made

    async def settled(self) -> list[Any]:
        """Open all gates, and wait for all reads."""
        for gate in self._gates:
            gate.set()
        return await asyncio.gather(*self.tasks, return_exceptions=True)


@asynccontextmanager
async def sharing(path: Path) -> AsyncIterator[Served]:
    database = SqliteDatabase(path / "readers.db")
    served = Served(Readers(database, THREADS, "reader"))
    try:
        yield served
    finally:
        await served.settled()
        served.readers.close()
        database.close()


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Served]:
    # Even on a busy machine, nothing here depends on time.
    monkeypatch.setattr(readers, "SEARCH_WAIT_SECONDS", PATIENCE)
    monkeypatch.setattr(readers, "SEARCH_SECONDS", PATIENCE)
    async with sharing(tmp_path) as made:
        yield made


async def test_a_page_is_read_while_searches_wait(served: Served) -> None:
    gate = served.gate()
    for person in range(1, 6):
        served.ask(person, f"search of {person}", searches=True, gate=gate)
    served.ask(None, "job", gate=gate)
    await until(lambda: len(served.order) == THREADS - 1)
    # Both the searchers' own pages and those of people who don't search.
    assert [await served.ask(person, "page") for person in (1, 9, "192.0.2.1")] == ["page"] * 3
    assert served.order[THREADS - 1 :] == ["page"] * 3


async def test_a_member_s_search_does_not_wait_for_strangers(served: Served) -> None:
    gate = served.gate()
    for number in range(9):
        served.ask(f"2001:db8:0:{number}::/64", f"stranger {number}", searches=True, gate=gate)
    await until(lambda: bool(served.order))
    assert await served.ask(1, "member", searches=True) == "member"
    assert served.order == ["stranger 0", "member"]
    gate.set()
    await asyncio.gather(*served.tasks)
    assert len(served.order) == 10


async def test_people_with_waiting_searches_take_turns(served: Served) -> None:
    others, last = served.gate(), served.gate()
    served.ask(None, "job", gate=others)
    served.ask(9, "first", searches=True, gate=last)
    for number in (1, 2, 3):
        served.ask(1, f"a{number}", searches=True)
    await asyncio.sleep(0)
    for person, name in ((2, "b1"), (2, "b2"), ("192.0.2.1", "c1")):
        served.ask(person, name, searches=True)
    await asyncio.sleep(0)
    last.set()
    await asyncio.gather(*served.tasks[1:])
    order = [name for name in served.order if name != "job"]
    assert order == ["first", "a1", "b1", "c1", "a2", "b2", "a3"]


async def test_one_search_of_a_person_runs_at_a_time_and_few_wait(served: Served) -> None:
    gate = served.gate()
    for number in range(readers.MOST_SEARCHES):
        served.ask(1, f"a{number}", searches=True, gate=gate)
    await asyncio.sleep(0)
    with pytest.raises(TooOften, match="too many requests"):
        await served.ask(1, "one more", searches=True)
    assert await served.ask(2, "other", searches=True) == "other"
    assert await served.ask(1, "page") == "page"
    await until(lambda: "a0" in served.order)
    assert not {f"a{number}" for number in range(1, 9)} & {*served.order}
    gate.set()
    await asyncio.gather(*served.tasks, return_exceptions=True)
    assert await served.ask(1, "again", searches=True) == "again"


async def test_a_person_s_reads_are_limited(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST_READS", 36)
    gate = served.gate()
    for number in range(4):
        served.ask(1, f"page {number}", gate=gate)
    await asyncio.sleep(0)
    with pytest.raises(TooOften):
        await served.ask(1, "one more")
    assert await served.ask(2, "other") == "other"


async def test_a_few_people_leave_room_for_others(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST_READS", 80)
    gate = served.gate()

    def accepted() -> int:
        return sum(not task.done() for task in served.tasks)

    async def ask(people: Iterable[Person], reads: int) -> int:
        """How many reads are accepted if each person requests this many."""
        before = accepted()
        for person in people:
            for number in range(reads):
                served.ask(person, f"{number} of {person}", gate=gate)
        await asyncio.sleep(0)
        return accepted() - before

    assert await ask([None], 90) == 40
    assert 10 < await ask(range(5), 90) < 30
    assert await ask(range(10, 20), 1) == 10
    # Only very many people together can fill it.
    assert await ask(range(20, 50), 1) < 30
    assert accepted() == 80
    with pytest.raises(DatabaseUnavailable, match="too busy"):
        await served.tasks[-1]
    found = await served.settled()
    assert {type(one) for one in found} == {str, TooOften, DatabaseUnavailable}
    assert await served.ask(60, "later") == "later"


async def test_searches_of_disconnected_clients_are_not_started(served: Served) -> None:
    gate, gone = served.gate(), threading.Event()
    first = served.ask(1, "first", searches=True, gate=gate)
    given_up = [
        served.ask(1, f"gone {number}", searches=True, is_gone=gone.is_set)
        for number in range(readers.MOST_SEARCHES - 1)
    ]
    await asyncio.sleep(0)
    gone.set()
    # They leave their places to others.
    later = [served.ask(1, name, searches=True) for name in ("cancelled", "later")]
    for task in given_up:
        with pytest.raises(Unavailable, match="closed the connection"):
            await task
    later[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await later[0]
    gate.set()
    assert [await first, await later[1]] == ["first", "later"]
    assert served.order == ["first", "later"]


async def test_people_with_only_abandoned_searches_are_forgotten(served: Served) -> None:
    gate, gone = served.gate(), threading.Event()
    for number in range(THREADS - 1):
        served.ask(number, "search", searches=True, gate=gate)
    given_up = [
        served.ask(f"192.0.2.{number}", "gone", searches=True, is_gone=gone.is_set)
        for number in range(5)
    ]
    await asyncio.sleep(0)
    gone.set()
    gate.set()
    for task in given_up:
        with pytest.raises(Unavailable):
            await task
    await asyncio.gather(*served.tasks, return_exceptions=True)
    await until(lambda: not served.readers._lines)


async def test_a_search_ends_when_its_client_disconnects(served: Served) -> None:
    begun, gone = threading.Event(), threading.Event()

    def look(connection: Connection) -> None:
        begun.set()
        connection.query(ENDLESS)

    search = served.begin(1, look, searches=True, is_gone=gone.is_set)
    await asyncio.to_thread(begun.wait, PATIENCE)
    gone.set()
    with pytest.raises(SearchTooSlow):
        await search
    # The same after a cancellation: its thread is free again.
    for person in (1, 2, 3):
        begun.clear()
        cancelled = served.begin(person, look, searches=True)
        await asyncio.to_thread(begun.wait, PATIENCE)
        cancelled.cancel()
        with suppress(asyncio.CancelledError):
            await cancelled
    assert await served.ask(1, "next", searches=True) == "next"


async def test_a_search_that_takes_too_long_is_refused(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "SEARCH_SECONDS", 0.2)
    database = database_at(tmp_path, database_url)
    shared = Readers(database, 1, "reader")
    used: list[Connection] = []

    def search(connection: Connection) -> None:
        used.append(connection)
        connection.query("SELECT 1")
        connection.query(ENDLESS)

    def read(connection: Connection) -> list[Row]:
        used.append(connection)
        return connection.query("SELECT 1")

    try:
        for _ in range(2):
            with pytest.raises(SearchTooSlow, match="takes too long"):
                await shared.search(search)
            assert await shared.read(read, PATIENCE) == [(1,)]
        assert len(set(map(id, used))) == 1  # It keeps its cache.
    finally:
        shared.close()
        database.close()


async def test_a_search_that_waits_too_long_is_refused(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = served.gate()
    served.ask(1, "first", searches=True, gate=gate)
    await asyncio.sleep(0)
    monkeypatch.setattr(readers, "SEARCH_WAIT_SECONDS", 0.01)
    with pytest.raises(Unavailable, match="busy with other searches"):
        await served.ask(1, "second", searches=True)
    gate.set()
    await served.settled()
    assert served.order == ["first"]


async def test_a_file_reader_caches_few_pages(tmp_path: Path) -> None:
    database = SqliteDatabase(tmp_path / "readers.db")
    writing = database.connect(readonly=False)
    writing.run("CREATE TABLE large (content BLOB)")
    writing.run(
        "INSERT INTO large WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"
        " SELECT zeroblob(50000) FROM n LIMIT 200"
    )
    shared = Readers(database, 1, "reader")

    def kept(connection: Any) -> int:
        connection.query("SELECT SUM(length(hex(content))) FROM large")
        (size, _) = connection.driver.status(apsw.SQLITE_DBSTATUS_CACHE_USED)
        return int(size)

    try:
        assert 1_000_000 < await shared.read(kept, PATIENCE) < 2_500_000
        # Writing a message touches pages all over the indexes.
        assert kept(writing) > 6_000_000
    finally:
        shared.close()
        writing.close()
        database.close()
