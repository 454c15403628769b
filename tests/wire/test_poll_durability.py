"""Polls (GET /events) while the disk or the client is slow, with both ways of answering them."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.support import Organization, until
from tests.unit.test_log import Counting
from tests.wire.loopback import SERVER_SETTINGS, WAYS, Answer, Line, Loopback, poll, serving

pytestmark = pytest.mark.usefixtures("no_jobs")

MESSAGE = {"type": "stream", "to": "lounge", "topic": "t", "content": "not on disk"}
LARGE = 9000
"""Characters of a message, of which many don't fit into network buffers."""
POLLS = 30


@pytest.fixture(params=WAYS)
async def server(org: Organization, request: pytest.FixtureRequest) -> AsyncIterator[Loopback]:
    await org.channel("lounge", "ann", "ben")
    async with serving(org, request.param) as server:
        yield server


@pytest.fixture
def counting(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counting]:
    with closing(Counting(server.org.node.store, monkeypatch)) as counting:
        yield counting


async def held(
    server: Loopback, counting: Counting
) -> tuple[Line, "asyncio.Task[Answer]", "asyncio.Task[Any]"]:
    """A poll with pending events during a commit: its connection, its response, and the other
    request."""
    org = server.org
    ann = await org["ann"].register()
    await org["ben"].send("lounge", "t", "on disk")
    counting.gate = asyncio.Event()
    before = counting.commits
    sending = asyncio.create_task(org["ben"].post("/messages", **MESSAGE))
    await until(lambda: counting.commits == before + 1)
    line = await server.connect()
    line.write(poll(ann.queue_id, ann.last_event_id, ann.person))
    answer = asyncio.create_task(line.read())
    await server.settle()
    assert not answer.done()
    assert server.waiting == 0
    return line, answer, sending


async def test_a_response_waits_until_its_state_is_on_disk(
    server: Loopback, counting: Counting
) -> None:
    _, answer, sending = await held(server, counting)
    assert counting.gate is not None
    counting.gate.set()
    events = (await answer).events
    assert events[0]["message"]["content"] == "on disk"
    (await sending).ok


async def test_a_response_with_uncommitted_state_is_discarded(
    server: Loopback, counting: Counting
) -> None:
    line, answer, sending = await held(server, counting)
    log = server.org.node.log
    generation = log.durability.generation
    assert counting.gate is not None
    counting.breaks = {"commit"}
    counting.gate.set()
    refused = await answer
    assert (refused.status, refused.told["result"]) == (503, "error")
    (await sending).refused("SERVER_NOT_READY", 503)
    counting.breaks = set()
    assert await log.durability.was_reloaded(generation)
    assert (await line.ask(SERVER_SETTINGS)).status == 200
    (queue,) = server.org.node.delivery.queues.all()
    events = (await line.ask(poll(queue.record.id, -1, server.org["ann"]))).events
    assert [event["message"]["content"] for event in events] == ["on disk"]


async def test_a_client_may_disconnect_before_the_state_is_on_disk(
    server: Loopback, counting: Counting, no_logged_errors: None
) -> None:
    line, answer, sending = await held(server, counting)
    line.reset()
    await until(lambda: not server.state.connections)
    assert counting.gate is not None
    counting.gate.set()
    (await sending).ok
    with pytest.raises((OSError, EOFError)):
        await answer
    assert server.waiting == 0


async def test_a_client_that_does_not_read_is_not_written_to(
    server: Loopback, no_logged_errors: None
) -> None:
    org = server.org
    ann = await org["ann"].register()
    for _ in range(40):
        await org["ben"].send("lounge", "t", "x" * LARGE)
    line = await server.connect()
    line.write(poll(ann.queue_id, -1, ann.person) * POLLS)
    await server.settle()
    unsent = [one.transport.get_write_buffer_size() for one in server.state.connections]
    assert max(unsent) < 1024 * 1024
    answers = [await line.read() for _ in range(POLLS)]
    assert len({answer.body for answer in answers}) == 1
    assert len(answers[0].events) == 40
