"""Full clients: each keeps the organization's state up to date with events, and must equal a new
client at the end."""

import asyncio
from typing import Any

import httpx
from tests.reference_client import WAYS, ReferenceClient, differences
from tests.support import Listener
from tests.support import Person as Asker

from bench.soak.organization import Person

PAUSE_SECONDS = 3.0
HUNG = 400
"""The number of newest messages whose reactions are compared."""


class ReferenceClients:
    """The full clients. Every response is checked against the OpenAPI document."""

    connections = 4

    def __init__(self, port: int) -> None:
        limits = httpx.Limits(max_connections=self.connections, keepalive_expiry=None)
        self._http = httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", limits=limits, timeout=60
        )
        self._clients: list[ReferenceClient] = []
        self.failures: list[str] = []

    @property
    def queues(self) -> list[str]:
        return [client.listener.queue_id for client in self._clients]

    async def begin(self, people: list[Person]) -> None:
        """Register all of them, with each set of parameters in turn."""
        ways = list(WAYS.values())
        for number, person in enumerate(people):
            asker = Asker(self._http, person.id, person.email, person.api_key)
            self._clients.append(await ReferenceClient.begin(asker, ways[number % len(ways)]))

    async def follow(self) -> None:
        """Apply events until canceled."""
        while True:
            for client in self._clients:
                await self._catch_up(client)
                await asyncio.sleep(PAUSE_SECONDS / len(self._clients))

    async def _catch_up(self, client: ReferenceClient) -> None:
        try:
            await client.catch_up()
        except Exception as error:
            self._fail(client, repr(error))

    async def compare(self) -> int:
        """Compare each client's state with a new one. Return the number of messages compared."""
        looked_at = 0
        for client in self._clients:
            await self._catch_up(client)
            asker = client.listener.person
            try:
                fresh = await ReferenceClient.begin(asker, client.parameters)
                await _leave(fresh.listener)
                for difference in differences(client.shown(), fresh.shown())[:5]:
                    self._fail(client, difference)
                looked_at += await self._compare_hanging(client)
            except Exception as error:
                self._fail(client, repr(error))
        return looked_at

    async def _compare_hanging(self, client: ReferenceClient) -> int:
        """Compare reactions from events with fetched ones."""
        newest = sorted(client.hanging)[-HUNG:]
        page = await client.listener.person.get("/messages", message_ids=newest)
        messages: list[dict[str, Any]] = page.ok["messages"]
        for message in messages:
            for reaction in message["reactions"]:
                del reaction["user"]  # The account's current name.
            held = client.hanging[message["id"]]["reactions"]
            for difference in differences(held, message["reactions"], f"message {message['id']}"):
                self._fail(client, difference)
        return len(messages)

    def _fail(self, client: ReferenceClient, text: str) -> None:
        self.failures.append(f"full client of user {client.user_id}: {text[:600]}")

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()


async def _leave(listener: Listener) -> None:
    reply = await listener.person.delete("/events", queue_id=listener.queue_id)
    assert reply.ok
