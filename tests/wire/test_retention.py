"""Messages are kept as long as the organization, or the channel, wants; and no longer."""

import time

import pytest

from tertulia.jobs.retention import expired_once
from tertulia.model.changes import ChannelChanged, RealmChanged
from tertulia.service.config import Config
from tests.support import Organization, TestClock, founded

DAY = 86400


async def left(org: Organization) -> list[str]:
    """What ann finds, the oldest first."""
    page = await org["ann"].get(
        "/messages", anchor="oldest", num_before=0, num_after=50, apply_markdown=False
    )
    return [message["content"] for message in page.ok["messages"]]


@pytest.mark.parametrize(
    ("realm_days", "channel_days", "kept"),
    [
        (-1, None, ["direct", "channel"]),
        (10, None, []),
        (10, -1, ["channel"]),
        (-1, 10, ["direct"]),
        (10, 30, ["channel"]),
        (30, None, ["direct", "channel"]),
    ],
    ids=[
        "for ever",
        "the organization's days",
        "the channel for ever",
        "the channel's days",
        "the channel longer",
        "not yet",
    ],
)
async def test_what_is_too_old_is_deleted(
    config: Config, realm_days: int, channel_days: int | None, kept: list[str]
) -> None:
    clock = TestClock()
    async with founded(config, clock=clock) as org:
        await org.add("ben")
        lounge = await org.channel("lounge", "ann", "ben")
        await org["ann"].write([org["ben"].user_id], "direct")
        await org["ann"].send("lounge", "tea", "channel")
        await org.do(
            RealmChanged(values={"message_retention_days": realm_days}),
            ChannelChanged(channel_id=lounge, values={"retention_days": channel_days}, was={}),
        )
        clock.ahead = 20 * DAY
        await org["ann"].send("lounge", "tea", "young")
        await expired_once(org.node.log)
        assert await left(org) == [*kept, "young"]


async def test_who_has_it_is_told_that_it_is_gone(config: Config) -> None:
    clock = TestClock()
    # Ben's queue is not idle for two days.
    async with founded(config, clock=clock, elapsed=time.monotonic) as org:
        await org.add("ben")
        await org.channel("lounge", "ann", "ben")
        mid = await org["ann"].send("lounge", "tea", "old")
        ben = await org["ben"].register(client_capabilities={"bulk_message_deletion": True})
        await org.do(RealmChanged(values={"message_retention_days": 1}))
        clock.ahead = 2 * DAY
        await expired_once(org.node.log)
        told = [event for event in await ben.events() if event["type"] == "delete_message"]
        assert [event["message_ids"] for event in told] == [[mid]]
