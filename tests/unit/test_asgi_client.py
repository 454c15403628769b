"""Requests sent without an HTTP client equal those that a client would send."""

from typing import Any

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from tests.asgi_client import called

pytestmark = pytest.mark.usefixtures("anyio_backend")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PATCH", "DELETE"])
@pytest.mark.parametrize("values", [{}, {"a": "b c", "list": '["é", 1]', "empty": ""}])
async def test_an_application_gets_the_same_request_as_from_a_client(
    method: str, values: dict[str, str]
) -> None:
    heard = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message["body"], message["more_body"]
        request = httpx.QueryParams(scope.pop("query_string")), httpx.QueryParams(body)
        length = len(body)
        scope["headers"] = sorted(
            (name, value if name != b"content-length" else int(value) == length)
            for name, value in scope["headers"]
        )
        heard.append((scope, request))
        cookies = [b"a=b; Max-Age=60; Path=/; HttpOnly; SameSite=Lax", b'c="d e"; Path=/']
        headers = [*((b"set-cookie", c) for c in cookies), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 201, "headers": headers})
        await send({"type": "http.response.body", "body": b"said"})

    auth = ("ann@example.com", "key")
    answers: list[Any] = []
    async with client(app) as http:
        for _ in range(2):
            answers.append(await called(http, method, "/a/b", values, auth))
            assert http.cookies["a"] == "b"
        for other in ({"path": "/a"}, {"domain": ".test"}, {"domain": "elsewhere.test"}):
            http.cookies.set("of its own", "e", **other)
            assert await called(http, method, "/a/b", values, auth) is None, other
            http.cookies.delete("of its own")
    async with client(app) as http:
        assert await called(http, method, "/a b", values, auth) is None
        sent: dict[str, Any] = {"params" if method in {"GET", "HEAD"} else "data": values}
        answers += [await http.request(method, "/a/b", auth=auth, **sent) for _ in range(2)]
    assert any(name == b"cookie" for name, _ in heard[1][0]["headers"])
    assert heard[:2] == heard[2:]
    said = [(a.status_code, a.headers, a.content) for a in answers]
    assert said[:2] == said[2:]


def client(app: Any) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app=app), base_url="http://chat.test")
