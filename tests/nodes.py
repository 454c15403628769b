"""Several nodes of an organization in one process, and clients whose requests are distributed over
them."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy

import httpx

from tertulia.service.config import Config
from tests.support import Newcomer, Organization, Person, new_organization, open_organization


class Balancer(httpx.AsyncBaseTransport):
    """Sends each request to the node that the test chose."""

    def __init__(self, nodes: Sequence[Organization]) -> None:
        self.nodes = nodes
        self.to = 0
        """The number of the node."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        transport = self.nodes[self.to % len(self.nodes)].http._transport
        return await transport.handle_async_request(request)


@dataclass
class Client:
    """A program with an account, whose requests go to different nodes. It keeps cookies unless told
    otherwise."""

    person: Person
    balancer: Balancer

    def at(self, number: int) -> Person:
        """Send the next request to this node."""
        self.balancer.to = number
        return self.person


@dataclass
class Cluster:
    """The nodes of an organization of `ann` and `ben`."""

    nodes: list[Organization] = field(default_factory=list)

    def client(self, name: str = "ben", *, keeps_cookies: bool = True) -> Client:
        """Return a client of this account, or one without an account if the name is empty."""
        balancer = Balancer(self.nodes)
        http = httpx.AsyncClient(transport=balancer, base_url="http://chat.test")
        if not keeps_cookies:
            http.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        if not name:
            return Client(Person(http), balancer)
        known = self.nodes[0][name]
        return Client(Person(http, known.user_id, known.email, known.api_key), balancer)


@asynccontextmanager
async def cluster(
    config: Config, count: int, elapsed: Callable[[], float] | None = None
) -> AsyncIterator[Cluster]:
    """Run this many nodes on the configured, empty database. They hear each other."""
    async with AsyncExitStack() as stack:
        first = new_organization(config, elapsed=elapsed, others=[Newcomer("ben")])
        found = Cluster([await stack.enter_async_context(first)])
        for _ in range(count - 1):
            found.nodes.append(
                await stack.enter_async_context(open_organization(config, elapsed=elapsed))
            )
        if config.database_url:
            for node in found.nodes:
                await _hears(node)
        yield found


async def _hears(node: Organization) -> None:
    """Return when the node hears messages: it listens on a connection that it opens after it has
    started, and what others tell before then is lost."""
    messages, heard = node.node.delivery.peer_messages, list[str]()
    on_text = messages.on_text

    def noticed(text: str) -> None:
        heard.append(text)
        on_text(text)

    messages.on_text = noticed  # type: ignore[method-assign]
    try:
        async with asyncio.timeout(60):
            while "are you there?" not in heard:
                await node.node.log.store.send_to_peers(["are you there?"])
                await asyncio.sleep(0.01)
    finally:
        del messages.on_text
