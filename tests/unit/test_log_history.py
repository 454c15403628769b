"""A database that goes back in time: a restored snapshot, or a log that lost its end."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tertulia.log.head_watch import FILE, PositionFile
from tertulia.model.changes import RealmChanged
from tertulia.model.errors import NoSuchQueue, Unavailable
from tertulia.service.config import Config
from tertulia.store import installation, log_entries, migrations
from tertulia.store.codec import decode_entry
from tertulia.store.database import Connection
from tertulia.store.installation import NewerDatabase, Position
from tertulia.store.log_formats import LOG_FORMAT
from tertulia.store.schema_upgrade import migrate
from tertulia.store.store import database_at
from tests.support import Listener, Organization, new_organization, open_organization, until
from tests.unit.test_log import assert_true_to_the_tables, create, other_log, rename

pytestmark = pytest.mark.usefixtures("anyio_backend")

Copy = Mapping[str, tuple[list[str], list[Any]]]


def copied(connection: Connection) -> Copy:
    """The content of every table."""
    found = {}
    for (table,) in connection.query(connection.dialect.tables):
        columns = [name for name, _ in connection.query(connection.dialect.columns, (table,))]
        found[table] = (columns, connection.query(f"SELECT {', '.join(columns)} FROM {table}"))
    return found


def put_back(connection: Connection, copy: Copy) -> None:
    """Restore the tables."""
    for table, (columns, rows) in copy.items():
        connection.run(f"DELETE FROM {table}")
        holes = ", ".join("?" for _ in columns)
        connection.run_many(f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({holes})", rows)


async def renamed(org: Organization, *names: str) -> None:
    for name in names:
        await org.do(RealmChanged(values={"name": name}))


async def assert_ended(org: Organization, listener: Listener) -> None:
    """The client is told to register again."""
    for last in (-1, listener.last_event_id):
        reply = await org[listener.person.email.partition("@")[0]].get(
            "/events", queue_id=listener.queue_id, last_event_id=last, dont_block=True
        )
        reply.refused("BAD_EVENT_QUEUE_ID")


@pytest.mark.parametrize("grown", [0, 2, 5], ids=["shorter", "as long", "longer"])
async def test_a_running_node_notices_and_ends_the_queues(
    org: Organization, config: Config, grown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, store = org.node.log, org.node.store
    before = log.position.history
    await renamed(org, "first")
    ben = await org["ben"].register()
    copy = await store.read(copied)
    await renamed(org, "second", "third")
    assert len(await ben.events()) == 2
    waiting = asyncio.create_task(
        org.node.delivery.poll(ben.queue_id, org["ben"].user_id, ben.last_event_id, block=True)
    )
    await until(lambda: org.node.delivery.waiting == 1)
    # The node notices when it looks at the head: only in the next lines, since nothing else writes.
    monkeypatch.setattr(log._head_watch, "tick", lambda: None)
    stop, log._stop_listening = log._stop_listening, None
    assert stop is not None
    await asyncio.to_thread(stop)
    async with other_log(config) as other:
        await store.write(lambda c: put_back(c, copy))
    async with other_log(config) as other:
        for number in range(grown):
            # A job of the node may have noticed first, and given the log another identity.
            with contextlib.suppress(Unavailable):
                await other.submit(None, rename, f"other {number}")
    await log._head_watch.look()
    with pytest.raises(NoSuchQueue):
        await waiting
    assert log.position.history != before
    await assert_ended(org, ben)
    await assert_true_to_the_tables(log)
    again = await org["ben"].register()
    await renamed(org, "fourth")
    assert [event["value"] for event in await again.events()] == ["fourth"]
    assert log.problems() == []


async def test_no_command_is_decided_with_a_state_that_no_longer_exists(
    org: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    log, store = org.node.log, org.node.store
    copy = await store.read(copied)
    ids = [await log.submit(None, create, name) for name in ("one", "two")]
    await store.write(lambda c: put_back(c, copy))
    await asyncio.gather(log.submit(None, create, "three"), return_exceptions=True)
    assert await log.submit(None, create, "four") in ids
    assert log.state.channel_named("one") is None
    await assert_true_to_the_tables(log)
    assert "went back in time" in caplog.text


async def test_every_node_ends_its_queues_and_one_sets_the_new_identity(
    org: Organization, config: Config
) -> None:
    async with open_organization(config) as second:
        copy = await org.node.store.read(copied)
        listeners = []
        for place in (org, second):
            await renamed(place, "later")
            listeners.append(await place["ben"].register())
            await renamed(place, "later still")
            await listeners[-1].events()
        await org.node.store.write(lambda c: put_back(c, copy))
        for place in (org, second):
            await place.node.log._head_watch.look()
            await until(lambda: place.node.log.durable == copy["head"][1][0][1])  # noqa: B023
        assert org.node.log.position == second.node.log.position
        for place in (org, second):
            for listener in listeners:
                await assert_ended(place, listener)
        anew = await org["ben"].register()
        await renamed(second, "anew")
        await org.node.log.catch_up()
        assert [event["value"] for event in await anew.events()] == ["anew"]


@pytest.mark.parametrize("grown", [0, 2, 5], ids=["shorter", "as long", "longer"])
async def test_a_starting_server_notices_by_its_position_file(config: Config, grown: int) -> None:
    async with new_organization(config) as org:
        ann = await org["ann"].register()
        await renamed(org, "first")
        copy = await org.node.store.read(copied)
        await renamed(org, "second", "third")
        await ann.events()
    async with other_log(config) as log:
        await log.store.write(lambda c: put_back(c, copy))
    async with other_log(config) as log:
        for number in range(grown):
            await log.submit(None, rename, f"other {number}")
    async with open_organization(config) as org:
        await assert_ended(org, ann)
        await assert_true_to_the_tables(org.node.log)


async def test_without_a_position_file_a_queue_beyond_the_log_ends(
    config: Config,
) -> None:
    async with new_organization(config) as org:
        ann = await org["ann"].register()
        copy = await org.node.store.read(copied)
        await renamed(org, "first", "second")
        late = await org["ann"].register()
        await ann.events()
    (config.data_path / FILE).unlink()
    rows = dict(copy)
    async with other_log(config) as log:
        rows["queues"] = (await log.store.read(copied))["queues"]
        await log.store.write(lambda c: put_back(c, rows))
    async with open_organization(config) as org:
        reply = await org["ann"].get(
            "/events", queue_id=ann.queue_id, last_event_id=ann.last_event_id, dont_block=True
        )
        reply.refused("BAD_EVENT_QUEUE_ID")
        await assert_ended(org, late)
        await renamed(org, "third", "fourth", "fifth")
        await assert_ended(org, ann)
        await assert_ended(org, late)


async def test_a_restart_keeps_the_history_and_its_queues(config: Config) -> None:
    async with new_organization(config) as org:
        ann = await org["ann"].register()
        await renamed(org, "first")
        before = org.node.log.position
    async with other_log(config) as log:
        await log.submit(None, rename, "meanwhile")
    async with open_organization(config) as org:
        assert org.node.log.position.history == before.history
        person = org["ann"]
        listener = Listener(person, ann.queue_id, ann.last_event_id, {})
        assert [event["value"] for event in await listener.events()] == ["first", "meanwhile"]


def test_an_unreadable_position_file_is_ignored(tmp_path: Path) -> None:
    file, position = PositionFile(tmp_path), Position("h", 7, "b")
    assert file.read() is None
    file.write(position)
    assert PositionFile(tmp_path).read() == position
    (tmp_path / FILE).write_bytes(b"{")
    assert file.read() is None


async def test_a_pruned_log_is_not_taken_for_a_restored_one(org: Organization) -> None:
    store = org.node.store
    await renamed(org, "first")
    known = org.node.log.position
    await renamed(org, "second")

    def prune(connection: Connection) -> None:
        connection.run("DELETE FROM log WHERE seq <= ?", (known.seq,))
        connection.run("UPDATE head SET pruned = ?", (known.seq,))

    await store.write(prune)
    assert not await store.read(installation.is_lost, known)


def test_queues_from_before_histories_stay_valid(
    config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    config.data_path.mkdir(parents=True, exist_ok=True)
    database = database_at(config.data_path, config.database_url)
    with monkeypatch.context() as patch:
        before = migrations.MIGRATIONS[: migrations.WITH_HISTORY - 1]
        patch.setattr(migrations, "MIGRATIONS", before)
        migrate(database, print)
    connection = database.connect(readonly=False)
    connection.run("INSERT INTO queues (id, user_id, seen_at, doc) VALUES ('q', 1, 1, '{}')")
    connection.run("UPDATE head SET seq = 1")
    connection.run("INSERT INTO log (seq, at, change) VALUES (1, 1.0, '{}')")
    migrate(database, lambda _: None)
    head = installation.head_position(connection)
    assert (head.seq, head.batch) == (1, "")
    assert head.history
    assert head.schema_version >= migrations.WITH_HISTORY
    assert head.log_format == LOG_FORMAT
    assert installation.continues_history(connection, head, head.position)
    assert connection.query("SELECT id FROM queues") == [("q",)]
    assert log_entries.head(connection) == 1
    connection.close()


# Entries of the log


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('{"type":"of_the_future"}', NewerDatabase),
        ('{"type":"user_changed"}', msgspec.ValidationError),
    ],
)
def test_only_an_unknown_kind_of_change_means_a_newer_program(
    text: str, error: type[Exception]
) -> None:
    """An unreadable change of a known kind is damage, not a sign of a newer version."""
    with pytest.raises(error):
        decode_entry(1, 1.0, None, text)
