"""Clients: each has a queue, polls, applies events, and polls again."""

import asyncio
import random
import time
from dataclasses import dataclass, field

import msgspec

from bench.api import request
from bench.soak.connection import LOST, Connection
from bench.soak.organization import Person
from bench.soak.record import Record, Watch

EVENT_TYPES = [
    *("message", "update_message", "delete_message", "update_message_flags", "reaction"),
    *("subscription", "typing", "presence"),
]
AWAY = (0.2, 8.0)
"""The range of seconds that clients stay away before they return."""


class _Message(msgspec.Struct):
    id: int
    content: str
    stream_id: int | None = None


class _Channel(msgspec.Struct):
    stream_id: int


class _Event(msgspec.Struct):
    id: int
    type: str
    op: str = ""
    message: _Message | None = None
    subscriptions: list[_Channel] = []


class _Events(msgspec.Struct):
    events: list[_Event]


class _Registered(msgspec.Struct):
    queue_id: str
    last_event_id: int
    subscriptions: list[_Channel] = []


_events = msgspec.json.Decoder(_Events)
_registered = msgspec.json.Decoder(_Registered)
_error = msgspec.json.Decoder(dict[str, object])


def stamp() -> int:
    """Return the time in microseconds, with which every message starts."""
    return time.monotonic_ns() // 1000


@dataclass
class Tally:
    """Counts since the last window. Latencies are in milliseconds."""

    events: int = 0
    polls: int = 0
    requests: int = 0
    sent: int = 0
    delivered: list[float] = field(default_factory=list)
    answered: list[float] = field(default_factory=list)


class Client:
    """A client of a person."""

    def __init__(self, port: int, person: Person, record: Record, tally: Tally) -> None:
        self.person = person
        self.queue_id = ""
        self.here = False
        """Whether it's waiting, as opposed to away or registering."""
        self.busy = False
        """Whether it's leaving or arriving."""
        self._port = port
        self._record = record
        self._tally = tally
        self._last_event_id = -1
        self._late = False
        self._leaves: asyncio.Event | None = None
        self.connection: Connection | None = None
        self.watch: Watch | None = None

    async def arrive(self) -> None:
        """Connect, register, and wait from now on."""
        if self.connection is not None:
            self.connection.drop()
        self.connection = await Connection.to(self._port)
        await self._register()

    async def disconnect(self) -> None:
        """Cut the connection during a poll, and return with the same queue."""
        if self.connection is None:
            return
        self.here = False
        self.connection.drop()
        self.connection = None
        await asyncio.sleep(random.uniform(*AWAY))
        self.connection = await Connection.to(self._port)
        self._late = True
        self._poll()

    async def renew(self, other: Connection) -> None:
        """Delete the queue on another connection, and register again."""
        self._leaves = asyncio.Event()
        self.here = False
        asked = request("DELETE", "/events", self.person.authorization, queue_id=self.queue_id)
        status, body = await other.answer(asked)
        if status != 200:
            self._record.fail(f"DELETE /events: {status} {body.decode(errors='replace')}")
        await self._leaves.wait()
        self._leaves = None
        if self.watch is not None:
            self.watch.end = self._last_event_id
        await self.arrive()

    async def _register(self) -> None:
        assert self.connection is not None
        asked = request(
            "POST",
            "/register",
            self.person.authorization,
            event_types=EVENT_TYPES,
            fetch_event_types=["subscription"],
        )
        status, body = await self.connection.answer(asked)
        if status != 200:
            self._record.fail(f"POST /register: {status} {body.decode(errors='replace')}")
            return
        begun = _registered.decode(body)
        self.queue_id, self._last_event_id = begun.queue_id, begun.last_event_id
        self.watch = Watch(self.person.id, begun.last_event_id)
        self.watch.enter(-self.person.id, begun.last_event_id)
        for channel in begun.subscriptions:
            self.watch.enter(channel.stream_id, begun.last_event_id)
        self._record.watches.append(self.watch)
        self._poll()

    def _poll(self) -> None:
        assert self.connection is not None
        self.here = True
        target = f"/events?queue_id={self.queue_id}&last_event_id={self._last_event_id}"
        self.connection.ask(request("GET", target, self.person.authorization), self._heard)

    def _heard(self, status: int, body: bytes) -> None:
        if status == 200:
            self._take(_events.decode(body).events)
        elif not self._is_expected(status, body):
            # Without a queue, it can't continue. It's reported as missing at the end.
            self.here = False
            self._record.fail(f"GET /events: {status} {body.decode(errors='replace')}")
            return
        if self._leaves is not None:
            self._leaves.set()
        else:
            self._poll()

    def _is_expected(self, status: int, body: bytes) -> bool:
        """Whether a poll failed because its queue was deleted."""
        if self._leaves is None or status == LOST:
            return False
        return _error.decode(body).get("code") == "BAD_EVENT_QUEUE_ID"

    def _take(self, events: list[_Event]) -> None:
        now = stamp()
        watch, record, tally = self.watch, self._record, self._tally
        assert watch is not None
        last = self._last_event_id
        for event in events:
            if event.id <= last:
                record.fail(f"user {self.person.id}: event {event.id} came after {last}")
            last = event.id
            if event.message is not None:
                message = event.message
                record.brought(message.id, event.id)
                watch.received.append(message.id)
                if not self._late:
                    sent = int(message.content.partition(" ")[0])
                    tally.delivered.append((now - sent) / 1000)
            elif event.type == "subscription":
                if event.op == "add":
                    for channel in event.subscriptions:
                        watch.enter(channel.stream_id, event.id)
                elif event.op == "remove":
                    for channel in event.subscriptions:
                        watch.leave(channel.stream_id, event.id)
        self._last_event_id = last
        self._late = False
        tally.events += len(events)
        tally.polls += 1
