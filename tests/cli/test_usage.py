"""`usage`."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

from tertulia.service.config import Config
from tests.cli.support import Place
from tests.support import TestClock, reopened

DAY = 86400


async def test_people_who_give_input_are_counted_by_the_day(place: Place) -> None:
    await asyncio.to_thread(place.found)
    for name in ("ben", "cleo"):
        await asyncio.to_thread(place.add, name)
    assert await counted(place) == {"today": 0, "days_7": 0, "days_30": 0}
    clock = TestClock()

    def days_ago(days: int) -> Callable[[], float]:
        return lambda: clock() - days * DAY

    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    async with reopened(config, clock=clock) as org:
        # Midnight must not come between these.
        clock.ahead = DAY / 2 - time.time() % DAY
        for ago, name, given in [
            (10, "cleo", True),
            (3, "ben", True),
            (0, "ann", True),
            (0, "ann", True),
            (0, "cleo", False),
        ]:
            org.node.delivery.presence._clock = days_ago(ago)
            report = {"status": "active", "new_user_input": given}
            assert (await org[name].post("/users/me/presence", **report)).ok
    assert await counted(place) == {"today": 1, "days_7": 2, "days_30": 3}
    shown = await asyncio.to_thread(place.run, "usage")
    assert shown.stdout.split() == ["today", "1", "7", "days", "2", "30", "days", "3"]


async def counted(place: Place) -> dict[str, int]:
    return await asyncio.to_thread(place.answer, "usage")


def test_where_nothing_was_founded_nothing_is_counted(tmp_path: Path) -> None:
    result = Place(tmp_path / "data").run("usage")
    assert result.exit_code == 2
