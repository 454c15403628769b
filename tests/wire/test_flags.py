"""Message flags: read, starred, and collapsed; topics; and typing notifications."""

from typing import Any

import pytest

from tertulia.model.changes import Subscribed, Unsubscribed, UserDeactivated
from tests.support import Organization, Person, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")


async def _flag(who: Person, op: str, flag: str, *ids: int) -> dict[str, Any]:
    return (await who.post("/messages/flags", messages=list(ids), op=op, flag=flag)).ok


async def _flags(who: Person, message_id: int) -> list[str]:
    flags: list[str] = (await who.get(f"/messages/{message_id}")).ok["message"]["flags"]
    return flags


@rows("flag", ["read", "starred", "collapsed"])
async def test_a_flag_is_set_and_cleared_with_events_for_the_person_s_own_queues(
    org: Organization, flag: str
) -> None:
    channel = await org.channel(f"to be {flag}", "ann", "ben")
    first, second = [await org["ann"].send(channel, "tea", text) for text in ("a", "b")]
    ben = org["ben"]
    mine, other = await ben.register(), await org["ann"].register()
    answer = await _flag(ben, "add", flag, first, second, first)
    assert set(answer["messages"]) == {first, second}
    assert answer["ignored_because_not_subscribed_channels"] == []
    assert await _flags(ben, first) == [flag]
    assert await _flags(org["ann"], first) == []
    (event,) = await mine.events()
    assert event["type"] == "update_message_flags"
    assert (event["op"], event["operation"], event["flag"]) == ("add", "add", flag)
    assert (event["messages"], event["all"]) == ([first, second], False)
    # An equal value sends no event.
    await _flag(ben, "add", flag, first)
    assert await mine.events() == []
    await _flag(ben, "remove", flag, first)
    assert await _flags(ben, first) == []
    assert await _flags(ben, second) == [flag]
    (event,) = await mine.events()
    assert (event["op"], event["messages"]) == ("remove", [first])
    details = {"type": "stream", "stream_id": channel, "topic": "tea"}
    assert event.get("message_details") == ({str(first): details} if flag == "read" else None)
    assert await other.events() == []


async def test_an_unread_event_has_the_messages_details(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    ann, ben, cleo = (org[name] for name in ("ann", "ben", "cleo"))
    table = {
        await ann.send("lounge", "", "@**Ben** hi"): {
            "type": "stream",
            "stream_id": channel,
            "topic": "general chat",
            "mentioned": True,
        },
        await ann.write([ben.user_id], "x"): {"type": "private", "user_ids": [ann.user_id]},
        await ann.write([ben.user_id, cleo.user_id], "x"): {
            "type": "private",
            "user_ids": sorted([ann.user_id, cleo.user_id]),
        },
        await ben.write([ben.user_id], "x"): {"type": "private", "user_ids": []},
    }
    await _flag(ben, "add", "read", *table)
    listener = await ben.register()
    await _flag(ben, "remove", "read", *table)
    (event,) = await listener.events()
    assert event["message_details"] == {str(key): value for key, value in table.items()}


@rows(
    ("changed", "code"),
    [
        ({"flag": "mentioned"}, "BAD_REQUEST"),
        ({"flag": "historical"}, "BAD_REQUEST"),
        ({"flag": "has_alert_word"}, "BAD_REQUEST"),
        ({"flag": "wildcard_mentioned"}, "BAD_REQUEST"),
        ({"flag": "Read"}, "BAD_REQUEST"),
        ({"flag": ""}, "BAD_REQUEST"),
        ({"flag": None}, "REQUEST_VARIABLE_MISSING"),
        ({"op": "toggle"}, "REQUEST_VARIABLE_INVALID"),
        ({"op": None}, "REQUEST_VARIABLE_MISSING"),
        ({"messages": None}, "REQUEST_VARIABLE_MISSING"),
        ({"messages": "null"}, "REQUEST_VARIABLE_INVALID"),
        ({"messages": 1}, "REQUEST_VARIABLE_INVALID"),
        ({"messages": [True]}, "REQUEST_VARIABLE_INVALID"),
        ({"messages": [999_999]}, "BAD_REQUEST"),
        ({"messages": [0]}, "BAD_REQUEST"),
        ({"messages": [-1]}, "BAD_REQUEST"),
        ({"messages": [2**40]}, "BAD_REQUEST"),
        ({"messages": [2**53 + 1]}, "REQUEST_VARIABLE_INVALID"),
        ({"messages": list(range(10_001))}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_an_invalid_flag_is_refused(
    sqlite_org: Organization, changed: dict[str, Any], code: str
) -> None:
    sent = {"messages": [], "op": "add", "flag": "read", **changed}
    (await sqlite_org["ann"].post("/messages/flags", **sent)).refused(code)


async def test_an_empty_list_of_messages_is_accepted(sqlite_org: Organization) -> None:
    assert (await _flag(sqlite_org["ann"], "add", "read"))["messages"] == []


async def test_one_inaccessible_message_refuses_the_whole_request(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    await org.channel("secret", "ann", is_private=True)
    seen = await org["ann"].send("lounge", "t", "x")
    hidden = await org["ann"].send("secret", "t", "x")
    ben = org["ben"]
    sent = {"op": "add", "flag": "starred"}
    unknown = (await ben.post("/messages/flags", messages=[seen, 999_999], **sent)).refused()
    assert (await ben.post("/messages/flags", messages=[seen, hidden], **sent)).refused() == unknown
    assert await _flags(ben, seen) == []


async def test_a_message_that_was_not_received_can_be_starred(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    ben = org["ben"]
    await _flag(ben, "add", "starred", sent)
    assert await _flags(ben, sent) == ["read", "starred", "historical"]
    page = {"anchor": "newest", "num_before": 9, "num_after": 0}
    for narrow in ([["is", "starred"]], []):
        found = (await ben.get("/messages", **page, narrow=narrow)).ok["messages"]
        assert [message["id"] for message in found] == [sent]
    await _flag(ben, "remove", "starred", sent)
    assert (await ben.get("/messages", **page, narrow=[["is", "starred"]])).ok["messages"] == []


async def test_nothing_is_unread_in_unsubscribed_channels(org: Organization) -> None:
    channel = await org.channel("lounge", "ann")
    other = await org.channel("porch", "ann", "ben")
    far = await org["ann"].send("lounge", "t", "x")
    near = await org["ann"].send("porch", "t", "x")
    ben = org["ben"]
    await _flag(ben, "add", "read", near)
    answer = await _flag(ben, "remove", "read", far, near)
    assert answer["ignored_because_not_subscribed_channels"] == [channel]
    assert await _flags(ben, far) == ["read", "historical"]
    assert await _flags(ben, near) == []
    assert other


async def test_messages_from_before_a_subscription_can_be_marked_as_unread(
    org: Organization,
) -> None:
    channel = await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    ben = org["ben"]
    joined = Subscribed(channel_id=channel, colors={ben.user_id: "#76ce90"}, after=sent)
    await org.do(joined, actor="ben")
    assert await _flags(ben, sent) == ["read", "historical"]
    await _flag(ben, "remove", "read", sent)
    assert "read" not in await _flags(ben, sent)
    page = {"anchor": "first_unread", "num_before": 0, "num_after": 0}
    assert (await ben.get("/messages", **page)).ok["anchor"] == sent
    await _flag(ben, "add", "read", sent)
    assert "read" in await _flags(ben, sent)


# Topics


async def test_topics_are_listed_newest_first_in_their_latest_spelling(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    for topic in ("tea", "Straße", "", "TEA"):
        newest = await org["ben"].send("lounge", topic, "x")
    path = f"/users/me/{channel}/topics"
    topics = (await org["ann"].get(path)).ok["topics"]
    assert [topic["name"] for topic in topics] == ["TEA", "general chat", "Straße"]
    assert topics[0]["max_id"] == newest
    topics = (await org["ann"].get(path, allow_empty_topic_name=True)).ok["topics"]
    assert [topic["name"] for topic in topics] == ["TEA", "", "Straße"]
    empty = await org.channel("empty", "ann")
    assert (await org["ann"].get(f"/users/me/{empty}/topics")).ok["topics"] == []


async def test_topics_of_inaccessible_channels_are_refused_like_unknown_ones(
    org: Organization,
) -> None:
    secret = await org.channel("secret", "ann", is_private=True)
    public = await org.channel("public", "ann")
    unknown = (await org["ben"].get("/users/me/999999/topics")).refused()
    assert (await org["ben"].get(f"/users/me/{secret}/topics")).refused() == unknown
    assert (await org["gus"].get(f"/users/me/{public}/topics")).refused() == unknown
    (await org["ben"].get(f"/users/me/{public}/topics")).ok
    (await org.nobody.get(f"/users/me/{public}/topics")).refused("UNAUTHORIZED", 401)


async def test_earlier_topics_of_a_protected_history_stay_hidden(
    org: Organization,
) -> None:
    den = await org.channel("den", "ann", is_private=True, history_public=False)
    await org["ann"].send("den", "early", "x")
    ben = org["ben"]
    after = org.node.state.last_message_id
    joined = Subscribed(
        channel_id=den, colors={ben.user_id: "#76ce90"}, after=after, gained=(ben.user_id,)
    )
    await org.do(joined, actor="ann")
    await org["ann"].send("den", "later", "x")
    topics = (await ben.get(f"/users/me/{den}/topics")).ok["topics"]
    assert [topic["name"] for topic in topics] == ["later"]
    left = Unsubscribed(
        channel_id=den,
        user_ids=(ben.user_id,),
        until=org.node.state.last_message_id,
        lost=(ben.user_id,),
    )
    await org.do(left, actor="ann")
    (await ben.get(f"/users/me/{den}/topics")).refused()


# Typing

CAPABLE = {"client_capabilities": {"stream_typing_notifications": True, "empty_topic_name": True}}


async def test_typing_in_a_direct_conversation_notifies_all_participants(org: Organization) -> None:
    ann, ben, cleo = (org[name] for name in ("ann", "ben", "cleo"))
    listeners = [await who.register() for who in (ann, ben, cleo)]
    for op in ("start", '"stop"'):
        (await ann.post("/typing", op=op, to=[ben.user_id])).ok
    first, second, none = [await one.events() for one in listeners]
    people = [{"user_id": one.user_id, "email": one.email} for one in (ann, ben)]
    assert [event["op"] for event in second] == ["start", "stop"]
    assert all(event["recipients"] == people for event in second)
    assert all(event["sender"] == people[0] for event in second)
    assert all(event["message_type"] == "direct" for event in second)
    assert len(first) == 2
    assert none == []


async def test_typing_in_a_topic_notifies_queues_that_request_it(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    old, new = await org["ben"].register(), await org["ben"].register(**CAPABLE)
    outside = await org["cleo"].register(**CAPABLE)
    for kind, topic in (("stream", " tea "), ("channel", "general chat")):
        sent = {"op": "start", "type": kind, "stream_id": channel, "topic": topic}
        (await org["ann"].post("/typing", **sent)).ok
    events = await new.events()
    assert [event["topic"] for event in events] == ["tea", ""]
    assert [event["stream_id"] for event in events] == [channel, channel]
    assert [event["message_type"] for event in events] == ["stream", "stream"]
    assert await old.events() == []
    assert await outside.events() == []


@rows(
    "sent",
    [
        {"to": [1]},
        {"op": "begin", "to": [1]},
        {"op": "start"},
        {"op": "start", "to": []},
        {"op": "start", "to": [999_999]},
        {"op": "start", "to": [-1]},
        {"op": "start", "to": ["ben@example.com"]},
        {"op": "start", "to": "ben@example.com"},
        {"op": "start", "to": [2**60]},
        {"op": "start", "type": "loud", "to": [1]},
        {"op": "start", "type": "stream", "topic": "t"},
        {"op": "start", "type": "stream", "stream_id": 999_999, "topic": "t"},
        {"op": "start", "type": "stream", "stream_id": "lounge", "topic": "t"},
        {"op": "start", "type": "channel", "stream_id": 1},
        {"op": "start", "type": "channel", "stream_id": 1, "topic": "a\nb"},
    ],
)
async def test_typing_without_a_recipient_is_refused(
    sqlite_org: Organization, sent: dict[str, Any]
) -> None:
    assert (await sqlite_org["ann"].post("/typing", **sent)).status == 400


async def test_typing_where_one_cannot_post_is_refused(org: Organization) -> None:
    secret = await org.channel("secret", "ann", is_private=True)
    sent = {"op": "start", "type": "stream", "stream_id": secret, "topic": "t"}
    (await org["ben"].post("/typing", **sent)).refused("STREAM_DOES_NOT_EXIST")
    await org.do(UserDeactivated(user_id=org["cleo"].user_id), actor="ann")
    (await org["ben"].post("/typing", op="start", to=[org["cleo"].user_id])).refused()
