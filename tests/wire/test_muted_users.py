"""Muting users."""

import asyncio

import pytest

from tertulia.model.changes import UserDeactivated
from tertulia.service.config import Config
from tests.support import Organization, Person, TestClock, new_organization, open_organization
from tests.wire.sample_organization import LIMITED
from tests.wire.test_alert_words import flags

pytestmark = pytest.mark.usefixtures("no_logged_errors")


async def mute(who: Person, whom: Person) -> None:
    assert (await who.post(f"/users/me/muted_users/{whom.user_id}")).ok


async def muted(who: Person) -> list[int]:
    data = (await who.register(fetch_event_types=["muted_users"])).data
    return [one["id"] for one in data["muted_users"]]


async def test_users_are_muted_and_unmuted(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        ben, cleo = await org.add("ben"), await org.add("cleo")
        mine, other = await ben.register(), await cleo.register()
        before = int(clock())
        await mute(ben, cleo)
        await mute(ben, org["ann"])
        listed = (await ben.register()).data["muted_users"]
        assert [one["id"] for one in listed] == [org["ann"].user_id, cleo.user_id]
        assert all(before <= one["timestamp"] <= int(clock()) for one in listed)
        assert (await ben.delete(f"/users/me/muted_users/{cleo.user_id}")).ok
        events = [e for e in await mine.events() if e["type"] == "muted_users"]
        assert len(events) == 3
        assert [one["id"] for one in events[-1]["muted_users"]] == [org["ann"].user_id]
        assert await other.events() == []
    async with open_organization(config) as later:
        assert await muted(later["ben"]) == [later["ann"].user_id]


async def test_who_cannot_be_muted(org: Organization) -> None:
    ben, ann = org["ben"], org["ann"]
    for user_id in (ben.user_id, 999_999):
        (await ben.post(f"/users/me/muted_users/{user_id}")).refused()
    await mute(ben, ann)
    (await ben.post(f"/users/me/muted_users/{ann.user_id}")).refused()
    (await org.nobody.post(f"/users/me/muted_users/{ann.user_id}")).refused("UNAUTHORIZED", 401)
    assert await muted(ben) == [ann.user_id]
    for name in ("robo", "cleo"):
        if name == "cleo":
            await org.do(UserDeactivated(user_id=org[name].user_id))
        await mute(ben, org[name])


async def test_an_invisible_user_looks_like_an_unknown_one(org: Organization) -> None:
    await org.do(LIMITED)
    unknown = (await org["gus"].post("/users/me/muted_users/999999")).refused()
    hidden = await org["gus"].post(f"/users/me/muted_users/{org['ben'].user_id}")
    assert hidden.refused() == unknown


async def test_of_two_concurrent_mutings_one_is_refused(org: Organization) -> None:
    path = f"/users/me/muted_users/{org['ann'].user_id}"
    replies = await asyncio.gather(*(org["ben"].post(path) for _ in range(3)))
    assert sorted(reply.status for reply in replies) == [200, 400, 400]
    replies = await asyncio.gather(*(org["ben"].delete(path) for _ in range(3)))
    assert sorted(reply.status for reply in replies) == [200, 400, 400]


async def test_a_user_who_is_not_muted_cannot_be_unmuted(readonly_org: Organization) -> None:
    for user_id in (readonly_org["ann"].user_id, readonly_org["ben"].user_id, 999_999):
        (await readonly_org["ben"].delete(f"/users/me/muted_users/{user_id}")).refused()


async def test_a_muted_user_s_messages_count_as_read(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    ben, cleo = org["ben"], org["cleo"]
    theirs = [await cleo.send("lounge", "t", "one"), await cleo.write([ben.user_id], "@**Ben**")]
    kept = await org["ann"].send("lounge", "t", "two")
    listener = await ben.register()
    await mute(ben, cleo)
    events = await listener.events()
    assert [event["type"] for event in events] == ["muted_users", "update_message_flags"]
    assert (events[1]["op"], events[1]["flag"], events[1]["all"]) == ("add", "read", False)
    assert events[1]["messages"] == theirs
    unread = (await ben.register()).data["unread_msgs"]
    assert unread["count"] == 1
    assert [topic["unread_message_ids"] for topic in unread["streams"]] == [[kept]]
    # Unmuting doesn't mark them as unread.
    assert (await ben.delete(f"/users/me/muted_users/{cleo.user_id}")).ok
    assert (await ben.register()).data["unread_msgs"]["count"] == 1


async def test_a_muted_user_s_new_messages_count_as_read(org: Organization, config: Config) -> None:
    await org.channel("lounge", "ann", "ben", "cleo")
    ben, cleo, ann = org["ben"], org["cleo"], org["ann"]
    await mute(ben, cleo)
    mine, other = await ben.register(), await ann.register()
    sent = await cleo.send("lounge", "t", "hi @**Ben**")
    direct = await cleo.write([ben.user_id, ann.user_id], "hi")
    assert [event["flags"] for event in await mine.events()] == [["read", "mentioned"], ["read"]]
    assert [event["flags"] for event in await other.events()] == [[], []]
    assert "read" in await flags(ben, sent)
    assert (await ben.register()).data["unread_msgs"]["count"] == 0
    async with open_organization(config) as later:
        assert "read" in await flags(later["ben"], direct)
        assert (await later["ben"].register()).data["unread_msgs"]["count"] == 0
    assert (await ben.delete(f"/users/me/muted_users/{cleo.user_id}")).ok
    again = await cleo.write([ben.user_id], "hello?")
    assert "read" not in await flags(ben, again)
