"""People and bots, each with Zulip's unmodified Python client."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import requests
import zulip

from tests.e2e.server import Account, Server

PATIENCE = 60.0
"""Seconds after which a missing event counts as a failure."""

Event = dict[str, Any]


@contextmanager
def client_of(account: Account, server: Server, *, retry: bool = True) -> Iterator[zulip.Client]:
    """A client of this account. Without `retry`, it reports a lost connection immediately."""
    client = zulip.Client(
        email=account.email, api_key=account.api_key, site=server.url, retry_on_errors=retry
    )
    try:
        yield client
    finally:
        assert client.session is not None
        client.session.close()


def ok(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the response, which must be a success."""
    assert answer["result"] == "success", answer
    return answer


class _Enough(BaseException):
    """Ends the client's endless loop. (The loop catches every Exception.)"""


class Listener:
    """A client in `call_on_each_event` on its own thread, and the events it received."""

    def __init__(self, account: Account, server: Server, event_types: list[str] | None) -> None:
        self.account = account
        self.events: list[Event] = []
        self.registrations = 0
        self.polls = 0
        """Responses to GET /events."""
        self._server = server
        self._event_types = event_types
        self._queue_id = ""
        self._changed = threading.Condition()
        self._ending = False
        self._thread = threading.Thread(target=self._listen, daemon=True)

    def _listen(self) -> None:
        with client_of(self.account, self._server) as client, suppress(_Enough):
            assert client.session is not None
            client.session.hooks["response"].append(self._answered)
            client.call_on_each_event(self._take, self._event_types)

    def _answered(self, response: requests.Response, **_: object) -> None:
        with self._changed:
            if response.url.endswith("/register") and response.ok:
                self.registrations += 1
                self._queue_id = response.json()["queue_id"]
            elif response.ok:
                self.polls += 1
            self._changed.notify_all()
            if self._ending:
                raise _Enough

    def _take(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def begin(self) -> None:
        """Start, and return when the queue is registered."""
        self._thread.start()
        with self._changed:
            assert self._changed.wait_for(lambda: self.registrations, PATIENCE)

    def end(self) -> None:
        """Stop. A second poll of the queue ends the waiting one."""
        self._ending = True
        with suppress(requests.RequestException, zulip.UnrecoverableNetworkError):
            requests.get(
                f"{self._server.url}/api/v1/events",
                {"queue_id": self._queue_id, "last_event_id": "-1", "dont_block": "true"},
                auth=(self.account.email, self.account.api_key),
                timeout=PATIENCE,
            )
            self._thread.join(PATIENCE)

    def hears(self, is_it: Callable[[Event], bool]) -> Event:
        """Wait for an event that matches, and return the first."""
        found: list[Event] = []

        def heard() -> bool:
            found.extend(event for event in self.events if is_it(event))
            return bool(found)

        with self._changed:
            assert self._changed.wait_for(heard, PATIENCE), self.events[-5:]
        return found[0]

    def registers_again(self) -> None:
        """Wait for a second queue."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.registrations == 2, PATIENCE)

    def hears_message(self, message_id: int) -> dict[str, Any]:
        """Wait for a message that matches, and return it as its event shows it."""
        event = self.hears(lambda e: e["type"] == "message" and e["message"]["id"] == message_id)
        message: dict[str, Any] = event["message"]
        return message

    def messages(self) -> list[tuple[int, str]]:
        """The IDs and contents of the received messages, in order."""
        messages = [event["message"] for event in self.events if event["type"] == "message"]
        return [(message["id"], message["content"]) for message in messages]


@contextmanager
def listening(
    server: Server, *accounts: Account, event_types: list[str] | None = None
) -> Iterator[list[Listener]]:
    """A listener for each account, within the context."""
    listeners = [Listener(account, server, event_types) for account in accounts]
    try:
        for listener in listeners:
            listener.begin()
        yield listeners
    finally:
        for listener in listeners:
            listener.end()
