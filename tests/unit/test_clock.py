"""What is due by itself."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from tertulia.config import Config
from tertulia.log.clock import Clock, Due
from tertulia.model.changes import RealmChanged
from tertulia.model.errors import Refused
from tertulia.state.moment import Decision, Moment
from tertulia.state.organization import State
from tests.support import TestClock, founded


def due_at(state: State, now: float) -> float | None:
    """The description holds the times at which something is due."""
    times = state.realm.description.split()
    return float(times[0]) if times else None


def ring(moment: Moment) -> Decision[None]:
    """The first of the times is over."""
    _, *later = moment.state.realm.description.split()
    return Decision(None, (RealmChanged(values={"description": " ".join(later)}),))


def refuse(moment: Moment) -> Decision[None]:
    raise Refused("not today")


def settle(moment: Moment, times: str) -> Decision[None]:
    return Decision(None, (RealmChanged(values={"description": times}),))


async def test_each_piece_is_done_once_and_only_when_its_time_has_come(config: Config) -> None:
    now = TestClock()
    async with founded(config, clock=now) as org:
        log = org.node.log
        clock = Clock(log, [Due(due_at, ring)])
        await log.submit(None, settle, f"{now() + 5} {now() + 6} {now() + 100}")
        await clock.tick()
        assert len(log.state.realm.description.split()) == 3
        now.ahead = 50
        before = log.state.seq
        await clock.tick()
        await clock.tick()
        assert len(log.state.realm.description.split()) == 1
        assert log.state.seq == before + 2


async def test_what_is_said_to_be_due_while_it_runs_is_done_without_being_asked(
    config: Config,
) -> None:
    async with founded(config) as org:
        log = org.node.log
        done = asyncio.Event()
        log.follow(lambda _: None if log.state.realm.description else done.set())
        running = asyncio.create_task(Clock(log, [Due(due_at, ring)]).run())
        await log.submit(None, settle, "1 2 3")
        async with asyncio.timeout(20):
            await done.wait()
        running.cancel()


async def test_a_verb_that_does_not_get_on_is_not_asked_for_ever(
    config: Config, caplog: pytest.LogCaptureFixture
) -> None:
    async with founded(config) as org:
        await org.node.log.submit(None, settle, "1")
        await Clock(org.node.log, [Due(due_at, refuse)]).tick()
        assert "not today" in caplog.text
        assert org.node.state.realm.description == "1"


async def test_what_a_verb_needs_besides_is_prepared_for_each_piece(config: Config) -> None:
    async with founded(config) as org:
        log = org.node.log
        prepared: list[str] = []

        async def prepare() -> Sequence[str]:
            prepared.append(log.state.realm.description)
            return (prepared[-1],)

        def ring_if_still_so(moment: Moment, seen: str) -> Decision[None]:
            assert moment.state.realm.description == seen
            return ring(moment)

        await log.submit(None, settle, "1 2 3")
        await Clock(log, [Due(due_at, ring_if_still_so, (), prepare)]).tick()
        assert prepared == ["1 2 3", "2 3", "3"]
        assert log.state.realm.description == ""


async def test_where_there_is_nothing_to_prepare_nothing_is_done(config: Config) -> None:
    async with founded(config) as org:
        log = org.node.log

        async def prepare() -> Sequence[str]:
            return ()

        await log.submit(None, settle, "1")
        await Clock(log, [Due(due_at, refuse, (), prepare)]).tick()
        assert log.state.realm.description == "1"


@pytest.fixture
def config(tmp_path: Path) -> Config:
    """Which database it is makes no difference here."""
    return Config(data_dir=str(tmp_path))
