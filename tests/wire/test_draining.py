"""Draining a node: what clients get, and the end of its server."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import httpx
import msgspec
import pytest

from tertulia.app.bootstrap import Bootstrap
from tertulia.app.serving.http_server import Server
from tertulia.app.serving.listening import bound
from tertulia.service.config import Config
from tertulia.wire.http.node import HttpNode
from tertulia.wire.protocol.connections import ConnectionLimits
from tests.support import new_organization

pytestmark = pytest.mark.usefixtures("anyio_backend")


@dataclass
class Serving:
    node: HttpNode
    client: httpx.AsyncClient
    ended: "asyncio.Task[None]"

    async def asked(self, path: str = "/health") -> tuple[int, str | None]:
        """The status, and the Connection header."""
        response = await self.client.get(path)
        return response.status_code, response.headers.get("connection")


@contextlib.asynccontextmanager
async def serving(
    config: Config, on_node: Callable[[HttpNode], None] = lambda _: None
) -> AsyncIterator[Serving]:
    """A server for the organization, and a client with keep-alive connections. `on_node` is called
    before the server starts."""
    begun = asyncio.Event()
    bootstrap = Bootstrap(on_node)
    with contextlib.closing(bound("127.0.0.1", 0)) as listener:
        async with bootstrap.opened(config, lambda _: None, ()):
            server = Server(
                bootstrap, config, listener, ConnectionLimits(most=100), lambda _: begun.set()
            )
            ended = asyncio.create_task(server.serve([listener]))
            await begun.wait()
            port = listener.getsockname()[1]
            async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as client:
                assert bootstrap.node is not None
                yield Serving(bootstrap.node, client, ended)
            server.should_exit = True
            await ended


@pytest.fixture
async def settings(config: Config) -> Config:
    """The configuration of an existing organization."""
    async with new_organization(config):
        return config


async def test_a_draining_node_finishes_its_requests_and_ends(settings: Config) -> None:
    async with serving(settings) as served:
        assert await served.asked() == (200, None)
        served.node.lifecycle.drain()
        served.node.lifecycle.drain()
        await asyncio.wait_for(asyncio.shield(served.ended), 60)


async def test_a_node_drained_before_it_serves_ends(settings: Config) -> None:
    async with serving(settings, lambda node: node.lifecycle.drain()) as served:
        await asyncio.wait_for(asyncio.shield(served.ended), 60)


async def test_a_draining_node_is_not_ready_and_closes_each_connection_after_a_response(
    settings: Config,
) -> None:
    async with serving(msgspec.structs.replace(settings, drain_seconds=3600)) as served:
        assert await served.asked("/ready") == (200, None)
        served.node.lifecycle.drain()
        assert await served.asked("/ready") == (503, "close")
        assert await served.asked("/api/v1/server_settings") == (200, "close")
        assert await served.asked() == (200, "close")
        assert not served.ended.done()
