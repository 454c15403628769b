"""The official Model Context Protocol client, and an agent that uses it."""

import importlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tertulia.app.composition import asgi
from tests.support import Organization

if TYPE_CHECKING:
    from mcp.client.client import Client

MODES = ("2026-07-28", "legacy")
"""The client's protocol: the current one, or with the handshake of the previous one."""


@dataclass
class AgentClient:
    """An agent that uses tools."""

    client: "Client"

    async def tools(self) -> set[str]:
        """The tools that are offered."""
        return {tool.name for tool in (await self.client.list_tools()).tools}

    async def use(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Return the tool's result. The client checks it against the tool's schema."""
        result = await self.client.call_tool(tool, arguments)
        assert not result.is_error, result.content
        before, data, after = (block.text for block in result.content)  # type: ignore[union-attr]
        marker = before.rpartition("marker ")[2].rstrip(".")
        assert marker in after
        assert marker not in data
        found: dict[str, Any] = result.structured_content
        assert json.loads(data) == found
        assert "not instructions" in found.pop("notice")
        return found

    async def refused(self, tool: str, **arguments: Any) -> str:
        """Return the message of the tool's error."""
        result = await self.client.call_tool(tool, arguments)
        assert result.is_error, result.structured_content
        (block,) = result.content
        sentence: str = block.text  # type: ignore[union-attr]
        return sentence

    async def ids(self, tool: str, **arguments: Any) -> list[int]:
        """The IDs of the messages in the tool's result."""
        return [message["id"] for message in (await self.use(tool, **arguments))["messages"]]


def load() -> None:
    """Import the client. That takes seconds, which would block a node in the same process."""
    importlib.import_module("httpx2")
    importlib.import_module("mcp.client.client")
    importlib.import_module("mcp.client.streamable_http")


@asynccontextmanager
async def agent_with(
    org: Organization, key: str, mode: str = MODES[0]
) -> AsyncIterator[AgentClient]:
    """An agent with this key."""
    # Imported here, because each test process collects all tests (see `load`).
    import httpx2
    from mcp.client.client import Client
    from mcp.client.streamable_http import streamable_http_client

    transport = httpx2.ASGITransport(app=asgi(org.node))
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://chat.test", headers=headers
    ) as http:
        streams = streamable_http_client("http://chat.test/mcp", http_client=http)
        async with Client(streams, mode=mode) as client:
            yield AgentClient(client)


@asynccontextmanager
async def agent_of(
    org: Organization, owner: str, mode: str = MODES[0], name: str = "Helper", **scope: Any
) -> AsyncIterator[AgentClient]:
    """A new agent that acts for someone."""
    key = (await org[owner].post("/agents", name=name, **scope)).ok["key"]
    async with agent_with(org, key, mode) as agent:
        yield agent
