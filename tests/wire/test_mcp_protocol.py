"""The Model Context Protocol itself: headers, versions, and invalid messages."""

from typing import Any

import httpx
import msgspec
import pytest

from tertulia.service.config import Config
from tests.support import Organization, new_organization

pytestmark = pytest.mark.usefixtures("no_logged_errors")

PRESENT, BEFORE = "2026-07-28", "2025-11-25"
META = {
    "io.modelcontextprotocol/protocolVersion": PRESENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
async def key(sqlite_org: Organization) -> str:
    found: str = (await sqlite_org["ann"].post("/agents", name="Helper")).ok["key"]
    return found


def message(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": META, **params}}


async def posted(org: Organization, key: str, said: Any, **headers: str) -> httpx.Response:
    """The response to a body: bytes, or anything that is sent as JSON."""
    sent = {**JSON, "Authorization": f"Bearer {key}"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    body = said if isinstance(said, bytes) else msgspec.json.encode(said)
    return await org.http.post("/mcp", content=body, headers=sent)


async def mcp_request(org: Organization, key: str, method: str, **params: Any) -> httpx.Response:
    """The response to a request of the current revision, with all headers."""
    headers = {"MCP_Protocol_Version": PRESENT, "Mcp_Method": method}
    if "name" in params:
        headers["Mcp_Name"] = params["name"]
    return await posted(org, key, message(method, **params), **headers)


# Valid requests


async def test_each_result_identifies_the_server(sqlite_org: Organization, key: str) -> None:
    response = await mcp_request(sqlite_org, key, "server/discover")
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert "mcp-session-id" not in response.headers
    found = response.json()
    assert (found["jsonrpc"], found["id"]) == ("2.0", 7)
    result = found["result"]
    assert result["supportedVersions"] == [PRESENT, BEFORE, "2025-06-18"]
    assert result["capabilities"] == {"tools": {}}
    assert result["resultType"] == "complete"
    assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "tertulia"
    listed = (await mcp_request(sqlite_org, key, "tools/list")).json()["result"]
    assert (listed["ttlMs"], listed["cacheScope"]) == (60_000, "private")


@pytest.mark.parametrize(
    ("wanted", "agreed"),
    [(BEFORE, BEFORE), ("2025-06-18", "2025-06-18"), ("2024-11-05", BEFORE), (PRESENT, BEFORE)],
)
async def test_the_handshake_of_the_previous_revision_works(
    sqlite_org: Organization, key: str, wanted: str, agreed: str
) -> None:
    said = message("initialize", protocolVersion=wanted, capabilities={}, clientInfo={})
    result = (await posted(sqlite_org, key, said)).json()["result"]
    assert result["protocolVersion"] == agreed
    assert result["serverInfo"]["name"] == "tertulia"
    noted = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    response = await posted(sqlite_org, key, noted, MCP_Protocol_Version=agreed)
    assert (response.status_code, response.content) == (202, b"")
    response = await posted(sqlite_org, key, message("ping"), MCP_Protocol_Version=agreed)
    assert response.json()["result"] == {}


async def test_a_name_may_be_encoded(sqlite_org: Organization, key: str) -> None:
    said = message("tools/call", name="who_am_i", arguments={})
    headers = {"MCP_Protocol_Version": PRESENT, "Mcp_Method": "tools/call"}
    encoded = "=?base64?d2hvX2FtX2k=?="
    response = await posted(sqlite_org, key, said, **headers, Mcp_Name=encoded)
    assert response.json()["result"]["structuredContent"]["agent"] == "Helper"


# Invalid requests


@pytest.mark.parametrize(
    ("said", "headers", "status", "code"),
    [
        (b"", {}, 400, -32700),
        (b"{", {}, 400, -32700),
        (b"[" * 100_000, {}, 400, -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', {}, 400, -32700),
        (b"\xff", {}, 400, -32700),
        (b"null", {}, 400, -32600),
        (b"[]", {}, 400, -32600),
        ([message("tools/list")], {}, 400, -32600),
        ({"id": 1, "method": "ping"}, {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": None, "method": "ping"}, {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}, {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": True, "method": "ping"}, {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "result": {}}, {}, 400, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, {}, 400, -32602),
        (message("tools/list", cursor="\0"), {}, 400, -32602),
        (message("tools/list"), {}, 400, -32020),
        (message("tools/list"), {"MCP_Protocol_Version": PRESENT}, 400, -32020),
        (message("tools/list"), {"MCP_Protocol_Version": "1999-01-01"}, 400, -32020),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            {"MCP_Protocol_Version": "1999-01-01"},
            400,
            -32022,
        ),
        (
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
            {"MCP_Protocol_Version": PRESENT, "Mcp_Method": "tools/list"},
            400,
            -32602,
        ),
        (
            {"jsonrpc": "2.0", "method": "notifications/x"},
            {"MCP_Protocol_Version": "1999-01-01"},
            400,
            -32022,
        ),
        (
            message("tools/list"),
            {"MCP_Protocol_Version": PRESENT, "Mcp_Method": "tools/call"},
            400,
            -32020,
        ),
        (
            message("tools/call", name="who_am_i"),
            {"MCP_Protocol_Version": PRESENT, "Mcp_Method": "tools/call", "Mcp_Name": "other"},
            400,
            -32020,
        ),
        (
            message("tools/call", name="who_am_i"),
            {
                "MCP_Protocol_Version": PRESENT,
                "Mcp_Method": "tools/call",
                "Mcp_Name": "=?base64?!?=",
            },
            400,
            -32020,
        ),
        (message("no/such"), {"MCP_Protocol_Version": BEFORE}, 200, -32601),
        (message("server/discover"), {"MCP_Protocol_Version": BEFORE}, 200, -32601),
    ],
)
async def test_invalid_requests_are_refused(
    sqlite_org: Organization, key: str, said: Any, headers: dict[str, str], status: int, code: int
) -> None:
    response = await posted(sqlite_org, key, said, **headers)
    assert response.status_code == status
    assert response.json()["error"]["code"] == code


@pytest.mark.parametrize(
    ("method", "params", "status", "code"),
    [
        ("ping", {}, 404, -32601),
        ("subscriptions/listen", {}, 404, -32601),
        ("resources/list", {}, 404, -32601),
        ("tools/list", {"cursor": "x"}, 400, -32602),
        ("tools/call", {"name": "no_such"}, 400, -32602),
    ],
)
async def test_unknown_methods_and_tools_are_refused(
    sqlite_org: Organization, key: str, method: str, params: dict[str, Any], status: int, code: int
) -> None:
    response = await mcp_request(sqlite_org, key, method, **params)
    found = response.json()
    assert (response.status_code, found["error"]["code"], found["id"]) == (status, code, 7)


async def test_an_unknown_version_is_answered_with_the_known_ones(
    sqlite_org: Organization, key: str
) -> None:
    said = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    response = await posted(sqlite_org, key, said, MCP_Protocol_Version="1999-01-01")
    data = response.json()["error"]["data"]
    assert data == {"supported": [PRESENT, BEFORE, "2025-06-18"], "requested": "1999-01-01"}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": "Bearer tertulia_agent_x"}, 401),
        ({"Authorization": "Basic YTpi"}, 401),
        ({"Content_Type": "text/plain"}, 415),
        ({"Accept": "text/event-stream"}, 406),
        ({"Origin": "http://evil.test"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://["}, 403),
        ({"Origin": "http://chat.test"}, 200),
        ({"Origin": "http://evil.test", "Host": "evil.test"}, 403),
    ],
)
async def test_authentication_is_required(
    sqlite_org: Organization, key: str, headers: dict[str, str], status: int
) -> None:
    said = message("ping")
    response = await posted(sqlite_org, key, said, MCP_Protocol_Version=BEFORE, **headers)
    assert response.status_code == status
    if status == 401:
        assert response.headers["www-authenticate"].startswith('Bearer realm="tertulia"')
    if status != 200:
        assert response.json()["error"]["code"] == status


@pytest.mark.parametrize(
    ("origin", "host", "status"),
    [
        ("http://127.0.0.1:9991", "127.0.0.1:9991", 200),
        ("http://localhost:9991", "localhost:9991", 200),
        ("http://127.0.0.1:1", "127.0.0.1:9991", 403),
        ("http://evil.test", "evil.test", 403),
    ],
)
async def test_without_an_external_url_the_host_name_proves_nothing(
    config: Config, origin: str, host: str, status: int
) -> None:
    async with new_organization(msgspec.structs.replace(config, external_url="")) as org:
        key = (await org["ann"].post("/agents", name="Helper")).ok["key"]
        response = await posted(
            org, key, message("ping"), MCP_Protocol_Version=BEFORE, Origin=origin, Host=host
        )
        assert response.status_code == status


async def test_other_methods_and_large_bodies_are_refused(
    sqlite_org: Organization, key: str
) -> None:
    for method in ("GET", "DELETE", "PUT", "OPTIONS"):
        response = await sqlite_org.http.request(method, "/mcp")
        assert (response.status_code, response.headers["allow"]) == (405, "POST")
    response = await posted(sqlite_org, key, b" " * (256 * 1024 + 1))
    assert (response.status_code, response.json()["error"]["code"]) == (413, 413)
