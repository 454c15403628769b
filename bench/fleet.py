"""Any number of clients that wait for messages, in a generator."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from bench.api import BadAnswer, body_of, empty, listen, poll_around
from bench.connections import Connection, Loop

CHECKED: Final = 997
"""One response out of this many is also parsed as JSON to verify the result."""
REGISTERING: Final = 64
"""The number of connections that register concurrently."""
TOGETHER: Final = 500
"""Clients that poll again at the same time when nothing is measured. A server refuses requests that
would wait too long."""
_EVENT = b'{"id":'
_MESSAGE = b'"type":"message"'
_EVENTS = b'"events":['


def events_in(answer: bytes) -> tuple[int, int]:
    """Return the ID of the last event in a poll's response (-1 if it's empty), and the number of
    messages.

    It doesn't parse JSON, in responses of this server and of the bare protocol: each event is an
    object in the list `events` that starts with its ID, and channel messages without reactions have
    no other lists of such objects. (Callers occasionally verify this.)
    """
    begin = answer.find(_EVENTS)
    if begin < 0:
        raise BadAnswer(answer.decode(errors="replace")[:2000])
    begin += len(_EVENTS)
    messages = answer.count(_MESSAGE, begin)
    at = max(answer.rfind(b"}," + _EVENT, begin) + 2, begin)
    if not answer.startswith(_EVENT, at):
        if answer.startswith(b"]", at):
            return -1, 0
        raise BadAnswer("the events do not begin with their IDs")
    at += len(_EVENT)
    return int(answer[at : answer.index(b",", at)]), messages


class Waiter:
    """A waiting client: its connection, its queue, and its last event."""

    __slots__ = ("_after", "_before", "_fleet", "connection", "last_event_id")

    def __init__(self, fleet: "Fleet", connection: Connection, authorization: str, answer: bytes):
        registered = json.loads(body_of(answer))
        self._fleet = fleet
        self._before, self._after = poll_around(authorization, registered["queue_id"])
        self.connection = connection
        self.last_event_id: int = registered["last_event_id"]

    def poll(self) -> None:
        """Send the next poll."""
        request = self._before + str(self.last_event_id).encode() + self._after
        self.connection.ask(request, self._heard)

    def _heard(self, answer: bytes) -> None:
        last, messages = events_in(answer)
        fleet = self._fleet
        fleet.answers += 1
        if fleet.answers % CHECKED == 0:
            _check(answer, last, messages)
        if last >= 0:
            self.last_event_id = last
        fleet.heard(self, messages)


def _check(answer: bytes, last: int, messages: int) -> None:
    events: list[dict[str, Any]] = json.loads(body_of(answer))["events"]
    kinds = [event["type"] for event in events]
    if (events[-1]["id"] if events else -1) != last or kinds.count("message") != messages:
        raise BadAnswer("an answer was misread")


class Fleet:
    """Clients that wait at one server, and a sender."""

    def __init__(self, loop: Loop, port: int, people: list[str], send: str) -> None:
        self._loop = loop
        self._send = send.encode()
        self._empty = empty(people[0]).encode()
        self.answers = 0
        """The number of answered polls."""
        self.messages = 0
        """The number of messages in their responses."""
        self.heard: Callable[[Waiter, int], None] = self._idle
        self._port = port
        self._connected: Connection | None = None
        self.waiters: list[Waiter] = []
        self._register(people)

    @contextmanager
    def sending(self) -> Iterator[None]:
        """A connection for sending. An idle one would be closed."""
        self._connected = Connection(self._loop, self._port)
        try:
            yield
        finally:
            self._connected.close()
            self._connected = None

    @property
    def _sender(self) -> Connection:
        assert self._connected is not None
        return self._connected

    def _register(self, people: list[str]) -> None:
        left = list(enumerate(people))
        left.reverse()
        under_way = 0

        def begin() -> None:
            nonlocal under_way
            number, authorization = left.pop()
            connection = Connection(self._loop, self._port, number)
            under_way += 1

            def registered(answer: bytes) -> None:
                nonlocal under_way
                under_way -= 1
                waiter = Waiter(self, connection, authorization, answer)
                self.waiters.append(waiter)
                waiter.poll()
                if left:
                    begin()

            connection.ask(listen(authorization).encode(), registered)

        for _ in range(min(REGISTERING, len(left))):
            begin()
        self._loop.until(lambda: not left and not under_way)
        with self.sending():
            self._everybody_waits()

    def _idle(self, waiter: Waiter, messages: int) -> None:
        """When nothing is measured, let a client that gets a response (a heartbeat) poll again."""
        self.messages += messages
        waiter.poll()

    def _everybody_waits(self) -> None:
        # The server reads everything sent before these requests before it answers them.
        for _ in range(3):
            self._sender.answer(self._empty)

    def burst(self) -> dict[str, float]:
        """Send one message to all, within `sending`. Return the seconds until the first client has
        it (`first`), until the response (`answered`), and until the last client has it (`last`)."""
        clock = time.perf_counter
        left = len(self.waiters)
        got: list[float] = []

        answered_at = 0.0

        def heard(waiter: Waiter, messages: int) -> None:
            if messages == 0:
                waiter.poll()
            elif messages == 1:
                got.append(clock())
            else:
                raise BadAnswer(f"a client got {messages} messages where one was sent")

        def answered(_: bytes) -> None:
            nonlocal answered_at
            answered_at = clock()

        self.heard = heard
        sent = clock()
        self._sender.ask(self._send, answered)
        self._loop.until(lambda: len(got) == left and answered_at > 0)
        self.heard = self._idle
        for start in range(0, len(self.waiters), TOGETHER):
            for waiter in self.waiters[start : start + TOGETHER]:
                waiter.poll()
            self._everybody_waits()
        return {"first": got[0] - sent, "answered": answered_at - sent, "last": got[-1] - sent}

    def cycles(self, seconds: float) -> dict[str, float]:
        """Within `sending`, send each message once everyone has the previous one and waits again.
        Each client polls again after each response."""
        clock = time.perf_counter
        count = len(self.waiters)
        received = answers = sent = 0
        is_answered = over = False

        def heard(waiter: Waiter, messages: int) -> None:
            nonlocal received, answers
            received += messages
            answers += 1
            waiter.poll()
            if received == count and is_answered:
                again()

        def answered(_: bytes) -> None:
            nonlocal is_answered
            is_answered = True
            if received == count:
                again()

        def again() -> None:
            nonlocal received, sent, is_answered, over
            if clock() >= end:
                over = True
                return
            received, is_answered = 0, False
            sent += 1
            self._sender.ask(self._send, answered)

        self.heard = heard
        start = clock()
        end = start + seconds
        again()
        self._loop.until(lambda: over)
        took = clock() - start
        self.heard = self._idle
        self._everybody_waits()
        return {"seconds": took, "answers": answers, "messages": sent * count, "sent": sent}

    def flood(self, seconds: float) -> dict[str, float]:
        """Within `sending`, send messages one after the other without waiting for clients. Each
        client polls again after each response, and may get several messages in one. Counting ends
        with sending, and then the rest is delivered."""
        clock = time.perf_counter
        answers = got = sent = 0
        is_under_way = False

        def heard(waiter: Waiter, messages: int) -> None:
            nonlocal answers, got
            answers += 1
            got += messages
            waiter.poll()

        def answered(_: bytes) -> None:
            nonlocal sent, is_under_way
            sent += 1
            is_under_way = clock() < end
            if is_under_way:
                self._sender.ask(self._send, answered)

        self.heard = heard
        start = clock()
        end = start + seconds
        is_under_way = True
        self._sender.ask(self._send, answered)
        self._loop.until(lambda: not is_under_way)
        counted = {"answers": answers, "messages": got, "seconds": clock() - start, "sent": sent}
        self._loop.until(lambda: got == sent * len(self.waiters))
        self.heard = self._idle
        self._everybody_waits()
        return {**counted, "drained": clock() - start}

    def close(self) -> None:
        """Disconnect all clients."""
        for waiter in self.waiters:
            waiter.connection.close()
