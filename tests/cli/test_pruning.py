"""Old entries of the log are deleted."""

import asyncio

import pytest

from tertulia.jobs import upkeep
from tertulia.jobs.upkeep import pruned_once
from tertulia.service.config import Config
from tertulia.store import consistency, log_entries
from tests.support import Listener, Organization, new_organization, open_organization

FUTURE = 2**60


async def entries(org: Organization) -> list[int]:
    found = await org.node.store.read(log_entries.entries, 0, 10_000)
    return [entry.seq for entry in found]


async def test_only_old_entries_are_pruned(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "BATCH_SIZE", 2)
    before = await entries(org)
    await pruned_once(org.node.store, 0)
    assert await entries(org) == before
    await org.node.store.write(lambda c: c.run("UPDATE log SET at = 1 WHERE seq <= 5"))
    await pruned_once(org.node.store, 2)
    assert await entries(org) == before[5:]
    assert (await org.node.store.read(consistency.extent)).is_contiguous


async def test_old_entry_after_a_newer_one_is_kept(org: Organization) -> None:
    before = await entries(org)
    await org.node.store.write(lambda c: c.run("UPDATE log SET at = 1 WHERE seq = 3"))
    await pruned_once(org.node.store, 2)
    assert await entries(org) == before


@pytest.mark.parametrize("goes_on", [True, False])
async def test_queue_behind_the_pruned_part_must_register_again(
    config: Config, goes_on: bool
) -> None:
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        queue = await org["ann"].register()
        await org["ann"].send("lounge", "t", "missed")
        await pruned_once(org.node.store, FUTURE)
        if goes_on:
            await org["ann"].send("lounge", "t", "new")
    async with open_organization(config) as org:
        later = Listener(org["ann"], queue.queue_id, queue.last_event_id, {})
        reply = await later.person.get(
            "/events",
            queue_id=later.queue_id,
            last_event_id=later.last_event_id,
            dont_block=True,
        )
        reply.refused("BAD_EVENT_QUEUE_ID")
        fresh = await org["ann"].register()
        sent = await org["ann"].send("lounge", "t", "after")
        (event,) = await fresh.events()
        assert event["message"]["id"] == sent


async def test_queue_at_the_end_of_a_pruned_log_continues(config: Config) -> None:
    async with new_organization(config) as org:
        await org.channel("lounge", "ann")
        queue = await org["ann"].register()
        await pruned_once(org.node.store, FUTURE)
        assert await entries(org) == []
    async with open_organization(config) as org:
        later = Listener(org["ann"], queue.queue_id, queue.last_event_id, {})
        assert await later.events() == []
        await org["ann"].send("lounge", "t", "after")
        assert len(await later.events()) == 1


async def test_messages_are_sent_while_the_log_is_pruned(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "BATCH_SIZE", 2)
    await org.channel("lounge", "ann")
    sending = [org["ann"].send("lounge", "t", str(number)) for number in range(40)]
    *sent, _ = await asyncio.gather(*sending, pruned_once(org.node.store, FUTURE))
    assert len(set(sent)) == len(sending)
    assert (await org.node.store.read(consistency.extent)).is_contiguous
