"""`tertulia usage`."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tertulia.service.config import Config
from tests.cli.support import Place
from tests.support import TestClock, open_organization

DAY = 86400


async def test_active_people_are_counted_by_day(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    for name in ("ben", "cleo"):
        await asyncio.to_thread(place.add, name)
    assert await counted(place) == {"today": 0, "days_7": 0, "days_30": 0}
    clock = TestClock()

    def days_ago(days: int) -> Callable[[], float]:
        return lambda: clock() - days * DAY

    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    async with open_organization(config, clock=clock) as org:
        # No midnight may be between these.
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


def test_counting_requires_an_organization(tmp_path: Path) -> None:
    result = Place(tmp_path / "data").run("usage")
    assert result.exit_code == 2


async def test_messages_and_files_are_counted_by_time_person_and_channel(place: Place) -> None:
    def by(what: str, *more: str) -> Any:
        return asyncio.to_thread(place.answer, "usage", "--by", what, *more)

    await asyncio.to_thread(place.create_organization)
    await asyncio.to_thread(place.add, "ben")
    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    clock = TestClock()
    clock.ahead = -8 * DAY
    async with open_organization(config, clock=clock) as org:
        await org["ben"].send("general", "old", "before")
    async with open_organization(config) as org:
        ben = org["ben"]
        link = "/user_uploads/" + await ben.upload("a.txt", b"12345")
        await ben.send("general", "new", f"[a]({link})")
        await ben.write([org["ann"].user_id], f"[a]({link})")
        assert (await ben.post("/users/me/presence", status="active", new_user_input=True)).ok
    for what, number in (("day", 10), ("week", None)):
        periods = (await by(what, "--days", "10"))["periods"]
        assert number in {None, len(periods)}
        assert [sum(one[key] for one in periods) for key in ("people", "messages")] == [1, 3]
    # Which day the messages count on depends on the time, so only the sums are compared.
    assert {(one["begins_at"] // DAY + 3) % 7 for one in periods} == {0}
    (person,) = (await by("person", "--days", "5"))["people"]
    assert person == {
        "user_id": ben.user_id,
        "email": "ben@example.com",
        "messages": 2,
        "files": 1,
        "file_bytes": 5,
    }
    general, direct = (await by("channel"))["channels"]
    assert (direct["name"], direct["messages"], direct["file_bytes"]) == (None, 1, 5)
    assert (general["name"], general["messages"], general["file_bytes"]) == ("general", 2, 5)
    shown = await asyncio.to_thread(place.run, "usage", "--by", "channel")
    assert shown.stdout.splitlines()[2].split() == ["direct", "messages", "1", "1", "0.0", "MiB"]
