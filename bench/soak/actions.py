"""Simulated actions of people, each at its own rate and at random times."""

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from bench.api import request
from bench.soak.clients import Client, Tally, stamp
from bench.soak.connection import Connection
from bench.soak.organization import Organization, Person
from bench.soak.record import Record

PER_MESSAGE = {
    "edit": 0.05,
    "move": 0.01,
    "delete": 0.02,
    "react": 0.1,
    "flag": 0.05,
    "switch_channel": 0.01,
    "type": 0.05,
    "report": 0.02,
}
"""The number of times that each action happens per sent message."""
PER_CLIENT = {"disconnect": 1 / 500, "renew": 1 / 1000, "abandon": 1 / 4000}
"""The number of times per second and client."""
DIRECT, LARGE, BETWEEN_CHANNELS = 0.1, 0.01, 0.1
"""The shares of messages that are direct or go to everyone, and of moves that change the
channel."""
TOPICS = 8
"""The number of topics in each channel."""
CONNECTIONS = 16
"""Connections for all actions."""
UNFINISHED = 200
"""The most actions in progress. With a server that is slower than the rate, fewer are started, so
that there's no backlog at the end."""
REMEMBERED = 3000
"""Messages that can still be changed."""
ABANDONED_SECONDS = 20
"""The idle timeout of abandoned queues, in seconds."""
PRESENT = 60
"""The number of people who report presence."""
WORDS = "Shall we have supper at **seven**? The others come later, as far as I know."


@dataclass
class Sent:
    """A message that can still be changed."""

    id: int
    sender: Person
    channel_id: int
    topic: str
    reacted: bool = False
    starred: bool = False


@dataclass
class Actions:
    """All actions of people, until `stop`."""

    port: int
    organization: Organization
    clients: list[Client]
    record: Record
    tally: Tally
    abandoned: list[str] = field(default_factory=list)
    """Queues that nobody will poll again."""
    done: dict[str, int] = field(default_factory=dict)
    """The number of times that each action was performed."""
    put_off: int = 0
    """The number of actions that weren't started because too many were in progress."""

    def __post_init__(self) -> None:
        self._connections: asyncio.Queue[Connection] = asyncio.Queue()
        self._recent: deque[Sent] = deque(maxlen=REMEMBERED)
        self._roaming: dict[int, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._loops: list[asyncio.Task[None]] = []

    async def begin(self, rate: float) -> None:
        """Start all actions, with this many messages per second."""
        for _ in range(CONNECTIONS):
            self._connections.put_nowait(await Connection.to(self.port))
        kinds: dict[str, tuple[Callable[[], Awaitable[None]], float]] = {"send": (self._send, rate)}
        for name, part in PER_MESSAGE.items():
            kinds[name] = (getattr(self, f"_{name}"), part * rate)
        for name, part in PER_CLIENT.items():
            kinds[name] = (getattr(self, f"_{name}"), part * len(self.clients))
        for name, (do, often) in kinds.items():
            self._loops.append(asyncio.create_task(self._repeat(name, do, often)))

    async def stop(self) -> None:
        """Start no more actions, and wait for those in progress."""
        for loop in self._loops:
            loop.cancel()
        while self._tasks:
            await asyncio.wait(self._tasks, timeout=30)

    def close(self) -> None:
        """Close the connections."""
        while not self._connections.empty():
            self._connections.get_nowait().drop()

    @property
    def unfinished(self) -> int:
        """Return the number of actions in progress."""
        return len(self._tasks)

    async def _repeat(self, name: str, do: Callable[[], Awaitable[None]], often: float) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time()
        while often:
            due += random.expovariate(often)
            await asyncio.sleep(max(due - loop.time(), 0))
            if len(self._tasks) >= UNFINISHED:
                self.put_off += 1
                continue
            task = asyncio.ensure_future(self._try(name, do))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _try(self, name: str, do: Callable[[], Awaitable[None]]) -> None:
        try:
            await do()
            self.done[name] = self.done.get(name, 0) + 1
        except Exception as error:
            self.record.fail(f"{name}: {error!r}")

    async def _ask(self, method: str, target: str, by: Person, **parameters: Any) -> dict[str, Any]:
        """Send a request and return its response. An error fails the soak test. Content starts with
        the time when it's sent."""
        connection = await self._connection()
        try:
            began = stamp()
            if "content" in parameters:
                parameters["content"] = f"{began} {parameters['content']}"
            status, body = await connection.answer(
                request(method, target, by.authorization, **parameters)
            )
            self.tally.answered.append((stamp() - began) / 1000)
            self.tally.requests += 1
        finally:
            self._connections.put_nowait(connection)
        if status != 200:
            raise RuntimeError(f"{method} {target} {parameters}: {status} {body!r}")
        answer: dict[str, Any] = msgspec.json.decode(body)
        return answer

    async def _connection(self) -> Connection:
        """Return an idle connection."""
        connection = await self._connections.get()
        if connection.is_fresh:
            return connection
        connection.drop()
        return await Connection.to(self.port)

    def _any_person(self) -> Person:
        return random.choice(self.organization.people)

    def _any_client(self) -> Client | None:
        """Return a waiting client without another action in progress, or None."""
        client = random.choice(self.clients)
        return None if client.busy or not client.here else client

    def _pick(self) -> Sent | None:
        """Take a message, which nobody else changes until it's put back."""
        if not self._recent:
            return None
        place = random.randrange(len(self._recent))
        sent = self._recent[place]
        del self._recent[place]
        return sent

    # Messages

    async def _send(self) -> None:
        sender = self._any_person()
        if random.random() < DIRECT:
            to = self._any_person()
            answer = await self._post(sender, type="direct", to=[to.id])
            self.record.acknowledged[answer["id"]] = (-sender.id, -to.id)
            return
        is_large = random.random() < LARGE
        channel_id = self.organization.everybody if is_large else random.choice(sender.homes)
        topic = f"topic {random.randrange(TOPICS)}"
        answer = await self._post(sender, type="channel", to=channel_id, topic=topic)
        self.record.acknowledged[answer["id"]] = (channel_id,)
        if not is_large:
            self._recent.append(Sent(answer["id"], sender, channel_id, topic))

    async def _post(self, sender: Person, **where: Any) -> dict[str, Any]:
        answer = await self._ask("POST", "/messages", sender, content=WORDS, **where)
        self.tally.sent += 1
        return answer

    async def _edit(self) -> None:
        if sent := self._pick():
            await self._ask("PATCH", f"/messages/{sent.id}", sent.sender, content="Well. " + WORDS)
            self._recent.append(sent)

    async def _move(self) -> None:
        """Move a message to another topic, sometimes a whole topic, or one message to another
        channel."""
        if not (sent := self._pick()):
            return
        quietly = {
            "send_notification_to_old_thread": False,
            "send_notification_to_new_thread": False,
        }
        target = f"/messages/{sent.id}"
        topic = f"topic {random.randrange(TOPICS)}"
        if random.random() < BETWEEN_CHANNELS:
            channel_id = random.choice([c for c in sent.sender.homes if c != sent.channel_id])
            self.record.excused.add(sent.id)
            await self._ask("PATCH", target, sent.sender, stream_id=channel_id, **quietly)
            sent.channel_id = channel_id
        elif topic != sent.topic:
            await self._ask("PATCH", target, sent.sender, topic=topic, **quietly)
            sent.topic = topic
        self._recent.append(sent)

    async def _delete(self) -> None:
        if sent := self._pick():
            self.record.excused.add(sent.id)
            await self._ask("DELETE", f"/messages/{sent.id}", sent.sender)

    async def _react(self) -> None:
        if sent := self._pick():
            method = "DELETE" if sent.reacted else "POST"
            target = f"/messages/{sent.id}/reactions"
            await self._ask(method, target, sent.sender, emoji_name="octopus")
            sent.reacted = not sent.reacted
            self._recent.append(sent)

    async def _flag(self) -> None:
        """Add or remove a star, and mark someone's new messages in a channel as read."""
        if sent := self._pick():
            op = "remove" if sent.starred else "add"
            target = "/messages/flags"
            await self._ask("POST", target, sent.sender, messages=[sent.id], op=op, flag="starred")
            sent.starred = not sent.starred
            reader = self._any_person()
            message_ids = [item.id for item in self._recent if item.channel_id in reader.homes]
            if message_ids:
                await self._ask("POST", target, reader, messages=message_ids, op="add", flag="read")
            self._recent.append(sent)

    # Channels

    async def _switch_channel(self) -> None:
        """Join a channel, or leave the channel that was joined before."""
        client = self._any_client()
        if client is None:
            return
        client.busy = True
        try:
            person, channels, target = (
                client.person,
                self.organization.channels,
                "/users/me/subscriptions",
            )
            left = self._roaming.pop(person.id, None)
            if left is not None:
                await self._ask("DELETE", target, person, subscriptions=[channels[left]])
                return
            joined = random.choice([c for c in channels if c not in person.homes])
            await self._ask("POST", target, person, subscriptions=[{"name": channels[joined]}])
            self._roaming[person.id] = joined
        finally:
            client.busy = False

    # Unlogged events

    async def _type(self) -> None:
        person = self._any_person()
        channel_id, topic = random.choice(person.homes), f"topic {random.randrange(TOPICS)}"
        where = {"type": "channel", "stream_id": channel_id, "topic": topic}
        await self._ask("POST", "/typing", person, op="start", **where)
        await self._ask("POST", "/typing", person, op="stop", **where)

    async def _report(self) -> None:
        person = random.choice(self.organization.people[:PRESENT])
        status = random.choice(["active", "idle"])
        await self._ask("POST", "/users/me/presence", person, status=status, ping_only=True)

    # Queues

    async def _disconnect(self) -> None:
        if client := self._any_client():
            client.busy = True
            await client.disconnect()
            client.busy = False

    async def _renew(self) -> None:
        if client := self._any_client():
            client.busy = True
            connection = await Connection.to(self.port)
            try:
                await client.renew(connection)
            finally:
                connection.drop()
            client.busy = False

    async def _abandon(self) -> None:
        """Open another client for someone. It waits once and never returns."""
        person = self._any_person()
        connection = await Connection.to(self.port)
        asked = request(
            "POST",
            "/register",
            person.authorization,
            event_types=["message"],
            fetch_event_types=["message"],
            idle_queue_timeout=ABANDONED_SECONDS,
        )
        status, body = await connection.answer(asked)
        if status != 200:
            raise RuntimeError(f"POST /register: {status} {body!r}")
        queue = msgspec.json.decode(body)
        self.abandoned.append(queue["queue_id"])
        target = f"/events?queue_id={queue['queue_id']}&last_event_id={queue['last_event_id']}"
        connection.ask(request("GET", target, person.authorization), lambda status, body: None)
        await asyncio.sleep(random.uniform(0.0, 2.0))
        connection.drop()
