"""The generator: a process of its own that asks as fast as answers come, over bare sockets.

`python -m bench.load` reads a job (JSON) from standard input and prints what it measured.
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from bench.asking import poll, register

WARM_UP = 0.15
"""The part of the time in which answers do not count."""


class LoadError(Exception):
    """The server answered with something else than a success."""


class Line(asyncio.Protocol):
    """One connection that is kept; one request at a time."""

    def __init__(self) -> None:
        self._transport: Any = None
        self._buffer = b""
        self._needed = -1
        self._answered: Callable[[bytes], None] = lambda _: None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def ask(self, request: bytes, answered: Callable[[bytes], None]) -> None:
        """Send the request, and call `answered` with the body of the answer."""
        self._answered = answered
        self._transport.write(request)

    async def answer(self, request: bytes) -> bytes:
        """The same for those who can wait."""
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.ask(request, future.set_result)
        return await future

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        if self._needed < 0:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            if self._buffer[9:12] != b"200":
                raise LoadError(self._buffer.decode(errors="replace"))
            head = self._buffer[:end].lower()
            at = head.index(b"content-length:") + 15
            length = int(head[at : at + 20].split(b"\r\n", 1)[0])
            self._needed = end + 4 + length
        if len(self._buffer) >= self._needed:
            body = self._buffer[self._buffer.index(b"\r\n\r\n") + 4 :]
            self._buffer, self._needed = b"", -1
            self._answered(body)

    def close(self) -> None:
        self._transport.close()


@dataclass
class Measured:
    """Latencies (seconds) of what counted, and how long that took."""

    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    cpu: float = 0.0
    """The part of one core that the generator itself used."""
    more: dict[str, list[float]] = field(default_factory=dict)


async def connected(port: int, count: int) -> list[Line]:
    """So many connections."""
    loop = asyncio.get_running_loop()
    return [(await loop.create_connection(Line, "127.0.0.1", port))[1] for _ in range(count)]


async def closed_loop(port: int, asked: list[bytes], seconds: float) -> Measured:
    """Each request on a connection of its own, again and again."""
    lines = await connected(port, len(asked))
    clock = time.perf_counter
    measured = Measured()
    ends: list[asyncio.Future[None]] = []
    start = clock()
    begin, end = start + seconds * WARM_UP, start + seconds
    used = time.process_time()

    def drive(line: Line, request: bytes) -> None:
        finished: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ends.append(finished)
        sent = clock()

        def answered(_: bytes) -> None:
            nonlocal sent
            now = clock()
            if sent >= begin:
                measured.latencies.append(now - sent)
            if now >= end:
                finished.set_result(None)
                return
            sent = now
            line.ask(request, answered)

        line.ask(request, answered)

    for line, request in zip(lines, asked, strict=True):
        drive(line, request)
    await asyncio.gather(*ends)
    measured.seconds = clock() - begin
    measured.cpu = (time.process_time() - used) / (clock() - start)
    _close(lines)
    return measured


@dataclass
class Listener:
    """Somebody who waits for messages."""

    line: Line
    authorization: str
    queue_id: str
    last_event_id: int
    body: bytes = b""

    def wait(self, heard: Callable[["Listener"], None]) -> None:
        """Ask for the next events; `heard` is called when they are here."""

        def answered(body: bytes) -> None:
            self.body = body
            heard(self)

        self.line.ask(poll(self.authorization, self.queue_id, self.last_event_id), answered)

    def take(self) -> int:
        """Read the answer: how many messages it has."""
        events: list[dict[str, Any]] = json.loads(self.body)["events"]
        if events:
            self.last_event_id = events[-1]["id"]
        return sum(event["type"] == "message" for event in events)


async def listeners_of(port: int, authorizations: list[str]) -> list[Listener]:
    """One for each, its queue registered."""
    found = []
    for line, authorization in zip(
        await connected(port, len(authorizations)), authorizations, strict=True
    ):
        queue = json.loads(await line.answer(register(authorization)))
        found.append(Listener(line, authorization, queue["queue_id"], queue["last_event_id"]))
    return found


async def delivery(port: int, send: bytes, waiting: list[str], seconds: float) -> Measured:
    """One message at a time: from sending it until the last of those who wait has it."""
    (sender,) = await connected(port, 1)
    listeners = await listeners_of(port, waiting)
    clock = time.perf_counter
    measured = Measured(more={"first": [], "answered": []})
    start = clock()
    begin, end = start + seconds * WARM_UP, start + seconds
    used = time.process_time()
    while clock() < end:
        heard: list[float] = []
        everybody: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def hear(_: Listener, heard: list[float] = heard, everybody: Any = everybody) -> None:
            heard.append(clock())
            if len(heard) == len(listeners):
                everybody.set_result(None)

        for listener in listeners:
            listener.wait(hear)
        # When this is answered, the polls that were sent before it are waiting.
        await sender.answer(SETTINGS)
        sent = clock()
        await sender.answer(send)
        answered = clock()
        await everybody
        if any(listener.take() != 1 for listener in listeners):
            raise LoadError("a poll did not bring exactly one message")
        if sent >= begin:
            measured.latencies.append(heard[-1] - sent)
            measured.more["first"].append(heard[0] - sent)
            measured.more["answered"].append(answered - sent)
    measured.seconds = clock() - begin
    measured.cpu = (time.process_time() - used) / (clock() - start)
    _close([sender, *(listener.line for listener in listeners)])
    return measured


SETTINGS = b"GET /api/v1/server_settings HTTP/1.1\r\nHost: localhost\r\n\r\n"


def _close(lines: Iterable[Line]) -> None:
    for line in lines:
        line.close()


async def _main(job: dict[str, Any]) -> Measured:
    loop = asyncio.get_running_loop()
    failed: asyncio.Future[Measured] = loop.create_future()

    def fail(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not failed.done():
            failed.set_exception(context.get("exception") or LoadError(context["message"]))

    loop.set_exception_handler(fail)
    port, seconds = job["port"], job["seconds"]
    if job["kind"] == "requests":
        work = closed_loop(port, [text.encode() for text in job["requests"]], seconds)
    else:
        work = delivery(port, job["send"].encode(), job["waiting"], seconds)
    task = asyncio.ensure_future(work)
    done, _ = await asyncio.wait({task, failed}, return_when=asyncio.FIRST_COMPLETED)
    task.cancel()
    return done.pop().result()


def main() -> None:
    """Do the job."""
    try:
        import uvloop as loops
    except ImportError:
        loops = asyncio
    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        measured = runner.run(_main(json.load(sys.stdin)))
    json.dump(vars(measured), sys.stdout)


if __name__ == "__main__":
    main()
