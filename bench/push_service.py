"""A push service on this machine. It verifies nothing, and counts requests and their times."""

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bench.api import HOST
from bench.serving import BenchError

PATIENCE = 600.0
"""The longest wait for requests, in seconds."""
_ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n"


class PushService:
    """Receives requests in a separate thread."""

    def __init__(self) -> None:
        self.port = 0
        self._arrived: list[float] = []
        """The times when each push was completely received, by `time.perf_counter`."""
        self._changed = threading.Condition()

    def endpoint(self, number: int) -> str:
        """Return the endpoint of one device."""
        return f"http://{HOST}:{self.port}/{number}"

    def forget(self) -> None:
        """Restart counting."""
        with self._changed:
            self._arrived.clear()

    def arrivals(self, count: int) -> Sequence[float]:
        """Wait for this many requests, and return their times in order. Raises BenchError if they
        don't arrive or if there are more."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._arrived) >= count, PATIENCE)
            if len(self._arrived) != count:
                raise BenchError(f"{len(self._arrived)} pushes came, and not {count}")
            return list(self._arrived)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                with self._changed:
                    self._arrived.append(time.perf_counter())
                    self._changed.notify_all()
                writer.write(_ANSWER)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()


@contextmanager
def push_service() -> Iterator[PushService]:
    """The service, running within the context."""
    service, loop = PushService(), asyncio.new_event_loop()
    listening = threading.Event()

    async def listen() -> None:
        server = await asyncio.start_server(service.serve, HOST, 0, backlog=1024)
        service.port = server.sockets[0].getsockname()[1]
        listening.set()
        try:
            await ended.wait()
        finally:
            server.close()

    ended = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(listen(),), daemon=True)
    thread.start()
    try:
        if not listening.wait(PATIENCE):
            raise BenchError("the push service does not listen")
        yield service
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(PATIENCE)
