"""Recently active channels, their traffic, and their subscriber counts."""

import time
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from tertulia.model.changes import MessagesDeleted
from tertulia.model.channels import Channel
from tertulia.service.config import Config
from tertulia.state.state import State
from tests.support import Listener, Organization, TestClock, new_organization, open_organization

DAY = 86400


@pytest.fixture
async def org(config: Config, clock: TestClock) -> AsyncIterator[Organization]:
    # No time passes when the clock is set, otherwise queues would be idle.
    async with new_organization(config, clock=clock, elapsed=time.monotonic) as organization:
        await organization.add("ben")
        yield organization


async def changes(listener: Listener) -> list[tuple[int, Any]]:
    return [
        (event["stream_id"], event["value"])
        for event in await listener.events()
        if event.get("property") == "is_recently_active"
    ]


async def is_active(org: Organization, channel: int) -> bool:
    shown = (await org["ben"].get(f"/streams/{channel}")).ok["stream"]
    active: bool = shown["is_recently_active"]
    return active


async def test_a_channel_becomes_inactive_after_180_days_and_active_with_a_message(
    org: Organization, clock: TestClock
) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    await org.channel("secret", "ann", is_private=True)
    assert await is_active(org, channel)
    clock.ahead += 100 * DAY
    await org["ann"].send("lounge", "tea", "a")
    ben = await org["ben"].register()
    clock.ahead += 179 * DAY
    await org.tick()
    assert await is_active(org, channel)
    assert await changes(ben) == []
    clock.ahead += 2 * DAY
    await org.tick()
    assert not await is_active(org, channel)
    assert await changes(ben) == [(channel, False)]
    await org["ann"].send("lounge", "tea", "b")
    await org.tick()
    assert await is_active(org, channel)
    assert await changes(ben) == [(channel, True)]


async def test_a_channel_that_became_inactive_while_no_server_ran_is_updated(
    config: Config, clock: TestClock
) -> None:
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        channel = await org.channel("lounge", "ben")
        ben = await org["ben"].register(idle_queue_timeout=7 * DAY)
    clock.ahead += 181 * DAY
    async with open_organization(config, clock=clock) as org:
        await org.tick()
        assert not await is_active(org, channel)
        moved = Listener(org["ben"], ben.queue_id, ben.last_event_id, {})
        assert await changes(moved) == [(channel, False)]


async def test_an_inactive_archived_channel_is_shown_to_clients_that_know_archived_ones(
    org: Organization, clock: TestClock
) -> None:
    channel = await org.channel("lounge", "ben")
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    knowing = await org["ben"].register(client_capabilities={"archived_channels": True})
    other = await org["ben"].register()
    clock.ahead += 182 * DAY
    knowing.person, other.person = org["ben"], org["ben"]
    await org.tick()
    assert await changes(knowing) == [(channel, False)]
    assert await changes(other) == []


def test_nothing_is_due_without_channels() -> None:
    assert State().channels.activity.next(0) is None


def test_the_time_of_a_channel_is_kept_once() -> None:
    """An import writes messages of years into thousands of channels."""
    channels = State().channels
    for day in range(1000):
        for channel_id in (1, 2):
            channels.put(
                Channel(
                    id=channel_id,
                    name=str(channel_id),
                    created_at=0,
                    last_message_at=day * channel_id * DAY,
                )
            )
    assert len(channels.activity) == 2
    assert channels.activity.next(999 * DAY) == (999 + 180) * DAY
    assert channels.activity.next((999 + 180) * DAY) == (999 + 180) * DAY  # Due now.
    channels.put(replace(channels[1], is_recently_active=False))
    assert channels.activity.next((999 + 180) * DAY) == (1998 + 180) * DAY
    assert len(channels.activity) == 1


@pytest.mark.parametrize(
    ("days", "sent", "expected"),
    [(0, 3, None), (6.9, 3, None), (7, 3, 3), (14, 4, 2), (70, 3, 0)],
)
async def test_traffic_is_reported_from_the_first_week_on(
    org: Organization, clock: TestClock, days: float, sent: int, expected: int | None
) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    for number in range(sent):
        await org["ann"].send("lounge", "tea", str(number))
    clock.ahead += days * DAY + 60 * (days >= 7)
    shown = (await org["ben"].get(f"/streams/{channel}")).ok["stream"]
    assert shown["stream_weekly_traffic"] == expected


async def test_the_first_message_of_a_channel_is_known(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    path = f"/streams/{channel}"
    assert (await org["ben"].get(path)).ok["stream"]["first_message_id"] is None
    first = await org["ann"].send("lounge", "tea", "a")
    await org["ann"].send("lounge", "tea", "b")
    assert (await org["ben"].get(path)).ok["stream"]["first_message_id"] == first


async def test_another_first_message_of_a_channel_is_announced(org: Organization) -> None:
    """To its subscribers, whether they could read the old one or not."""
    tea = await org.channel("tea", "ann", "ben")
    den = await org.channel("den", "ann", is_private=True)
    first, second, third = [await org["ann"].send("tea", text, "x") for text in "abc"]
    later = await org["ann"].send("den", "t", "x")
    await org.add("cleo")
    listeners = [await org[name].register() for name in ("ann", "ben", "cleo")]

    async def told() -> list[list[tuple[int, int | None]]]:
        return [
            [
                (event["stream_id"], event["value"])
                for event in await listener.events()
                if event["type"] == "stream" and event.get("property") == "first_message_id"
            ]
            for listener in listeners
        ]

    assert (await org["ann"].delete(f"/messages/{second}")).ok
    assert await told() == [[], [], []]
    assert (await org["ann"].delete(f"/messages/{first}")).ok
    assert await told() == [[(tea, third)], [(tea, third)], []]
    quiet = {"send_notification_to_new_thread": False}
    assert (await org["ann"].patch(f"/messages/{third}", stream_id=den, **quiet)).ok
    assert await told() == [[(tea, None), (den, third)], [(tea, None)], []]
    assert (await org["ann"].patch(f"/messages/{later}", stream_id=tea, **quiet)).ok
    assert await told() == [[(tea, later)], [(tea, later)], []]
    # Most clients don't know archived channels.
    knows = {"client_capabilities": {"archived_channels": True}}
    listeners = [await org["ann"].register(), await org["ann"].register(**knows)]
    assert (await org["ann"].delete(f"/streams/{tea}")).ok
    await org.do(  # As after the retention period.
        MessagesDeleted(
            message_ids=(later,),
            channel_id=tea,
            topic="t",
            emptied=((tea, "t"),),
            first_message_ids={tea: None},
        )
    )
    assert (await org["ann"].patch(f"/streams/{tea}", is_archived=False)).ok
    assert await told() == [[], [(tea, None)]]


async def test_archiving_a_channel_marks_its_messages_as_read(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    for text in ("a", "b"):
        old = await org["ann"].send("lounge", "tea", text)
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    unread = {"messages": [old], "op": "remove", "flag": "read"}
    reply = await org["ben"].post("/messages/flags", **unread)
    assert reply.ok["ignored_because_not_subscribed_channels"] == [channel]
    assert (await org["ann"].patch(f"/streams/{channel}", is_archived=False)).ok
    new = await org["ann"].send("lounge", "tea", "c")
    (topic,) = (await org["ben"].register()).data["unread_msgs"]["streams"]
    assert topic["unread_message_ids"] == [new]
    shown = (await org["ben"].get("/messages", anchor=old, num_before=0, num_after=1)).ok
    assert [message["flags"] for message in shown["messages"]] == [["read"], []]
    # They can be marked as unread again.
    assert (await org["ben"].post("/messages/flags", **unread)).ok
    (topic,) = (await org["ben"].register()).data["unread_msgs"]["streams"]
    assert topic["unread_message_ids"] == [old, new]
