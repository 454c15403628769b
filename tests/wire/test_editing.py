"""Editing, moving, and deleting messages: permissions and events."""

import asyncio
import hashlib
from typing import Any

import pytest

from tertulia.model.changes import ChannelChanged, RealmChanged
from tertulia.model.groups import Members, SystemGroup
from tertulia.service.config import Config
from tests.support import Listener, Organization, TestClock, new_organization, rows

EVERYTHING = {
    "bulk_message_deletion": True,
    "empty_topic_name": True,
    "archived_channels": True,
}


async def events(listener: Listener, kind: str) -> list[dict[str, Any]]:
    """Return the new events of this type."""
    return [event for event in await listener.events() if event["type"] == kind]


async def contents(org: Organization, who: str, channel: str, topic: str) -> list[str]:
    """Return the messages that someone finds in a topic."""
    narrow = [["channel", channel], ["topic", topic]]
    page = await org[who].get(
        "/messages",
        anchor="oldest",
        num_before=0,
        num_after=50,
        narrow=narrow,
        apply_markdown=False,
    )
    return [message["content"] for message in page.ok["messages"]]


async def subscribe(org: Organization, channel: str, who: str) -> None:
    """Let Ann subscribe someone."""
    principals = [org[who].user_id]
    subscriptions = [{"name": channel}]
    path = "/users/me/subscriptions"
    assert (await org["ann"].post(path, subscriptions=subscriptions, principals=principals)).ok


# Editing


async def test_an_edit_has_an_event_and_a_history(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    ben = await org["ben"].register(client_capabilities=EVERYTHING, apply_markdown=True)
    mid = await org["ann"].send("lounge", "tea", "**one**")
    await ben.events()
    assert (await org["ann"].patch(f"/messages/{mid}", content="*two*")).ok
    (event,) = await events(ben, "update_message")
    when = event.pop("edit_timestamp")
    event.pop("id")
    assert event == {
        "type": "update_message",
        "user_id": org["ann"].user_id,
        "rendering_only": False,
        "message_id": mid,
        "message_ids": [mid],
        "flags": [],
        "stream_id": lounge,
        "stream_name": "lounge",
        "orig_content": "**one**",
        "orig_rendered_content": "<p><strong>one</strong></p>",
        "content": "*two*",
        "rendered_content": "<p><em>two</em></p>",
        "is_me_message": False,
    }
    message = (await org["ben"].get(f"/messages/{mid}")).ok["message"]
    assert message["content"] == "<p><em>two</em></p>"
    assert message["last_edit_timestamp"] == when
    assert message["edit_history"] == [
        {
            "timestamp": when,
            "user_id": org["ann"].user_id,
            "prev_content": "**one**",
            "prev_rendered_content": "<p><strong>one</strong></p>",
        }
    ]


async def test_an_edited_message_is_found_only_by_its_new_words(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    mid = await org["ann"].send("lounge", "tea", "almond")
    assert (await org["ann"].patch(f"/messages/{mid}", content="walnut")).ok

    async def found(word: str) -> list[int]:
        page = await org["ben"].get(
            "/messages", anchor="newest", num_before=5, num_after=0, narrow=[["search", word]]
        )
        return [message["id"] for message in page.ok["messages"]]

    assert await found("walnut") == [mid]
    assert await found("almond") == []


async def test_an_edit_adds_and_removes_mentions(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    ben, cleo = [await org[name].register() for name in ("ben", "cleo")]
    mid = await org["ann"].send("lounge", "tea", "@**Ben** look")
    assert (await org["ann"].patch(f"/messages/{mid}", content="@**Cleo** look")).ok
    assert [e["flags"] for e in await events(ben, "update_message")] == [[]]
    assert [e["flags"] for e in await events(cleo, "update_message")] == [["mentioned"]]
    for name, mentions in (("ben", []), ("cleo", [mid])):
        data = (await org[name].register(fetch_event_types=None)).data
        assert data["unread_msgs"]["mentions"] == mentions, name


async def test_an_edited_message_stays_read(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    mid = await org["ann"].send("lounge", "tea", "one")
    assert (await org["ben"].post("/messages/flags", messages=[mid], op="add", flag="read")).ok
    ben = await org["ben"].register()
    assert (await org["ann"].patch(f"/messages/{mid}", content="two")).ok
    (event,) = await events(ben, "update_message")
    assert event["flags"] == ["read"]


async def test_an_empty_content_is_shown_as_deleted(org: Organization) -> None:
    await org.channel("lounge", "ann")
    mid = await org["ann"].send("lounge", "tea", "one")
    assert (await org["ann"].patch(f"/messages/{mid}", content="  ")).ok
    assert await contents(org, "ann", "lounge", "tea") == ["(deleted)"]


@pytest.fixture(scope="module")
async def tea(shared_org: Organization) -> int:
    """A message by ben in a channel of everyone."""
    await shared_org.channel("lounge", "ann", "ben", "cleo")
    return await shared_org["ben"].send("lounge", "tea", "one")


@rows(
    ("who", "changes"),
    [
        ("ben", {}),
        ("cleo", {"content": "two"}),
        ("ben", {"content": "two", "stream_id": 1}),
        ("ben", {"content": "two", "propagate_mode": "change_all"}),
        ("ben", {"content": "nul\0l"}),
        ("ben", {"topic": "tea"}),
    ],
    ids=[
        "nothing",
        "of somebody else",
        "and move to a channel",
        "and propagate",
        "null byte",
        "to where it is",
    ],
)
async def test_an_invalid_edit_is_refused(
    tea: int, readonly_org: Organization, who: str, changes: dict[str, Any]
) -> None:
    reply = await readonly_org[who].patch(f"/messages/{tea}", **changes)
    assert reply.status == 400
    assert await contents(readonly_org, "ann", "lounge", "tea") == ["one"]


async def test_an_invisible_message_looks_like_an_unknown_one(org: Organization) -> None:
    await org.channel("attic", "ann", is_private=True)
    mid = await org["ann"].send("attic", "tea", "secret")
    for method, path in (
        ("PATCH", "/messages/{}"),
        ("DELETE", "/messages/{}"),
        ("GET", "/messages/{}/history"),
    ):
        replies = [
            await org["ben"].request(method, path.format(one), content="x") for one in (mid, 999)
        ]
        assert replies[0].body == replies[1].body
        replies[0].refused()


@pytest.mark.parametrize(
    ("limit", "age", "allowed"),
    [(600, 0, True), (600, 615, True), (600, 700, False), (None, 10**6, True)],
    ids=["in time", "within the grace", "too late", "without a limit"],
)
async def test_editing_has_a_time_limit(
    config: Config, limit: int | None, age: int, allowed: bool
) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.channel("lounge", "ann")
        values = {"message_content_edit_limit_seconds": limit}
        await org.do(RealmChanged(values=values))
        mid = await org["ann"].send("lounge", "tea", "one")
        clock.ahead = age
        reply = await org["ann"].patch(f"/messages/{mid}", content="two")
        assert (reply.status == 200) is allowed


async def test_an_organization_can_disable_editing(org: Organization) -> None:
    await org.channel("lounge", "ann")
    mid = await org["ann"].send("lounge", "tea", "one")
    await org.do(RealmChanged(values={"allow_message_editing": False}))
    (await org["ann"].patch(f"/messages/{mid}", content="two")).refused()


async def test_an_edit_of_a_message_changed_in_the_meantime_is_refused(org: Organization) -> None:
    await org.channel("lounge", "ann")
    mid = await org["ann"].send("lounge", "tea", "one")
    seen = hashlib.sha256(b"one").hexdigest()
    path = f"/messages/{mid}"
    assert (await org["ann"].patch(path, content="two", prev_content_sha256=seen)).ok
    reply = await org["ann"].patch(path, content="three", prev_content_sha256=seen)
    reply.refused("EXPECTATION_MISMATCH")


# Moving


MOVES = [
    ("change_one", ["b"], ["a", "c"]),
    ("change_later", ["b", "c"], ["a"]),
    ("change_all", ["a", "b", "c"], []),
]


@pytest.mark.parametrize(("mode", "moved", "left"), MOVES)
async def test_messages_move_to_another_topic(
    org: Organization, mode: str, moved: list[str], left: list[str]
) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    ids = {text: await org["ben"].send("lounge", "tea", text) for text in "abc"}
    ann = await org["ann"].register(client_capabilities=EVERYTHING)
    reply = await org["ben"].patch(
        f"/messages/{ids['b']}",
        topic="coffee",
        propagate_mode=mode,
        send_notification_to_new_thread=False,
    )
    assert reply.ok
    (event,) = await events(ann, "update_message")
    assert event["message_ids"] == [ids[text] for text in moved]
    assert event["message_id"] == ids["b"]
    assert (event["propagate_mode"], event["orig_subject"], event["subject"]) == (
        *(mode, "tea"),
        "coffee",
    )
    assert (event["stream_id"], event["topic_links"]) == (lounge, [])
    assert "new_stream_id" not in event
    assert "content" not in event
    assert await contents(org, "ann", "lounge", "coffee") == moved
    assert await contents(org, "ann", "lounge", "tea") == left
    topics = (await org["ann"].get(f"/users/me/{lounge}/topics")).ok["topics"]
    expected = {"coffee": ids[moved[-1]], **({"tea": ids[left[-1]]} if left else {})}
    assert {topic["name"]: topic["max_id"] for topic in topics} == expected
    message = (await org["ann"].get(f"/messages/{ids['b']}")).ok["message"]
    assert message["last_moved_timestamp"] == event["edit_timestamp"]
    assert message["edit_history"][0]["prev_topic"] == "tea"


async def test_messages_move_to_another_channel(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben", "gus")
    attic = await org.channel("attic", "ann", "cleo", is_private=True)
    mid = await org["ann"].send("lounge", "tea", "hello")
    people = {
        name: await org[name].register(client_capabilities=EVERYTHING)
        for name in ("ann", "ben", "cleo", "gus")
    }
    assert (
        await org["ann"].patch(
            f"/messages/{mid}", stream_id=attic, send_notification_to_new_thread=False
        )
    ).ok
    for name in ("ann", "cleo"):
        (event,) = await events(people[name], "update_message")
        assert (event["stream_id"], event["new_stream_id"]) == (lounge, attic)
        assert "subject" not in event
    for name in ("ben", "gus"):
        (event,) = await events(people[name], "delete_message")
        assert (event["message_ids"], event["stream_id"]) == ([mid], lounge)
        (await org[name].get(f"/messages/{mid}")).refused()
    assert await contents(org, "cleo", "attic", "tea") == ["hello"]
    state = org.node.state
    assert state.channels[lounge].first_message_id is None
    assert state.channels[attic].first_message_id == mid
    # A new reader has nothing unread.
    unread = (await org["cleo"].register()).data["unread_msgs"]
    assert unread["streams"] == []


async def test_unreadable_moved_messages_are_not_unread(
    org: Organization,
) -> None:
    await org.channel("lounge", "ann", "ben")
    mid = await org["ann"].send("lounge", "tea", "hot")
    attic = await org.channel("attic", "ann", "ben", is_private=True, history_public=False)
    (await org["ann"].patch(f"/messages/{mid}", stream_id=attic)).ok
    (await org["ben"].get(f"/messages/{mid}")).refused()
    unread = (await org["ben"].register()).data["unread_msgs"]["streams"]
    assert all(mid not in topic["unread_message_ids"] for topic in unread)


async def test_unread_messages_stay_unread_in_the_new_channel(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    mid = await org["ann"].send("lounge", "tea", "hello")
    attic = await org.channel("attic", "ann", "ben")
    assert (
        await org["ann"].patch(
            f"/messages/{mid}", stream_id=attic, send_notification_to_new_thread=False
        )
    ).ok
    for name, streams in (
        ("ben", [{"stream_id": attic, "topic": "tea", "unread_message_ids": [mid]}]),
        ("cleo", []),
    ):
        data = (await org[name].register()).data
        assert data["unread_msgs"]["streams"] == streams, name


@pytest.mark.parametrize(
    ("old", "new", "topic", "notices"),
    [
        (False, True, "coffee", [0, 1]),
        (True, False, "coffee", [1, 0]),
        (False, False, "coffee", [0, 0]),
    ],
)
async def test_a_move_leaves_notices_on_request(
    org: Organization, old: bool, new: bool, topic: str, notices: list[int]
) -> None:
    await org.channel("lounge", "ann", "ben")
    first = await org["ann"].send("lounge", "tea", "one")
    await org["ann"].send("lounge", "tea", "two")
    reply = await org["ann"].patch(
        f"/messages/{first}",
        topic=topic,
        send_notification_to_old_thread=old,
        send_notification_to_new_thread=new,
    )
    assert reply.ok
    there = await contents(org, "ben", "lounge", topic)
    here = await contents(org, "ben", "lounge", "tea")
    assert [len(here) - 1, len(there) - 1] == notices


async def test_a_topic_is_resolved_and_reopened(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    mid = await org["ann"].send("lounge", "tea", "one")
    for topic, word in (("✔ tea", "resolved"), ("tea", "unresolved")):
        reply = await org["ben"].patch(f"/messages/{mid}", topic=topic, propagate_mode="change_all")
        assert reply.ok
        said = await contents(org, "ann", "lounge", topic)
        assert said[0] == "one"
        assert said[-1].endswith(f"marked this topic as {word}.")
    message = (await org["ann"].get(f"/messages/{mid}")).ok["message"]
    assert "last_moved_timestamp" not in message


RIGHTS = [
    ("can_move_messages_between_topics_group", {"topic": "coffee"}, None),
    ("can_resolve_topics_group", {"topic": "✔ tea"}, None),
    ("can_move_messages_between_channels_group", {"stream_id": "attic"}, None),
    (
        "can_move_messages_between_topics_group",
        {"topic": "coffee"},
        "can_move_messages_within_channel_group",
    ),
    ("can_resolve_topics_group", {"topic": "✔ tea"}, "can_resolve_topics_group"),
    (
        "can_move_messages_between_channels_group",
        {"stream_id": "attic"},
        "can_move_messages_out_of_channel_group",
    ),
]


@pytest.mark.parametrize(("setting", "change", "instead"), RIGHTS)
async def test_moving_needs_permission_of_the_organization_or_channel(
    org: Organization, setting: str, change: dict[str, Any], instead: str | None
) -> None:
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    attic = await org.channel("attic", "ann", "ben", "cleo")
    if "stream_id" in change:
        change = {"stream_id": attic}
    await org.do(RealmChanged(values={setting: SystemGroup.NOBODY.value}))
    if instead is not None:
        holders = Members((org["ben"].user_id,))
        await org.do(ChannelChanged(channel_id=lounge, values={instead: holders}, was={instead: 1}))
    mid = await org["ann"].send("lounge", "tea", "one")
    (await org["cleo"].patch(f"/messages/{mid}", **change)).refused()
    reply = await org["ben"].patch(f"/messages/{mid}", **change)
    assert (reply.status == 200) is (instead is not None)


async def test_messages_move_only_to_where_the_mover_can_post(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    hall = await org.channel(
        "hall", "ann", "ben", can_send_message_group=SystemGroup.ADMINISTRATORS.value
    )
    cellar = await org.channel("cellar", "ann", is_private=True)
    mid = await org["ben"].send("lounge", "tea", "one")
    (await org["ben"].patch(f"/messages/{mid}", stream_id=hall)).refused()
    (await org["ben"].patch(f"/messages/{mid}", stream_id=cellar)).refused("STREAM_DOES_NOT_EXIST")
    (await org["ben"].patch(f"/messages/{mid}", stream_id=999)).refused("STREAM_DOES_NOT_EXIST")


async def test_a_direct_message_cannot_be_moved(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann")
    mid = await org["ann"].write([org["ben"].user_id], "psst")
    for change in ({"topic": "tea"}, {"stream_id": lounge}):
        (await org["ann"].patch(f"/messages/{mid}", **change)).refused()


async def test_moving_has_a_time_limit(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        await org.channel("lounge", "ann", "ben")
        old = await org["ann"].send("lounge", "tea", "old")
        clock.ahead = 604800 + 60
        young = await org["ann"].send("lounge", "tea", "young")
        (await org["ben"].patch(f"/messages/{old}", topic="coffee")).refused()
        reply = await org["ben"].patch(
            f"/messages/{old}", topic="coffee", propagate_mode="change_all"
        )
        body = reply.refused("MOVE_MESSAGES_TIME_LIMIT_EXCEEDED")
        assert body["first_message_id_allowed_to_move"] == young
        assert (body["total_messages_in_topic"], body["total_messages_allowed_to_move"]) == (2, 1)
        reply = await org["ben"].patch(
            f"/messages/{young}", topic="coffee", propagate_mode="change_later"
        )
        assert reply.ok
        reply = await org["ann"].patch(f"/messages/{old}", topic="coffee")
        assert reply.ok, "owners move what they like"


# Deleting


async def test_a_deleted_message_is_gone_for_everyone(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    ben = await org["ben"].register(client_capabilities=EVERYTHING)
    old = await org["ben"].register()
    keep = await org["ann"].send("lounge", "tea", "stay")
    mid = await org["ann"].send("lounge", "tea", "walnut")
    await ben.events()
    await old.events()
    assert (await org["ann"].delete(f"/messages/{mid}")).ok
    (event,) = await events(ben, "delete_message")
    event.pop("id")
    assert event == {
        "type": "delete_message",
        "message_ids": [mid],
        "message_type": "stream",
        "stream_id": lounge,
        "topic": "tea",
    }
    (event,) = await events(old, "delete_message")
    assert event["message_id"] == mid
    assert "message_ids" not in event
    (await org["ben"].get(f"/messages/{mid}")).refused()
    (await org["ann"].delete(f"/messages/{mid}")).refused()
    assert await contents(org, "ben", "lounge", "tea") == ["stay"]
    page = await org["ben"].get(
        "/messages", anchor="newest", num_before=5, num_after=0, narrow=[["search", "walnut"]]
    )
    assert page.ok["messages"] == []
    (topic,) = (await org["ben"].get(f"/users/me/{lounge}/topics")).ok["topics"]
    assert topic["max_id"] == keep


async def test_a_late_poll_does_not_contain_a_deleted_message(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ben = await org["ben"].register()
    mid = await org["ann"].send("lounge", "tea", "secret")
    assert (await org["ann"].patch(f"/messages/{mid}", content="more secret")).ok
    assert (await org["ann"].delete(f"/messages/{mid}")).ok
    told = await ben.events()
    assert [event["type"] for event in told] == ["delete_message", "stream"]
    assert "secret" not in str(told)


async def test_a_new_subscriber_of_a_private_channel_gets_no_earlier_deletions(
    org: Organization,
) -> None:
    """Neither that a message existed nor its topic."""
    vault = await org.channel("vault", "ann", "gus", is_private=True)
    ben, gus = [await org[who].register() for who in ("ben", "gus")]
    mid = await org["ann"].send("vault", "firing ben", "secret")
    assert (await org["ann"].delete(f"/messages/{mid}")).ok
    await subscribe(org, "vault", "ben")
    told = await ben.events()
    assert "subscription" in {event["type"] for event in told}
    assert "delete_message" not in {event["type"] for event in told}
    assert "firing" not in str(told)
    (event,) = [event for event in await gus.events() if event["type"] == "delete_message"]
    assert (event["message_id"], event["stream_id"]) == (mid, vault)


async def test_a_deletion_event_names_only_messages_the_client_could_read(
    org: Organization,
) -> None:
    """In a channel with a protected history, those sent after the reader joined."""
    vault = await org.channel("vault", "ann", is_private=True, history_public=False)
    early = await org["ann"].send("vault", "t", "early")
    await subscribe(org, "vault", "ben")
    late = [await org["ann"].send("vault", "t", text) for text in ("late", "later")]
    ben = await org["ben"].register(client_capabilities=EVERYTHING)
    ann = await org["ann"].register(client_capabilities=EVERYTHING)
    assert (await org["ann"].post(f"/streams/{vault}/delete_topic", topic_name="t")).ok
    assert [event["message_ids"] for event in await events(ben, "delete_message")] == [late]
    told = [event["message_ids"] for event in await events(ann, "delete_message")]
    assert told == [[early, *late]]


async def test_an_id_is_never_reused(org: Organization) -> None:
    await org.channel("lounge", "ann")
    mid = await org["ann"].send("lounge", "tea", "one")
    assert (await org["ann"].delete(f"/messages/{mid}")).ok
    assert await org["ann"].send("lounge", "tea", "two") > mid


async def test_a_direct_message_is_deleted_by_its_sender(org: Organization) -> None:
    ben = await org["ben"].register(client_capabilities=EVERYTHING)
    mid = await org["ann"].write([org["ben"].user_id], "psst")
    await ben.events()
    (await org["cleo"].delete(f"/messages/{mid}")).refused()
    assert (await org["ann"].delete(f"/messages/{mid}")).ok
    (event,) = await events(ben, "delete_message")
    assert (event["message_type"], event["message_ids"]) == ("private", [mid])
    assert (await org["ben"].register()).data["unread_msgs"]["count"] == 0


@pytest.mark.parametrize(
    ("who", "age", "allowed"),
    [
        ("ann", 10**6, True),
        ("ben", 0, True),
        ("ben", 700, False),
        ("cleo", 0, False),
    ],
    ids=["an administrator", "the sender", "the sender, too late", "somebody else"],
)
async def test_who_can_delete(config: Config, who: str, age: int, allowed: bool) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        await org.add("cleo")
        await org.channel("lounge", "ann", "ben", "cleo")
        mid = await org["ben"].send("lounge", "tea", "one")
        clock.ahead = age
        reply = await org[who].delete(f"/messages/{mid}")
        assert (reply.status == 200) is allowed


async def test_bot_owners_can_delete_their_bots_messages(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "robo")
    mid = await org["robo"].send("lounge", "tea", "beep")
    assert (await org["ben"].delete(f"/messages/{mid}")).ok


@pytest.mark.parametrize(
    "setting", ["can_delete_any_message_group", "can_delete_own_message_group"]
)
async def test_a_channel_can_allow_deleting(org: Organization, setting: str) -> None:
    nobody = SystemGroup.NOBODY.value
    await org.do(
        RealmChanged(
            values={
                "can_delete_any_message_group": nobody,
                "can_delete_own_message_group": nobody,
            }
        )
    )
    lounge = await org.channel("lounge", "ann", "ben")
    mid = await org["ben"].send("lounge", "tea", "one")
    (await org["ben"].delete(f"/messages/{mid}")).refused()
    holders = Members((org["ben"].user_id,))
    await org.do(ChannelChanged(channel_id=lounge, values={setting: holders}, was={setting: 1}))
    assert (await org["ben"].delete(f"/messages/{mid}")).ok


async def test_a_whole_topic_is_deleted(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    for text in "abc":
        await org["ben"].send("lounge", "tea", text)
    kept = await org["ben"].send("lounge", "coffee", "d")
    path = f"/streams/{lounge}/delete_topic"
    (await org["ben"].post(path, topic_name="tea")).refused("UNAUTHORIZED_PRINCIPAL")
    (await org["ann"].post("/streams/9999/delete_topic", topic_name="tea")).refused("BAD_REQUEST")
    assert (await org["ann"].post(path, topic_name="TEA")).ok["complete"] is True
    assert await contents(org, "ben", "lounge", "tea") == []
    assert org.node.state.channels[lounge].first_message_id == kept
    assert (await org["ann"].post(path, topic_name="no such topic")).ok["complete"] is True


# History


async def test_the_history_goes_from_the_first_version_to_the_last(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann")
    attic = await org.channel("attic", "ann")
    mid = await org["ann"].send("lounge", "tea", "one")
    path = f"/messages/{mid}"
    quiet = {"send_notification_to_new_thread": False}
    assert (await org["ann"].patch(path, content="two")).ok
    assert (await org["ann"].patch(path, topic="coffee", **quiet)).ok
    assert (await org["ann"].patch(path, stream_id=attic, **quiet)).ok
    history = (await org["ann"].get(f"{path}/history")).ok["message_history"]
    shown = [(one["topic"], one["content"]) for one in history]
    assert shown == [("tea", "one"), ("tea", "two"), ("coffee", "two"), ("coffee", "two")]
    assert history[1]["prev_content"] == "one"
    assert history[2]["prev_topic"] == "tea"
    assert (history[3]["prev_stream"], history[3]["stream"]) == (lounge, attic)


@pytest.mark.parametrize(
    ("policy", "entries", "shown"),
    [
        ("all", 3, [("tea", "one"), ("tea", "two"), ("coffee", "two"), ("coffee", "three")]),
        ("moves", 1, [("tea", "three"), ("coffee", "three")]),
        ("none", 0, None),
    ],
)
async def test_the_organization_decides_how_much_history_is_shown(
    org: Organization, policy: str, entries: int, shown: list[tuple[str, str]] | None
) -> None:
    await org.channel("lounge", "ann", "ben")
    mid = await org["ann"].send("lounge", "tea", "one")
    assert (await org["ann"].patch(f"/messages/{mid}", content="two")).ok
    assert (await org["ann"].patch(f"/messages/{mid}", topic="coffee")).ok
    assert (await org["ann"].patch(f"/messages/{mid}", content="three")).ok
    await org.do(RealmChanged(values={"message_edit_history_visibility_policy": policy}))
    message = (await org["ben"].get(f"/messages/{mid}")).ok["message"]
    assert len(message.get("edit_history", [])) == entries
    reply = await org["ben"].get(f"/messages/{mid}/history")
    if shown is None:
        reply.refused()
        return
    history = reply.ok["message_history"]
    assert [(one["topic"], one["content"]) for one in history] == shown
    before = [one["prev_content"] for one in history if "prev_content" in one]
    assert before == (["one", "two"] if policy == "all" else [])


EVERYBODY = dict.fromkeys(
    (
        "can_delete_any_message_group",
        "can_delete_own_message_group",
        "can_move_messages_out_of_channel_group",
        "can_move_messages_within_channel_group",
        "can_resolve_topics_group",
    ),
    SystemGroup.EVERYONE.value,
)


@pytest.mark.parametrize(
    ("method", "sent"),
    [
        ("DELETE", {}),
        ("PATCH", {"topic": "coffee"}),
        ("PATCH", {"topic": "✔ tea"}),
        ("PATCH", {"stream_id": "lounge"}),
    ],
    ids=["delete", "move within", "resolve", "move out"],
)
async def test_permissions_do_not_apply_in_an_unreadable_channel(
    org: Organization, method: str, sent: dict[str, Any]
) -> None:
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    await org.channel("den", "ben", "cleo", is_private=True, **EVERYBODY)
    message = await org["ben"].send("den", "tea", "a")
    given = {name: lounge if name == "stream_id" else value for name, value in sent.items()}
    (await org["ann"].request(method, f"/messages/{message}", **given)).refused()
    assert (await org["cleo"].request(method, f"/messages/{message}", **given)).ok


async def test_quotations_of_a_deleted_message_remain(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    said = await org["ben"].send("lounge", "tea", "green or black?")
    link = f"#narrow/channel/{lounge}-lounge/topic/tea/near/{said}"
    quoted = f"@_**Ben|{org['ben'].user_id}** [said]({link}):\n```quote\ngreen or black?\n```\nboth"
    deleted, sent = await asyncio.gather(
        org["ann"].delete(f"/messages/{said}"),
        org["ben"].post("/messages", type="channel", to=lounge, topic="tea", content=quoted),
    )
    assert deleted.ok
    assert sent.ok
    for who in ("ann", "ben"):
        (await org[who].get(f"/messages/{said}")).refused()
        answer = (await org[who].get(f"/messages/{sent.body['id']}")).ok
        assert "green or black?" in answer["message"]["content"]
        found = await org[who].get(
            "/messages", anchor=said, num_before=5, num_after=5, narrow=[["search", '"or black"']]
        )
        assert [message["id"] for message in found.ok["messages"]] == [sent.body["id"]]
    (await org["ben"].patch(f"/messages/{sent.body['id']}", content=quoted + "!")).ok


@pytest.mark.parametrize("topic", [" ", "   \u3000 ", "\u00a0"])
async def test_a_topic_of_only_spaces_is_the_empty_topic(org: Organization, topic: str) -> None:
    lounge = await org.channel("lounge", "ann")
    said = await org["ann"].send("lounge", "tea", "hi")
    (await org["ann"].patch(f"/messages/{said}", topic=topic)).ok
    shown = (await org["ann"].get(f"/messages/{said}", allow_empty_topic_name=True)).ok
    assert shown["message"]["subject"] == ""
    assert await org["ann"].send(lounge, topic, "there") > said


async def test_an_edit_with_a_refused_move_changes_nothing(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    groups = (await org["ann"].get("/user_groups")).ok["user_groups"]
    administrators = next(one["id"] for one in groups if one["name"] == "role:administrators")
    limited = {"can_move_messages_between_topics_group": {"new": administrators}}
    (await org["ann"].patch("/realm", **limited)).ok
    sent = await org["ben"].send("lounge", "t", "before")
    path = f"/messages/{sent}"
    listener = await org["ann"].register()
    for refused in ({"topic": "elsewhere"}, {"topic": "x\ny"}, {"stream_id": 10**6}):
        assert (await org["ben"].patch(path, content="after", **refused)).status == 400
    assert await listener.events() == []
    # Moving to the current topic is no move.
    (await org["ben"].patch(path, content="after", topic="t")).ok
    (await org["ann"].patch(path, topic="u")).ok
    kinds = [sorted({"content", "subject"} & event.keys()) for event in await listener.events()]
    assert kinds[:2] == [["content"], ["subject"]]
    own = await org["ann"].send("lounge", "t", "mine")
    (await org["ann"].patch(f"/messages/{own}", content="edited", topic="v")).ok
    message = (await org["ann"].get(f"/messages/{own}", apply_markdown=False)).ok["message"]
    assert (message["subject"], message["content"]) == ("v", "edited")
