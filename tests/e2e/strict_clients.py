"""Strict clients: every response must be correct, and no connection may fail without need."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.e2e.people import PATIENCE
from tests.e2e.server import Account, Server

TIMEOUT = 90
PAUSE = 0.02
"""Seconds that a sender waits between messages, and after a failure."""


@dataclass
class Crowd:
    """Everything that the clients have seen."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """Messages by content."""
    attempted: set[str] = field(default_factory=set)
    heard: list[list[tuple[int, str]]] = field(default_factory=list)
    """The message events of each listener: event ID and content."""
    failures: list[str] = field(default_factory=list)
    """Failed connections, and responses with 503."""
    wrong: list[str] = field(default_factory=list)
    """Violations."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait(self, happened: Callable[[], bool], what: str) -> None:
        """Wait until the condition is true. It's checked after each response."""
        with self.changed:
            assert self.changed.wait_for(lambda: self.wrong or happened(), PATIENCE), what
        assert not self.wrong

    def wait_for_more(self, count: int) -> None:
        """Wait until this many more messages are acknowledged."""
        enough = len(self.acknowledged) + count
        self.wait(lambda: len(self.acknowledged) >= enough, f"{count} more messages are sent")

    def wait_until_all_heard(self) -> None:
        """Wait until every listener has received every acknowledged message."""
        sent = self.acknowledged.keys()
        self.wait(
            lambda: all(sent <= {content for _, content in heard} for heard in self.heard),
            "everything is heard",
        )

    def note(self, where: Any, what: Any) -> None:
        """Add the value to the collection."""
        with self.changed:
            where.append(what)
            self.changed.notify_all()


class _Client:
    def __init__(self, server: Server, account: Account, crowd: Crowd) -> None:
        self.server, self.crowd = server, crowd
        self.http = requests.Session()
        self.http.auth = (account.email, account.api_key)
        self.http.trust_env = False

    def ask(self, method: str, path: str, **parameters: Any) -> dict[str, Any] | None:
        """Return the body of a success, or None if the request may be retried."""
        query, form = (parameters, None) if method == "GET" else (None, parameters)
        url = f"{self.server.url}/api/v1{path}"
        try:
            response = self.http.request(method, url, query, form, timeout=TIMEOUT)
        except requests.RequestException as error:
            self.crowd.note(self.crowd.failures, f"{method} {path}: {error!r}")
            return None
        if response.status_code == 503:
            self.crowd.note(self.crowd.failures, f"{method} {path}: {response.text}")
            return None
        if response.status_code != 200:
            self.crowd.note(self.crowd.wrong, f"{method} {path}: {response.text}")
            return None
        answer: dict[str, Any] = response.json()
        return answer


def _send(client: _Client, name: str, stop: threading.Event) -> None:
    crowd, number = client.crowd, 0
    while not stop.wait(PAUSE):
        number += 1
        content = f"{name} {number}"
        crowd.attempted.add(content)
        message = {"type": "stream", "to": "general", "topic": "news", "content": content}
        answer = client.ask("POST", "/messages", **message)
        if answer is not None:
            with crowd.changed:
                crowd.acknowledged[content] = answer["id"]
                crowd.changed.notify_all()


def _hear(client: _Client, heard: list[tuple[int, str]], stop: threading.Event) -> None:
    crowd = client.crowd
    queue = client.ask("POST", "/register", event_types='["message"]', apply_markdown="false")
    assert queue is not None
    last = queue["last_event_id"]
    crowd.note(crowd.heard, heard)
    while not stop.is_set():
        answer = client.ask("GET", "/events", queue_id=queue["queue_id"], last_event_id=last)
        if answer is None:
            stop.wait(PAUSE)
            continue
        for event in answer["events"]:
            if event["id"] <= last:
                crowd.note(crowd.wrong, f"event {event['id']} came after {last}")
            last = event["id"]
            if event["type"] == "message":
                crowd.note(heard, (last, event["message"]["content"]))


@contextmanager
def crowded(
    server: Server, account: Account, *, senders: int = 3, listeners: int = 4
) -> Iterator[Crowd]:
    """Run this many senders and listeners within the context. It ends with a message that all of
    them receive."""
    crowd, stop, over = Crowd(), threading.Event(), threading.Event()

    def start(work: Callable[..., None], *arguments: Any) -> threading.Thread:
        client = _Client(server, account, crowd)
        thread = threading.Thread(target=work, args=(client, *arguments), daemon=True)
        thread.start()
        return thread

    hearing = [start(_hear, [], over) for _ in range(listeners)]
    crowd.wait(lambda: len(crowd.heard) == listeners, "everybody listens")
    sending = [start(_send, f"sender {number}", stop) for number in range(senders)]
    try:
        yield crowd
    finally:
        stop.set()
        for thread in sending:
            thread.join(PATIENCE)
    crowd.wait_until_all_heard()
    over.set()
    last = _Client(server, account, crowd)
    message = {"type": "stream", "to": "general", "topic": "news", "content": "the end"}
    assert last.ask("POST", "/messages", **message)
    for thread in hearing:
        thread.join(PATIENCE)
    # No message arrived twice, and none was made up.
    for heard in crowd.heard:
        contents = [content for _, content in heard if content != "the end"]
        assert len(contents) == len(set(contents))
        assert set(contents) <= crowd.attempted
    assert not crowd.wrong
