"""Presence: who is online, who was, and who is invisible."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from tertulia.model.changes import RealmChanged, UserDeactivated
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.store.queries import users_since
from tests.support import Organization, TestClock, new_organization, open_organization, row
from tests.wire.sample_organization import LIMITED, appear

DAY = 86400


@pytest.fixture
async def timed(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    """The usual people, and a clock that tests set."""
    async with new_organization(config, clock=clock) as organization:
        await organization.add("ben")
        await organization.add("gus", Role.GUEST)
        await organization.add("robo", owner="ben")
        yield organization


async def ping(org: Organization, name: str, **parameters: Any) -> dict[str, Any]:
    return (await org[name].post("/users/me/presence", **{"status": "idle"} | parameters)).ok


# Reporting and fetching


async def test_without_an_update_id_presence_has_its_legacy_form(org: Organization) -> None:
    await appear(org, "ann")
    answer = await ping(org, "ben")
    entry = answer["presences"]["ann@example.com"]
    assert entry["aggregated"] == {
        "client": "website",
        "status": "active",
        "timestamp": entry["website"]["timestamp"],
    }
    assert entry["website"] == {**entry["aggregated"], "pushable": False}
    assert isinstance(answer["server_timestamp"], int | float)
    assert answer["presences"].keys() == {"ann@example.com", "ben@example.com"}
    assert answer["presences"]["ben@example.com"]["website"]["status"] == "idle"


@pytest.mark.parametrize("how", [{"last_update_id": -1}, {"slim_presence": True}])
async def test_the_modern_form_is_by_user_id(org: Organization, how: dict[str, Any]) -> None:
    await appear(org, "ann")
    answer = await ping(org, "ben", **how)
    assert answer["presences"].keys() == {str(org["ann"].user_id), str(org["ben"].user_id)}
    entry = answer["presences"][str(org["ann"].user_id)]
    assert entry.keys() == {"active_timestamp", "idle_timestamp"}
    assert answer["presence_last_update_id"] > 0


async def test_only_new_presence_follows_an_update_id(org: Organization) -> None:
    await appear(org, "ann", "ben")
    first = await ping(org, "ben", last_update_id=-1)
    last = first["presence_last_update_id"]
    quiet = await ping(org, "cleo", last_update_id=last)
    assert quiet["presences"].keys() == {str(org["cleo"].user_id)}
    await appear(org, "ann")
    later = await ping(org, "cleo", last_update_id=quiet["presence_last_update_id"])
    assert later["presences"].keys() == {str(org["ann"].user_id), str(org["cleo"].user_id)}
    assert last < quiet["presence_last_update_id"] < later["presence_last_update_id"]


async def test_a_ping_only_request_returns_no_presence(org: Organization) -> None:
    answer = await ping(org, "ben", ping_only=True)
    assert answer == {"result": "success", "msg": "", "presence_last_update_id": -1}
    answer = await ping(org, "ben", ping_only=True, last_update_id=7)
    assert answer["presence_last_update_id"] == 7
    presence = (await org["ann"].get(f"/users/{org['ben'].user_id}/presence")).ok["presence"]
    assert presence["idle_timestamp"] > 0


@pytest.mark.parametrize(
    ("how", "last"),
    [({}, -1), ({"slim_presence": True}, -1), ({"last_update_id": -1}, 0)],
    ids=str,
)
async def test_without_data_the_update_id_is_returned_only_to_clients_that_sent_one(
    org: Organization, how: dict[str, Any], last: int
) -> None:
    """A history of zero days is empty."""
    answer = await ping(org, "ben", history_limit_days=0, **how)
    assert answer["presences"] == {}
    assert min(answer["presence_last_update_id"], 0) == last


async def test_active_and_idle_are_separate(timed: Organization, clock: TestClock) -> None:
    await appear(timed, "ben")
    clock.ahead = 500
    await ping(timed, "ben", status="idle")
    answer = await ping(timed, "ann", last_update_id=-1)
    entry = answer["presences"][str(timed["ben"].user_id)]
    assert 499 <= entry["idle_timestamp"] - entry["active_timestamp"] <= 501
    clock.ahead = 1000
    await ping(timed, "ben", status="active")
    answer = await ping(timed, "ann", last_update_id=-1)
    entry = answer["presences"][str(timed["ben"].user_id)]
    assert entry["idle_timestamp"] == entry["active_timestamp"]


OLDER: list[tuple[int, dict[str, Any], bool]] = [
    (20, {}, False),
    (13, {}, True),
    (20, {"history_limit_days": 30}, True),
    (3, {"history_limit_days": 2}, False),
    (3, {"history_limit_days": 0}, False),
    (20, {"last_update_id": -1}, False),
    (20, {"last_update_id": 1}, True),
    (20, {"last_update_id": 1, "history_limit_days": 2}, True),
    (20, {"last_update_id": 0}, False),
]
"""How many days ago someone was online, the request, and whether they're listed."""


async def test_presence_older_than_requested_is_left_out(
    timed: Organization, clock: TestClock
) -> None:
    """The limit is two weeks, and doesn't apply after the first update."""
    for days, more, seen in OLDER:
        with row(days, more):
            await appear(timed, "ben")
            clock.ahead += days * DAY
            found = (await ping(timed, "ann", **more))["presences"]
            assert ("ben@example.com" in found or str(timed["ben"].user_id) in found) is seen


@pytest.mark.parametrize(
    ("parameters", "code"),
    [
        ({}, "REQUEST_VARIABLE_MISSING"),
        ({"status": "away"}, "REQUEST_VARIABLE_INVALID"),
        ({"status": ""}, "REQUEST_VARIABLE_INVALID"),
        ({"status": "idle", "last_update_id": "x"}, "REQUEST_VARIABLE_INVALID"),
        ({"status": "idle", "last_update_id": 10**30}, "REQUEST_VARIABLE_INVALID"),
        ({"status": "idle", "history_limit_days": -1}, "REQUEST_VARIABLE_INVALID"),
        ({"status": "idle", "ping_only": "perhaps"}, "REQUEST_VARIABLE_INVALID"),
        ({"status": "idle", "new_user_input": 3}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_an_invalid_report_is_refused(
    readonly_org: Organization, parameters: dict[str, Any], code: str
) -> None:
    (await readonly_org["ben"].post("/users/me/presence", **parameters)).refused(code)
    (await readonly_org["ann"].get(f"/users/{readonly_org['ben'].user_id}/presence")).refused()


async def test_bots_have_no_presence(org: Organization) -> None:
    (await org["robo"].post("/users/me/presence", status="active")).refused()
    (await org["ann"].get(f"/users/{org['robo'].user_id}/presence")).refused()
    assert (await org["robo"].get("/realm/presence")).ok["presences"] == {}


async def test_the_organization_can_disable_presence(org: Organization) -> None:
    await appear(org, "ann")
    await org.do(RealmChanged(values={"presence_disabled": True}))
    listener = await org["ben"].register()
    assert listener.data["presences"] == {}
    for how in ({}, {"last_update_id": -1}):
        answer = await ping(org, "cleo", status="active", **how)
        assert (answer["presences"], answer["presence_last_update_id"]) == ({}, -1)
    assert await listener.events() == []
    (await org["ben"].get(f"/users/{org['ann'].user_id}/presence")).refused()
    assert (await org["ben"].get("/realm/presence")).ok["presences"] == {}


# One account's presence, and everyone's


REPORTED = [
    ("active", 0, "active"),
    ("active", 300, "offline"),
    ("idle", 0, "idle"),
    ("idle", 300, "offline"),
]
"""What is reported, how long ago, and what is shown."""


async def test_one_account_s_presence_is_returned(timed: Organization, clock: TestClock) -> None:
    for status, seconds, shown in REPORTED:
        with row(status, seconds):
            await appear(timed, "ben")
            clock.ahead += 1000
            await ping(timed, "ben", status=status)
            clock.ahead += seconds
            for name in (
                timed["ben"].user_id,
                "ben@example.com",
                f"user{timed['ben'].user_id}@chat.test",
            ):
                presence = (await timed["gus"].get(f"/users/{name}/presence")).ok["presence"]
                timestamp = presence["aggregated"]["timestamp"]
                assert presence["aggregated"] == {"status": shown, "timestamp": timestamp}
                reported = "idle" if shown == "offline" else shown
                assert presence["website"] == {"status": reported, "timestamp": timestamp}
                assert presence["idle_timestamp"] - presence["active_timestamp"] == pytest.approx(
                    0 if status == "active" else 1000, abs=2
                )


async def test_unknown_presence_is_refused(org: Organization) -> None:
    await org.add("dan")
    await appear(org, "dan")
    await org.do(UserDeactivated(user_id=org["dan"].user_id))
    for name in ["cleo", "robo", "dan", "nobody"]:
        with row(name):
            user_id = org[name].user_id if name in org.people else 999
            (await org["ann"].get(f"/users/{user_id}/presence")).refused()
            (await org["ann"].get(f"/users/{name}@example.com/presence")).refused()


async def test_everyone_s_presence_is_by_address(timed: Organization, clock: TestClock) -> None:
    await appear(timed, "ben")
    clock.ahead = 15 * DAY
    await appear(timed, "ann", "gus")
    answer = (await timed["gus"].get("/realm/presence")).ok
    assert answer["presences"].keys() == {"ann@example.com", "gus@example.com"}
    assert answer["presences"]["ann@example.com"]["website"]["status"] == "active"
    assert answer["server_timestamp"] > 15 * DAY


async def test_presence_does_not_reveal_a_hidden_address(org: Organization) -> None:
    await appear(org, "ben")
    assert (await org["ben"].patch("/settings", email_address_visibility=4)).ok
    stand_in = f"user{org['ben'].user_id}@chat.test"
    assert stand_in in (await org["ann"].get("/realm/presence")).ok["presences"]
    (await org["ann"].get("/users/ben@example.com/presence")).refused()


@pytest.mark.parametrize("limits", [True, False])
async def test_limited_guests_get_presence_of_visible_people_if_the_server_says_so(
    config: Config, limits: bool
) -> None:
    config = msgspec.structs.replace(config, can_access_all_users_group_limits_presence=limits)
    async with new_organization(config) as org:
        await org.add("ben")
        await org.add("gus", Role.GUEST)
        await org.do(LIMITED)
        listener = await org["gus"].register()
        await appear(org, "ben")
        ben = org["ben"].user_id
        answer = await ping(org, "gus", last_update_id=-1)
        assert (str(ben) in answer["presences"]) is not limits
        legacy = (await org["gus"].get("/realm/presence")).ok["presences"]
        assert "ben@example.com" not in legacy
        assert (f"user{ben}@chat.test" in legacy) is not limits
        heard = [e for e in await listener.events() if e.get("user_id") == ben]
        assert bool(heard) is not limits
        (await org["gus"].get(f"/users/{ben}/presence")).refused()


# Being invisible


async def test_someone_who_becomes_invisible_appears_offline(
    timed: Organization, clock: TestClock
) -> None:
    ben = timed["ben"].user_id
    await appear(timed, "ben")
    old = await timed["ann"].register(event_types=["presence"])
    modern = await timed["ann"].register(
        event_types=["presence"], client_capabilities={"simplified_presence_events": True}
    )
    last = (await ping(timed, "ann", last_update_id=-1))["presence_last_update_id"]
    assert (await timed["ben"].patch("/settings", presence_enabled=False)).ok
    presence = (await timed["ann"].get(f"/users/{ben}/presence")).ok["presence"]
    assert presence["aggregated"]["status"] == "offline"
    assert str(ben) in (await ping(timed, "ann", last_update_id=last))["presences"]
    event = [e for e in await old.events() if e["user_id"] == ben][-1]
    assert event["presence"]["website"]["status"] == "idle"
    assert event["server_timestamp"] - event["presence"]["website"]["timestamp"] > 200
    event = [e for e in await modern.events() if str(ben) in e["presences"]][-1]
    assert event["presences"][str(ben)]["idle_timestamp"] == presence["idle_timestamp"]
    # Reports by an invisible person aren't sent to others, but they get others' presence.
    answer = await ping(timed, "ben", status="active", last_update_id=-1)
    assert str(timed["ann"].user_id) in answer["presences"]
    again = (await timed["ann"].get(f"/users/{ben}/presence")).ok["presence"]
    assert again == presence
    assert (await timed["ben"].patch("/settings", presence_enabled=True)).ok
    seen = (await timed["ann"].get(f"/users/{ben}/presence")).ok["presence"]
    assert seen["aggregated"]["status"] == "active"


async def test_someone_made_invisible_while_offline_was_never_seen(org: Organization) -> None:
    targets = {"user_ids": [org["ben"].user_id]}
    for enabled in (False, True):
        reply = await org["ann"].patch("/settings", target_users=targets, presence_enabled=enabled)
        assert reply.ok
    (await org["ann"].get(f"/users/{org['ben'].user_id}/presence")).refused()


# Events


async def test_presence_events_have_the_requested_form(org: Organization) -> None:
    ben = org["ben"].user_id
    old = await org["ann"].register()
    slim = await org["ann"].register(slim_presence=True)
    modern = await org["ann"].register(client_capabilities={"simplified_presence_events": True})
    await appear(org, "ben")
    (event,) = await old.events()
    assert event["email"] == "ben@example.com"
    timestamp = event["presence"]["website"]["timestamp"]
    assert event == {
        "id": event["id"],
        "type": "presence",
        "user_id": ben,
        "email": "ben@example.com",
        "server_timestamp": float(timestamp),
        "presence": {
            "website": {
                "client": "website",
                "status": "active",
                "timestamp": timestamp,
                "pushable": False,
            }
        },
    }
    (event,) = await slim.events()
    assert "email" not in event
    (event,) = await modern.events()
    times = {"active_timestamp": timestamp, "idle_timestamp": timestamp}
    assert event["presences"] == {str(ben): times}


async def test_events_are_sent_for_coming_online_and_not_for_staying(
    timed: Organization, clock: TestClock
) -> None:
    # Longer than the clock is advanced.
    listener = await timed["ann"].register(event_types=["presence"], idle_queue_timeout=3600)
    told = []
    for ahead, status in [
        (0, "idle"),
        (60, "idle"),
        (70, "active"),
        (130, "active"),
        (190, "idle"),
        (2000, "idle"),
    ]:
        clock.ahead = ahead
        await ping(timed, "ben", status=status)
        told.append(len(await listener.events()))
    assert told == [1, 0, 1, 0, 0, 1]


async def test_presence_survives_a_restart_approximately(org: Organization) -> None:
    await appear(org, "ben")
    before = (await org["ann"].get(f"/users/{org['ben'].user_id}/presence")).ok["presence"]
    await org.node.delivery.sweep()
    await org["ann"].send((await org.channel("lounge", "ann")), "t", "written with it")
    async with open_organization(org.node.config) as later:
        after = (await later["ann"].get(f"/users/{org['ben'].user_id}/presence")).ok["presence"]
        assert after["active_timestamp"] == before["active_timestamp"]


async def test_activity_is_counted_by_day(timed: Organization, clock: TestClock) -> None:
    """For invisible people too, and once per day."""
    assert (await timed["ben"].patch("/settings", presence_enabled=False)).ok
    today = int(clock()) // DAY
    for ahead, name, given in [
        (0, "ben", True),
        (0, "ben", True),
        (0, "gus", False),
        (DAY, "ann", True),
        (DAY, "ben", True),
    ]:
        clock.ahead = ahead
        await ping(timed, name, status="active", new_user_input=given)
    await timed.node.delivery.sweep()
    await timed["ann"].send((await timed.channel("lounge", "ann")), "t", "written with it")
    store = timed.node.store
    counts = [await store.read(users_since, today + day) for day in (0, 1, 2)]
    assert counts == [2, 2, 0]
