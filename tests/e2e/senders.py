"""Senders that send without a pause, whatever happens to the server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.e2e.people import PATIENCE, client_of
from tests.e2e.server import Account, Server

PAUSE = 0.05
"""Seconds between two attempts while the server is away."""


@dataclass
class Tally:
    """What all senders together were told."""

    acknowledged: dict[int, str] = field(default_factory=dict)
    """Content by message ID."""
    attempted: set[str] = field(default_factory=set)
    errors: list[Any] = field(default_factory=list)
    """Answers that were neither a success nor "not now"."""
    changed: threading.Condition = field(default_factory=threading.Condition)

    def wait_for_more(self, count: int) -> int:
        """The newest message, when so many more have been acknowledged."""
        with self.changed:
            enough = len(self.acknowledged) + count
            assert self.changed.wait_for(
                lambda: self.errors or len(self.acknowledged) >= enough, PATIENCE
            )
            assert not self.errors
            return max(self.acknowledged)

    def note(self, content: str, answer: dict[str, Any]) -> None:
        with self.changed:
            if answer["result"] == "success":
                self.acknowledged[answer["id"]] = content
            elif answer.get("code") != "SERVER_NOT_READY":
                self.errors.append(answer)
            self.changed.notify_all()


@contextmanager
def sending(server: Server, *messages: tuple[str, Account, dict[str, Any]]) -> Iterator[Tally]:
    """For each (name, account, message without content) a sender, for the time of the context.
    Every content is attempted once and never again."""
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
