"""Sending and fetching messages."""

from tests.support import Organization


async def test_a_channel_message_reaches_every_subscriber_once(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    ann, ben, cleo = [await org[name].register() for name in ("ann", "ben", "cleo")]
    sent = await org["ann"].send("lounge", "greetings", "hello")
    for listener in (ann, ben):
        (event,) = await listener.events()
        assert event["type"] == "message"
        assert event["message"]["id"] == sent
        assert event["message"]["stream_id"] == channel
        assert event["message"]["content"] == "hello"
    assert await cleo.events() == []


async def test_a_direct_message_reaches_its_people_only(org: Organization) -> None:
    ann, ben, cleo = [await org[name].register() for name in ("ann", "ben", "cleo")]
    await org["ann"].write([org["ben"].user_id], "psst")
    assert [len(await one.events()) for one in (ann, ben, cleo)] == [1, 1, 0]
