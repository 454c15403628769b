"""Whose share of the database's readers a request uses."""

import asyncio
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from tertulia.model.organization import RealmChanged
from tertulia.store import message_search
from tertulia.store.database import Connection
from tertulia.store.message_search import Page
from tertulia.store.readers import Readers, current_requester
from tests.support import Organization, until
from tests.wire.loopback import Loopback, request

Asked = list[tuple[str, int | str | None]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """The shares that reads used, and for whom."""
    found: Asked = []
    for share in ("read", "search"):
        real = getattr(Readers, share)

        async def noted(*how: Any, real: Any = real, share: str = share) -> Any:
            if current_requester.get().person is not None:  # Not the log's own.
                found.append((share, current_requester.get().person))
            return await real(*how)

        monkeypatch.setattr(Readers, share, noted)
    return found


async def test_reads_count_for_the_person_who_sent_the_request(
    org: Organization, asked: Asked
) -> None:
    await org.channel("lounge", "ann", is_web_public=True)
    await org.add("helper", owner="ben")
    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    message_id = await org["ann"].send("lounge", "t", "hello")
    for person, share in (("ann", org["ann"].user_id), ("helper", org["ben"].user_id)):
        asked.clear()
        (await org[person].get(f"/messages/{message_id}")).ok
        assert {who for _, who in asked} == {share}
    asked.clear()
    (await org.nobody.get(f"/messages/{message_id}")).ok
    assert {who for _, who in asked} == {"127.0.0.1"}


async def test_a_narrow_bounded_by_an_index_is_no_search(org: Organization, asked: Asked) -> None:
    await org.channel("lounge", "ann")
    page = {"anchor": "oldest", "num_before": 0, "num_after": 5}
    topic = [["channel", "lounge"], ["topic", "t"]]
    ben = org["ben"].user_id
    for narrow, share in (
        ([], "read"),
        (topic[:1], "read"),
        (topic, "read"),
        ([{"operator": "dm", "operand": [ben]}], "read"),
        ([["is", "unread"]], "read"),
        ([["search", "tea"]], "search"),
        ([*topic, ["search", "tea"]], "search"),
        ([{"operator": "sender", "operand": ben}], "search"),
        ([["has", "link"]], "search"),
        ([{"operator": "channel", "operand": "lounge", "negated": True}], "search"),
    ):
        asked.clear()
        (await org["ann"].get("/messages", **page, narrow=narrow)).ok
        assert share in {how for how, _ in asked} <= {share, "read"}, narrow


async def test_a_search_ends_when_its_client_disconnects(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def endless(connection: Connection, *_: Any, **__: Any) -> Page:
        loop.call_soon_threadsafe(begun.set)
        try:
            while True:
                connection.require_time()
        finally:
            loop.call_soon_threadsafe(ended.set)

    # Without messages that Ann can find, the search would be bounded: an ordinary read.
    await org.channel("lounge", "ann")
    await org["ann"].send("lounge", "t", "Tea")
    monkeypatch.setattr(message_search, "find", endless)
    monkeypatch.setattr("tertulia.store.readers.SEARCH_SECONDS", 600)
    narrow = msgspec.json.encode([["search", "tea"]]).decode()
    page = urlencode({"anchor": "oldest", "num_before": 0, "num_after": 5, "narrow": narrow})
    async with Loopback(org, "endpoint").open() as server:
        line = await server.connect()
        line.write(request(f"/messages?{page}", org["ann"]))
        async with asyncio.timeout(60):
            await begun.wait()
            line.reset()
            await ended.wait()
        await until(lambda: not server.state.connections)
