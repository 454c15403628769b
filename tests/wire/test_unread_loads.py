"""Loading someone's unread messages while other things happen."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from pyroaring import BitMap

from tertulia.domain.messages import editing as decided
from tertulia.log import snapshots
from tertulia.model.errors import Refused, TooOften
from tertulia.service.config import Config
from tertulia.service.messages import preconditions
from tertulia.state import unread
from tertulia.state.unread import UnreadIndex
from tertulia.state.unread_bitmaps import bytes_of
from tertulia.store import message_marks, topics
from tertulia.store.database import Connection
from tertulia.store.readers import current_requester
from tests.support import Organization, Person, open_organization, until
from tests.wire.sample_organization import flag

pytestmark = pytest.mark.usefixtures("no_logged_errors")

WAIT_SECONDS = 60


class Slow:
    """Holds the result of a load's read until it's released."""

    def __init__(self) -> None:
        self._read = snapshots._read
        self._has_read, self._may_return = threading.Event(), threading.Event()

    def read(self, *arguments: Any) -> Any:
        found = self._read(*arguments)
        self._has_read.set()
        assert self._may_return.wait(WAIT_SECONDS)
        return found

    async def begun(self) -> None:
        """The database has been read."""
        assert await asyncio.to_thread(self._has_read.wait, WAIT_SECONDS)

    def release(self) -> None:
        self._may_return.set()


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[Slow]:
    found = Slow()
    monkeypatch.setattr(snapshots, "_read", found.read)
    yield found
    found.release()


def loaded(index: UnreadIndex) -> Any:
    """Everything the index has loaded."""
    return (
        {
            key: (one.all, {k: ids for k, ids in one.topics.items() if ids}, one.wildcards)
            for key, one in index.channels.items()
        },
        {key: one.all for key, one in index.directs.items()},
        {
            key: (one.read, {flag: ids for flag, ids in one.flagged.items() if ids})
            for key, one in index.readers.items()
        },
    )


def forget(index: UnreadIndex) -> None:
    for table in (index.readers, index.channels, index.directs):
        table.clear()


async def unread_of(who: Person) -> Any:
    return (await who.register()).data["unread_msgs"]


async def much_happens(org: Organization) -> None:
    """Change everything that affects unread messages, ben's too."""
    ann, ben = org["ann"], org["ben"]
    ids = [await ann.send("lounge", "tea", f"@**all** {n}") for n in range(4)]
    ids += [await ann.write([ben.user_id], "hello") for _ in range(2)]
    await ann.write([ben.user_id, org["cleo"].user_id], "all of us")
    await flag(org, "ben", "add", "read", ids[0], ids[4])
    await flag(org, "ben", "remove", "read", ids[0])
    await flag(org, "ben", "add", "starred", *ids[1:3])
    (await ann.patch(f"/messages/{ids[1]}", content="nobody")).ok
    (await ann.patch(f"/messages/{ids[2]}", content="@**ben**")).ok
    (await ann.patch(f"/messages/{ids[2]}", topic="coffee", propagate_mode="change_one")).ok
    other = org.node.state.channel_named("den")
    assert other is not None
    (await ann.patch(f"/messages/{ids[0]}", stream_id=other.id, propagate_mode="change_one")).ok
    (await org["ann"].delete(f"/messages/{ids[3]}")).ok


async def test_a_load_delays_nobody_and_misses_nothing(org: Organization, slow: Slow) -> None:
    await org.channel("lounge", "ann", "ben")
    await org.channel("den", "ann", "ben")
    await org["ann"].send("lounge", "tea", "before")
    index = org.node.state.unread
    forget(index)
    asked = asyncio.create_task(unread_of(org["ben"]))
    await slow.begun()
    await much_happens(org)  # Each change is decided and on disk during the load.
    assert not asked.done()
    slow.release()
    found, kept = await asked, loaded(index)
    forget(index)
    assert await unread_of(org["ben"]) == found
    assert loaded(index) == kept
    assert org["ben"].user_id in kept[2]


async def test_a_load_waits_for_another_node_s_entries(
    org: Organization, config: Config, slow: Slow
) -> None:
    await org.channel("lounge", "ann", "ben")
    index = org.node.state.unread
    forget(index)
    slow.release()
    async with open_organization(config) as elsewhere:
        for n in range(3):
            await elsewhere["ann"].send("lounge", "tea", f"{n}")
            assert (await unread_of(org["ben"]))["count"] >= n
            forget(index)
        await org.node.log.catch_up()
        assert (await unread_of(org["ben"]))["count"] == 3


async def test_a_load_restarts_after_the_state_was_reloaded(org: Organization, slow: Slow) -> None:
    await org.channel("lounge", "ann", "ben")
    await org["ann"].send("lounge", "tea", "one")
    forget(org.node.state.unread)
    asked = asyncio.create_task(unread_of(org["ben"]))
    await slow.begun()
    await org.node.log._replica.reload()
    slow.release()
    assert (await asked)["count"] == 1


async def test_a_load_is_shared(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    await org["ann"].send("lounge", "tea", "one")
    forget(org.node.state.unread)
    parts: list[tuple[str, int]] = []
    read: Callable[..., Any] = snapshots._read

    def counted(connection: Any, *ids: list[int]) -> Any:
        kinds = zip(("reader", "channel", "direct"), ids, strict=True)
        parts.extend((kind, one) for kind, some in kinds for one in some)
        return read(connection, *ids)

    monkeypatch.setattr(snapshots, "_read", counted)
    people = [org[name] for name in ("ann", "ben", "cleo") for _ in range(3)]
    await asyncio.gather(*(unread_of(one) for one in people))
    assert len(parts) == len(set(parts))


async def test_a_load_uses_nobody_s_share_of_the_readers(
    org: Organization, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A person with the maximum number of reads in progress doesn't affect others."""
    await org.channel("lounge", "ann", "ben")
    forget(org.node.state.unread)
    first = asyncio.create_task(unread_of(org["ann"]))
    await slow.begun()
    second = asyncio.create_task(unread_of(org["ben"]))
    askers: list[object] = []
    read = org.node.store.read

    async def noted(function: Any, *arguments: Any) -> Any:
        if function == snapshots._read:
            askers.append(current_requester.get().person)
            if current_requester.get().person == org["ann"].user_id:
                raise TooOften(1, "You have too many requests in progress.")
        return await read(function, *arguments)

    monkeypatch.setattr(org.node.store, "read", noted)
    await until(lambda: org["ben"].user_id in org.node.log._unread_loads._wanted.readers)
    slow.release()
    assert (await asyncio.gather(first, second))[1]["count"] == 0
    assert askers
    assert not set(askers) & {org["ann"].user_id, org["ben"].user_id}


# Eviction


async def test_memory_is_limited_in_bytes(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"reader-{n}" for n in range(12)]
    people = [await org.add(name) for name in names]
    await org.channel("lounge", "ann", *names)
    for n in range(30):
        await org["ann"].send("lounge", f"topic {n % 3}", "hello")
    sent = org.node.state.last_message_id
    index = org.node.state.unread
    forget(index)
    index.used = 0
    for name in names:
        await flag(org, name, "add", "read", *range(sent - 25, sent, 2))
    await unread_of(people[0])
    reader = index.readers[people[0].user_id].size
    monkeypatch.setattr(unread, "ROOM", index.used + 3 * reader)
    for person in (*people, *people):
        assert (await unread_of(person))["count"] == 30 - 13
        counted = sum(
            one.size
            for table in (index.readers, index.channels, index.directs)
            for one in table.values()
        )
        assert counted <= unread.ROOM + reader  # The most recently loaded data is in addition.
    assert 0 < len(index.readers) < len(people)


def test_the_size_of_a_bitmap_is_estimated_well() -> None:
    """Compared with glibc's `mallinfo2`, plus 48 bytes for the Python object."""
    many = BitMap(range(0, 1_000_000, 500))
    read = BitMap(range(1_000_000))
    read.run_optimize()
    half = BitMap(range(0, 1_000_000, 2))
    for bitmap, taken in ((BitMap([5]), 202), (many, 5206), (read, 1320), (half, 134_850)):
        assert taken * 0.85 < bytes_of(bitmap) < taken * 1.15


# Other uses of read state and received messages


def without_snapshots(org: Organization, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Refuse snapshots that hold the writer, and count other reads."""
    reads: list[Any] = []
    read = org.node.store.read

    async def counted(function: Any, *arguments: Any) -> Any:
        reads.append(function)
        return await read(function, *arguments)

    async def refused(*_: Any) -> None:
        raise AssertionError("a snapshot was taken")

    monkeypatch.setattr(org.node.log, "snapshot", refused)
    monkeypatch.setattr(org.node.store, "read", counted)
    return reads


async def test_an_edit_loads_only_people_who_may_not_have_read_it(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await org.channel("lounge", "ann", "ben", "cleo", "gus")
    await org.channel("den", "ann", "ben")
    asked: list[list[int]] = []
    read_by = message_marks.read_by

    def counted(connection: Connection, message_id: int, user_ids: list[int]) -> list[int]:
        asked.append(sorted(user_ids))
        return read_by(connection, message_id, user_ids)

    monkeypatch.setattr(message_marks, "read_by", counted)
    ann, ben = org["ann"], org["ben"]
    sent = await ann.send("lounge", "tea", "hello")
    for name in ("ben", "cleo", "gus"):
        await flag(org, name, "add", "read", sent)
    ids = [await ann.send("den", "tea", "hello"), await ann.write([ben.user_id], "hello")]
    forget(org.node.state.unread)
    without_snapshots(org, monkeypatch)
    for one in ids:
        (await ann.patch(f"/messages/{one}", content="again")).ok
    assert asked == [sorted([ann.user_id, ben.user_id])] * 2
    monkeypatch.undo()


async def test_an_edit_uses_the_current_read_state(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    sent = await org["ann"].send("lounge", "tea", "hello")
    await flag(org, "ann", "add", "read", sent)
    await flag(org, "cleo", "add", "read", sent)
    listener = await org["ben"].register(event_types=["update_message"])
    forget(org.node.state.unread)
    await unread_of(org["ben"])
    found = await preconditions.to_edit(org.node.log, sent)
    await flag(org, "ben", "add", "read", sent)
    readers = sorted(org[name].user_id for name in ("ann", "ben", "cleo"))
    assert list(decided.read_by(org.node.state, found)) == readers
    (await org["ann"].patch(f"/messages/{sent}", content="again")).ok
    (event,) = await listener.events()
    assert event["flags"] == ["read"]


async def test_topics_of_a_protected_history_delay_nobody(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann, ben = org["ann"], org["ben"]
    den = await org.channel("den", "ann", is_private=True, history_public=False)
    await ann.send("den", "before", "x")
    await ann.post(
        "/users/me/subscriptions", subscriptions=[{"name": "den"}], principals=[ben.user_id]
    )
    received = {"tea": await ann.send("den", "tea", "x")}
    both = await ann.send("den", "both", "x")
    await ann.delete("/users/me/subscriptions", subscriptions=["den"], principals=[ben.user_id])
    await ann.send("den", "both", "x")
    await ann.send("den", "between", "x")
    await ann.post(
        "/users/me/subscriptions", subscriptions=[{"name": "den"}], principals=[ben.user_id]
    )
    received |= {"both": both, "after": await ann.send("den", "after", "x")}
    reads = without_snapshots(org, monkeypatch)

    async def listed() -> dict[str, int]:
        found = (await ben.get(f"/users/me/{den}/topics")).ok["topics"]
        return {one["name"]: one["max_id"] for one in found}

    assert await listed() == received
    assert reads.count(topics.newest_by_topic) == 1
    monkeypatch.undo()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_the_newest_message_by_topic_is_read_from_an_index(org: Organization) -> None:
    plans: list[str] = []

    class Explained:
        def __init__(self, connection: Connection) -> None:
            self.dialect, self._connection = connection.dialect, connection

        def query(self, sql: str, parameters: Any) -> list[Any]:
            rows = self._connection.query(f"EXPLAIN QUERY PLAN {sql}", parameters)
            plans.extend(row[-1] for row in rows)
            return []

    def explain(connection: Connection) -> None:
        explained: Any = Explained(connection)
        topics.newest_by_topic(explained, 1, ["tea", "coffee"], [(1, 5), (7, None)])

    await org.node.store.read(explain)
    index = "COVERING INDEX messages_by_topic (topic_id=? AND id>? AND id<?)"
    assert any(index in plan for plan in plans), plans


async def test_refusals_and_long_responses_leave_no_reference_cycles(org: Organization) -> None:
    """Objects referenced by an exception's traceback would stay until a full garbage collection,
    which happens once in millions of objects."""
    held: list[weakref.ref[Any]] = []

    class Made:
        """A result computed so far, megabytes perhaps."""

    def too_long(*_: Any) -> Any:
        made = Made()
        held.append(weakref.ref(made))
        raise Refused("It takes too long.")

    await org.channel("lounge", "ann", "ben")
    gc.disable()
    try:
        for _ in range(3):
            with suppress(Refused):
                await org.node.log.snapshot(org["ben"].user_id, lambda _: None, too_long)
            with suppress(Refused):
                await org.node.log.submit(None, too_long)
        for _ in range(3):  # The writer has moved on to something else.
            await org["ann"].send("lounge", "tea", "hello")
        assert [one() for one in held] == [None] * 6
    finally:
        gc.enable()


@pytest.mark.usefixtures("patient_writer")
async def test_a_commit_does_not_block_loads(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    await org["ann"].send("lounge", "tea", "unread")
    log = org.node.log
    monkeypatch.setattr(log._unread_loads, "_places", asyncio.Semaphore(1))
    commit, begun, may_go_on = log.store.commit, asyncio.Event(), asyncio.Event()

    async def slow(*arguments: Any) -> None:
        begun.set()
        await may_go_on.wait()
        await commit(*arguments)

    monkeypatch.setattr(log.store, "commit", slow)
    marked = asyncio.create_task(org["ben"].post("/mark_stream_as_read", stream_id=lounge))
    try:
        async with asyncio.timeout(WAIT_SECONDS):
            await begun.wait()
            async with log.unread_held(org["cleo"].user_id):
                assert not marked.done()
    finally:
        may_go_on.set()
    assert (await marked).ok
    assert (await org["ben"].register()).data["unread_msgs"]["count"] == 0
