"""A channel's pinned messages: who can pin and see them, and how pins follow their messages."""

from typing import Any

import pytest

from tertulia.model import pins
from tertulia.model.changes import RealmChanged
from tests.support import Organization, Person

pytestmark = pytest.mark.usefixtures("no_logged_errors")

KNOWING = {"server_extensions": True, "empty_topic_name": True, "bulk_message_deletion": True}


async def pinned(who: Person, channel_id: int) -> list[tuple[int, str]]:
    found = (await who.get(f"/streams/{channel_id}/pins", allow_empty_topic_name=True)).ok["pins"]
    assert {one["stream_id"] for one in found} <= {channel_id}
    return [(one["message_id"], one["topic"]) for one in found]


async def test_a_message_is_pinned_and_unpinned_for_everyone(org: Organization) -> None:
    ann, ben, gus = org["ann"], org["ben"], org["gus"]
    lounge = await org.channel("lounge", "ann", "ben", "gus")
    first, second = [await ann.send("lounge", topic, "x") for topic in ("", "plans")]
    knows = await gus.register(client_capabilities=KNOWING)
    named = await ben.register(event_types=["pins"])
    plain, outside = await ann.register(), await org["cleo"].register(client_capabilities=KNOWING)
    for message_id in (first, second, first):
        (await ben.post(f"/messages/{message_id}/pin")).ok
    told = await knows.events()
    assert [(one["type"], one["op"]) for one in told] == [("pins", "add")] * 2
    assert [one["pin"] for one in await named.events()] == [
        {**told[0]["pin"], "topic": "general chat"},
        told[1]["pin"],
    ]
    pin: dict[str, Any] = told[0]["pin"]
    assert {**pin, "pinned_at": 0} == {
        "message_id": first,
        "stream_id": lounge,
        "topic": "",
        "pinned_by": ben.user_id,
        "pinned_at": 0,
    }
    assert await pinned(gus, lounge) == [(second, "plans"), (first, "")]
    (await gus.delete(f"/messages/{second}/pin")).ok
    (event,) = await knows.events()
    assert (event["op"], event["pin"]["message_id"]) == ("remove", second)
    (await gus.delete(f"/messages/{second}/pin")).refused(status=404)
    # Zulip's clients get no event, and neither do people who aren't subscribed.
    assert await plain.events() == await outside.events() == []
    assert await pinned(org["cleo"], lounge) == [(first, "")]
    spectator = Person(ann.http)
    assert (await spectator.get(f"/streams/{lounge}/pins")).status == 401
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    (await ann.patch(f"/streams/{lounge}", is_web_public=True)).ok
    assert await pinned(spectator, lounge) == [(first, "")]


async def test_people_who_can_post_or_administer_may_pin(org: Organization) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    news = await org.channel("news", "ann", "ben", "cleo")
    sent = await ann.send("news", "t", "x")
    direct = await ann.write([ben.user_id], "hi")
    assert "channels" in (await ann.post(f"/messages/{direct}/pin")).refused()["msg"]
    (await cleo.post(f"/messages/{direct}/pin")).refused()
    only_ann = {"direct_members": [ann.user_id], "direct_subgroups": []}
    only_ben = {"direct_members": [ben.user_id], "direct_subgroups": []}
    (await ann.patch(f"/streams/{news}", can_send_message_group={"new": only_ann})).ok
    for method in ("POST", "DELETE"):
        (await ann.post(f"/messages/{sent}/pin")).ok
        (await cleo.request(method, f"/messages/{sent}/pin")).refused()
    (await ben.delete(f"/messages/{sent}/pin")).refused()
    (await ann.patch(f"/streams/{news}", can_administer_channel_group={"new": only_ben})).ok
    (await ben.delete(f"/messages/{sent}/pin")).ok
    (await ann.delete(f"/streams/{news}")).ok
    (await ann.post(f"/messages/{sent}/pin")).refused()


async def test_a_channel_has_a_limit_of_pins(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = org["ann"]
    monkeypatch.setattr("tertulia.domain.messages.pins.MAX_PINS", 2)
    monkeypatch.setattr("tertulia.state.pins.MAX_PINS", 2)
    assert pins.MAX_PINS == 50
    here, there = await org.channel("here", "ann"), await org.channel("there", "ann")
    one, two, three = [await ann.send("here", "t", "x") for _ in range(3)]
    other = await ann.send("there", "t", "y")
    for message_id in (one, two, other):
        (await ann.post(f"/messages/{message_id}/pin")).ok
    assert "2 pinned" in (await ann.post(f"/messages/{three}/pin")).refused()["msg"]
    # A pinned message that's moved in replaces the one that was pinned first.
    (await ann.patch(f"/messages/{two}", stream_id=there, propagate_mode="change_all")).ok
    assert await pinned(ann, here) == []
    assert len(await pinned(ann, there)) == 2


async def test_pins_follow_their_messages_and_are_visible_to_their_readers(
    org: Organization,
) -> None:
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    lounge = await org.channel("lounge", "ann", "ben", "cleo")
    den = await org.channel("den", "ann", "ben", is_private=True, history_public=False)
    before, moved, kept, doomed = [await ann.send("lounge", "plans", "x") for _ in range(4)]
    secret = await ann.send("den", "t", "for two")
    for message_id in (before, moved, kept, doomed, secret):
        (await ann.post(f"/messages/{message_id}/pin")).ok
    (await cleo.get(f"/streams/{den}/pins")).refused()
    (await cleo.delete(f"/messages/{secret}/pin")).refused(status=404)
    # A new subscriber of a protected history sees pins of later messages.
    (
        await ann.post(
            "/users/me/subscriptions", subscriptions=[{"name": "den"}], principals=[cleo.user_id]
        )
    ).ok
    assert await pinned(cleo, den) == []
    late = await ann.send("den", "t", "for three")
    (await ann.post(f"/messages/{late}/pin")).ok
    assert await pinned(cleo, den) == [(late, "t")]
    assert len(await pinned(ben, den)) == 2

    listening = await cleo.register(client_capabilities=KNOWING)
    (await ann.delete(f"/messages/{doomed}")).ok
    (await ann.delete(f"/messages/{doomed}/pin")).refused(status=404)
    (await ann.patch(f"/messages/{before}", topic="Done")).ok
    (await ann.patch(f"/messages/{moved}", stream_id=den, propagate_mode="change_one")).ok
    assert await pinned(ben, lounge) == [(kept, "plans"), (before, "Done")]
    assert (moved, "plans") in await pinned(ben, den)
    # Unpinning where someone lost access sends an event to nobody else.
    (await ann.delete(f"/messages/{moved}/pin")).ok
    types = {one["type"] for one in await listening.events()}
    assert "update_message" in types
    assert "pins" not in types
