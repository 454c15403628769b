"""Every option of a new channel, and every permission around subscriptions."""

from typing import Any

import msgspec
import pytest

from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS
from tertulia.model.changes import RealmChanged, UserDeactivated
from tertulia.model.groups import Members, SystemGroup
from tertulia.model.users import Role
from tertulia.service.config import Config
from tests.support import Organization, new_organization, row, rows

SUBSCRIPTIONS = "/users/me/subscriptions"
NOBODY, OWNERS, ADMINISTRATORS, MODERATORS, FULL, MEMBERS, EVERYONE = range(1, 8)


async def make(org: Organization, who: str, way: str, name: str = "den", **options: Any) -> Any:
    """Create a channel with one of the two endpoints for that."""
    if way == "create":
        own = [org[who].user_id]
        return await org[who].post("/channels/create", name=name, subscribers=own, **options)
    return await org[who].post(SUBSCRIPTIONS, subscriptions=[{"name": name}], **options)


async def channel_json(org: Organization, name: str = "den") -> dict[str, Any]:
    """The channel as the owner sees it."""
    reply = await org["ann"].get("/streams", include_default=True, include_all=True)
    channel: dict[str, Any]
    (channel,) = [one for one in reply.ok["streams"] if one["name"] == name]
    return channel


def new_name(org: Organization) -> str:
    """A name that no channel in the shared organization has."""
    return f"channel {org.node.state.channels.next_id()}"


WAYS = ("subscribe", "create")


@pytest.mark.parametrize("way", WAYS)
async def test_a_new_channel_has_these_defaults(org: Organization, way: str) -> None:
    assert (await make(org, "ben", way)).ok
    channel = await channel_json(org)
    ben = org["ben"].user_id
    assert channel["date_created"] == pytest.approx(org.node.clock(), abs=600)
    expected = {
        "name": "den",
        "description": "",
        "rendered_description": "",
        "creator_id": ben,
        "invite_only": False,
        "is_web_public": False,
        "is_archived": False,
        "is_default": False,
        "is_announcement_only": False,
        "stream_post_policy": 1,
        "history_public_to_subscribers": True,
        "message_retention_days": None,
        "folder_id": None,
        "topics_policy": "inherit",
        "is_recently_active": True,
        "stream_weekly_traffic": None,
        "subscriber_count": 1,
        "can_add_subscribers_group": NOBODY,
        "can_administer_channel_group": {"direct_members": [ben], "direct_subgroups": []},
        "can_create_topic_group": EVERYONE,
        "can_delete_any_message_group": NOBODY,
        "can_delete_own_message_group": NOBODY,
        "can_move_messages_out_of_channel_group": NOBODY,
        "can_move_messages_within_channel_group": NOBODY,
        "can_remove_subscribers_group": ADMINISTRATORS,
        "can_resolve_topics_group": NOBODY,
        "can_send_message_group": EVERYONE,
        "can_subscribe_group": NOBODY,
    }
    assert expected.items() <= channel.items()


@rows("way", WAYS)
@rows(
    ("options", "expected"),
    [
        ({"invite_only": True}, {"invite_only": True, "history_public_to_subscribers": False}),
        (
            {"invite_only": True, "history_public_to_subscribers": True},
            {"invite_only": True, "history_public_to_subscribers": True},
        ),
        ({"history_public_to_subscribers": True}, {"history_public_to_subscribers": True}),
        ({"is_default_stream": True}, {"is_default": True}),
        ({"is_web_public": True}, {"is_web_public": True, "invite_only": False}),
        ({"message_retention_days": 1}, {"message_retention_days": 1}),
        ({"message_retention_days": "30"}, {"message_retention_days": 30}),
        ({"message_retention_days": '"30"'}, {"message_retention_days": 30}),
        ({"message_retention_days": "unlimited"}, {"message_retention_days": -1}),
        ({"message_retention_days": '"unlimited"'}, {"message_retention_days": -1}),
        ({"message_retention_days": "realm_default"}, {"message_retention_days": None}),
        *(
            ({"topics_policy": policy}, {"topics_policy": policy})
            for policy in ("inherit", "allow_empty_topic", "disable_empty_topic")
        ),
        ({"topics_policy": "empty_topic_only"}, {"topics_policy": "empty_topic_only"}),
        ({"topics_policy": '"inherit"'}, {"topics_policy": "inherit"}),
        ({"folder_id": "null"}, {"folder_id": None}),
        *(({name: MODERATORS}, {name: MODERATORS}) for name in CHANNEL_SETTINGS),
        (
            {"can_send_message_group": ADMINISTRATORS},
            {"stream_post_policy": 2, "is_announcement_only": True},
        ),
        ({"can_send_message_group": FULL}, {"stream_post_policy": 3}),
        ({"can_send_message_group": MODERATORS}, {"stream_post_policy": 4}),
        ({"can_send_message_group": OWNERS}, {"stream_post_policy": 1}),
    ],
)
async def test_an_option_applies_to_a_new_channel(
    shared_org: Organization, way: str, options: dict[str, Any], expected: dict[str, Any]
) -> None:
    await shared_org.do(RealmChanged(values={"enable_spectator_access": True}))
    name = new_name(shared_org)
    assert (await make(shared_org, "ann", way, name, **options)).ok
    channel = await channel_json(shared_org, name)
    assert expected.items() <= channel.items()


@rows("way", WAYS)
@rows(
    "days",
    ["forever", "0", "-1", "1.5", "1_0", "٣", "", "[]", "9" * 17, "9" * 5000, "unlimited\0"],
)
async def test_an_invalid_retention_time_is_refused(
    readonly_org: Organization, way: str, days: str
) -> None:
    reply = await make(readonly_org, "ann", way, message_retention_days=days)
    assert reply.refused("REQUEST_VARIABLE_INVALID")["var_name"] == "message_retention_days"


@rows("name", CHANNEL_SETTINGS)
async def test_every_permission_accepts_people_and_groups(
    shared_org: Organization, name: str
) -> None:
    org, channel = shared_org, new_name(shared_org)
    ann, ben = org["ann"].user_id, org["ben"].user_id
    holders = {"direct_members": [ben, ann, ben], "direct_subgroups": [MODERATORS]}
    assert (await make(org, "ann", "subscribe", channel, **{name: holders})).ok
    assert (await channel_json(org, channel))[name] == {
        "direct_members": [ann, ben],
        "direct_subgroups": [MODERATORS],
    }


@rows("name", CHANNEL_SETTINGS)
async def test_every_permission_refuses_invalid_values(shared_org: Organization, name: str) -> None:
    org = shared_org
    channel = await org.channel(new_name(org))
    before = org.node.state.seq
    rule = CHANNEL_SETTINGS[name]
    wrong: list[Any] = [SystemGroup.INTERNET.value, 999, {"direct_members": [999]}, "x", [1]]
    if not rule.allow_everyone_group:
        wrong.append(EVERYONE)
    for value in wrong:
        assert (await make(org, "ann", "subscribe", **{name: value})).status == 400, value
        reply = await org["ann"].patch(f"/streams/{channel}", **{name: {"new": value}})
        assert reply.status == 400, value
    assert org.node.state.seq == before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("setting", "options"),
    [
        ("can_create_public_channel_group", {}),
        ("can_create_private_channel_group", {"invite_only": True}),
        ("can_create_web_public_channel_group", {"is_web_public": True}),
    ],
)
async def test_each_kind_of_channel_has_its_permission(
    org: Organization, way: str, setting: str, options: dict[str, Any]
) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True, setting: MODERATORS}))
    await org.add("mod", Role.MODERATOR)
    (await make(org, "ben", way, **options)).refused()
    (await make(org, "gus", way, **options)).refused()
    assert (await make(org, "mod", way, **options)).ok


@pytest.mark.parametrize("way", WAYS)
async def test_a_web_public_channel_needs_the_server_the_organization_and_the_permission(
    config: Config, way: str
) -> None:
    closed = msgspec.structs.replace(config, web_public_streams_enabled=False)
    async with new_organization(closed) as org:
        await org.do(RealmChanged(values={"enable_spectator_access": True}))
        channel = await org.channel("old", "ann")
        assert (await make(org, "ann", way)).ok
        (await make(org, "ann", "create", is_web_public=True)).refused()
        (await org["ann"].patch(f"/streams/{channel}", is_web_public=True)).refused()
        data = (await org["ann"].register()).data
        assert data["server_web_public_streams_enabled"] is False
        assert data["can_create_web_public_streams"] is False
        settings = (await org.nobody.get("/server_settings")).ok
        assert settings["realm_web_public_access_enabled"] is False
        (await org.nobody.post("/register")).refused("UNAUTHORIZED", 401)


async def test_options_are_ignored_for_an_existing_channel(org: Organization) -> None:
    await org.channel("den", "ann", description="as it was")
    reply = await org["ben"].post(
        SUBSCRIPTIONS,
        subscriptions=[{"name": "DEN", "description": "another"}],
        invite_only=True,
        is_web_public=False,
        message_retention_days=3,
        topics_policy="disable_empty_topic",
        can_send_message_group=OWNERS,
        folder_id=77,
    )
    assert reply.ok["subscribed"] == {str(org["ben"].user_id): ["den"]}
    channel = await channel_json(org)
    assert channel["description"] == "as it was"
    assert channel["invite_only"] is False
    assert channel["message_retention_days"] is None
    assert channel["topics_policy"] == "inherit"
    assert channel["can_send_message_group"] == EVERYONE


@pytest.mark.parametrize("name", ["stream_post_policy", "is_announcement_only"])
async def test_obsolete_parameters_are_reported_as_ignored(org: Organization, name: str) -> None:
    values: dict[str, Any] = {name: 2}
    reply = await make(org, "ann", "subscribe", **values)
    assert reply.ok["ignored_parameters_unsupported"] == [name]
    assert (await channel_json(org))["can_send_message_group"] == EVERYONE


LIMITS = [
    ("x" * 60, "y" * 1024, True),
    ("x" * 61, "", False),
    ("x", "y" * 1025, False),
    ("  x  ", "", True),
    ("", "", False),
    ("\u0007", "", False),
    ("a\u0085b", "", False),
    ("ünïcode ☕", "*so*", True),
    ("z", "a\0b", False),
    ("a\0b", "", False),
]
"""A name, a description, and whether a channel can have them."""


async def test_names_and_descriptions_are_limited(org: Organization) -> None:
    data = (await org["ann"].register(fetch_event_types=["realm"])).data
    assert (data["max_stream_name_length"], data["max_stream_description_length"]) == (60, 1024)
    there: dict[str, str] = {}
    for name, description, allowed in LIMITS:
        with row(name, description):
            wanted = [{"name": name, "description": description}]
            reply = await org["ann"].post(SUBSCRIPTIONS, subscriptions=wanted)
            assert (reply.status == 200) is allowed, reply.body
            if allowed:
                there[name.strip()] = description
            found = (await org["ann"].get("/streams")).ok["streams"]
            assert {one["name"]: one["description"] for one in found} == there


# Subscribing others


async def subscribe(
    org: Organization, who: str, *people: str, to: str = "vault", **more: Any
) -> int:
    """The status of subscribing people to a channel."""
    reply = await org[who].post(
        SUBSCRIPTIONS,
        subscriptions=[{"name": to}],
        principals=[org[name].user_id for name in people],
        **more,
    )
    return reply.status


SUBSCRIBING: list[tuple[dict[str, Any], str, list[str], bool]] = [
    ({}, "ben", ["ben"], True),
    ({}, "gus", ["gus"], False),
    ({}, "ben", ["cleo"], True),
    ({"is_web_public": True}, "gus", ["gus"], True),
    ({"is_web_public": True}, "gus", ["ben"], False),
    ({"is_private": True}, "ben", ["ben"], False),
    ({"is_private": True}, "ben", ["cleo"], False),
    ({"is_private": True}, "robo", ["robo"], False),
    ({"is_private": True}, "ann", ["ann"], False),
    ({"is_private": True}, "ann", ["cleo"], False),
    ({"is_private": True}, "dora", ["cleo"], True),
    ({"is_private": True, "can_subscribe_group": MEMBERS}, "ben", ["ben"], True),
    ({"is_private": True, "can_subscribe_group": MEMBERS}, "gus", ["gus"], False),
    ({"is_private": True, "can_add_subscribers_group": MEMBERS}, "ben", ["ben"], True),
    ({"is_private": True, "can_add_subscribers_group": MEMBERS}, "ben", ["cleo", "gus"], True),
    ({"is_private": True, "can_add_subscribers_group": MEMBERS}, "gus", ["gus"], False),
]
"""A channel's settings, who subscribes whom, and whether that's allowed."""


async def test_who_can_subscribe_others(org: Organization) -> None:
    await org.add("dora")
    state = org.node.state
    for number, (settings, who, people, allowed) in enumerate(SUBSCRIBING):
        with row(settings, who, people):
            vault = await org.channel(f"vault {number}", "dora", **settings)
            assert (await subscribe(org, who, *people, to=f"vault {number}") == 200) is allowed
            subscribed = {one for one in people if state.is_subscribed(org[one].user_id, vault)}
            assert subscribed == (set(people) if allowed else set())


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [
        ({}, False),
        ({"can_add_subscribers_group": MEMBERS}, True),
        ({"can_administer_channel_group": MEMBERS}, True),
        ({"can_subscribe_group": MEMBERS}, False),
    ],
)
async def test_a_channel_can_allow_subscribing_others_if_the_organization_does_not(
    org: Organization, settings: dict[str, Any], allowed: bool
) -> None:
    await org.do(RealmChanged(values={"can_add_subscribers_group": OWNERS}))
    await org.channel("vault", "ben", **settings)
    assert (await subscribe(org, "ben", "cleo") == 200) is allowed


async def test_refused_channels_are_listed_if_they_are_not_fatal(org: Organization) -> None:
    await org.channel("vault", "ann", is_private=True)
    await org.channel("open", "ann")
    reply = await org["ben"].post(
        SUBSCRIPTIONS,
        subscriptions=[{"name": "vault"}, {"name": "open"}, {"name": "new"}],
        authorization_errors_fatal=False,
    )
    assert reply.ok["unauthorized"] == ["vault"]
    assert reply.ok["subscribed"] == {str(org["ben"].user_id): ["open", "new"]}
    assert "unauthorized" not in (await make(org, "ben", "subscribe")).ok


async def test_subscriptions_of_an_archived_channel_can_be_changed(org: Organization) -> None:
    channel = await org.channel("vault", "ann", "ben")
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    knowing = await org["cleo"].register(client_capabilities={"archived_channels": True})
    other = await org["cleo"].register()
    assert await subscribe(org, "ann", "cleo") == 200
    assert "subscription" in {event["type"] for event in await knowing.events()}
    assert "subscription" not in {event["type"] for event in await other.events()}
    gone = await org["ann"].delete(
        SUBSCRIPTIONS, subscriptions=["vault"], principals=[org["ben"].user_id]
    )
    assert gone.ok["removed"] == ["vault"]
    colored = {"property": "color", "value": "#123456"}
    assert (await org["cleo"].patch(f"{SUBSCRIPTIONS}/{channel}", **colored)).ok
    assert (await org["ann"].patch(f"/streams/{channel}", is_private=True)).ok


# Unsubscribing


UNSUBSCRIBING: list[tuple[dict[str, Any], str, str, bool]] = [
    ({}, "ann", "cleo", True),
    ({"is_private": True}, "ann", "cleo", True),
    ({}, "ben", "cleo", False),
    ({}, "ben", "robo", True),
    ({"is_private": True}, "ben", "robo", False),
    ({"is_private": True, "can_subscribe_group": MEMBERS}, "ben", "robo", True),
    ({"can_remove_subscribers_group": MEMBERS}, "ben", "cleo", True),
    ({"can_remove_subscribers_group": Members((5,), ())}, "ben", "cleo", True),
    ({"can_remove_subscribers_group": NOBODY}, "ann", "cleo", True),
    ({"can_administer_channel_group": MEMBERS}, "ben", "cleo", True),
    ({"is_private": True, "can_remove_subscribers_group": MEMBERS}, "ben", "cleo", False),
    ({"can_add_subscribers_group": MEMBERS}, "ben", "cleo", False),
]
"""The same for unsubscribing."""


async def test_who_can_unsubscribe_others(org: Organization) -> None:
    assert org["ben"].user_id == 5
    for number, (settings, who, whom, allowed) in enumerate(UNSUBSCRIBING):
        with row(settings, who, whom):
            vault = await org.channel(f"vault {number}", "cleo", "robo", **settings)
            gone = {"subscriptions": [f"vault {number}"], "principals": [org[whom].user_id]}
            reply = await org[who].delete(SUBSCRIPTIONS, **gone)
            assert (reply.status == 200) is allowed, reply.body
            assert org.node.state.is_subscribed(org[whom].user_id, vault) is not allowed


async def test_a_deactivated_principal_is_refused_for_both(org: Organization) -> None:
    await org.channel("vault", "ann", "cleo")
    await org.do(UserDeactivated(user_id=org["cleo"].user_id))
    for principals in ([org["cleo"].user_id], ["cleo@example.com"], [999], ["x@example.com"]):
        reply = await org["ann"].delete(
            SUBSCRIPTIONS, subscriptions=["vault"], principals=principals
        )
        reply.refused()
        reply = await org["ann"].post(
            SUBSCRIPTIONS, subscriptions=[{"name": "vault"}], principals=principals
        )
        reply.refused()


async def test_an_unknown_channel_is_reported_by_name(readonly_org: Organization) -> None:
    body = (await readonly_org["ann"].delete(SUBSCRIPTIONS, subscriptions=["nowhere"])).refused(
        "STREAM_DOES_NOT_EXIST"
    )
    assert body["stream"] == "nowhere"


# Other visible properties


async def test_new_channels_get_colors_of_the_palette_in_turn(org: Organization) -> None:
    wanted = [{"name": f"channel {number}"} for number in range(25)]
    assert (await org["ben"].post(SUBSCRIPTIONS, subscriptions=wanted)).ok
    own = (await org["ben"].get(SUBSCRIPTIONS)).ok["subscriptions"]
    colors = [one["color"] for one in own]
    assert colors[:3] == ["#76ce90", "#fae589", "#a6c7e5"]
    assert len(set(colors)) == 24
    assert colors[24] == colors[0]


async def test_subscribers_are_listed_for_people_who_can_see_the_channel(
    org: Organization,
) -> None:
    channel = await org.channel("vault", "ben", "cleo", "gus", is_private=True)
    everybody = sorted(org[name].user_id for name in ("ben", "cleo", "gus"))
    for who in ("ann", "ben", "gus"):
        reply = await org[who].get(f"/streams/{channel}/members")
        assert reply.ok["subscribers"] == everybody
    (await org["robo"].get(f"/streams/{channel}/members")).refused()
    (await org["ann"].get("/streams/999/members")).refused()


BECAME: list[tuple[dict[str, Any], str | None]] = [
    ({"new_name": "salon"}, "renamed this channel from **lounge 0** to **salon**."),
    ({"is_private": True}, "from **Public** to **Private, protected history**."),
    (
        {"is_private": True, "history_public_to_subscribers": True},
        "from **Public** to **Private, shared history**.",
    ),
    ({"is_web_public": True}, "from **Public** to **Web-public**."),
    ({"message_retention_days": 3}, "from **the organization’s default** to **3 days**."),
    ({"message_retention_days": "unlimited"}, "to **forever**."),
    ({"description": "new"}, "**New description:**\n``` text\nnew\n```"),
    ({"can_send_message_group": {"new": MODERATORS}}, "from **everyone** to **moderators**."),
    ({"topics_policy": "allow_empty_topic"}, None),
    ({"is_default_stream": True}, None),
]
"""A change, and the notice about it in the channel, or None."""


async def test_changes_to_a_channel_are_posted_in_it(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    page = {"anchor": "newest", "num_before": 50, "num_after": 0, "apply_markdown": False}
    texts: list[str] = []
    for number, (edit, told) in enumerate(BECAME):
        with row(edit):
            channel = await org.channel(f"lounge {number}", "ann")
            assert (await org["ann"].patch(f"/streams/{channel}", **edit)).ok
            found = await org["ann"].get("/messages", **page, narrow=[["topic", "channel events"]])
            before, texts = texts, [one["content"] for one in found.ok["messages"]]
            assert texts[: len(before)] == before
            new = texts[len(before) :]
            assert len(new) == (told is not None)
            assert all(text.endswith(told) for text in new if told)


# Sending to a channel by email


@pytest.mark.parametrize("sender", [None, "ann", "robo", 1])
async def test_no_channel_has_an_email_address(org: Organization, sender: Any) -> None:
    channel = await org.channel("lounge", "ann")
    sender_id = org[sender].user_id if isinstance(sender, str) else sender
    reply = await org["ann"].get(f"/streams/{channel}/email_address", sender_id=sender_id)
    reply.refused()
    (await org["ann"].get("/streams/999/email_address")).refused()
    (await org["ann"].get(f"/streams/{channel}/email_address", sender_id="x")).refused(
        "REQUEST_VARIABLE_INVALID"
    )
