"""Finding, creating, changing, and archiving channels."""

import asyncio
from typing import Any

import pytest

from tertulia.domain.channels import subscriptions
from tertulia.domain.channels.channels import NewChannel
from tertulia.model.changes import RealmChanged, UserDeactivated, UserGroupCreated
from tertulia.model.groups import Members, SystemGroup, UserGroup
from tertulia.model.messages import Rendered
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext
from tests.support import Listener, Organization, new_organization, open_organization, row, rows

ARCHIVED = {"archived_channels": True}


async def channel_events(listener: Listener) -> list[dict[str, Any]]:
    """The events other than messages."""
    return [event for event in await listener.events() if event["type"] != "message"]


async def notices(org: Organization, channel: int, topic: str = "channel events") -> list[str]:
    """The messages in a topic."""
    page = await org["ann"].get(
        "/messages",
        anchor="newest",
        num_before=50,
        num_after=0,
        narrow=[
            {"operator": "channel", "operand": channel},
            {"operator": "topic", "operand": topic},
        ],
        apply_markdown=False,
    )
    return [message["content"] for message in page.ok["messages"]]


# Finding


async def listed(org: Organization, who: str, **parameters: Any) -> list[str]:
    reply = await org[who].get("/streams", **parameters)
    return [channel["name"] for channel in reply.ok["streams"]]


LISTS: tuple[tuple[str, dict[str, Any], list[str]], ...] = (
    ("ben", {}, ["public", "plaza", "club"]),
    ("ben", {"include_public": False}, ["club"]),
    ("ben", {"include_subscribed": False}, ["public", "plaza"]),
    ("ben", {"include_public": False, "include_web_public": True}, ["plaza", "club"]),
    ("ben", {"exclude_archived": False}, ["public", "plaza", "club", "old"]),
    ("ben", {"include_all": True}, ["public", "plaza", "club"]),
    ("ann", {}, ["public", "plaza", "vault"]),
    ("ann", {"include_all": True}, ["public", "plaza", "vault", "club"]),
    ("ann", {"include_all_active": True}, ["public", "plaza", "vault", "club"]),
    ("ann", {"include_can_access_content": True}, ["public", "plaza", "vault"]),
    ("gus", {}, []),
    ("gus", {"include_web_public": True}, ["plaza"]),
    ("gus", {"include_all": True}, ["plaza"]),
    ("robo", {"include_owner_subscribed": True}, ["public", "plaza", "club"]),
    ("cleo", {"include_owner_subscribed": True}, ["public", "plaza"]),
)


async def test_the_list_has_the_requested_visible_channels(org: Organization) -> None:
    await org.channel("public")
    await org.channel("plaza", is_web_public=True)
    await org.channel("vault", "ann", is_private=True)
    await org.channel("club", "ben", is_private=True)
    await org.channel("old", is_archived=True)
    for who, parameters, expected in LISTS:
        assert await listed(org, who, **parameters) == expected, (who, parameters)


async def test_the_default_flag_is_included_on_request(org: Organization) -> None:
    await org.channel("public", is_default=True)
    (plain,) = (await org["ben"].get("/streams")).ok["streams"]
    (full,) = (await org["ben"].get("/streams", include_default=True)).ok["streams"]
    assert "is_default" not in plain
    assert full["is_default"] is True


async def test_a_channel_is_found_by_name_and_id(org: Organization) -> None:
    channel = await org.channel("Lounge", "ann")
    assert (await org["ben"].get("/get_stream_id", stream="lounge")).ok["stream_id"] == channel
    found = (await org["ben"].get(f"/streams/{channel}")).ok["stream"]
    assert found["name"] == "Lounge"
    assert found["stream_post_policy"] == 1
    assert found["can_remove_subscribers_group"] == SystemGroup.ADMINISTRATORS.value


async def test_an_invisible_channel_looks_like_no_channel(org: Organization) -> None:
    vault = await org.channel("vault", "ann", is_private=True)
    for path in ("/streams/{}", "/streams/{}/members"):
        hidden = await org["ben"].get(path.format(vault))
        absent = await org["ben"].get(path.format(999))
        assert hidden.refused() == absent.refused()
    for method in ("PATCH", "DELETE"):
        hidden = await org["ben"].request(method, f"/streams/{vault}")
        absent = await org["ben"].request(method, "/streams/999")
        assert hidden.refused() == absent.refused()
    (await org["ben"].get("/get_stream_id", stream="vault")).refused()
    (await org["ben"].get("/get_stream_id", stream="nowhere")).refused()


# Creating


async def test_a_channel_is_created_with_its_subscribers(org: Organization) -> None:
    people = [org["ben"].user_id, org["gus"].user_id]
    reply = await org["ben"].post(
        "/channels/create", name="den", subscribers=people, description="*here*"
    )
    channel = reply.ok["id"]
    assert (await org["ann"].get(f"/streams/{channel}/members")).ok["subscribers"] == people
    taken = await org["cleo"].post("/channels/create", name="DEN", subscribers=[])
    assert taken.refused("CHANNEL_ALREADY_EXISTS", 409)["channel_name"] == "DEN"


async def test_people_have_read_what_the_notification_bot_says_about_their_own_changes(
    org: Organization,
) -> None:
    async def unread(who: str) -> list[str]:
        snapshot = (await org[who].register()).data["unread_msgs"]
        return sorted(topic["topic"] for topic in snapshot["streams"])

    members = [org["ben"].user_id, org["cleo"].user_id]
    reply = await org["ben"].post("/channels/create", name="den", subscribers=members)
    assert (await unread("ben"), await unread("cleo")) == ([], ["channel events"])
    await org["ben"].patch(f"/streams/{reply.ok['id']}", description="A quiet room")
    about = {"type": "stream", "to": "den", "topic": "tea", "content": "one"}
    reply = await org["ben"].post("/messages", **about, read_by_sender=True)
    sent = reply.ok["id"]
    await org["ben"].patch(f"/messages/{sent}", topic="✔ tea", propagate_mode="change_all")
    assert (await unread("ben"), await unread("cleo")) == ([], ["channel events", "✔ tea"])
    # Ann isn't subscribed, so nothing changes for her.
    await org["ann"].patch(f"/messages/{sent}", topic="tea", propagate_mode="change_all")
    assert (await unread("ann"), await unread("ben")) == ([], ["tea"])


async def test_a_channel_can_be_created_without_subscribers(org: Organization) -> None:
    reply = await org["ben"].post("/channels/create", name="den", subscribers=[])
    found = (await org["ben"].get(f"/streams/{reply.ok['id']}")).ok["stream"]
    assert found["subscriber_count"] == 0


async def test_a_new_channel_s_events_describe_it(org: Organization) -> None:
    ben = org["ben"].user_id
    reply = await org["ben"].post(
        "/channels/create", name="den", subscribers=[ben], description="see ``` @**all**"
    )
    (text,) = await notices(org, reply.ok["id"])
    assert text == (
        f"**Public** channel created by @_**Ben|{ben}**. **Description:**\n"
        "```` text\nsee ``` @**all**\n````"
    )
    page = await org["ben"].get("/messages", anchor="newest", num_before=5, num_after=0)
    (message,) = page.ok["messages"]
    assert "wildcard_mentioned" not in message["flags"]
    assert message["sender_full_name"] == "Notification Bot"


async def test_notices_can_be_disabled_by_the_organization(org: Organization) -> None:
    await org.do(RealmChanged(values={"send_channel_events_messages": False}))
    reply = await org["ben"].post("/channels/create", name="den", subscribers=[])
    assert (await org["ben"].patch(f"/streams/{reply.ok['id']}", new_name="lair")).ok
    assert await notices(org, reply.ok["id"]) == []


async def test_a_new_channel_is_announced_on_request(org: Organization) -> None:
    board = await org.channel("board", "ann")
    await org.do(RealmChanged(values={"new_channel_announcements_channel_id": board}))
    ben = org["ben"].user_id
    for name, options in (
        ("quiet", {}),
        ("loud", {"announce": True}),
        ("hidden", {"announce": True, "invite_only": True}),
    ):
        assert (
            await org["ben"].post("/channels/create", name=name, subscribers=[ben], **options)
        ).ok
    assert await notices(org, board, "new channels") == [
        f"@_**Ben|{ben}** created a new channel: #**loud**."
    ]


async def test_a_notice_about_a_new_channel_can_link_it(org: Organization) -> None:
    known: list[tuple[str, bool]] = []

    def render(context: CommandContext, content: str) -> Rendered:
        known.append((content, context.state.channel_named("den") is not None))
        return Rendered(html=content)

    wanted = subscriptions.SubscribeRequest(
        channels=(NewChannel(name="den"),), principals=(org["cleo"].user_id,)
    )
    log = org.node.log
    await log.submit(org["ben"].user_id, subscriptions.subscribe, wanted, render)
    assert [exists for _, exists in known] == [True, True]
    assert "#**den**" in known[1][0]


async def test_concurrent_creations_of_the_same_channel_make_one(org: Organization) -> None:
    replies = await asyncio.gather(
        *(
            org[name].post("/users/me/subscriptions", subscriptions=[{"name": "den"}])
            for name in ("ann", "ben", "cleo")
        )
    )
    assert all(reply.ok["subscribed"] for reply in replies)
    (channel,) = (await org["ann"].get("/streams")).ok["streams"]
    assert channel["subscriber_count"] == 3


# Changing


async def test_a_rename_event_has_the_old_name(org: Organization) -> None:
    channel = await org.channel("den", "ann", "ben")
    ben = await org["ben"].register()
    assert (await org["ann"].patch(f"/streams/{channel}", new_name="Lair")).ok
    (event,) = await channel_events(ben)
    assert (event["op"], event["stream_id"], event["name"]) == ("update", channel, "den")
    assert (event["property"], event["value"]) == ("name", "Lair")
    ann = org["ann"].user_id
    assert await notices(org, channel) == [
        f"@_**Ann|{ann}** renamed this channel from **den** to **Lair**."
    ]


async def test_a_description_event_has_its_html(org: Organization) -> None:
    channel = await org.channel("den", "ben")
    ben = await org["ben"].register()
    assert (await org["ann"].patch(f"/streams/{channel}", description="so & so")).ok
    (event,) = await channel_events(ben)
    assert (event["property"], event["value"]) == ("description", "so & so")
    assert event["rendered_description"] == "<p>so &amp; so</p>"
    (text,) = await notices(org, channel)
    assert "so & so" in text


@pytest.fixture(scope="module")
async def den(shared_org: Organization) -> int:
    """A channel with a topic, and another channel."""
    channel = await shared_org.channel("den", "ann")
    await shared_org.channel("other")
    await shared_org["ann"].send("den", "a topic", "hello")
    return channel


@rows(
    "edit",
    [
        {"new_name": "den"},
        {"new_name": "OTHER"},
        {"new_name": " "},
        {"new_name": "x" * 61},
        {"new_name": "a\tb"},
        {"description": "x" * 1025},
        {"is_archived": True},
        {"is_archived": False},
        {"folder_id": 3},
        {"is_web_public": True},
        {"is_private": True, "is_web_public": True},
        {"history_public_to_subscribers": False},
        {"is_private": True, "is_default_stream": True},
        {"topics_policy": "empty_topic_only"},
        {"message_retention_days": -1},
        {"is_private": True, "can_create_topic_group": {"new": 4}},
        {"can_send_message_group": 3},
        {"can_send_message_group": {"old": 7}},
        {"can_send_message_group": {"new": SystemGroup.INTERNET.value}},
        {"can_send_message_group": {"new": 99}},
        {"can_subscribe_group": {"new": SystemGroup.EVERYONE.value}},
    ],
)
async def test_an_invalid_change_is_refused(
    den: int, readonly_org: Organization, edit: dict[str, Any]
) -> None:
    reply = await readonly_org["ann"].patch(f"/streams/{den}", **edit)
    assert reply.status == 400, reply.body


async def test_a_name_may_change_its_letter_case(org: Organization) -> None:
    channel = await org.channel("den")
    assert (await org["ann"].patch(f"/streams/{channel}", new_name="Den")).ok
    assert (await org["ann"].get("/get_stream_id", stream="den")).ok["stream_id"] == channel


async def test_an_equal_value_is_no_change(org: Organization) -> None:
    channel = await org.channel("den", "ann")
    ann = await org["ann"].register()
    assert (await org["ann"].patch(f"/streams/{channel}")).ok
    assert (await org["ann"].patch(f"/streams/{channel}", folder_id="null", is_private=False)).ok
    assert await ann.events() == []


CHANGES: list[tuple[str, dict[str, Any], str | None]] = [
    ("ben", {"new_name": "lair"}, "BAD_REQUEST"),
    ("gus", {"new_name": "lair"}, "BAD_REQUEST"),
    ("cleo", {"new_name": "lair"}, None),
    ("cleo", {"description": "x"}, None),
    ("cleo", {"is_private": True}, None),
    ("cleo", {"can_send_message_group": {"new": 3}}, None),
    ("cleo", {"is_default_stream": True}, "BAD_REQUEST"),
    ("cleo", {"message_retention_days": 3}, "UNAUTHORIZED_PRINCIPAL"),
    ("cleo", {"can_delete_any_message_group": {"new": 3}}, "BAD_REQUEST"),
    ("ann", {"message_retention_days": "unlimited"}, None),
    ("ann", {"is_default_stream": True}, None),
    ("ann", {"can_delete_any_message_group": {"new": 3}}, None),
]
"""A person, a change, and the error code if it's refused."""


async def test_who_can_change_what(org: Organization) -> None:
    holders = Members((org["cleo"].user_id,), ())
    for number, (who, edit, code) in enumerate(CHANGES):
        with row(who, edit):
            channel = await org.channel(
                f"den {number}", "ben", "gus", can_administer_channel_group=holders
            )
            reply = await org[who].patch(f"/streams/{channel}", **edit)
            if code is None:
                assert reply.ok
            else:
                reply.refused(code)


async def test_an_unsubscribed_administrator_changes_the_name_but_not_the_access(
    org: Organization,
) -> None:
    channel = await org.channel("vault", "ben", is_private=True)
    assert (await org["ann"].patch(f"/streams/{channel}", new_name="safe")).ok
    for edit in (
        {"is_private": False},
        {"can_subscribe_group": {"new": 6}},
        {"can_add_subscribers_group": {"new": 6}},
        {"can_delete_any_message_group": {"new": 6}},
    ):
        (await org["ann"].patch(f"/streams/{channel}", **edit)).refused()
    assert (
        await org["ann"].patch(f"/streams/{channel}", can_remove_subscribers_group={"new": 6})
    ).ok


async def test_a_permission_changes_only_from_the_expected_value(org: Organization) -> None:
    channel = await org.channel("den", "ann")
    path = f"/streams/{channel}"
    wrong = {"new": 3, "old": 6}
    reply = await org["ann"].patch(path, can_send_message_group=wrong, new_name="lair")
    reply.refused("EXPECTATION_MISMATCH")
    assert (await org["ann"].get(path)).ok["stream"]["name"] == "den"
    right = {"new": {"direct_members": [], "direct_subgroups": [3]}, "old": 7}
    ann = await org["ann"].register()
    assert (await org["ann"].patch(path, can_send_message_group=right)).ok
    events = {event["property"]: event["value"] for event in await channel_events(ann)}
    assert events == {"can_send_message_group": 3, "stream_post_policy": 2}
    (text,) = await notices(org, channel)
    assert text.endswith("who can post in this channel from **everyone** to **administrators**.")


async def test_expected_values_omit_deactivated_people(org: Organization) -> None:
    ben, cleo = org["ben"].user_id, org["cleo"].user_id
    channel = await org.channel("den", can_send_message_group=Members((ben, cleo), ()))
    await org.do(UserDeactivated(user_id=cleo))
    shown = (await org["ann"].get(f"/streams/{channel}")).ok["stream"]["can_send_message_group"]
    assert shown == {"direct_members": [ben], "direct_subgroups": []}
    change = {"new": {"direct_members": [cleo], "direct_subgroups": []}, "old": shown}
    (await org["ann"].patch(f"/streams/{channel}", can_send_message_group=change)).refused()
    change["new"] = {"direct_members": [ben], "direct_subgroups": [2]}
    assert (await org["ann"].patch(f"/streams/{channel}", can_send_message_group=change)).ok


async def test_a_deactivated_group_holds_no_permission(org: Organization) -> None:
    group = UserGroup(id=50, name="gone", deactivated=True)
    await org.do(UserGroupCreated(group=group))
    channel = await org.channel("den")
    change = {"new": 50}
    (await org["ann"].patch(f"/streams/{channel}", can_send_message_group=change)).refused()


@pytest.mark.parametrize(
    ("edit", "expected"),
    [
        ({"message_retention_days": 7}, {"message_retention_days": 7}),
        ({"message_retention_days": "unlimited"}, {"message_retention_days": -1}),
        ({"topics_policy": "empty_topic_only"}, {"topics_policy": "empty_topic_only"}),
        ({"is_default_stream": True}, {}),
        (
            {"can_subscribe_group": {"new": {"direct_members": [4], "direct_subgroups": []}}},
            {"can_subscribe_group": {"direct_members": [4], "direct_subgroups": []}},
        ),
    ],
)
async def test_each_property_has_its_event_and_field(
    org: Organization, edit: dict[str, Any], expected: dict[str, Any]
) -> None:
    channel = await org.channel("den", "ben")
    ben, gus = await org["ben"].register(), await org["gus"].register()
    assert (await org["ann"].patch(f"/streams/{channel}", **edit)).ok
    events = await channel_events(ben)
    if expected:
        assert {event["property"]: event["value"] for event in events} == expected
    else:
        (event,) = events
        assert (event["type"], event["default_streams"]) == ("default_streams", [channel])
    shown = (await org["ben"].get(f"/streams/{channel}")).ok["stream"]
    assert expected.items() <= shown.items()
    assert await gus.events() == []


async def test_retention_can_be_reset_to_the_organization_s(org: Organization) -> None:
    channel = await org.channel("den", retention_days=3)
    path = f"/streams/{channel}"
    assert (await org["ann"].patch(path, message_retention_days="realm_default")).ok
    assert (await org["ann"].get(path)).ok["stream"]["message_retention_days"] is None


# Privacy


async def test_a_channel_made_private_is_removed_for_others(org: Organization) -> None:
    channel = await org.channel("den", "ann", "ben")
    ann, ben, cleo, gus = [await org[n].register() for n in ("ann", "ben", "cleo", "gus")]
    assert (await org["ann"].patch(f"/streams/{channel}", is_private=True)).ok
    for listener in (ann, ben):
        (event,) = await channel_events(listener)
        assert (event["op"], event["property"], event["value"]) == ("update", "invite_only", True)
        assert event["history_public_to_subscribers"] is False
        assert event["is_web_public"] is False
    (gone,) = await channel_events(cleo)
    assert (gone["type"], gone["op"], gone["stream_ids"]) == ("stream", "delete", [channel])
    assert gone["streams"] == [{"stream_id": channel}]
    assert await gus.events() == []
    (text,) = await notices(org, channel)
    assert text.endswith("from **Public** to **Private, protected history**.")


async def test_a_channel_made_public_is_added_with_its_subscribers(org: Organization) -> None:
    channel = await org.channel("den", "ann", "ben", is_private=True, history_public=False)
    ben, cleo, gus = [await org[n].register() for n in ("ben", "cleo", "gus")]
    assert (await org["ann"].patch(f"/streams/{channel}", is_private=False)).ok
    assert [event["op"] for event in await channel_events(ben)] == ["update"]
    create, peers = await channel_events(cleo)
    (shown,) = create["streams"]
    assert (shown["stream_id"], shown["invite_only"]) == (channel, False)
    assert shown["history_public_to_subscribers"] is True
    assert (peers["op"], peers["stream_ids"]) == ("peer_add", [channel])
    assert peers["user_ids"] == [org["ann"].user_id, org["ben"].user_id]
    assert shown["subscriber_count"] + len(peers["user_ids"]) == 2
    assert await gus.events() == []


async def test_a_web_public_channel_is_added_for_guests(org: Organization) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    channel = await org.channel("den", "ann")
    gus = await org["gus"].register()
    assert (await org["ann"].patch(f"/streams/{channel}", is_web_public=True)).ok
    (create,) = await channel_events(gus)
    assert create["op"] == "create"
    assert create["streams"][0]["is_web_public"] is True
    assert (await org["ann"].patch(f"/streams/{channel}", is_web_public=False)).ok
    (gone,) = await channel_events(gus)
    assert gone["op"] == "delete"


async def test_a_group_with_permission_to_subscribe_sees_the_channel(org: Organization) -> None:
    channel = await org.channel("vault", "ann", is_private=True)
    cleo, ben = await org["cleo"].register(), await org["ben"].register()
    only = {"direct_members": [org["cleo"].user_id], "direct_subgroups": []}
    path = f"/streams/{channel}"
    assert (await org["ann"].patch(path, can_subscribe_group={"new": only})).ok
    assert [event["op"] for event in await channel_events(cleo)] == ["create", "peer_add"]
    assert (await org["ann"].patch(path, can_subscribe_group={"new": 1, "old": only})).ok
    assert [event["op"] for event in await channel_events(cleo)] == ["delete"]
    assert await ben.events() == []


# Archiving


async def test_an_archived_channel_is_closed_and_can_be_restored(org: Organization) -> None:
    channel = await org.channel("den", "ann", "ben", is_default=True)
    path = f"/streams/{channel}"
    (await org["ben"].delete(path)).refused()
    assert (await org["ann"].delete(path)).ok
    (await org["ann"].delete(path)).refused()
    shown = (await org["ben"].get(path)).ok["stream"]
    assert shown["is_archived"] is True
    assert await listed(org, "ben") == []
    assert (await org["ben"].get("/users/me/subscriptions")).ok["subscriptions"] == []
    (
        await org["ben"].post("/messages", type="stream", to=channel, topic="x", content="y")
    ).refused()
    assert (await org["ann"].patch(path, is_archived=False)).ok
    assert await listed(org, "ben") == ["den"]
    assert (await org["ben"].get("/streams", include_default=True)).ok["streams"][0][
        "is_default"
    ] is False
    await org["ben"].send("den", "x", "y")


async def test_archiving_events_depend_on_the_client_s_capability(org: Organization) -> None:
    channel = await org.channel("den", "ben")
    path = f"/streams/{channel}"
    new = await org["ben"].register(client_capabilities=ARCHIVED)
    old, other = await org["ben"].register(), await org["cleo"].register()
    assert (await org["ann"].delete(path)).ok
    (event,) = await channel_events(new)
    assert (event["op"], event["property"], event["value"]) == ("update", "is_archived", True)
    assert [event["op"] for event in await channel_events(old)] == ["delete"]
    assert [event["op"] for event in await channel_events(other)] == ["delete"]
    assert (await org["ann"].patch(path, new_name="lair")).ok
    assert [event["property"] for event in await channel_events(new)] == ["name"]
    assert await channel_events(old) == []
    assert (await org["ann"].patch(path, is_archived=False)).ok
    assert [event["property"] for event in await channel_events(new)] == ["is_archived"]
    create, add = await channel_events(old)
    assert (create["type"], create["op"]) == ("stream", "create")
    assert create["streams"][0]["name"] == "lair"
    assert (add["type"], add["op"]) == ("subscription", "add")
    assert [event["op"] for event in await channel_events(other)] == ["create", "peer_add"]


async def test_archiving_a_private_channel_is_hidden_from_others(org: Organization) -> None:
    channel = await org.channel("vault", "ann", is_private=True)
    listeners = [
        await org["cleo"].register(),
        await org["cleo"].register(client_capabilities=ARCHIVED),
    ]
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    assert (await org["ann"].patch(f"/streams/{channel}", is_archived=False)).ok
    assert [await listener.events() for listener in listeners] == [[], []]


async def test_archiving_a_default_channel_removes_it_from_the_list(org: Organization) -> None:
    channel = await org.channel("den", is_default=True)
    ben = await org["ben"].register(event_types=["default_streams"])
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    (event,) = await ben.events()
    assert event["default_streams"] == []


# Default channels


async def test_administrators_choose_default_channels(org: Organization) -> None:
    channel = await org.channel("den")
    vault = await org.channel("vault", "ann", is_private=True)
    ben, gus = await org["ben"].register(), await org["gus"].register()
    (await org["ben"].post("/default_streams", stream_id=channel)).refused("UNAUTHORIZED_PRINCIPAL")
    assert (await org["ann"].post("/default_streams", stream_id=channel)).ok
    assert [event["default_streams"] for event in await ben.events()] == [[channel]]
    assert (await org["ann"].delete("/default_streams", stream_id=channel)).ok
    assert [event["default_streams"] for event in await ben.events()] == [[]]
    assert await gus.events() == []
    for refused in (vault, 99):
        (await org["ann"].post("/default_streams", stream_id=refused)).refused()


# After a restart


async def test_channel_events_read_from_the_log_are_the_same(config: Config) -> None:
    def comparable(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [event for event in events if event["type"] != "message"]

    async with new_organization(config) as org:
        ben = await org.add("ben")
        listener = await ben.register(include_subscribers=True)
        ann = org["ann"]
        both = [ann.user_id, ben.user_id]
        made = await ann.post("/channels/create", name="den", subscribers=both, invite_only=True)
        path = f"/streams/{made.ok['id']}"
        members = {"direct_members": both, "direct_subgroups": [3]}
        assert (await ann.patch(path, can_send_message_group={"new": members})).ok
        assert (await ann.patch(path, topics_policy="disable_empty_topic", is_private=False)).ok
        assert (await ben.delete("/users/me/subscriptions", subscriptions=["den"])).ok
        before = comparable(await listener.events(acknowledge=False))
        assert len(before) > 5
    async with open_organization(config) as again:
        resumed = Listener(again["ben"], listener.queue_id, listener.last_event_id, {})
        assert comparable(await resumed.events()) == before


async def test_a_channel_cannot_be_named_like_one_that_looks_alike(org: Organization) -> None:
    ann = org["ann"]
    channel_id = await org.channel("payroll", "ann")
    other_id = await org.channel("lounge", "ann")
    imitated = "p\u0430yroll"
    for name in (imitated, "pay\u200broll", "\uff50ayroll"):
        listed = [{"name": name}]
        (await ann.post("/users/me/subscriptions", subscriptions=listed)).refused("BAD_REQUEST")
        (await ann.patch(f"/streams/{other_id}", new_name=name)).refused("BAD_REQUEST")
    twins = [{"name": "l\u0435dger"}, {"name": "ledger"}]
    (await ann.post("/users/me/subscriptions", subscriptions=twins)).refused("BAD_REQUEST")
    (await ann.patch(f"/streams/{channel_id}", new_name="Payroll")).ok


async def test_existing_names_that_look_alike_keep_working(org: Organization) -> None:
    ann = org["ann"]
    await org.channel("payroll", "ann")
    imitation = await org.channel("p\u0430yroll", "ann")
    assert await ann.send("p\u0430yroll", "t", "hello")
    (await ann.patch(f"/streams/{imitation}", description="the other one")).ok
    (await ann.patch(f"/streams/{imitation}", new_name="payments")).ok
