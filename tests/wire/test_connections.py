"""Limits on the memory that connections take, and on how long the server waits for them."""

import asyncio
import gc
import logging
import socket
import weakref
from collections.abc import AsyncIterator, Callable, Sequence

import pytest
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http import httptools_impl

from tertulia.wire.http import forms
from tertulia.wire.http.dispatch import ANONYMOUS_BODY
from tertulia.wire.http.errors import BodyTooLarge, Overloaded
from tertulia.wire.http.forms import BodyBuffers
from tertulia.wire.protocol.addresses import trusting, unmapped
from tertulia.wire.protocol.connections import (
    RESERVE,
    ClientTimeout,
    ConnectionLimits,
    Connections,
    Wait,
)
from tertulia.wire.protocol.http1 import MAX_PIPELINED, TertuliaHttp
from tertulia.wire.protocol.load import Turns
from tertulia.wire.protocol.request_head import MAX_HEAD
from tests.support import Organization, Person, rows, until
from tests.wire.loopback import SERVER_SETTINGS, WAYS, Line, Loopback, poll, request, serving

pytestmark = pytest.mark.usefixtures("no_logged_errors")

HEALTH = b"GET /health HTTP/1.1\r\nHost: chat.test\r\n\r\n"
FORM = "Content-Type: application/x-www-form-urlencoded"
HUGE = 16 * 2**20
"""Bytes, more than sockets buffer."""
QUICK = ConnectionLimits(
    most=1000,
    head_seconds=0.3,
    body_seconds=0.3,
    answer_seconds=0.3,
    most_seconds=0.3,
    sweep_seconds=0.02,
)


class Slow:
    """An application that answers when told to, or with a very large response."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.begun = 0
        self.gone = 0
        self.size = 2
        self.on_begin: Callable[[], object] = lambda: None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (message := await receive()).get("more_body"):
            pass
        if message["type"] == "http.disconnect":
            self.gone += 1
            return
        self.begun += 1
        self.on_begin()
        await self.answers.wait()
        length = (b"content-length", b"%d" % self.size)
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": bytes(self.size)})


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
async def server(sqlite_org: Organization, slow: Slow) -> AsyncIterator[Loopback]:
    async with Loopback(sqlite_org, "endpoint", app=slow).open() as server:
        yield server
        slow.answers.set()


@pytest.fixture
async def quick(sqlite_org: Organization, slow: Slow) -> AsyncIterator[Loopback]:
    async with Loopback(sqlite_org, "endpoint", limits=QUICK, app=slow).open() as server:
        yield server
        slow.answers.set()


async def the_one(server: Loopback) -> TertuliaHttp:
    await until(lambda: len(server.state.connections) == 1)
    (connection,) = server.state.connections
    assert isinstance(connection, TertuliaHttp)
    return connection


# Pipelined requests


async def test_a_client_with_too_many_pipelined_requests_is_disconnected(
    server: Loopback, slow: Slow
) -> None:
    line = await server.connect()
    line.write(HEALTH * 5000)
    connection = await the_one(server)
    await until(lambda: slow.begun == 1)
    assert len(connection.pipeline) == MAX_PIPELINED
    assert len(server.state.tasks) == 1
    slow.answers.set()
    # Earlier requests are answered, and then an error explains why no more are.
    assert [(await line.read()).status for _ in range(MAX_PIPELINED + 1)] == [200] * 33
    last = await line.read()
    assert (last.status, last.header("connection")) == (400, "close")
    assert await line.ended() == b""


async def test_of_the_pipelined_requests_one_starts_in_each_turn(
    server: Loopback, slow: Slow
) -> None:
    """However many connections they are on: a client with a single request waits for one of
    them."""
    slow.answers.set()
    loop, turn, is_over = asyncio.get_running_loop(), 0, False

    def count() -> None:
        nonlocal turn
        turn += 1
        if not is_over:
            loop.call_soon(count)

    begun: list[int] = []
    slow.on_begin = lambda: begun.append(turn)
    lines = [await server.connect() for _ in range(5)]
    count()
    for line in lines:
        line.write(HEALTH * 20)
    for line in lines:
        assert [(await line.read()).status for _ in range(20)] == [200] * 20
    is_over = True
    assert len(begun) == 100
    # The first request of each connection starts immediately.
    assert len(set(begun)) >= 95


async def test_a_connection_that_cannot_start_does_not_delay_others() -> None:
    begun: list[str] = []
    failed: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: failed.append(str(context["exception"]))
    )

    class Waiting:
        def __init__(self, name: str, error: Exception | None = None) -> None:
            self.name, self.error = name, error

        def begin_next(self) -> bool:
            if self.error is not None:
                raise self.error
            begun.append(self.name)
            return True

    turns = Turns()
    for one in (Waiting("a"), Waiting("b", ValueError("broken")), Waiting("c")):
        turns.want(one)
    for _ in range(5):
        await asyncio.sleep(0)
    turns.want(Waiting("d"))
    await asyncio.sleep(0)
    assert (begun, failed) == (["a", "c", "d"], ["broken"])


async def test_of_pipelined_polls_one_per_turn_is_answered_by_the_protocol(
    org: Organization,
) -> None:
    """Other connections have their turns, as with any request."""
    ann = await org["ann"].register()
    async with serving(org, "below") as server:
        line = await server.connect()
        immediate_poll = poll(f"{ann.queue_id}&dont_block=true", ann.last_event_id, ann.person)
        line.write(immediate_poll * 20)
        for _ in range(20):
            assert (await line.read()).events == []
        assert server.polls is not None
        assert server.polls.started < 20
        # One after the other, each can be.
        before = server.polls.started
        for _ in range(3):
            assert (await line.ask(immediate_poll)).events == []
        assert server.polls.started == before + 3


async def test_invalid_data_behind_a_waiting_request_is_reported_last(
    server: Loopback, slow: Slow
) -> None:
    slow.answers.set()
    line, other = await server.connect(), await server.connect()
    other.write(HEALTH * 30)
    line.write(HEALTH * 5 + b"nonsense\r\n\r\n" + HEALTH)
    assert [(await line.read()).status for _ in range(6)] == [200] * 5 + [400]
    assert await line.ended() == b""


async def test_nothing_is_read_while_a_request_waits(server: Loopback, slow: Slow) -> None:
    """Even if the application wants more."""
    line = await server.connect()
    line.write(HEALTH * 3)
    connection = await the_one(server)
    await until(lambda: len(connection.pipeline) == 2)
    for _ in range(200):
        line.write(HEALTH)
        await asyncio.sleep(0)
    assert len(connection.pipeline) == 2
    connection.flow.resume_reading()
    await server.settle()
    assert len(connection.pipeline) == 2
    slow.answers.set()
    answers = [await line.read() for _ in range(3)]
    assert [answer.status for answer in answers] == [200] * 3


async def test_waiting_requests_end_with_their_connection(
    server: Loopback, slow: Slow, no_garbage_collection: None
) -> None:
    line = await server.connect()
    line.write(HEALTH * 20)
    connection = weakref.ref(await the_one(server))
    await until(lambda: slow.begun == 1)
    queued = connection()
    assert queued is not None
    waiting = [weakref.ref(cycle) for cycle, _ in queued.pipeline]
    assert len(waiting) == 19
    queued.transport.abort()
    del queued
    slow.answers.set()
    await until(lambda: not server.state.tasks and connection() is None)
    assert [one for one in waiting if one() is not None] == []
    assert slow.begun == 1


async def test_the_request_being_answered_learns_of_the_disconnect(
    org: Organization,
) -> None:
    """Not only the last one."""
    ann = await org["ann"].register()
    async with serving(org, "endpoint") as server:
        line = await server.connect()
        line.write(poll(ann.queue_id, ann.last_event_id, ann.person) + HEALTH)
        await until(lambda: server.waiting == 1)
        (await the_one(server)).transport.abort()
        await until(lambda: server.waiting == 0 and not server.state.tasks)


@pytest.mark.parametrize("way", WAYS)
async def test_a_thousand_polls_on_one_connection(org: Organization, way: str) -> None:
    ann = await org["ann"].register()
    async with serving(org, way) as server:
        line = await server.connect()
        line.write(poll(ann.queue_id, ann.last_event_id, ann.person) * 1000)
        if way == "below":
            assert await line.ended() == b""
        else:
            connection = await the_one(server)
            await until(lambda: len(connection.pipeline) == MAX_PIPELINED)
            connection.transport.abort()
        await until(lambda: not server.state.connections and not server.state.tasks)
        assert server.waiting == 0


async def test_invalid_data_behind_a_request_is_reported_after_its_response(
    server: Loopback, slow: Slow
) -> None:
    line = await server.connect()
    line.write(HEALTH + b"nonsense\r\n\r\n" + HEALTH)
    await until(lambda: slow.begun == 1)
    slow.answers.set()
    assert [(await line.read()).status for _ in range(2)] == [200, 400]
    assert await line.ended() == b""
    assert slow.begun == 1


async def test_a_broken_body_behind_a_request_is_reported_after_its_response(
    server: Loopback, slow: Slow
) -> None:
    line = await server.connect()
    chunked = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    line.write(HEALTH + chunked + b"zz\r\n")
    await until(lambda: slow.begun == 1)
    slow.answers.set()
    assert [(await line.read()).status for _ in range(2)] == [200, 400]
    assert await line.ended() == b""
    assert slow.begun == 1


# Headers


@rows(
    "head",
    [
        b"GET /health HTTP/1.1\r\nHost: x\r\nX: " + b"x" * MAX_HEAD + b"\r\n\r\n",
        b"GET /health?" + b"x" * MAX_HEAD + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"a:b\r\n" * 300 + b"\r\n",
        b"GET /health HTTP/1.1\r\nHost: x\r\n" + (b"a:" + b"b" * 1000 + b"\r\n") * 70 + b"\r\n",
    ],
    ids=["line", "target", "lines", "sum"],
)
@rows("before", [b"", HEALTH], ids=["alone", "behind"])
async def test_headers_that_arrive_in_one_piece_are_limited_as_well(
    server: Loopback, slow: Slow, before: bytes, head: bytes
) -> None:
    slow.answers.set()
    slow.begun = 0
    line = await server.connect()
    line.write(before + head)
    if before:
        assert (await line.read()).status == 200
    assert (await line.read()).status == 431
    assert await line.ended() == b""
    assert slow.begun == bool(before)


CHUNKED = b"POST /health HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "endless",
    [b"1;" + b"x" * 1000, b"1\r\na\r\n0\r\nX: " + b"x" * 1000, b"0\r\n" + b"a:b\r\n" * 200],
    ids=["extension", "trailer", "trailers"],
)
async def test_chunk_framing_is_limited(server: Loopback, endless: bytes) -> None:
    line = await server.connect()
    line.write(CHUNKED + endless)
    for _ in range(2 * MAX_HEAD // 1000):
        line.write(b"a:" + b"x" * 996 + b"\r\n" if endless.endswith(b"\n") else b"x" * 1000)
        await asyncio.sleep(0)
    await line.ended()
    await until(lambda: not server.state.connections)


async def test_trailers_are_not_headers(org: Organization) -> None:
    seen: list[list[bytes]] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        seen.append([name for name, _ in scope["headers"]])
        length = (b"content-length", b"0")
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body"})

    async with Loopback(org, "endpoint", app=app).open() as server:
        line = await server.connect()
        assert (await line.ask(CHUNKED + b"0\r\nAuthorization: x\r\n\r\n")).status == 200
    assert seen == [[b"host", b"transfer-encoding"]]


def head(*lines: str, first: str = "POST /health HTTP/1.1") -> bytes:
    return ("\r\n".join((first, *lines)) + "\r\n\r\n").encode()


NO_HOSTS = (
    "",
    "example.com:",
    "example.com:80abc",
    "example.com:-1",
    "example.com:65536",
    "example.com:80:80",
    ":80",
    "[",
    "[::1",
    "::1",
    "[:::1]",
    "[fe80::1%eth0]",
    "[example.com]",
    "a b",
    "a@b",
    "a:b@c",
    "a/b",
    "a?b",
    "a#b",
    "a\\b",
    "a,b",
    "a..b",
    ".a",
    "a%41",
    "\N{LATIN SMALL LETTER E WITH ACUTE}.example",
    '"><script>',
    "x" * 256,
)


@rows(
    "unclear",
    [
        head("Host: a", "Host: b"),
        head("Host: a", "Host: a"),
        head("Host: a", "hOST: b", first="GET /health HTTP/1.0"),
        head(),
        head("Host: a", "Content-Length: 3", "Content-Length: 3") + b"abc",
        head("Host: a", "Content-Length: 3", "Content-Length: 4") + b"abc",
        head("Host: a", "Content-Length: 3, 3") + b"abc",
        head("Host: a", "Content-Length: +3") + b"abc",
        head("Host: a", "Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        head("Host: a", "Transfer-Encoding: chunked", "Content-Length: 3") + b"0\r\n\r\n",
        head("Host: a", "Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n",
        head("Host: a", "Transfer-Encoding: identity") + b"0\r\n\r\n",
        head("Host: a", "Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
        head("Host: a", "Transfer-Encoding: chunked", first="POST / HTTP/1.0") + b"0\r\n\r\n",
        *(head(f"Host: {host}") for host in NO_HOSTS),
        head("Host: ", first="GET /health HTTP/1.0"),
        head("Host: a", "X: b", " c"),
        head(" Host: a"),
        head("Host : a"),
        b"GET /health HTTP/1.1\nHost: a\n\n",
        b"GET /health HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
        b"GET /health HTTP/1.1\r\nHost: a\x00b\r\n\r\n",
        b"GET /health\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        head("Host: a", first="GET /health HTTP/2.0"),
        head("Host: a", first="GET http://b/health HTTP/1.1"),
        head("Host: a", first="GET http://a:80@b/health HTTP/1.1"),
        head("Host: a", first="GET ftp://a/health HTTP/1.1"),
        head("Host: a", first="CONNECT a:1 HTTP/1.1"),
        head("Host: a", "Connection: Upgrade", "Upgrade: x", "Content-Length: 46") + HEALTH,
    ],
)
async def test_ambiguous_framing_is_refused(server: Loopback, slow: Slow, unclear: bytes) -> None:
    slow.answers.set()
    line = await server.connect()
    line.write(unclear + HEALTH)
    answer = await line.read()
    assert (answer.status, answer.header("connection")) == (400, "close")
    assert await line.ended() == b""
    assert slow.begun == 0


@rows(
    "clear",
    [
        head("Host: a"),
        head(first="GET /health HTTP/1.0"),
        head("Host: a_b.example.com.:65535"),
        head("Host: [2001:db8::1]:443"),
        head("Host: a:1", first="GET http://A:1/health?x HTTP/1.1"),
        head("Host: a", "Transfer-Encoding: Chunked") + b"3\r\nabc\r\n0\r\n\r\n",
        head("Host: a", "Connection: Upgrade", "Upgrade: h2c", first="GET / HTTP/1.1"),
    ],
)
async def test_unambiguous_requests_are_answered(
    server: Loopback, slow: Slow, clear: bytes
) -> None:
    slow.answers.set()
    line = await server.connect()
    assert (await line.ask(clear)).status == 200
    if b"HTTP/1.0" not in clear:
        assert (await line.ask(clear + HEALTH)).status == 200
        assert (await line.read()).status == 200


# Slow clients


def half_a_body(length: int = 100) -> bytes:
    return request("/messages", None, FORM, f"Content-Length: {length}", method="POST", body="a=")


async def test_a_client_with_half_a_body_is_disconnected(quick: Loopback, slow: Slow) -> None:
    line = await quick.connect()
    line.write(half_a_body())
    await line.ended()
    await until(lambda: slow.gone == 1 and not quick.state.connections)
    assert quick.connections.watched == 0


class Watched:
    """A simulated connection for the timeouts."""

    def __init__(self, wait: Wait) -> None:
        self.waits_for = wait
        self.turn = 1
        self.received = 0
        self.sent = 0
        self.unsent = 1
        self.is_given_up = False

    def give_up(self) -> None:
        self.is_given_up = True


PATIENT = ConnectionLimits(
    most=1, least_rate=100, head_seconds=30, body_seconds=30, answer_seconds=60, most_seconds=120
)


@rows(
    ("wait", "each_second", "lasts"),
    [
        (Wait.BODY, 0, 31),
        (Wait.BODY, 1, 31),  # A hundredth of a second more, each time.
        (Wait.BODY, 50, 61),
        (Wait.BODY, 100, None),
        (Wait.BODY, 10_000, None),
        (Wait.ANSWER, 0, 61),
        (Wait.ANSWER, 50, 121),
        (Wait.ANSWER, 100, None),
        (Wait.HEAD, 0, 31),
        (Wait.HEAD, 10_000, 31),
        (Wait.SERVER, 0, None),
    ],
)
def test_these_timeouts_apply(wait: Wait, each_second: int, lasts: int | None) -> None:
    connection = Watched(wait)
    patience = ClientTimeout(connection, PATIENT, 0)
    for second in range(1, 1000):
        connection.received += each_second
        connection.sent += each_second
        patience.update(connection, PATIENT, second)
        if patience.left < 0:
            assert second == lasts
            return
    assert lasts is None


@rows(
    ("wait", "each_second", "is_closed"),
    [
        (Wait.ANSWER, 0, True),
        (Wait.ANSWER, 1, False),
        (Wait.BODY, 0, True),
        (Wait.BODY, 1, False),
        (Wait.SERVER, 0, False),
    ],
)
async def test_a_stopping_server_closes_connections_without_progress(
    wait: Wait, each_second: int, is_closed: bool
) -> None:
    connections, connection = Connections(PATIENT), Watched(wait)
    connections.watch(connection)
    now = asyncio.get_running_loop().time()
    connections._review(now + 20)
    assert not connection.is_given_up
    connections.is_stopping = True
    for second in range(21, 25):
        connection.received += each_second
        connection.sent += each_second
        connections._review(now + second)
    assert connection.is_given_up is is_closed


def test_a_client_that_was_fast_may_pause_for_a_while() -> None:
    connection = Watched(Wait.BODY)
    patience = ClientTimeout(connection, PATIENT, 0)
    connection.received = 10**9
    patience.update(connection, PATIENT, 1)
    for second in (60, 121):
        patience.update(connection, PATIENT, second)
        assert patience.left >= 0
    patience.update(connection, PATIENT, 122)
    assert patience.left < 0


def test_the_next_request_starts_anew() -> None:
    connection = Watched(Wait.HEAD)
    patience = ClientTimeout(connection, PATIENT, 0)
    for second in range(1, 100):
        connection.turn += second % 20 == 0
        patience.update(connection, PATIENT, second)
        assert patience.left >= 0


def test_without_a_minimum_rate_any_rate_is_enough() -> None:
    limits = ConnectionLimits(most=1, least_rate=0)
    connection = Watched(Wait.BODY)
    patience = ClientTimeout(connection, limits, 0)
    for second in range(20, 2000, 20):
        connection.received += 1
        patience.update(connection, limits, second)
        assert patience.left >= 0
    for second in (2010, 2200):
        patience.update(connection, limits, second)
    assert patience.left < 0


@pytest.mark.parametrize(
    "asked",
    [HEALTH, HEALTH[:-2] + b"Connection: close\r\n\r\n", HEALTH * 3],
    ids=["kept", "closed", "several"],
)
async def test_a_response_that_is_never_read_is_abandoned(
    quick: Loopback, slow: Slow, asked: bytes
) -> None:
    slow.size = HUGE
    slow.answers.set()
    plug = await deaf(quick)
    loop = asyncio.get_running_loop()
    await loop.sock_sendall(plug, asked)
    connection = weakref.ref(await the_one(quick))
    await until(lambda: not quick.state.connections and not quick.state.tasks)
    assert connection() is None
    plug.close()


async def test_a_client_that_half_closes_and_reads_nothing_is_disconnected(
    quick: Loopback, slow: Slow
) -> None:
    """Even if little data is left for it, so that writing isn't paused."""
    slow.size = HUGE
    slow.answers.set()
    plug = await deaf(quick)
    loop = asyncio.get_running_loop()
    connection = await the_one(quick)
    connection.transport.set_write_buffer_limits(2 * HUGE)
    await loop.sock_sendall(plug, HEALTH)
    await until(lambda: connection.unsent > 0)
    assert not connection.flow.write_paused
    plug.shutdown(socket.SHUT_WR)
    await until(lambda: not quick.state.connections)
    plug.close()


async def deaf(server: Loopback) -> socket.socket:
    """A client's connection that reads only when told to."""
    plug = socket.socket()
    plug.setblocking(False)
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    await asyncio.get_running_loop().sock_connect(plug, server.address)
    return plug


async def test_a_response_read_in_small_pieces_is_completed(org: Organization, slow: Slow) -> None:
    slow.size = HUGE
    slow.answers.set()
    limits = ConnectionLimits(most=1000, sweep_seconds=0.01)
    async with Loopback(org, "endpoint", limits=limits, app=slow).open() as server:
        plug = await deaf(server)
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(plug, HEALTH)
        connection = await the_one(server)
        await until(lambda: connection.unsent > 0)
        found, before = 0, connection.sent
        while found < HUGE:
            piece = await loop.sock_recv(plug, 256 * 1024)
            assert piece
            found += len(piece)
            assert connection.sent >= before
            before = connection.sent
        await until(lambda: connection.unsent == 0)
        plug.close()


async def test_a_closed_connection_knows_what_it_sent(server: Loopback, slow: Slow) -> None:
    """Limits may look at it before the server has forgotten it."""
    slow.answers.set()
    line = await server.connect()
    assert (await line.ask(HEALTH)).status == 200
    connection = await the_one(server)
    connection.give_up()
    assert connection.sent == connection.outgoing.written
    await until(lambda: not server.state.connections)
    assert connection.sent == connection.outgoing.written


async def test_unread_responses_are_limited(
    org: Organization, slow: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tertulia.wire.protocol.connections.SILENT_SECONDS", 0.1)
    slow.size = HUGE
    slow.answers.set()
    limits = ConnectionLimits(most=1000, unsent=3 * HUGE, sweep_seconds=0.02)
    async with Loopback(org, "endpoint", limits=limits, app=slow).open() as server:
        plugs = [await deaf(server) for _ in range(6)]
        for plug in plugs:
            await asyncio.get_running_loop().sock_sendall(plug, HEALTH)
        await until(lambda: len(server.state.connections) == 6)
        await until(lambda: len(server.state.connections) <= 3)
        for plug in plugs:
            plug.close()


async def test_a_connection_without_a_pending_timeout_is_not_checked(org: Organization) -> None:
    limits = ConnectionLimits(most=1000, sweep_seconds=0.01)
    async with serving(org, "below", limits) as server:
        lines = [await server.connect() for _ in range(5)]
        for line in lines:
            assert (await line.ask(HEALTH)).status == 200
        await until(lambda: server.connections.watched == 0)
        assert len(server.state.connections) == 5


async def test_a_disconnect_within_a_body_is_one_log_line(
    org: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    asked = [
        half_a_body(),
        request("/messages", org["ann"], FORM, "Content-Length: 99", method="POST", body="a"),
        request("/user_uploads", org["ann"], MULTIPART, "Content-Length: 99", method="POST"),
        b"POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na",
        b"POST /nowhere HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na",
    ]
    for one in asked:
        async with serving(org, "below") as server:
            with caplog.at_level(logging.INFO):
                caplog.clear()
                line = await server.connect()
                line.write(one)
                await until(lambda: bool(server.state.tasks) or bool(caplog.records))
                await server.settle()
                line.reset()
                await until(lambda: not server.state.connections and not server.state.tasks)
        lines = [r for r in caplog.records if r.name.startswith("tertulia")]
        assert [record.message for record in lines] == ["request"], one
        assert not any(record.exc_info for record in caplog.records)


MULTIPART = "Content-Type: multipart/form-data; boundary=x"


# Connection limits


async def test_the_health_check_has_reserved_connections(org: Organization) -> None:
    async with Loopback(org, "below", limits=ConnectionLimits(most=2)).open() as server:
        first, second = await server.connect(), await server.connect()
        for line in (first, second):
            assert (await line.ask(SERVER_SETTINGS)).status == 200
        for target in (b"/health", b"/ready"):
            third = await server.connect()
            answer = await third.ask(HEALTH.replace(b"/health", target))
            assert (answer.status, answer.header("connection")) == (200, "close")
            assert await third.ended() == b""
        third = await server.connect()
        answer = await third.ask(SERVER_SETTINGS)
        assert (answer.status, answer.told["code"]) == (503, "SERVER_NOT_READY")
        assert answer.header("retry-after")
        assert answer.header("access-control-allow-origin") == "*"
        assert answer.header("connection") == "close"
        assert await third.ended() == b""
        third = await server.connect()
        assert (await third.ask(HEALTH + SERVER_SETTINGS)).status == 200
        assert await third.ended() == b""
        await first.close()
        await until(lambda: len(server.state.connections) == 1)
        fourth = await server.connect()
        assert (await fourth.ask(SERVER_SETTINGS)).status == 200
        assert server.load.in_progress == 0


async def test_an_idle_connection_in_the_reserve_is_closed(org: Organization) -> None:
    async with Loopback(org, "below", limits=ConnectionLimits(most=1)).open() as server:
        first = await server.connect()
        assert (await first.ask(SERVER_SETTINGS)).status == 200
        for _ in range(5 * RESERVE):
            await server.connect()
        last = await server.connect()
        assert (await last.ask(HEALTH)).status == 200
        assert (await first.ask(SERVER_SETTINGS)).status == 200
        await until(lambda: len(server.state.connections) <= 1 + RESERVE)


async def test_slow_connections_are_closed_to_make_room(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that hold connections with half a request lock nobody out."""
    monkeypatch.setattr("tertulia.wire.protocol.connections.SILENT_SECONDS", 0.1)
    limits = ConnectionLimits(most=20, sweep_seconds=0.02)
    async with Loopback(org, "below", limits=limits).open() as server:
        good = [await server.connect() for _ in range(5)]
        for line in good:
            assert (await line.ask(SERVER_SETTINGS)).status == 200
        held = [await server.connect() for _ in range(15)]
        for line in held:
            line.write(half_a_body())
        await until(lambda: len(server.connections._silent) == 15)
        for _ in range(10):
            line = await server.connect()
            assert (await line.ask(SERVER_SETTINGS)).status == 200
        for line in good:
            assert (await line.ask(SERVER_SETTINGS)).status == 200


class Elsewhere:
    """A connection that isn't slow."""

    def __init__(self) -> None:
        self.given_up = False

    def give_up(self) -> None:
        self.given_up = True


def admissions(limits: ConnectionLimits, hosts: list[str | None]) -> list[str]:
    connections = Connections(limits)
    return [connections.admit(Elsewhere(), host).name for host in hosts]  # type: ignore[arg-type]


@rows(
    ("hosts", "expected"),
    [
        (["192.0.2.1"] * 3, ["WELCOME", "WELCOME", "TOO_MANY"]),
        (["192.0.2.1", "192.0.2.2"] * 2, ["WELCOME"] * 4),
        (["192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"], ["WELCOME"] * 2 + ["TOO_MANY"]),
        (["2001:db8::1", "2001:db8::2", "2001:db8::3"], ["WELCOME"] * 2 + ["TOO_MANY"]),
        (["2001:db8::1", "2001:db8:0:1::2", "2001:db8::3"], ["WELCOME"] * 3),
        (["127.0.0.1"] * 9, ["WELCOME"] * 9),
        (["127.0.0.9"] * 9, ["WELCOME"] * 9),
        (["::1"] * 9, ["WELCOME"] * 9),
        ([None] * 9, ["WELCOME"] * 9),
        (["10.0.0.1"] * 9, ["WELCOME"] * 9),
        (["10.1.0.1"] * 3, ["WELCOME", "WELCOME", "TOO_MANY"]),
    ],
)
async def test_an_address_has_a_limit_of_connections(
    hosts: list[str | None], expected: list[str]
) -> None:
    limits = ConnectionLimits(
        most=1000, of_one_address=2, trusted="127.0.0.1, 10.0.0.0/24,/run/x.sock"
    )
    assert admissions(limits, hosts) == expected


async def test_an_address_has_at_most_half_of_all_connections() -> None:
    assert admissions(ConnectionLimits(most=4, of_one_address=1000), ["192.0.2.1"] * 3) == [
        "WELCOME",
        "WELCOME",
        "TOO_MANY",
    ]
    assert admissions(ConnectionLimits(most=4), ["192.0.2.1"] * 4) == ["WELCOME"] * 4


async def test_lost_connections_are_not_counted() -> None:
    connections = Connections(ConnectionLimits(most=10, of_one_address=1))
    for _ in range(50):
        one: Callable[[], None] = Elsewhere()  # type: ignore[assignment]
        assert connections.admit(one, "192.0.2.1").name == "WELCOME"  # type: ignore[arg-type]
        connections.lost(one, "192.0.2.1")  # type: ignore[arg-type]


async def test_connections_beyond_an_address_s_limit_get_an_error(
    org: Organization, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tertulia.wire.protocol.addresses._is_own", lambda _: False)
    limits = ConnectionLimits(most=1000, of_one_address=3)
    async with Loopback(org, "below", limits=limits).open() as server:
        lines = [await server.connect() for _ in range(3)]
        for line in lines:
            assert (await line.ask(SERVER_SETTINGS)).status == 200
        with caplog.at_level(logging.WARNING, "tertulia.http"):
            for _ in range(5):
                other = await server.connect()
                answer = await other.read()
                assert (answer.status, answer.header("connection")) == (503, "close")
                assert "your IP address" in answer.told["msg"]
                assert await other.ended() == b""
        messages = [record.message for record in caplog.records]
        assert messages == ["too many connections from one address"]
        await lines[0].close()
        await until(lambda: len(server.state.connections) == 2)
        again = await server.connect()
        assert (await again.ask(SERVER_SETTINGS)).status == 200


@rows(
    ("listed", "host", "expected"),
    [
        ("", "192.0.2.1", False),
        ("192.0.2.1", "192.0.2.1", True),
        ("192.0.2.1", "::ffff:192.0.2.1", True),
        ("192.0.2.0/24", "192.0.2.9", True),
        ("2001:db8::/32", "2001:db8:1::2", True),
        ("*", "198.51.100.1", True),
        ("proxy, 192.0.2.1", "198.51.100.1", False),
        ("", "fe80::1%eth0", False),
        ("", "", True),
        ("", "::1", True),
    ],
)
def test_exempt_addresses_have_no_limit(listed: str, host: str, expected: bool) -> None:
    assert trusting(listed)(host) is expected


async def test_a_dual_stack_listener_knows_ipv4_clients_by_their_address(
    server: Loopback, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So that settings, limits, and sessions use one form of an address."""
    monkeypatch.setattr(httptools_impl, "get_remote_addr", lambda _: ("::ffff:192.0.2.1", 5))
    await server.connect()
    assert (await the_one(server)).client == ("192.0.2.1", 5)
    assert unmapped("2001:db8::1") == "2001:db8::1"


async def test_connecting_and_disconnecting_leaves_nothing(
    org: Organization, no_garbage_collection: None
) -> None:
    gc.collect()  # Left over by other tests.
    async with serving(org, "below") as server:
        ways = [b"", b"GET /he", HEALTH * 3, half_a_body(), b"nonsense\r\n\r\n"]
        for round_ in range(20):
            line: Line = await server.connect()
            line.write(ways[round_ % len(ways)])
            await asyncio.sleep(0)
            line.reset()
        await until(lambda: not server.state.connections and not server.state.tasks)
        assert server.connections.watched == 0
        assert server.connections.open == 0
        assert not [o for o in gc.get_objects() if isinstance(o, TertuliaHttp)]


# Bodies


class Told:
    """A request whose body arrives in pieces, and its result."""

    def __init__(self, *pieces: bytes, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.scope = {"headers": headers}
        self._pieces = list(pieces)
        self.read = 0

    async def receive(self) -> Message:
        await asyncio.sleep(0)
        piece = self._pieces[self.read]
        self.read += 1
        more = self.read < len(self._pieces)
        return {"type": "http.request", "body": piece, "more_body": more}


async def test_all_bodies_together_are_limited_in_memory() -> None:
    gathering = BodyBuffers(100)
    bodies = [Told(*[b"x" * 10] * 4) for _ in range(10)]
    found = await asyncio.gather(
        *(gathering.body(body, 1000) for body in bodies),  # type: ignore[arg-type]
        return_exceptions=True,
    )
    assert gathering.taken == 0
    kept = [one for one in found if not isinstance(one, Exception)]
    assert 0 < len(kept) <= 4
    assert set(kept) == {b"x" * 40}
    assert {type(one) for one in found if isinstance(one, Exception)} == {Overloaded}
    # They are read to the end, otherwise their clients wouldn't get the response.
    assert [body.read for body in bodies] == [4] * 10


async def test_a_body_announced_as_too_large_is_not_stored() -> None:
    buffers = BodyBuffers(1000)
    kept: list[int] = []

    class Watched(Told):
        async def receive(self) -> Message:
            kept.append(buffers.taken)
            return await super().receive()

    length = (b"content-length", b"40")
    body = Watched(*[b"x" * 10] * 4, headers=[length])
    with pytest.raises(BodyTooLarge):
        await buffers.body(body, 39)  # type: ignore[arg-type]  # a stand-in
    assert (kept, body.read) == ([0, 0, 0, 0], 4)
    # A client that waits for 100 Continue sends nothing.
    waiting = Watched(*[b"x" * 10] * 4, headers=[length, (b"expect", b"100-continue")])
    with pytest.raises(BodyTooLarge):
        await buffers.body(waiting, 39)  # type: ignore[arg-type]  # a stand-in
    assert waiting.read == 0
    assert await buffers.body(waiting, 40) == b"x" * 40  # type: ignore[arg-type]  # a stand-in


async def test_an_unauthenticated_client_uses_less_memory(org: Organization) -> None:
    body = "a=" + "x" * (ANONYMOUS_BODY + 1)

    def asked(target: str, person: Person | None) -> bytes:
        length = f"Content-Length: {len(body)}"
        return request(target, person, FORM, length, method="POST", body=body)

    async with serving(org, "below") as server:
        line = await server.connect()
        assert (await line.ask(asked("/fetch_api_key", None))).status == 413
        assert (await line.ask(asked("/messages", org["ann"]))).status == 400
        assert (await line.ask(asked("/messages", None))).status == 401


async def test_the_body_of_a_refused_unauthenticated_request_is_not_stored(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def never(*_: object) -> bytes:
        raise AssertionError("it was gathered")

    monkeypatch.setattr(forms._gathering, "body", never)
    assert (await org.nobody.post("/messages", content="x" * 1000)).status == 401
