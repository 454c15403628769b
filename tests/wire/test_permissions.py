"""Every permission setting controls its action: for each role, and for people and groups."""

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from tertulia.domain import permissions
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS, GROUP_SETTINGS, REALM_SETTINGS
from tertulia.model.changes import (
    ChannelChanged,
    RealmChanged,
    UserChanged,
    UserGroupChanged,
    UserGroupCreated,
)
from tertulia.model.groups import GroupSetting, Members, SystemGroup, UserGroup
from tertulia.model.users import Role
from tests.support import Organization, Reply, row

NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL_MEMBERS, MEMBERS, EVERYONE, INTERNET = (
    group.value for group in SystemGroup
)
PEOPLE = ("ann", "ada", "mo", "ben", "neo", "nia", "nest", "gus")
"""An owner, an administrator, a moderator, a full member; new members: one without permissions, one
who is named, one in a nested group; and a guest, who is named and in that group, too."""
ADMINS = frozenset({"ann", "ada"})
OUTER, INNER, OWN = 100, 101, 102
"""A group that contains the inner one; and the group whose permissions are tested."""

HOLDERS: dict[str, frozenset[str]] = {
    "owners": frozenset({"ann"}),
    "administrators": ADMINS,
    "moderators": ADMINS | {"mo"},
    "full members": ADMINS | {"mo", "ben"},
    "members": frozenset(PEOPLE) - {"gus"},
    "everyone": frozenset(PEOPLE),
    "nobody": frozenset(),
    "named": frozenset({"nia", "gus"}),
    "group": frozenset({"nest", "gus"}),
    "named and group": frozenset({"nia", "nest", "gus"}),
}
"""Holders of a permission, and who is included."""


@pytest.fixture
async def staffed(org: Organization) -> Organization:
    """An organization with these people, where new members wait. Permissions that could substitute
    for others are granted to nobody."""
    for name, role in (
        ("ada", Role.ADMINISTRATOR),
        ("mo", Role.MODERATOR),
        ("neo", Role.MEMBER),
        ("nia", Role.MEMBER),
        ("nest", Role.MEMBER),
        ("dan", Role.MEMBER),
    ):
        await org.add(name, role)
    inner = tuple(sorted(org[name].user_id for name in ("nest", "gus")))
    shut = dict.fromkeys(GROUP_SETTINGS, NOBODY)
    await org.do(
        UserGroupCreated(group=UserGroup(id=INNER, name="inner", members=inner)),
        UserGroupCreated(group=UserGroup(id=OUTER, name="outer", subgroups=(INNER,))),
        UserGroupCreated(group=replace(UserGroup(id=OWN, name="own"), **shut)),
        RealmChanged(
            values={
                "can_add_subscribers_group": NOBODY,
                "can_create_bots_group": NOBODY,
                "can_manage_all_groups": NOBODY,
                "enable_spectator_access": True,
            }
        ),
    )
    await settle(org)
    return org


async def settle(org: Organization) -> None:
    """Among the members, only ben has waited long enough."""
    joined = int(org.node.clock()) - 5 * 86400
    ben = org.node.state.users[org["ben"].user_id]
    await org.do(
        UserChanged(user_id=ben.id, values={"joined_at": joined}, was={"joined_at": 0}),
        RealmChanged(values={"waiting_period_threshold": 2}),
    )
    await org.tick()


def value_of(org: Organization, holder: str) -> GroupSetting:
    """The setting's value."""
    named = tuple(sorted(org[name].user_id for name in ("nia", "gus")))
    match holder:
        case "named":
            return Members(named, ())
        case "group":
            return OUTER
        case "named and group":
            return Members(named, (OUTER,))
        case "full members":
            return FULL_MEMBERS
        case _:
            return SystemGroup[holder.upper()].value


Deed = Callable[[Organization, str, int], Awaitable[Reply | bool]]
_numbers = count()


class Case(NamedTuple):
    """An action in or about the channel `den`, with the people who can always do it, and those who
    never can."""

    deed: Deed
    always: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()


async def subscribe_another(org: Organization, who: str, channel: int) -> Reply:
    reply = await org[who].post(
        "/users/me/subscriptions",
        subscriptions=[{"name": "den"}],
        principals=[org["cleo"].user_id],
    )
    if reply.status == 200:
        assert (await org["cleo"].delete("/users/me/subscriptions", subscriptions=["den"])).ok
    return reply


async def unsubscribe_another(org: Organization, who: str, channel: int) -> Reply:
    assert (await org["dan"].post("/users/me/subscriptions", subscriptions=[{"name": "den"}])).ok
    return await org[who].delete(
        "/users/me/subscriptions", subscriptions=["den"], principals=[org["dan"].user_id]
    )


async def subscribe_oneself(org: Organization, who: str, channel: int) -> Reply:
    """Subscribe to a private channel."""
    reply = await org[who].post("/users/me/subscriptions", subscriptions=[{"name": "vault"}])
    if reply.body.get("subscribed"):
        left = await org[who].delete("/users/me/subscriptions", subscriptions=["vault"])
        assert left.ok
    return reply


def creates_channel(**kind: Any) -> Deed:
    async def deed(org: Organization, who: str, channel: int) -> Reply:
        return await org[who].post(
            "/channels/create", name=f"new {next(_numbers)}", subscribers=[], **kind
        )

    return deed


def creates_bot(kind: int) -> Deed:
    async def deed(org: Organization, who: str, channel: int) -> Reply:
        name = f"bot{next(_numbers)}"
        return await org[who].post("/bots", full_name=name, short_name=name, bot_type=kind)

    return deed


def changes_channel(**values: Any) -> Deed:
    async def deed(org: Organization, who: str, channel: int) -> Reply:
        return await org[who].patch(f"/streams/{channel}", **values)

    return deed


async def describe_channel(org: Organization, who: str, channel: int) -> Reply:
    return await org[who].patch(f"/streams/{channel}", description=f"by {next(_numbers)}")


async def create_group(org: Organization, who: str, channel: int) -> Reply:
    name = f"group {next(_numbers)}"
    return await org[who].post("/user_groups/create", name=name, description="", members=[])


async def describe_group(org: Organization, who: str, channel: int) -> Reply:
    return await org[who].patch(f"/user_groups/{OWN}", description=f"by {next(_numbers)}")


def changes_members(op: str, whom: str | None = None) -> Deed:
    async def deed(org: Organization, who: str, channel: int) -> Reply:
        user_id = org[whom or who].user_id
        members = (user_id,) if op == "delete" else ()
        await org.do(UserGroupChanged(group_id=OWN, values={"members": members}))
        return await org[who].post(f"/user_groups/{OWN}/members", **{op: [user_id]})

    return deed


async def mention_group(org: Organization, who: str, channel: int) -> bool:
    state = org.node.state
    user, group = state.users[org[who].user_id], state.groups[OWN]
    return permissions.may_mention_group(state, user, group)


async def mention_everybody(org: Organization, who: str, channel: int) -> Reply:
    return await org[who].post(
        "/messages", type="channel", to="den", topic="known", content="@**all** hello"
    )


async def send(org: Organization, who: str, channel: int) -> Reply:
    return await org[who].post(
        "/messages", type="channel", to="den", topic="known", content="hello"
    )


async def begin_topic(org: Organization, who: str, channel: int) -> Reply:
    return await org[who].post(
        "/messages", type="channel", to="den", topic=f"new {next(_numbers)}", content="hello"
    )


REALM_CASES: dict[str, Case] = {
    "can_add_subscribers_group": Case(subscribe_another, always=ADMINS),
    "can_create_bots_group": Case(creates_bot(1)),
    "can_create_write_only_bots_group": Case(creates_bot(2)),
    "can_create_groups": Case(create_group),
    "can_create_private_channel_group": Case(creates_channel(invite_only=True)),
    "can_create_public_channel_group": Case(creates_channel()),
    "can_create_web_public_channel_group": Case(creates_channel(is_web_public=True)),
    "can_manage_all_groups": Case(describe_group),
    "can_mention_many_users_group": Case(mention_everybody),
    "can_set_delete_message_policy_group": Case(
        changes_channel(can_delete_own_message_group={"new": MEMBERS})
    ),
    "can_set_topics_policy_group": Case(
        changes_channel(topics_policy="allow_empty_topic"), never=frozenset({"gus"})
    ),
}
CHANNEL_CASES: dict[str, Case] = {
    "can_add_subscribers_group": Case(subscribe_another, always=ADMINS),
    "can_administer_channel_group": Case(describe_channel, always=ADMINS),
    "can_create_topic_group": Case(begin_topic),
    "can_remove_subscribers_group": Case(unsubscribe_another, always=ADMINS),
    "can_send_message_group": Case(send),
    "can_subscribe_group": Case(subscribe_oneself),
}
GROUP_CASES: dict[str, Case] = {
    "can_add_members_group": Case(changes_members("add", "cleo")),
    "can_join_group": Case(changes_members("add")),
    "can_leave_group": Case(changes_members("delete")),
    "can_manage_group": Case(describe_group),
    "can_mention_group": Case(mention_group),
    "can_remove_members_group": Case(changes_members("delete", "cleo")),
}


async def make_way(org: Organization, *channels: int) -> None:
    """For others with the same names."""
    for channel in channels:
        name = {"name": f"old {channel}"}
        await org.do(ChannelChanged(channel_id=channel, values=name, was={}))


async def tried(org: Organization, case: Case, channel: int) -> set[str]:
    """The people whose action succeeded."""
    found = set()
    for who in PEOPLE:
        outcome = await case.deed(org, who, channel)
        if outcome is True or (isinstance(outcome, Reply) and outcome.status == 200):
            found.add(who)
        elif isinstance(outcome, Reply):
            assert outcome.body["code"] != "REQUEST_VARIABLE_INVALID", outcome.body
    return found


def takes(rule: Any, holder: str) -> bool:
    """Whether the setting accepts this value."""
    if holder == "everyone":
        return bool(rule.allow_everyone_group)
    if holder == "nobody":
        return bool(rule.allow_nobody_group)
    if rule.require_system_group:
        return f"role:{holder.replace(' ', '')}" in rule.allowed_system_groups
    return True


def expected(case: Case, rule: Any, holder: str) -> set[str]:
    allowed = HOLDERS[holder] | case.always
    if not rule.allow_everyone_group:
        allowed -= {"gus"}
    return set(allowed - case.never)


async def test_holders_of_an_organization_permission_can_act(
    staffed: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.domain.messages.sending.WILDCARD_FREE", 2)
    for setting in REALM_CASES:
        with row(setting):
            case, rule = REALM_CASES[setting], REALM_SETTINGS[setting]
            den = await staffed.channel("den", *PEOPLE, can_administer_channel_group=MEMBERS)
            if setting == "can_add_subscribers_group":
                change = {"can_administer_channel_group": NOBODY}
                await staffed.do(ChannelChanged(channel_id=den, values=change, was={}))
            before = getattr(staffed.node.state.realm, setting)
            for holder in HOLDERS:
                if takes(rule, holder):
                    await staffed.do(RealmChanged(values={setting: value_of(staffed, holder)}))
                    assert await tried(staffed, case, den) == expected(case, rule, holder), holder
            await staffed.do(RealmChanged(values={setting: before}))
            await make_way(staffed, den)


async def test_holders_of_a_channel_permission_can_act(staffed: Organization) -> None:
    for setting in CHANNEL_CASES:
        with row(setting):
            case, rule = CHANNEL_CASES[setting], CHANNEL_SETTINGS[setting]
            den = await staffed.channel("den", *PEOPLE)
            vault = await staffed.channel("vault", is_private=True)
            assert await staffed["ann"].send("den", "known", "hello")
            for holder in HOLDERS:
                if takes(rule, holder):
                    values = {setting: value_of(staffed, holder)}
                    for channel in (den, vault):
                        await staffed.do(ChannelChanged(channel_id=channel, values=values, was={}))
                    assert await tried(staffed, case, den) == expected(case, rule, holder), holder
            await make_way(staffed, den, vault)


async def test_holders_of_a_group_permission_can_act(staffed: Organization) -> None:
    for setting in GROUP_SETTINGS:
        with row(setting):
            case, rule = GROUP_CASES[setting], GROUP_SETTINGS[setting]
            for holder in HOLDERS:
                if takes(rule, holder):
                    values = {setting: value_of(staffed, holder)}
                    await staffed.do(UserGroupChanged(group_id=OWN, values=values))
                    assert await tried(staffed, case, 0) == expected(case, rule, holder), holder
            await staffed.do(
                UserGroupChanged(group_id=OWN, values={setting: NOBODY, "members": ()})
            )


async def test_direct_messages_are_started_by_permitted_people(staffed: Organization) -> None:
    for number, holder in enumerate(HOLDERS):
        with row(holder):
            somebody = await staffed.add(f"somebody{number}")
            sent = {"type": "direct", "to": [somebody.user_id], "content": "x"}
            value = value_of(staffed, holder)
            await staffed.do(RealmChanged(values={"direct_message_initiator_group": value}))
            begun = {
                who
                for who in PEOPLE
                if (await staffed[who].post("/messages", **sent)).status == 200
            }
            assert begun == HOLDERS[holder]


async def test_direct_messages_need_a_permitted_participant(
    staffed: Organization,
) -> None:
    """Everyone writes to dan, a new member without special permissions."""
    sent = {"type": "direct", "to": [staffed["dan"].user_id], "content": "x"}
    for holder in HOLDERS:
        value = value_of(staffed, holder)
        await staffed.do(RealmChanged(values={"direct_message_permission_group": value}))
        written = {
            who for who in PEOPLE if (await staffed[who].post("/messages", **sent)).status == 200
        }
        to_all = holder in {"members", "everyone"}
        assert written == (set(PEOPLE) if to_all else HOLDERS[holder]), holder


async def test_a_deactivated_account_s_permissions_return_with_it(
    staffed: Organization,
) -> None:
    nia = staffed["nia"].user_id
    await staffed.do(RealmChanged(values={"can_create_groups": Members((nia,), ())}))
    assert (await create_group(staffed, "nia", 0)).ok
    assert (await staffed["ann"].delete(f"/users/{nia}")).ok
    assert (await create_group(staffed, "nia", 0)).status == 401
    assert (await staffed["ann"].post(f"/users/{nia}/reactivate")).ok
    staffed.person_of("nia", staffed.node.state.users[nia])
    assert (await create_group(staffed, "nia", 0)).ok
