"""Timeouts for request headers."""

from collections.abc import AsyncIterator

import pytest

from tertulia.wire.protocol.connections import ConnectionLimits
from tests.support import Organization, until
from tests.wire.loopback import SERVER_SETTINGS, WAYS, Loopback, poll, request, serving

pytestmark = pytest.mark.usefixtures("no_logged_errors")


HEAD_SECONDS = 5.0
LIMITS = ConnectionLimits(most=1000, head_seconds=HEAD_SECONDS, sweep_seconds=3600)
"""Time passes only when a test says so."""


@pytest.fixture(params=WAYS)
async def server(
    sqlite_org: Organization, request: pytest.FixtureRequest
) -> AsyncIterator[Loopback]:
    async with serving(sqlite_org, request.param, LIMITS) as server:
        yield server


@pytest.fixture(params=WAYS)
async def polled(org: Organization, request: pytest.FixtureRequest) -> AsyncIterator[Loopback]:
    """The server of an organization with events."""
    async with serving(org, request.param, LIMITS) as server:
        yield server


async def patience_is_over(server: Loopback) -> None:
    """Return when everything sent has arrived, and headers that started then would be late."""
    await server.settle()
    server.pass_time(HEAD_SECONDS + 1)


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET",
        b"GET /api/v1/server_settings HTTP/1.1\r\n",
        b"GET /api/v1/server_settings HTTP/1.1\r\nHost: chat.test\r\nX: ",
        b"\r\n",
        b"\r\n\r\n\r\n",
    ],
)
@pytest.mark.parametrize("first", [b"", SERVER_SETTINGS], ids=["first", "later"])
async def test_unfinished_headers_close_the_connection(
    server: Loopback, first: bytes, sent: bytes
) -> None:
    if first and not sent:
        pytest.skip("a connection is kept for a next request, for longer")
    line = await server.connect()
    if first:
        assert (await line.ask(first)).status == 200
    line.write(sent)
    await patience_is_over(server)
    assert await line.ended() == b""


async def test_sending_a_little_now_and_then_does_not_help(server: Loopback) -> None:
    line = await server.connect()
    line.write(b"GET /api/v1/server_settings HTTP/1.1\r\n")
    await server.settle()
    server.pass_time(HEAD_SECONDS - 1)
    line.write(b"Host: chat.test\r\n")
    await server.settle()
    server.pass_time(2)
    assert await line.ended() == b""


async def test_an_idle_keep_alive_connection_is_kept(server: Loopback) -> None:
    line = await server.connect()
    for _ in range(3):
        assert (await line.ask(SERVER_SETTINGS)).status == 200
        await patience_is_over(server)


async def test_a_poll_may_wait_longer(polled: Loopback) -> None:
    org = polled.org
    await org.channel("lounge", "ann", "ben")
    ann = await org["ann"].register()
    line = await polled.connect()
    line.write(poll(ann.queue_id, ann.last_event_id, ann.person))
    await until(lambda: polled.waiting == 1)
    await patience_is_over(polled)
    line.write(b"\r\n")  # Zero.
    await patience_is_over(polled)
    await org["ben"].send("lounge", "t", "hi")
    assert [event["type"] for event in (await line.read()).events] == ["message"]


@pytest.mark.parametrize("polled", ["below"], indirect=True)
async def test_headers_that_the_server_does_not_read_may_take_longer(polled: Loopback) -> None:
    """Of requests pipelined behind a poll, it reads only a few until the poll is answered."""
    org = polled.org
    await org.channel("lounge", "ann", "ben")
    ann = await org["ann"].register()
    line = await polled.connect()
    waiting = poll(ann.queue_id, ann.last_event_id, ann.person)
    line.write(waiting + SERVER_SETTINGS + SERVER_SETTINGS[:-2])
    await until(lambda: polled.waiting == 1)
    await patience_is_over(polled)
    line.write(SERVER_SETTINGS[-2:])
    await org["ben"].send("lounge", "t", "hi")
    assert [event["type"] for event in (await line.read()).events] == ["message"]
    assert [(await line.read()).status for _ in range(2)] == [200, 200]


async def test_an_upload_may_take_longer(polled: Loopback) -> None:
    ann = polled.org["ann"]
    body = "status_text=" + "x" * 40
    line = await polled.connect()
    line.write(
        request(
            "/users/me/status",
            ann,
            "Content-Type: application/x-www-form-urlencoded",
            f"Content-Length: {len(body)}",
            method="POST",
        )
    )
    for half in (body[:20], body[20:]):
        await patience_is_over(polled)
        line.write(half.encode())
    assert (await line.read()).told["result"] == "success"
