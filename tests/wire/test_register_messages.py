"""Messages in POST /register."""

import json

from tertulia.model.changes import (
    SubscriptionChanged,
)
from tertulia.wire.api.messages.unread import unread_messages
from tertulia.wire.http.responses import Fragments, body_of
from tests.support import Listener, Organization
from tests.wire.sample_organization import Data, flag


def unread(listener: Listener) -> Data:
    found: Data = listener.data["unread_msgs"]
    return found


async def test_unread_messages_are_grouped_by_conversation(org: Organization) -> None:
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


async def test_unread_messages_follow_sending_and_reading_immediately(org: Organization) -> None:
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


async def test_messages_to_oneself_are_a_conversation(org: Organization) -> None:
    ben = org["ben"].user_id
    note = await org["ben"].write([ben], "remember")
    await flag(org, "ben", "remove", "read", note)
    listener = await org["ben"].register()
    expected = {"other_user_id": ben, "sender_id": ben, "unread_message_ids": [note]}
    assert unread(listener)["pms"] == [expected]
    conversations = listener.data["recent_private_conversations"]
    assert conversations == [{"max_message_id": note, "user_ids": []}]


async def test_the_count_excludes_muted_channels(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    await org["ann"].send("lounge", "a", "hello")
    muted = SubscriptionChanged(
        channel_id=lounge, user_id=org["ben"].user_id, property="is_muted", value=True
    )
    assert unread(await org["ben"].register())["count"] == 1
    await org.do(muted)
    found = unread(await org["ben"].register())
    assert (found["count"], len(found["streams"])) == (0, 1)


async def test_of_too_many_unread_messages_the_newest_are_returned(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ben = org["ben"].user_id
    await org["ann"].send("lounge", "old", "1")
    two = await org["ann"].send("lounge", "new", "2")
    three = await org["ann"].write([ben], "3")
    await org["ben"].register()
    state = org.node.state
    shown = unread_messages(
        state, state.users[ben], Fragments(), {}, limit=2, empty_topic_name=True
    )
    found = json.loads(body_of(shown.parts, None)[0])
    assert [topic["unread_message_ids"] for topic in found["streams"]] == [[two]]
    assert [direct["unread_message_ids"] for direct in found["pms"]] == [[three]]
    assert (found["count"], found["old_unreads_missing"]) == (2, True)


async def test_starred_messages_are_the_viewer_s_own(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ids = [await org["ann"].send("lounge", "a", str(n)) for n in range(3)]
    await flag(org, "ben", "add", "starred", *ids[:2])
    await flag(org, "ben", "remove", "starred", ids[0])
    assert (await org["ben"].register()).data["starred_messages"] == [ids[1]]
    assert (await org["ann"].register()).data["starred_messages"] == []


async def test_without_messages_the_newest_id_is_minus_one(
    org: Organization,
) -> None:
    assert (await org["ben"].register()).data["max_message_id"] == -1


async def test_the_snapshot_ends_where_the_queue_starts(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    before = await org["ann"].send("lounge", "a", "before")
    listener = await org["ben"].register()
    after = await org["ann"].send("lounge", "a", "after")
    assert unread(listener)["streams"][0]["unread_message_ids"] == [before]
    assert [event["message"]["id"] for event in await listener.events()] == [after]
