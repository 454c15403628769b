"""Readiness: what a node reports, and what it refuses while its state may be outdated."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import apsw
import pytest

from tertulia.log import forwarding, head_watch, health, requests
from tertulia.log import log as log_module
from tertulia.log.health import not_done_error
from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.store.database import WRITING, Connection, ConnectionLost, DatabaseUnavailable
from tertulia.store.log_formats import LOG_FORMAT
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.store import SQLITE_FILE
from tests.support import Organization, open_organization, until
from tests.unit.test_log import Counting, assert_true_to_the_tables, create, other_log

pytestmark = pytest.mark.usefixtures("no_jobs")


@pytest.fixture
def counting(org: Organization, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    with closing(Counting(org.node.store, monkeypatch)) as counting:
        yield counting


async def problems(org: Organization) -> list[str]:
    """What /ready reports, or nothing if it's 200."""
    assert (await org.http.get("/health")).status_code == 200
    response = await org.http.get("/ready")
    if response.status_code == 200:
        assert response.json()["status"] == "ready"
        return []
    assert response.status_code == 503
    assert response.json()["status"] == "not ready"
    found: list[str] = response.json()["problems"]
    assert found
    return found


async def away(*_: Any, **__: Any) -> Any:
    raise DatabaseUnavailable("away")


# How old a node's state may be


async def test_a_node_without_notifications_checks_by_itself(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the connection for notifications is silent."""
    monkeypatch.setattr(head_watch, "LOOK_SECONDS", 0)
    monkeypatch.setattr(log_module, "TICK_SECONDS", 0.01)
    monkeypatch.setattr(type(org.node.store), "watch", lambda *_: lambda: None)  # For the next one.
    async with open_organization(config) as deaf:
        ben = await deaf["ben"].register()
        waiting = asyncio.create_task(
            deaf["ben"].get("/events", queue_id=ben.queue_id, last_event_id=ben.last_event_id)
        )
        await until(lambda: deaf.node.delivery.waiting == 1)
        (await org["ann"].delete(f"/users/{org['ben'].user_id}")).ok
        (await waiting).refused("USER_DEACTIVATED", 401)
        (await deaf["ben"].get("/users/me")).refused("USER_DEACTIVATED", 401)


async def test_a_node_that_cannot_check_its_state_answers_nothing(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = org.node.log
    ben = await org["ben"].register()
    waiting = asyncio.create_task(
        org["ben"].get("/events", queue_id=ben.queue_id, last_event_id=ben.last_event_id)
    )
    await until(lambda: org.node.delivery.waiting == 1)
    with monkeypatch.context() as patch:
        patch.setattr(org.node.store, "look", away)
        # The file watch may cause a read of the log at any time.
        patch.setattr(log.freshness, "verified", lambda _: None)
        log.freshness.verified_at = time.monotonic() - health.STALE_SECONDS - 1
        await log._head_watch.look()
        log._tick()
        reply = await waiting
        reply.refused("SERVER_NOT_READY", 503)
        assert reply.headers["retry-after"] == "1"
        (await org["ben"].get("/users/me")).refused("SERVER_NOT_READY", 503)
        (await org["ann"].post("/messages", type="direct", to=[1], content="x")).refused(
            "SERVER_NOT_READY", 503
        )
        for path in ("/login", "/user_uploads/1/x", "/"):
            assert (await org.http.get(path)).status_code == 503
        reply = await org["ben"].get("/events", queue_id=ben.queue_id, last_event_id=-1)
        reply.refused("SERVER_NOT_READY", 503)
        with pytest.raises(Unavailable):
            await org.node.delivery.poll(
                ben.queue_id, org["ben"].user_id, ben.last_event_id, block=True
            )
        (problem,) = await problems(org)
        assert "up to date" in problem
        assert "DatabaseUnavailable" in problem
        assert "away" not in problem, "what errors say is for the log"
    await log._head_watch.look()
    log._tick()
    (await org["ben"].get("/users/me")).ok
    assert await problems(org) == []


async def test_a_node_that_keeps_getting_announcements_knows_that_it_is_current(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whenever it checks, it has moved on by the end: to where the head was."""
    log, real = org.node.log, org.node.store.look
    long_ago = time.monotonic() - health.STALE_SECONDS - 1

    async def look() -> Any:
        await log.submit(None, create, "meanwhile")
        log.freshness.verified_at = long_ago  # It must not know from an announcement.
        return await real()

    monkeypatch.setattr(org.node.store, "look", look)
    await log._head_watch.look()
    assert not log.freshness.is_stale


async def test_a_hanging_writer_makes_the_node_stale_if_others_write(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Being able to read the head doesn't mean that the state is up to date."""
    log, gate = org.node.log, asyncio.Event()
    real = org.node.store.begin

    async def begin(after: Any, *more: Any) -> Any:
        await gate.wait()
        return await real(after, *more)

    monkeypatch.setattr(org.node.store, "begin", begin)
    # While it waits, announcements would update it; here they are lost.
    monkeypatch.setattr(log._replica, "hear", lambda _: True)
    sending = asyncio.create_task(log.submit(None, create, "one"))
    async with other_log(config) as other:
        await other.submit(None, create, "other")
    log.freshness.verified_at = time.monotonic() - health.STALE_SECONDS - 1
    await log._head_watch.look()
    (await org["ben"].get("/users/me")).refused("SERVER_NOT_READY", 503)
    gate.set()
    assert await sending == 2
    (await org["ben"].get("/users/me")).ok


# Newer programs


@pytest.mark.parametrize(
    "statement",
    [
        f"UPDATE head SET schema_version = {len(MIGRATIONS) + 1}",
        f"UPDATE head SET log_format = {LOG_FORMAT + 1}",
    ],
    ids=["migrated", "format"],
)
@pytest.mark.parametrize("met", ["begin", "look"])
async def test_an_outdated_program_decides_nothing(
    org: Organization, statement: str, met: str, caplog: pytest.LogCaptureFixture
) -> None:
    log = org.node.log
    told: list[str] = []
    log.subscribers.on_newer.append(told.append)
    await org.node.store.write(lambda c: c.run(statement))
    if met == "begin":
        # The node's own check may have come first, and then it reports that it isn't up to date.
        with pytest.raises(Unavailable, match=r"Nothing was changed|up to date"):
            await log.submit(None, create, "one")
    else:
        await log._head_watch.look()
    await until(lambda: bool(told))
    assert "newer version" in told[0]
    assert any("newer version" in problem for problem in await problems(org))
    assert "too old for the database" in caplog.text
    (await org["ben"].get("/users/me")).refused("SERVER_NOT_READY", 503)
    with pytest.raises(Unavailable):
        await log.submit(None, create, "two")
    assert log.state.channel_named("one") is None


async def test_an_entry_of_an_unknown_kind_is_from_a_newer_program(
    org: Organization,
) -> None:
    log = org.node.log
    told: list[str] = []
    log.subscribers.on_newer.append(told.append)

    def write(connection: Connection) -> None:
        connection.run(
            "INSERT INTO log (seq, at, change, batch) VALUES (?, 1.0, ?, 'b')",
            (log.durable + 1, '{"type":"CarpetFlown","height":3}'),
        )
        connection.run("UPDATE head SET seq = seq + 1, batch = 'b'")

    await org.node.store.write(write)
    with pytest.raises(Unavailable):
        await log.submit(None, create, "one")
    # The node may have met it first.
    await until(lambda: bool(told))
    assert "CarpetFlown" in told[0]
    assert any("CarpetFlown" in problem for problem in await problems(org))


# Writing


async def test_if_nothing_can_be_written_reads_continue_and_everything_recovers(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    await org.channel("lounge", "ann")
    await org["ann"].send("lounge", "t", "before")
    counting.breaks, counting.error = {"commit"}, apsw.FullError
    generation = log.durability.generation
    for _ in range(10):
        reply = await org["ann"].post(
            "/messages", type="channel", to="lounge", topic="t", content="x"
        )
        assert "Nothing was changed" in reply.refused("SERVER_NOT_READY", 503)["msg"]
        await log.catch_up()
        found = await org["ann"].get("/messages", anchor="newest", num_before=5, num_after=0)
        assert [message["content"] for message in found.ok["messages"]] == ["<p>before</p>"]
        (await org["ann"].post("/register")).refused("SERVER_NOT_READY", 503)
    assert log.durability.generation == generation + 1, "the state is loaded again once"
    (problem,) = await problems(org)
    assert "can't write to the database" in problem
    assert "FullError" in problem
    counting.breaks = set()
    log._tick()  # As it does every second.
    await until(lambda: not log.problems())
    assert await problems(org) == []
    await org["ann"].send("lounge", "t", "after")
    await assert_true_to_the_tables(log)


async def test_ready_tests_the_writer_if_it_has_not_written_lately(
    org: Organization, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = org.node.log
    assert await problems(org) == []
    counting.commits = 0
    assert await problems(org) == []
    assert counting.commits == 0, "what was written just now is proof"
    monkeypatch.setattr(head_watch, "PROOF_SECONDS", -1)
    assert await problems(org) == []
    assert counting.commits == 1
    counting.breaks = {"commit"}
    assert any("can't write to the database" in problem for problem in await problems(org))
    counting.breaks = {"begin"}
    assert any("can't write to the database" in problem for problem in await problems(org))
    counting.breaks = set()
    assert await problems(org) == []
    counting.gate = asyncio.Event()
    monkeypatch.setattr(head_watch, "PROOF_WAIT_SECONDS", 0.01)
    (problem,) = await problems(org)
    assert "didn't respond" in problem
    log.freshness.busy_since = time.monotonic() - health.STALE_SECONDS - 1
    assert any("waiting for the database" in problem for problem in await problems(org))
    counting.gate.set()


async def test_a_connection_lost_in_the_meantime_is_replaced_silently(
    org: Organization, counting: Counting
) -> None:
    real, lost = org.node.store.begin, [ConnectionLost("lost")]

    async def begin(after: Any, *more: Any) -> Any:
        if lost:
            raise lost.pop()
        return await real(after, *more)

    org.node.store.begin = begin  # type: ignore[method-assign,assignment]  # The fixture puts it back.
    generation = org.node.log.durability.generation
    assert await org.node.log.submit(None, create, "one") == 1
    assert org.node.log.durability.generation == generation


async def test_a_lock_held_by_another_program_is_waited_for_once(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts = 0

    async def begin(*_: Any) -> Any:
        nonlocal attempts
        # The node's probe tries, too.
        in_hand = org.node.log._inbox._in_hand
        attempts += any(getattr(one, "actor_id", 0) == org["ann"].user_id for one in in_hand)
        raise DatabaseUnavailable("Another process does not let go of it.")

    with monkeypatch.context() as patch:
        patch.setattr(org.node.store, "begin", begin)
        answer = await org["ann"].post("/users/me/status", status_text="busy")
        assert "Nothing was changed" in answer.refused("SERVER_NOT_READY", 503)["msg"]
        assert answer.headers["Retry-After"] == "1"
        assert attempts == 1
    (await org["ann"].post("/users/me/status", status_text="busy")).ok


def test_a_send_is_answered_within_ten_seconds_whatever_blocks_the_database() -> None:
    most = health.BEGIN_SECONDS + log_module.TICK_SECONDS + forwarding.FORWARDED_SECONDS
    assert most < 10
    assert WRITING.idle < health.BEGIN_SECONDS < WRITING.lock


async def test_a_committed_change_is_not_reported_as_failed_because_of_another(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next commit, which fails, is someone else's."""

    async def settled(_: int | None = None) -> None:
        raise not_done_error()

    with monkeypatch.context() as patch:
        patch.setattr(org.node.log.durability, "settled", settled)
        answer = await org["ann"].post("/users/me/status", status_text="busy")
        assert "may not have been saved" in answer.refused("SERVER_NOT_READY", 503)["msg"]
    status = (await org["ann"].get(f"/users/{org['ann'].user_id}/status")).ok["status"]
    assert status["status_text"] == "busy"


async def test_a_command_that_waits_too_long_is_refused_and_not_run_later(
    org: Organization, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, gate = org.node.log, asyncio.Event()
    real = org.node.store.begin

    async def begin(after: Any, *more: Any) -> Any:
        counting.begins += 1
        await gate.wait()
        return await real(after, *more)

    monkeypatch.setattr(org.node.store, "begin", begin)
    counting.begins = 0
    waiting = [asyncio.create_task(log.submit(None, create, "one"))]
    await until(lambda: counting.begins == 1)
    waiting.append(asyncio.create_task(log.submit(None, create, "two")))
    waiting.append(
        asyncio.create_task(log.snapshot(None, lambda _: None, lambda state, _: state.seq))
    )
    await asyncio.sleep(0)
    log._tick()
    assert not any(task.done() for task in waiting)
    with monkeypatch.context() as patch:
        patch.setattr(requests, "BEGIN_SECONDS", 0)
        log._tick()
    for task in waiting:
        with pytest.raises(Unavailable, match="Nothing was changed"):
            await task
    gate.set()
    assert await log.submit(None, create, "three") == 1
    assert log.state.channel_named("one") is None
    await assert_true_to_the_tables(log)


async def test_a_reader_does_not_wait_forever_for_a_commit(
    org: Organization, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, counting.gate = org.node.log, asyncio.Event()
    sending = asyncio.create_task(log.submit(None, create, "one"))
    await until(lambda: counting.commits == 1)
    looking = asyncio.create_task(org.nobody.get("/server_settings"))
    for _ in range(20):
        await asyncio.sleep(0)
    with monkeypatch.context() as patch:
        patch.setattr(health, "BEGIN_SECONDS", -1)
        log._tick()
    (await looking).refused("SERVER_NOT_READY", 503)
    counting.gate.set()
    assert await sending == 1
    (await org.nobody.get("/server_settings")).ok


async def test_waiting_requests_are_limited(
    org: Organization, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(requests, "MOST_WAITING", 3)
    log, counting.gate = org.node.log, asyncio.Event()
    first = asyncio.create_task(log.submit(None, create, "first"))
    await until(lambda: counting.commits == 1)
    waiting = [asyncio.create_task(log.submit(None, create, f"c{n}")) for n in range(4)]
    for _ in range(3):
        await asyncio.sleep(0)
    with pytest.raises(Unavailable, match="Too many"):
        await waiting[-1]
    counting.gate.set()
    assert len(await asyncio.gather(first, *waiting[:-1])) == 4


async def test_a_replaced_database_file_is_not_served(org: Organization, config: Config) -> None:
    if org.node.store.is_shared:
        return
    path = config.data_path / SQLITE_FILE
    away = path.with_name("away.db")
    path.rename(away)
    path.write_bytes(b"")
    await org.node.log._head_watch.look()
    (await org["ben"].get("/users/me")).refused("SERVER_NOT_READY", 503)
    assert any("replaced" in problem for problem in await problems(org))
    away.replace(path)
    await org.node.log._head_watch.look()
    (await org["ben"].get("/users/me")).ok
