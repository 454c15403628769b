"""Responses that take long to make take turns at the event loop, by person."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextvars import copy_context
from typing import Any

import pytest
from starlette.requests import Request

from tertulia.model.errors import TooOften, Unavailable
from tertulia.store.readers import Person, Requester, current_requester
from tertulia.wire.http import loop_turns
from tertulia.wire.http.errors import Crowded, error_response
from tertulia.wire.http.loop_turns import ON_WAIT, STEP_SECONDS, LoopTurns, time_besides_steps
from tests.support import until


class Asked:
    """Requests for responses, which are made when `answer` is called."""

    def __init__(self) -> None:
        self.turns = LoopTurns()
        self.begun: list[str] = []
        self.waited: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._made: dict[str, asyncio.Event] = {}
        self.seconds = 0.0
        """How long each step takes."""
        self._clock = 0.0

    def perf_counter(self) -> float:
        return self._clock

    def ask(
        self, person: Person, name: str, is_gone: Callable[[], bool] = lambda: False
    ) -> "asyncio.Task[None]":
        made = self._made[name] = asyncio.Event()
        waits: dict[str, Any] = {ON_WAIT: lambda: self.waited.append(name)}
        request = Request({"type": "http", "state": waits, "headers": []})

        async def answer() -> None:
            async with self.turns.turn(request):
                self.begun.append(name)
                self.turns.step(self._step)
                await made.wait()

        context = copy_context()
        context.run(current_requester.set, Requester(person, is_gone))
        task = self.tasks[name] = asyncio.create_task(answer(), context=context)
        return task

    def _step(self) -> None:
        self._clock += self.seconds

    async def answer(self, name: str) -> None:
        """Complete a response that has begun."""
        self._made[name].set()
        await self.tasks[name]


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Asked]:
    asked = Asked()
    monkeypatch.setattr(time, "perf_counter", asked.perf_counter)
    yield asked
    for task in asked.tasks.values():
        task.cancel()
    await asyncio.gather(*asked.tasks.values(), return_exceptions=True)


async def some_turns() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_people_take_turns(asked: Asked) -> None:
    for person, name in ((1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), ("a network", "c1")):
        asked.ask(person, name)
        await some_turns()
    assert asked.begun == ["a1"]
    assert asked.waited == ["a2", "a3", "b1", "c1"]
    for number in range(5):
        await asked.answer(asked.begun[number])
        await some_turns()
    assert asked.begun == ["a1", "a2", "b1", "c1", "a3"]


async def test_after_a_long_step_the_loop_is_left_to_others(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked.seconds = 1000.0
    asked.ask(1, "a")
    asked.ask(2, "b")
    await until(lambda: asked.begun == ["a"])
    await asked.answer("a")
    await some_turns()
    assert asked.begun == ["a"]

    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    asked.turns.step(asked._step)
    monkeypatch.setattr(asyncio, "sleep", sleep)
    await asked.turns.rest()
    await asked.turns.rest()
    assert slept == [pytest.approx(1000.0 * loop_turns.REST), 0]


async def test_short_ones_are_made_at_the_same_time_and_long_ones_alone(asked: Asked) -> None:
    for number in range(100):
        asked.ask(1, f"{number}")
        await until(lambda: len(asked.begun) == len(asked.tasks))
        await asked.answer(f"{number}")
    for number in range(3):
        asked.ask(number, f"short {number}")
    await until(lambda: len(asked.begun) == 103)
    asked.seconds = STEP_SECONDS / 2
    asked.ask(4, "longer")
    asked.ask(5, "another")
    await some_turns()
    assert asked.begun[103:] == ["longer"]


async def test_steps_are_not_part_of_what_a_request_costs(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = 0.0
    monkeypatch.setattr(time, "thread_time", lambda: used)
    monkeypatch.setattr(LoopTurns, "processor_time", 0.0)

    def work() -> None:
        nonlocal used
        used += 1000.0

    asked.turns.step(work)
    assert time_besides_steps() == 0.0
    work()
    assert time_besides_steps() == 1000.0


async def test_one_person_leaves_room_for_others(
    asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loop_turns, "MOST_WAITING", 9)
    asked.ask(1, "first")
    await some_turns()
    one, two = asked.ask(1, "one"), asked.ask(1, "two")
    await some_turns()
    with pytest.raises(TooOften):
        await two
    assert not one.done()
    for person in range(2, 10):
        asked.ask(person, f"of {person}")
    with pytest.raises(Crowded) as refusal:
        await asked.ask(10, "too many")
    status, _, headers = error_response(refusal.value)
    assert (status, headers["Retry-After"]) == (503, "1")
    assert asked.turns.waiting == 9


async def test_waiting_ends(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    asked.ask(1, "first")
    await some_turns()
    gone: list[bool] = []
    left = asked.ask(2, "left", lambda: bool(gone))
    stopped = asked.ask(3, "stopped")
    last = asked.ask(4, "last")
    await some_turns()
    stopped.cancel()
    gone.append(True)
    await asked.answer("first")
    with pytest.raises(Unavailable):
        await left
    await until(lambda: asked.begun == ["first", "last"])
    monkeypatch.setattr(loop_turns, "WAIT_SECONDS", 0.0)
    with pytest.raises(Crowded):
        await asked.ask(5, "late")
    assert asked.turns.waiting == 0
    await asked.answer("last")
    assert last.done()
