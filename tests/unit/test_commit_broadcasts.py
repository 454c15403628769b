"""Commit announcements between nodes: in parts, lost, late, or from another log."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from typing import Any, cast

import msgspec
import pytest

from tertulia.log import head_watch
from tertulia.log.health import Freshness
from tertulia.log.log import Log
from tertulia.log.replica import LogSubscribers, Replica
from tertulia.model.changes import Entry, EventIdsUsedUp, MessageSent, RealmChanged
from tertulia.model.messages import Message
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store import broadcast, log_entries, queries
from tertulia.store.installation import Position
from tertulia.store.store import Store, database_at
from tests.support import Organization, until

pytestmark = pytest.mark.usefixtures("anyio_backend")

START = Position("h" * 16, 9_000_000, "b" * 16)


def sent(seq: int, content: str = "hello") -> Entry:
    message = Message(id=seq, sender_id=7, sent_at=5, channel_id=3, topic="t", content=content)
    return Entry(seq, 5.25, 7, MessageSent(message=message))


def test_an_announcement_equals_the_commit() -> None:
    entries = [
        sent(9_000_001, "für \u2028 \\ \" 'alle'"),
        Entry(9_000_002, 1e9 / 3, None, RealmChanged(values={"name": "N"})),
    ]
    (text,) = broadcast.encode_broadcast("me", entries, "c" * 16, START)
    assert broadcast.sender_of(text) == "me"
    told = broadcast.decode_broadcast(text, START.seq)
    assert isinstance(told, broadcast.EntryBroadcast)
    assert list(told.entries()) == entries
    assert (told.seq, told.batch) == (9_000_002, "c" * 16)
    assert told.follows(START)
    assert not told.follows(Position(START.history, START.seq, "d" * 16))
    assert not told.follows(Position("i" * 16, START.seq, START.batch))
    assert not told.follows(Position(START.history, START.seq - 1, START.batch))
    # Known entries aren't even parsed.
    assert broadcast.decode_broadcast(text, 9_000_002) == 9_000_002


@pytest.mark.parametrize("text", ["log ", "log me", "log me x []", "log me 9 {", 'log me 9 ["h"]'])
def test_an_unreadable_announcement_means_new_entries(text: str) -> None:
    assert broadcast.decode_broadcast(text, 5) in {6, 9}


def test_a_batch_is_announced_in_consecutive_parts() -> None:
    entries = [sent(START.seq + n, "ä" * 700) for n in range(1, 60)]
    texts = broadcast.encode_broadcast("me", entries, "c" * 16, START)
    assert 1 < len(texts) <= broadcast.MAX_PARTS
    position, found = START, list[Entry]()
    for text in texts:
        assert len(text.encode()) <= 7999
        told = broadcast.decode_broadcast(text, position.seq)
        assert isinstance(told, broadcast.EntryBroadcast)
        assert told.follows(position)
        position = Position(told.history, told.seq, told.batch)
        found += told.entries()
    assert found == entries


@pytest.mark.parametrize(
    "entries",
    [[sent(START.seq + 1, "x" * 8000)], [sent(START.seq + n, "x" * 5000) for n in range(1, 40)]],
    ids=["a large entry", "many"],
)
def test_an_entry_that_does_not_fit_is_announced_by_number(entries: list[Entry]) -> None:
    assert broadcast.encode_broadcast("me", entries, "c" * 16, START) == [str(entries[-1].seq)]


# Between nodes


class Other:
    """Another node's log. It counts reads of other nodes' entries, and its announcements can be
    held back, lost, or changed."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.reads = 0
        self.heard: list[str] = []
        self.has_listened = False
        self.is_deaf = False
        real_read, real_told, real_growth = log.store.read_log, log._on_broadcasts, log._on_growth

        async def read_log(*arguments: Any) -> Any:
            self.reads += 1
            return await real_read(*arguments)

        def on_broadcast(texts: Sequence[str]) -> None:
            self.heard.extend(texts)
            if not self.is_deaf:
                real_told(texts)

        def on_growth(seq: int | None) -> None:
            self.has_listened = True
            if not self.is_deaf:
                real_growth(seq)

        log.store.read_log = read_log  # type: ignore[method-assign,assignment]
        log._on_broadcasts = on_broadcast  # type: ignore[method-assign]
        log._on_growth = on_growth  # type: ignore[method-assign]

    async def has(self, log: Log) -> None:
        """Return when it has all entries of this node."""
        await until(lambda: self.log.position == log.position)


@pytest.fixture
async def other(
    config: Config, org: Organization, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Other]:
    if not config.database_url:
        pytest.skip("the processes beside a server's file tell it nothing")
    # Without announcements it learns nothing, however slow the machine is.
    monkeypatch.setattr(head_watch, "LOOK_SECONDS", 1000.0)
    store = Store(database_at(config.data_path, config.database_url))
    log = Log(store)
    other = Other(log)
    await log.open()
    try:
        # It reads as soon as it listens.
        await until(lambda: other.has_listened)
        await until(lambda: other.log.position == org.node.log.position)
        await log.catch_up()
        other.reads = 0
        yield other
    finally:
        await log.close()
        await store.close()


def rename(context: CommandContext, name: str) -> Decision[str]:
    return Decision(context.state.realm.name, (RealmChanged(values={"name": name}),))


async def assert_same(org: Organization, other: Other) -> None:
    """Check that both have the same state, and that it's the database's."""
    await other.has(org.node.log)
    mine, theirs = org.node.log.state, other.log.state
    records = await org.node.store.read(queries.records)
    for name, table in mine.tables.items():
        assert theirs.tables[name].rows == table.rows, name
        assert len(table.rows) == len(records[name]), name
    assert theirs.seq == mine.seq


async def test_a_node_follows_announcements_without_reading(
    org: Organization, other: Other
) -> None:
    followed: list[Entry] = []
    own: list[Entry] = []
    other.log.subscribers.followers.append(followed.extend)
    org.node.log.subscribers.followers.append(own.extend)
    await org.channel("lounge", "ann", "ben")
    first = await org["ann"].send("lounge", "t", "hello @**Ben** https://example.com")
    await org["ben"].post(f"/messages/{first}/reactions", emoji_name="tada")
    await org["ann"].patch(f"/messages/{first}", content="hello again")
    await org["ann"].patch(f"/messages/{first}", topic="elsewhere")
    await org["ann"].delete(f"/messages/{first}")
    await other.has(org.node.log)
    assert followed == own
    assert other.reads == 0
    await assert_same(org, other)


async def test_both_nodes_write_in_turn_and_each_entry_counts_once(
    org: Organization, other: Other
) -> None:
    followed: list[int] = []
    other.log.subscribers.followers.append(lambda entries: followed.extend(e.seq for e in entries))
    begin = other.log.state.seq
    for turn in range(15):
        logs = (org.node.log, other.log, org.node.log)
        await asyncio.gather(
            *(log.submit(None, rename, f"{turn} {n}") for n, log in enumerate(logs))
        )
    await org.node.log.catch_up()
    await assert_same(org, other)
    assert followed == list(range(begin + 1, begin + 46))


async def test_unannounced_entries_are_read_when_needed(org: Organization, other: Other) -> None:
    other.is_deaf = True
    await org.channel("lounge", "ann")
    for number in range(3):
        await org["ann"].send("lounge", "t", f"m{number}")
    assert other.log.position.seq < org.node.log.position.seq
    # Only the newest batch comes with the lock. Missing ones before it are read.
    await other.log.submit(None, rename, "Theirs")
    await org.node.log.catch_up()
    await assert_same(org, other)
    other.is_deaf = False
    # Another one was lost, so the next doesn't follow the last known entry.
    other.is_deaf = True
    before = len(other.heard)
    await org["ann"].send("lounge", "t", "lost")
    await until(lambda: len(other.heard) > before)
    other.is_deaf = False
    await org["ann"].send("lounge", "t", "heard")
    await assert_same(org, other)


async def test_the_newest_batch_comes_with_the_lock(org: Organization, other: Other) -> None:
    channel = await org.channel("lounge", "ann")
    await other.has(org.node.log)
    other.is_deaf = True
    told: list[Entry] = []
    other.log.subscribers.followers.append(told.extend)
    sent = await org["ann"].send(channel, "t", "said meanwhile")
    await other.log.submit(None, rename, "Theirs")
    message = next(e.change.message for e in told if isinstance(e.change, MessageSent))
    assert (message.id, message.content) == (sent, "said meanwhile")
    assert message.rendered == "<p>said meanwhile</p>"
    other.is_deaf = False
    await org.node.log.catch_up()
    await assert_same(org, other)


async def test_late_repeated_or_foreign_announcements_change_nothing(
    org: Organization, other: Other
) -> None:
    await org.channel("lounge", "ann")
    await org["ann"].send("lounge", "t", "one")
    await org["ann"].send("lounge", "t", "two")
    await other.has(org.node.log)
    other.log._on_broadcasts([*other.heard, *reversed(other.heard)])
    await assert_same(org, other)
    position = other.log.position
    entry = Entry(position.seq + 1, 5.0, None, RealmChanged(values={"name": "Forged"}))
    for wrong in (
        msgspec.structs.replace(position, history="x" * 16),
        msgspec.structs.replace(position, batch="y" * 16),
    ):
        (text,) = broadcast.encode_broadcast("it", [entry], "z" * 16, wrong)
        other.log._on_broadcasts([text])
        await other.log.catch_up()
        assert other.log.position == position
    await assert_same(org, other)


def test_entries_announced_together_are_followed_in_one_call() -> None:
    subscribers = LogSubscribers()
    calls: list[list[int]] = []
    subscribers.followers.append(lambda entries: calls.append([entry.seq for entry in entries]))
    replica = Replica(cast(Store, None), Freshness(), subscribers)
    replica.state, replica.position = State(), Position("h", 0, "batch 0")
    change = EventIdsUsedUp()
    told = [
        broadcast.EntryBroadcast("h", n, f"batch {n}", f"batch {n + 1}", ((5.0, None, change),))
        for n in range(5)
    ]
    with replica.hearing() as is_all:
        assert is_all
        assert replica.hear(told[:2])
        assert not replica.hear([told[1], told[2], told[4]])  # One was lost.
    assert calls == [[1, 2], [3]]
    assert replica.position == Position("h", 3, "batch 3")


async def test_an_entry_that_cannot_be_folded_reloads_the_state(
    org: Organization, other: Other
) -> None:
    position, generation = other.log.position, other.log.durability.generation
    broken = Entry(position.seq + 1, 5.0, None, RealmChanged(values={"no such": 1}))
    (text,) = broadcast.encode_broadcast("it", [broken], "z" * 16, position)
    other.log._on_broadcasts([text])
    await until(lambda: other.log.durability.generation > generation)
    await other.log.catch_up()
    assert other.log.position == position
    await org.channel("lounge", "ann")
    await assert_same(org, other)


async def test_followers_hear_everything_that_a_node_missed_before_it_reloaded(
    org: Organization, other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if that is more than one page of the log."""
    monkeypatch.setattr(log_entries, "TAIL_BYTES", 1000)
    await org.channel("lounge", "ann")
    await other.log.catch_up()
    followed: list[int] = []
    other.log.subscribers.followers.append(
        lambda entries: followed.extend(entry.seq for entry in entries)
    )
    other.is_deaf = True
    position, generation = other.log.position, other.log.durability.generation
    for _ in range(5):
        await org["ann"].send("lounge", "t", "x" * 600)
    broken = Entry(position.seq + 1, 5.0, None, RealmChanged(values={"no such": 1}))
    (text,) = broadcast.encode_broadcast("it", [broken], "z" * 16, position)
    other.is_deaf = False
    other.log._on_broadcasts([text])
    await until(lambda: other.log.durability.generation > generation)
    await other.log.catch_up()
    assert followed == list(range(position.seq + 1, org.node.log.durable + 1))
    await assert_same(org, other)


async def test_announcements_wait_while_a_group_is_decided(org: Organization, other: Other) -> None:
    """Only one thing changes the state at a time."""
    decided, go_on = asyncio.Event(), asyncio.Event()
    real = other.log.store.commit

    async def commit(*arguments: Any) -> None:
        decided.set()
        await go_on.wait()
        await real(*arguments)

    other.log.store.commit = commit  # type: ignore[method-assign,assignment]
    writing = asyncio.create_task(other.log.submit(None, rename, "Theirs"))
    await decided.wait()
    seq = other.log.state.seq
    following = Position(other.log.position.history, seq, other.log.position.batch)
    entry = Entry(seq + 1, 5.0, None, RealmChanged(values={"name": "Too early"}))
    (text,) = broadcast.encode_broadcast("it", [entry], "z" * 16, following)
    other.log._on_broadcasts([text])
    assert other.log.state.realm.name == "Theirs"
    go_on.set()
    await writing
    await org.node.log.catch_up()
    await assert_same(org, other)


async def test_commands_that_arrive_while_another_node_writes_join_the_waiting_group(
    org: Organization, config: Config
) -> None:
    if not config.database_url:
        pytest.skip("a file is locked at once")
    log, database = org.node.log, database_at(config.data_path, config.database_url)
    with contextlib.closing(database.connect(readonly=False)) as holder:
        for statement in holder.dialect.begin_write:
            holder.run(statement)
        first = asyncio.create_task(log.submit(None, rename, "0"))
        await until(lambda: len(log._inbox._in_hand) == 1)
        others = [asyncio.create_task(log.submit(None, rename, str(n))) for n in range(1, 4)]
        await until(lambda: len(log._inbox) == 3)
        holder.run("ROLLBACK")
    assert await asyncio.gather(first, *others) == ["Example", "0", "1", "2"]
    batches = await org.node.store.read(
        lambda c: c.query("SELECT DISTINCT batch FROM log WHERE seq > ?", (log.durable - 4,))
    )
    assert len(batches) == 1
