"""Channels, accounts, settings, and presence in POST /register."""

from typing import Any

import pytest

from tertulia.model.changes import (
    RealmChanged,
    UserDeactivated,
)
from tertulia.model.groups import SystemGroup
from tests.support import Organization, row
from tests.wire.sample_organization import Data, appear, lived_in


async def test_channels_are_listed_by_the_viewer_s_subscription(org: Organization) -> None:
    await lived_in(org)
    assert await shown_channels(org, "ben") == {
        "subscriptions": ["lounge", "attic"],
        "unsubscribed": ["garden"],
        "never_subscribed": ["square"],
        "streams": ["lounge", "attic", "square", "garden"],
    }
    assert await shown_channels(org, "gus") == {
        "subscriptions": ["lounge"],
        "unsubscribed": [],
        "never_subscribed": ["square"],
        "streams": ["lounge", "square"],
    }


async def shown_channels(org: Organization, who: str) -> dict[str, list[str]]:
    data = (await org[who].register()).data
    kinds = ("subscriptions", "unsubscribed", "never_subscribed", "streams")
    return {kind: [channel["name"] for channel in data[kind]] for kind in kinds}


@pytest.mark.parametrize(
    ("asked", "key"), [(False, None), (True, "subscribers"), ("partial", "subscribers")]
)
async def test_subscribers_are_listed_on_request(
    org: Organization, asked: bool | str, key: str | None
) -> None:
    await org.channel("lounge", "ann", "ben")
    await org.channel("square", "ann", is_web_public=True)
    data = (await org["ben"].register(include_subscribers=asked)).data
    (lounge,), (square,) = data["subscriptions"], data["never_subscribed"]
    expected = None if key is None else [org["ann"].user_id, org["ben"].user_id]
    assert lounge.get("subscribers") == expected
    assert square.get("subscribers") == (None if key is None else [org["ann"].user_id])
    assert lounge["subscriber_count"] == 2
    assert all("subscribers" not in channel for channel in data["streams"])


async def test_a_partial_list_of_subscribers_has_bots_and_recently_active_people(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.wire.api.channels.objects.PARTIAL_FROM", 3)
    await org.channel("lounge", "ann", "ben", "cleo", "robo")
    await org.channel("attic", "ann", "ben")
    await appear(org, "cleo")
    data = (await org["ben"].register(include_subscribers="partial")).data
    large, small = data["subscriptions"]
    assert "subscribers" not in large
    assert large["partial_subscribers"] == [org["cleo"].user_id, org["robo"].user_id]
    assert small["subscribers"] == [org["ann"].user_id, org["ben"].user_id]


@pytest.mark.parametrize(("who", "shown"), [("ben", True), ("gus", False)])
async def test_default_channels_are_returned_to_members(
    org: Organization, who: str, shown: bool
) -> None:
    lounge = await org.channel("lounge", "gus", is_default=True)
    await org.channel("ruin", is_default=True, is_archived=True)
    await org.channel("attic")
    told = (await org[who].register()).data["realm_default_streams"]
    assert told == ([lounge] if shown else [])


async def test_guests_do_not_see_subscribers_of_channels_they_are_not_in(
    org: Organization,
) -> None:
    await org.channel("square", "ann", is_web_public=True)
    data = (await org["gus"].register(include_subscribers=True)).data
    assert data["never_subscribed"][0]["subscribers"] == []


async def test_accounts_are_in_the_list_of_their_kind(org: Organization) -> None:
    await lived_in(org)
    data = (await org["ben"].register()).data
    people = [org[name].user_id for name in ("ann", "ben", "cleo", "gus", "robo")]
    assert [user["user_id"] for user in data["realm_users"]] == people
    assert [user["full_name"] for user in data["realm_non_active_users"]] == ["Dan"]
    assert all(user["is_system_bot"] for user in data["cross_realm_bots"])
    assert all("is_active" not in user for user in data["realm_users"])
    own = {name: data[name] for name in ("user_id", "email", "full_name", "is_admin", "is_guest")}
    assert own == {
        "user_id": org["ben"].user_id,
        "email": "ben@example.com",
        "full_name": "Ben",
        "is_admin": False,
        "is_guest": False,
    }


async def test_bots_are_shown_to_their_owner_and_administrators(org: Organization) -> None:
    shown = {
        who: [bot["user_id"] for bot in (await org[who].register()).data["realm_bots"]]
        for who in ("ann", "ben", "cleo", "gus")
    }
    robo = [org["robo"].user_id]
    assert shown == {"ann": robo, "ben": robo, "cleo": [], "gus": []}


OF_OLD: list[tuple[Data, str, Any]] = [
    ({"message_edit_history_visibility_policy": "moves"}, "realm_allow_edit_history", False),
    ({"topics_policy": "disable_empty_topic"}, "realm_mandatory_topics", True),
    ({"password_sign_in": False}, "realm_password_auth_enabled", False),
    ({"password_sign_in": False}, "realm_email_auth_enabled", False),
    ({"can_create_public_channel_group": 3}, "realm_create_public_stream_policy", 2),
    ({"can_create_private_channel_group": 5}, "realm_create_private_stream_policy", 3),
    ({"can_create_web_public_channel_group": 1}, "realm_create_web_public_stream_policy", 6),
    ({"can_mention_many_users_group": 7}, "realm_wildcard_mention_policy", 1),
    ({"can_mention_many_users_group": 4}, "realm_wildcard_mention_policy", 7),
    ({"jitsi_server_url": "https://meet.example"}, "jitsi_server_url", "https://meet.example"),
    ({"updates_announcements_channel_id": 3}, "realm_zulip_update_announcements_stream_id", 3),
    ({"can_create_public_channel_group": 1}, "can_create_public_streams", False),
    ({"can_invite_users_group": 3}, "can_invite_others_to_realm", False),
    ({"can_add_subscribers_group": 3}, "can_subscribe_other_users", False),
]
"""A change, and an obsolete setting with its resulting value."""


async def test_obsolete_settings_follow_from_current_ones(org: Organization) -> None:
    for values, name, value in OF_OLD:
        with row(values, name):
            was = {one: getattr(org.node.state.realm, one) for one in values}
            before = (await org["ben"].register()).data[name]
            await org.do(RealmChanged(values=values))
            after = (await org["ben"].register()).data[name]
            assert (after, after != before) == (value, True)
            await org.do(RealmChanged(values=was))


async def test_a_group_without_a_policy_has_the_most_permissive(org: Organization) -> None:
    for kind in ("public", "private"):
        for group in (SystemGroup.NOBODY, SystemGroup.OWNERS):
            await org.do(RealmChanged(values={f"can_create_{kind}_channel_group": group.value}))
            data = (await org["ben"].register()).data
            assert data[f"realm_create_{kind}_stream_policy"] == 1


async def test_a_permission_is_shown_without_deactivated_people(
    org: Organization,
) -> None:
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    holders = {"direct_members": [ben, cleo], "direct_subgroups": []}
    await org.do(RealmChanged(values={"can_create_groups": holders}), UserDeactivated(user_id=cleo))
    data = (await org["ben"].register()).data
    assert data["realm_can_create_groups"] == {"direct_members": [ben], "direct_subgroups": []}


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ({}, ["ben@example.com"]),
        ({"slim_presence": True}, ["ID of ben"]),
        ({"presence_history_limit_days": 0}, []),
    ],
)
async def test_presence_has_the_requested_form(
    org: Organization, parameters: Data, keys: list[str]
) -> None:
    await appear(org, "ben")
    data = (await org["ann"].register(fetch_event_types=["presence"], **parameters)).data
    ben = str(org["ben"].user_id)
    assert list(data["presences"]) == [key.replace("ID of ben", ben) for key in keys]
    assert data["presence_last_update_id"] > 0


async def test_with_presence_disabled_nobody_is_online(org: Organization) -> None:
    await appear(org, "ben")
    await org.do(RealmChanged(values={"presence_disabled": True}))
    data = (await org["ann"].register()).data
    assert (data["presences"], data["presence_last_update_id"]) == ({}, -1)
