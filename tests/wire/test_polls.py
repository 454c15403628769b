"""Waiting polls (GET /events), with both ways of answering them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from tertulia.delivery.recent_entries import RecentEntries
from tertulia.model.changes import RealmChanged
from tertulia.wire.http import responses
from tertulia.wire.http.responses import UnreadResponses
from tertulia.wire.protocol.http1 import READ_AHEAD, TertuliaHttp
from tests.browsers import FIREFOX, session_cookie, signed_in_browser
from tests.support import Listener, Organization, until
from tests.wire.loopback import SERVER_SETTINGS, WAYS, Line, Loopback, poll, request, serving

pytestmark = pytest.mark.usefixtures("no_logged_errors")


@pytest.fixture(params=WAYS)
async def server(org: Organization, request: pytest.FixtureRequest) -> AsyncIterator[Loopback]:
    await org.channel("lounge", "ann", "ben")
    async with serving(org, request.param) as server:
        yield server


async def waits(server: Loopback, listener: Listener, *more: str, behind: bytes = b"") -> Line:
    """A connection with a waiting poll of this listener, and data sent behind it."""
    line = await server.connect()
    before = server.waiting
    person = listener.person if listener.person.api_key else None
    line.write(poll(listener.queue_id, listener.last_event_id, person, *more) + behind)
    await until(lambda: server.waiting == before + 1)
    return line


def is_kept_by_its_connection_alone(server: Loopback) -> bool:
    """Whether polls wait in the way that the test is for."""
    return len(server.state.tasks) == (0 if server.way == "below" else server.waiting)


async def test_a_message_ends_the_wait(server: Loopback) -> None:
    org = server.org
    ann = await org["ann"].register()
    line = await waits(server, ann)
    assert is_kept_by_its_connection_alone(server)
    message_id = await org["ben"].send("lounge", "t", "hi")
    answer = await line.read()
    (event,) = answer.events
    assert event["message"]["id"] == message_id
    assert answer.told["queue_id"] == ann.queue_id
    assert server.waiting == 0


async def test_several_events_arrive_in_one_response(server: Loopback) -> None:
    ann = await server.org["ann"].register(event_types=["realm"])
    line = await waits(server, ann)
    await server.org.do(*(RealmChanged(values={"name": name}) for name in ("Here", "There")))
    events = (await line.read()).events
    assert [event["type"] for event in events] == ["realm", "realm"]
    assert events[0]["id"] < events[1]["id"]


async def test_a_heartbeat_ends_the_wait(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server.org.node.delivery, "_poll_seconds", (0.0, 0.0))
    ann = await server.org["ann"].register()
    line = await server.connect()
    for _ in range(3):
        answer = await line.ask(poll(ann.queue_id, ann.last_event_id, ann.person))
        (event,) = answer.events
        assert event["type"] == "heartbeat"
        assert event["id"] > ann.last_event_id
        ann.last_event_id = event["id"]


async def test_an_unlogged_event_ends_the_wait(server: Loopback) -> None:
    ann = await server.org["ann"].register()
    line = await waits(server, ann)
    (await server.org["ben"].post("/typing", op="start", to=[ann.person.user_id])).ok
    assert [event["type"] for event in (await line.read()).events] == ["typing"]


async def test_a_newer_poll_ends_the_older_one_without_events(server: Loopback) -> None:
    ann = await server.org["ann"].register()
    older = await waits(server, ann)
    newer = await server.connect()
    newer.write(poll(ann.queue_id, ann.last_event_id, ann.person))
    assert (await older.read()).events == []
    await until(lambda: server.waiting == 1)
    await server.org["ben"].send("lounge", "t", "hi")
    assert [event["type"] for event in (await newer.read()).events] == ["message"]
    assert (await older.ask(SERVER_SETTINGS)).status == 200


@pytest.mark.parametrize("how", [Line.half_close, Line.reset])
async def test_a_disconnected_client_is_forgotten(
    server: Loopback, how: Callable[[Line], None]
) -> None:
    ann = await server.org["ann"].register()
    line = await waits(server, ann)
    how(line)
    await until(lambda: server.waiting == 0 and not server.state.connections)
    await server.org["ben"].send("lounge", "t", "hi")
    line = await server.connect()
    answer = await line.ask(poll(ann.queue_id, ann.last_event_id, ann.person))
    assert [event["type"] for event in answer.events] == ["message"]


@pytest.mark.parametrize("how", [Line.half_close, Line.reset])
async def test_a_disconnected_client_with_pipelined_requests_is_forgotten(
    server: Loopback, how: Callable[[Line], None]
) -> None:
    ann = await server.org["ann"].register()
    next_poll = poll(ann.queue_id, ann.last_event_id, ann.person)
    line = await waits(server, ann, behind=SERVER_SETTINGS + SERVER_SETTINGS[:9])
    await server.settle()
    line.write(SERVER_SETTINGS[9:] + next_poll)
    how(line)
    await until(lambda: server.waiting == 0 and not server.state.connections)
    # The same for a poll that waited for its turn, with another request behind it.
    line = await server.connect()
    line.write(SERVER_SETTINGS + next_poll + SERVER_SETTINGS)
    assert "zulip_version" in (await line.read()).told
    await until(lambda: server.waiting == 1)
    how(line)
    await until(lambda: server.waiting == 0 and not server.state.connections)


async def test_requests_read_behind_a_poll_are_limited_and_answered_in_order(
    server: Loopback,
) -> None:
    ann = await server.org["ann"].register()
    line = await waits(server, ann, behind=SERVER_SETTINGS)
    (connection,) = server.state.connections
    assert isinstance(connection, TertuliaHttp)
    padding = b"GET /health HTTP/1.1\r\nHost: x\r\nX-Padding: " + b"x" * 4000 + b"\r\n\r\n"
    for _ in range(1000):
        # (Loopback buffers megabytes of it.)
        line.write(padding)
        await asyncio.sleep(0)
    await until(lambda: connection.flow.read_paused)
    assert READ_AHEAD <= len(connection._ahead) < 10 * READ_AHEAD
    assert len(connection.pipeline) == 1
    await server.org["ben"].send("lounge", "t", "hi")
    assert [event["type"] for event in (await line.read()).events] == ["message"]
    assert "zulip_version" in (await line.read()).told
    assert [(await line.read()).status for _ in range(16)] == [200] * 16
    await line.close()
    await until(lambda: not server.state.connections)


async def test_requests_behind_a_poll_are_answered_in_order(server: Loopback) -> None:
    org = server.org
    ann, ben = await org["ann"].register(), await org["ben"].register()
    behind = [
        SERVER_SETTINGS,
        poll(ben.queue_id, ben.last_event_id, ben.person),
        request("/users/me", org["ben"]),
    ]
    line = await waits(server, ann, behind=b"".join(behind))
    await server.settle()
    assert server.waiting == 1
    await org["ben"].send("lounge", "t", "hi")
    first, second, third, fourth = [await line.read() for _ in range(4)]
    assert first.told["queue_id"] == ann.queue_id
    assert "zulip_version" in second.told
    assert third.told["queue_id"] == ben.queue_id
    assert [event["type"] for event in third.events] == ["message"]
    assert fourth.told["user_id"] == org["ben"].user_id


async def test_one_connection_serves_many_polls(server: Loopback) -> None:
    org = server.org
    ann = await org["ann"].register()
    line = await server.connect()
    for number in range(20):
        if number % 2:
            sent = await org["ben"].send("lounge", "t", f"m{number}")
            line.write(poll(ann.queue_id, ann.last_event_id, ann.person))
        else:
            line.write(poll(ann.queue_id, ann.last_event_id, ann.person))
            await until(lambda: server.waiting == 1)
            sent = await org["ben"].send("lounge", "t", f"m{number}")
        (event,) = (await line.read()).events
        assert event["message"]["id"] == sent
        ann.last_event_id = event["id"]
    assert len(server.state.connections) == 1


# Ended access


async def key_made_anew(server: Loopback) -> None:
    (await server.org["ann"].post("/users/me/api_key/regenerate")).ok


async def account_deactivated(server: Loopback) -> None:
    (await server.org["cleo"].delete(f"/users/{server.org['ann'].user_id}")).ok


async def queue_deleted(server: Loopback) -> None:
    delivery = server.org.node.delivery
    (queue,) = delivery.queues.all()
    await delivery.delete(queue.record.id, server.org["ann"].user_id)


ENDS = [
    (key_made_anew, 401, "INVALID_API_KEY"),
    (account_deactivated, 401, "USER_DEACTIVATED"),
    (queue_deleted, 400, "BAD_EVENT_QUEUE_ID"),
]


@pytest.mark.parametrize(("ends", "status", "code"), ENDS)
@pytest.mark.parametrize("agent", ["ZulipMobile/1.0", FIREFOX])
async def test_a_poll_reports_why_it_ended(
    server: Loopback,
    ends: Callable[[Loopback], Awaitable[None]],
    status: int,
    code: str,
    agent: str,
) -> None:
    org = server.org
    (await org["ann"].patch(f"/users/{org['cleo'].user_id}", role=100)).ok
    ann = await org["ann"].register()
    line = await waits(server, ann, f"User-Agent: {agent}")
    await ends(server)
    answer = await line.read()
    assert (answer.status, answer.told["code"]) == (status, code)
    challenge = answer.header("www-authenticate")
    # With that header, a browser would prompt its user for a name and password.
    assert agent != FIREFOX or not (challenge or "").startswith("Basic")
    if code == "BAD_EVENT_QUEUE_ID":
        assert answer.told["queue_id"] == ann.queue_id
    assert answer.header("connection") is None
    assert (await line.ask(SERVER_SETTINGS)).status == 200
    assert server.waiting == 0


async def test_a_poll_reports_that_its_session_ended(server: Loopback) -> None:
    browser = await signed_in_browser(server.org)
    listener = await browser.register()
    cookie = f"Cookie: tertulia_session={session_cookie(browser)}"
    line = await waits(server, listener, cookie, f"User-Agent: {FIREFOX}")
    assert is_kept_by_its_connection_alone(server)
    await key_made_anew(server)  # Not the one used for signing in.
    assert server.waiting == 1
    (session,) = server.org.node.state.sessions
    (await browser.delete(f"/sessions/{session.id}")).ok
    answer = await line.read()
    assert (answer.status, answer.told["code"]) == (401, "UNAUTHORIZED")
    assert answer.header("www-authenticate") == 'Session realm="tertulia"'
    assert (await line.ask(SERVER_SETTINGS)).status == 200


# Shutdown


async def test_a_stopping_server_answers_and_closes_the_connection(server: Loopback) -> None:
    ann = await server.org["ann"].register()
    line = await waits(server, ann)
    await server.org.node.delivery.close()
    assert (await line.read()).events == []
    assert server.waiting == 0
    for connection in list(server.state.connections):
        connection.shutdown()
    assert await line.ended() == b""


async def test_a_poll_answered_while_the_server_stops_is_the_last(
    server: Loopback,
) -> None:
    ann = await server.org["ann"].register()
    line = await waits(server, ann)
    for connection in list(server.state.connections):
        connection.shutdown()
    await server.org["ben"].send("lounge", "t", "hi")
    answer = await line.read()
    assert [event["type"] for event in answer.events] == ["message"]
    assert answer.header("connection") == "close"
    assert await line.ended() == b""


async def test_unread_responses_use_up_the_person_s_own_room(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = 16 * 2**20
    room = UnreadResponses(6 * huge, 4 * huge, 2 * huge)
    monkeypatch.setattr(responses, "unread_responses", room)
    org = server.org
    ann, ben = await org["ann"].register(), await org["ben"].register()
    begins = b'{"id":%d,"type":"realm","name":"' % (ann.last_event_id + 1)
    events = [b'%b%b"}' % (begins, b"x" * huge)]
    monkeypatch.setattr(RecentEntries, "read", lambda *_: events)

    async def read_log(*_: object) -> list[bytes]:
        return events

    monkeypatch.setattr(RecentEntries, "read_log", read_log)
    await org.do(RealmChanged(values={"name": "There"}))
    again = poll(ann.queue_id, ann.last_event_id, ann.person)
    slow = await server.connect()
    slow.write(again)
    await until(lambda: room.taken > huge)
    other = await server.connect()
    refused = await other.ask(again)
    assert (refused.status, refused.header("retry-after") is None) == (503, False)
    assert "haven't been read yet" in refused.told["msg"]
    assert len((await other.ask(poll(ben.queue_id, ben.last_event_id, ben.person))).body) > huge
    # Reading them frees the room, and so does disconnecting.
    assert len((await slow.read()).body) > huge
    await until(lambda: not room.taken)
    slow.write(again)
    await until(lambda: room.taken > huge)
    slow.reset()
    await until(lambda: not room.taken)
    assert not room.taken_by
