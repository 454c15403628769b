"""What POST /register answers."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tertulia.model.changes import (
    RealmChanged,
    SubscriptionChanged,
    Unsubscribed,
    UserDeactivated,
    UserGroupCreated,
)
from tertulia.model.groups import SystemGroup, UserGroup
from tertulia.wire.snapshot.conversations import unread_messages
from tests.support import Listener, Organization
from tests.wire.client_types import MOBILE, MOBILE_REQUEST, TERMINAL, TERMINAL_REQUEST
from tests.wire.register_fields import ALWAYS, FIELDS, SETTINGS, TOGETHER

Data = dict[str, Any]


async def appear(org: Organization, *names: str) -> None:
    """They report that they are there."""
    for name in names:
        reply = await org[name].post("/users/me/presence", status="active")
        assert reply.ok


async def flag(org: Organization, who: str, op: str, name: str, *message_ids: int) -> None:
    """Somebody sets or clears a flag."""
    reply = await org[who].post("/messages/flags", messages=list(message_ids), op=op, flag=name)
    assert reply.ok


async def lived_in(org: Organization) -> None:
    """Something of every kind that there is, for ben to look at."""
    everybody = ("ann", "ben", "cleo", "gus")
    ids = {name: org[name].user_id for name in org.people}
    await org.channel("lounge", *everybody)
    await org.channel("attic", "ann", "ben", is_private=True)
    await org.channel("square", "ann", is_web_public=True)
    await org.channel("cellar", "ann", is_private=True)
    left = await org.channel("garden", "ann", "ben")
    await org.do(Unsubscribed(channel_id=left, user_ids=(ids["ben"],), until=0, name="garden"))
    await org["ann"].send("lounge", "greetings", f"hello @**Ben|{ids['ben']}**")
    await org["ann"].send("lounge", "", "without a topic")
    first = await org["ann"].write([ids["ben"]], "psst")
    await org["ann"].write([ids["ben"], ids["cleo"]], "we three")
    await org["ben"].write([ids["ben"]], "to myself")
    await flag(org, "ben", "add", "starred", first)
    await appear(org, *everybody)
    gone = UserGroup(id=100, name="gone", created_at=0, deactivated=True)
    await org.do(
        UserGroupCreated(group=UserGroup(id=99, name="cooks", created_at=0, members=(ids["ben"],))),
        UserGroupCreated(group=gone),
    )
    await org.add("dan")
    await org.do(UserDeactivated(user_id=org["dan"].user_id))


def fields(names: str) -> set[str]:
    return set(names.split())


# Which fields there are


async def test_each_fetch_type_gives_exactly_its_fields(org: Organization) -> None:
    for fetch, names in FIELDS.items():
        data = (await org["ben"].register(fetch_event_types=[fetch])).data
        assert set(data) == fields(ALWAYS) | fields(names), fetch


async def test_what_needs_several_fetch_types_comes_with_all_of_them(org: Organization) -> None:
    for types, names in TOGETHER.items():
        data = (await org["ben"].register(fetch_event_types=list(types))).data
        assert set(data) == fields(ALWAYS) | fields(names)


@pytest.mark.parametrize("who", ["ann", "ben", "gus", "robo"])
async def test_without_fetch_types_everybody_gets_every_field(org: Organization, who: str) -> None:
    every = {
        name for names in (ALWAYS, *FIELDS.values(), *TOGETHER.values()) for name in names.split()
    }
    assert set((await org[who].register()).data) == every


async def test_the_event_types_are_the_fetch_types_by_default(org: Organization) -> None:
    data = (await org["ben"].register(event_types=["message", "alert_words"])).data
    assert set(data) == fields(ALWAYS) | {"max_message_id", "alert_words"}
    none = (await org["ben"].register(event_types=[])).data
    assert set(none) == fields(ALWAYS)


@pytest.mark.parametrize(
    ("event_types", "given"),
    [(None, True), (["message"], True), (["user_topic"], False)],
)
async def test_muted_topics_are_for_clients_that_do_not_know_user_topics(
    org: Organization, event_types: list[str] | None, given: bool
) -> None:
    listener = await org["ben"].register(
        event_types=event_types, fetch_event_types=["muted_topics"]
    )
    assert ("muted_topics" in listener.data) is given


async def test_the_settings_are_all_there_by_their_wire_names(org: Organization) -> None:
    data = (await org["ben"].register()).data
    assert set(data["user_settings"]) == fields(SETTINGS) | {"timezone"}
    assert set(data["realm_user_settings_defaults"]) == fields(SETTINGS)


async def test_permission_settings_are_described_for_every_kind(org: Organization) -> None:
    described = (await org["ben"].register()).data["server_supported_permission_settings"]
    assert {kind: len(settings) for kind, settings in described.items()} == {
        "realm": 25,
        "stream": 11,
        "group": 6,
    }
    assert described["group"]["can_leave_group"] == {
        "require_system_group": False,
        "allow_internet_group": False,
        "allow_nobody_group": True,
        "allow_everyone_group": True,
        "default_group_name": "role:everyone",
        "default_for_system_groups": "role:nobody",
        "allowed_system_groups": [],
    }


# What real clients cannot do without


@pytest.mark.parametrize(
    ("request_", "types"),
    [(MOBILE_REQUEST, MOBILE), (TERMINAL_REQUEST, TERMINAL)],
    ids=["mobile", "terminal"],
)
@pytest.mark.parametrize("who", ["ann", "ben", "gus"])
async def test_a_client_finds_everything_of_the_type_that_it_needs(
    org: Organization, who: str, request_: Data, types: Data
) -> None:
    await lived_in(org)
    data = (await org[who].register(**request_)).data
    wrong = {name: reason for name, kind in types.items() if (reason := mistake(data, name, kind))}
    assert wrong == {}
    assert all(
        len(s["color"]) == 7 and s["color"] == s["color"].lower() for s in data["subscriptions"]
    )


def mistake(data: Data, name: str, kind: Any) -> str | None:
    """What is wrong with a field, for a client that takes it to be of that type."""
    if name not in data:
        return "missing"
    try:
        msgspec.convert(data[name], kind, str_keys=True)
    except msgspec.ValidationError as error:
        return str(error)
    return None


async def test_the_lists_of_the_client_tests_are_not_empty(org: Organization) -> None:
    await lived_in(org)
    data = (await org["ben"].register()).data
    for name in (
        *("subscriptions", "unsubscribed", "never_subscribed", "streams", "realm_user_groups"),
        *("realm_users", "realm_non_active_users", "cross_realm_bots", "presences"),
        *("recent_private_conversations", "starred_messages", "realm_bots"),
    ):
        assert data[name], name
    assert all(data["unread_msgs"][kind] for kind in ("pms", "streams", "huddles"))


# What is in them


async def test_channels_are_where_the_viewer_stands_to_them(org: Organization) -> None:
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
async def test_subscribers_are_listed_where_they_are_asked_for(
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


async def test_of_a_large_channel_a_part_is_bots_and_those_seen_of_late(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.wire.objects.channels.PARTIAL_FROM", 3)
    await org.channel("lounge", "ann", "ben", "cleo", "robo")
    await org.channel("attic", "ann", "ben")
    await appear(org, "cleo")
    data = (await org["ben"].register(include_subscribers="partial")).data
    large, small = data["subscriptions"]
    assert "subscribers" not in large
    assert large["partial_subscribers"] == [org["cleo"].user_id, org["robo"].user_id]
    assert small["subscribers"] == [org["ann"].user_id, org["ben"].user_id]


@pytest.mark.parametrize(("who", "shown"), [("ben", True), ("gus", False)])
async def test_default_channels_are_told_to_members(
    org: Organization, who: str, shown: bool
) -> None:
    lounge = await org.channel("lounge", "gus", is_default=True)
    await org.channel("ruin", is_default=True, is_archived=True)
    await org.channel("attic")
    told = (await org[who].register()).data["realm_default_streams"]
    assert told == ([lounge] if shown else [])


async def test_a_guest_is_not_told_who_is_in_channels_that_they_only_pass_by(
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


async def test_bots_are_shown_to_their_owner_and_to_administrators(org: Organization) -> None:
    shown = {
        who: [bot["user_id"] for bot in (await org[who].register()).data["realm_bots"]]
        for who in ("ann", "ben", "cleo", "gus")
    }
    robo = [org["robo"].user_id]
    assert shown == {"ann": robo, "ben": robo, "cleo": [], "gus": []}


@pytest.mark.parametrize(
    ("values", "name", "value"),
    [
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
    ],
)
async def test_settings_of_old_follow_from_those_of_now(
    org: Organization, values: Data, name: str, value: Any
) -> None:
    before = (await org["ben"].register()).data[name]
    await org.do(RealmChanged(values=values))
    after = (await org["ben"].register()).data[name]
    assert (after, after != before) == (value, True)


async def test_a_permission_of_people_is_told_without_those_who_are_gone(
    org: Organization,
) -> None:
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    holders = {"direct_members": [ben, cleo], "direct_subgroups": []}
    await org.do(RealmChanged(values={"can_create_groups": holders}), UserDeactivated(user_id=cleo))
    data = (await org["ben"].register()).data
    assert data["realm_can_create_groups"] == {"direct_members": [ben], "direct_subgroups": []}


# Client capabilities

LIMITED = RealmChanged(values={"can_access_all_users_group": SystemGroup.MEMBERS.value})


def _named(data: Data, key: str) -> list[Any]:
    return [one.get("name", one.get("full_name")) for one in data[key]]


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
            lambda data: _named(data, "realm_users"),
            ["Ann", "Unknown user", "Unknown user", "Gus", "Robo Bot"],
            ["Ann", "Gus", "Robo Bot"],
        ),
        (
            "user_list_incomplete",
            "gus",
            lambda data: _named(data, "realm_non_active_users"),
            ["Unknown user"],
            [],
        ),
        (
            "include_deactivated_groups",
            "ben",
            lambda data: [name for name in _named(data, "realm_user_groups") if ":" not in name],
            [],
            ["gone"],
        ),
        (
            "archived_channels",
            "ben",
            lambda data: [_named(data, "subscriptions"), _named(data, "streams")],
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
async def test_a_capability_changes_what_the_client_is_given(
    org: Organization,
    capability: str,
    who: str,
    seen: Callable[[Data], Any],
    without: Any,
    with_it: Any,
) -> None:
    await org.channel("lounge", "ann", "ben")
    await org.channel("ruin", "ben", is_archived=True)
    await org.do(UserGroupCreated(group=UserGroup(id=100, name="gone", deactivated=True)))
    await org["ann"].send("lounge", "", "without a topic")
    await appear(org, "ben")
    await org["gus"].write([org["ann"].user_id], "may I?")
    await org.add("dan")
    await org.do(UserDeactivated(user_id=org["dan"].user_id), LIMITED)
    for capable, expected in ((False, without), (True, with_it)):
        listener = await org[who].register(client_capabilities={capability: capable})
        assert seen(listener.data) == expected


async def test_a_limited_guest_learns_nothing_of_the_others(org: Organization) -> None:
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


# Messages


def unread(listener: Listener) -> Data:
    found: Data = listener.data["unread_msgs"]
    return found


async def test_unread_messages_are_by_conversation(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    ann, ben, cleo = [org[name].user_id for name in ("ann", "ben", "cleo")]
    first = await org["ann"].send("lounge", "Greetings", f"hello @**Ben|{ben}**")
    second = await org["cleo"].send("lounge", "greetings", "hello")
    direct = await org["ann"].write([ben], "psst")
    three = await org["ann"].write([ben, cleo], "we three")
    listener = await org["ben"].register()
    assert unread(listener) == {
        "count": 4,
        "pms": [{"other_user_id": ann, "sender_id": ann, "unread_message_ids": [direct]}],
        "streams": [
            {"stream_id": lounge, "topic": "greetings", "unread_message_ids": [first, second]}
        ],
        "huddles": [{"user_ids_string": f"{ann},{ben},{cleo}", "unread_message_ids": [three]}],
        "mentions": [first],
        "old_unreads_missing": False,
    }
    assert listener.data["max_message_id"] == three
    assert listener.data["recent_private_conversations"] == [
        {"max_message_id": three, "user_ids": [ann, cleo]},
        {"max_message_id": direct, "user_ids": [ann]},
    ]


async def test_unread_messages_follow_sends_and_reads_at_once(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")

    async def topics() -> list[list[int]]:
        found = unread(await org["ben"].register())
        return [topic["unread_message_ids"] for topic in found["streams"]]

    assert await topics() == []
    one = await org["ann"].send("lounge", "a", "1")
    two = await org["ann"].send("lounge", "a", "2")
    assert await topics() == [[one, two]]
    await flag(org, "ben", "add", "read", one)
    assert await topics() == [[two]]
    await flag(org, "ben", "remove", "read", one)
    await flag(org, "ben", "add", "read", two)
    assert await topics() == [[one]]


async def test_notes_to_oneself_are_a_conversation_with_oneself(org: Organization) -> None:
    ben = org["ben"].user_id
    note = await org["ben"].write([ben], "remember")
    await flag(org, "ben", "remove", "read", note)
    listener = await org["ben"].register()
    expected = {"other_user_id": ben, "sender_id": ben, "unread_message_ids": [note]}
    assert unread(listener)["pms"] == [expected]
    conversations = listener.data["recent_private_conversations"]
    assert conversations == [{"max_message_id": note, "user_ids": []}]


async def test_the_count_leaves_out_muted_channels(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    await org["ann"].send("lounge", "a", "hello")
    muted = SubscriptionChanged(
        channel_id=lounge, user_id=org["ben"].user_id, property="is_muted", value=True
    )
    assert unread(await org["ben"].register())["count"] == 1
    await org.do(muted)
    found = unread(await org["ben"].register())
    assert (found["count"], len(found["streams"])) == (0, 1)


async def test_of_too_many_unread_messages_the_newest_are_told(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ben = org["ben"].user_id
    await org["ann"].send("lounge", "old", "1")
    two = await org["ann"].send("lounge", "new", "2")
    three = await org["ann"].write([ben], "3")
    await org["ben"].register()
    state = org.node.state
    found = unread_messages(state, state.users[ben], limit=2, empty_topic_name=True)
    assert [topic.unread_message_ids for topic in found.streams] == [[two]]
    assert [direct.unread_message_ids for direct in found.pms] == [[three]]
    assert (found.count, found.old_unreads_missing) == (2, True)


async def test_starred_messages_are_the_viewers_own(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ids = [await org["ann"].send("lounge", "a", str(n)) for n in range(3)]
    await flag(org, "ben", "add", "starred", *ids[:2])
    await flag(org, "ben", "remove", "starred", ids[0])
    assert (await org["ben"].register()).data["starred_messages"] == [ids[1]]
    assert (await org["ann"].register()).data["starred_messages"] == []


async def test_where_nothing_was_written_the_newest_message_is_minus_one(
    org: Organization,
) -> None:
    assert (await org["ben"].register()).data["max_message_id"] == -1


# Presence


@pytest.mark.parametrize(
    ("parameters", "keys"),
    [
        ({}, ["ben@example.com"]),
        ({"slim_presence": True}, ["ID of ben"]),
        ({"presence_history_limit_days": 0}, []),
    ],
)
async def test_presence_comes_in_the_form_that_was_asked_for(
    org: Organization, parameters: Data, keys: list[str]
) -> None:
    await appear(org, "ben")
    data = (await org["ann"].register(fetch_event_types=["presence"], **parameters)).data
    ben = str(org["ben"].user_id)
    assert list(data["presences"]) == [key.replace("ID of ben", ben) for key in keys]
    assert data["presence_last_update_id"] > 0


async def test_where_presence_is_off_nobody_is_there(org: Organization) -> None:
    await appear(org, "ben")
    await org.do(RealmChanged(values={"presence_disabled": True}))
    data = (await org["ann"].register()).data
    assert (data["presences"], data["presence_last_update_id"]) == ({}, -1)


# Spectators


async def test_a_spectator_is_refused_where_the_organization_is_closed(org: Organization) -> None:
    (await org.nobody.post("/register")).refused("UNAUTHORIZED", 401)


@pytest.mark.parametrize("name", ["client_gravatar", "include_subscribers"])
async def test_a_spectator_cannot_ask_for_what_is_for_accounts(
    org: Organization, name: str
) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    (await org.nobody.post("/register", **{name: True})).refused()


async def test_a_spectator_gets_what_is_public_and_no_queue(org: Organization) -> None:
    await lived_in(org)
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    data = (await org.nobody.post("/register")).ok
    assert (data["queue_id"], data["last_event_id"]) == (None, -1)
    assert _named(data, "never_subscribed") == _named(data, "streams") == ["square"]
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


async def test_the_snapshot_ends_where_the_queue_begins(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    before = await org["ann"].send("lounge", "a", "before")
    listener = await org["ben"].register()
    after = await org["ann"].send("lounge", "a", "after")
    assert unread(listener)["streams"][0]["unread_message_ids"] == [before]
    assert [event["message"]["id"] for event in await listener.events()] == [after]
