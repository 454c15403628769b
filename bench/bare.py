"""The bare protocol: answers polls as fast as Python can on this machine.

`python -m bench.bare` reads the responses from standard input (JSON: text by path below /api/v1)
and prints its port. It parses HTTP, holds polls, and writes the same bytes to all of them when a
message arrives. It has no accounts, storage, or framework, but runs in its own process on the
server's event loop.
"""

import asyncio
import json
import sys
from typing import cast

import httptools
import uvloop

from bench.api import HOST


class Bare:
    """All waiting connections."""

    def __init__(self, answers: dict[str, str]) -> None:
        self._answers = {path.encode(): text.encode() for path, text in answers.items()}
        self._event = self._answers[b"/events"]
        self._waiting: set[BareProtocol] = set()
        self._sent = 0

    def asked(self, connection: "BareProtocol", url: bytes) -> None:
        """Handle a complete request."""
        path = url.partition(b"?")[0].removeprefix(b"/api/v1")
        if path == b"/events":
            if connection.seen < self._sent:
                self._tell(connection)
            else:
                self._waiting.add(connection)
            return
        if path == b"/register":
            connection.seen = self._sent
        connection.transport.write(self._answers[path])
        if path == b"/messages":
            self._sent += 1
            waiting, self._waiting = self._waiting, set()
            for bare_protocol in waiting:
                self._tell(bare_protocol)

    def gone(self, connection: "BareProtocol") -> None:
        """The client disconnected."""
        self._waiting.discard(connection)

    def _tell(self, connection: "BareProtocol") -> None:
        connection.seen += 1
        connection.transport.write(self._event)


class BareProtocol(asyncio.Protocol):
    """One connection."""

    transport: asyncio.WriteTransport

    def __init__(self, bare: Bare) -> None:
        self._bare = bare
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self.seen = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def connection_lost(self, _: Exception | None) -> None:
        self._bare.gone(self)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        self._url = url

    def on_message_complete(self) -> None:
        self._bare.asked(self, self._url)


async def _main() -> None:
    bare = Bare(json.load(sys.stdin))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: BareProtocol(bare), HOST, 0, backlog=4096)
    sys.stdout.write(f"ready at http://{HOST}:{server.sockets[0].getsockname()[1]}\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_main())
