"""Values of permission settings: a group ID, or an object of people and groups."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import pytest

from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS, GROUP_SETTINGS
from tertulia.model.changes import UserGroupCreated
from tertulia.model.groups import SystemGroup, UserGroup
from tests.support import Organization, Reply, row, rows

NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS, EVERYONE, INTERNET = (
    group.value for group in SystemGroup
)
COOKS, GONE = 100, 101
UNKNOWN = 999_999

# Everywhere a setting is used: creating a channel (in two ways) or a group, and changing them.
# Each sends the value as ann, and returns what is shown afterwards.
Place = Callable[[Organization, Any], Awaitable[tuple[Reply, Any]]]


async def shown_in_channel(org: Organization, name: str, setting: str) -> Any:
    listed = (await org["ann"].get("/streams", include_all=True)).ok["streams"]
    return next((one[setting] for one in listed if one["name"] == name), None)


async def shown_in_group(org: Organization, name: str, setting: str) -> Any:
    listed = (await org["ann"].get("/user_groups")).ok["user_groups"]
    return next((one[setting] for one in listed if one["name"] == name), None)


def new_name() -> str:
    """An unused name."""
    return f"new {next(_numbers)}"


_numbers = count()


async def subscribing(org: Organization, value: Any) -> tuple[Reply, Any]:
    name = new_name()
    reply = await org["ann"].post(
        "/users/me/subscriptions",
        subscriptions=[{"name": name}],
        can_remove_subscribers_group=value,
    )
    return reply, await shown_in_channel(org, name, "can_remove_subscribers_group")


async def creating_a_channel(org: Organization, value: Any) -> tuple[Reply, Any]:
    name = new_name()
    reply = await org["ann"].post(
        "/channels/create", name=name, subscribers=[], can_subscribe_group=value
    )
    return reply, await shown_in_channel(org, name, "can_subscribe_group")


async def changing_a_channel(org: Organization, value: Any) -> tuple[Reply, Any]:
    name = new_name()
    den = await org.channel(name, "ann")
    reply = await org["ann"].patch(f"/streams/{den}", can_add_subscribers_group={"new": value})
    return reply, await shown_in_channel(org, name, "can_add_subscribers_group")


async def creating_a_group(org: Organization, value: Any) -> tuple[Reply, Any]:
    name = new_name()
    reply = await org["ann"].post(
        "/user_groups/create", name=name, description="", members=[], can_join_group=value
    )
    return reply, await shown_in_group(org, name, "can_join_group")


async def changing_a_group(org: Organization, value: Any) -> tuple[Reply, Any]:
    name = new_name()
    made = await org["ann"].post("/user_groups/create", name=name, description="", members=[])
    reply = await org["ann"].patch(
        f"/user_groups/{made.ok['group_id']}", can_remove_members_group={"new": value}
    )
    return reply, await shown_in_group(org, name, "can_remove_members_group")


PLACES = [
    subscribing,
    creating_a_channel,
    changing_a_channel,
    creating_a_group,
    changing_a_group,
]


@pytest.fixture
async def grouped(org: Organization) -> Organization:
    """An organization with an active and a deactivated group. Cleo is deactivated."""
    await org.do(
        UserGroupCreated(group=UserGroup(id=COOKS, name="cooks")),
        UserGroupCreated(group=UserGroup(id=GONE, name="gone", deactivated=True)),
    )
    assert (await org["ann"].delete(f"/users/{org['cleo'].user_id}")).ok
    return org


def value_with(org: Organization, value: Any) -> Any:
    """The value, with people's IDs instead of their names."""
    if not isinstance(value, dict) or not isinstance(value.get("direct_members"), list):
        return value
    known = {name: person.user_id for name, person in org.people.items()}
    return {**value, "direct_members": [known.get(one, one) for one in value["direct_members"]]}


def held(*members: Any, by: tuple[int, ...] = ()) -> dict[str, Any]:
    """The object form."""
    return {"direct_members": list(members), "direct_subgroups": list(by)}


FORMS = [
    (MODERATORS, MODERATORS),
    (COOKS, COOKS),
    (NOBODY, NOBODY),
    (held(by=(COOKS,)), COOKS),
    (held(by=(COOKS, COOKS)), COOKS),
    (held("ann"), held("ann")),
    (held("ben", "ann", "ben"), held("ann", "ben")),
    (held("gus", by=(COOKS, MODERATORS, COOKS)), held("gus", by=(MODERATORS, COOKS))),
    (held(by=(COOKS, MODERATORS)), held(by=(MODERATORS, COOKS))),
    (held("robo"), held("robo")),
    (held(), held()),
]
"""A value and its normalized form."""


async def test_a_value_is_shown_in_its_normalized_form(grouped: Organization) -> None:
    for given, shown in FORMS:
        for place in PLACES:
            with row(given, place):
                reply, found = await place(grouped, value_with(grouped, given))
                assert reply.ok
                assert found == value_with(grouped, shown)


IMPOSSIBLE = [
    (UNKNOWN, "BAD_REQUEST"),
    (0, "BAD_REQUEST"),
    (-1, "BAD_REQUEST"),
    (GONE, "BAD_REQUEST"),
    (INTERNET, "BAD_REQUEST"),
    (held(by=(GONE,)), "BAD_REQUEST"),
    (held(by=(COOKS, UNKNOWN)), "BAD_REQUEST"),
    (held(by=(INTERNET,)), "BAD_REQUEST"),
    (held("ann", by=(INTERNET,)), "BAD_REQUEST"),
    (held(UNKNOWN), "BAD_REQUEST"),
    (held("cleo"), "BAD_REQUEST"),
    (held("ann", 1), "BAD_REQUEST"),
    (2**53 + 1, "REQUEST_VARIABLE_INVALID"),
    ("cooks", "REQUEST_VARIABLE_INVALID"),
    (True, "REQUEST_VARIABLE_INVALID"),
    (1.5, "REQUEST_VARIABLE_INVALID"),
    ([COOKS], "REQUEST_VARIABLE_INVALID"),
    ({}, "REQUEST_VARIABLE_INVALID"),
    ({"direct_members": []}, "REQUEST_VARIABLE_INVALID"),
    ({"direct_subgroups": [COOKS]}, "REQUEST_VARIABLE_INVALID"),
    ({"direct_members": 4, "direct_subgroups": []}, "REQUEST_VARIABLE_INVALID"),
    ({"direct_members": ["4"], "direct_subgroups": []}, "REQUEST_VARIABLE_INVALID"),
    ({"direct_members": None, "direct_subgroups": []}, "REQUEST_VARIABLE_INVALID"),
]
"""A value, and the error code for it."""


async def test_an_invalid_value_is_refused_everywhere_alike(grouped: Organization) -> None:
    for given, code in IMPOSSIBLE:
        for place in PLACES:
            with row(given, place):
                reply, shown = await place(grouped, value_with(grouped, given))
                reply.refused(code)
                # Nothing was created or changed.
                changes = place in {changing_a_channel, changing_a_group}
                assert shown == (NOBODY if changes else None)


@rows("setting", CHANNEL_SETTINGS)
async def test_each_channel_permission_accepts_what_the_table_says(
    grouped: Organization, setting: str
) -> None:
    """The table is `server_supported_permission_settings`."""
    org = grouped
    den = await org.channel(f"den {setting}", "ann")
    data = (await org["ann"].register(fetch_event_types=["realm"])).data
    rule = data["server_supported_permission_settings"]["stream"][setting]
    assert rule["require_system_group"] is False
    for number in SystemGroup:
        allowed = {
            EVERYONE: rule["allow_everyone_group"],
            NOBODY: rule["allow_nobody_group"],
            INTERNET: rule["allow_internet_group"],
        }.get(number, True)
        for value in (number.value, held("ann", by=(number.value,))):
            given = {setting: {"new": value_with(org, value)}}
            reply = await org["ann"].patch(f"/streams/{den}", **given)
            assert (reply.status == 200) is allowed, (number, reply.body)
    nobody = await org["ann"].patch(f"/streams/{den}", **{setting: {"new": held()}})
    assert (nobody.status == 200) is rule["allow_nobody_group"]


def test_the_table_says_the_same_about_groups() -> None:
    """(The tests of groups check which values each accepts.)"""
    assert GROUP_SETTINGS["can_manage_group"].allow_everyone_group is False
    assert GROUP_SETTINGS["can_mention_group"].allow_everyone_group is True
    assert not any(rule.allow_internet_group for rule in GROUP_SETTINGS.values())


@rows(
    ("old", "code"),
    [
        (COOKS, None),
        (held(by=(COOKS,)), None),
        (MODERATORS, "EXPECTATION_MISMATCH"),
        (held("ann"), "EXPECTATION_MISMATCH"),
        (UNKNOWN, "EXPECTATION_MISMATCH"),
        ("cooks", "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_a_change_that_expects_another_value_is_refused(
    grouped: Organization, old: Any, code: str | None
) -> None:
    name = f"den {old}"
    den = await grouped.channel(name, "ann", can_send_message_group=COOKS)
    change = {"new": MEMBERS, "old": value_with(grouped, old)}
    reply = await grouped["ann"].patch(f"/streams/{den}", can_send_message_group=change)
    assert reply.body.get("code") == code
    shown = await shown_in_channel(grouped, name, "can_send_message_group")
    assert shown == (COOKS if code else MEMBERS)


async def test_deactivated_people_are_neither_shown_nor_expected(org: Organization) -> None:
    """They hold the permission again after reactivation."""
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    den = await org.channel("den", "ann")
    both = held(ben, cleo)
    assert (await org["ann"].patch(f"/streams/{den}", can_send_message_group={"new": both})).ok
    assert (await org["ann"].delete(f"/users/{cleo}")).ok
    assert await shown_in_channel(org, "den", "can_send_message_group") == held(ben)
    change = {"new": held(ben, by=(MODERATORS,)), "old": held(ben)}
    assert (await org["ann"].post(f"/users/{cleo}/reactivate")).ok
    stale = await org["ann"].patch(f"/streams/{den}", can_send_message_group=change)
    stale.refused("EXPECTATION_MISMATCH")
    assert await shown_in_channel(org, "den", "can_send_message_group") == both
    assert (await org["ann"].delete(f"/users/{cleo}")).ok
    assert (await org["ann"].patch(f"/streams/{den}", can_send_message_group=change)).ok


async def test_members_of_nested_groups_hold_a_permission(org: Organization) -> None:
    """At any depth."""
    last = await org["ann"].post(
        "/user_groups/create", name="0", description="", members=[org["ben"].user_id]
    )
    group_id = last.ok["group_id"]
    for number in range(1, 30):
        made = await org["ann"].post(
            "/user_groups/create",
            name=str(number),
            description="",
            members=[],
            subgroups=[group_id],
        )
        group_id = made.ok["group_id"]
    await org.channel("den", "ann", "ben", "cleo", can_send_message_group=group_id)
    assert await org["ben"].send("den", "t", "hello")
    refused = await org["cleo"].post("/messages", type="channel", to="den", topic="t", content="x")
    refused.refused()
