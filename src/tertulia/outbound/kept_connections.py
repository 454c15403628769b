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
"""A connection that nobody uses for so long ends; and so long a host's addresses are known, once
they were looked up and examined."""
HOSTS: Final = 16
"""To which connections are kept: to each as many as were in use at once."""

Key = tuple[str, int]


class KeptHost:
    """One host, and the connections to it that nobody uses just now."""

    def __init__(self) -> None:
        self.idle: list[KeptConnection] = []
        """That which was used last is the last."""
        self.in_use = 0
        self._addresses: Sequence[Address] = ()
        self._known_until = 0.0

    @property
    def used_at(self) -> float:
        """When it was used last, if it is not in use."""
        return self.idle[-1].used_at if self.idle else 0.0

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


class KeptConnection:
    """What one request at a time is sent by."""

    def __init__(self, host: KeptHost, transport: "httpx.AsyncHTTPTransport") -> None:
        self.host = host
        self.transport = transport
        """It opens the connection, and opens it anew where it has ended."""
        self.has_answered = False
        """Whether there may be a connection from before."""
        self.used_at = time.monotonic()


class KeptConnections:
    """Those of one client. To be used on its event loop."""

    def __init__(self, transport: Callable[[], "httpx.AsyncHTTPTransport"]) -> None:
        """`transport` makes one that keeps one connection: to look through many takes longer than
        all the rest of a request."""
        self._transport = transport
        self._hosts: dict[Key, KeptHost] = {}
        self._ending: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many are kept that nobody uses."""
        return sum(len(host.idle) for host in self._hosts.values())

    @asynccontextmanager
    async def of(self, name: str, port: int) -> AsyncIterator[KeptConnection | None]:
        """A connection to the host, for one request; it is kept where that comes to its end. None
        where there are too many other hosts, which are all in use."""
        host = self._hosts.get((name, port))
        if host is None and (len(self._hosts) < HOSTS or await self._has_made_room()):
            # Another request may have begun with it meanwhile.
            host = self._hosts.setdefault((name, port), KeptHost())
        if host is None:
            yield None
            return
        if self._ending is None or self._ending.done():
            self._ending = asyncio.create_task(self._end_idle(), name="end-idle-connections")
        used = host.idle.pop() if host.idle else KeptConnection(host, self._transport())
        host.in_use += 1
        is_whole = False
        try:
            yield used
            is_whole = True
        finally:
            host.in_use -= 1
            if is_whole:
                used.used_at = time.monotonic()
                host.idle.append(used)
            else:
                # What was cancelled may hold its one connection for ever: the next request would
                # wait for it.
                await _ended([used])

    async def close(self) -> None:
        """End all of them."""
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.wait({self._ending})
        await _ended([one for host in self._hosts.values() for one in host.idle])
        self._hosts.clear()

    async def _has_made_room(self) -> bool:
        unused = {key: host for key, host in self._hosts.items() if not host.in_use}
        if unused:
            oldest = min(unused, key=lambda key: unused[key].used_at)
            await _ended(self._hosts.pop(oldest).idle)
        return len(self._hosts) < HOSTS

    async def _end_idle(self) -> None:
        while self._hosts:
            await asyncio.sleep(IDLE_SECONDS / 2)
            before = time.monotonic() - IDLE_SECONDS
            over: list[KeptConnection] = []
            for key, host in list(self._hosts.items()):
                over += [one for one in host.idle if one.used_at < before]
                host.idle = [one for one in host.idle if one.used_at >= before]
                if not host.idle and not host.in_use:
                    del self._hosts[key]
            await _ended(over)


async def _ended(connections: Sequence[KeptConnection]) -> None:
    for one in connections:
        await one.transport.aclose()
