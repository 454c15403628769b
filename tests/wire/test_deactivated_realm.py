"""Deactivated organizations."""

import asyncio

import pytest

from tertulia.domain.organization import lifecycle
from tertulia.model.changes import RealmChanged
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.cli.support import Place
from tests.support import (
    PASSWORD,
    Organization,
    TestClock,
    new_organization,
    open_organization,
    rows,
    until,
)

# Deactivating


async def test_a_deactivated_organization_is_closed_to_everyone(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    ben = await org["ben"].register()
    assert (await org["ann"].post("/realm/deactivate")).ok
    for who in ("ann", "ben", "gus", "robo"):
        (await org[who].get("/users/me")).refused("REALM_DEACTIVATED", 401)
    poll = {"queue_id": ben.queue_id, "last_event_id": ben.last_event_id, "dont_block": True}
    (await org["ben"].get("/events", **poll)).refused("REALM_DEACTIVATED", 401)
    (await org.nobody.post("/register")).refused("REALM_DEACTIVATED", 401)
    signing_in = {"username": "ann@example.com", "password": PASSWORD}
    (await org.nobody.post("/fetch_api_key", **signing_in)).refused("REALM_DEACTIVATED", 401)
    wrong = await org.nobody.post("/fetch_api_key", **{**signing_in, "password": "not it"})
    wrong.refused("AUTHENTICATION_FAILED", 401)
    (await org["ann"].post("/realm/deactivate")).refused("REALM_DEACTIVATED", 401)
    assert (await org.nobody.get("/server_settings")).ok["realm_name"] == "Example"
    assert (await org.http.get("/avatar/4")).headers["location"] == "/static/person.svg"


async def test_a_waiting_poll_ends_with_the_deactivation(org: Organization) -> None:
    ben = await org["ben"].register()
    waiting = asyncio.create_task(ben.events(block=True))
    await until(lambda: org.node.delivery.waiting == 1)
    assert (await org["ann"].post("/realm/deactivate")).ok
    (event,) = await waiting
    assert (event["type"], event["op"], event["realm_id"]) == ("realm", "deactivated", 1)


@rows("role", [Role.ADMINISTRATOR, Role.MODERATOR, Role.MEMBER, Role.GUEST])
async def test_only_owners_deactivate_it(org: Organization, role: Role) -> None:
    abe = await org.add(role.name.lower(), role)
    (await abe.post("/realm/deactivate")).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await abe.get("/users/me")).ok


@rows("days", [0, 14, -1])
async def test_scheduled_data_deletion_is_refused(readonly_org: Organization, days: int) -> None:
    (await readonly_org["ann"].post("/realm/deactivate", deletion_delay_days=days)).refused()
    data = (await readonly_org["ann"].register()).data
    assert data["server_min_deactivated_realm_deletion_days"] is None
    assert data["server_max_deactivated_realm_deletion_days"] is None


async def test_null_equals_no_value(org: Organization) -> None:
    assert (await org["ann"].post("/realm/deactivate", deletion_delay_days="null")).ok


async def test_it_stays_closed_after_a_restart_and_can_be_reactivated(config: Config) -> None:
    async with new_organization(config) as org:
        ann = await org["ann"].register()
        assert (await org["ann"].post("/realm/deactivate")).ok
    async with open_organization(config) as org:
        (await org["ann"].get("/users/me")).refused("REALM_DEACTIVATED", 401)
        await org.node.log.submit(None, lifecycle.reactivate)
        assert (await org["ann"].get("/users/me")).ok
        poll = {"queue_id": ann.queue_id, "last_event_id": ann.last_event_id}
        events = (await org["ann"].get("/events", **poll)).ok["events"]
        assert [event["op"] for event in events] == ["deactivated"]


async def test_the_operator_reactivates_it_on_the_command_line(place: Place) -> None:
    await asyncio.to_thread(place.create_organization)
    config = Config(data_dir=str(place.data_dir), database_url=place.database_url)
    async with open_organization(config) as org:
        assert (await org["ann"].post("/realm/deactivate")).ok
    result = await asyncio.to_thread(place.run, "reactivate")
    assert (result.exit_code, "Reactivated 'Example'." in result.output) == (0, True)
    again = await asyncio.to_thread(place.run, "reactivate")
    assert (again.exit_code, "isn't deactivated" in again.stderr) == (1, True)
    async with open_organization(config) as org:
        assert (await org["ann"].get("/users/me")).ok


@pytest.fixture
def place(config: Config) -> Place:
    return Place(config.data_path, config.database_url)


async def test_due_jobs_wait_until_the_reactivation(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        lounge = await org.channel("lounge", "ann")
        later = {"type": "channel", "to": lounge, "topic": "t", "content": "at last"}
        at = int(clock()) + 600
        ann = org["ann"]
        assert (await ann.post("/scheduled_messages", **later, scheduled_delivery_timestamp=at)).ok
        assert (await ann.post("/realm/deactivate")).ok
        clock.ahead = 3600
        await org.tick()
        assert org.node.state.last_message_id == 0
        await org.node.log.submit(None, lifecycle.reactivate)
        await org.tick()
        assert org.node.state.last_message_id == 1
