"""Overload: refusals, and which requests count as being in progress."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable

import pytest
from starlette.requests import Request
from starlette.types import Message, Receive, Scope, Send

from tertulia.wire.http.loop_turns import STEP_SECONDS
from tertulia.wire.protocol.http1 import TertuliaHttp
from tertulia.wire.protocol.load import Load
from tests.support import Organization, row, until
from tests.wire.loopback import SERVER_SETTINGS, WAYS, Answer, Line, Loopback, poll, request

pytestmark = pytest.mark.usefixtures("no_logged_errors")

FORM = "Content-Type: application/x-www-form-urlencoded"
LARGE = 4 * 2**20
"""Bytes, far more than sockets buffer."""


class ToldLoad(Load):
    """A load that is too high when a test says so."""

    too_high = False

    def __init__(self) -> None:
        super().__init__(0)

    def is_too_high(self) -> bool:
        return self.too_high


class Site(Loopback):
    """A server with this load."""

    def __init__(self, org: Organization, way: str = "below", **how: object) -> None:
        self.told_load = ToldLoad()
        super().__init__(org, way, self.told_load, **how)  # type: ignore[arg-type]  # as there

    @property
    def in_progress(self) -> int:
        return self.load.in_progress

    @property
    def in_a_request(self) -> TertuliaHttp:
        """The only connection with a request in progress."""
        (found,) = (
            one
            for one in self.state.connections
            if isinstance(one, TertuliaHttp) and one.cycle is not None
        )
        return found


@pytest.fixture(scope="module")
async def org(shared_org: Organization) -> Organization:
    """Shared by all tests, because each server counts for itself."""
    await shared_org.channel("lounge", "ann", "ben")
    return shared_org


@pytest.fixture(params=WAYS)
async def server(org: Organization, request: pytest.FixtureRequest) -> AsyncIterator[Site]:
    town = Site(org, request.param)
    async with town.open():
        yield town


def is_refusal(answer: Answer) -> bool:
    return (answer.status, answer.told["code"]) == (503, "SERVER_NOT_READY")


def sized(length: int) -> str:
    return f"Content-Length: {length}"


async def test_a_refusal_says_when_to_retry(server: Site) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    answer = await line.ask(request("/users/me", server.org["ann"]))
    assert is_refusal(answer)
    assert answer.told["result"] == "error"
    assert answer.told["msg"]
    retry_after = answer.header("retry-after")
    assert retry_after is not None
    assert retry_after.isdigit()
    server.told_load.too_high = False
    allowed = await line.ask(request("/users/me", server.org["ann"]))
    assert allowed.status == 200
    like_all = {"access-control-", "cache-control", "x-content-type-options", "date"}
    for name, value in allowed.headers:
        if any(name.startswith(start) for start in like_all):
            assert answer.header(name) == value


POST = ("/messages", FORM)
CHUNKED = "Transfer-Encoding: chunked"


async def test_any_request_is_refused_and_the_connection_stays_usable(server: Site) -> None:
    for asked in (
        SERVER_SETTINGS,
        request("/messages", None, FORM, sized(9), method="POST", body="content=x"),
        request("/messages", None, FORM, sized(LARGE), method="POST", body="x" * LARGE),
        request("/messages", None, FORM, CHUNKED, method="POST", body="3\r\na=b\r\n0\r\n\r\n"),
        b"GET / HTTP/1.1\r\nHost: chat.test\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: chat.test\r\n\r\n",
    ):
        with row(asked[:100]):
            line = await server.connect()
            for _ in range(2):
                server.told_load.too_high = True
                assert is_refusal(await line.ask(asked))
                assert is_refusal(await line.ask(asked))
                server.told_load.too_high = False
                assert (await line.ask(SERVER_SETTINGS)).status == 200
            assert server.in_progress == 0


async def test_a_large_body_of_a_refused_request_is_not_stored(server: Site) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    line.write(request("/messages", None, FORM, sized(LARGE), method="POST", body="x" * LARGE)[:-1])
    await server.settle()
    connection = server.in_a_request
    assert not hasattr(connection.cycle, "body")
    line.write(b"x")
    assert is_refusal(await line.read())


async def test_a_refusal_of_head_has_no_body(server: Site) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    asked = request("/server_settings", method="HEAD")
    assert [(await line.ask(asked, "HEAD")).status for _ in range(3)] == [503] * 3


@pytest.mark.parametrize(
    "asked",
    [
        request("/server_settings", None, "Connection: close"),
        request("/server_settings", version="1.0"),
        request("/server_settings", None, "Connection: keep-alive", version="1.0"),
    ],
)
async def test_an_unusable_connection_is_closed(server: Site, asked: bytes) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    answer = await line.ask(asked)
    assert is_refusal(answer)
    assert answer.header("connection") == "close"
    assert await line.ended() == b""


async def test_a_client_waiting_for_100_continue_is_refused_without_its_body(server: Site) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    answer = await line.ask(
        request("/messages", None, FORM, sized(LARGE), "Expect: 100-continue", method="POST")
    )
    assert is_refusal(answer)
    assert answer.header("connection") == "close"
    assert await line.ended() == b""


async def test_pipelined_requests_are_refused_in_order(server: Site) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    line.write(SERVER_SETTINGS * 50)
    answers = [await line.read() for _ in range(50)]
    assert all(is_refusal(answer) for answer in answers)


async def test_a_client_that_reads_nothing_is_not_sent_more_refusals(server: Site) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    await line.ask(SERVER_SETTINGS)
    connection = server.in_a_request
    connection.pause_writing()  # As if earlier data couldn't be sent.
    line.write(SERVER_SETTINGS * 3)
    await server.settle()
    server.told_load.too_high = False
    connection.resume_writing()
    assert [(await line.read()).status for _ in range(3)] == [200] * 3


@pytest.mark.parametrize("target", ["/health", "/ready"])
async def test_health_checks_are_answered(server: Site, target: str) -> None:
    server.told_load.too_high = True
    line = await server.connect()
    answer = await line.ask(f"GET {target} HTTP/1.1\r\nHost: chat.test\r\n\r\n".encode())
    assert answer.status == 200


async def test_polls_wait_and_are_answered_during_overload(server: Site) -> None:
    org = server.org
    ann = await org["ann"].register()
    line = await server.connect()
    line.write(poll(ann.queue_id, ann.last_event_id, ann.person))
    await until(lambda: server.waiting == 1)
    server.told_load.too_high = True
    for content in ("before", "meanwhile"):
        sent = await org["ben"].send("lounge", "t", content)
        (event,) = (await line.read()).events
        assert event["message"]["id"] == sent
        line.write(poll(ann.queue_id, event["id"], ann.person))
        await until(lambda: server.waiting == 1)
        assert server.in_progress == 0


async def test_a_response_that_waits_for_its_turn_does_not_count(server: Site) -> None:
    turns, ann = server.org.node.fragments.turns, server.org["ann"]
    line = await server.connect()
    other = Request({"type": "http", "state": {}, "headers": []})
    for asked in (
        request("/register", ann, sized(0), method="POST"),
        request("/users", ann),
        request("/streams", ann),
        request("/users/me/subscriptions", ann),
    ):
        async with turns.turn(other):
            turns._usual_step = STEP_SECONDS  # So long that others wait.
            line.write(asked)
            await until(lambda: turns.waiting == 1)
            assert server.in_progress == 0
        assert (await line.read()).status == 200
        assert server.in_progress == 0


async def test_overload_is_logged_as_a_warning(
    server: Site, caplog: pytest.LogCaptureFixture
) -> None:
    server.told_load.too_high = True
    server.told_load._logged_at = 0.0
    line = await server.connect()
    with caplog.at_level(logging.WARNING, "tertulia.http"):
        await line.ask(SERVER_SETTINGS)
    (record,) = caplog.records
    assert (record.message, record.levelname) == ("overloaded; refusing requests", "WARNING")


# Connections


# What counts


class Kitchen:
    """An application that answers when told to: first the headers and a part, then the rest."""

    def __init__(self) -> None:
        self.begun = 0
        self.begins = asyncio.Event()
        self.ends = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        while (await receive()).get("more_body"):
            pass
        self.begun += 1
        start: Message = {"type": "http.response.start", "status": 200}
        await self.begins.wait()
        await send({**start, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"a", "more_body": True})
        await self.ends.wait()
        await send({"type": "http.response.body", "body": b"b", "more_body": False})


@pytest.fixture
def kitchen() -> Kitchen:
    return Kitchen()


@pytest.fixture
async def slow(org: Organization, kitchen: Kitchen) -> AsyncIterator[Site]:
    async with Site(org, app=kitchen).open() as server:
        yield server  # type: ignore[misc]  # it is the one that was opened
        kitchen.begins.set()
        kitchen.ends.set()


async def test_a_request_counts_until_its_response_starts(slow: Site, kitchen: Kitchen) -> None:
    """A client that reads a large response slowly delays nobody."""
    lines = [await slow.connect() for _ in range(3)]
    for line in lines:
        line.write(SERVER_SETTINGS)
    await until(lambda: kitchen.begun == 3)
    assert slow.in_progress == 3
    kitchen.begins.set()
    await until(lambda: slow.in_progress == 0)
    kitchen.ends.set()
    assert [(await line.read()).body for line in lines] == [b"ab"] * 3
    assert slow.in_progress == 0


async def test_an_upload_counts_once_it_is_complete(slow: Site, kitchen: Kitchen) -> None:
    line = await slow.connect()
    line.write(request("/messages", None, sized(4), method="POST", body="abc"))
    await slow.settle()
    assert slow.in_progress == 0
    line.write(b"d")
    await until(lambda: kitchen.begun == 1)
    assert slow.in_progress == 1


async def test_of_pipelined_requests_one_counts(slow: Site, kitchen: Kitchen) -> None:
    line = await slow.connect()
    line.write(SERVER_SETTINGS * 5)
    await until(lambda: kitchen.begun == 1)
    assert slow.in_progress == 1
    kitchen.begins.set()
    await until(lambda: slow.in_progress == 0)
    kitchen.begins.clear()
    kitchen.ends.set()
    await until(lambda: kitchen.begun == 2)
    assert slow.in_progress == 1
    kitchen.begins.set()
    assert [(await line.read()).body for _ in range(5)] == [b"ab"] * 5
    assert slow.in_progress == 0


@pytest.mark.parametrize("asked", [SERVER_SETTINGS, SERVER_SETTINGS * 3], ids=["one", "several"])
@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("how", [Line.half_close, Line.reset])
async def test_a_client_that_disconnects_before_the_response_no_longer_counts(
    slow: Site, kitchen: Kitchen, asked: bytes, has_begun: bool, how: Callable[[Line], None]
) -> None:
    line = await slow.connect()
    line.write(asked)
    await until(lambda: kitchen.begun == 1)
    if has_begun:
        kitchen.begins.set()
    how(line)
    if asked == SERVER_SETTINGS:  # Of pipelined requests, nothing is read for now.
        await until(lambda: not slow.state.connections)
        assert slow.in_progress == 0
    kitchen.begins.set()
    kitchen.ends.set()
    await until(lambda: not slow.state.tasks and not slow.state.connections)
    assert slow.in_progress == 0


async def a_page(server: Site, line: Line) -> None:
    assert (await line.ask(SERVER_SETTINGS)).status == 200


async def refused_ones(server: Site, line: Line) -> None:
    for target, status in [("/nowhere", 404), ("/users/me", 401), ("/messages?anchor=x", 401)]:
        assert (await line.ask(request(target))).status == status
    assert (await line.ask(request("/users/me", method="PUT"))).status == 405


async def an_upload(server: Site, line: Line) -> None:
    body = (
        '--x\r\nContent-Disposition: form-data; name="f"; filename="a.txt"\r\n\r\nhi\r\n--x--\r\n'
    )
    kind = "Content-Type: multipart/form-data; boundary=x"
    ann = server.org["ann"]
    answer = await line.ask(
        request("/user_uploads", ann, kind, sized(len(body)), method="POST", body=body)
    )
    assert answer.status == 200


async def half_an_upload(server: Site, line: Line) -> None:
    kind = "Content-Type: multipart/form-data; boundary=x"
    line.write(request("/user_uploads", server.org["ann"], kind, sized(99), method="POST"))
    await server.settle()
    line.reset()
    await until(lambda: not server.state.connections)


async def several(server: Site, line: Line) -> None:
    line.write(SERVER_SETTINGS * 20)
    assert [(await line.read()).status for _ in range(20)] == [200] * 20


async def nonsense(server: Site, line: Line) -> None:
    line.write(SERVER_SETTINGS + b"nonsense\r\n\r\n")
    await line.ended()


async def a_poll(server: Site, line: Line) -> None:
    ann = await server.org["ann"].register()
    line.write(poll(ann.queue_id, ann.last_event_id, ann.person))
    await until(lambda: server.waiting == 1)
    assert server.in_progress == 0
    await server.org["ben"].send("lounge", "t", "hi")
    await line.read()


async def a_large_one_asked_before(server: Site, line: Line) -> None:
    ask = "Expect: 100-continue"
    ann = server.org["ann"]
    answer = await line.ask(request("/messages", ann, FORM, sized(4), ask, method="POST"))
    assert answer.status == 100
    assert (await line.ask(b"a=bc")).status == 400


async def test_no_request_counts_forever(server: Site) -> None:
    for happens in (
        a_page,
        refused_ones,
        an_upload,
        half_an_upload,
        several,
        nonsense,
        a_poll,
        a_large_one_asked_before,
    ):
        with row(happens.__name__):
            for _ in range(2):
                await happens(server, await server.connect())
                await until(lambda: not server.state.tasks)
                assert server.in_progress == 0


async def test_messages_are_sent_in_the_order_of_their_requests(server: Site) -> None:
    """More than fit into one commit; nobody is passed over."""
    org = server.org
    lines = [await server.connect() for _ in range(300)]
    order: list[int] = []

    def asked(number: int) -> bytes:
        body = f"type=channel&to=lounge&topic=t&content=m{number}"
        return request("/messages", org["ann"], FORM, sized(len(body)), method="POST", body=body)

    async def send(number: int) -> int:
        answer = await lines[number].read()
        order.append(number)
        message_id: int = answer.told["id"]
        return message_id

    for number, line in enumerate(lines):
        line.write(asked(number))
    ids = await asyncio.gather(*map(send, range(300)))
    assert ids == sorted(ids)
    assert order == sorted(order)
