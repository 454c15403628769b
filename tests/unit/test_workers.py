"""Work in a separate process, and what happens if it's too much."""

import asyncio
import importlib
import os
import signal
import subprocess
import sys
import time
import typing
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tertulia import pictures
from tertulia.markup import worker_rendering
from tertulia.outbound import pages
from tertulia.workers import (
    TaskBudget,
    TaskFailed,
    TaskLimitExceeded,
    TaskUnavailable,
    TaskWorker,
    WorkerTask,
)
from tertulia.workers import worker as workers
from tests.support import until

MEMORY = 1024 * 1024 * 1024
HERE = "tertulia.markup.code"


def allowance(processor: float = 0.1, patience: float = 60) -> TaskBudget:
    return TaskBudget(processor, patience)


# Stand-ins for real functions: one that returns, one that never ends.
LENGTH: WorkerTask[str] = WorkerTask("tertulia.markup.elements:escaped", str)
ENDLESS: WorkerTask[str] = WorkerTask(f"{HERE}:highlighted", str, load=f"{HERE}:load")
BOMB = ("$'" + "\\" * 60, "Bash")
SOON = 0.1
"""Seconds, for jobs that exceed their allowance."""


@pytest.fixture
async def worker() -> AsyncIterator[TaskWorker]:
    """A worker whose process stays idle for as long as the test runs."""
    made = TaskWorker("test", memory=MEMORY)
    yield made
    made._idle_seconds = 0.0  # Starting with the next job.
    if made.process_id is not None:
        await made.call(LENGTH, "", allowance=allowance())
    await until(lambda: made.process_id is None)


def is_running(process_id: int | None) -> bool:
    try:
        os.kill(process_id or 0, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_job_runs_in_another_process(worker: TaskWorker) -> None:
    assert worker.process_id is None
    assert await worker.call(LENGTH, "<a>", allowance=allowance()) == "&lt;a&gt;"
    first = worker.process_id
    assert first not in {None, os.getpid()}
    assert await worker.call(LENGTH, "&", allowance=allowance()) == "&amp;"
    assert worker.process_id == first


async def test_a_job_that_takes_too_long_is_ended_and_the_next_one_runs(worker: TaskWorker) -> None:
    with pytest.raises(TaskLimitExceeded):
        await worker.call(ENDLESS, *BOMB, allowance=allowance(SOON))
    assert await worker.call(LENGTH, "a", allowance=allowance()) == "a"


async def test_the_event_loop_continues_during_a_job(worker: TaskWorker) -> None:
    turns = 0

    async def turn() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.001)
            turns += 1

    turning = asyncio.create_task(turn())
    with pytest.raises(TaskLimitExceeded):
        await worker.call(ENDLESS, *BOMB, allowance=allowance(0.3))
    turning.cancel()
    assert turns > 10


async def test_an_allowance_covers_all_its_jobs(worker: TaskWorker) -> None:
    one = allowance(SOON)
    with pytest.raises(TaskLimitExceeded):
        await worker.call(ENDLESS, *BOMB, allowance=one)
    with pytest.raises(TaskUnavailable) as refused:
        await worker.call(LENGTH, "a", allowance=one)
    assert not isinstance(refused.value, TaskLimitExceeded)


async def test_a_job_without_allowance_is_not_waited_for(worker: TaskWorker) -> None:
    with pytest.raises(TaskUnavailable):
        await worker.call(LENGTH, "a", allowance=allowance(patience=0))


async def test_too_many_waiting_jobs_are_refused() -> None:
    made = TaskWorker("test", memory=MEMORY, max_waiting=2)
    await made.call(LENGTH, "a", allowance=allowance())
    process_id = made.process_id
    assert process_id is not None
    os.kill(process_id, signal.SIGSTOP)
    waiting = [made.submit(LENGTH, "a", allowance=allowance())]
    await until(waiting[0].running)
    waiting += [made.submit(LENGTH, "a", allowance=allowance()) for _ in range(2)]
    with pytest.raises(TaskUnavailable, match="too much"):
        made.submit(LENGTH, "a", allowance=allowance())
    made._idle_seconds = 0.0
    os.kill(process_id, signal.SIGCONT)
    assert [await asyncio.wrap_future(one) for one in waiting] == ["a", "a", "a"]
    await until(lambda: made.process_id is None)


async def test_an_abandoned_job_is_not_started(worker: TaskWorker) -> None:
    blocking = worker.submit(ENDLESS, *BOMB, allowance=allowance(SOON))
    left = asyncio.create_task(worker.call(LENGTH, "a", allowance=allowance()))
    await asyncio.sleep(0)
    left.cancel()
    with pytest.raises(TaskLimitExceeded):
        await asyncio.wrap_future(blocking)
    assert await worker.call(LENGTH, "b", allowance=allowance()) == "b"


async def test_a_job_no_longer_wanted_at_its_turn_is_not_started(worker: TaskWorker) -> None:
    with pytest.raises(TaskUnavailable, match="not wanted"):
        await worker.call(LENGTH, "a", allowance=allowance(), is_wanted=lambda: False)


async def test_an_exception_is_reported_by_name(worker: TaskWorker) -> None:
    missing: WorkerTask[None] = WorkerTask("tertulia.markup.code:block", None)
    with pytest.raises(TaskFailed) as failed:
        await worker.call(missing, allowance=allowance())
    assert failed.value.kind == "TypeError"


async def test_unknown_functions_are_not_called(worker: TaskWorker) -> None:
    with pytest.raises(TaskFailed, match="none of ours"):
        await worker.call(WorkerTask("os:getcwd", str), allowance=allowance())


async def test_a_killed_process_is_replaced(worker: TaskWorker) -> None:
    await worker.call(LENGTH, "a", allowance=allowance())
    first = worker.process_id
    assert first is not None
    os.kill(first, signal.SIGKILL)
    with pytest.raises(TaskLimitExceeded):
        await worker.call(LENGTH, "a", allowance=allowance())
    assert await worker.call(LENGTH, "a", allowance=allowance()) == "a"


async def test_a_hanging_process_is_killed_by_the_timer(worker: TaskWorker) -> None:
    await worker.call(LENGTH, "a", allowance=allowance())
    first = worker.process_id
    assert first is not None
    os.kill(first, signal.SIGSTOP)
    with pytest.raises(TaskUnavailable):
        await worker.call(LENGTH, "a" * 1_000_000, allowance=allowance(0.01, 0.2))
    assert await worker.call(LENGTH, "a", allowance=allowance()) == "a"
    assert not is_running(first)


async def test_memory_is_limited() -> None:
    made = TaskWorker("test", memory=200 * 1024 * 1024, idle_seconds=0.5)
    with pytest.raises(TaskLimitExceeded):
        await made.call(LENGTH, "&" * 60_000_000, allowance=allowance(20))
    await until(lambda: made.process_id is None)


async def test_a_process_that_fails_to_start_is_not_retried_constantly(
    monkeypatch: pytest.MonkeyPatch, worker: TaskWorker
) -> None:
    monkeypatch.setattr(workers, "FIRST_PAUSE", 1000)
    monkeypatch.setattr(workers, "LONGEST_PAUSE", 1000)
    with monkeypatch.context() as here:
        here.setattr(sys, "executable", "/bin/false")
        with pytest.raises(TaskUnavailable):
            await worker.call(LENGTH, "a", allowance=allowance())
    with pytest.raises(TaskUnavailable, match="soon"):
        await worker.call(LENGTH, "a", allowance=allowance())


async def test_an_idle_process_ends_and_starts_again(worker: TaskWorker) -> None:
    await worker.call(LENGTH, "a", allowance=allowance())
    first = worker.process_id
    worker._idle_seconds = 0.0
    await worker.call(LENGTH, "a", allowance=allowance())
    await until(lambda: worker.process_id is None)
    worker._idle_seconds = workers.IDLE_SECONDS
    assert await worker.call(LENGTH, "a", allowance=allowance()) == "a"
    assert worker.process_id != first


def test_a_process_ends_with_its_parent() -> None:
    code = """
import asyncio, os
from tertulia.workers import TEXTS, TaskBudget, WorkerTask
job = WorkerTask("tertulia.markup.elements:escaped", str)
asyncio.run(TEXTS.call(job, "a", allowance=TaskBudget(1, 60)))
print(TEXTS.process_id, flush=True)
os.kill(os.getpid(), 9)
"""
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": str(Path(workers.__file__).parents[2])},
        capture_output=True,
        text=True,
        check=False,
    )
    process_id = int(ended.stdout)
    until = time.monotonic() + 60
    while is_running(process_id) and time.monotonic() < until:
        time.sleep(0.05)
    assert not is_running(process_id)


def test_the_process_has_no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERTULIA_SECRET", "hush")
    process = workers._Process(MEMORY)
    try:
        process.wait_until_ready()
        environment = Path(f"/proc/{process.id}/environ")
        if environment.exists():
            assert b"TERTULIA" not in environment.read_bytes()
    finally:
        process.kill()


JOBS: list[WorkerTask[typing.Any]] = [
    *(
        value
        for module in (worker_rendering, pictures, pages)
        for value in vars(module).values()
        if isinstance(value, WorkerTask)
    ),
]


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.function)
def test_every_job_is_a_function_with_a_result_type(job: WorkerTask[typing.Any]) -> None:
    module, _, name = job.function.partition(":")
    function = getattr(importlib.import_module(module), name)
    assert typing.get_type_hints(function)["return"] == job.result
    if job.load:
        assert callable(getattr(importlib.import_module(module), job.load.partition(":")[2]))


def test_there_are_jobs_for_all_unbounded_work() -> None:
    assert len(JOBS) == 8
