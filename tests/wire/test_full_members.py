"""Members become full members when their waiting period ends."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from tertulia.domain.accounts import full_members, users
from tertulia.domain.accounts.full_members import DAY
from tertulia.model.changes import RealmChanged
from tertulia.model.groups import SystemGroup
from tertulia.model.users import Role
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext, Decision
from tests.support import Organization, TestClock, new_organization, open_organization
from tests.wire.test_group_members import channel_events, group_events, members
from tests.wire.test_user_groups import create, people

FULL_MEMBERS, MEMBERS, NOBODY = (
    SystemGroup.FULL_MEMBERS.value,
    SystemGroup.MEMBERS.value,
    SystemGroup.NOBODY.value,
)


@pytest.fixture
async def waited(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    """An organization where members wait for two days. Ben has waited for one day, cleo for none;
    gus is a guest as old as ben; mo, a moderator, doesn't have to wait."""
    async with new_organization(config, clock=clock) as org:
        await set_period(org, 2)
        await org.add("ben")
        await org.add("gus", Role.GUEST)
        clock.ahead = DAY
        await org.add("cleo")
        await org.add("mo", Role.MODERATOR)
        yield org


async def set_period(org: Organization, days: int) -> None:
    await org.do(RealmChanged(values={"waiting_period_threshold": days}))
    await org.tick()


async def full(org: Organization) -> list[int]:
    return await members(org, FULL_MEMBERS, direct_member_only=True)


def ended(op: str, *user_ids: int) -> dict[str, Any]:
    return {"op": op, "group_id": FULL_MEMBERS, "user_ids": list(user_ids)}


async def test_by_default_nobody_waits(org: Organization) -> None:
    assert await full(org) == people(org, "ben", "cleo", "robo")


async def test_a_new_member_is_not_a_full_member(waited: Organization) -> None:
    listener = await waited["ann"].register(idle_queue_timeout=7 * DAY)
    await waited.add("dan")
    dan = waited["dan"].user_id
    assert await group_events(listener) == [
        {"op": "add_members", "group_id": MEMBERS, "user_ids": [dan]}
    ]
    assert await full(waited) == []
    assert await members(waited, FULL_MEMBERS) == people(waited, "ann", "mo")


async def test_each_member_becomes_a_full_member_in_time(
    waited: Organization, clock: TestClock
) -> None:
    ben, cleo = people(waited, "ben", "cleo")
    listener = await waited["gus"].register(idle_queue_timeout=7 * DAY)
    clock.ahead = 1.5 * DAY
    await waited.tick()
    assert await group_events(listener) == []
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    await waited.tick()
    assert await group_events(listener) == [ended("add_members", ben)]
    assert await full(waited) == [ben]
    clock.ahead = 3 * DAY + 100
    await waited.tick()
    assert await group_events(listener) == [ended("add_members", cleo)]
    assert await full(waited) == [ben, cleo]


async def test_members_due_while_no_server_ran_are_updated_when_one_does(
    waited: Organization, clock: TestClock, config: Config
) -> None:
    await waited.node.log.catch_up()
    clock.ahead = 10 * DAY
    async with open_organization(config, clock=clock) as later:
        await later.tick()
        assert await full(later) == people(later, "ben", "cleo")
        assert full_members.next_end(later.node.state, clock()) is None


async def test_a_changed_period_applies_immediately(waited: Organization, clock: TestClock) -> None:
    ben, cleo = people(waited, "ben", "cleo")
    clock.ahead = DAY + 100
    listener = await waited["gus"].register(idle_queue_timeout=7 * DAY)
    for days, events, expected in (
        (1, [ended("add_members", ben)], [ben]),
        (0, [ended("add_members", cleo)], [ben, cleo]),
        (5, [ended("remove_members", ben, cleo)], []),
        (6, [], []),
        (36_500, [], []),
        (0, [ended("add_members", ben, cleo)], [ben, cleo]),
        (1, [ended("remove_members", cleo)], [ben]),
    ):
        await set_period(waited, days)
        assert await group_events(listener) == events
        assert await full(waited) == expected


async def test_full_members_permissions_start_then(waited: Organization, clock: TestClock) -> None:
    await waited.do(RealmChanged(values={"can_create_groups": FULL_MEMBERS}))
    asked = {"name": "cooks", "description": "", "members": []}
    (await waited["ben"].post("/user_groups/create", **asked)).refused()
    assert (await waited["mo"].post("/user_groups/create", **asked)).ok
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    assert (await waited["ben"].post("/user_groups/create", **(asked | {"name": "b"}))).ok
    (await waited["cleo"].post("/user_groups/create", **(asked | {"name": "c"}))).refused()


async def test_a_private_channel_of_full_members_becomes_visible_then(
    waited: Organization, clock: TestClock
) -> None:
    """Through a group that contains the full members."""
    seniors = await create(waited, "ann", "seniors", subgroups=[FULL_MEMBERS])
    den = await waited.channel("den", "mo", is_private=True, can_subscribe_group=seniors)
    listeners = [
        await waited[name].register(idle_queue_timeout=7 * DAY)
        for name in ("ben", "cleo", "gus", "ann")
    ]
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    added = [("create", [den]), ("peer_add", [den], people(waited, "mo"))]
    assert [await channel_events(one) for one in listeners] == [added, [], [], []]
    await set_period(waited, 3)
    assert [await channel_events(one) for one in listeners] == [[("delete", [den])], [], [], []]


async def test_a_former_role_counts_as_waiting(waited: Organization, clock: TestClock) -> None:
    """People whose role is raised, lowered, or restored have waited throughout."""
    gus, mo, ben = people(waited, "gus", "mo", "ben")
    clock.ahead = 2 * DAY + 100
    listener = await waited["ann"].register(idle_queue_timeout=7 * DAY)
    assert (await waited["ann"].patch(f"/users/{gus}", role=Role.MEMBER.value)).ok
    assert gus in await full(waited)
    assert ended("add_members", gus) in await group_events(listener)
    assert (await waited["ann"].patch(f"/users/{mo}", role=Role.MEMBER.value)).ok
    assert mo not in await full(waited)
    clock.ahead = 3 * DAY + 200
    assert (await waited["ann"].patch(f"/users/{mo}", role=Role.MODERATOR.value)).ok
    assert (await waited["ann"].patch(f"/users/{mo}", role=Role.MEMBER.value)).ok
    assert mo in await full(waited)
    assert ben in await full(waited)


async def test_someone_who_joins_later_than_assumed_waits_from_then(
    waited: Organization, clock: TestClock
) -> None:
    """For example, someone whose account was created by someone else, and who signs in days
    later."""
    ben = waited["ben"].user_id
    den = await waited.channel("den", "mo", is_private=True, can_subscribe_group=FULL_MEMBERS)
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    # Longer than the clock is advanced.
    listener = await waited["ben"].register(idle_queue_timeout=7 * DAY)

    def arrive(context: CommandContext) -> Decision[None]:
        joined = {"joined_at": int(context.now)}
        return Decision(None, users.account_changes(context, context.state.users[ben], joined))

    await waited.node.log.submit(None, arrive)
    events = await listener.events()
    assert [(e["type"], e["op"]) for e in events] == [
        ("realm_user", "update"),
        ("user_group", "remove_members"),
        ("stream", "delete"),
    ]
    clock.ahead = 4 * DAY + 200
    await waited.tick()
    assert ben in await full(waited)
    assert await channel_events(listener) == [
        ("create", [den]),
        ("peer_add", [den], people(waited, "mo")),
    ]


async def test_someone_deactivated_for_a_while_has_waited_throughout(
    waited: Organization, clock: TestClock
) -> None:
    ben = waited["ben"].user_id
    assert (await waited["ann"].delete(f"/users/{ben}")).ok
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    assert await full(waited) == []
    listener = await waited["ann"].register(idle_queue_timeout=7 * DAY)
    assert (await waited["ann"].post(f"/users/{ben}/reactivate")).ok
    assert await full(waited) == [ben]
    assert ended("add_members", ben) in await group_events(listener)


async def test_nothing_happens_early_and_finding_the_next_needs_no_search(
    waited: Organization, clock: TestClock
) -> None:
    state, cleo = waited.node.state, waited["cleo"].user_id
    ben = state.users[waited["ben"].user_id]
    assert full_members.next_end(state, clock()) == ben.joined_at + 2 * DAY
    before = state.seq
    await waited.node.log.submit(None, full_members.end)
    assert state.seq == before
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    assert full_members.next_end(state, clock()) == state.users[cleo].joined_at + 2 * DAY


async def test_differing_clocks_do_not_undo_each_other(
    waited: Organization, clock: TestClock
) -> None:
    """A decision made by one node's clock stands, even if another node's clock is behind."""
    clock.ahead = 2 * DAY + 100
    await waited.tick()
    state = waited.node.state
    before = state.seq
    clock.ahead = 2 * DAY - 100
    await waited.tick()
    assert state.seq == before
    assert await full(waited) == people(waited, "ben")
