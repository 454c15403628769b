"""The bytes sent on a connection are those of uvicorn's own protocol."""

import asyncio
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from uvicorn import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from tertulia.wire.http.loop_turns import ON_WAIT
from tertulia.wire.http.peers import PEER
from tertulia.wire.protocol.connections import ConnectionLimits, Connections
from tertulia.wire.protocol.http1 import TertuliaHttp
from tertulia.wire.protocol.load import Load
from tests.support import Organization, until
from tests.wire.loopback import SERVER_SETTINGS, WAYS, poll, serving

LARGE = bytes(range(256)) * 2**14
"""4 MiB, more than sockets buffer."""
LIKE_A_HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"


async def _streamed(_request: Request) -> Response:
    async def some() -> AsyncIterator[bytes]:
        for part in (b"a" * 10, LIKE_A_HEAD, LARGE, b"", LIKE_A_HEAD, b"z"):
            yield part
            await asyncio.sleep(0)

    return StreamingResponse(some())


async def _sized(_request: Request) -> Response:
    async def some() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield LIKE_A_HEAD

    return StreamingResponse(some(), headers={"content-length": str(3 * len(LIKE_A_HEAD))})


async def _echoed(request: Request) -> Response:
    return Response(await request.body())


async def _broken(_request: Request) -> Response:
    raise ValueError("on purpose")


def _gives(status: int, body: bytes) -> Callable[[Request], Awaitable[Response]]:
    async def answer(_request: Request) -> Response:
        return Response(body or None, status_code=status)

    return answer


def _heads(*headers: tuple[bytes, bytes]) -> Callable[[Request], Awaitable[Response]]:
    """Answers hello, with these raw headers."""

    async def answer(_request: Request) -> Response:
        response = Response(b"hello")
        response.raw_headers.extend(headers)
        return response

    return answer


async def _told(request: Request) -> Response:
    """The server's description of the request, except for what differs each time."""
    scope = request.scope
    names = ("asgi", "http_version", "scheme", "root_path", "headers", "method", "path", "raw_path")
    state = {n: value for n, value in scope["state"].items() if n not in {PEER, ON_WAIT}}  # Ours.
    return Response(repr([*(scope[name] for name in (*names, "query_string")), state]))


APP = Starlette(
    routes=[
        Route("/streamed", _streamed),
        Route("/sized", _sized),
        Route("/echoed", _echoed, methods=["POST"]),
        Route("/broken", _broken),
        Route("/empty", _gives(200, b"")),
        Route("/small", _gives(200, b"hello")),
        Route("/head", _gives(200, LIKE_A_HEAD)),
        Route("/large", _gives(200, LARGE)),
        Route("/nothing", _gives(204, b"")),
        Route("/same", _gives(304, b"")),
        Route("/wrong", _gives(400, b"no")),
        Route("/told/{rest:path}", _told, methods=["POST"]),
        Route("/closing", _heads((b"connection", b"close"))),
        Route("/lasting", _heads((b"connection", b"keep-alive"))),
        Route("/twice", _heads((b"content-length", b"5"))),
        Route("/shorter", _heads((b"content-length", b"4"))),
        Route("/split", _heads((b"x-name", b"a\r\nx-other: b"))),
        Route("/named", _heads((b"x name", b"a"))),
    ]
)
ENDS = b"GET /small HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


def request_bytes(
    method: str, path: str, *more: str, body: str = "", version: str = "1.1"
) -> bytes:
    lines = [f"{method} {path} HTTP/{version}", "host: x", *more]
    return ("\r\n".join(lines) + "\r\n\r\n" + body).encode()


async def answered(kind: Callable[..., asyncio.Protocol], data: bytes) -> bytes:
    """Everything that arrives until the server closes the connection."""
    config = Config(APP, ws="none", lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    server = await asyncio.get_running_loop().create_server(
        lambda: kind(config, state, {}), "127.0.0.1", 0
    )
    async with server, asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(data)
        found = await reader.read()
        writer.close()
        await writer.wait_closed()
    return found


def ours(*arguments: object) -> asyncio.Protocol:
    return TertuliaHttp(
        lambda: None, Load(60), Connections(ConnectionLimits(most=1000)), *arguments
    )


@pytest.mark.parametrize(
    "data",
    [
        request_bytes(method, path)
        for method in ("GET", "HEAD")
        for path in ("/streamed", "/sized", "/empty", "/small", "/head", "/large", "/nothing")
    ]
    + [
        *(request_bytes("GET", path) for path in ("/closing", "/lasting", "/twice", "/shorter")),
        request_bytes("POST", "/told/a%20b/%C3%A9?c=%20d&e", "X-Name: x, y", "x-name: z"),
        request_bytes("POST", "/told/", version="1.0"),
        request_bytes("GET", "/same"),
        request_bytes("GET", "/wrong"),
        request_bytes("GET", "/nowhere"),
        request_bytes("POST", "/small"),
        request_bytes("POST", "/echoed", "content-length: 3", body="abc"),
        request_bytes("POST", "/echoed", "transfer-encoding: chunked", body="2\r\nab\r\n0\r\n\r\n"),
        request_bytes("POST", "/echoed", "content-length: 3", "expect: 100-continue", body="abc"),
        request_bytes("POST", "/empty", "content-length: 3", "expect: 100-continue", body="abc"),
        request_bytes("GET", "/small", version="1.0"),
        request_bytes("GET", "/streamed", version="1.0"),
        request_bytes("GET", "/small") * 20,
        request_bytes("GET", "/large")
        + request_bytes("GET", "/nothing")
        + request_bytes("HEAD", "/small"),
    ],
    ids=lambda data: data[:30].decode().split(" HTTP")[0],
)
async def test_the_response_is_the_same_to_the_byte(data: bytes) -> None:
    found = await answered(ours, data + ENDS)
    assert found == await answered(HttpToolsProtocol, data + ENDS)
    assert found.startswith(b"HTTP/1.1 ")


@pytest.mark.parametrize(
    ("path", "begins"),
    [
        ("/broken", b"HTTP/1.1 500 "),
        # A header that would end the headers closes the connection.
        ("/split", b""),
        ("/named", b""),
    ],
)
async def test_a_failing_application_gives_the_same_response(
    path: str, begins: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    data = request_bytes("GET", path)
    found = await answered(ours, data)
    assert found == await answered(HttpToolsProtocol, data)
    assert found.startswith(begins)
    assert bool(found) == bool(begins)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("what", ["nothing", "a request", "a poll"])
async def test_a_closed_connection_leaves_no_garbage(
    shared_org: Organization, way: str, what: str, no_garbage_collection: None
) -> None:
    """The cyclic garbage collector runs rarely. With clients connecting and disconnecting, garbage
    would be megabytes each minute."""
    org = shared_org
    listener = await org["ann"].register()
    async with serving(org, way) as server:
        line = await server.connect()
        if what == "a request":
            assert (await line.ask(SERVER_SETTINGS)).status == 200
        elif what == "a poll":
            line.write(poll(listener.queue_id, listener.last_event_id, org["ann"]))
            await until(lambda: server.waiting == 1)
        await until(lambda: len(server.state.connections) == 1)
        (connection,) = (weakref.ref(one) for one in server.state.connections)
        await line.close()
        await until(lambda: connection() is None)
