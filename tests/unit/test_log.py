"""The writer: group commits, refusals, failures, snapshots, and other processes."""

import asyncio
import math
import uuid
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from typing import Any

import msgspec
import psycopg
import pytest

from tertulia.app.founding import opened_log
from tertulia.jobs.supervisor import Job
from tertulia.log import commits, replica, requests
from tertulia.log.log import Log
from tertulia.log.requests import Command, Gathering, Group
from tertulia.model.changes import ChannelCreated, Entry, RealmChanged
from tertulia.model.channels import Channel
from tertulia.model.errors import OutcomeUnknown, Refused, Unavailable
from tertulia.model.mail import Mail, MailKind
from tertulia.model.queues import QueueRecord, Registration
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.store import installation, log_entries, outbox, queries
from tertulia.store.database import (
    CommitUnknown,
    Connection,
    DatabaseUnavailable,
    TimeLimitReached,
)
from tertulia.store.log_entries import LogTail
from tertulia.store.notes import FactSet
from tertulia.store.pipeline import EncodedStatement, Pipeline
from tertulia.store.store import Store
from tertulia.store.writing import Batch
from tests.support import Organization, until

pytestmark = pytest.mark.usefixtures("anyio_backend", "no_jobs")


def create(context: CommandContext, name: str) -> Decision[int]:
    """Create a channel with this name, unless it exists."""
    if context.state.channel_named(name) is not None:
        raise Refused("taken")
    new_id = context.state.channels.next_id()
    channel = Channel(id=new_id, name=name, created_at=int(context.now))
    return Decision(new_id, (ChannelCreated(channel=channel),))


def rename(context: CommandContext, name: str) -> Decision[str]:
    """Rename the organization. The result is its previous name."""
    return Decision(context.state.realm.name, (RealmChanged(values={"name": name}),))


def stumble(_: CommandContext) -> Decision[None]:
    raise ZeroDivisionError


def misfold(_: CommandContext) -> Decision[None]:
    """A valid change, followed by one that can't be folded."""
    return Decision(
        None, (RealmChanged(values={"name": "Half"}), RealmChanged(values={"no such": 1}))
    )


class Counting:
    """Counts the store's transactions and, when told to, breaks them."""

    def __init__(self, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reads = self.begins = self.commits = 0
        self.breaks: set[str] = set()
        self.error: type[Exception] = OSError
        self.batches: list[Batch] = []
        self.gate: asyncio.Event | None = None
        real_read, real_begin, real_commit = store.read, store.begin, store.commit
        real_read_log = store.read_log

        async def read(*arguments: Any, **keywords: Any) -> Any:
            # Jobs have their first runs when a test begins.
            task = asyncio.current_task()
            is_job = task is not None and task.get_coro().__qualname__ == Job.run.__qualname__  # type: ignore[union-attr]
            self.reads += not is_job
            if "read" in self.breaks:
                raise OSError("read")
            return await real_read(*arguments, **keywords)

        async def read_log(*arguments: Any) -> Any:
            # (Other processes' notifications cause reads of new entries at any time.)
            if "read" in self.breaks:
                raise OSError("read")
            return await real_read_log(*arguments)

        async def begin(*arguments: Any) -> LogTail:
            self.begins += 1
            found = await real_begin(*arguments)
            if "begin" in self.breaks:
                raise OSError("begin")
            return found

        async def commit(batch: Batch, *arguments: Any) -> None:
            # A job whose command changes nothing isn't counted, because jobs run at any time.
            is_empty = not batch.entries and not batch.notes
            self.commits += not is_empty
            self.begins -= is_empty
            self.batches.append(batch)
            if self.gate is not None:
                await self.gate.wait()
            if "commit" in self.breaks:
                raise self.error("commit")
            await real_commit(batch, *arguments)
            if "after commit" in self.breaks:
                raise self.error("nobody heard that it was committed")

        monkeypatch.setattr(store, "read", read)
        monkeypatch.setattr(store, "read_log", read_log)
        monkeypatch.setattr(store, "begin", begin)
        monkeypatch.setattr(store, "commit", commit)

    def close(self) -> None:
        """Let waiting commits through: the node couldn't close after a failed test."""
        if self.gate is not None:
            self.gate.set()


@pytest.fixture
def counting(org: Organization, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    with closing(Counting(org.node.store, monkeypatch)) as counting:
        yield counting


@asynccontextmanager
async def other_log(config: Config) -> AsyncIterator[Log]:
    """Another process's access to the same log."""
    async with opened_log(config, lambda _: None) as log:
        yield log


async def nothing_known(*_: Any) -> None:
    """The result of `was_committed` if others have written since."""


async def rows_of(log: Log) -> tuple[int, dict[str, dict[Any, Any]]]:
    """The position of the tables in the log, and their content by key."""
    seq, records = await log.store.read(lambda c: (log_entries.head(c), queries.records(c)))
    tables = log.state.tables
    return seq, {
        name: {tables[name].noun.key_of(row): row for row in rows} for name, rows in records.items()
    }


async def assert_true_to_the_tables(log: Log) -> None:
    """Check that the live state equals the tables."""
    seq, rows = await rows_of(log)
    assert seq == log.state.seq == log.durable
    assert rows == {name: table.rows for name, table in log.state.tables.items()}


async def test_waiting_commands_are_committed_together(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    ids = await asyncio.gather(*(log.submit(None, create, f"c{n}") for n in range(200)))
    assert sorted(ids) == list(range(1, 201))
    assert counting.commits <= 3
    await assert_true_to_the_tables(log)


async def test_a_large_batch_of_entries_is_folded_in_turns(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commits, "BATCH_SIZE", 2)
    monkeypatch.setattr(commits, "TURN_SECONDS", 0.0)
    log, names = org.node.log, [f"N{n}" for n in range(5)]
    followed: list[str] = []

    def follow(entries: Sequence[Entry]) -> None:
        assert len(entries) <= 2
        assert log.durable == entries[-1].seq
        followed.extend(
            e.change.values["name"] for e in entries if isinstance(e.change, RealmChanged)
        )

    log.subscribers.followers.append(follow)
    halves = 0

    async def look() -> None:
        nonlocal halves
        while log.state.realm.name != names[-1]:
            if log.state.realm.name in names:
                halves += 1
                assert not followed
                monkeypatch.setattr(requests, "ANSWER_SECONDS", 0.0)
                log._inbox.expire()
            await asyncio.sleep(0)
        # Readers of the new state are answered once all of it is on disk.
        await log.durability.settled()
        assert followed == names

    def many(_: CommandContext) -> Decision[None]:
        return Decision(None, tuple(RealmChanged(values={"name": name}) for name in names))

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(look())
        # A client that has waited too long by then can't be told that nothing was done.
        with pytest.raises(OutcomeUnknown):
            await log.submit(None, many)
    assert halves


async def test_a_group_waits_briefly_for_frequent_writers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Those of other nodes, and those that send one command after another to this one."""
    for name in ("GATHERED_SECONDS", "MOST_SECONDS", "LULL_SECONDS", "OWN_LULL_SECONDS"):
        monkeypatch.setattr(requests, name, 1000.0)
    waiting = requests.Inbox()

    def command(actor_id: int, until: float = math.inf) -> Command:
        answer = asyncio.get_running_loop().create_future()
        return Command(actor_id, rename, ("x",), (), answer, until=until)

    def group(*commands: Command) -> Group:
        return Group([*commands], [], [], has_probe=False)

    async def waits(gatherer: Gathering) -> "asyncio.Task[None]":
        task = asyncio.create_task(gatherer.wait(group(command(1))))
        for _ in range(5):
            await asyncio.sleep(0)
        return task

    # If all use this node: those that were in every other group, and nobody else.
    alone = Gathering(waiting)
    for others in ((2, 3), (4,), (2, 5), (6,)):
        alone.committed(group(command(1), *map(command, others)))
    alone_waits = await waits(alone)
    assert not alone_waits.done()
    waiting.add(command(2))
    await asyncio.wait_for(alone_waits, 60)
    waiting = alone._inbox = requests.Inbox()
    for other in (7, 8, 9):
        alone.committed(group(command(1), command(other)))
    assert (await waits(alone)).done()

    gatherer = Gathering(waiting)
    gatherer.committed(group(command(3)))
    gatherer.committed(group(command(1), command(2, until=2.0**60)))
    gatherer_waits = await waits(gatherer)
    for missing in (2, 3):
        for _ in range(5):
            await asyncio.sleep(0)
        assert not gatherer_waits.done()
        waiting.add(command(missing))
    await asyncio.wait_for(gatherer_waits, 60)
    # Frequent writers are waited for within a total limit.
    monkeypatch.setattr(requests, "MOST_SECONDS", 0.001)
    waiting = gatherer._inbox = requests.Inbox()
    gatherer_waits = await waits(gatherer)
    assert not gatherer_waits.done()
    waiting.add(command(2))
    await asyncio.wait_for(gatherer_waits, 60)
    # Nobody is waited for long, or after a pause.
    monkeypatch.setattr(requests, "GATHERED_SECONDS", 0.001)
    waiting = gatherer._inbox = requests.Inbox()
    await asyncio.wait_for(gatherer.wait(group(command(1))), 60)
    monkeypatch.setattr(requests, "GATHERED_SECONDS", 1000.0)
    for name in ("LULL_SECONDS", "OWN_LULL_SECONDS"):
        monkeypatch.setattr(requests, name, 0.0)
    await asyncio.wait_for(gatherer.wait(group(command(1))), 60)


async def test_a_command_sees_what_earlier_ones_of_its_group_decided(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    was = await asyncio.gather(*(log.submit(None, rename, f"N{n}") for n in range(5)))
    assert was == ["Example", "N0", "N1", "N2", "N3"]
    assert counting.commits == 1


@pytest.mark.parametrize(
    ("verb", "error"), [(stumble, ZeroDivisionError), (misfold, Exception)], ids=["verb", "fold"]
)
@pytest.mark.usefixtures("patient_writer")
async def test_a_bug_in_one_command_does_not_affect_others(
    org: Organization, verb: Any, error: type[Exception], counting: Counting
) -> None:
    log = org.node.log
    heard: list[Entry] = []
    log.subscribers.followers.append(heard.extend)
    answers = await asyncio.gather(
        log.submit(None, create, "one"),
        log.submit(None, verb),
        log.submit(None, create, "two"),
        return_exceptions=True,
    )
    assert isinstance(answers[1], error)
    assert not isinstance(answers[1], Unavailable)
    assert [answers[0], answers[2]] == [1, 2]
    assert log.state.realm.name == "Example"
    assert [entry.change.channel.name for entry in heard] == ["one", "two"]  # type: ignore[attr-defined]
    await assert_true_to_the_tables(log)


async def test_a_refusal_in_a_group_does_not_affect_others(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    answers = await asyncio.gather(
        log.submit(None, create, "one"),
        log.submit(None, create, "ONE"),
        log.submit(None, create, "two"),
        return_exceptions=True,
    )
    assert [answers[0], answers[2]] == [1, 2]
    assert isinstance(answers[1], Refused)
    assert counting.commits == 1


async def test_a_command_hears_when_its_changes_are_in_the_state_but_not_on_disk(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    counting.gate = asyncio.Event()
    folded: list[tuple[str, int]] = []
    is_folded = asyncio.Event()

    def submitted(name: str) -> "asyncio.Task[int]":
        def note() -> None:
            folded.append((name, len(log.state.channels)))
            is_folded.set()

        return asyncio.create_task(log.submit(None, create, name, on_folded=note))

    commands = [submitted(name) for name in ("one", "ONE", "two")]
    await is_folded.wait()
    assert folded == [("one", 2), ("two", 2)]  # The whole group is decided, and one is refused.
    assert not any(command.done() for command in commands)
    counting.gate.set()
    answers = await asyncio.gather(*commands, return_exceptions=True)
    assert [answers[0], answers[2]] == [1, 2]
    assert isinstance(answers[1], Refused)


@pytest.mark.parametrize("where", ["begin", "commit"])
async def test_a_failed_commit_changes_nothing(
    org: Organization, counting: Counting, where: str
) -> None:
    log = org.node.log
    ann = await org["ann"].register()
    heard: list[Entry] = []
    log.subscribers.followers.append(heard.extend)
    counting.breaks = {where}
    answers = await asyncio.gather(
        *(log.submit(None, create, f"c{n}") for n in range(3)),
        log.snapshot(None, lambda _: None, lambda state, _: state.seq, queue_of(org)),
        return_exceptions=True,
    )
    assert [type(answer) for answer in answers] == [Unavailable] * 4
    counting.breaks = set()
    await org["ann"].get("/server_settings")
    await until(lambda: not len(log.state.channels))
    await log.catch_up()
    await assert_true_to_the_tables(log)
    assert heard == []
    assert await ann.events() == []
    assert await log.submit(None, create, "next") == 1
    assert len(heard) == 1
    await assert_true_to_the_tables(log)


@pytest.mark.parametrize("lost", [OSError, CommitUnknown])
async def test_a_commit_without_a_response_is_checked_and_succeeds(
    org: Organization, counting: Counting, lost: type[Exception]
) -> None:
    log = org.node.log
    await org.channel("lounge", "ann")
    ann = await org["ann"].register()
    counting.breaks, counting.error = {"after commit"}, lost
    generation = log.durability.generation
    told: list[str] = []
    for number in range(20):
        await org["ann"].send("lounge", "t", f"hi {number}")
        told.append(f"hi {number}")
    counting.breaks = set()
    await org["ann"].send("lounge", "t", "again")
    assert [e["message"]["content"] for e in await ann.events()] == [*told, "again"]
    assert log.durability.generation == generation
    assert log.problems() == []
    await assert_true_to_the_tables(log)


async def test_a_lost_commit_is_reported(org: Organization, counting: Counting) -> None:
    log = org.node.log
    counting.breaks, counting.error = {"commit"}, CommitUnknown
    with pytest.raises(Unavailable, match="Nothing was changed") as refusal:
        await log.submit(None, create, "one")
    assert not isinstance(refusal.value, OutcomeUnknown)
    counting.breaks = set()
    assert await log.submit(None, create, "one") == 1
    await assert_true_to_the_tables(log)


async def test_a_commit_known_to_have_failed_is_not_checked(
    org: Organization, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def was_committed(*_: Any) -> None:
        raise AssertionError

    monkeypatch.setattr(org.node.store, "was_committed", was_committed)
    counting.breaks, counting.error = {"commit"}, DatabaseUnavailable
    with pytest.raises(Unavailable, match="Nothing was changed"):
        await org.node.log.submit(None, create, "one")


async def test_an_unknown_outcome_is_not_reported_as_known(
    org: Organization, counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that can't wait are told so. The outcome is reported once it's known."""
    log, store = org.node.log, org.node.store
    await org.channel("lounge", "ann")
    ann = await org["ann"].register()
    real, is_away = store.was_committed, True

    async def was_committed(*arguments: Any) -> bool | None:
        if is_away:
            raise OSError("away")
        return await real(*arguments)

    monkeypatch.setattr(store, "was_committed", was_committed)
    monkeypatch.setattr(commits, "RETRY_SECONDS", 0)
    counting.breaks, counting.error = {"after commit"}, CommitUnknown
    sending = asyncio.create_task(
        org["ann"].post("/messages", type="channel", to="lounge", topic="t", content="hi")
    )
    await until(lambda: log._inbox.is_committing)
    for _ in range(20):
        await asyncio.sleep(0)
    assert not sending.done()
    later = asyncio.create_task(log.submit(None, create, "later"))
    await asyncio.sleep(0)
    monkeypatch.setattr(requests, "ANSWER_SECONDS", 0)
    monkeypatch.setattr(requests, "BEGIN_SECONDS", 0)
    log._tick()
    reply = await sending
    assert "may not have been saved" in reply.refused("SERVER_NOT_READY", 503)["msg"]
    assert "Retry-After" not in reply.headers
    with pytest.raises(Unavailable, match="Nothing was changed"):
        await later
    monkeypatch.undo()
    counting.breaks = set()
    is_away = False
    await log.catch_up()
    assert [e["message"]["content"] for e in await ann.events()] == ["hi"]
    assert log.state.channel_named("later") is None
    await assert_true_to_the_tables(log)


async def test_queue_records_and_emails_are_written_once_however_the_commit_ended(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = Mail(kind=MailKind.HAS_ACCOUNT, to="zoe@example.com", site="http://chat.test")
    async with other_log(config) as log:  # Without an email sender.
        counting = Counting(log.store, monkeypatch)
        counting.error = CommitUnknown
        for where in ("commit", "after commit"):
            counting.breaks = {where}
            log.mail(mail)
            await until(lambda: not log._inbox)
            await log.catch_up()
        # If others have written such records since, the outcome is unknown, and they're written
        # again.
        monkeypatch.setattr(log.store, "was_committed", nothing_known)
        log.mail(mail)
        await log.catch_up()
        counting.breaks = set()
        await log.submit(None, create, "one")
        assert len(await log.store.read(outbox.queued)) == 3


async def test_a_response_waits_until_its_data_is_on_disk(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    counting.gate = asyncio.Event()
    renaming = asyncio.create_task(log.submit(None, rename, "Ahead"))
    await until(lambda: log.state.realm.name == "Ahead")
    reading_it = asyncio.create_task(org.nobody.get("/server_settings"))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not reading_it.done()
    assert log.durable < log.state.seq
    counting.gate.set()
    assert (await reading_it).ok["realm_name"] == "Ahead"
    assert await renaming == "Example"


async def test_no_response_shows_a_state_that_was_never_committed(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    counting.gate = asyncio.Event()
    counting.breaks = {"commit"}
    renaming = asyncio.create_task(log.submit(None, rename, "Ahead"))
    await until(lambda: log.state.realm.name == "Ahead")
    asked = asyncio.create_task(org.nobody.get("/server_settings"))
    for _ in range(20):
        await asyncio.sleep(0)
    counting.gate.set()
    assert (await asked).ok["realm_name"] == "Example"
    with pytest.raises(Unavailable):
        await renaming
    counting.breaks = set()
    await log.catch_up()
    assert (await org.nobody.get("/server_settings")).ok["realm_name"] == "Example"


async def test_no_response_uses_a_state_with_an_unknown_outcome(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    counting.breaks = {"commit", "read"}
    with pytest.raises(Unavailable):
        await log.submit(None, rename, "Ahead")
    (await org.nobody.get("/server_settings")).refused("SERVER_NOT_READY", 503)
    counting.breaks = set()
    await log.catch_up()
    assert (await org.nobody.get("/server_settings")).ok["realm_name"] == "Example"


async def test_a_disconnected_client_does_not_delay_the_writer(
    org: Organization, counting: Counting
) -> None:
    log = org.node.log
    counting.gate = asyncio.Event()
    going = asyncio.create_task(log.submit(None, create, "one"))
    await until(lambda: counting.commits == 1)
    waiting = asyncio.create_task(log.submit(None, create, "two"))
    looking = asyncio.create_task(
        log.snapshot(None, lambda _: None, lambda state, _: state.seq, queue_of(org))
    )
    await asyncio.sleep(0)
    for task in (going, waiting, looking):
        task.cancel()
    counting.gate.set()
    assert await log.submit(None, create, "three") == 3
    await assert_true_to_the_tables(log)


async def test_queue_records_of_a_failed_commit_are_written_with_the_next(
    org: Organization, counting: Counting
) -> None:
    log, store = org.node.log, org.node.store
    record = queue_of(org)(log.state.seq)
    counting.breaks = {"commit"}
    log.note(record)
    await until(lambda: counting.commits == 1)
    counting.breaks = set()
    await log.submit(None, create, "one")
    assert await store.read(queries.queue, record.id) == (record, record.seen_at)


async def test_queue_records_of_a_refused_command_are_not_written(org: Organization) -> None:
    log, store = org.node.log, org.node.store
    await log.submit(None, create, "one", notes=(FactSet("told", "once"),))
    with pytest.raises(Refused):
        await log.submit(None, create, "one", notes=(FactSet("told", "twice"),))
    assert await store.read(installation.value, "told") == "once"


def queue_of(org: Organization) -> Callable[[int], QueueRecord]:
    count = 0

    def queue(seq: int) -> QueueRecord:
        nonlocal count
        count += 1
        return QueueRecord(
            id=f"queue-{count}",
            user_id=org["ann"].user_id,
            registration=Registration(),
            start=seq,
            created_at=1,
            seen_at=1,
            idle_timeout=600,
        )

    return queue


async def test_a_snapshot_is_of_exactly_the_entry_at_which_its_queue_begins(
    org: Organization, config: Config
) -> None:
    """While this node and, on PostgreSQL, another one keep writing."""
    stop = asyncio.Event()

    async def write(log: Log, prefix: str) -> None:
        count = 0
        while not stop.is_set():
            await log.submit(None, rename, f"{prefix}{count}")
            count += 1
            # A snapshot is retried if the other node wrote. On a slow machine, none would end if
            # the pauses didn't grow.
            await asyncio.sleep(0.002 * count)

    async def register() -> None:
        made: list[QueueRecord] = []
        queue = queue_of(org)

        def remember(seq: int) -> QueueRecord:
            made.append(msgspec.structs.replace(queue(seq), id=str(uuid.uuid4())))
            return made[-1]

        in_tables, in_memory, name = await org.node.log.snapshot(
            None,
            lambda c: (log_entries.head(c), next(iter(queries.records(c)["realm"])).name),
            lambda state, seen: (*seen[:1], state.seq, (seen[1], state.realm.name)),
            remember,
        )
        assert in_tables == in_memory == made[-1].start
        assert name[0] == name[1]
        assert await org.node.store.read(queries.queue, made[-1].id) is not None

    async with other_log(config) as other:
        logs = [org.node.log, other] if org.node.store.is_shared else [org.node.log]
        writers = [asyncio.create_task(write(log, f"n{n}-")) for n, log in enumerate(logs)]
        try:
            for _ in range(5):
                await asyncio.gather(*(register() for _ in range(5)))
        finally:
            stop.set()
            await asyncio.gather(*writers)


async def test_another_process_s_writes_are_noticed_and_announced(
    org: Organization, config: Config
) -> None:
    log = org.node.log
    heard: list[Entry] = []
    log.subscribers.followers.append(heard.extend)
    async with other_log(config) as other:
        assert await other.submit(None, create, "theirs") == 1
        await until(lambda: log.state.channel_named("theirs") is not None)
        assert [entry.seq for entry in heard] == [log.durable]
        # Neither decides with an old state, noticed or not.
        assert await log.submit(None, create, "ours") == 2
        assert await other.submit(None, create, "both") == 3
    await log.catch_up()
    assert [entry.seq for entry in heard] == list(range(log.durable - 2, log.durable + 1))
    await assert_true_to_the_tables(log)


async def test_closing_finishes_waiting_commands_and_accepts_no_more(
    org: Organization, config: Config
) -> None:
    async with other_log(config) as log:
        waiting = [asyncio.create_task(log.submit(None, create, f"c{n}")) for n in range(20)]
        await asyncio.sleep(0)
        await log.close()
        assert sorted(await asyncio.gather(*waiting)) == list(range(1, 21))
        with pytest.raises(Unavailable):
            await log.submit(None, create, "late")
        with pytest.raises(Unavailable):
            await log.snapshot(None, lambda _: None, lambda *_: None)
        assert len(log._inbox) == 0


async def test_closing_during_an_outage_refuses_waiting_commands(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with other_log(config) as log:
        counting = Counting(log.store, monkeypatch)
        counting.breaks = {"commit", "read"}
        with pytest.raises(Unavailable):
            await log.submit(None, create, "one")
        waiting = asyncio.create_task(log.submit(None, create, "two"))
        await asyncio.sleep(0)
        await log.close()
        with pytest.raises(Unavailable):
            await waiting
    await org.node.log.catch_up()
    assert not len(org.node.state.channels)


async def test_closing_after_an_unrecoverable_error_leaves_no_command_waiting(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with other_log(config) as log:
        counting = Counting(log.store, monkeypatch)
        counting.breaks = {"read"}
        waiting = [
            asyncio.create_task(log.submit(None, create, "one")),
            asyncio.create_task(log.submit(None, misfold)),
        ]
        await asyncio.sleep(0)
        await log.close()
        await until(lambda: all(task.done() for task in waiting))
        with pytest.raises(Unavailable, match="Nothing was changed"):
            await waiting[0]
        with pytest.raises(Exception, match="no such"):
            await waiting[1]
    assert not len(org.node.state.channels)


async def test_a_broken_connection_is_replaced(org: Organization) -> None:
    """For readers, whichever of them finds it, and for the writer."""
    store = org.node.store
    await org.node.log.submit(None, create, "nought")
    await asyncio.gather(*(store.read(log_entries.head) for _ in range(20)))
    for readers in (store._readers, store._log_reader):
        for slot in readers._slots:
            slot.opened.driver.close()  # type: ignore[union-attr]
    for _ in range(20):
        assert await store.read(log_entries.head) == org.node.log.durable
    await org.node.log.catch_up()
    written = store._writing.opened
    assert written is not None
    written.driver.close()  # type: ignore[attr-defined]
    assert await org.node.log.submit(None, create, "one") == 2


async def test_maintenance_waits_for_the_commit_in_progress(org: Organization) -> None:
    log, store = org.node.log, org.node.store

    def touch(connection: Connection) -> None:
        connection.run("UPDATE head SET pruned = pruned + 1 WHERE id = 1")

    results = await asyncio.gather(
        *(log.submit(None, create, f"c{n}") for n in range(10)),
        *(store.write(touch) for _ in range(10)),
        *(log.submit(None, create, f"d{n}") for n in range(10)),
    )
    assert len(results) == 30
    assert await store.read(log_entries.pruned) == 10
    await assert_true_to_the_tables(log)


async def test_sending_a_message_is_one_write_transaction_and_no_read(
    org: Organization, counting: Counting
) -> None:
    await org.channel("lounge", "ann", "ben")
    counting.reads = counting.begins = counting.commits = 0
    await org["ann"].send("lounge", "t", "hello @**Ben**")
    assert (counting.reads, counting.begins, counting.commits) == (0, 1, 1)


async def test_responses_from_memory_need_no_database(
    org: Organization, counting: Counting
) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    counting.reads = counting.begins = counting.commits = 0
    assert (await org["ann"].get(f"/users/me/{channel}/topics")).ok["topics"] == []
    assert (await org.nobody.get("/server_settings")).ok["realm_name"] == "Example"
    assert (await org["ann"].get("/users/me")).status in (200, 404)
    assert (counting.reads, counting.begins, counting.commits) == (0, 0, 0)


async def test_a_transaction_committed_during_shutdown_is_reported_as_done(
    org: Organization, config: Config, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database stops right after the commit, before its response."""
    if not config.database_url:
        return
    exchange = Pipeline.exchange

    async def shut_down(
        self: Pipeline, statements: Sequence[EncodedStatement], patience: float
    ) -> Any:
        answers = await exchange(self, statements, patience)
        if statements[-1].sql == "COMMIT":
            monkeypatch.undo()
            raise psycopg.errors.AdminShutdown
        return answers

    monkeypatch.setattr(Pipeline, "exchange", shut_down)
    log = org.node.log
    await log.submit(None, create, "late")
    await log.catch_up()
    assert "late" in {channel.name for channel in log.state.channels}


async def test_outcomes_are_correct_while_connections_are_terminated(
    org: Organization, config: Config
) -> None:
    """By the database's administrator, at any time, and a few times for each change: if it never
    stopped, a slow machine would never finish one."""
    if not config.database_url:
        return
    log = org.node.log
    ending, left = True, 0

    async def end_connections() -> None:
        nonlocal left
        async with await psycopg.AsyncConnection.connect(
            config.database_url, autocommit=True
        ) as connection:
            while ending:
                ended = await connection.execute(
                    "SELECT pg_terminate_backend(activity.pid) FROM pg_stat_activity AS activity"
                    " JOIN pg_locks AS held ON held.pid = activity.pid"
                    " WHERE held.relation = 'head'::regclass"
                    " AND activity.pid <> pg_backend_pid() LIMIT %s",
                    (left,),
                )
                left -= ended.rowcount
                await asyncio.sleep(0.005)

    done, refusals = set(), []
    ender = asyncio.create_task(end_connections())
    try:
        for number in range(20):
            left = 3
            try:
                await log.submit(None, create, f"c{number}")
                done.add(f"c{number}")
            except OutcomeUnknown:
                raise AssertionError("the database was there all the time") from None
            except Unavailable as error:
                refusals.append(str(error))
    finally:
        ending = False
        await ender
    await log.catch_up()
    await assert_true_to_the_tables(log)
    assert {channel.name for channel in log.state.channels} == done
    assert all("Nothing was changed" in refusal for refusal in refusals)


@pytest.mark.parametrize("seconds", [1e-9, 60])
async def test_an_organization_that_loads_too_slowly_says_so(
    config: Config, monkeypatch: pytest.MonkeyPatch, seconds: float
) -> None:
    """Another reason of the database isn't mistaken for that."""

    def canceled(_: Connection) -> None:
        raise TimeLimitReached("PostgreSQL: canceling statement due to user request")

    monkeypatch.setattr(replica, "LOAD_SECONDS", seconds)
    monkeypatch.setattr(replica, "_loaded", canceled)
    reason = "canceling statement" if seconds == 60 else "took longer than 1e-09 s"
    with pytest.raises(TimeLimitReached, match=reason):
        async with other_log(config):
            pass
