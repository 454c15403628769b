"""User groups: creating, listing, changing, and deactivating them."""

import asyncio
from collections.abc import Set
from typing import Any

import pytest

from tertulia.model.changes import RealmChanged, UserGroupChanged, UserGroupCreated
from tertulia.model.groups import Members, SystemGroup, UserGroup
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, Reply, open_organization, row

NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS, EVERYONE, INTERNET = (
    group.value for group in SystemGroup
)
LEGACY: dict[str, Any] = {}
MODERN = {"client_capabilities": {"include_deactivated_groups": True}}


async def create(org: Organization, who: str, name: str, **parameters: Any) -> int:
    """Create a group with this name, without members by default."""
    given = {"description": "", "members": [], **parameters}
    reply = await org[who].post("/user_groups/create", name=name, **given)
    group_id: int = reply.ok["group_id"]
    return group_id


async def group(org: Organization, group_id: int, who: str = "gus") -> dict[str, Any]:
    """The group as listed."""
    listed = (await org[who].get("/user_groups", include_deactivated_groups=True)).ok
    (found,) = [one for one in listed["user_groups"] if one["id"] == group_id]
    return dict(found)


def people(org: Organization, *names: str) -> list[int]:
    return [org[name].user_id for name in names]


# Creating


async def test_a_new_group_has_the_requested_properties(org: Organization) -> None:
    ben, cleo = people(org, "ben", "cleo")
    inner = await create(org, "ann", "inner")
    group_id = await create(
        org,
        "ben",
        "  cooks ",
        description=" of *soup* ",
        members=[cleo, ben, cleo],
        subgroups=[inner, FULL_MEMBERS],
        can_add_members_group=MODERATORS,
        can_join_group={"direct_members": [cleo], "direct_subgroups": [inner]},
        can_leave_group=MEMBERS,
        can_manage_group={"direct_members": [], "direct_subgroups": [inner]},
        can_mention_group=NOBODY,
        can_remove_members_group=inner,
    )
    shown = await group(org, group_id)
    assert abs(shown.pop("date_created") - org.node.clock()) < 100
    assert shown == {
        "id": group_id,
        "name": "cooks",
        "description": "of *soup*",
        "creator_id": ben,
        "members": [ben, cleo],
        "direct_subgroup_ids": [FULL_MEMBERS, inner],
        "is_system_group": False,
        "deactivated": False,
        "can_add_members_group": MODERATORS,
        "can_join_group": {"direct_members": [cleo], "direct_subgroups": [inner]},
        "can_leave_group": MEMBERS,
        "can_manage_group": inner,
        "can_mention_group": NOBODY,
        "can_remove_members_group": inner,
    }


async def test_missing_properties_have_defaults(org: Organization) -> None:
    creator = {"direct_members": people(org, "ben"), "direct_subgroups": []}
    shown = await group(org, await create(org, "ben", "cooks"))
    assert {name: value for name, value in shown.items() if name.startswith("can_")} == {
        "can_add_members_group": creator,
        "can_join_group": NOBODY,
        "can_leave_group": EVERYONE,
        "can_manage_group": creator,
        "can_mention_group": EVERYONE,
        "can_remove_members_group": NOBODY,
    }
    assert (shown["members"], shown["direct_subgroup_ids"]) == ([], [])


async def test_a_new_group_is_sent_to_everyone(org: Organization) -> None:
    listeners = [await org[name].register(**MODERN) for name in ("ann", "gus")]
    group_id = await create(org, "ben", "cooks", members=people(org, "cleo"))
    for listener in listeners:
        (event,) = await listener.events()
        assert (event["type"], event["op"]) == ("user_group", "add")
        assert event["group"] == await group(org, group_id)


@pytest.fixture(scope="module")
async def taken(shared_org: Organization) -> Organization:
    """An organization with an active and a deactivated group."""
    await shared_org.do(
        UserGroupCreated(group=UserGroup(id=100, name="Taken")),
        UserGroupCreated(group=UserGroup(id=101, name="gone", deactivated=True)),
    )
    return shared_org


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({"name": None}, "REQUEST_VARIABLE_MISSING"),
        ({"description": None}, "REQUEST_VARIABLE_MISSING"),
        ({"members": None}, "REQUEST_VARIABLE_MISSING"),
        ({"name": ""}, "BAD_REQUEST"),
        ({"name": "  "}, "BAD_REQUEST"),
        ({"name": "x" * 101}, "BAD_REQUEST"),
        ({"name": "taken"}, "BAD_REQUEST"),
        ({"name": " TAKEN "}, "BAD_REQUEST"),
        ({"name": "gone"}, "BAD_REQUEST"),
        ({"name": "@cooks"}, "BAD_REQUEST"),
        ({"name": "role:cooks"}, "BAD_REQUEST"),
        ({"name": "Role:cooks"}, "BAD_REQUEST"),
        ({"name": "user:cooks"}, "BAD_REQUEST"),
        ({"name": "stream:cooks"}, "BAD_REQUEST"),
        ({"name": "channel:cooks"}, "BAD_REQUEST"),
        ({"name": "coo\u0007ks"}, "BAD_REQUEST"),
        ({"name": "coo\0ks"}, "REQUEST_VARIABLE_INVALID"),
        ({"description": "x" * 1025}, "BAD_REQUEST"),
        ({"description": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
        ({"members": "ben"}, "REQUEST_VARIABLE_INVALID"),
        ({"members": ["5"]}, "REQUEST_VARIABLE_INVALID"),
        ({"members": 5}, "REQUEST_VARIABLE_INVALID"),
        ({"members": [999999]}, "BAD_REQUEST"),
        ({"members": [-1]}, "BAD_REQUEST"),
        ({"members": [2**60]}, "REQUEST_VARIABLE_INVALID"),
        ({"members": [1]}, "BAD_REQUEST"),
        ({"subgroups": [999999]}, "BAD_REQUEST"),
        ({"subgroups": [101]}, "BAD_REQUEST"),
        ({"subgroups": {"a": 1}}, "REQUEST_VARIABLE_INVALID"),
        ({"can_join_group": 999999}, "BAD_REQUEST"),
        ({"can_join_group": "cooks"}, "REQUEST_VARIABLE_INVALID"),
        ({"can_join_group": {"direct_members": []}}, "REQUEST_VARIABLE_INVALID"),
        ({"can_join_group": [6]}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_an_invalid_group_is_refused(
    taken: Organization, readonly_org: Organization, given: dict[str, Any], code: str
) -> None:
    asked = {"name": "cooks", "description": "", "members": []}
    before = len(readonly_org.node.state.groups)
    (await readonly_org["ben"].post("/user_groups/create", **(asked | given))).refused(code)
    assert len(readonly_org.node.state.groups) == before


async def test_a_group_with_the_longest_texts_is_created(org: Organization) -> None:
    group_id = await create(org, "ben", "é" * 100, description="\U0001f600" * 1024)
    assert (await group(org, group_id))["name"] == "é" * 100
    assert len((await group(org, group_id))["description"]) == 1024


async def test_a_deactivated_account_cannot_be_in_a_new_group(org: Organization) -> None:
    assert (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    reply = await org["ben"].post(
        "/user_groups/create", name="cooks", description="", members=people(org, "cleo")
    )
    reply.refused()


CREATING = [("ann", True), ("ben", True), ("robo", True), ("gus", False)]


async def test_members_and_their_bots_create_groups(org: Organization) -> None:
    for who, allowed in CREATING:
        with row(who, allowed):
            reply = await org[who].post(
                "/user_groups/create", name=f"cooks of {who}", description="", members=[]
            )
            assert (reply.status == 200) is allowed, reply.body


async def test_the_organization_decides_who_can_create_groups(org: Organization) -> None:
    await org.do(RealmChanged(values={"can_create_groups": ADMINISTRATORS}))
    asked = {"name": "cooks", "description": "", "members": []}
    (await org["ben"].post("/user_groups/create", **asked)).refused()
    assert (await org["ann"].post("/user_groups/create", **asked)).ok
    everyone = Members((), (EVERYONE,))
    await org.do(RealmChanged(values={"can_create_groups": everyone}))
    (await org["gus"].post("/user_groups/create", **(asked | {"name": "guests"}))).refused()


async def test_initial_members_and_subgroups_need_no_further_permission(
    org: Organization,
) -> None:
    inner = await create(org, "ann", "inner", can_add_members_group=NOBODY)
    group_id = await create(
        org,
        "ben",
        "cooks",
        members=people(org, "ann", "gus"),
        subgroups=[inner],
        can_add_members_group=NOBODY,
        can_manage_group=NOBODY,
    )
    assert (await group(org, group_id))["direct_subgroup_ids"] == [inner]


SYSTEM: dict[str, Set[int]] = {
    "can_add_members_group": {NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS},
    "can_join_group": {NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS},
    "can_leave_group": set(SystemGroup) - {INTERNET},
    "can_manage_group": {NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS},
    "can_mention_group": set(SystemGroup) - {INTERNET, OWNERS},
    "can_remove_members_group": {NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS},
}


async def test_each_permission_accepts_its_system_groups_and_no_others(org: Organization) -> None:
    for setting in SYSTEM:
        with row(setting):
            group_id = await create(org, "ben", f"cooks {setting}")
            for number in SystemGroup:
                allowed = number in SYSTEM[setting]
                for value in (
                    number.value,
                    {"direct_members": [], "direct_subgroups": [number.value]},
                    {"direct_members": people(org, "ben"), "direct_subgroups": [number.value]},
                ):
                    asked = {
                        "name": f"{setting} {number.name} {value}",
                        "description": "",
                        "members": [],
                    }
                    reply = await org["ben"].post(
                        "/user_groups/create", **asked, **{setting: value}
                    )
                    assert (reply.status == 200) is allowed, (number, value, reply.body)
                    reply = await org["ann"].patch(
                        f"/user_groups/{group_id}", **{setting: {"new": value}}
                    )
                    assert (reply.status == 200) is allowed, (number, value, reply.body)


# Listing


async def test_system_groups_contain_each_other_and_have_no_creator(
    org: Organization,
) -> None:
    await org.add("mo", Role.MODERATOR)
    await org.add("ada", Role.ADMINISTRATOR)
    listed = (await org["gus"].get("/user_groups")).ok["user_groups"]
    members = people(org, "ben", "cleo", "robo")
    assert [(g["name"], g["members"], g["direct_subgroup_ids"]) for g in listed] == [
        ("role:nobody", [], []),
        ("role:owners", people(org, "ann"), []),
        ("role:administrators", people(org, "ada"), [OWNERS]),
        ("role:moderators", people(org, "mo"), [ADMINISTRATORS]),
        ("role:fullmembers", members, [MODERATORS]),
        ("role:members", members, [FULL_MEMBERS]),
        ("role:everyone", people(org, "gus"), [MEMBERS]),
        ("role:internet", [], [EVERYONE]),
    ]
    for shown in listed:
        assert shown["is_system_group"] is True
        assert (shown["creator_id"], shown["date_created"]) == (None, None)
        assert {value for name, value in shown.items() if name.startswith("can_")} == {NOBODY}


async def test_deactivated_groups_are_listed_on_request(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks")
    assert (await org["ben"].post(f"/user_groups/{group_id}/deactivate")).ok
    for asked, expected in (({}, []), ({"include_deactivated_groups": True}, [group_id])):
        listed = (await org["ben"].get("/user_groups", **asked)).ok["user_groups"]
        assert [g["id"] for g in listed if not g["is_system_group"]] == expected
    assert (await group(org, group_id))["deactivated"] is True


async def test_register_returns_the_same_groups_as_the_list(org: Organization) -> None:
    kept, gone = [await create(org, "ben", name) for name in ("kept", "gone")]
    assert (await org["ben"].post(f"/user_groups/{gone}/deactivate")).ok
    for way, asked in ((LEGACY, {}), (MODERN, {"include_deactivated_groups": True})):
        listed = (await org["gus"].get("/user_groups", **asked)).ok["user_groups"]
        listener = await org["gus"].register(fetch_event_types=["realm_user_groups"], **way)
        assert listener.data["realm_user_groups"] == listed
        assert kept in [one["id"] for one in listed]


@pytest.mark.parametrize("name", ["user_group", "realm_user_groups"])
async def test_group_events_can_be_requested_by_either_name(org: Organization, name: str) -> None:
    listener = await org["gus"].register(event_types=[name])
    other = await org["gus"].register(event_types=["realm_user"])
    group_id = await create(org, "ben", "cooks")
    assert (await org["ben"].post(f"/user_groups/{group_id}/deactivate")).ok
    assert [(e["type"], e["op"]) for e in await listener.events()] == [
        ("user_group", "add"),
        ("user_group", "remove"),
    ]
    assert await other.events() == []


# Changing


CHANGED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"name": " bakers "}, {"name": "bakers"}),
    ({"name": "COOKS"}, {"name": "COOKS"}),
    ({"description": "of bread"}, {"description": "of bread"}),
    ({"can_join_group": {"new": MEMBERS}}, {"can_join_group": MEMBERS}),
    ({"can_join_group": {"new": MEMBERS, "old": NOBODY}}, {"can_join_group": MEMBERS}),
    (
        {"can_join_group": {"new": {"direct_members": [], "direct_subgroups": [MEMBERS]}}},
        {"can_join_group": MEMBERS},
    ),
    (
        {"can_leave_group": {"new": {"direct_members": [4, 4], "direct_subgroups": []}}},
        {"can_leave_group": {"direct_members": [4], "direct_subgroups": []}},
    ),
    (
        {"name": "bakers", "description": "of bread", "can_mention_group": {"new": NOBODY}},
        {"name": "bakers", "description": "of bread", "can_mention_group": NOBODY},
    ),
]
"""A change, and what is shown of it."""


async def test_a_change_is_shown_and_sent(org: Organization) -> None:
    listener = await org["gus"].register()
    for number, (given, shown) in enumerate(CHANGED):
        with row(given):
            group_id = await create(org, "ben", "cooks")
            before = await group(org, group_id)
            await listener.events()
            assert (await org["ben"].patch(f"/user_groups/{group_id}", **given)).ok
            assert await group(org, group_id) == before | shown
            (event,) = await listener.events()
            assert (event["type"], event["op"], event["group_id"]) == (
                "user_group",
                "update",
                group_id,
            )
            assert event["data"] == shown
            away = {"name": f"changed{number}"}
            await org.do(UserGroupChanged(group_id=group_id, values=away))


async def test_an_equal_value_sends_no_event(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks")
    listener = await org["gus"].register()
    same = {"name": "cooks", "description": "", "can_join_group": {"new": NOBODY}}
    assert (await org["ben"].patch(f"/user_groups/{group_id}", **same, deactivated=False)).ok
    assert await listener.events() == []


@pytest.fixture(scope="module")
async def chefs(taken: Organization) -> int:
    """Another group, created by ben."""
    return await create(taken, "ben", "chefs")


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "BAD_REQUEST"),
        ({"name": ""}, "BAD_REQUEST"),
        ({"name": "x" * 101}, "BAD_REQUEST"),
        ({"name": "Taken"}, "BAD_REQUEST"),
        ({"name": "role:x"}, "BAD_REQUEST"),
        ({"description": "x" * 1025}, "BAD_REQUEST"),
        ({"deactivated": "no"}, "REQUEST_VARIABLE_INVALID"),
        ({"can_join_group": MEMBERS}, "REQUEST_VARIABLE_INVALID"),
        ({"can_join_group": {"old": MEMBERS}}, "REQUEST_VARIABLE_INVALID"),
        ({"can_join_group": {"new": 999999}}, "BAD_REQUEST"),
        (
            {"can_join_group": {"new": {"direct_members": [999999], "direct_subgroups": []}}},
            "BAD_REQUEST",
        ),
        ({"can_join_group": {"new": MEMBERS, "old": OWNERS}}, "EXPECTATION_MISMATCH"),
        (
            {
                "can_join_group": {
                    "new": MEMBERS,
                    "old": {"direct_members": [], "direct_subgroups": []},
                }
            },
            "EXPECTATION_MISMATCH",
        ),
        ({"name": "bakers", "can_join_group": {"new": EVERYONE}}, "BAD_REQUEST"),
    ],
)
async def test_an_invalid_change_is_refused_as_a_whole(
    chefs: int, readonly_org: Organization, given: dict[str, Any], code: str
) -> None:
    before = await group(readonly_org, chefs)
    (await readonly_org["ben"].patch(f"/user_groups/{chefs}", **given)).refused(code)
    assert await group(readonly_org, chefs) == before


CALLS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("PATCH", "", {"description": "new"}),
    ("POST", "/deactivate", {}),
    ("POST", "/members", {"add": [4]}),
    ("POST", "/subgroups", {"add": [MODERATORS]}),
)


@pytest.mark.parametrize(("method", "path", "given"), CALLS)
async def test_system_groups_cannot_be_changed(
    readonly_org: Organization, method: str, path: str, given: dict[str, Any]
) -> None:
    for number in SystemGroup:
        url = f"/user_groups/{number.value}{path}"
        (await readonly_org["ann"].request(method, url, **given)).refused()


@pytest.mark.parametrize(
    ("method", "path", "given"),
    [
        *CALLS,
        ("GET", "/members", {}),
        ("GET", "/members/4", {}),
        ("GET", "/subgroups", {}),
    ],
)
async def test_an_unknown_group_is_refused(
    readonly_org: Organization, method: str, path: str, given: dict[str, Any]
) -> None:
    (await readonly_org["ann"].request(method, f"/user_groups/999999{path}", **given)).refused()


async def test_people_who_manage_a_group_change_it(org: Organization) -> None:
    """Those in its own permission and those who manage all groups; not guests, and not members as
    such."""
    group_id = await create(org, "ann", "cooks", members=people(org, "ben", "gus"))
    url = f"/user_groups/{group_id}"

    async def tried(who: str) -> list[int]:
        replies = [
            await org[who].patch(url, description=f"by {who}"),
            await org[who].post(f"{url}/deactivate"),
            await org[who].patch(url, deactivated=False),
        ]
        return [reply.status for reply in replies]

    assert await tried("ben") == [400, 400, 400]
    members = {"new": {"direct_members": people(org, "ben", "gus"), "direct_subgroups": []}}
    assert (await org["ann"].patch(url, can_manage_group=members)).ok
    assert await tried("ben") == [200, 200, 200]
    assert await tried("gus") == [400, 400, 400]
    assert await tried("cleo") == [400, 400, 400]
    await org.do(
        RealmChanged(values={"can_manage_all_groups": Members(tuple(people(org, "cleo")), ())})
    )
    assert await tried("cleo") == [200, 200, 200]
    assert await tried("ann") == [400, 400, 400]


async def test_a_bot_changes_a_group_that_it_manages(org: Organization) -> None:
    group_id = await create(org, "robo", "robots")
    assert (await org["robo"].patch(f"/user_groups/{group_id}", name="machines")).ok
    assert (await org["robo"].get("/user_groups")).ok


async def test_of_two_concurrent_changes_the_second_sees_the_first(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks")
    change = {"new": MEMBERS, "old": NOBODY}
    replies = await asyncio.gather(
        *(
            org["ben"].patch(f"/user_groups/{group_id}", can_join_group=change | {"new": new})
            for new in (MEMBERS, MODERATORS)
        )
    )
    assert sorted(reply.status for reply in replies) == [200, 400]
    names = await asyncio.gather(
        *(
            org["ben"].post("/user_groups/create", name="same", description="", members=[])
            for _ in range(2)
        )
    )
    assert sorted(reply.status for reply in names) == [200, 400]


async def test_groups_survive_a_restart(org: Organization, config: Config) -> None:
    inner = await create(org, "ben", "inner", members=people(org, "gus"))
    outer = await create(org, "ben", "outer", members=people(org, "cleo"), subgroups=[inner])
    assert (await org["ben"].patch(f"/user_groups/{inner}", can_join_group={"new": MEMBERS})).ok
    before = [await group(org, one) for one in (inner, outer)]
    async with open_organization(config) as later:
        assert [await group(later, one) for one in (inner, outer)] == before
        members = (await later["ben"].get(f"/user_groups/{outer}/members")).ok["members"]
        assert members == people(org, "cleo", "gus")


# Deactivating


async def test_deactivated_true_changes_nothing(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks")
    listener = await org["ben"].register()
    assert (await org["ben"].patch(f"/user_groups/{group_id}", deactivated=True)).ok
    assert await listener.events() == []
    assert (await org["ben"].patch(f"/user_groups/{group_id}", deactivated=True, name="bakers")).ok
    after = await group(org, group_id)
    assert (after["name"], after["deactivated"]) == ("bakers", False)


def shapes(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [(event["op"], event.get("group_id"), event.get("data")) for event in events]


async def test_a_deactivated_group_is_removed_for_clients_without_the_capability(
    org: Organization,
) -> None:
    group_id = await create(org, "ben", "cooks", members=people(org, "ben"))
    url = f"/user_groups/{group_id}"
    modern, legacy = await org["gus"].register(**MODERN), await org["gus"].register()
    assert (await org["ben"].post(f"{url}/deactivate")).ok
    assert shapes(await modern.events()) == [("update", group_id, {"deactivated": True})]
    assert shapes(await legacy.events()) == [("remove", group_id, None)]
    assert (await org["ben"].patch(url, name="bakers")).ok
    assert (await org["ben"].post(f"{url}/members", add=people(org, "cleo"))).ok
    assert (await org["ben"].post(f"{url}/subgroups", add=[MODERATORS])).ok
    assert shapes(await modern.events()) == [
        ("update", group_id, {"name": "bakers"}),
        ("add_members", group_id, None),
        ("add_subgroups", group_id, None),
    ]
    assert await legacy.events() == []
    assert (await org["ben"].patch(url, deactivated=False)).ok
    assert shapes(await modern.events()) == [("update", group_id, {"deactivated": False})]
    (event,) = await legacy.events()
    assert (event["op"], event["group"]) == ("add", await group(org, group_id))


async def test_a_deactivated_group_cannot_be_used(org: Organization) -> None:
    gone = await create(org, "ben", "gone")
    other = await create(org, "ben", "other")
    channel = await org.channel("lounge", "ben")
    assert (await org["ben"].post(f"/user_groups/{gone}/deactivate")).ok
    (await org["ben"].post(f"/user_groups/{other}/subgroups", add=[gone])).refused()
    for value in (gone, {"direct_members": [], "direct_subgroups": [gone]}):
        change = {"new": value}
        (await org["ben"].patch(f"/user_groups/{other}", can_join_group=change)).refused()
        (await org["ann"].patch(f"/streams/{channel}", can_send_message_group=change)).refused()


async def test_deactivating_twice_is_refused(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks")
    assert (await org["ben"].post(f"/user_groups/{group_id}/deactivate")).ok
    (await org["ben"].post(f"/user_groups/{group_id}/deactivate")).refused()


async def test_members_of_a_deactivated_group_keep_its_permissions(
    org: Organization,
) -> None:
    """Only archived channels can still use such a group, and they stay unchanged."""
    group_id = await create(org, "ben", "cooks", members=people(org, "cleo"))
    channel = await org.channel("den", "ann", is_private=True, can_subscribe_group=group_id)
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    assert (await org["ben"].post(f"/user_groups/{group_id}/deactivate")).ok
    assert (await org["cleo"].get(f"/streams/{channel}")).ok


async def objections(reply: Reply) -> Any:
    return reply.refused("CANNOT_DEACTIVATE_GROUP_IN_USE")["objections"]


async def test_a_group_in_use_cannot_be_deactivated(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks")
    url = f"/user_groups/{group_id}/deactivate"
    outer = await create(org, "ann", "outer", subgroups=[group_id])
    named = {"direct_members": people(org, "ben"), "direct_subgroups": [group_id]}
    asking = await create(org, "ann", "asking", can_join_group=group_id, can_manage_group=named)
    channel = await org.channel("lounge", "ben", can_send_message_group=group_id)
    hidden = await org.channel(
        "den", "ann", is_private=True, can_remove_subscribers_group=Members((4,), (group_id,))
    )
    await org.do(RealmChanged(values={"can_create_groups": Members((4,), (group_id,))}))
    found = await objections(await org["ben"].post(url))
    assert found == [
        {"type": "subgroup", "supergroup_ids": [outer]},
        {"type": "channel", "channel_id": channel, "settings": ["can_send_message_group"]},
        {"type": "channel", "settings": ["can_remove_subscribers_group"]},
        {
            "type": "user_group",
            "group_id": asking,
            "settings": ["can_join_group", "can_manage_group"],
        },
        {"type": "realm", "settings": ["can_create_groups"]},
    ]
    seen = await objections(await org["ann"].post(url))
    assert seen[2]["channel_id"] == hidden
    # Deactivated users of it don't prevent that.
    await org.do(RealmChanged(values={"can_create_groups": MEMBERS}))
    for other in (outer, asking):
        assert (await org["ann"].post(f"/user_groups/{other}/deactivate")).ok
    for one in (channel, hidden):
        assert (await org["ann"].delete(f"/streams/{one}")).ok
    assert (await org["ben"].post(url)).ok


async def test_a_group_that_only_refers_to_itself_can_be_deactivated(org: Organization) -> None:
    group_id = await create(org, "ben", "cooks", members=people(org, "ben"))
    url = f"/user_groups/{group_id}"
    assert (await org["ben"].patch(url, can_manage_group={"new": group_id})).ok
    assert (await org["ben"].post(f"{url}/deactivate")).ok
