"""Message retention of the organization and of channels."""

import time

from tertulia.jobs.due import expired_once
from tertulia.model.changes import ChannelChanged, RealmChanged
from tertulia.service.config import Config
from tests.support import Organization, TestClock, new_organization, row

DAY = 86400


async def left(org: Organization) -> list[str]:
    """The messages that ann finds, oldest first."""
    page = await org["ann"].get(
        "/messages", anchor="oldest", num_before=0, num_after=50, apply_markdown=False
    )
    return [message["content"] for message in page.ok["messages"]]


DAYS: list[tuple[str, int, int | None, list[str]]] = [
    ("for ever", -1, None, ["direct", "channel"]),
    ("the organization's days", 10, None, []),
    ("the channel for ever", 10, -1, ["channel"]),
    ("the channel's days", -1, 10, ["direct"]),
    ("the channel longer", 10, 30, ["channel"]),
    ("not yet", 30, None, ["direct", "channel"]),
]
"""The organization's and a channel's retention in days, and which messages remain after twenty."""


async def test_old_messages_are_deleted(config: Config) -> None:
    clock = TestClock()
    async with new_organization(config, clock=clock) as org:
        await org.add("ben")
        for number, (name, realm_days, channel_days, kept) in enumerate(DAYS):
            with row(name):
                lounge = await org.channel(f"lounge{number}", "ann", "ben")
                days = {"retention_days": channel_days}
                await org.do(
                    RealmChanged(values={"message_retention_days": realm_days}),
                    ChannelChanged(channel_id=lounge, values=days, was={}),
                )
                await org["ann"].write([org["ben"].user_id], f"direct {number}")
                await org["ann"].send(lounge, "tea", f"channel {number}")
                clock.ahead += 20 * DAY
                await org["ann"].send(lounge, "tea", f"young {number}")
                await expired_once(org.node.log)
                found = [one for one in await left(org) if one.endswith(str(number))]
                assert found == [f"{one} {number}" for one in [*kept, "young"]]


async def test_deleted_messages_are_announced_to_their_recipients(config: Config) -> None:
    clock = TestClock()
    # Ben's queue isn't idle for two days.
    async with new_organization(config, clock=clock, elapsed=time.monotonic) as org:
        await org.add("ben")
        await org.channel("lounge", "ann", "ben")
        mid = await org["ann"].send("lounge", "tea", "old")
        ben = await org["ben"].register(
            client_capabilities={"bulk_message_deletion": True},
            idle_queue_timeout=7 * DAY,  # Longer than the clock is advanced.
        )
        await org.do(RealmChanged(values={"message_retention_days": 1}))
        clock.ahead = 2 * DAY
        await expired_once(org.node.log)
        told = [event for event in await ben.events() if event["type"] == "delete_message"]
        assert [event["message_ids"] for event in told] == [[mid]]
