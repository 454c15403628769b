"""Members of user groups: joining and leaving, adding and removing people and subgroups."""

from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.model.groups import Members, SystemGroup
from tertulia.model.users import Role
from tests.support import Listener, Organization, rows
from tests.wire.sample_organization import LIMITED, direct_messages
from tests.wire.test_user_groups import create, group, people

NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS, EVERYONE, INTERNET = (
    group.value for group in SystemGroup
)


async def group_events(listener: Listener) -> list[dict[str, Any]]:
    """The events about groups, without their IDs and types."""
    return [
        {name: value for name, value in event.items() if name not in {"id", "type"}}
        for event in await listener.events()
        if event["type"] == "user_group"
    ]


async def members(org: Organization, group_id: int, **parameters: Any) -> list[int]:
    reply = await org["gus"].get(f"/user_groups/{group_id}/members", **parameters)
    found: list[int] = reply.ok["members"]
    return found


# Changing


async def test_members_are_added_and_removed_with_events_for_everyone(org: Organization) -> None:
    ann, ben, cleo, gus = people(org, "ann", "ben", "cleo", "gus")
    group_id = await create(org, "ben", "cooks", members=[ann, ben])
    inner, other = await create(org, "ben", "inner"), await create(org, "ben", "other")
    url = f"/user_groups/{group_id}"
    listener = await org["gus"].register()
    assert (await org["ben"].post(f"{url}/members", add=[gus, cleo, cleo], delete=[ann])).ok
    assert (await org["ben"].post(f"{url}/subgroups", add=[other, inner])).ok
    reply = await org["ben"].post(
        f"{url}/members",
        add=[ann],
        delete=[cleo, ben],
        add_subgroups=[MODERATORS],
        delete_subgroups=[inner],
    )
    assert reply.ok
    assert (await org["ben"].post(f"{url}/subgroups", delete=[other])).ok
    assert await group_events(listener) == [
        {"op": "add_members", "group_id": group_id, "user_ids": [cleo, gus]},
        {"op": "remove_members", "group_id": group_id, "user_ids": [ann]},
        {"op": "add_subgroups", "group_id": group_id, "direct_subgroup_ids": [inner, other]},
        {"op": "add_members", "group_id": group_id, "user_ids": [ann]},
        {"op": "remove_members", "group_id": group_id, "user_ids": [ben, cleo]},
        {"op": "add_subgroups", "group_id": group_id, "direct_subgroup_ids": [MODERATORS]},
        {"op": "remove_subgroups", "group_id": group_id, "direct_subgroup_ids": [inner]},
        {"op": "remove_subgroups", "group_id": group_id, "direct_subgroup_ids": [other]},
    ]
    shown = await group(org, group_id)
    assert (shown["members"], shown["direct_subgroup_ids"]) == ([ann, gus], [MODERATORS])


@pytest.fixture(scope="module")
async def nested(shared_org: Organization) -> dict[Any, int]:
    """Nested groups, with people in the second-innermost. Returns their IDs."""
    await shared_org.add("dan")
    ids = {
        "in": shared_org["ben"].user_id,
        "out": shared_org["cleo"].user_id,
        "gone": shared_org["dan"].user_id,
        "inner": await create(shared_org, "ben", "inner"),
    }
    ids["itself"] = await create(
        shared_org, "ben", "cooks", members=[ids["in"], ids["gone"]], subgroups=[ids["inner"]]
    )
    ids["outer"] = await create(shared_org, "ben", "outer", subgroups=[ids["itself"]])
    ids["outermost"] = await create(shared_org, "ben", "outermost", subgroups=[ids["outer"]])
    assert (await shared_org["ann"].delete(f"/users/{ids['gone']}")).ok
    return ids


@rows(
    ("path", "given", "code"),
    [
        ("members", {}, "BAD_REQUEST"),
        ("members", {"add": [], "delete": []}, "BAD_REQUEST"),
        ("subgroups", {}, "BAD_REQUEST"),
        ("members", {"add": ["in"]}, "BAD_REQUEST"),
        ("members", {"delete": ["out"]}, "BAD_REQUEST"),
        ("members", {"add": ["out"], "delete": ["out"]}, "BAD_REQUEST"),
        ("members", {"add": ["out", 999999]}, "BAD_REQUEST"),
        ("members", {"add": ["gone"]}, "BAD_REQUEST"),
        ("members", {"delete": ["gone"]}, "BAD_REQUEST"),
        ("members", {"delete": [999999]}, "BAD_REQUEST"),
        ("members", {"add": [1]}, "BAD_REQUEST"),
        ("members", {"add": 5}, "REQUEST_VARIABLE_INVALID"),
        ("members", {"add": "[5"}, "REQUEST_VARIABLE_INVALID"),
        ("members", {"add": ["out", "x"]}, "REQUEST_VARIABLE_INVALID"),
        ("members", {"add": [10**18]}, "REQUEST_VARIABLE_INVALID"),
        ("members", {"delete": {"a": 1}}, "REQUEST_VARIABLE_INVALID"),
        ("members", {"add_subgroups": ["inner"]}, "BAD_REQUEST"),
        ("members", {"delete_subgroups": [MEMBERS]}, "BAD_REQUEST"),
        ("members", {"add": ["out"], "add_subgroups": [999999]}, "BAD_REQUEST"),
        ("subgroups", {"add": ["inner"]}, "BAD_REQUEST"),
        ("subgroups", {"delete": [MEMBERS]}, "BAD_REQUEST"),
        ("subgroups", {"add": [999999]}, "BAD_REQUEST"),
        ("subgroups", {"add": ["itself"]}, "BAD_REQUEST"),
        ("subgroups", {"add": ["outer"]}, "BAD_REQUEST"),
        ("subgroups", {"add": ["outermost"]}, "BAD_REQUEST"),
        ("members", {"add_subgroups": ["outermost"]}, "BAD_REQUEST"),
        ("subgroups", {"add": True}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_an_invalid_change_of_members_is_refused_as_a_whole(
    nested: dict[Any, int], readonly_org: Organization, path: str, given: dict[str, Any], code: str
) -> None:
    org, ids = readonly_org, nested
    asked = {
        name: [ids.get(one, one) for one in value] if isinstance(value, list) else value
        for name, value in given.items()
    }
    listener = await org["gus"].register()
    reply = await org["ben"].post(f"/user_groups/{ids['itself']}/{path}", **asked)
    reply.refused(code)
    assert await group_events(listener) == []
    assert await members(org, ids["itself"]) == [ids["in"]]


DEEDS: dict[str, dict[str, list[str]]] = {
    "join": {"add": ["self"]},
    "leave": {"delete": ["self"]},
    "add": {"add": ["cleo"]},
    "remove": {"delete": ["dan"]},
    "join with another": {"add": ["self", "cleo"]},
    "leave with another": {"delete": ["self", "dan"]},
    "add a group": {"add_subgroups": ["one"]},
    "remove a group": {"delete_subgroups": ["two"]},
}
"""Changes of a group."""
MAY: dict[str, set[str]] = {
    "can_join_group": {"join"},
    "can_leave_group": {"leave"},
    "can_add_members_group": {"join", "add", "join with another", "add a group"},
    "can_remove_members_group": {"leave", "remove", "leave with another", "remove a group"},
    "can_manage_group": set(DEEDS),
    "can_manage_all_groups": set(DEEDS),
    "can_mention_group": set(),
}
"""What holders of each permission can do."""


@rows("setting", MAY)
async def test_each_permission_of_a_group_allows_its_action(
    org: Organization, setting: str
) -> None:
    """For a member and a guest in a (nested) group that holds only this permission."""
    if "dan" not in org.people:
        await org.add("dan")
    within = await create(org, "ann", f"{setting} within", members=people(org, "ben", "gus"))
    holders = await create(org, "ann", f"{setting} holders", subgroups=[within])
    known = {name: person.user_id for name, person in org.people.items()}
    known["one"], known["two"] = [
        await create(org, "ann", f"{setting} {name}") for name in ("one", "two")
    ]
    shut = {name: NOBODY for name in MAY if name != "can_manage_all_groups"}
    realm = holders if setting == "can_manage_all_groups" else OWNERS
    await org.do(RealmChanged(values={"can_manage_all_groups": realm}))
    if setting in shut:
        shut[setting] = holders
    done: dict[str, set[str]] = {"ben": set(), "gus": set()}
    for deed, given in DEEDS.items():
        for who, what in done.items():
            staff = people(org, "dan", *([who] if deed.startswith("leave") else []))
            group_id = await create(
                org,
                "ann",
                f"{setting}: {deed}, {who}",
                members=staff,
                subgroups=[known["two"]],
                **shut,
            )
            known["self"] = org[who].user_id
            asked = {name: [known[one] for one in value] for name, value in given.items()}
            reply = await org[who].post(f"/user_groups/{group_id}/members", **asked)
            if reply.status == 200:
                what.add(deed)
            else:
                reply.refused()
    assert done["ben"] == MAY[setting]
    assert done["gus"] == (MAY[setting] if setting == "can_leave_group" else set())


async def test_subgroups_are_added_and_removed_by_the_permissions_for_members(
    org: Organization,
) -> None:
    """The same for the other endpoint."""
    one = await create(org, "ann", "one")
    adding = await create(org, "ann", "adding", can_add_members_group=MEMBERS)
    removing = await create(
        org, "ann", "removing", subgroups=[one], can_remove_members_group=MEMBERS
    )
    for group_id, op, allowed in (
        (removing, "add", False),
        (adding, "add", True),
        (adding, "delete", False),
        (removing, "delete", True),
    ):
        other = one if (group_id, op) != (removing, "add") else adding
        reply = await org["ben"].post(f"/user_groups/{group_id}/subgroups", **{op: [other]})
        assert (reply.status == 200) is allowed, (op, reply.body)


async def test_a_bot_joins_by_itself_and_is_added_by_others(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks", can_join_group=MEMBERS)
    robo = people(org, "robo")
    url = f"/user_groups/{group_id}/members"
    assert (await org["robo"].post(url, add=robo)).ok
    assert (await org["robo"].post(url, delete=robo)).ok
    assert (await org["ben"].post(url, add=robo)).ok
    assert await members(org, group_id) == robo


async def test_an_invisible_person_cannot_be_added(org: Organization) -> None:
    """A limited guest, in a group that everyone may leave, and in no other."""
    await org.do(LIMITED)
    group_id = await create(org, "ann", "cooks", members=people(org, "gus"))
    url = f"/user_groups/{group_id}/members"
    hidden = await org["gus"].get(f"{url}/{org['cleo'].user_id}")
    assert hidden.refused() == (await org["gus"].get(f"{url}/999999")).refused()
    assert (await org["gus"].post(url, delete=people(org, "gus"))).ok


# Reading


async def test_members_of_subgroups_are_members(org: Organization) -> None:
    ann, ben, cleo, gus = people(org, "ann", "ben", "cleo", "gus")
    inmost = await create(org, "ben", "inmost", members=[gus, cleo])
    inner = await create(org, "ben", "inner", members=[ben], subgroups=[inmost])
    outer = await create(org, "ben", "outer", members=[cleo], subgroups=[inner, OWNERS])
    assert await members(org, outer) == [ann, ben, cleo, gus]
    assert await members(org, outer, direct_member_only=True) == [cleo]
    assert await members(org, ADMINISTRATORS) == [ann]
    assert await members(org, ADMINISTRATORS, direct_member_only=True) == []
    assert await members(org, NOBODY) == []
    everybody = sorted(person.user_id for person in org.people.values())
    assert await members(org, EVERYONE) == await members(org, INTERNET) == everybody
    for user_id, direct, expected in (
        (gus, False, True),
        (gus, True, False),
        (cleo, True, True),
        (org["robo"].user_id, False, False),
    ):
        reply = await org["gus"].get(
            f"/user_groups/{outer}/members/{user_id}", direct_member_only=direct
        )
        assert reply.ok["is_user_group_member"] is expected
    (await org["gus"].get(f"/user_groups/{outer}/members/999999")).refused()
    for asked, found in (
        ({}, [OWNERS, inmost, inner]),
        ({"direct_subgroup_only": True}, [OWNERS, inner]),
    ):
        reply = await org["gus"].get(f"/user_groups/{outer}/subgroups", **asked)
        assert reply.ok["subgroups"] == found
    reply = await org["gus"].get(f"/user_groups/{EVERYONE}/subgroups")
    assert reply.ok["subgroups"] == [
        OWNERS,
        ADMINISTRATORS,
        MODERATORS,
        FULL_MEMBERS,
        MEMBERS,
    ]


@rows(
    ("path", "given"),
    [
        ("members", {"direct_member_only": "perhaps"}),
        ("members/4", {"direct_member_only": 2}),
        ("subgroups", {"direct_subgroup_only": []}),
    ],
)
async def test_an_invalid_boolean_is_refused(
    readonly_org: Organization, path: str, given: dict[str, Any]
) -> None:
    reply = await readonly_org["gus"].get(f"/user_groups/{MEMBERS}/{path}", **given)
    reply.refused("REQUEST_VARIABLE_INVALID")


async def test_deactivated_accounts_are_in_no_group_until_reactivated(org: Organization) -> None:
    ben, cleo = people(org, "ben", "cleo")
    both = {"direct_members": [ben, cleo], "direct_subgroups": []}
    group_id = await create(
        org, "ann", "cooks", members=[ben, cleo], can_join_group=both, can_manage_group=both
    )
    listener = await org["gus"].register()
    assert (await org["ann"].delete(f"/users/{cleo}")).ok
    shown = await group(org, group_id)
    assert shown["members"] == [ben]
    assert shown["can_join_group"] == {"direct_members": [ben], "direct_subgroups": []}
    assert await members(org, group_id) == [ben]
    reply = await org["ann"].get(f"/user_groups/{group_id}/members/{cleo}")
    assert reply.ok["is_user_group_member"] is False
    events = await group_events(listener)
    gone = {"op": "remove_members", "group_id": group_id, "user_ids": [cleo]}
    only_ben = {"direct_members": [ben], "direct_subgroups": []}
    assert gone in events
    for name in ("can_join_group", "can_manage_group"):
        assert {"op": "update", "group_id": group_id, "data": {name: only_ben}} in events
    assert (await org["ann"].post(f"/users/{cleo}/reactivate")).ok
    events = await group_events(listener)
    assert {"op": "add_members", "group_id": group_id, "user_ids": [cleo]} in events
    assert {"op": "update", "group_id": group_id, "data": {"can_join_group": both}} in events
    assert await members(org, group_id) == [ben, cleo]


async def test_a_new_role_means_a_new_system_group(org: Organization) -> None:
    cleo = org["cleo"].user_id
    group_id = await create(org, "ann", "heads", subgroups=[MODERATORS])
    assert await members(org, group_id) == people(org, "ann")
    assert (await org["ann"].patch(f"/users/{cleo}", role=Role.MODERATOR.value)).ok
    assert await members(org, group_id) == people(org, "ann", "cleo")


# Notifications


async def test_people_are_notified_when_someone_else_adds_or_removes_them(
    org: Organization,
) -> None:
    group_id = await create(org, "ben", "cooks", members=people(org, "gus"))
    url = f"/user_groups/{group_id}/members"
    assert (await org["ben"].post(url, add=people(org, "ben", "cleo", "robo"))).ok
    assert (await org["ben"].post(url, delete=people(org, "ben", "cleo"))).ok
    ben = org["ben"].user_id
    assert await direct_messages(org["cleo"]) == [
        f"@_**Ben|{ben}** added you to the group @_*cooks*.",
        f"@_**Ben|{ben}** removed you from the group @_*cooks*.",
    ]
    for name in ("ben", "gus", "robo"):
        assert await direct_messages(org[name]) == []


async def test_large_changes_notify_nobody(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.domain.groups.groups.MAX_BULK_NEW_SUBSCRIPTION_MESSAGES", 1)
    group_id = await create(org, "ben", "cooks")
    url = f"/user_groups/{group_id}/members"
    assert (await org["ben"].post(url, add=people(org, "ann", "cleo"))).ok
    assert await direct_messages(org["cleo"]) == []
    assert (await org["ben"].post(url, delete=people(org, "cleo"))).ok
    assert len(await direct_messages(org["cleo"])) == 1


# Effects of permissions


async def channel_events(listener: Listener) -> list[tuple[Any, ...]]:
    """The channel events: operation, channels, and people."""
    found: list[tuple[Any, ...]] = []
    for event in await listener.events():
        if event["type"] == "stream":
            channels = event.get("stream_ids") or [s["stream_id"] for s in event["streams"]]
            found.append((event["op"], channels))
        elif event["type"] == "subscription":
            found.append((event["op"], event["stream_ids"], event["user_ids"]))
    return found


@pytest.mark.parametrize(
    "setting", ["can_subscribe_group", "can_add_subscribers_group", "can_administer_channel_group"]
)
async def test_a_private_channel_is_shown_and_hidden_with_membership_in_the_group(
    org: Organization, setting: str
) -> None:
    ann, ben, cleo, gus = people(org, "ann", "ben", "cleo", "gus")
    inner = await create(org, "ann", "inner")
    outer = await create(org, "ann", "outer", subgroups=[inner])
    held = Members((), (outer, MODERATORS))
    den = await org.channel("den", "ben", is_private=True, **{setting: held})
    await org.channel("open", "ben", can_subscribe_group=outer)
    await org.channel("other", "ben", is_private=True)
    listeners = [await org[name].register() for name in ("ann", "ben", "cleo", "gus")]

    async def heard() -> list[list[tuple[Any, ...]]]:
        return [await channel_events(listener) for listener in listeners]

    added = [[], [], [("create", [den]), ("peer_add", [den], [ben])], []]
    gone: list[Any] = [[], [], [("delete", [den])], []]
    url = "/user_groups/{}/members"
    everybody = {"add": [ann, ben, cleo, gus]}
    assert (await org["ann"].post(url.format(inner), **everybody)).ok
    assert await heard() == added
    assert (await org["cleo"].get(f"/streams/{den}")).ok
    assert (await org["ann"].post(url.format(outer), add=[cleo])).ok
    assert (await org["ann"].post(url.format(inner), delete=[cleo, ben])).ok
    assert await heard() == [[], [], [], []]
    assert (await org["ann"].post(url.format(outer), delete=[cleo])).ok
    assert await heard() == gone
    (await org["cleo"].get(f"/streams/{den}")).refused()
    assert (await org["ann"].post(url.format(inner), add=[cleo])).ok
    assert await heard() == added
    assert (await org["ann"].post(url.format(outer), delete_subgroups=[inner])).ok
    assert await heard() == gone
    assert (await org["ann"].post(url.format(outer), add_subgroups=[inner])).ok
    assert await heard() == added


async def test_an_archived_channel_is_shown_to_clients_with_the_capability(
    org: Organization,
) -> None:
    group_id = await create(org, "ann", "cooks")
    den = await org.channel("den", "ben", is_private=True, can_subscribe_group=group_id)
    assert (await org["ann"].delete(f"/streams/{den}")).ok
    modern = await org["cleo"].register(client_capabilities={"archived_channels": True})
    legacy = await org["cleo"].register()
    url = f"/user_groups/{group_id}/members"
    cleo = people(org, "cleo")
    assert (await org["ann"].post(url, add=cleo)).ok
    assert [op for op, *_ in await channel_events(modern)] == ["create", "peer_add"]
    assert await channel_events(legacy) == []
    assert (await org["ann"].post(url, delete=cleo)).ok
    assert [op for op, *_ in await channel_events(modern)] == ["delete"]


async def test_a_channel_hidden_in_the_meantime_is_not_shown(org: Organization) -> None:
    group_id = await create(org, "ann", "cooks")
    await org.channel("den", "ben", is_private=True, can_subscribe_group=group_id)
    listener = await org["cleo"].register()
    url = f"/user_groups/{group_id}/members"
    for change in ({"add": people(org, "cleo")}, {"delete": people(org, "cleo")}):
        assert (await org["ann"].post(url, **change)).ok
    # The client never heard of the channel, so it isn't told that it's gone.
    assert await channel_events(listener) == []
