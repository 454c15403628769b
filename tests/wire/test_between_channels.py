"""Messages that go to another channel: who keeps what they had of them, and who loses it."""

import json
from typing import Any

import pytest

from tests.support import Organization

Data = dict[str, Any]
LOUNGE = [{"operator": "channel", "operand": "lounge"}]


async def move(org: Organization, message_id: int, channel_id: int, **more: Any) -> None:
    reply = await org["ann"].patch(
        f"/messages/{message_id}",
        stream_id=channel_id,
        send_notification_to_new_thread=False,
        **more,
    )
    assert reply.ok


async def flags(org: Organization, who: str, message_id: int) -> set[str]:
    return set((await org[who].get(f"/messages/{message_id}")).ok["message"]["flags"])


async def mentions(org: Organization, who: str) -> list[int]:
    """What GET and POST /register say of unread mentions, which must agree."""
    narrow = [{"operator": "is", "operand": "mentioned"}]
    page = await org[who].get(
        "/messages", anchor="newest", num_before=9, num_after=0, narrow=narrow
    )
    found = [message["id"] for message in page.ok["messages"] if "read" not in message["flags"]]
    unread: Data = (await org[who].register()).data["unread_msgs"]
    assert sorted(found) == unread["mentions"]
    return found


@pytest.mark.parametrize("loaded", [True, False])
async def test_who_was_mentioned_with_everybody_still_is_elsewhere(
    org: Organization, loaded: bool
) -> None:
    await org.channel("lounge", "ann", "ben")
    attic = await org.channel("attic", "ann", "ben", "cleo")
    sent = await org["ann"].send("lounge", "t", "@**all** look")
    if loaded:
        for who in ("ben", "cleo"):
            await org[who].register()
    ben = await org["ben"].register()
    await move(org, sent, attic)
    assert await mentions(org, "ben") == [sent]
    assert await mentions(org, "cleo") == []
    (event,) = [event for event in await ben.events() if event["type"] == "update_message"]
    assert "wildcard_mentioned" in event["flags"]
    assert "stream_wildcard_mentioned" in await flags(org, "ben", sent)
    assert "stream_wildcard_mentioned" not in await flags(org, "cleo", sent)
    # What it says decides again once it says something else.
    assert (await org["ann"].patch(f"/messages/{sent}", content="nobody")).ok
    assert await mentions(org, "ben") == []


async def test_what_was_unread_is_unread_when_it_comes_back(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "hello")
    attic = await org.channel("attic", "ann", "ben")
    for channel_id in (attic, lounge, attic):
        await move(org, sent, channel_id)
        assert "read" not in await flags(org, "ben", sent)


async def test_nothing_is_unread_that_nobody_may_read(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "hello")
    vault = await org.channel("vault", "ann", "ben", is_private=True, history_public=False)
    await move(org, sent, vault)
    (await org["ben"].get(f"/messages/{sent}")).refused()
    assert (await org["ben"].register()).data["unread_msgs"]["streams"] == []


async def test_who_loses_sight_of_a_message_loses_the_star(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    vault = await org.channel("vault", "ann", is_private=True)
    sent = await org["ann"].send("lounge", "t", "hello")
    for who in ("ben", "cleo"):  # Who is no subscriber may have a star on it, too.
        reply = await org[who].post("/messages/flags", messages=[sent], op="add", flag="starred")
        assert reply.ok
    listeners = [await org[who].register() for who in ("ben", "cleo")]
    await move(org, sent, vault)
    for listener in listeners:
        (event,) = await listener.events()
        assert (event["type"], event["message_id"]) == ("delete_message", sent)
        assert (await listener.person.register()).data["starred_messages"] == []
    await move(org, sent, lounge)
    assert "starred" not in await flags(org, "ben", sent)


async def test_of_messages_that_go_together_each_hears_of_those_in_sight(org: Organization) -> None:
    """In a channel whose history is protected, those are in sight that came after one joined."""
    await org.channel("lounge", "ann", "ben")
    early = await org["ann"].send("lounge", "t", "early")
    vault = await org.channel("vault", "ann", "ben", is_private=True, history_public=False)
    late = await org["ann"].send("lounge", "t", "late")
    ben = await org["ben"].register(client_capabilities={"bulk_message_deletion": True})
    await move(org, early, vault, propagate_mode="change_all")
    gone, moved = await ben.events()
    assert (gone["type"], gone["message_ids"]) == ("delete_message", [early])
    assert (moved["type"], moved["message_ids"]) == ("update_message", [late])
    assert moved["message_id"] == late
    (await org["ben"].get(f"/messages/{early}")).refused()
    assert "read" not in await flags(org, "ben", late)


async def test_a_star_on_what_is_out_of_sight_goes_with_the_message(org: Organization) -> None:
    await org.channel("vault", "ann", "ben", is_private=True)
    sent = await org["ann"].send("vault", "t", "hello")
    reply = await org["ben"].post("/messages/flags", messages=[sent], op="add", flag="starred")
    assert reply.ok
    assert (await org["ben"].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    ben = await org["ben"].register()
    assert ben.data["starred_messages"] == [sent]
    assert (await org["ann"].delete(f"/messages/{sent}")).ok
    (event,) = await ben.events()
    assert (event["type"], event["op"], event["flag"]) == (
        "update_message_flags",
        "remove",
        "starred",
    )
    assert event["messages"] == [sent]


async def test_a_setting_of_a_channel_that_came_and_went_is_not_told(org: Organization) -> None:
    vault = await org.channel("vault", "ann", is_private=True)
    ben = await org["ben"].register()
    people = {"subscriptions": [{"name": "vault"}], "principals": [org["ben"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    path = f"/users/me/subscriptions/{vault}"
    assert (await org["ben"].patch(path, property="pin_to_top", value=True)).ok
    assert (await org["ben"].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    told = [(e["type"], e.get("op")) for e in await ben.events() if e["type"] == "subscription"]
    assert ("subscription", "update") not in told


async def test_outsiders_do_not_hear_where_a_message_came_from(org: Organization) -> None:
    await org.channel("vault", "ann", "ben", is_private=True)
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    sent = await org["ann"].send("vault", "heist", "the plan")
    for content in ("the better plan", "a plan"):
        assert (await org["ann"].patch(f"/messages/{sent}", content=content)).ok
    ben, cleo = await org["ben"].register(), await org["cleo"].register()
    moved = await org["ann"].patch(f"/messages/{sent}", stream_id=lounge, topic="outing")
    assert moved.ok
    assert "update_message" in [event["type"] for event in await ben.events()]
    told = await cleo.events()
    assert "update_message" not in [event["type"] for event in told]
    page = {"anchor": "newest", "num_before": 9, "num_after": 0, "narrow": LOUNGE}
    history = f"/messages/{sent}/history"
    insider = (await org["ben"].get(history)).ok["message_history"]
    assert [version["content"] for version in insider][:3] == [
        "the plan",
        "the better plan",
        "a plan",
    ]
    (outsider,) = (await org["cleo"].get(history)).ok["message_history"]
    assert (outsider["content"], outsider["topic"]) == ("a plan", "outing")
    seen = [told, outsider]
    for name in ("ben", "cleo"):
        messages = (await org[name].get("/messages", **page)).ok["messages"]
        one = (await org[name].get(f"/messages/{sent}")).ok["message"]
        assert one["id"] == messages[0]["id"] == sent
        for shown in (messages[0], one):
            for key in ("edit_history", "last_moved_timestamp", "last_edit_timestamp"):
                assert (key in shown) is (name == "ben")
        if name == "cleo":
            seen += [messages, one]
    for word in ("vault", "heist", "better"):
        assert word not in json.dumps(seen)
    # What is done to it from then on is everybody's to know.
    assert (await org["ann"].patch(f"/messages/{sent}", content="an idea")).ok
    later = (await org["cleo"].get(history)).ok["message_history"]
    assert [version["content"] for version in later] == ["a plan", "an idea"]


async def test_notices_of_moves_name_no_channel_that_is_not_their_readers(
    org: Organization,
) -> None:
    vault = await org.channel("vault", "ann", is_private=True)
    lounge = await org.channel("lounge", "ann", "cleo")
    both = {"send_notification_to_old_thread": True, "send_notification_to_new_thread": True}
    first = await org["ann"].send("lounge", "outing", "where to?")
    assert (await org["ann"].patch(f"/messages/{first}", stream_id=vault, **both)).ok
    second = await org["ann"].send("vault", "heist", "the plan")
    assert (await org["ann"].patch(f"/messages/{second}", stream_id=lounge, **both)).ok
    page = {"anchor": "newest", "num_before": 9, "num_after": 0, "narrow": LOUNGE}
    messages = (await org["cleo"].get("/messages", **page)).ok["messages"]
    notices = [m["content"] for m in messages if m["id"] not in (first, second)]
    assert len(notices) == 2
    assert all("another channel" in text for text in notices)
    assert not any("vault" in text for text in notices)
