"""Event queues: which events they deliver, to whom, and how a poll ends."""

import ast
import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

import tertulia.delivery
from tertulia.delivery import queue as event_ids
from tertulia.delivery import recent_entries, waiting_polls
from tertulia.delivery.delivery import Delivery
from tertulia.delivery.queue import Queue
from tertulia.delivery.registry import SWEEP_SECONDS
from tertulia.model.changes import (
    CredentialChanged,
    RealmChanged,
    UserDeactivated,
)
from tertulia.model.errors import AccountDeactivated, NoSuchQueue, Refused, WrongApiKey
from tertulia.model.queues import Capabilities, QueueRecord, Registration
from tertulia.model.transients import EditTyping, PresenceChanged, Transient, Typing
from tertulia.service.config import Config
from tertulia.store import queries
from tertulia.wire.api.event_encoder import EventEncoder
from tests.support import Listener, Organization, open_organization, until
from tests.unit.test_log import Counting


@dataclass
class Clock:
    """A clock that tests set."""

    now: float = field(default=1_700_000_000.0)

    def __call__(self) -> float:
        return self.now


def decoded(events: Sequence[bytes]) -> list[dict[str, Any]]:
    return [msgspec.json.decode(event) for event in events]


def is_waiting(delivery: Delivery, queue_id: str) -> bool:
    queue = delivery.queues.get(queue_id)
    return queue is not None and queue.waiter is not None


def queue_of(delivery: Delivery, listener: Listener) -> Queue:
    queue = delivery.queues.get(listener.queue_id)
    assert queue is not None
    return queue


def limit_pages(monkeypatch: pytest.MonkeyPatch, events: int) -> None:
    for module in (recent_entries, waiting_polls):
        monkeypatch.setattr(module, "PAGE", events)


@asynccontextmanager
async def polling(
    org: Organization, listener: Listener, *, last: int | None = None
) -> AsyncIterator["asyncio.Task[Sequence[bytes]]"]:
    """A waiting poll of this listener."""
    delivery = org.node.delivery
    cursor = listener.last_event_id if last is None else last
    task = asyncio.create_task(
        delivery.poll(listener.queue_id, listener.person.user_id, cursor, block=True)
    )
    await until(lambda: task.done() or is_waiting(delivery, listener.queue_id))
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.wait([task])


def typing(org: Organization, who: str, to: str, *, started: bool = True) -> Typing:
    people = tuple(sorted({org[who].user_id, org[to].user_id}))
    return Typing(sender_id=org[who].user_id, started=started, recipients=people)


@pytest.fixture
async def lounge(org: Organization) -> int:
    return await org.channel("lounge", "ann", "ben")


@pytest.mark.parametrize(
    "unknown",
    [
        PresenceChanged(user_id=999, active_at=1, idle_at=1, update_id=1, at=1),
        EditTyping(sender_id=999, message_id=1, started=True, at=1.0, direct_id=999),
    ],
)
async def test_an_announcement_about_unknown_people_does_not_block(
    org: Organization, lounge: int, unknown: Transient
) -> None:
    """Another node may know accounts and conversations that this one hasn't read yet."""
    ben = await org["ben"].register()
    async with polling(org, ben) as poll:
        org.node.delivery.peer_messages.on_text(
            msgspec.json.encode(("another node", unknown)).decode()
        )
        org.node.delivery.publish(typing(org, "ann", "ben"))
        (event,) = decoded(await asyncio.wait_for(poll, 60))
    assert event["type"] == "typing"


async def test_events_are_repeated_until_acknowledged(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register()
    start = ben.last_event_id
    one = await org["ann"].send("lounge", "t", "one")
    two = await org["ann"].send("lounge", "t", "two")
    first = await ben.events(acknowledge=False)
    assert await ben.events(acknowledge=False) == first
    assert [event["message"]["id"] for event in first] == [one, two]
    ben.last_event_id = first[0]["id"]
    assert await ben.events() == first[1:]
    assert await ben.events() == []
    # Nothing is discarded: an older ID, and -1, return older events.
    ben.last_event_id = start
    assert await ben.events() == first
    ben.last_event_id = -1
    assert await ben.events() == first


@pytest.mark.parametrize(
    "offset",
    [10_000, 2**52],
    ids=["a little", "far"],
)
async def test_an_id_beyond_the_log_is_refused(org: Organization, lounge: int, offset: int) -> None:
    ben = await org["ben"].register()
    reply = await org["ben"].get(
        "/events",
        queue_id=ben.queue_id,
        last_event_id=ben.last_event_id + offset,
        dont_block=True,
    )
    reply.refused()


async def test_an_id_before_the_registration_is_refused(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register()
    for last in (0, ben.last_event_id - 1):
        reply = await org["ben"].get(
            "/events", queue_id=ben.queue_id, last_event_id=last, dont_block=True
        )
        reply.refused()


async def test_another_user_s_queue_looks_like_no_queue(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register()
    for queue_id in (ben.queue_id, "no such", "a\0b"):
        for method in ("get", "delete"):
            reply = await getattr(org["ann"], method)(
                "/events", queue_id=queue_id, last_event_id=-1, dont_block=True
            )
            assert reply.status == 400, (queue_id, reply.body)
            if "\0" not in queue_id:
                assert reply.refused("BAD_EVENT_QUEUE_ID")["queue_id"] == queue_id
    assert await ben.events() == []


async def test_a_waiting_poll_gets_new_events(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register()
    async with polling(org, ben) as poll:
        sent = await org["ann"].send("lounge", "t", "hi")
        (event,) = decoded(await poll)
        assert event["message"]["id"] == sent
    assert org.node.delivery.waiting == 0


async def test_a_newer_poll_ends_the_older_one(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register()
    async with polling(org, ben) as older:
        newer = asyncio.create_task(
            org.node.delivery.poll(ben.queue_id, org["ben"].user_id, -1, block=True)
        )
        assert await older == []
        await until(lambda: org.node.delivery.waiting == 1)
        await org["ann"].send("lounge", "t", "hi")
        assert len(await newer) == 1


async def test_of_two_polls_that_read_the_log_the_newest_waits(
    org: Organization, lounge: int, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading takes longer for the older one."""
    ben = await org["ben"].register()
    delivery, gate = org.node.delivery, asyncio.Event()
    real, calls = delivery.recent.read_log, 0

    async def slow(queue: Any, cursor: int) -> list[bytes]:
        nonlocal calls
        calls += 1
        if calls == 1:
            await gate.wait()
        return await real(queue, cursor)

    monkeypatch.setattr(delivery.recent, "read_log", slow)
    user = org["ben"].user_id
    older = asyncio.create_task(delivery.poll(ben.queue_id, user, -1, block=True))
    await until(lambda: calls == 1)
    newer = asyncio.create_task(delivery.poll(ben.queue_id, user, -1, block=True))
    await until(lambda: delivery.waiting == 1)
    gate.set()
    assert await older == []
    assert not newer.done()
    await org["ann"].send("lounge", "t", "hi")
    assert len(await newer) == 1


async def test_a_disconnected_client_leaves_no_waiting_poll(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register(all_public_streams=True)
    async with polling(org, ben):
        assert org.node.delivery.waiting == 1
    assert org.node.delivery.waiting == 0
    assert not org.node.delivery.polls._waiting_for_all_public


async def test_deleting_a_queue_ends_its_poll_for_good(
    org: Organization, lounge: int, config: Config
) -> None:
    ben = await org["ben"].register()
    async with polling(org, ben) as poll:
        await org["ben"].delete("/events", queue_id=ben.queue_id)
        with pytest.raises(NoSuchQueue):
            await poll
    for _ in range(2):
        reply = await org["ben"].get("/events", queue_id=ben.queue_id, last_event_id=-1)
        reply.refused("BAD_EVENT_QUEUE_ID")
    assert await org.node.store.read(queries.queue, ben.queue_id) is None


async def test_a_queue_deleted_while_a_poll_reads_the_log_is_gone(
    org: Organization, lounge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben = await org["ben"].register()
    delivery, gate = org.node.delivery, asyncio.Event()
    real = delivery.recent.read_log

    async def slow(queue: Queue, cursor: int) -> Sequence[bytes]:
        await gate.wait()
        return await real(queue, cursor)

    monkeypatch.setattr(delivery.recent, "read_log", slow)
    poll = asyncio.create_task(delivery.poll(ben.queue_id, org["ben"].user_id, -1, block=True))
    await until(lambda: queue_of(delivery, ben).turn == 1)
    await org["ben"].delete("/events", queue_id=ben.queue_id)
    gate.set()
    with pytest.raises(NoSuchQueue):
        await poll
    assert delivery.waiting == 0


async def test_a_heartbeat_is_sent_when_nothing_else_is(
    org: Organization, lounge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(org.node.delivery, "_poll_seconds", (0.0, 0.01))
    ben = await org["ben"].register()
    ids = [ben.last_event_id]
    for _ in range(3):
        (beat,) = decoded(
            await org.node.delivery.poll(ben.queue_id, org["ben"].user_id, ids[-1], block=True)
        )
        assert beat["type"] == "heartbeat"
        ids.append(beat["id"])
    assert ids == sorted(set(ids))
    ben.last_event_id = ids[-1]
    sent = await org["ann"].send("lounge", "t", "hi")
    (event,) = await ben.events()
    assert event["message"]["id"] == sent


@pytest.mark.parametrize("start", [0, 12_345_678, 8_000_000_000])
def test_a_queue_s_ids_fit_31_bits_for_five_million_entries(start: int) -> None:
    for number in range(20):
        record = QueueRecord(
            id=f"queue {number}",
            user_id=1,
            registration=Registration(),
            start=start,
            created_at=0,
            seen_at=0,
            idle_timeout=600,
            counted_from=event_ids.base_for(start),
        )
        numbering, last = event_ids.numbering_of(record), event_ids.last_seq(record)
        assert 0 <= numbering.begin_of(start) < numbering.end_of(start) < 2**30
        assert last - start >= 5_000_000
        assert numbering.begin_of(last + 1) < 2**31
        for seq in (start, last):
            for event_id in (numbering.of_entry(seq, 0), numbering.transient(seq, 0)):
                assert numbering.seq_of(event_id) == seq
        assert numbering.transient(last, 0) == numbering.end_of(last) + 1
        with pytest.raises(OverflowError):
            numbering.of_entry(start, numbering.own)


async def test_a_queue_with_too_few_ids_for_an_entry_ends(
    org: Organization,
    lounge: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As for a client that gets a separate event for each of many deleted messages."""
    ben = await org["ben"].register()

    def events_of(*_: object) -> Callable[[QueueRecord], Sequence[bytes]]:
        def too_many(_: QueueRecord) -> Sequence[bytes]:
            raise OverflowError

        return too_many

    monkeypatch.setattr(EventEncoder, "events_of", events_of)
    await org["ann"].send("lounge", "t", "hello")
    reply = await org["ben"].get(
        "/events", queue_id=ben.queue_id, last_event_id=ben.last_event_id, dont_block=True
    )
    reply.refused("BAD_EVENT_QUEUE_ID")
    assert [record for record in caplog.records if record.levelname == "ERROR"] == []


async def test_a_queue_of_the_first_release_continues_its_ids(
    org: Organization, lounge: int
) -> None:
    delivery, user = org.node.delivery, org["ben"].user_id
    await registered(org, delivery, record_of(org, "ben", "old", Clock(org.node.clock())))
    new = await org["ben"].register()
    start = org.node.log.durable
    sent = [await org["ann"].send("lounge", "t", f"m{n}") for n in range(2)]
    old = decoded(await delivery.poll("old", user, start * 2**20 + 2**19 - 1, block=False))
    assert [event["id"] for event in old] == [
        seq * 2**20 for seq in range(start + 1, start + 1 + len(old))
    ]
    found = await new.events()
    assert [event["message"]["id"] for event in found] == sent
    assert [{**event, "id": 0} for event in old] == [{**event, "id": 0} for event in found]
    rest = decoded(await delivery.poll("old", user, old[0]["id"], block=False))
    assert rest == old[1:]


async def test_unlogged_events_have_ids_however_many_follow_an_entry(
    org: Organization, lounge: int
) -> None:
    ben, idle = await org["ben"].register(), await org["ben"].register()
    delivery, log = org.node.delivery, org.node.log
    before = log.durable
    assert await ben.events() == []
    heard: list[int] = []
    for number in range(300):
        delivery.publish(typing(org, "ann", "ben", started=number % 2 == 0))
        await delivery.renew_ids()
        heard += [event["id"] for event in await ben.events()]
    assert len(heard) == 300
    assert heard == sorted(set(heard))
    # A few entries without events are enough. (The node's job may have written some, too.)
    assert 2 <= log.durable - before <= 8
    assert {event["type"] for event in await idle.events()} == {"typing"}
    queue = queue_of(delivery, ben)
    left = queue.transient_ids_left(log.durable)
    while (left := left - 1) >= 0:
        assert queue.next_transient_id(log.durable) is not None
    assert queue.next_transient_id(log.durable) is None
    seq = log.durable
    delivery.publish(typing(org, "ann", "ben"))
    await delivery.renew_ids()
    assert log.durable > seq
    delivery.publish(typing(org, "ann", "ben", started=False))
    assert [event["op"] for event in await ben.events()] == ["stop"]


async def test_a_queue_without_ids_left_ends(org: Organization, lounge: int) -> None:
    waiting, idle, beating = [await org["ben"].register() for _ in range(3)]
    delivery, user = org.node.delivery, org["ben"].user_id
    for one in (waiting, idle, beating):
        queue_of(delivery, one).last_seq = org.node.log.durable
    async with polling(org, waiting) as poll:
        await org["ann"].send("lounge", "t", "one too many")
        with pytest.raises(NoSuchQueue):
            await poll
    with pytest.raises(NoSuchQueue):
        await delivery.poll(idle.queue_id, user, -1, block=False)
    queue = queue_of(delivery, beating)
    queue.seen_through = (queue.numbering.end_of(queue.record.start), org.node.log.durable)
    async with polling(org, beating) as poll:
        delivery.polls.send_heartbeat(queue)
        with pytest.raises(NoSuchQueue):
            await poll


async def test_too_many_transient_events_do_not_skip_an_entry(
    org: Organization, lounge: int
) -> None:
    """Further transient events are dropped; logged events arrive anyway."""
    ben = await org["ben"].register()
    numbering = queue_of(org.node.delivery, ben).numbering
    last = numbering.begin_of(org.node.log.durable + 1) - 1
    ben.last_event_id = last
    async with polling(org, ben) as poll:
        org.node.delivery.publish(typing(org, "ann", "ben"))
        org.node.delivery.polls.send_heartbeat(queue_of(org.node.delivery, ben))
        assert await poll == []
    sent = await org["ann"].send("lounge", "t", "hi")
    (event,) = await ben.events()
    assert event["message"]["id"] == sent


@pytest.mark.parametrize("how", ["key", "deactivation"])
@pytest.mark.parametrize("is_waiting", [True, False], ids=["waiting", "about to wait"])
async def test_losing_access_ends_the_poll(
    org: Organization, lounge: int, how: str, is_waiting: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben = await org["ben"].register()
    user_id = org["ben"].user_id
    error: type[Refused] = WrongApiKey if how == "key" else AccountDeactivated
    present = org.node.state.credentials[user_id]
    change = (
        CredentialChanged(credential=org.node.vault.with_new_key(present))
        if how == "key"
        else UserDeactivated(user_id=user_id)
    )
    delivery, gate = org.node.delivery, asyncio.Event()
    if is_waiting:
        gate.set()
    real = delivery.recent.read_log

    async def slow(queue: Any, cursor: int) -> list[bytes]:
        if queue.user_id == user_id:
            await gate.wait()
        return await real(queue, cursor)

    monkeypatch.setattr(delivery.recent, "read_log", slow)
    poll = asyncio.create_task(delivery.poll(ben.queue_id, user_id, -1, block=True))
    await until(lambda: queue_of(delivery, ben).turn == 1)
    await until(lambda: not is_waiting or delivery.waiting == 1)
    other = await org["ann"].register()
    async with polling(org, other) as others:
        await org.do(change)
        gate.set()
        with pytest.raises(error):
            await poll
        assert how == "deactivation" or not others.done()


# Expiry


@asynccontextmanager
async def delivery_with(
    org: Organization, clock: Clock, **settings: Any
) -> AsyncIterator[Delivery]:
    """A separate delivery on the organization's log."""
    settings.setdefault("elapsed", clock)
    delivery = Delivery(org.node.log, org.node.delivery.encoder, clock=clock, **settings)
    try:
        yield delivery
    finally:
        org.node.log.subscribers.followers.remove(delivery._on_entries)
        delivery._closing = True


def record_of(org: Organization, who: str, queue_id: str, clock: Clock) -> QueueRecord:
    now = int(clock())
    return QueueRecord(
        id=queue_id,
        user_id=org[who].user_id,
        registration=Registration(),
        start=org.node.log.durable,
        created_at=now,
        seen_at=now,
        idle_timeout=600,
    )


async def registered(org: Organization, delivery: Delivery, record: QueueRecord) -> None:
    await org.node.log.snapshot(None, lambda _: None, lambda *_: None, lambda _: record)
    delivery.add(record)


async def test_a_queue_that_nobody_polls_expires(org: Organization) -> None:
    clock = Clock()
    async with delivery_with(org, clock) as delivery:
        user = org["ben"].user_id
        await registered(org, delivery, record_of(org, "ben", "idle", clock))
        await registered(org, delivery, record_of(org, "ben", "polled", clock))
        clock.now += 500
        await delivery.sweep()
        assert await delivery.poll("polled", user, -1, block=False) == []
        clock.now += 150
        await delivery.sweep()
        spared = org.node.store.is_shared  # Another node may serve it.
        assert (delivery.queues.get("idle") is not None) is spared
        clock.now += 100
        await delivery.sweep()
        assert await delivery.poll("polled", user, -1, block=False) == []
        with pytest.raises(NoSuchQueue):
            await delivery.poll("idle", user, -1, block=False)
        await org.do()
        assert await org.node.store.read(queries.queue, "idle") is None


async def test_a_waiting_poll_keeps_its_queue(org: Organization) -> None:
    clock = Clock()
    async with delivery_with(org, clock) as delivery:
        await registered(org, delivery, record_of(org, "ben", "q", clock))
        poll = asyncio.create_task(delivery.poll("q", org["ben"].user_id, -1, block=True))
        await until(lambda: delivery.waiting == 1)
        for _ in range(10):
            clock.now += 550
            await delivery.sweep()
        assert not poll.done()
        poll.cancel()
        await asyncio.wait([poll])
        await org.do()
        found = await org.node.store.read(queries.queue, "q")
        assert found is not None
        assert found[1] >= clock.now - 600


async def test_queues_that_no_node_knows_expire_too(org: Organization) -> None:
    clock = Clock()
    record = record_of(org, "ben", "orphan", clock)
    await org.node.log.snapshot(None, lambda _: None, lambda *_: None, lambda _: record)
    clock.now += 100_000
    async with delivery_with(org, clock) as delivery:
        # Time while the server was down doesn't count.
        await delivery.sweep()
        assert await org.node.store.read(queries.queue, "orphan") is not None
        clock.now += 600 + 4 * SWEEP_SECONDS
        await delivery.sweep()
        await org.do()
        assert await org.node.store.read(queries.queue, "orphan") is None


@pytest.mark.parametrize("jump", [7200.0, -7200.0])
async def test_a_changed_system_clock_expires_no_queue(org: Organization, jump: float) -> None:
    clock, elapsed = Clock(), Clock()
    elapsed.now = 1000.0  # The monotonic clock is independent of the other.
    user = org["ben"].user_id
    orphan = record_of(org, "ben", "orphan", clock)
    await org.node.log.snapshot(None, lambda _: None, lambda *_: None, lambda _: orphan)
    async with delivery_with(org, clock, elapsed=elapsed) as here:
        await registered(org, here, record_of(org, "ben", "q", clock))
        await registered(org, here, record_of(org, "ben", "idle", clock))
        elapsed.now += 300
        clock.now += 300 + jump
        assert await here.poll("orphan", user, -1, block=False) == []
        await here.sweep()
        assert await here.poll("q", user, -1, block=False) == []
        await here.sweep()
        await org.do()
        found = await org.node.store.read(queries.queue, "q")
        assert found is not None
        # Other nodes, and this one after a restart, use the changed clock.
        assert found[1] >= clock.now - 301
        async with delivery_with(org, clock) as there:
            assert await there.poll("q", user, -1, block=False) == []
        # Idle time is still measured.
        elapsed.now += 4 * SWEEP_SECONDS + 590
        clock.now += 4 * SWEEP_SECONDS + 590
        await here.sweep()
        assert here.queues.get("q") is not None or not org.node.store.is_shared
        # Earlier records are in the future for a while, when another node may serve the queue.
        later = 20 + (max(-jump, 0) if org.node.store.is_shared else 0)
        elapsed.now += later
        clock.now += later
        await here.sweep()
        with pytest.raises(NoSuchQueue):
            await here.poll("q", user, -1, block=False)
        with pytest.raises(NoSuchQueue):
            await here.poll("idle", user, -1, block=False)


@pytest.mark.usefixtures("several_nodes")
async def test_a_queue_served_by_another_node_does_not_expire_here(org: Organization) -> None:
    clock = Clock()
    async with delivery_with(org, clock) as here, delivery_with(org, clock) as there:
        await registered(org, here, record_of(org, "ben", "q", clock))
        poll = asyncio.create_task(there.poll("q", org["ben"].user_id, -1, block=True))
        await until(lambda: there.waiting == 1)
        for _ in range(60):
            clock.now += SWEEP_SECONDS
            await there.sweep()
            await here.sweep()
            await org.do()
        assert not poll.done()
        poll.cancel()
        await asyncio.wait([poll])


async def test_beyond_the_limit_the_user_s_most_idle_queue_is_deleted(org: Organization) -> None:
    clock = Clock()
    async with delivery_with(org, clock, queues_per_user=3) as delivery:
        await registered(org, delivery, record_of(org, "ann", "other", clock))
        for name in ("a", "b", "c"):
            await registered(org, delivery, record_of(org, "ben", name, clock))
            clock.now += 1
        await delivery.poll("a", org["ben"].user_id, -1, block=False)
        await registered(org, delivery, record_of(org, "ben", "d", clock))
        assert {queue.record.id for queue in delivery.queues.all()} == {"other", "a", "c", "d"}
        assert delivery.queues.has_room(org["ben"].user_id)


async def test_the_limit_applies_across_all_nodes(org: Organization) -> None:
    if not org.node.store.is_shared:
        pytest.skip("one node at a time")
    clock = Clock()
    limited = delivery_with(org, clock, queues_per_user=3), delivery_with(org, clock)
    async with limited[0] as here, limited[1] as there:
        await registered(org, here, record_of(org, "ann", "other", clock))
        for number in range(3):
            await registered(org, here, record_of(org, "ben", f"here {number}", clock))
            clock.now += 1
            await registered(org, there, record_of(org, "ben", f"there {number}", clock))
            clock.now += 1
        poll = asyncio.create_task(here.poll("here 0", org["ben"].user_id, -1, block=True))
        await until(lambda: here.waiting == 1)
        await here.sweep()
        await org.do()
        left = {"other", "here 0", "there 1", "here 2", "there 2"}
        names = [f"{place} {number}" for place in ("here", "there") for number in range(3)]
        for name in (*names, "other"):
            found = await org.node.store.read(queries.queue, name)
            assert (found is not None) is (name in left), name
        # Nodes that know the queue are notified that it's gone.
        assert {queue.record.id for queue in here.queues.all()} == {"other", "here 0", "here 2"}
        poll.cancel()
        await asyncio.wait([poll])


async def test_a_user_whose_queues_are_all_polled_gets_no_more(org: Organization) -> None:
    clock = Clock()
    async with delivery_with(org, clock, queues_per_user=1) as delivery:
        await registered(org, delivery, record_of(org, "ben", "a", clock))
        poll = asyncio.create_task(delivery.poll("a", org["ben"].user_id, -1, block=True))
        await until(lambda: delivery.waiting == 1)
        assert not delivery.queues.has_room(org["ben"].user_id)
        poll.cancel()
        await asyncio.wait([poll])
        assert delivery.queues.has_room(org["ben"].user_id)


# Reading the log


async def test_a_queue_continues_after_a_restart(org: Organization, config: Config) -> None:
    await org.channel("lounge", "ann", "ben")
    ben = await org["ben"].register()
    org.node.delivery.publish(typing(org, "ann", "ben"))
    (typed,) = await ben.events()
    await org["ann"].send("lounge", "t", "one")
    (one,) = await ben.events(acknowledge=False)
    async with open_organization(config) as later:
        again = Listener(later["ben"], ben.queue_id, ben.last_event_id, {})
        assert await again.events(acknowledge=False) == [one]
        later.node.delivery.publish(typing(later, "ann", "ben", started=False))
        events = await again.events()
        assert [event["type"] for event in events] == ["message", "typing"]
        # Its ID is greater than the entry's and than those from before the restart.
        assert typed["id"] < one["id"] < events[1]["id"]
        sent = await later["ann"].send("lounge", "t", "two")
        assert [event["message"]["id"] for event in await again.events()] == [sent]


async def test_transient_events_after_a_restart_do_not_repeat_an_id(
    org: Organization, config: Config
) -> None:
    ben = await org["ben"].register()
    org.node.delivery.publish(typing(org, "ann", "ben"))
    (before,) = await ben.events()
    async with open_organization(config) as later:
        again = Listener(later["ben"], ben.queue_id, before["id"], {})
        assert await again.events() == []
        later.node.delivery.publish(typing(later, "ann", "ben"))
        (after,) = await again.events()
        assert after["id"] > before["id"]


async def test_a_transient_event_keeps_its_place(org: Organization, lounge: int) -> None:
    ben = await org["ben"].register()
    org.node.delivery.publish(typing(org, "ann", "ben"))
    await org["ann"].send("lounge", "t", "one")
    org.node.delivery.publish(typing(org, "ann", "ben", started=False))
    assert (await org["ann"].post("/users/me/presence", status="active", ping_only=True)).ok
    await org["ann"].send("lounge", "t", "two")
    kinds = [event["type"] for event in await ben.events()]
    assert kinds == ["typing", "message", "typing", "presence", "message"]


async def lots(org: Organization, count: int) -> list[int]:
    """Many messages in few transactions."""
    return await asyncio.gather(
        *(org["ann"].send("lounge", f"t{n % 3}", f"m{n}") for n in range(count))
    )


async def all_of(listener: Listener) -> list[list[dict[str, Any]]]:
    """Poll until no events are left. Returns the responses."""
    answers = []
    while found := await listener.events():
        answers.append(found)
    return answers


async def test_many_pending_events_arrive_in_several_responses(
    org: Organization, lounge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_pages(monkeypatch, 20)
    ben = await org["ben"].register()
    sent = await lots(org, 30)
    org.node.delivery.publish(typing(org, "ann", "ben"))
    sent += await lots(org, 25)
    answers = await all_of(ben)
    assert [len(answer) for answer in answers] == [20, 21, 15]
    events = [event for answer in answers for event in answer]
    assert [e["message"]["id"] for e in events if e["type"] == "message"] == sorted(sent)
    assert [event["type"] for event in events].index("typing") == 30


@pytest.mark.parametrize("recent", [1, 7, 30])
async def test_events_no_longer_in_memory_are_read_from_the_log(
    config: Config, monkeypatch: pytest.MonkeyPatch, org: Organization, lounge: int, recent: int
) -> None:
    monkeypatch.setattr(recent_entries, "RECENT", recent)
    limit_pages(monkeypatch, 8)
    async with open_organization(config) as small:
        ben = await small["ben"].register()
        sent = await lots(small, 40)
        answers = await all_of(ben)
        ids = [event["message"]["id"] for answer in answers for event in answer]
        assert ids == sorted(sent)


async def test_under_load_nothing_is_lost_or_delivered_twice(
    org: Organization, lounge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_pages(monkeypatch, 16)
    names = ("ann", "ben", "ann", "ben")
    listeners = [await org[name].register() for name in names]
    done = asyncio.Event()

    async def listen(listener: Listener) -> list[int]:
        seen: list[int] = []
        while True:
            is_last = done.is_set()
            found = await listener.events(block=not is_last)
            seen += [event["message"]["id"] for event in found if event["type"] == "message"]
            if is_last and not found:
                return seen

    async def send(name: str) -> list[int]:
        return [await org[name].send("lounge", name, f"m{n}") for n in range(25)]

    listening = [asyncio.create_task(listen(listener)) for listener in listeners]
    sent = await asyncio.gather(*(send(name) for name in names))
    done.set()
    org.node.delivery.publish(typing(org, "ann", "ben"))  # Wakes waiting polls for the last time.
    every = sorted(message_id for ids in sent for message_id in ids)
    assert await asyncio.gather(*listening) == [every] * len(listeners)


async def test_a_message_is_encoded_once_per_view(org: Organization, lounge: int) -> None:
    """However many queues wait, and whichever event types they chose."""
    node = org.node
    encoder: Any = node.delivery.encoder
    encoded: list[bytes] = []

    async def wait_and_send(views: int) -> int:
        polls = []
        for n in range(200):
            record = QueueRecord(
                id=f"{views}-{n}",
                user_id=org["ben"].user_id,
                registration=Registration(
                    event_types=None if n % 3 else ("message", f"other {n}"),
                    apply_markdown=bool(n % views),
                    capabilities=Capabilities(),
                ),
                start=node.log.durable,
                created_at=0,
                seen_at=0,
                idle_timeout=600,
            )
            node.delivery.queues._insert(Queue(record, node.clock()))
            polls.append(
                asyncio.create_task(
                    node.delivery.poll(record.id, org["ben"].user_id, -1, block=True)
                )
            )
        await until(lambda: node.delivery.waiting == 200)
        before: int = encoder.encoded
        await org["ann"].send("lounge", "t", "*hi*")
        answers = await asyncio.gather(*polls)
        encoded[:] = {event for answer in answers for event in answer}
        assert [len(answer) for answer in answers] == [1] * 200
        return int(encoder.encoded) - before

    assert await wait_and_send(1) == 1
    assert len({id(event) for event in encoded}) == 1
    assert await wait_and_send(2) == 2


async def test_an_event_that_cannot_be_encoded_ends_only_its_queue(
    org: Organization, lounge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Skipping it would leave the client with a wrong state for good."""
    ben = await org["ben"].register()
    ann = await org["ann"].register()
    waiting = await org["ben"].register()
    encoder = org.node.delivery.encoder
    real: Callable[..., Any] = encoder.events_of

    def events_of(posted: Any, count: int) -> Any:
        def events(queue: QueueRecord) -> Any:
            if queue.user_id == org["ben"].user_id:
                raise ZeroDivisionError
            return real(posted, count)(queue)

        return events

    async with polling(org, waiting) as poll:
        monkeypatch.setattr(encoder, "events_of", events_of)
        sent = await org["ann"].send("lounge", "t", "hi")
        with pytest.raises(NoSuchQueue):
            await poll
    reply = await org["ben"].get("/events", queue_id=ben.queue_id, last_event_id=-1)
    reply.refused("BAD_EVENT_QUEUE_ID")
    assert [event["message"]["id"] for event in await ann.events()] == [sent]


async def test_a_poll_without_new_events_needs_no_database(
    org: Organization, lounge: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ben = await org["ben"].register()
    await org["ann"].send("lounge", "t", "hi")
    counting = Counting(org.node.store, monkeypatch)
    assert len(await ben.events()) == 1
    assert await ben.events() == []
    assert (counting.reads, counting.begins) == (0, 0)


async def test_closing_answers_every_poll(org: Organization, config: Config) -> None:
    ben = await org["ben"].register()
    async with open_organization(config) as later:
        again = Listener(later["ben"], ben.queue_id, ben.last_event_id, {})
        async with polling(later, again) as poll:
            await later.node.delivery.close()
            assert await poll == []
        assert await again.events(block=True) == []


async def test_a_pruned_log_ends_the_queues_behind_it(org: Organization, config: Config) -> None:
    ben = await org["ben"].register()
    for n in range(3):
        await org.do(RealmChanged(values={"name": f"N{n}"}))

    def prune(connection: Any) -> None:
        connection.run("DELETE FROM log WHERE seq <= ?", (org.node.log.durable - 1,))

    await org.node.store.write(prune)
    async with open_organization(config) as later:
        reply = await later["ben"].get(
            "/events", queue_id=ben.queue_id, last_event_id=ben.last_event_id
        )
        reply.refused("BAD_EVENT_QUEUE_ID")


@pytest.mark.parametrize(
    "path", sorted(Path(tertulia.delivery.__file__).parent.glob("*.py")), ids=lambda p: p.name
)
def test_no_class_of_delivery_uses_another_s_private_attributes(path: Path) -> None:
    tree = ast.parse(path.read_text())
    assert [
        f"{path.name}:{node.lineno} {ast.unparse(node)}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr.startswith("_")
        and ast.unparse(node.value) != "self"
    ] == []
