"""An organization of 5,200 people on a server that measures its event loop, for the cases that
change it while others wait."""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from bench import api, serving
from bench.api import BadAnswer, body_of
from bench.arithmetic import Target
from bench.context import Bench
from bench.datasets import Made
from bench.organization import LARGE, SIZES
from bench.report import Line
from bench.serving import BenchError, Running

BOUND = 0.05
"""The longest allowed hold, in seconds."""
QUIET = 0.004
"""An operation is over when no callback takes longer than this, in seconds."""
LAST_WORDS = 3000
"""The number of characters of the server's output that are shown with an error."""
PATIENCE = 60.0
LONGEST_SECONDS = 600.0
"""The longest duration of an operation."""
BETWEEN = 0.005
"""Seconds between two requests of a client that measures waiting."""


@dataclass
class Held:
    """The longest callback since the last command."""

    held: float
    """In seconds."""
    by: str
    where: list[tuple[str, int]]
    collecting: float
    """Seconds of garbage collection."""


class Measured:
    """A server on asyncio's event loop that reports how long it was held."""

    def __init__(self, server: Running, log: Path) -> None:
        self.port = server.port
        self._server = server
        self._log = log
        self._longest = Held(0.0, "", [], 0.0)

    def tell(self, command: str) -> Held:
        """Send a command (see `bench.held`), and return the longest hold since the last one."""
        answer = self._server.ask(command)
        held = Held(answer["held"], answer["by"], answer["where"], answer["collecting"])
        self._longest = max(self._longest, held, key=lambda item: item.held)
        return held

    def output(self) -> str:
        """Return the end of the server's standard error."""
        return self._log.read_text(errors="replace")[-LAST_WORDS:]

    def longest(self) -> Held:
        """Wait until the server is idle, and return the longest hold since the last call."""
        until = time.monotonic() + PATIENCE
        while self.tell("take").held >= QUIET and time.monotonic() < until:
            time.sleep(0.15)  # The server reports only when asked.
        longest, self._longest = self._longest, Held(0.0, "", [], 0.0)
        return longest


@contextmanager
def measured(made: Made) -> Iterator[Measured]:
    """A measured server of the organization."""
    path = Path(made.config.data_dir)
    command = serving.server_command(path, made.config.database_url)
    command[1:3] = ["-m", "bench.held"]
    with serving.running(command, path / "serve.log") as server:
        yield Measured(server, path / "serve.log")


class Company:
    """The organization that operations are performed on."""

    def __init__(self, made: Made, server: Measured, topics: Mapping[str, range]) -> None:
        organization = made.organization
        self.made, self.server = made, server
        self.owner, self.people = organization.owner, organization.people
        self.ids = range(
            organization.first_user_id, organization.first_user_id + len(organization.people)
        )
        self.in_large = [*self.ids[: SIZES[LARGE]]]
        self.large = organization.first_channel_id + organization.channels + 2
        self.channel = organization.first_channel_id
        self.topics = topics
        self.last = 0
        """The ID of the last sent message."""
        owner_id = self.do("GET /users/me")["user_id"]
        self.private: int = self.do(
            "POST /channels/create",
            name="private",
            subscribers=[owner_id, *self.ids[:2500]],
            invite_only=True,
            history_public_to_subscribers=True,
        )["id"]
        public = {"name": "public", "subscribers": [*self.ids[1000:4000]]}
        self.public: int = self.do("POST /channels/create", **public)["id"]
        everybody = {"name": "everybody", "description": "", "members": self.in_large}
        self.group: int = self.do("POST /user_groups/create", **everybody)["group_id"]
        self.do("POST /users/me/subscriptions", subscriptions=[{"name": LARGE}])
        self.do("PATCH /realm", can_mention_many_users_group={"new": self.group})
        for user_id in self.ids[100:5000:100]:
            self.do(f"PATCH /users/{user_id}", role=600)

    def do(self, request: str, person: int | None = None, /, **values: Any) -> dict[str, Any]:
        """Send a request (method and path) of this person or of the owner, and return the response.
        `{last}` in the path is the ID of the last sent message. Raises BadAnswer if it isn't a
        success."""
        method, target = request.format(last=self.last).split()
        authorization = self.owner if person is None else self.people[person]
        sent = api.request(method, target, authorization, **values)
        answer: dict[str, Any] = json.loads(
            body_of(api.asked(self.server.port, sent, LONGEST_SECONDS))
        )
        return answer

    def send(self, content: str, to: str | int = LARGE, topic: str = "holding") -> None:
        """Send a channel message as the first person."""
        where = {"type": "stream", "to": to, "topic": topic}
        self.last = self.do("POST /messages", 0, content=content, **where)["id"]

    def page(
        self, person: int | None, *narrow: tuple[str, Any], anchor: str = "newest"
    ) -> dict[str, Any]:
        """Fetch a page of 1,000 messages."""
        terms = [{"operator": operator, "operand": operand} for operator, operand in narrow]
        size = {"num_before": 1000, "num_after": 0}
        return self.do("GET /messages", person, anchor=anchor, narrow=terms, **size)

    def repeat(self, request: str, person: int | None = None, /, **values: Any) -> None:
        """Repeat the request until the response says that it's complete."""
        while not self.do(request, person, **values)["complete"]:
            pass

    def move(self, which: str, /, **to: Any) -> dict[str, Any]:
        """Move one of the long topics."""
        target = f"PATCH /messages/{self.topics[which][0]}"
        return self.do(target, propagate_mode="change_all", **to)


class Waits:
    """Measures how long two other clients wait (wall-clock time) within the context: one that
    reads, and one that sends."""

    def __init__(self, port: int, people: Sequence[str]) -> None:
        reader, sender = people[7], people[8]
        narrow = [["channel", "channel 1"]]
        self._port = port
        self._requests = {
            "a read": [api.newest(reader, narrow), api.empty(reader)],
            "a send": [api.send(sender, "channel 1", "concurrent")],
        }
        self.waits: dict[str, list[float]] = {what: [] for what in self._requests}
        """The duration of each request, in seconds."""
        self._is_over = threading.Event()
        self._threads = [
            threading.Thread(target=self._ask, args=(what,), daemon=True) for what in self._requests
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    @property
    def longest(self) -> dict[str, float]:
        """Return the longest wait of each client, in seconds."""
        return {what: max(waits) for what, waits in self.waits.items()}

    def _ask(self, what: str) -> None:
        while not self._is_over.is_set():
            for request in self._requests[what]:
                began = time.perf_counter()
                api.asked(self._port, request)
                self.waits[what].append(time.perf_counter() - began)
            self._is_over.wait(BETWEEN)


def measured_line(
    bench: Bench, number: int, title: str, company: Company, operation: Callable[[], Any]
) -> Line:
    """Return the line for the longest hold of the event loop during the operation."""
    company.server.longest()
    try:
        with Waits(company.server.port, company.people) as others:
            operation()
    except BadAnswer as error:
        raise BenchError(
            f"{title}: {str(error)[-500:]}\nThe server's output:\n{company.server.output()}"
        ) from None
    longest = company.server.longest()
    waits = ", ".join(f"{what} {seconds * 1000:.0f} ms" for what, seconds in others.longest.items())
    bench.tell(f"    others waited: {waits}")
    if longest.held > BOUND:
        bench.tell(f"    {longest.by}, collecting {longest.collecting * 1000:.0f} ms")
        for place, count in longest.where:
            bench.tell(f"      {count:4} {place}")
    line = Line(f"hold_{number}", title, "ms", [longest.held], table="longest event loop holds")
    line.targets = [Target("", longest.held, BOUND, "ms")]
    return line
