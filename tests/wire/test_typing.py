"""Typing and edit notifications."""

from typing import Any

import pytest

from tertulia.model.changes import RealmChanged
from tertulia.service.config import Config
from tertulia.wire.api import transients
from tests.support import Organization, TestClock, new_organization
from tests.wire.personal_data import add_with

CAPABLE = {"client_capabilities": {"stream_typing_notifications": True, "empty_topic_name": True}}


@pytest.mark.parametrize("op", ["start", "stop"])
async def test_typing_in_direct_messages_is_refused_if_turned_off(
    org: Organization, op: str
) -> None:
    dora = await add_with(org, "dora", send_direct_typing_notifications=False)
    lounge = await org.channel("lounge", "dora")
    (await dora.post("/typing", op=op, to=[org["ben"].user_id])).refused()
    (await dora.post("/typing", op=op, type="channel", stream_id=lounge, topic="t")).ok
    direct = await dora.write([org["ben"].user_id], "x")
    (await dora.post(f"/messages/{direct}/typing", op=op)).refused()
    (await dora.post(f"/messages/{await dora.send(lounge, 't', 'x')}/typing", op=op)).ok


@pytest.mark.parametrize("op", ["start", "stop"])
async def test_typing_in_channels_is_refused_if_turned_off(org: Organization, op: str) -> None:
    dora = await add_with(org, "dora", send_channel_typing_notifications=False)
    lounge = await org.channel("lounge", "dora")
    (await dora.post("/typing", op=op, to=[org["ben"].user_id])).ok
    (await dora.post("/typing", op=op, type="channel", stream_id=lounge, topic="t")).refused()
    channel = await dora.send(lounge, "t", "x")
    (await dora.post(f"/messages/{channel}/typing", op=op)).refused()
    direct = await dora.write([org["ben"].user_id], "x")
    (await dora.post(f"/messages/{direct}/typing", op=op)).ok


async def test_typing_events_can_be_turned_off_by_the_recipient(org: Organization) -> None:
    dora = await add_with(org, "dora", receives_typing_notifications=False)
    lounge = await org.channel("lounge", "ann", "ben", "dora")
    direct = await org["ann"].write([org["ben"].user_id, dora.user_id], "x")
    channel = await org["ann"].send(lounge, "t", "x")
    types = ["typing", "typing_edit_message"]
    ben, none = [await one.register(event_types=types, **CAPABLE) for one in (org["ben"], dora)]
    (await org["ann"].post("/typing", op="start", to=[org["ben"].user_id, dora.user_id])).ok
    (await org["ann"].post("/typing", op="start", type="stream", stream_id=lounge, topic="t")).ok
    for message in (direct, channel):
        (await org["ann"].post(f"/messages/{message}/typing", op="start")).ok
    assert len(await ben.events()) == 4
    assert await none.events() == []


async def test_typing_in_a_large_channel_sends_no_events(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert transients.TYPING_LIMIT == 100
    monkeypatch.setattr(transients, "TYPING_LIMIT", 2)
    small = await org.channel("small", "ann", "ben")
    large = await org.channel("large", "ann", "ben", "cleo")
    ids = {channel: await org["ann"].send(channel, "t", "x") for channel in (small, large)}
    ben = await org["ben"].register(event_types=["typing", "typing_edit_message"], **CAPABLE)
    for channel in (small, large):
        sent = {"op": "start", "type": "channel", "stream_id": channel, "topic": "t"}
        (await org["ann"].post("/typing", **sent)).ok
        (await org["ann"].post(f"/messages/{ids[channel]}/typing", op="start")).ok
    told = [(event["type"], event.get("stream_id")) for event in await ben.events()]
    assert told == [("typing", small), ("typing_edit_message", None)]


# Editing


async def test_editing_a_channel_message_is_sent_to_its_subscribers(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    message = await org["ann"].send(lounge, "tea", "x")
    listeners = [await org[who].register(**CAPABLE) for who in ("ben", "cleo")]
    for op in ("start", "stop"):
        (await org["ann"].post(f"/messages/{message}/typing", op=op)).ok
    events, outside = [await one.events() for one in listeners]
    assert [event["op"] for event in events] == ["start", "stop"]
    for event in events:
        assert event["type"] == "typing_edit_message"
        assert (event["sender_id"], event["message_id"]) == (org["ann"].user_id, message)
        assert event["recipient"] == {"type": "channel", "channel_id": lounge, "topic": "tea"}
    assert outside == []


async def test_editing_a_direct_message_is_sent_to_its_participants(org: Organization) -> None:
    people = sorted([org["ann"].user_id, org["ben"].user_id])
    message = await org["ann"].write(people, "x")
    listeners = [await org[who].register() for who in ("ann", "ben", "cleo")]
    (await org["ann"].post(f"/messages/{message}/typing", op="start")).ok
    own, events, outside = [await one.events() for one in listeners]
    assert events[0]["recipient"] == {"type": "direct", "user_ids": people}
    assert len(own) == 1
    assert outside == []


@pytest.mark.parametrize(("capable", "shown"), [(True, ""), (False, "general chat")])
async def test_the_empty_topic_is_named_for_clients_without_the_capability(
    org: Organization, capable: bool, shown: str
) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    message = await org["ann"].send(lounge, "", "x")
    ben = await org["ben"].register(**(CAPABLE if capable else {}))
    (await org["ann"].post(f"/messages/{message}/typing", op="start")).ok
    (event,) = await ben.events()
    assert event["recipient"]["topic"] == shown


async def test_people_who_cannot_read_the_message_get_no_edit_event(org: Organization) -> None:
    """It was sent before they joined a channel with a protected history."""
    cave = await org.channel("cave", "ann", is_private=True, history_public=False)
    message = await org["ann"].send(cave, "t", "x")
    (
        await org["ann"].post(
            "/users/me/subscriptions",
            subscriptions=[{"name": "cave"}],
            principals=[org["ben"].user_id],
        )
    ).ok
    ben = await org["ben"].register(event_types=["typing_edit_message"])
    (await org["ann"].post(f"/messages/{message}/typing", op="start")).ok
    assert await ben.events() == []


@pytest.mark.parametrize(
    ("path", "sent", "code"),
    [
        ("/messages/999999/typing", {"op": "start"}, "BAD_REQUEST"),
        ("/messages/0/typing", {"op": "start"}, "BAD_REQUEST"),
        ("/messages/1/typing", {}, "REQUEST_VARIABLE_MISSING"),
        ("/messages/1/typing", {"op": "begin"}, "REQUEST_VARIABLE_INVALID"),
    ],
)
async def test_editing_an_unknown_message_is_refused(
    sqlite_org: Organization, path: str, sent: dict[str, Any], code: str
) -> None:
    (await sqlite_org["ann"].post(path, **sent)).refused(code)


async def test_editing_notifications_need_permission_to_edit(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    await org.channel("secret", "ann", is_private=True)
    of_ann = await org["ann"].send(lounge, "t", "x")
    hidden = await org["ann"].send("secret", "t", "x")
    (await org["ben"].post(f"/messages/{of_ann}/typing", op="start")).refused()
    (await org["ben"].post(f"/messages/{hidden}/typing", op="start")).refused()
    await org.do(RealmChanged(values={"message_content_edit_limit_seconds": None}))
    (await org["ann"].post(f"/messages/{of_ann}/typing", op="start")).ok
    await org.do(RealmChanged(values={"allow_message_editing": False}))
    (await org["ann"].post(f"/messages/{of_ann}/typing", op="start")).refused()


async def test_a_message_too_old_to_edit_sends_no_edit_notifications(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.channel("lounge", "ann")
        message = await org["ann"].send("lounge", "t", "x")
        (await org["ann"].post(f"/messages/{message}/typing", op="start")).ok
        clock.ahead = 3600
        (await org["ann"].post(f"/messages/{message}/typing", op="start")).refused()


async def test_edit_notifications_are_not_logged(org: Organization) -> None:
    message = await org["ann"].write([org["ben"].user_id], "x")
    before = org.node.state.seq
    (await org["ann"].post(f"/messages/{message}/typing", op="start")).ok
    (await org["ann"].post("/typing", op="start", to=[org["ben"].user_id])).ok
    assert org.node.state.seq == before
