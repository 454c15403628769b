"""Connections on which TLS is still being agreed upon: they count, and are bounded, as all others.

They are admitted as soon as they are accepted, so that whoever begins handshakes and ends none is
held to the same limits, and makes way where there is no room.
"""

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

from tertulia.wire.protocol.connections import Admission, Connections, Wait
from tertulia.wire.protocol.trusted_addresses import unmapped

_FAREWELL_SECONDS: Final = 3600.0
"""For so long TLS itself would let a connection end. What ends sooner, the connections' own limits
say."""


class Handshake:
    """One such connection: a `tertulia.wire.protocol.connections.Connection`."""

    turn = received = sent = unsent = 0

    def __init__(self, plug: socket.socket, client: tuple[str, int] | None) -> None:
        self.plug = plug
        self.client = client
        """Address and port of the other end; None where it has none."""
        self.is_over = False
        """Whether it has become a connection, or never will."""

    @property
    def host(self) -> str | None:
        return self.client[0] if self.client else None

    @property
    def waits_for(self) -> Wait:
        return Wait.NOTHING if self.is_over else Wait.HEAD

    def give_up(self) -> None:
        """Close it: the handshake fails."""
        with contextlib.suppress(OSError):
            self.plug.shutdown(socket.SHUT_RDWR)


class Handshakes:
    """Makes secure connections of those that were accepted."""

    def __init__(
        self,
        connections: Connections,
        context: Callable[[], ssl.SSLContext],
        protocol: Callable[[Handshake], asyncio.Protocol],
    ) -> None:
        """`context` is asked anew for each; `protocol` makes what speaks on the connection, which
        takes the place of the handshake among the connections."""
        self._connections = connections
        self._context = context
        self._protocol = protocol

    def begin(self, plug: socket.socket, address: Any) -> Handshake | None:
        """Count a connection that was accepted from that address. None where there is no room: it
        is closed, without a word that its client could read."""
        client = (
            (unmapped(str(address[0])), int(address[1])) if isinstance(address, tuple) else None
        )
        handshake = Handshake(plug, client)
        admission = self._connections.admit(handshake, handshake.host)
        if admission in {Admission.TOO_MANY, Admission.FULL}:
            self._connections.lost(handshake, handshake.host)
            plug.close()
            return None
        self._connections.watch(handshake)
        return handshake

    async def finish(self, handshake: Handshake) -> None:
        """Let the two agree, and the protocol begin. Where that fails, the connection is gone."""
        loop = asyncio.get_running_loop()
        try:
            with contextlib.suppress(OSError):  # So are errors of TLS.
                await loop.connect_accepted_socket(
                    lambda: self._protocol(handshake),
                    handshake.plug,
                    ssl=self._context(),
                    ssl_handshake_timeout=self._connections.limits.head_seconds,
                    ssl_shutdown_timeout=_FAREWELL_SECONDS,
                )
        finally:
            if not handshake.is_over:
                handshake.is_over = True
                self._connections.lost(handshake, handshake.host)
                handshake.plug.close()
