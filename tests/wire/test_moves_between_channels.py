"""Messages moved to another channel: who keeps access, flags, and settings, and who loses them."""

import json
from typing import Any

import pytest

from tertulia.store import message_details
from tertulia.store.message_details import MAX_ARRIVALS
from tertulia.wire.api.event_encoder import EventEncoder
from tests.support import Listener, Organization

Data = dict[str, Any]
LOUNGE = [{"operator": "channel", "operand": "lounge"}]
OF_MESSAGES = ("reaction", "submessage", "update_message", "delete_message")
"""Events about existing messages."""


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
    """The unread mentions according to GET and POST /register, which must agree."""
    narrow = [{"operator": "is", "operand": "mentioned"}]
    page = await org[who].get(
        "/messages", anchor="newest", num_before=9, num_after=0, narrow=narrow
    )
    found = [message["id"] for message in page.ok["messages"] if "read" not in message["flags"]]
    unread: Data = (await org[who].register()).data["unread_msgs"]
    assert sorted(found) == unread["mentions"]
    return found


@pytest.mark.parametrize("loaded", [True, False])
async def test_a_wildcard_mention_survives_a_move(org: Organization, loaded: bool) -> None:
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
    # An edit decides again.
    assert (await org["ann"].patch(f"/messages/{sent}", content="nobody")).ok
    assert await mentions(org, "ben") == []


async def test_a_message_moved_away_and_back_is_unread_again(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "hello")
    attic = await org.channel("attic", "ann", "ben")
    for channel_id in (attic, lounge, attic):
        await move(org, sent, channel_id)
        assert "read" not in await flags(org, "ben", sent)


async def test_an_inaccessible_message_is_not_unread(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "hello")
    vault = await org.channel("vault", "ann", "ben", is_private=True, history_public=False)
    await move(org, sent, vault)
    (await org["ben"].get(f"/messages/{sent}")).refused()
    assert (await org["ben"].register()).data["unread_msgs"]["streams"] == []


async def test_losing_access_removes_the_star(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    vault = await org.channel("vault", "ann", is_private=True)
    sent = await org["ann"].send("lounge", "t", "hello")
    for who in ("ben", "cleo"):  # People who aren't subscribed may have starred it, too.
        reply = await org[who].post("/messages/flags", messages=[sent], op="add", flag="starred")
        assert reply.ok
    watched = ["delete_message", "update_message"]
    listeners = [await org[who].register(event_types=watched) for who in ("ben", "cleo")]
    await move(org, sent, vault)
    for listener in listeners:
        (event,) = await listener.events()
        assert (event["type"], event["message_id"]) == ("delete_message", sent)
        assert (await listener.person.register()).data["starred_messages"] == []
    await move(org, sent, lounge)
    assert "starred" not in await flags(org, "ben", sent)


async def test_of_messages_moved_together_clients_get_the_visible_ones(org: Organization) -> None:
    """In a channel with a protected history, those sent after the reader joined."""
    await org.channel("lounge", "ann", "ben")
    early = await org["ann"].send("lounge", "t", "early")
    vault = await org.channel("vault", "ann", "ben", is_private=True, history_public=False)
    late = await org["ann"].send("lounge", "t", "late")
    ben = await org["ben"].register(client_capabilities={"bulk_message_deletion": True})
    await move(org, early, vault, propagate_mode="change_all")
    gone, moved, *firsts = await ben.events()
    assert (gone["type"], gone["message_ids"]) == ("delete_message", [early])
    assert (moved["type"], moved["message_ids"]) == ("update_message", [late])
    assert [event["property"] for event in firsts] == ["first_message_id"] * 2
    assert moved["message_id"] == late
    (await org["ben"].get(f"/messages/{early}")).refused()
    assert "read" not in await flags(org, "ben", late)


async def test_a_star_on_an_inaccessible_message_moves_with_it(org: Organization) -> None:
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


async def test_a_setting_of_a_channel_shown_and_hidden_in_the_meantime_is_not_sent(
    org: Organization,
) -> None:
    vault = await org.channel("vault", "ann", is_private=True)
    ben = await org["ben"].register()
    people = {"subscriptions": [{"name": "vault"}], "principals": [org["ben"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    path = f"/users/me/subscriptions/{vault}"
    assert (await org["ben"].patch(path, property="pin_to_top", value=True)).ok
    assert (await org["ben"].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    told = [(e["type"], e.get("op")) for e in await ben.events() if e["type"] == "subscription"]
    assert ("subscription", "update") not in told


async def test_outsiders_do_not_learn_where_a_message_came_from(org: Organization) -> None:
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
    # Later changes are visible to everyone.
    assert (await org["ann"].patch(f"/messages/{sent}", content="an idea")).ok
    later = (await org["cleo"].get(history)).ok["message_history"]
    assert [version["content"] for version in later] == ["a plan", "an idea"]


async def test_move_notices_name_no_channel_hidden_from_their_readers(
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


async def arrived(org: Organization, listener: Listener, message_ids: list[int]) -> list[Data]:
    """The messages that arrived, which must equal the fetched ones."""
    events = await listener.events()
    found = [event for event in events if event["type"] == "message"]
    assert [event["message"]["id"] for event in found] == message_ids
    if message_ids:
        answer = await listener.person.get("/messages", message_ids=message_ids)
        fetched = {message["id"]: message for message in answer.ok["messages"]}
        for event in found:
            shown = fetched[event["message"]["id"]]
            assert event["flags"] == shown.pop("flags")
            assert {**event["message"], "content_type": ""} == {**shown, "content_type": ""}
    return events


async def test_a_moved_message_is_new_for_people_who_could_not_read_it(org: Organization) -> None:
    """Like any other message, without its previous location."""
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    await org.channel("safe", "ann", "ben", is_private=True)
    first = await org["ann"].send("safe", "heist", "the plan of @**Ben**")
    poll = await org["ann"].send("safe", "heist", "/poll When?\n- now")
    assert (await org["ben"].post(f"/messages/{first}/reactions", emoji_name="tada")).ok
    people = {"subscriptions": [{"name": "lounge"}], "principals": [org["gus"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    listeners = {
        who: await org[who].register(apply_markdown=True, client_gravatar=True)
        for who in ("ben", "cleo", "gus")
    }
    await move(org, first, lounge, topic="outing", propagate_mode="change_all")
    for who, listener in listeners.items():
        late = listener.last_event_id
        events = await arrived(org, listener, [] if who == "ben" else [first, poll])
        kinds = [event["type"] for event in events]
        assert ("update_message" in kinds) is (who == "ben")
        if who != "ben":
            assert "safe" not in json.dumps(events)
            assert "heist" not in json.dumps(events)
            event = events[0]
            assert event["flags"] == (["read"] if who == "cleo" else ["read", "historical"])
            assert [one["emoji_name"] for one in event["message"]["reactions"]] == ["tada"]
            assert events[1]["message"]["submessages"]
            listener.last_event_id = late
            await arrived(org, listener, [first, poll])


async def test_a_queue_gets_moved_messages_according_to_its_options(org: Organization) -> None:
    """Its narrow, all public channels, event types, and Markdown or HTML."""
    lounge = await org.channel("lounge", "ann", "cleo")
    await org.channel("vault", "ann", is_private=True)
    first = await org["ann"].send("vault", "t", "*one*")
    second = await org["ann"].send("vault", "t", "two")
    starred = {"op": "add", "flag": "starred", "messages": [second]}
    assert (await org["ann"].post("/users/me/subscriptions", subscriptions=[{"name": "vault"}])).ok
    people = {"subscriptions": [{"name": "vault"}], "principals": [org["cleo"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    assert (await org["cleo"].post("/messages/flags", **starred)).ok
    assert (await org["cleo"].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    cleo, robo, gus = org["cleo"], org["robo"], org["gus"]
    waiting = [
        (await cleo.register(), [first, second]),
        (await cleo.register(narrow=[["topic", "t"]]), [first, second]),
        (await cleo.register(narrow=[["is", "starred"]]), [second]),
        (await cleo.register(narrow=[["topic", "other"]]), []),
        (await cleo.register(event_types=["reaction"]), []),
        (await robo.register(all_public_streams=True), [first, second]),
        (await robo.register(), []),
        (await gus.register(), []),
    ]
    await move(org, first, lounge, propagate_mode="change_all")
    for number, (listener, wanted) in enumerate(waiting):
        events = await listener.events()
        found = [event for event in events if event["type"] == "message"]
        assert [event["message"]["id"] for event in found] == wanted, number
        assert "update_message" not in [event["type"] for event in events]
        if second in wanted and listener.person is cleo:
            assert "starred" in found[-1]["flags"]
        if first in wanted:
            assert found[0]["message"]["content"] == "*one*"


async def test_a_late_poll_does_not_contain_messages_deleted_or_moved_on(org: Organization) -> None:
    """From memory and from the log."""
    lounge = await org.channel("lounge", "ann", "cleo")
    vault = await org.channel("vault", "ann", is_private=True)
    listeners = [await org["cleo"].register(event_types=["message"]) for _ in range(2)]
    ids = [await org["ann"].send("vault", "t", f"number {n}") for n in range(4)]
    await move(org, ids[0], lounge, propagate_mode="change_all")
    assert (await org["ann"].delete(f"/messages/{ids[0]}")).ok
    await move(org, ids[1], vault)
    assert (await org["ann"].patch(f"/messages/{ids[2]}", content="another")).ok
    places = []
    for number, listener in enumerate(listeners):
        if number:
            org.node.delivery.recent.clear()
        events = await listener.events()
        assert [event["message"]["id"] for event in events] == ids[2:]
        places.append([event["id"] for event in events])
    assert places[0] == places[1]


async def test_a_late_poll_of_someone_who_left_the_old_channel_has_the_move(
    org: Organization,
) -> None:
    """If they were in the new channel all the time. Others couldn't read the messages before, or
    fetch them when they join."""
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    vault = await org.channel("vault", "ann", "ben", "robo", is_private=True)
    ben, cleo, robo = [await org[who].register() for who in ("ben", "cleo", "robo")]
    sent = await org["ann"].send("vault", "heist", "the plan")
    await ben.events()
    await move(org, sent, lounge, topic="outing")
    for who in ("ben", "robo"):
        assert (await org[who].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    assert (await org["ann"].patch(f"/streams/{vault}", new_name="bunker")).ok
    joins = [{"name": "lounge"}]
    principals = [org["robo"].user_id]
    channels = "/users/me/subscriptions"
    assert (await org["ann"].post(channels, subscriptions=joins, principals=principals)).ok
    told = await ben.events()
    (moved,) = [event for event in told if event["type"] == "update_message"]
    assert moved["message_ids"] == [sent]
    assert (moved["stream_id"], moved["orig_subject"]) == (vault, "heist")
    assert (moved["new_stream_id"], moved["subject"]) == (lounge, "outing")
    assert "bunker" not in json.dumps(told)
    for listener in (cleo, robo):
        events = await listener.events()
        assert "update_message" not in [event["type"] for event in events]
        assert "heist" not in json.dumps(events)


@pytest.mark.parametrize("history_public", [True, False])
async def test_a_message_older_than_a_subscription_is_followed_to_its_channel(
    org: Organization, history_public: bool
) -> None:
    """A guest who left the old channel gets the move if they could read it in both. Opening the new
    channel's history later doesn't reveal where messages in it came from."""
    lounge = await org.channel("lounge", "ann", "gus")
    sent = await org["ann"].send("lounge", "heist", "the plan")
    attic = await org.channel("attic", "ann", "gus", is_private=True, history_public=history_public)
    gus = await org["gus"].register()
    await move(org, sent, attic, topic="outing")
    assert (await org["gus"].delete("/users/me/subscriptions", subscriptions=["lounge"])).ok
    opened = {"is_private": True, "history_public_to_subscribers": True}
    if not history_public:
        assert (await org["ann"].patch(f"/streams/{attic}", **opened)).ok
    for is_logged in (False, True):
        late = gus.last_event_id
        if is_logged:
            org.node.delivery.recent.clear()
        told = [event for event in await gus.events() if event["type"] in OF_MESSAGES]
        if history_public:
            (event,) = told
            assert (event["stream_id"], event["orig_subject"]) == (lounge, "heist")
            assert (event["new_stream_id"], event["subject"]) == (attic, "outing")
        else:
            assert "outing" not in json.dumps(told)
        gus.last_event_id = late
    unread = (await org["gus"].register()).data["unread_msgs"]["streams"]
    wanted = {"stream_id": attic, "topic": "outing", "unread_message_ids": [sent]}
    assert (wanted in unread) is history_public


@pytest.mark.parametrize("goes", ["away", "for good"])
async def test_nothing_is_sent_about_messages_inaccessible_by_then(
    org: Organization, goes: str
) -> None:
    """From memory and from the log: people who had the message learn that it's gone, and people who
    join the channel later learn nothing."""
    vault = await org.channel("vault", "ann", "ben", is_private=True)
    safe = await org.channel("safe", "ann", is_private=True)
    poll = await org["ann"].send("vault", "heist", "/poll When?\n- now")
    stays = await org["ann"].send("vault", "heist", "hello")
    listeners = [await org[who].register() for who in ("ben", "cleo", "ben", "cleo")]
    assert (await org["ben"].post(f"/messages/{poll}/reactions", emoji_name="tada")).ok
    option = '{"type":"new_option","option":"at dawn","idx":0}'
    vote = {"message_id": poll, "msg_type": "widget", "content": option}
    assert (await org["ben"].post("/submessage", **vote)).ok
    await move(org, poll, vault, topic="outing", propagate_mode="change_all")
    assert (await org["ben"].delete(f"/messages/{poll}/reactions", emoji_name="tada")).ok
    if goes == "away":
        await move(org, poll, safe)
    else:
        assert (await org["ann"].delete(f"/messages/{poll}")).ok
    people = {"subscriptions": [{"name": "vault"}], "principals": [org["cleo"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    for number, listener in enumerate(listeners):
        if number == 2:
            org.node.delivery.recent.clear()
        events = await listener.events()
        assert "at dawn" not in json.dumps(events)
        told = [event for event in events if event["type"] in OF_MESSAGES]
        gone = [] if listener.person is org["cleo"] else ["delete_message"]
        assert [event["type"] for event in told] == ["update_message", *gone]
        assert (told[0]["message_id"], told[0]["message_ids"]) == (stays, [stays])
        assert [event["message_id"] for event in told[1:]] == [poll] * len(gone)


@pytest.mark.parametrize("goes", ["on", "for good"])
async def test_a_late_poll_of_someone_only_in_the_old_channel_has_a_deletion(
    org: Organization, goes: str
) -> None:
    """Later changes in the new channel are sent to others."""
    await org.channel("lounge", "ann", "ben")
    attic = await org.channel("attic", "ann")
    vault = await org.channel("vault", "ann", is_private=True)
    sent = await org["ann"].send("lounge", "t", "hello")
    ben, ann = [await org[who].register(event_types=list(OF_MESSAGES)) for who in ("ben", "ann")]
    await move(org, sent, attic)
    if goes == "on":
        await move(org, sent, vault)
    else:
        assert (await org["ann"].delete(f"/messages/{sent}")).ok
    (event,) = await ben.events()
    assert (event["type"], event["message_id"]) == ("delete_message", sent)
    wanted = ["update_message"] * 2 if goes == "on" else ["delete_message"]
    assert [event["type"] for event in await ann.events()] == wanted


async def test_changes_to_a_message_are_sent_where_it_is_still_visible(
    org: Organization,
) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    attic = await org.channel("attic", "ann", "ben")
    vault = await org.channel("vault", "ann", is_private=True)
    sent = await org["ann"].send("lounge", "t", "hello")
    listeners = [await org["ben"].register(event_types=list(OF_MESSAGES)) for _ in range(2)]
    assert (await org["ben"].post(f"/messages/{sent}/reactions", emoji_name="tada")).ok
    for channel_id in (attic, vault, lounge):
        await move(org, sent, channel_id)
    for number, listener in enumerate(listeners):
        if number:
            org.node.delivery.recent.clear()
        events = await listener.events()
        assert [event["type"] for event in events][:2] == ["reaction", "update_message"]
        assert events[1]["new_stream_id"] == attic


async def test_of_a_large_move_the_newest_messages_are_sent(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "cleo")
    await org.channel("vault", "ann", is_private=True)
    ids = [await org["ann"].send("vault", "t", f"number {n}") for n in range(MAX_ARRIVALS + 5)]
    cleo = await org["cleo"].register(event_types=["message"])
    await move(org, ids[0], lounge, propagate_mode="change_all")
    assert [event["message"]["id"] for event in await cleo.events()] == ids[5:]


async def test_moved_messages_with_many_reactions_are_sent_in_smaller_numbers(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_details, "MAX_DETAILS", 3)
    lounge = await org.channel("lounge", "ann", "cleo")
    await org.channel("vault", "ann", "ben", is_private=True)
    ids = [await org["ann"].send("vault", "t", f"number {n}") for n in range(4)]
    for message_id in ids:
        for who in ("ann", "ben"):
            reply = await org[who].post(f"/messages/{message_id}/reactions", emoji_name="tada")
            assert reply.ok
    cleo = await org["cleo"].register(event_types=["message"])
    await move(org, ids[0], lounge, propagate_mode="change_all")
    assert [event["message"]["id"] for event in await cleo.events()] == ids[3:]


async def test_large_moved_messages_are_sent_in_smaller_numbers(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_details, "ARRIVALS_BYTES", 5000)
    lounge = await org.channel("lounge", "ann", "cleo")
    await org.channel("vault", "ann", is_private=True)
    ids = [await org["ann"].send("vault", "t", "x" * 1000) for _ in range(4)]
    cleo = await org["cleo"].register(event_types=["message"])
    await move(org, ids[0], lounge, propagate_mode="change_all")
    assert [event["message"]["id"] for event in await cleo.events()] == ids[2:]


async def test_the_log_has_no_copy_of_moved_messages(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "cleo")
    await org.channel("vault", "ann", is_private=True)
    sent = await org["ann"].send("vault", "t", "/poll wherefore\n- thereupon")
    await move(org, sent, lounge)
    rows = await org.node.store.read(lambda c: c.query("SELECT change FROM log"))
    log = " ".join(change for (change,) in rows)
    assert '"arrivals":[{"message_id"' in log
    assert "wherefore" not in log
    assert "thereupon" not in log


async def test_limited_guests_do_not_learn_the_senders_of_moved_messages(
    org: Organization,
) -> None:
    lounge = await org.channel("lounge", "ann", "cleo")
    people = {"subscriptions": [{"name": "lounge"}], "principals": [org["gus"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    await org.channel("open", "ann", "ben")
    assert (await org["ann"].patch("/realm", can_access_all_users_group={"new": 6})).ok
    sent = await org["ben"].send("open", "t", "hello")
    assert (await org["ben"].post(f"/messages/{sent}/reactions", emoji_name="tada")).ok
    gus = await org["gus"].register(client_gravatar=True, apply_markdown=True)
    await move(org, sent, lounge)
    events = await arrived(org, gus, [sent])
    assert events[0]["message"]["sender_full_name"] == "Unknown user"
    assert "Ben" not in json.dumps(events)


async def test_a_message_new_to_someone_counts_as_read(org: Organization) -> None:
    """Even if they marked it as unread when they could read it."""
    lounge = await org.channel("lounge", "ann", "cleo")
    attic = await org.channel("attic", "ann", "cleo")
    vault = await org.channel("vault", "ann", "cleo", is_private=True)
    sent = await org["ann"].send("attic", "t", "hello")
    assert (await org["cleo"].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    people = {"subscriptions": [{"name": "vault"}], "principals": [org["cleo"].user_id]}
    assert (await org["ann"].post("/users/me/subscriptions", **people)).ok
    await move(org, sent, vault)
    assert (await org["cleo"].delete("/users/me/subscriptions", subscriptions=["vault"])).ok
    cleo = await org["cleo"].register()
    await move(org, sent, lounge)
    event = next(event for event in await cleo.events() if event["type"] == "message")
    assert "read" in event["flags"]
    assert (await org["cleo"].register()).data["unread_msgs"]["streams"] == []
    assert attic in org.node.state.channels


async def test_new_messages_are_encoded_once_for_all_with_the_same_view(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "cleo", "ben")
    await org.channel("vault", "ann", is_private=True)
    ids = [await org["ann"].send("vault", "t", f"number {n}") for n in range(3)]
    listeners = [
        await org[who].register(event_types=["message"])
        for who in ("ben", "cleo", "ben", "cleo", "ben")
    ]
    await move(org, ids[0], lounge, propagate_mode="change_all")
    encoder = org.node.delivery.encoder
    assert isinstance(encoder, EventEncoder)
    before = encoder.encoded
    for listener in listeners:
        assert [event["message"]["id"] for event in await listener.events()] == ids
    assert encoder.encoded == before + len(ids) + 1  # The channel's first message, too.
