"""Responses to invalid requests."""

import logging
from random import Random
from typing import Any
from urllib.parse import unquote_to_bytes

import msgspec
import pytest
from starlette.datastructures import Headers

from tertulia.model.errors import Unavailable
from tertulia.service.config import Config
from tertulia.wire.api.routes import ROUTES
from tertulia.wire.http.errors import BadBody
from tertulia.wire.http.forms import FORM_BYTES, fields, urlencoded
from tests.support import Organization, Person, Turns, new_organization, row, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")

FORM = "application/x-www-form-urlencoded"
BOUNDARY = 'multipart/form-data; boundary="b"'


@rows(
    "path",
    [
        "/nothing",
        "/",
        "/messages/",
        "/messages/seven",
        "/messages/-1",
        "/messages/1.5",
        "/messages/01",
        "/messages/1/nothing",
        "/messages/%00",
        "/messages/%FF%FE",
        "/messages/%D9%A3",
        f"/messages/{'9' * 5000}",
        f"/{'x' * 20_000}",
        "/..%2f..%2fetc/passwd",
    ],
)
@rows("method", ["GET", "POST", "DELETE"])
async def test_unknown_paths_are_not_found(
    sqlite_org: Organization, method: str, path: str
) -> None:
    body = (await sqlite_org["ann"].raw(method, path)).refused("BAD_REQUEST", 404)
    assert set(body) == {"result", "msg", "code"}


async def test_unknown_pages_outside_of_the_api_are_not_found(
    sqlite_org: Organization,
) -> None:
    response = await sqlite_org.http.get("/nothing")
    assert (response.status_code, response.json()["code"]) == (404, "BAD_REQUEST")


async def test_an_id_out_of_range_is_refused_by_name(sqlite_org: Organization) -> None:
    body = (await sqlite_org["ann"].get(f"/messages/{2**53 + 1}")).refused(
        "REQUEST_VARIABLE_INVALID"
    )
    assert body["var_name"] == "message_id"


@rows(
    ("method", "path", "allowed"),
    [
        ("PUT", "/messages", ["GET", "POST"]),
        ("TRACE", "/messages", ["GET", "POST"]),
        ("BREW", "/messages", ["GET", "POST"]),
        ("GET", "/register", ["POST"]),
        ("HEAD", "/register", ["POST"]),
        ("POST", "/server_settings", ["GET"]),
    ],
)
async def test_a_wrong_method_gets_the_allowed_ones(
    sqlite_org: Organization, method: str, path: str, allowed: list[str]
) -> None:
    # Without credentials: the allowed methods are no secret.
    reply = await sqlite_org.nobody.raw(method, path)
    assert reply.status == 405
    assert set(allowed) <= set(reply.headers["Allow"].split(", "))
    if method != "HEAD":
        body = reply.refused("BAD_REQUEST", 405)
        assert set(allowed) <= set(body["allowed_methods"])


async def test_a_wrong_method_on_a_page_is_refused(sqlite_org: Organization) -> None:
    response = await sqlite_org.http.post("/health")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")


async def test_head_is_answered_like_get_without_a_body(sqlite_org: Organization) -> None:
    reply = await sqlite_org.nobody.raw("HEAD", "/server_settings")
    assert (reply.status, reply.body) == (200, {})
    assert reply.headers["content-type"] == "application/json"
    assert int(reply.headers["content-length"]) > 100


@rows("path", ["/messages", "/register", "/messages/7", "/dev_list_users"])
async def test_cross_origin_requests_are_allowed(sqlite_org: Organization, path: str) -> None:
    asked = {
        "Origin": "https://elsewhere.example",
        "Access-Control-Request-Method": "DELETE",
        "Access-Control-Request-Headers": "authorization",
    }
    reply = await sqlite_org.nobody.raw("OPTIONS", path, headers=asked)
    assert reply.status == 204
    assert reply.headers["access-control-allow-origin"] == "*"
    assert "DELETE" in reply.headers["access-control-allow-methods"]
    assert "Authorization" in reply.headers["access-control-allow-headers"]
    # Cookies are never used across origins, so they aren't allowed.
    assert "access-control-allow-credentials" not in reply.headers


async def test_every_api_response_is_readable_across_origins_and_not_cached(
    sqlite_org: Organization,
) -> None:
    for path in ("/server_settings", "/messages", "/nothing"):
        reply = await sqlite_org.nobody.raw("GET", path)
        assert reply.headers["access-control-allow-origin"] == "*"
        assert reply.headers["cache-control"] == "no-store"
        assert reply.headers["x-content-type-options"] == "nosniff"


@rows(
    "query",
    [
        "anchor=%FF",
        "anchor=%ED%A0%80",
        "%C3%28=1",
        "anchor=%C0%80",
        "&".join(f"p{number}=1" for number in range(1001)),
    ],
)
async def test_an_unreadable_query_is_refused(sqlite_org: Organization, query: str) -> None:
    (await sqlite_org["ann"].raw("GET", f"/messages?{query}")).refused()


@rows("query", ["anchor", "=", "&&&", "=1", "%", "%zz=1", "anchor=%", "+", "a=1;b=2", "\u00e9=1"])
async def test_an_unusual_query_is_accepted(sqlite_org: Organization, query: str) -> None:
    (await sqlite_org["ann"].raw("GET", f"/messages?{query}")).refused()


def _part(head: str, content: bytes = b"hello", end: bytes = b"\r\n--b--\r\n") -> bytes:
    return b"--b\r\n" + head.encode() + b"\r\n\r\n" + content + end


NAMED = 'Content-Disposition: form-data; name="content"'


@rows(
    ("kind", "content"),
    [
        ("application/json", b'{"type": "stream"}'),
        ("application/json; charset=utf-8", b"{}"),
        ("text/plain", b"type=stream"),
        ("nonsense", b"x"),
        (FORM, b"content=%FF"),
        (FORM, b"content=\xff"),
        (FORM, b"content=%ED%A0%80"),
        (FORM, b"&".join(b"p%d=1" % number for number in range(1001))),
        ("multipart/form-data", _part(NAMED)),
        ("multipart/form-data; boundary=", _part(NAMED)),
        (BOUNDARY, b""),
        (BOUNDARY, b"nonsense"),
        (BOUNDARY, b"--b\r\n"),
        (BOUNDARY, _part(NAMED, end=b"")),
        (BOUNDARY, _part(NAMED, end=b"\r\n--b\r\n")),
        (BOUNDARY, _part(NAMED, b"\xff")),
        (BOUNDARY, _part(NAMED, b"\xed\xa0\x80")),
        (BOUNDARY, _part("Content-Type: text/plain")),
        (BOUNDARY, _part("Content-Disposition: form-data")),
        (BOUNDARY, _part("no header")),
        (BOUNDARY, _part('Content-Disposition: form-data; name="a"\r\n: empty')),
        (BOUNDARY, (b"--b\r\n" + NAMED.encode() + b"\r\n\r\nx\r\n") * 1001 + b"--b--\r\n"),
        (f"{BOUNDARY}; charset=nonsense", _part(NAMED, b"\xff")),
        ("multipart/form-data; boundary=" + "b" * 5000, b"x"),
    ],
)
async def test_a_body_that_is_no_form_is_refused(
    sqlite_org: Organization, kind: str, content: bytes
) -> None:
    body = (
        await sqlite_org["ann"].raw(
            "POST", "/messages", content=content, headers={"Content-Type": kind}
        )
    ).refused()
    assert "var_name" not in body


async def test_an_empty_body_of_any_type_has_no_parameters(readonly_org: Organization) -> None:
    for kind in ("application/json", FORM, "text/plain", ""):
        reply = await readonly_org["ann"].raw(
            "POST", "/register", content=b"", headers={"Content-Type": kind}
        )
        reply.ok


async def test_a_body_beyond_the_limit_is_refused(config: Config) -> None:
    small = msgspec.structs.replace(config, max_body_mib=1)
    async with new_organization(small) as org:
        await org.channel("lounge", "ann")
        ann = org["ann"]
        for place in ("data", "files"):
            sent: dict[str, Any] = {"type": "stream", "to": "lounge", "topic": "t"}
            sent["content"] = "x" * 1024 * 1024
            if place == "files":
                sent = {name: (None, text) for name, text in sent.items()}
            (await ann.raw("POST", "/messages", **{place: sent})).refused("BAD_REQUEST", 413)
        # Far beyond the limit, and for endpoints without authentication.
        huge = b"x" * (4 * 1024 * 1024)
        (await ann.raw("POST", "/messages", content=huge)).refused("BAD_REQUEST", 413)
        (await org.nobody.raw("POST", "/fetch_api_key", content=huge)).refused("BAD_REQUEST", 413)
        # A client without permission gets that error, whatever it sent.
        (await org.nobody.raw("POST", "/messages", content=huge)).refused("UNAUTHORIZED", 401)
        just_below = b"type=stream&to=lounge&topic=t&content=" + b"x" * (1024 * 1024 - 38)
        (await ann.raw("POST", "/messages", content=just_below)).ok


async def test_only_image_uploads_may_be_larger_than_a_form(
    readonly_org: Organization,
) -> None:
    ann, large = readonly_org["ann"], "x" * FORM_BYTES
    assert [route.path for route in ROUTES if route.body_bytes != FORM_BYTES] == [
        "/users/me/avatar",
        "/realm/emoji/{emoji_name}",
        "/bots",
        "/bots/{bot_id:int}",
        "/realm/icon",
        "/realm/logo",
    ]
    for path in ("/messages", "/drafts", "/users/me/avatar"):
        (await ann.raw("POST", path, data={"content": large})).refused("BAD_REQUEST", 413)
    files = {"content": ("a.png", large)}
    (await ann.raw("POST", "/messages", files=files)).refused("BAD_REQUEST", 413)
    (await ann.raw("POST", "/users/me/avatar", files=files)).refused("BAD_IMAGE")


async def test_a_large_multipart_form_is_parsed_in_several_turns_of_the_event_loop() -> None:
    head = b'--line\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
    body = head + b"x" * (5 * 1024 * 1024) + b"\r\n--line--\r\n"
    headers = Headers({"content-type": "multipart/form-data; boundary=line"})
    async with Turns() as turns:
        assert await fields(headers, body) == {}
    assert turns.count >= 5 * 4


def test_a_form_is_decoded_like_the_standard_library_does() -> None:
    random = Random(7)
    for _ in range(3000):
        raw = "".join(random.choices("%%%==&+4aAfFg_ \r\n\tä.-", k=random.randrange(20))).encode()
        pairs = [one.partition("=") for one in raw.decode().replace("+", " ").split("&") if one]
        try:
            expected = {
                unquote_to_bytes(name).decode(): unquote_to_bytes(value).decode()
                for name, _, value in pairs
            }
        except UnicodeDecodeError:
            with pytest.raises(BadBody):
                urlencoded(raw)
        else:
            assert urlencoded(raw) == expected
    assert urlencoded(b"a=%41%c3%a4&b=1+%3D=2&c=100%") == {"a": "Aä", "b": "1 ==2", "c": "100%"}


def test_invalid_percent_escapes_are_limited() -> None:
    assert urlencoded(b"content=" + b"%" * 10_000) == {"content": "%" * 10_000}
    with pytest.raises(BadBody):
        urlencoded(b"content=" + b"%" * 10_001)


async def test_the_log_line_of_a_refusal_has_its_reason(
    readonly_org: Organization, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "tertulia.http")
    ben = readonly_org["ben"]
    stranger = Person(readonly_org.http, email=ben.email, api_key="x" * 32)
    (await ben.get("/users/me")).ok
    (await ben.patch("/realm", name="Ours")).refused("UNAUTHORIZED_PRINCIPAL")
    (await ben.get("/messages", anchor="newest", num_before="x", num_after=0)).refused(
        "REQUEST_VARIABLE_INVALID"
    )
    (await stranger.get("/users/me")).refused("INVALID_API_KEY", 401)
    lines = [vars(record)["fields"] for record in caplog.records]
    told = [(line["path"], line["user"], line["status"], line.get("code")) for line in lines]
    assert told == [
        ("/api/v1/users/me", ben.user_id, 200, None),
        ("/api/v1/realm", ben.user_id, 400, "UNAUTHORIZED_PRINCIPAL"),
        ("/api/v1/messages", ben.user_id, 400, "REQUEST_VARIABLE_INVALID"),
        ("/api/v1/users/me", "-", 401, "INVALID_API_KEY"),
    ]


async def test_an_invalid_host_header_is_not_repeated(config: Config) -> None:
    async with new_organization(msgspec.structs.replace(config, external_url="")) as org:
        for host in ("[", "[::1", "a b", "a@b", "", "x" * 5000, "chat.test:", "chat.test:80abc"):
            with row(host):
                headers = {"Host": host}
                (await org.nobody.raw("GET", "/server_settings", headers=headers)).refused()
        found = await org.nobody.raw("GET", "/server_settings", headers={"Host": "[::1]:80"})
        assert found.ok["realm_url"] == "http://[::1]:80"


async def test_a_server_that_cannot_write_says_so(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def submit(*_: Any) -> None:
        raise Unavailable("The change couldn't be saved.")

    await org.channel("lounge", "ann")
    monkeypatch.setattr(org.node.log, "submit", submit)
    sent = {"type": "stream", "to": "lounge", "topic": "t", "content": "x"}
    reply = await org["ann"].post("/messages", **sent)
    reply.refused("SERVER_NOT_READY", 503)
    assert reply.headers["retry-after"] == "1"


async def test_the_node_is_alive_and_ready(readonly_org: Organization) -> None:
    for path, status in (("/health", "alive"), ("/ready", "ready")):
        response = await readonly_org.http.get(path)
        assert (response.status_code, response.json()["status"]) == (200, status)
