"""Threads that wait for the database instead of the event loop."""

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from tertulia.store.threads import Threads


@pytest.fixture
def threads() -> Iterator[Threads]:
    made = Threads(2, "test")
    yield made
    made.close()


async def test_jobs_use_no_more_threads_than_needed(
    threads: Threads,
) -> None:
    def name() -> str:
        return threading.current_thread().name

    assert {await threads.run(name) for _ in range(5)} == {"test_0"}
    meeting = threading.Barrier(2)
    places = await asyncio.gather(*(threads.run(meeting.wait, 60.0) for _ in range(6)))
    assert sorted(places) == [0, 0, 0, 1, 1, 1]
    assert len({*await asyncio.gather(*(threads.run(name) for _ in range(20)))} | {"test_0"}) <= 2
    with pytest.raises(ZeroDivisionError):
        await threads.run(divmod, 1, 0)
    with pytest.raises(RuntimeError, match="StopIteration"):
        await threads.run(next, iter(()))


async def test_a_job_that_nobody_waits_for_is_not_started(threads: Threads) -> None:
    goes_on = threading.Event()
    done: list[str] = []
    under_way = [asyncio.create_task(threads.run(goes_on.wait, 60.0)) for _ in range(2)]
    behind = [asyncio.create_task(threads.run(done.append, name)) for name in ("one", "two")]
    await asyncio.sleep(0)
    for task in (under_way[0], behind[0]):
        task.cancel()
    await asyncio.sleep(0)
    goes_on.set()
    await asyncio.wait([*under_way, *behind])
    assert done == ["two"]
    assert under_way[1].result()
    assert await threads.run(len, "three") == 5  # An abandoned job does no harm.


async def test_threads_end_with_or_without_finishing_waiting_jobs() -> None:
    for drops in (False, True):
        threads = Threads(1, "test")
        begun, goes_on = threading.Event(), threading.Event()
        done: list[int] = []

        def hold(begun: threading.Event = begun, goes_on: threading.Event = goes_on) -> None:
            begun.set()
            goes_on.wait(60)

        jobs = [asyncio.create_task(threads.run(hold))]
        jobs += [asyncio.create_task(threads.run(done.append, n)) for n in range(3)]
        await asyncio.to_thread(begun.wait, 60)
        closing = asyncio.create_task(asyncio.to_thread(threads.close, drops=drops))
        if drops:
            await asyncio.wait(jobs[1:])
        goes_on.set()
        await asyncio.gather(closing, *jobs, return_exceptions=True)
        assert done == ([] if drops else [0, 1, 2])
        assert [job.cancelled() for job in jobs] == [False] + 3 * [drops]
        with pytest.raises(RuntimeError):
            await threads.run(len, "")


async def test_a_job_submitted_at_the_end_is_done_or_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads = Threads(1, "test")
    closing = threading.Thread(target=threads.close)
    start = Threads._start

    def begin(self: Threads) -> None:
        start(self)
        closing.start()
        closing.join(0.1)

    monkeypatch.setattr(Threads, "_start", begin)
    async with asyncio.timeout(60):
        assert await threads.run(len, "done") == 4
        await asyncio.to_thread(closing.join)


async def test_if_no_thread_can_be_started_existing_ones_do_the_job(
    threads: Threads, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await threads.run(len, "")
    assert await threads.run(len, "one") == 3
    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert await asyncio.gather(*(threads.run(len, "x" * n) for n in range(4))) == [0, 1, 2, 3]


class Large:
    """An object used by a job."""


async def test_an_exception_keeps_no_references(threads: Threads) -> None:
    async def ask() -> "weakref.ref[Large]":
        held = Large()
        with pytest.raises(ZeroDivisionError):
            await threads.run(lambda one, nothing: (one, 1 // nothing), held, 0)
        return weakref.ref(held)

    gc.disable()
    try:
        held = await ask()
        await threads.run(len, "")  # The thread has released it.
        assert held() is None
    finally:
        gc.enable()
