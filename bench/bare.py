"""The bare protocol: what answers waiting polls as fast as this machine can, in this language.

`python -m bench.bare` reads the answers to give from standard input (JSON: text by path below
/api/v1) and prints its port. It parses HTTP, parks a poll's connection, and writes the same
constant bytes to all that wait when a message comes. It knows no account, keeps nothing, and has
no framework. A process of its own, on the event loop that the server uses.
"""

import asyncio
import json
import sys
from typing import cast

import httptools
import uvloop

from bench.asking import HOST


class Bare:
    """Everybody who waits."""

    def __init__(self, answers: dict[str, str]) -> None:
        self._answers = {path.encode(): text.encode() for path, text in answers.items()}
        self._event = self._answers[b"/events"]
        self._waiting: set[BareProtocol] = set()
        self._sent = 0

    def asked(self, connection: "BareProtocol", url: bytes) -> None:
        """A request is complete."""
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
            for one in waiting:
                self._tell(one)

    def gone(self, connection: "BareProtocol") -> None:
        """It has hung up."""
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
