"""Clients that act and listen, each at any node."""

import asyncio
import random
import time
from typing import Any

import httpx

from tests.chaos.cluster import Cluster, Node
from tests.chaos.record import Attempt, Outcome, Record
from tests.chaos.requests import Account, Answer, NodeClient
from tests.reference_client import WAYS, ReferenceClient
from tests.support import Listener, Person

THINKING = (0.1, 0.6)
"""Seconds between two actions of a client."""
PATIENCE = (1.0, 10.0)
"""The timeout of a request in seconds, from and to."""
POLLING = (1.5, 4.0, 12.0, 40.0)
"""The timeouts of polls, one of these."""
REGISTER_SECONDS = 60.0
PARAMETERS = {**WAYS["modern"], "apply_markdown": False}
EMOJI = ("heart", "tada", "octopus")
EDITED_SECONDS = 300
"""A message may be changed for this long after it was sent; the organization allows ten minutes."""


class Sent:
    """An acknowledged message of this client."""

    def __init__(self, message_id: int, content: str, channel_id: int, topic: str) -> None:
        self.id = message_id
        self.content = content
        self.channel_id = channel_id
        self.topic = topic
        self.at = time.monotonic()


class Client:
    """A person with one client."""

    def __init__(
        self,
        name: str,
        account: Account,
        cluster: Cluster,
        record: Record,
        channels: list[int],
        visited: int,
        chance: random.Random,
    ) -> None:
        """`channels` are the client's channels; it joins and leaves `visited`."""
        self.name = name
        self.asker = NodeClient(account)
        self.others: list[int] = []
        self.sent: list[Sent] = []
        self.messages: dict[int, tuple[int | None, str, str]] = {}
        """Channel, topic, and content of each message, according to events."""
        self.queue_id = ""
        self.last_event_id = -1
        self.polls = 0
        self.picture: ReferenceClient | None = None
        self._cluster = cluster
        self._record = record
        self._channels = channels
        self._visited = visited
        self._chance = chance
        self._number = 0
        self._rests = False

    @property
    def account(self) -> Account:
        return self.asker.account

    # Listening

    async def register(self, node: Node) -> ReferenceClient:
        """The organization as that node sees it."""
        until = time.monotonic() + REGISTER_SECONDS
        while True:
            answer = await self.asker.ask(node, "POST", "/register", 20, **PARAMETERS)
            if answer.status == 200:
                break
            assert time.monotonic() < until, f"POST /register: {answer}"
            await asyncio.sleep(0.3)
        person = Person(httpx.AsyncClient(), self.account.user_id)  # It sends no requests.
        await person.http.aclose()
        body = answer.body
        return ReferenceClient(
            Listener(person, body["queue_id"], body["last_event_id"], body), PARAMETERS
        )

    async def begin(self, node: Node) -> None:
        """Register a queue and discard the previous state."""
        self.picture = await self.register(node)
        self.queue_id = self.picture.listener.queue_id
        self.last_event_id = self.picture.listener.last_event_id

    async def hear(self) -> None:
        """Poll one node after another until canceled."""
        while True:
            node = self._chance.choice(self._cluster.serving)
            answer = await self.poll(node, self._chance.choice(POLLING))
            if answer.status != 200:
                await asyncio.sleep(0.1 if answer.outcome is Outcome.UNKNOWN else 0.3)

    async def poll(self, node: Node, patience: float, *, block: bool = True) -> Answer:
        """Fetch and apply events."""
        self.polls += 1
        answer = await self.asker.ask(
            node,
            "GET",
            "/events",
            patience,
            queue_id=self.queue_id,
            last_event_id=self.last_event_id,
            dont_block=not block,
        )
        if answer.status == 200:
            for event in answer.body["events"]:
                self._take(event, node)
        elif answer.status not in (0, 503):
            self._record.fail(f"{self.name}: GET /events at node {node.number}: {answer}")
            if answer.code == "BAD_EVENT_QUEUE_ID":
                # Nothing in this test may expire a queue. Register again anyway, to find further
                # problems.
                self.messages = {}
                await self.begin(node)
        return answer

    def _take(self, event: dict[str, Any], node: Node) -> None:
        if event["id"] <= self.last_event_id:
            self._record.fail(
                f"{self.name}: event {event['id']} came after {self.last_event_id}, from node"
                f" {node.number}"
            )
            return
        self.last_event_id = event["id"]
        self._record.events += 1
        assert self.picture is not None
        try:
            self.picture.take(event)
            self._take_message(event)
        except Exception as error:
            self._record.fail(f"{self.name}: {error!r} by {event!r:.600} from node {node.number}")

    def _take_message(self, event: dict[str, Any]) -> None:
        if event["type"] == "message":
            message = event["message"]
            if message["id"] in self.messages:
                self._record.fail(f"{self.name}: message {message['id']} came twice")
            self.messages[message["id"]] = shown(message)
            self._record.brought(message["id"], event["id"], self.name)
        elif event["type"] == "update_message":
            for message_id in event["message_ids"]:
                if message_id not in self.messages:
                    continue
                channel_id, topic, content = self.messages[message_id]
                if message_id == event["message_id"]:
                    content = event.get("content", content)
                self.messages[message_id] = (
                    event.get("new_stream_id", channel_id),
                    event.get("subject", topic),
                    content,
                )

    # Acting

    async def act(self) -> None:
        """Perform actions until `rest` is called."""
        deeds = {
            self._send: 10,
            self._write: 3,
            self._edit: 5,
            self._move: 3,
            self._star: 3,
            self._read: 3,
            self._react: 4,
            self._rename: 1,
            self._come_or_go: 1,
        }
        while not self._rests:
            (deed,) = self._chance.choices(list(deeds), list(deeds.values()))
            await deed()
            await asyncio.sleep(self._chance.uniform(*THINKING))

    def rest(self) -> None:
        """Start no further actions."""
        self._rests = True

    def _next(self) -> str:
        self._number += 1
        return f"{self.name}-{self._number}"

    async def _attempt(
        self, what: str, subject: Any, value: Any, method: str, path: str, **parameters: Any
    ) -> tuple[Attempt, Answer]:
        node = self._chance.choice(self._cluster.serving)
        attempt = Attempt(what, subject, value, node.number)
        self._record.attempts.append(attempt)
        answer = await self.asker.attempt(
            attempt, node, method, path, self._chance.uniform(*PATIENCE), **parameters
        )
        attempt.ended = time.monotonic()
        if answer.status >= 400:
            self._record.refusals[f"{answer.status} {answer.body.get('msg', '')[:60]}"] += 1
        if answer.status == 500:
            self._record.fail(f"{attempt}: {answer}")
        return attempt, answer

    async def _send(self) -> None:
        marker = self._next()
        channel_id, topic = (
            self._chance.choice(self._channels),
            f"topic {self._chance.randint(1, 3)}",
        )
        attempt, answer = await self._attempt(
            *("send", "messages", marker, "POST", "/messages"),
            type="stream",
            to=channel_id,
            topic=topic,
            content=marker,
            queue_id=self.queue_id,
            local_id=marker,
        )
        if answer.status == 200:
            attempt.result = answer.body["id"]
            self.sent.append(Sent(answer.body["id"], marker, channel_id, topic))

    async def _write(self) -> None:
        marker = self._next()
        people = self._chance.sample(self.others, self._chance.randint(1, 2))
        attempt, answer = await self._attempt(
            *("send", "messages", marker, "POST", "/messages"),
            type="direct",
            to=people,
            content=marker,
        )
        if answer.status == 200:
            attempt.result = answer.body["id"]

    def _own(self) -> Sent | None:
        oldest = time.monotonic() - EDITED_SECONDS
        recent = [sent for sent in self.sent[-12:] if sent.at > oldest]
        return self._chance.choice(recent) if recent else None

    async def _edit(self) -> None:
        if (sent := self._own()) is None:
            return
        content = f"{sent.content} {self._next()}"
        await self._attempt(
            *("edit", sent.id, content, "PATCH", f"/messages/{sent.id}"), content=content
        )

    async def _move(self) -> None:
        if (sent := self._own()) is None:
            return
        topic = f"moved {self._next()}"
        await self._attempt(
            *("move", sent.id, topic, "PATCH", f"/messages/{sent.id}"),
            topic=topic,
            propagate_mode="change_one",
            send_notification_to_old_thread=False,
            send_notification_to_new_thread=False,
        )

    async def _star(self) -> None:
        if (sent := self._own()) is None:
            return
        op = self._chance.choice(["add", "remove"])
        await self._attempt(
            *("star", sent.id, op == "add", "POST", "/messages/flags"),
            messages=[sent.id],
            op=op,
            flag="starred",
        )

    async def _read(self) -> None:
        assert self.picture is not None
        unread = sorted(self.picture.unread)[-30:]
        if not unread:
            return
        message_id = self._chance.choice(unread)
        await self._attempt(
            *("read", (self.name, message_id), True, "POST", "/messages/flags"),
            messages=[message_id],
            op="add",
            flag="read",
        )

    async def _react(self) -> None:
        if not self.messages:
            return
        message_id = self._chance.choice(sorted(self.messages)[-30:])
        emoji = self._chance.choice(EMOJI)
        wanted = self._chance.random() < 0.7
        _, answer = await self._attempt(
            *("react", (self.account.user_id, message_id, emoji), wanted),
            "POST" if wanted else "DELETE",
            f"/messages/{message_id}/reactions",
            emoji_name=emoji,
        )
        if answer.status == 400 and answer.code not in (
            "REACTION_ALREADY_EXISTS",
            "REACTION_DOES_NOT_EXIST",
        ):
            self._record.fail(f"{self.name}: reaction to {message_id}: {answer}")

    async def _rename(self) -> None:
        name = f"Name of {self._next()}"
        await self._attempt(
            *("name", self.account.user_id, name, "PATCH", "/settings"), full_name=name
        )

    async def _come_or_go(self) -> None:
        comes = self._chance.random() < 0.5
        subject = (self.account.user_id, self._visited)
        if comes:
            how: dict[str, Any] = {"subscriptions": [{"name": "visited"}]}
        else:
            how = {"subscriptions": ["visited"]}
        await self._attempt(
            *("subscribe", subject, comes, "POST" if comes else "DELETE"),
            "/users/me/subscriptions",
            **how,
        )


def shown(message: dict[str, Any]) -> tuple[int | None, str, str]:
    """Channel (None for a direct message), topic, and content."""
    return message.get("stream_id"), message["subject"], message["content"]
