"""A node's background jobs: if one fails, the others continue, and the failure is visible."""

import asyncio
import dataclasses
import gc
from collections.abc import Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest

from tertulia.delivery.delivery import Delivery
from tertulia.domain.messages import deleting
from tertulia.jobs import previews, supervisor
from tertulia.jobs.due import (
    ATTEMPTS,
    due_job,
    expired_once,
    message_retention,
    messages_to_be_reminded_of,
    messages_to_send,
)
from tertulia.jobs.previews import Previewer
from tertulia.jobs.supervisor import FailedItems, Job, JobSupervisor, pause_after
from tertulia.jobs.upkeep import heartbeats, reporter, troubles
from tertulia.markup.render import Renderer
from tertulia.model.changes import RealmChanged
from tertulia.model.errors import Conflict, Refused, Unavailable
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tertulia.state.state import State
from tertulia.store.database import ConnectionLost
from tests.support import Organization, TestClock, new_organization, until
from tests.wire.personal_data import later

DAY = 86400


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """The kind of database makes no difference to most of this."""
    return Config(data_dir=str(tmp_path))


class Work:
    """A run that fails when told to."""

    def __init__(self, *failures: BaseException | None, pause: float = 0.0) -> None:
        self.failures = list(failures)
        self.rounds = 0
        self.pause = pause

    async def __call__(self) -> float:
        self.rounds += 1
        failure = self.failures.pop(0) if self.failures else None
        if failure is not None:
            raise failure
        return self.pause


# The scheduler


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses after failures."""
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    monkeypatch.setattr(supervisor, "REST_SECONDS", 0.001)
    monkeypatch.setattr(supervisor, "FIRST_ROUND_SECONDS", 0.001)


@pytest.mark.usefixtures(quick.__name__)
async def test_a_failed_job_is_retried_and_others_continue(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing, steady = Work(OSError("no disk"), KeyError("x"), pause=60), Work()
    reports: list[tuple[str, str | None]] = []
    jobs = JobSupervisor(lambda job: reports.append((job.name, job.trouble)))
    async with jobs.running([Job("failing", failing), Job("steady", steady)]):
        await until(lambda: failing.rounds == 3 and steady.rounds > 3)
        assert jobs.failing() == {}
    assert [trouble for name, trouble in reports if name == "failing"] == [
        "failed 1 time in a row: OSError: no disk",
        None,
    ]
    assert [record.fields["reason"] for record in caplog.records] == [  # type: ignore[attr-defined]
        "OSError: no disk",
        "KeyError: 'x'",
    ]


@pytest.mark.usefixtures(quick.__name__)
async def test_a_run_interrupted_by_an_outage_is_no_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    away = ConnectionLost("the connection was ended")
    work = Work(away, None, away, away, OSError("no disk"), None, pause=0.001)
    job = Job("notices", work)
    async with JobSupervisor().running([job]):
        await until(lambda: work.rounds > 6)
    said = [(one.levelname, one.message) for one in caplog.records]
    interrupted, failed = ("WARNING", "job interrupted"), ("ERROR", "job failed")
    assert said == [interrupted, interrupted, failed, failed]
    assert (job.all_failures, job.trouble) == (2, None)


async def test_a_job_starts_when_due_or_requested_and_runs_once() -> None:
    wanted, later, asked, due = (Work(pause=60) for _ in range(4))
    jobs = [
        Job("wanted", wanted, first_seconds=60),
        Job("later", later, first_seconds=60),
        Job("asked", asked, first_seconds=60),
        Job("due", due, first_seconds=0.01),
    ]
    jobs[0].want()  # Before anything can run it.
    before = asyncio.all_tasks()
    async with JobSupervisor().running(jobs):
        # A waiting job has no task.
        assert {task.get_name() for task in asyncio.all_tasks() - before} == {"wanted"}
        jobs[2].want()
        jobs[2].want()
        jobs[3].want()  # It's due soon.
        await until(lambda: bool(wanted.rounds and asked.rounds and due.rounds))
        names = sorted(task.get_name() for task in asyncio.all_tasks() - before)
        assert names == ["asked", "due", "wanted"]
    assert [work.rounds for work in (wanted, later, asked, due)] == [1, 0, 1, 1]
    jobs[1].want()  # Nothing runs it anymore.
    assert asyncio.all_tasks() == before


async def test_a_job_is_not_part_of_the_request_that_first_wanted_it() -> None:
    """The request's deadline and trace are context variables."""
    asking = ContextVar("asking", default="nobody")
    seen: list[str] = []

    async def once() -> float:
        seen.append(asking.get())
        return 60

    job = Job("job", once, first_seconds=60)
    async with JobSupervisor().running([job]):
        asking.set("a request")
        job.want()
        await until(lambda: bool(seen))
    assert seen == ["nobody"]


async def test_a_failing_job_is_reported_with_its_reason() -> None:
    work = Work(*[OSError("no disk")] * 100)
    jobs = JobSupervisor()
    async with jobs.running([Job("files", work), Job("others", Work(pause=60))]):
        await until(lambda: bool(jobs.failing()))
        assert jobs.failing() == {"files": "failed 1 time in a row: OSError: no disk"}


@pytest.mark.usefixtures(quick.__name__)
async def test_a_job_requested_while_it_fails_is_not_retried_without_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 30.0)
    work = Work(*[OSError()] * 100)
    job = Job("wanted", work)
    async with JobSupervisor().running([job]):
        await until(lambda: job.failures == 1)
        for _ in range(50):
            job.want()
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        assert work.rounds == 1


def test_pauses_between_retries_grow_up_to_a_bound() -> None:
    pauses = [pause_after(failures) for failures in range(1, 40)]
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == supervisor.LONGEST_PAUSE
    assert pause_after(10**9) == supervisor.LONGEST_PAUSE


@pytest.mark.usefixtures(quick.__name__)
async def test_a_run_that_takes_too_long_is_canceled() -> None:
    ended = 0

    async def hang() -> float:
        nonlocal ended
        try:
            await asyncio.Event().wait()
        finally:
            ended += 1
        return 0.0

    jobs = JobSupervisor()
    async with jobs.running([Job("hanging", hang, round_seconds=0.01)]):
        await until(lambda: ended >= 2)
        assert "it took too long" in jobs.failing()["hanging"]


async def test_the_first_run_waits_unless_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_ROUND_SECONDS", 3600)
    wanted, other = Work(pause=3600), Work(pause=3600)
    jobs = [Job("wanted", wanted), Job("other", other)]
    async with JobSupervisor().running(jobs):
        jobs[0].want()
        await until(lambda: wanted.rounds == 1)
        assert other.rounds == 0


async def test_requesting_a_job_ends_its_pause() -> None:
    work = Work(pause=3600)
    job = Job("waiting", work)
    async with JobSupervisor().running([job]):
        await until(lambda: work.rounds == 1)
        job.want()
        await until(lambda: work.rounds == 2)


async def test_a_stopping_node_cancels_all_jobs_and_their_tasks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    closed: list[str] = []
    left: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: left.append(context))

    async def close() -> None:
        closed.append("it")

    async def away() -> None:
        raise ConnectionLost("away")

    before = asyncio.all_tasks()
    jobs = [Job("two", Work(), close=away), Job("one", Work(pause=60), close=close)]
    async with JobSupervisor().running(jobs):
        await asyncio.sleep(0)
    assert closed == ["it"]
    assert asyncio.all_tasks() == before
    gc.collect()  # An exception that nothing handled is logged when it's collected.
    assert left == []
    assert caplog.text.count("job did not stop cleanly") == 1


def test_set_aside_items_pause_and_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TestClock(stopped_at=1000)
    aside = FailedItems(clock)
    assert aside.failed(1, ValueError("odd")) == 1
    assert aside.is_resting(1)
    assert not aside.is_resting(2)
    assert aside.next_attempt() == 1
    clock.ahead = 1
    assert not aside.is_resting(1)
    assert aside.next_attempt() == supervisor.FIRST_PAUSE  # Items that can't be processed yet wait.
    assert aside.failed(1, ValueError("odd")) == 2
    assert aside.next_attempt() == 2
    assert aside.reasons() == {"1": "ValueError: odd"}
    monkeypatch.setattr(supervisor, "SET_ASIDE", 3)
    for key in range(2, 10):
        aside.failed(key, ValueError())
    assert set(aside.reasons()) == {"7", "8", "9"}
    aside.keep_only([8])
    assert set(aside.reasons()) == {"8"}
    aside.done(8)
    assert aside.next_attempt() is None


# Due items


def due_at(state: State, now: float) -> float | None:
    """The description contains the times at which something is due."""
    times = state.realm.description.split()
    return float(times[0]) if times else None


def ring(context: CommandContext) -> Decision[None]:
    """The first of the times has passed."""
    _, *later_times = context.state.realm.description.split()
    return Decision(None, (RealmChanged(values={"description": " ".join(later_times)}),))


def refuse(context: CommandContext) -> Decision[None]:
    raise Refused("not today")


def nothing(context: CommandContext) -> Decision[None]:
    return Decision(None)


def settle(context: CommandContext, times: str) -> Decision[None]:
    return Decision(None, (RealmChanged(values={"description": times}),))


async def test_each_due_item_is_processed_once_and_not_early(config: Config) -> None:
    now = TestClock()
    async with new_organization(config, clock=now) as org:
        log = org.node.log
        job = due_job(log, "bells", due_at, ring)
        await log.submit(None, settle, f"{now() + 5} {now() + 6} {now() + 100}")
        await job.once()
        assert len(log.state.realm.description.split()) == 3
        now.ahead = 50
        before = log.state.seq
        await job.once()
        await job.once()
        assert len(log.state.realm.description.split()) == 1
        assert log.state.seq == before + 2


async def test_an_item_announced_as_due_is_processed_without_a_query(
    config: Config,
) -> None:
    async with new_organization(config) as org:
        log = org.node.log
        done = asyncio.Event()
        log.subscribers.followers.append(
            lambda _: None if log.state.realm.description else done.set()
        )
        async with JobSupervisor().running([due_job(log, "bells", due_at, ring)]):
            await log.submit(None, settle, "1 2 3")
            async with asyncio.timeout(60):
                await done.wait()


async def test_a_refused_command_is_a_failure(config: Config) -> None:
    async with new_organization(config) as org:
        await org.node.log.submit(None, settle, "1")
        with pytest.raises(Refused, match="not today"):
            await due_job(org.node.log, "bells", due_at, refuse).once()


async def test_a_command_without_progress_is_retried_after_a_pause(config: Config) -> None:
    async with new_organization(config) as org:
        await org.node.log.submit(None, settle, "1")
        assert await due_job(org.node.log, "bells", due_at, nothing).once() > 1


# Items


class Choosy(Renderer):
    """Fails to render bad items, as if it had a bug."""

    def __init__(self, error: Exception | None = None) -> None:
        super().__init__()
        self.error = error or ZeroDivisionError("a mistake")

    async def rendered(
        self,
        context: CommandContext,
        content: str,
        known: Mapping[str, LinkPreview | None] | None = None,
    ) -> Rendered:
        if "bad" in content:
            raise self.error
        return await super().rendered(context, content, known)


async def write_later(org: Organization, content: str) -> int:
    made = await org["ann"].post(
        "/scheduled_messages",
        type="direct",
        to=[org["ben"].user_id],
        content=content,
        scheduled_delivery_timestamp=later(org),
    )
    scheduled_id: int = made.ok["scheduled_message_id"]
    return scheduled_id


async def newest(org: Organization, name: str) -> list[str]:
    page = await org[name].get(
        "/messages", anchor="newest", num_before=10, num_after=0, apply_markdown=False
    )
    return [message["content"] for message in page.ok["messages"]]


class Stage:
    """An organization whose own jobs don't run, with its clock."""

    def __init__(self, config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
        self.config = config
        self.clock = TestClock()
        monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: ())
        self.resting = TestClock(stopped_at=0)
        monkeypatch.setattr(FailedItems.__init__, "__defaults__", (self.resting,))

    async def enter(self, stack: AsyncExitStack) -> Organization:
        org = await stack.enter_async_context(new_organization(self.config, clock=self.clock))
        await org.add("ben")
        return org


@pytest.fixture
def stage(config: Config, monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(config, monkeypatch)


async def test_a_message_that_cannot_be_prepared_does_not_block_later_ones(
    stage: Stage,
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await write_later(org, "bad")
        await write_later(org, "good")
        stage.clock.ahead += 100
        job = messages_to_send(dataclasses.replace(org.node, renderer=Choosy()))
        await job.once()
        assert await newest(org, "ben") == ["good"]
        assert job.trouble is not None
        assert "ZeroDivisionError: a mistake" in job.trouble
        for _ in range(ATTEMPTS - 1):
            await job.once()
            stage.resting.ahead += 1000
            await job.once()
        (waiting,) = (await org["ann"].get("/scheduled_messages")).ok["scheduled_messages"]
        assert waiting["failed"]
        assert "couldn’t be sent" in (await newest(org, "ann"))[-1]
        assert job.trouble is None


async def test_an_unavailable_database_does_not_discard_a_message(stage: Stage) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await write_later(org, "bad")
        stage.clock.ahead += 100
        away = dataclasses.replace(org.node, renderer=Choosy(Unavailable("away")))
        job = messages_to_send(away)
        for _ in range(ATTEMPTS * 2):
            with pytest.raises(Unavailable):
                await job.once()
        await messages_to_send(org.node).once()
        assert await newest(org, "ben") == ["bad"]


async def test_a_message_changed_concurrently_is_retried(
    stage: Stage,
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await write_later(org, "bad")
        stage.clock.ahead += 100
        job = messages_to_send(dataclasses.replace(org.node, renderer=Choosy(Conflict())))
        await job.once()
        (waiting,) = (await org["ann"].get("/scheduled_messages")).ok["scheduled_messages"]
        assert not waiting["failed"]


async def test_a_reminder_that_cannot_be_shown_is_reported_and_later_ones_are_sent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await org.channel("lounge", "ann")
        made = [await org["ann"].send("lounge", "t", text) for text in ("one", "two")]
        for message_id in made:
            reminder = {"message_id": message_id, "scheduled_delivery_timestamp": later(org)}
            assert (await org["ann"].post("/reminders", **reminder)).ok
        stage.clock.ahead += 100
        renderer = org.node.renderer
        render = renderer.render

        def choosy(context: CommandContext, content: str, *more: Any) -> Any:
            if "quote\none" in content:
                raise ZeroDivisionError("a mistake")
            return render(context, content, *more)

        monkeypatch.setattr(renderer, "render", choosy)
        job = messages_to_be_reminded_of(org.node)
        for _ in range(ATTEMPTS):
            await job.once()
            stage.resting.ahead += 1000
        told = await newest(org, "ann")
        assert any("wrote:" in text and "two" in text for text in told)
        assert f"message {made[0]}, but the server couldn’t" in told[-1]
        assert not list(org.node.state.reminders)


# Retention


async def old_messages(org: Organization, stage: Stage, count: int) -> None:
    await org.channel("lounge", "ann")
    for number in range(count):
        await org["ann"].send("lounge", f"topic {number}", "old")
    await org.do(RealmChanged(values={"message_retention_days": 10}))
    stage.clock.ahead += 20 * DAY


async def test_messages_with_a_longer_retention_are_not_queried_forever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await old_messages(org, stage, 3)
        log, asked = org.node.log, 0
        kept_since = deleting.kept_since

        def lengthened(state: State, channel_id: int | None, now: float) -> int | None:
            """The command finds a longer retention than the query for old messages did."""
            nonlocal asked
            asked += 1
            assert asked < 50, "it is asked for ever"
            found = kept_since(state, channel_id, now)
            return found if found is None or asked % 2 else found - 100 * DAY

        monkeypatch.setattr(deleting, "kept_since", lengthened)
        await expired_once(log)
        monkeypatch.undo()


async def test_one_failing_channel_does_not_stop_retention_in_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await old_messages(org, stage, 1)
        bar = await org.channel("bar", "ann")
        stage.clock.ahead -= 20 * DAY
        await org["ann"].send("bar", "t", "old too")
        stage.clock.ahead += 20 * DAY
        (lounge,) = (c.id for c in org.node.state.channels if c.name == "lounge")
        expire = deleting.expire

        def choosy(context: CommandContext, doomed: Any, before: int) -> Decision[bool]:
            if doomed.messages[0].channel_id == lounge:
                raise ZeroDivisionError("a mistake")
            return expire(context, doomed, before)

        monkeypatch.setattr(deleting, "expire", choosy)
        assert lounge < bar
        job = message_retention(org.node.log)
        await job.once()
        assert await newest(org, "ann") == ["old"]
        assert job.trouble is not None
        assert f"channel {lounge}: ZeroDivisionError" in job.trouble


async def test_a_database_error_does_not_stop_retention(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await old_messages(org, stage, 2)
        read, failed = org.node.store.read, False

        async def once_away(*arguments: Any, **named: Any) -> Any:
            nonlocal failed
            if not failed:
                failed = True
                raise OSError("an I/O error")
            return await read(*arguments, **named)

        monkeypatch.setattr(org.node.store, "read", once_away)
        async with JobSupervisor().running([message_retention(org.node.log)]):
            await until(lambda: not len(org.node.state.topics))
        assert failed


# Other jobs


async def test_an_exception_does_not_stop_heartbeats(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "FIRST_PAUSE", 0.01)
    beats = 0

    class Heart:
        def send_heartbeats(self) -> None:
            nonlocal beats
            beats += 1
            if beats == 1:
                raise ZeroDivisionError

    delivery: Any = Heart()
    assert callable(Delivery.send_heartbeats)
    async with JobSupervisor().running([heartbeats(delivery)]):
        await until(lambda: beats >= 2)


async def test_failed_previews_do_not_block_others(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await org.channel("lounge", "ann")
        await org.do(RealmChanged(values={"inline_url_embed_preview": True}))
        made = [
            await org["ann"].send("lounge", "t", f"https://a.example/{number}")
            for number in range(3)
        ]
        shown: list[int] = []

        async def show(_: Previewer, pending: Any) -> None:
            if pending.message_id == made[0]:
                raise Unavailable("away")
            shown.append(pending.message_id)
            raise ZeroDivisionError("a mistake")

        monkeypatch.setattr(Previewer, "show", show)
        job = Previewer(org.node).job()
        async with JobSupervisor().running([job]):
            await until(lambda: len(org.node.state.pending_previews) == 1)
            assert job.trouble is not None
            assert "Unavailable: away" in job.trouble
        assert sorted(shown) == made[1:]


async def test_previews_of_a_deleted_message_are_not_retried_forever(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await org.channel("lounge", "ann")
        await org.do(RealmChanged(values={"inline_url_embed_preview": True}))
        message_id = await org["ann"].send("lounge", "t", "https://a.example/")

        async def show(_: Previewer, pending: Any) -> None:
            raise Unavailable("away")

        monkeypatch.setattr(Previewer, "show", show)
        job = Previewer(org.node).job()
        async with JobSupervisor().running([job]):
            await until(lambda: job.trouble is not None)
        assert (await org["ann"].delete(f"/messages/{message_id}")).ok
        monkeypatch.setattr(job.set_aside, "_clock", TestClock(stopped_at=2**40))
        assert await job.once() == previews.LONGEST_SLEEP
        assert job.trouble is None


async def test_job_failures_are_stored_and_cleared(stage: Stage) -> None:
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        log, job = org.node.log, Job("files", Work())
        report = reporter(log, ())
        report(job)
        job.failures, job.reason = 3, "OSError: no disk"
        report(job)
        await log.submit(None, settle, "")
        found = await log.store.read(troubles)
        assert found == {"files": "failed 3 times in a row: OSError: no disk"}
        # Another node, or this one after a restart, finds it and succeeds.
        job.failures = 0
        reporter(log, found)(job)
        await log.submit(None, settle, "")
        assert await log.store.read(troubles) == {}


async def test_ready_names_the_failing_jobs(stage: Stage, monkeypatch: Any) -> None:
    work = Work(*[OSError("no disk")] * 100)
    monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: (Job("files", work),))
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        await until(lambda: bool(org.node.failing_jobs()))
        ready = await org.http.get("/ready")
        assert ready.status_code == 200
        assert ready.json()["jobs"] == {"files": "failed 1 time in a row"}


async def test_ready_does_not_name_failed_items(stage: Stage, monkeypatch: Any) -> None:
    """Anyone may read it, and files have names that people gave them."""
    aside = FailedItems()
    aside.failed("2/ab/salaries.txt", OSError("no disk"))
    job = Job("files", Work(pause=60), set_aside=aside)
    monkeypatch.setattr("tertulia.app.composition.jobs_of", lambda *_: (job,))
    async with AsyncExitStack() as stack:
        org = await stage.enter(stack)
        ready = await org.http.get("/ready")
        assert ready.json()["jobs"] == {"files": "1 set aside"}
