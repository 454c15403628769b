"""A process with all clients and their actions.

`python -m bench.soak.load` reads a job (one line of JSON) from standard input, and later the words
`stop` and `close`. It prints lines of JSON: a summary of each window, and the result.
"""

import asyncio
import contextlib
import json
import random
import sys
import time
from typing import Any

import msgspec

from bench.api import request
from bench.soak.actions import Actions
from bench.soak.clients import Client, Tally
from bench.soak.connection import Connection
from bench.soak.organization import Organization, Person
from bench.soak.record import Record, Watch

ARRIVING = 32
"""The number of clients that register concurrently."""
QUIET_SECONDS = 3.0
"""The time without events after which everything counts as received, in seconds."""
PATIENCE_SECONDS = 60.0
COMPARED = 40
"""The number of clients whose messages are compared with GET /messages."""
PAGE = 1000


class Job(msgspec.Struct):
    """The parameters of a run, from standard input."""

    port: int
    organization: Organization
    rate: float
    """Messages per second."""
    window: float
    """Seconds between two lines."""


class Load:
    """All clients."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.record = Record()
        self.tally = Tally()
        self.clients = [
            Client(job.port, person, self.record, self.tally) for person in job.organization.people
        ]
        self.actions = Actions(job.port, job.organization, self.clients, self.record, self.tally)

    async def run(self, words: asyncio.StreamReader) -> None:
        """Connect, act until standard input has a word, and check the results."""
        gate = asyncio.Semaphore(ARRIVING)

        async def arrive(client: Client) -> None:
            async with gate:
                await client.arrive()

        await asyncio.gather(*(arrive(client) for client in self.clients))
        _say(kind="arrived")
        reporting = asyncio.create_task(self._report_windows())
        await self.actions.begin(self.job.rate)
        await words.readline()
        reporting.cancel()
        await self.actions.stop()
        await self._settle()
        due = self.record.judge()
        await self._compare()
        self.actions.close()
        _say(
            kind="verdict",
            failed=self.record.failed,
            failures=self.record.failures,
            done=self.actions.done,
            put_off=self.actions.put_off,
            acknowledged=len(self.record.acknowledged),
            due=due,
            watches=len(self.record.watches),
            queues=[client.queue_id for client in self.clients],
            abandoned=self.actions.abandoned,
            connections=len(self.clients),
        )
        await words.readline()

    async def _report_windows(self) -> None:
        """Print a line for each window."""
        window = self.job.window
        loop = asyncio.get_running_loop()
        due, used = loop.time(), time.process_time()
        while True:
            due += window
            await asyncio.sleep(max(due - loop.time(), 0))
            tally, now = self.tally, time.process_time()
            delivered, answered = sorted(tally.delivered), sorted(tally.answered)
            _say(
                kind="window",
                events=tally.events / window,
                polls=tally.polls / window,
                sent=tally.sent / window,
                requests=tally.requests / window,
                delivered_p50=_quantile(delivered, 0.5),
                delivered_p99=_quantile(delivered, 0.99),
                answered_p50=_quantile(answered, 0.5),
                answered_p99=_quantile(answered, 0.99),
                here=sum(client.here for client in self.clients),
                put_off=self.actions.put_off,
                unfinished=self.actions.unfinished,
                abandoned=len(self.actions.abandoned),
                failed=self.record.failed,
                failure=self.record.failures[0] if self.record.failures else "",
                load_cpu=(now - used) / window,
            )
            used = now
            tally.events = tally.polls = tally.sent = tally.requests = 0
            tally.delivered.clear()
            tally.answered.clear()

    async def _settle(self) -> None:
        """Wait until all clients have returned and no more events arrive."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE_SECONDS
        while loop.time() < until:
            before = self.tally.polls
            await asyncio.sleep(QUIET_SECONDS)
            if before == self.tally.polls and all(client.here for client in self.clients):
                return
        missing = [client.person.id for client in self.clients if not client.here]
        if missing:
            self.record.fail(f"{len(missing)} clients are without a queue: users {missing[:8]}")
        else:
            self.record.fail(f"events still came {PATIENCE_SECONDS:.0f} s after the last request")

    async def _compare(self) -> None:
        """Compare the messages that clients with one queue throughout received with those that they
        can fetch."""
        first: dict[int, Watch] = {}
        for watch in self.record.watches:
            first.setdefault(watch.user_id, watch)
        steady = [v for v in self.clients if v.watch is first.get(v.person.id)]
        connection = await Connection.to(self.job.port)
        for client in random.sample(steady, min(COMPARED, len(steady))):
            assert client.watch is not None
            received = set(client.watch.received) - self.record.excused
            stays = client.watch.stays
            fetched: set[int] = set()
            for place in stays:
                fetched |= await self._fetched(connection, client.person, place)
            readable = fetched & self.record.acknowledged.keys() - self.record.excused
            who = f"user {client.person.id}"
            # In a public channel, more can be read than was received while subscribed.
            missing = {m for m in readable - received if self._was_due(m, client.watch)}
            if missing:
                self.record.fail(f"{who} can fetch and did not get {sorted(missing)[:8]}")
            if received - fetched:
                self.record.fail(f"{who} got and cannot fetch {sorted(received - fetched)[:8]}")
        connection.drop()

    def _was_due(self, message_id: int, watch: Watch) -> bool:
        event_id = self.record.event_of[message_id]
        return event_id > watch.start and any(
            since < event_id < until
            for place in self.record.acknowledged[message_id]
            for since, until in watch.stays.get(place, ())
        )

    async def _fetched(self, connection: Connection, person: Person, place: int) -> set[int]:
        """Return all messages in a channel, or all direct messages, that the person can read."""
        operator, operand = ("is", "dm") if place < 0 else ("channel", place)
        narrow = [{"operator": operator, "operand": operand}]
        result: set[int] = set()
        anchor = 0
        while True:
            asked = request(
                "GET",
                "/messages",
                person.authorization,
                narrow=narrow,
                anchor=anchor,
                include_anchor=False,
                num_before=0,
                num_after=PAGE,
                apply_markdown=False,
            )
            status, body = await connection.answer(asked)
            if status != 200:
                self.record.fail(f"GET /messages: {status} {body!r}")
                return result
            page: dict[str, Any] = msgspec.json.decode(body)
            result |= {message["id"] for message in page["messages"]}
            if page["found_newest"]:
                return result
            anchor = page["messages"][-1]["id"]


def _quantile(ordered: list[float], part: float) -> float | None:
    return ordered[min(int(len(ordered) * part), len(ordered) - 1)] if ordered else None


def _say(**what: Any) -> None:
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


async def _main() -> None:
    loop = asyncio.get_running_loop()
    words = asyncio.StreamReader(limit=1 << 26)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    job = msgspec.json.decode(await words.readline(), type=Job)
    load = Load(job)

    def broke(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        load.record.fail(f"{context['message']}: {context.get('exception')!r}")

    loop.set_exception_handler(broke)
    await load.run(words)


def main() -> None:
    """Run the job."""
    loops: Any = asyncio
    with contextlib.suppress(ImportError):
        import uvloop as loops
    with asyncio.Runner(loop_factory=loops.new_event_loop) as runner:
        runner.run(_main())


if __name__ == "__main__":
    main()
