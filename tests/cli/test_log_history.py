"""The identity of the log and the version of the database, as operators see them."""

import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from tertulia.service.config import Config
from tertulia.store import installation
from tertulia.store.installation import Position
from tertulia.store.migrations import MIGRATIONS
from tertulia.store.store import database_at
from tests.cli.support import Place
from tests.support import open_organization

STOP_SECONDS = 60


def position(place: Place) -> Position:
    database = database_at(place.data_dir, place.database_url)
    with contextlib.closing(database.connect(readonly=True)) as connection:
        return installation.head_position(connection).position


async def test_operator_ends_all_queues(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    async with open_organization(config) as org:
        ann = await org["ann"].register()
        before = position(place)
        result = await asyncio.to_thread(place.run, "end-queues")
        assert (result.exit_code, result.stdout.split()[:2]) == (0, ["Ended", "1"])
        assert position(place).history != before.history
        assert position(place).seq == before.seq
        await org.node.log._head_watch.look()
        await org.node.log.catch_up()
        reply = await org["ann"].get("/events", queue_id=ann.queue_id, last_event_id=-1)
        reply.refused("BAD_EVENT_QUEUE_ID")
        anew = await org["ann"].register()
        await org.channel("lounge", "ann")
        assert await anew.events()


def test_ending_queues_requires_an_organization(place: Place) -> None:
    result = place.run("end-queues")
    assert result.exit_code == 2
    assert "no organization" in result.stderr


def test_restored_log_has_a_new_identity(place: Place, tmp_path: Path) -> None:
    place.create_organization()
    file, target = str(tmp_path / "backup.zip"), Place(tmp_path / "target")
    assert place.run("backup", file).exit_code == 0
    assert target.run("restore", file).exit_code == 0
    before, after = position(place), position(target)
    assert (after.seq, after.batch) == (before.seq, before.batch)
    assert after.history != before.history


def test_second_server_on_an_sqlite_directory_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path / "data")
    place.create_organization()
    with place.serving() as (process, address):
        with place.program("serve", "--port", "0") as second:
            _, errors = second.communicate(timeout=STOP_SECONDS)
        assert second.returncode == 1
        assert f"process {process.pid} on " in errors
        assert "Only one server can" in errors
        assert "Traceback" not in errors
        assert httpx.get(f"{address}/ready").status_code == 200
        place.add("ben")  # Commands of the same version can run at the same time.
        process.kill()
        process.wait()
    with place.serving() as (_, address):
        assert httpx.get(f"{address}/ready").status_code == 200


def test_outdated_server_stops_and_says_why(place: Place) -> None:
    place.create_organization()
    with place.serving() as (process, address):
        database = database_at(place.data_dir, place.database_url)
        with contextlib.closing(database.connect(readonly=False)) as connection:
            connection.run("UPDATE head SET schema_version = ?", (len(MIGRATIONS) + 1,))
        _, errors = process.communicate(timeout=STOP_SECONDS)
        assert process.returncode == 1
        assert f"schema version {len(MIGRATIONS) + 1}" in errors.splitlines()[-1]
        assert "Traceback" not in errors
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{address}/health")
