"""Connections to servers that are asked time and again, kept open between two requests.

They are kept by the host's name, and not by its address alone: one on which a server has shown the
certificate for a name carries no requests for another. Nor does one without TLS carry what is to
have it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Final

from tertulia.outbound.addresses import Address
from tertulia.outbound.http_line import HttpLine, LineFailed

IDLE_SECONDS: Final = 30.0
"""A connection that nobody uses for so long ends; and so long a host's addresses are known, once
they were looked up and examined."""
HOSTS: Final = 16
"""To which connections are kept: to each as many as were in use at once."""

Key = tuple[str, int, bool]


class KeptHost:
    """One host, and the connections to it."""

    def __init__(self) -> None:
        self.idle: list[HttpLine] = []
        """Those that nobody uses just now. That which was used last is the last."""
        self.in_use = 0
        """How many requests there are that use one, or are about to."""
        self._lent: set[HttpLine] = set()
        self._is_over = False
        self._addresses: Sequence[Address] = ()
        self._known_until = 0.0

    @property
    def used_at(self) -> float:
        """When it was used last, if it is not in use."""
        return self.idle[-1].used_at if self.idle else 0.0

    def take(self) -> HttpLine | None:
        """One that is open, if there is one, to be given back."""
        while self.idle:
            line = self.idle.pop()
            if line.is_free:
                self._lent.add(line)
                return line
            line.end()
        return None

    def new(self) -> HttpLine:
        """One that is to be opened, and given back."""
        if self._is_over:
            raise LineFailed("the connection pool is closed")
        line = HttpLine()
        self._lent.add(line)
        return line

    def give_back(self, line: HttpLine) -> None:
        """It is not used any more, and kept if it can be used again."""
        self._lent.discard(line)
        if line.is_free and not self._is_over:
            self.idle.append(line)
        else:
            line.end()

    def end(self) -> None:
        """End all connections, those in use too; no others are made."""
        self._is_over = True
        for line in (*self.idle, *self._lent):
            line.end()
        self.idle.clear()

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

    def __init__(self) -> None:
        self._hosts: dict[Key, KeptHost] = {}
        self._ending: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        """How many are kept that nobody uses."""
        return sum(len(host.idle) for host in self._hosts.values())

    @asynccontextmanager
    async def of(self, name: str, port: int, *, is_secure: bool) -> AsyncIterator[KeptHost | None]:
        """The connections to the host, for one request, those with TLS or those without. None where
        there are too many other hosts, which are all in use."""
        host = self._hosts.get((name, port, is_secure))
        if host is None:
            if len(self._hosts) >= HOSTS and not self._has_made_room():
                yield None
                return
            host = self._hosts[name, port, is_secure] = KeptHost()
        if self._ending is None or self._ending.done():
            self._ending = asyncio.create_task(self._end_idle(), name="end-idle-connections")
        host.in_use += 1
        try:
            yield host
        finally:
            host.in_use -= 1

    async def close(self) -> None:
        """End all of them. Requests that are under way fail."""
        if self._ending is not None:
            self._ending.cancel()
            await asyncio.wait({self._ending})
        for host in self._hosts.values():
            host.end()
        self._hosts.clear()

    def _has_made_room(self) -> bool:
        unused = {key: host for key, host in self._hosts.items() if not host.in_use}
        if not unused:
            return False
        oldest = min(unused, key=lambda key: unused[key].used_at)
        self._hosts.pop(oldest).end()
        return True

    async def _end_idle(self) -> None:
        while self._hosts:
            await asyncio.sleep(IDLE_SECONDS / 2)
            before = time.monotonic() - IDLE_SECONDS
            for key, host in list(self._hosts.items()):
                for line in host.idle:
                    if line.used_at < before:
                        line.end()
                host.idle = [one for one in host.idle if one.used_at >= before]
                if not host.idle and not host.in_use:
                    del self._hosts[key]
