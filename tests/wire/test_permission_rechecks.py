"""Permissions are checked again after a read off the event loop."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from tertulia.model.changes import ChannelChanged, RealmChanged
from tertulia.store.store import Store
from tests.support import Organization, Reply

Between = Callable[[Callable[[], Awaitable[Any]]], None]
PAGE = {"anchor": "newest", "num_before": 9, "num_after": 0}
VAULT = [{"operator": "channel", "operand": "vault"}]


@pytest.fixture
def after_reading(monkeypatch: pytest.MonkeyPatch) -> Iterator[Between]:
    """Run this once, after the test's next request has read something and before it's answered. The
    node's own reads in the meantime (such as read state) are in other tasks."""
    read, search = Store.read, Store.search
    pending: list[Callable[[], Awaitable[Any]]] = []

    def set_up(happens: Callable[[], Awaitable[Any]]) -> None:
        asking = asyncio.current_task()
        pending.append(happens)

        async def reading(self: Store, *arguments: Any) -> Any:
            return await before_answer(read(self, *arguments))

        async def searching(self: Store, *arguments: Any) -> Any:
            return await before_answer(search(self, *arguments))

        async def before_answer(finding: Awaitable[Any]) -> Any:
            found = await finding
            if pending and asyncio.current_task() is asking:
                await pending.pop()()
            return found

        monkeypatch.setattr(Store, "read", reading)
        monkeypatch.setattr(Store, "search", searching)

    yield set_up
    assert not pending, "nothing was read"


async def throw_out(org: Organization) -> Reply:
    people = {"subscriptions": ["vault"], "principals": [org["ben"].user_id]}
    return await org["ann"].delete("/users/me/subscriptions", **people)


@pytest.mark.parametrize("narrow", [[], VAULT, [*VAULT, {"operator": "search", "operand": "gold"}]])
async def test_a_page_is_checked_with_the_permissions_after_the_read(
    org: Organization, after_reading: Between, narrow: list[dict[str, str]]
) -> None:
    await org.channel("vault", "ann", "ben", is_private=True)
    await org["ann"].send("vault", "t", "the gold is here")
    asked = PAGE | {"narrow": narrow}
    # A second request may be answered from memory.
    assert len((await org["ann"].get("/messages", **asked)).ok["messages"]) == 1
    after_reading(lambda: throw_out(org))
    assert (await org["ben"].get("/messages", **asked)).ok["messages"] == []


@pytest.mark.parametrize("path", ["/messages/{}", "/messages/{}/history"])
async def test_a_single_message_is_checked_after_the_read(
    org: Organization, after_reading: Between, path: str
) -> None:
    await org.channel("vault", "ann", "ben", is_private=True)
    sent = await org["ann"].send("vault", "t", "the gold is here")
    assert (await org["ben"].get(path.format(sent))).ok
    after_reading(lambda: throw_out(org))
    (await org["ben"].get(path.format(sent))).refused()


async def test_messages_moved_out_of_sight_during_the_read_are_not_shown(
    org: Organization, after_reading: Between
) -> None:
    await org.channel("lounge", "ann", "ben")
    vault = await org.channel("vault", "ann", is_private=True)
    one = await org["ann"].send("lounge", "t", "the gold is here")
    two = await org["ann"].send("lounge", "t", "and here")

    async def moved(message_id: int) -> Reply:
        return await org["ann"].patch(f"/messages/{message_id}", stream_id=vault)

    after_reading(lambda: moved(one))
    messages = (await org["ben"].get("/messages", **PAGE)).ok["messages"]
    assert one not in [message["id"] for message in messages]
    after_reading(lambda: moved(two))
    (await org["ben"].get(f"/messages/{two}")).refused()


async def test_a_file_is_checked_after_the_read(org: Organization, after_reading: Between) -> None:
    await org.channel("vault", "ann", "ben", is_private=True)
    path = await org["ann"].upload()
    await org["ann"].send("vault", "t", f"[note](/user_uploads/{path})")
    address = f"/user_uploads/{path}"
    assert (await org["ben"].open(address)).status_code == 200
    after_reading(lambda: throw_out(org))
    assert (await org["ben"].open(address)).status_code in {403, 404}


async def test_a_spectator_s_page_is_checked_after_the_read(
    org: Organization, after_reading: Between
) -> None:
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    square = await org.channel("square", "ann", is_web_public=True)
    await org["ann"].send("square", "t", "hear, hear")
    asked = PAGE | {"narrow": [{"operator": "channels", "operand": "web-public"}]}
    assert len((await org.nobody.get("/messages", **asked)).ok["messages"]) == 1

    async def closed() -> None:
        values, was = {"is_web_public": False}, {"is_web_public": True}
        await org.do(ChannelChanged(channel_id=square, values=values, was=was))

    after_reading(closed)
    assert (await org.nobody.get("/messages", **asked)).ok["messages"] == []


async def test_only_owners_allow_spectators(org: Organization) -> None:
    assert (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=200)).ok
    refused = await org["cleo"].patch("/realm", enable_spectator_access=True)
    refused.refused("UNAUTHORIZED_PRINCIPAL")
    assert (await org["ann"].patch("/realm", enable_spectator_access=True)).ok
