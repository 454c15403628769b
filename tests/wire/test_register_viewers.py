"""What different viewers get from POST /register."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tertulia.model.changes import (
    RealmChanged,
    UserDeactivated,
    UserGroupCreated,
)
from tertulia.model.groups import UserGroup
from tertulia.wire.api.users import sections as people
from tests.support import Organization
from tests.wire.sample_organization import LIMITED, Data, appear, lived_in, named


@pytest.fixture(scope="module")
async def viewed(shared_org: Organization) -> Organization:
    """Data that only some clients get."""
    await shared_org.channel("lounge", "ann", "ben")
    await shared_org.channel("ruin", "ben", is_archived=True)
    await shared_org.do(UserGroupCreated(group=UserGroup(id=100, name="gone", deactivated=True)))
    await shared_org["ann"].send("lounge", "", "without a topic")
    await appear(shared_org, "ben")
    await shared_org["gus"].write([shared_org["ann"].user_id], "may I?")
    await shared_org.add("dan")
    await shared_org.do(UserDeactivated(user_id=shared_org["dan"].user_id), LIMITED)
    return shared_org


@pytest.mark.parametrize(
    ("capability", "who", "seen", "without", "with_it"),
    [
        (
            "notification_settings_null",
            "ben",
            lambda data: data["subscriptions"][0]["push_notifications"],
            False,
            None,
        ),
        (
            "user_list_incomplete",
            "gus",
            # The last has been deactivated, which isn't told.
            lambda data: [named(data, "realm_users"), named(data, "realm_non_active_users")],
            [["Ann", "Unknown user", "Unknown user", "Gus", "Robo Bot", "Unknown user"], []],
            [["Ann", "Gus", "Robo Bot"], []],
        ),
        (
            "include_deactivated_groups",
            "ben",
            lambda data: [name for name in named(data, "realm_user_groups") if ":" not in name],
            [],
            ["gone"],
        ),
        (
            "archived_channels",
            "ben",
            lambda data: [named(data, "subscriptions"), named(data, "streams")],
            [["lounge"], ["lounge"]],
            [["lounge", "ruin"], ["lounge", "ruin"]],
        ),
        (
            "empty_topic_name",
            "ben",
            lambda data: data["unread_msgs"]["streams"][0]["topic"],
            "general chat",
            "",
        ),
        (
            "simplified_presence_events",
            "ben",
            lambda data: sorted(next(iter(data["presences"].values()))),
            ["aggregated", "website"],
            ["active_timestamp", "idle_timestamp"],
        ),
    ],
)
async def test_a_capability_changes_the_response(
    viewed: Organization,
    capability: str,
    who: str,
    seen: Callable[[Data], Any],
    without: Any,
    with_it: Any,
) -> None:
    for capable, expected in ((False, without), (True, with_it)):
        listener = await viewed[who].register(client_capabilities={capability: capable})
        assert seen(listener.data) == expected


async def test_a_limited_guest_learns_nothing_about_others(org: Organization) -> None:
    await org.channel("lounge", "ann", "gus")
    await org.channel("attic", "ben", "cleo")
    await org["ben"].write([org["cleo"].user_id], "between us")
    await appear(org, "ben")
    await org.do(LIMITED)
    listener = await org["gus"].register(include_subscribers=True, slim_presence=True)
    told = json.dumps(listener.data)
    for secret in ("ben@", "Ben", "cleo@", "Cleo", "attic"):
        assert secret not in told.replace("Robo Bot", "").replace("robo-bot@example.com", "")
    assert str(org["ben"].user_id) not in listener.data["presences"]


async def test_a_spectator_is_refused_by_a_closed_organization(org: Organization) -> None:
    (await org.nobody.post("/register")).refused("UNAUTHORIZED", 401)


@pytest.mark.parametrize("name", ["client_gravatar", "include_subscribers"])
async def test_a_spectator_cannot_request_account_data(org: Organization, name: str) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    (await org.nobody.post("/register", **{name: True})).refused()


async def test_a_spectator_gets_public_data_and_no_queue(org: Organization) -> None:
    await lived_in(org)
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    data = (await org.nobody.post("/register")).ok
    assert (data["queue_id"], data["last_event_id"]) == (None, -1)
    assert named(data, "never_subscribed") == named(data, "streams") == ["square"]
    for name in (
        *("subscriptions", "unsubscribed", "starred_messages", "recent_private_conversations"),
        *("presences", "realm_bots", "alert_words", "drafts", "user_topics", "muted_users"),
    ):
        assert not data[name], name
    assert data["unread_msgs"]["count"] == 0
    assert (data["is_guest"], data["user_id"]) == (True, 0)
    defaults = data["realm_user_settings_defaults"]
    assert data["user_settings"] == {**defaults, "timezone": ""}
    for user in data["realm_users"]:
        assert user["is_bot"] or user["delivery_email"] is None
        assert user["is_bot"] or user["email"] == f"user{user['user_id']}@chat.test"
        assert len(user["date_joined"]) == len("2026-01-01")
        assert "profile_data" not in user


async def test_of_many_accounts_those_needed_first_are_returned(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await lived_in(org)
    many = len(org.node.state.users)

    async def told(who: str, most: int) -> Data:
        return (await org[who].register(most_users=most)).data

    every = await told("ben", many)
    assert "realm_users_incomplete" not in every
    assert every["realm_users"] == (await org["ben"].register()).data["realm_users"]
    few = await told("ben", many - 1)
    assert few["realm_users_incomplete"] is True
    assert named(few, "realm_users") == ["Ann", "Ben", "Cleo"]
    assert named(few, "realm_non_active_users") == []
    assert all(one in every["realm_users"] for one in few["realm_users"])
    assert few["cross_realm_bots"] == every["cross_realm_bots"]
    assert named(await told("gus", 0), "realm_users") == ["Gus"]
    members = {group["id"]: group["members"] for group in every["realm_user_groups"]}
    for group in (await told("ben", 0))["realm_user_groups"]:
        assert group["members"] == []
    assert {group["id"]: group["members"] for group in few["realm_user_groups"]} == members
    ben = org["ben"].user_id
    assert few["realm_user_groups_own"] == [one for one in members if ben in members[one]]
    assert "realm_user_groups_own" not in every
    (await org["ben"].post("/register", most_users=-1)).refused("REQUEST_VARIABLE_INVALID")
    # Very many participants of direct conversations aren't all returned, either.
    ida, joe = await org.add("ida"), await org.add("joe")
    await org["ben"].write([ida.user_id, joe.user_id], "hello all")
    monkeypatch.setattr(people, "MAX_PARTICIPANTS", 4)
    assert named(await told("ben", 0), "realm_users") == ["Ben", "Ida", "Joe"]
