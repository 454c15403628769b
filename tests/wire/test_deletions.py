"""Deletions of messages that take longer than a request."""

import asyncio

import pytest

from tertulia.jobs import deletions as jobs
from tertulia.model.changes import UserChanged
from tertulia.service import deletions
from tertulia.service.messages import deleting
from tests.support import Organization

pytestmark = pytest.mark.anyio
ALL = {
    "delete_profile": True,
    "delete_public_channel_messages": True,
    "delete_direct_messages": True,
}


async def begun(org: Organization, monkeypatch: pytest.MonkeyPatch) -> None:
    """Begin to erase Ben with a request that ends before everything is deleted."""
    ben = org["ben"]
    await org.channel("lounge", "ben", "cleo")
    for number in range(5):
        await ben.send("lounge", "a", f"m{number}")
    with monkeypatch.context() as patch:
        patch.setattr(deleting, "WRITTEN_SECONDS", -1.0)
        answer = (await org["ann"].delete(f"/users/{ben.user_id}", actions=ALL)).ok
    assert (answer["complete"], answer["deleted_messages"]) == (False, 0)
    assert not org.node.state.users[ben.user_id].is_deleted


async def left(org: Organization) -> int:
    rows = await org.node.store.read(
        lambda c: c.query(
            "SELECT count(*) FROM messages WHERE sender_id = ?", (org["ben"].user_id,)
        )
    )
    return int(rows[0][0])


async def test_a_node_completes_a_deletion_that_nobody_works_on(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    await begun(org, monkeypatch)
    assert await left(org) == 5
    job = jobs.deletions(org.node)
    await job.once()  # The request may be repeated.
    assert await left(org) == 5
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 0.0)
    await job.once()
    assert await left(org) == 0
    assert org.node.state.users[org["ben"].user_id].is_deleted
    assert await deletions.pending(org.node.store) == []


async def test_a_deletion_ends_with_the_right_of_the_administrator(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = org["ann"].user_id
    await begun(org, monkeypatch)
    await org.do(UserChanged(user_id=org["cleo"].user_id, values={"role": 100}, was={"role": 400}))
    await org.do(UserChanged(user_id=ann, values={"role": 400}, was={"role": 100}))
    monkeypatch.setattr(jobs, "ABANDONED_SECONDS", 0.0)
    await jobs.deletions(org.node).once()
    assert await left(org) == 5
    assert await deletions.pending(org.node.store) == []
    # Another administrator repeats it.
    path = f"/users/{org['ben'].user_id}"
    assert (await org["cleo"].delete(path, actions=ALL)).ok["complete"] is True
    assert await left(org) == 0


async def test_messages_in_many_conversations_are_deleted(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deleting, "BATCH", 4)
    monkeypatch.setattr(deleting, "_CONVERSATIONS", 3)
    ann, ben, cleo = org["ann"], org["ben"], org["cleo"]
    kept = {}
    for name in ("lounge", "square", "garden", "attic"):
        channel_id = await org.channel(name, "ben", "cleo")
        # The first messages of the channel are in two topics, and are all deleted.
        for topic in ("a", "b", "a"):
            await ben.send(name, topic, "gone")
        kept[channel_id] = await cleo.send(name, "b", "stays")
        for number in range(6):
            await ben.send(name, "c", f"{number}")
    await ben.write([cleo.user_id], "gone, too")
    answer = (await ann.delete(f"/users/{ben.user_id}", actions=ALL)).ok
    assert answer["complete"] is True
    assert await left(org) == 0
    for channel_id, message_id in kept.items():
        assert org.node.state.channels[channel_id].first_message_id == message_id
        topics = org.node.state.topics.of_channel[channel_id].values()
        assert {topic.name: topic.message_count for topic in topics} == {"b": 1}


async def test_the_first_messages_of_a_channel_are_deleted_concurrently(org: Organization) -> None:
    ben = org["ben"]
    channel_id = await org.channel("lounge", "ann", "ben")
    first, second, kept = [await ben.send("lounge", topic, "hi") for topic in ("a", "b", "c")]
    deleted = await asyncio.gather(
        *(org["ann"].delete(f"/messages/{one}") for one in (second, first))
    )
    assert all(reply.ok for reply in deleted)
    assert org.node.state.channels[channel_id].first_message_id == kept
