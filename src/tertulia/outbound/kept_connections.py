"""Connections to servers that are asked time and again, kept open between two requests.

They are kept by the host's name, and not by its address alone: one on which a server has shown the
certificate for a name carries no requests for another.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from tertulia.outbound.addresses import Address

if TYPE_CHECKING:
    import httpx

IDLE_SECONDS: Final = 30.0
"""A connection that nobody uses for so long ends, and so does what is known of the host's
addresses: they are looked up, and examined, once for that time."""
HOSTS: Final = 16
"""To which connections are kept."""
OF_HOST: Final = 16
"""Connections."""


class KeptHost:
    """One host, and the connections to it."""

    def __init__(self, transport: "httpx.AsyncHTTPTransport") -> None:
        self.transport = transport
        self.has_answered = False
        """Whether there may be a connection from before."""
        self.in_use = 0
        self.used_at = time.monotonic()
        self._addresses: Sequence[Address] = ()
        self._known_until = 0.0

    async def addresses(
        self, look_up: Callable[[], Awaitable[Sequence[Address]]]
    ) -> Sequence[Address]:
        """Its addresses, as they were looked up last, or are now."""
        if time.monotonic() >= self._known_until:
            self._addresses = await look_up()
            self._known_until = time.monotonic() + IDLE_SECONDS
        return self._addresses

    def forget_addresses(self) -> None:
        """They lead nowhere: the next request looks them up."""
        self._known_until = 0.0


class KeptConnections:
    """Those of one client. To be used on its event loop."""

    def __init__(self, transport: Callable[[int], "httpx.AsyncHTTPTransport"]) -> None:
        """`transport` makes one that keeps so many connections."""
        self._transport = transport
        self._hosts: dict[tuple[str, int], KeptHost] = {}
        self._ending: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many hosts there are."""
        return len(self._hosts)

    @asynccontextmanager
    async def of(self, host: str, port: int) -> AsyncIterator[KeptHost | None]:
        """The host, for one request. None where there are too many others that are in use."""
        kept = self._hosts.get((host, port))
        if kept is None and (len(self._hosts) < HOSTS or await self._has_made_room()):
            # In the meantime, another request may have begun with it.
            kept = self._hosts.setdefault((host, port), KeptHost(self._transport(OF_HOST)))
        if kept is None:
            yield None
            return
        if self._ending is None:
            self._ending = asyncio.create_task(self._end_idle(), name="end-idle-connections")
        kept.in_use += 1
        try:
            yield kept
        finally:
            kept.in_use -= 1
            kept.used_at = time.monotonic()

    async def close(self) -> None:
        """End all of them."""
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.wait({self._ending})
        while self._hosts:
            await self._hosts.popitem()[1].transport.aclose()

    async def _has_made_room(self) -> bool:
        idle = {key: one for key, one in self._hosts.items() if not one.in_use}
        if not idle:
            return False
        await self._end(min(idle, key=lambda key: idle[key].used_at))
        return len(self._hosts) < HOSTS

    async def _end(self, key: tuple[str, int]) -> None:
        await self._hosts.pop(key).transport.aclose()

    async def _end_idle(self) -> None:
        while self._hosts:
            await asyncio.sleep(IDLE_SECONDS / 2)
            before = time.monotonic() - IDLE_SECONDS
            for key, one in list(self._hosts.items()):
                if not one.in_use and one.used_at < before and self._hosts.get(key) is one:
                    await self._end(key)
        self._ending = None
