"""Senders that send without a pause, even if the server is down."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.e2e.people import PATIENCE, client_of
from tests.e2e.server import Account, Server

PAUSE = 0.05
"""Seconds between two attempts while the server is down."""


@dataclass
class Tally:
    """The responses to all senders."""

    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    """Message IDs and contents. A list, because a server that forgets would reuse an ID."""
    attempted: set[str] = field(default_factory=set)
    errors: list[Any] = field(default_factory=list)
    """Responses that were neither a success nor a request to retry later."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for_more(self, count: int) -> int:
        """Wait until this many more messages have been acknowledged, and return the newest."""
        with self.changed:
            enough = len(self.acknowledged) + count
            assert self.changed.wait_for(
                lambda: self.errors or len(self.acknowledged) >= enough, PATIENCE
            )
            assert not self.errors
            return self.acknowledged[-1][0]

    def note(self, content: str, answer: dict[str, Any]) -> None:
        with self.changed:
            if answer["result"] == "success":
                self.acknowledged.append((answer["id"], content))
            elif answer.get("code") != "SERVER_NOT_READY":
                self.errors.append(answer)
            self.changed.notify_all()


@contextmanager
def sending(server: Server, *messages: tuple[str, Account, dict[str, Any]]) -> Iterator[Tally]:
    """For each (name, account, message without content), run a sender within the context. Each
    content is tried once."""
    tally = Tally()
    stop = threading.Event()

    def send(name: str, account: Account, message: dict[str, Any]) -> None:
        with client_of(account, server, retry=False) as client:
            number = 0
            while not stop.is_set():
                number += 1
                content = f"{name} {number}"
                tally.attempted.add(content)
                try:
                    tally.note(content, client.send_message({**message, "content": content}))
                except requests.RequestException:
                    stop.wait(PAUSE)

    threads = [threading.Thread(target=send, args=one, daemon=True) for one in messages]
    for thread in threads:
        thread.start()
    try:
        yield tally
    finally:
        stop.set()
        for thread in threads:
            thread.join(PATIENCE)
