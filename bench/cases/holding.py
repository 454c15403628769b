"""How long requests hold the event loop: every kind of operation in an organization with 5,200
people and 1,000,000 messages, while 300 clients wait."""

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Self
from urllib.parse import quote

from bench import archive, asking, serving
from bench.arithmetic import Target
from bench.asking import BadAnswer, body_of
from bench.cases import Case
from bench.context import Bench
from bench.datasets import OLD_COMPANY, Made
from bench.listeners import listening
from bench.organization import LARGE, SIZES
from bench.report import Line
from bench.serving import BenchError

BOUND = 0.05
"""The longest allowed hold, in seconds."""
LISTENERS = 300
LONG_TOPIC = 10_000
TOPICS = (
    "to public",
    "to private",
    "from private",
    "renamed",
    "resolved",
    "deleted",
    "read",
    "later",
)
"""Topics of this many messages in the channel of 5,000, except for the third, which is in a private
one."""
QUIET = 0.004
"""An operation is over when no callback takes longer than this many seconds."""
MANY_TOPICS = 30
"""The distance of the channel with 60,000 topics from the first channel."""
LONG_HITS = 60
LINKIFIERS = 200
LAST_WORDS = 3000
"""Characters of the server's output that are shown with an error."""
PATIENCE = 60.0
LONGEST_SECONDS = 600.0
"""The longest duration of an operation."""
BETWEEN = 0.005
"""Seconds between two requests of a client that measures waiting."""


@dataclass
class Held:
    """The longest callback."""

    seconds: float
    by: str
    where: list[tuple[str, int]]
    collecting: float


class Measured:
    """A server on asyncio's event loop that reports how long it was held."""

    def __init__(self, process: "subprocess.Popen[str]", port: int, log: Path) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self.port = port
        self._log = log
        self._input: IO[str] = process.stdin
        self._output: IO[str] = process.stdout
        self._longest = Held(0.0, "", [], 0.0)

    def tell(self, command: str) -> Held:
        """Send a command (see `bench.held`), and return the longest hold since the last one."""
        self._input.write(f"{command}\n")
        self._input.flush()
        found = json.loads(self._output.readline())
        held = Held(found["held"], found["by"], found["where"], found["collecting"])
        self._longest = max(self._longest, held, key=lambda held: held.seconds)
        return held

    def said(self) -> str:
        """The end of its standard error."""
        return self._log.read_text(errors="replace")[-LAST_WORDS:]

    def longest(self) -> Held:
        """Wait until the server is idle, and return the longest hold since the last call."""
        until = time.monotonic() + PATIENCE
        while self.tell("take").seconds >= QUIET and time.monotonic() < until:
            time.sleep(0.15)  # The server reports only when asked.
        found, self._longest = self._longest, Held(0.0, "", [], 0.0)
        return found


@contextmanager
def measured(made: Made) -> Iterator[Measured]:
    path = Path(made.config.data_dir)
    command = serving.server_command(path, made.config.database_url)
    command[1:3] = ["-m", "bench.held"]
    with (path / "serve.log").open("wb") as errors:
        process = subprocess.Popen(
            command,
            env=serving.environment(),
            cwd=serving.ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            if " is ready at " in line:
                yield Measured(process, int(line.rpartition(":")[2]), path / "serve.log")
                break
        else:
            raise BenchError(f"The server did not start:\n{(path / 'serve.log').read_text()}")
    finally:
        process.terminate()
        process.wait(60)


class Company:
    """The subjects of the operations."""

    def __init__(self, made: Made, server: Measured, topics: Mapping[str, range]) -> None:
        one = made.organization
        self.made, self.server = made, server
        self.owner, self.people = one.owner, one.people
        self.first = one.first_user_id
        self.ids = range(self.first, self.first + len(one.people))
        self.in_large = self.ids[: SIZES[LARGE]]
        self.owner_id = self.do("GET", "/users/me")["user_id"]
        self.large = one.first_channel_id + one.channels + 2
        self.channel = one.first_channel_id
        self.topics = topics
        self.private = self.public = self.group = 0
        self.last = 0
        """The message that was sent last."""

    def do(self, method: str, target: str, who: str = "", /, **values: Any) -> dict[str, Any]:
        """Return the response as JSON. Raises BadAnswer if it isn't a success."""
        authorization = who or self.owner
        if method == "GET":
            texts = (
                f"{k}={quote(v if isinstance(v, str) else json.dumps(v))}"
                for k, v in values.items()
            )
            request = asking.get("?".join([target, "&".join(texts)]).rstrip("?"), authorization)
        else:
            request = asking.form(method, target, authorization, values)
        answer: dict[str, Any] = json.loads(
            body_of(asking.asked(self.server.port, request, LONGEST_SECONDS))
        )
        return answer

    def messages(self, who: str, *narrow: tuple[str, Any], anchor: str = "newest") -> None:
        """Fetch a page of 1,000 messages."""
        terms = [{"operator": operator, "operand": operand} for operator, operand in narrow]
        self.do(
            *("GET", "/messages", who),
            anchor=anchor,
            num_before=1000,
            num_after=0,
            narrow=terms,
        )

    def set_up(self) -> None:
        """Prepare the organization before measuring."""
        owner = self.owner
        self.private = self.do(
            *("POST", "/channels/create", owner),
            name="private",
            subscribers=[self.owner_id, *self.ids[:2500]],
            invite_only=True,
            history_public_to_subscribers=True,
        )["id"]
        self.public = self.do(
            *("POST", "/channels/create", owner), name="public", subscribers=[*self.ids[1000:4000]]
        )["id"]
        self.group = self.do(
            *("POST", "/user_groups/create", owner),
            name="everybody",
            description="",
            members=[*self.in_large],
        )["group_id"]
        self.do("POST", "/users/me/subscriptions", subscriptions=[{"name": LARGE}])
        self.do("PATCH", "/realm", can_mention_many_users_group={"new": self.group})
        for user_id in self.ids[100:5000:100]:
            self.do("PATCH", f"/users/{user_id}", role=600)

    def move(self, topic: str, *, to: int | None = None, name: str = "", **more: Any) -> None:
        """Move one of the long topics."""
        values: dict[str, Any] = {"propagate_mode": "change_all", **more}
        if to is not None:
            values["stream_id"] = to
        if name:
            values["topic"] = name
        self.do("PATCH", f"/messages/{self.topics[topic][0]}", **values)


class Waits:
    """How long two other clients wait (wall-clock time) within the context: one that reads, and one
    that sends."""

    def __init__(self, company: Company) -> None:
        reader, sender, port = company.people[7], company.people[8], company.server.port
        narrow = [["channel", "channel 1"]]
        self._port = port
        self._requests = {
            "a read": [asking.newest(reader, narrow), asking.empty(reader)],
            "a send": [asking.send(sender, "channel 1", "meanwhile")],
        }
        self.longest: dict[str, float] = {}
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def __enter__(self) -> Self:
        for what in self._requests:
            thread = threading.Thread(target=self._ask, args=(what,), daemon=True)
            thread.start()
            self._threads.append(thread)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _ask(self, what: str) -> None:
        longest = 0.0
        while not self._is_over.is_set():
            for request in self._requests[what]:
                began = time.perf_counter()
                asking.asked(self._port, request)
                longest = max(longest, time.perf_counter() - began)
            self._is_over.wait(BETWEEN)
        self.longest[what] = longest


Operation = tuple[str, Callable[[Company], Any]]


def _operations() -> Sequence[Operation]:
    def send(content: str, channel: str = LARGE) -> Callable[[Company], Any]:
        def sent(c: Company) -> None:
            values = {"type": "stream", "to": channel, "topic": "holding", "content": content}
            c.last = c.do("POST", "/messages", c.people[0], **values)["id"]

        return sent

    def at(index: int) -> Callable[[Company], str]:
        return lambda c: c.people[index]

    def register(index: int, **values: Any) -> Callable[[Company], Any]:
        common = {"apply_markdown": True, "client_gravatar": True, "slim_presence": True}
        return lambda c: c.do("POST", "/register", at(index)(c), **{**common, **values})

    def registered_packed(c: Company) -> None:
        request = asking.register(c.people[2601])
        asking.asked(c.server.port, request.replace("\r\n", "\r\nAccept-Encoding: gzip\r\n", 1))

    def narrow(index: int, *terms: tuple[str, Any], anchor: str = "newest") -> Any:
        return lambda c: c.messages(c.people[index], *terms, anchor=anchor)

    def marked_everything(index: int) -> Callable[[Company], Any]:
        def mark(c: Company) -> None:
            while not c.do("POST", "/mark_all_as_read", c.people[index])["complete"]:
                pass

        return mark

    def deleted_topic(c: Company) -> None:
        while not c.do("POST", f"/streams/{c.large}/delete_topic", topic_name="deleted")[
            "complete"
        ]:
            pass

    def marked_narrow(c: Company) -> None:
        anchor, complete = "oldest", False
        for _ in range(30):
            answer = c.do(
                *("POST", "/messages/flags/narrow", c.people[3]),
                anchor=anchor,
                num_before=0,
                num_after=5000,
                op="add",
                flag="read",
                include_anchor=False,
                narrow=[{"operator": "channel", "operand": c.channel}],
            )
            complete = answer["found_newest"]
            if complete:
                break
            anchor = str(answer["last_processed_id"])

    def flags(topic: str, flag: str, op: str, count: int) -> Callable[[Company], Any]:
        return lambda c: c.do(
            *("POST", "/messages/flags", c.people[0]),
            messages=[*c.topics[topic][:count]],
            flag=flag,
            op=op,
        )

    def reacted(c: Company) -> None:
        for who in c.people[:200]:
            c.do("POST", f"/messages/{c.topics['later'][5]}/reactions", who, emoji_name="tada")

    def present(c: Company) -> None:
        for who in c.people[:500]:
            c.do("POST", "/users/me/presence", who, status="active", ping_only=True)

    def busy(c: Company) -> None:
        for number, who in enumerate(c.people[:200]):
            c.do("POST", "/users/me/status", who, status_text=f"busy {number}")

    def alerted(c: Company) -> None:
        for who in c.people[:500]:
            c.do("POST", "/users/me/alert_words", who, alert_words=["supper"])

    def uploaded(c: Company) -> None:
        boundary = "frontier"
        body = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="a.bin"\r\n'
            "Content-Type: application/octet-stream\r\n\r\n"
            + "x" * 10_000_000
            + f"\r\n--{boundary}--\r\n"
        )
        head = (
            f"POST /api/v1/user_uploads HTTP/1.1\r\nHost: localhost\r\nAuthorization: {c.owner}\r\n"
            f"Content-Type: multipart/form-data; boundary={boundary}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        asking.asked(c.server.port, head + body)

    def backed_up(c: Company) -> None:
        path = Path(c.made.config.data_dir)
        command = [sys.executable, "-m", "tertulia", "backup", "--data-dir", str(path)]
        if c.made.config.database_url:
            command += ["--database-url", c.made.config.database_url]
        command.append(str(path / "backup.tar"))
        subprocess.run(command, env=serving.environment(), check=True, capture_output=True)

    def expired(c: Company) -> None:
        c.do("PATCH", f"/streams/{c.channel + 20}", message_retention_days=1)
        c.server.tell("expire")

    def broken(c: Company) -> None:
        c.server.tell("break")
        try:
            c.do("POST", "/users/me/status", status_text="never")
        except BadAnswer:
            return

    def read_half(c: Company) -> None:
        c.do("GET", f"/messages/{c.topics['later'][5]}/read_receipts", c.people[0])

    def group(c: Company, **values: Any) -> None:
        c.do("POST", f"/user_groups/{c.group}/members", **values)

    return (
        ("POST /register", register(2600)),
        ("… subscribed to all channels, all unread", register(1)),
        ("… with all subscribers", register(1, include_subscribers=True)),
        ("… as a guest", register(100)),
        ("… compressed", registered_packed),
        ("GET /users", lambda c: c.do("GET", "/users", c.people[5])),
        (
            "… with profiles and avatars",
            lambda c: c.do(
                *("GET", "/users", c.people[5]),
                include_custom_profile_fields=True,
                client_gravatar=False,
            ),
        ),
        ("… as a guest", lambda c: c.do("GET", "/users", c.people[100])),
        (
            "GET /users/me/subscriptions with subscribers",
            lambda c: c.do("GET", "/users/me/subscriptions", c.people[1], include_subscribers=True),
        ),
        ("GET /streams", lambda c: c.do("GET", "/streams", c.people[1])),
        ("GET /user_groups", lambda c: c.do("GET", "/user_groups", c.people[1])),
        (
            "GET /streams/…/members, 5,000 subscribers",
            lambda c: c.do("GET", f"/streams/{c.large}/members", c.people[1]),
        ),
        (
            "GET /users/me/…/topics",
            lambda c: c.do("GET", f"/users/me/{c.channel}/topics", c.people[1]),
        ),
        ("POST /messages, channel of 5,000", send("How is everybody?")),
        ("… mentioning everyone", send("@**all** supper is ready")),
        ("… mentioning the topic's participants", send("@**topic** supper is ready")),
        ("… mentioning a group of 5,000", send("@*everybody* it is ready")),
        ("… with an alert word of 500 people", send("supper is ready")),
        (
            "PATCH /messages, content",
            lambda c: c.do("PATCH", f"/messages/{c.last}", c.people[0], content="No."),
        ),
        (
            "… adding mentions of everyone and a group",
            lambda c: c.do(
                *("PATCH", f"/messages/{c.last}", c.people[0]),
                content="@**all** @*everybody* yes, supper",
            ),
        ),
        (
            "DELETE /messages",
            lambda c: c.do("DELETE", f"/messages/{c.last}"),
        ),
        ("set alert words of 500 people", alerted),
        ("GET /messages, newest 1,000", narrow(0)),
        ("… in a channel", narrow(0, ("channel", "channel 0"))),
        ("… in a topic", narrow(0, ("channel", LARGE), ("topic", "later"))),
        ("… from a sender", narrow(0, ("sender", "p5@example.com"))),
        ("… direct messages", narrow(0, ("is", "dm"))),
        (
            "… direct messages with one person",
            lambda c: c.messages(c.people[0], ("dm", [c.ids[1]])),
        ),
        ("… unread", narrow(0, ("is", "unread"))),
        ("… unread, all unread", narrow(1, ("is", "unread"))),
        ("… starred", narrow(0, ("is", "starred"))),
        ("… mentions", narrow(0, ("is", "mentioned"))),
        ("… in resolved topics", narrow(0, ("is", "resolved"))),
        ("… in followed topics", narrow(0, ("is", "followed"))),
        ("… with a link", narrow(0, ("has", "link"))),
        ("… with a reaction", narrow(0, ("has", "reaction"))),
        ("… in all public channels", narrow(0, ("channels", "public"))),
        ("… first unread", narrow(0, anchor="first_unread")),
        ("… first unread, all unread", narrow(1, anchor="first_unread")),
        ("… search, rare word", narrow(0, ("search", archive.RARE))),
        ("… search, common word", narrow(0, ("search", archive.COMMON))),
        ("… as a guest", narrow(100)),
        ("… search as a guest", narrow(100, ("search", archive.COMMON))),
        ("star 5,000 messages", flags("later", "starred", "add", 5000)),
        ("mark 5,000 messages as read", flags("later", "read", "add", 5000)),
        ("mark 5,000 messages as unread", flags("later", "read", "remove", 5000)),
        ("mark 10,000 messages as read", flags("later", "read", "add", 10000)),
        ("mark a channel of 200,000 messages as read by narrow, 5,000 per request", marked_narrow),
        (
            "POST /mark_topic_as_read, 10,000 messages",
            lambda c: c.do(
                *("POST", "/mark_topic_as_read", c.people[2]),
                stream_id=c.large,
                topic_name="read",
            ),
        ),
        (
            "POST /mark_stream_as_read, 200,000 messages",
            lambda c: c.do("POST", "/mark_stream_as_read", c.people[4], stream_id=c.channel),
        ),
        ("POST /mark_all_as_read, 1,000,000 messages", marked_everything(5)),
        ("read receipts", read_half),
        ("200 reactions to a message", reacted),
        ("presence of 500 people", present),
        ("GET /realm/presence", lambda c: c.do("GET", "/realm/presence", c.people[1])),
        ("set 200 statuses", busy),
        (
            "typing notification to 5,000 people",
            lambda c: c.do(
                *("POST", "/typing", c.people[0]),
                op="start",
                type="channel",
                stream_id=c.large,
                topic="holding",
            ),
        ),
        ("POST /user_uploads, 10 MB", uploaded),
        ("move 10,000 messages to another topic", lambda c: c.move("renamed", name="renamed so")),
        ("resolve a topic of 10,000 messages", lambda c: c.move("resolved", name="✔ resolved")),
        ("move 10,000 messages to a public channel", lambda c: c.move("to public", to=c.public)),
        ("move 10,000 messages to a private channel", lambda c: c.move("to private", to=c.private)),
        (
            "move 10,000 messages back to a public channel",
            lambda c: c.move("to private", to=c.large),
        ),
        (
            "move 5,000 of 10,000 messages",
            lambda c: c.do(
                *("PATCH", f"/messages/{c.topics['later'][5000]}"),
                propagate_mode="change_later",
                stream_id=c.public,
            ),
        ),
        ("delete a topic of 10,000 messages", deleted_topic),
        (
            "subscribe 5,000 people",
            lambda c: c.do(
                *("POST", "/users/me/subscriptions", c.owner),
                subscriptions=[{"name": "channel 200"}],
                principals=[*c.in_large],
            ),
        ),
        (
            "subscribe 5,000 people to 5 channels",
            lambda c: c.do(
                *("POST", "/users/me/subscriptions", c.owner),
                subscriptions=[{"name": f"channel {n}"} for n in range(210, 215)],
                principals=[*c.in_large],
            ),
        ),
        (
            "subscribe 200 people to 500 new channels",
            lambda c: c.do(
                *("POST", "/users/me/subscriptions", c.owner),
                subscriptions=[{"name": f"bulk {n}"} for n in range(500)],
                principals=[*c.in_large][:200],
            ),
        ),
        (
            "unsubscribe 5,000 people",
            lambda c: c.do(
                *("DELETE", "/users/me/subscriptions", c.owner),
                subscriptions=["channel 200"],
                principals=[*c.in_large],
            ),
        ),
        (
            "subscribe one person to 100 channels",
            lambda c: c.do(
                *("POST", "/users/me/subscriptions", c.people[5000]),
                subscriptions=[{"name": f"channel {n}"} for n in range(300, 400)],
            ),
        ),
        (
            "create a private channel with 5,000 subscribers",
            lambda c: c.do(
                *("POST", "/channels/create", c.owner),
                name="secret",
                subscribers=[*c.in_large],
                invite_only=True,
            ),
        ),
        (
            "make a channel with 5,000 subscribers private",
            lambda c: c.do("PATCH", f"/streams/{c.large}", is_private=True),
        ),
        (
            "make it public",
            lambda c: c.do("PATCH", f"/streams/{c.large}", is_private=False),
        ),
        (
            "rename a channel with 5,000 subscribers",
            lambda c: c.do("PATCH", f"/streams/{c.large}", new_name="great"),
        ),
        (
            "let a group of 5,000 administer a private channel",
            lambda c: c.do(
                *("PATCH", f"/streams/{c.private}"),
                can_administer_channel_group={"new": c.group},
            ),
        ),
        (
            "archive a channel with 5,000 subscribers",
            lambda c: c.do("DELETE", f"/streams/{c.large}"),
        ),
        (
            "unarchive it",
            lambda c: c.do("PATCH", f"/streams/{c.large}", is_archived=False),
        ),
        (
            "rename a user",
            lambda c: c.do("PATCH", f"/users/{c.ids[1]}", full_name="Somebody Else"),
        ),
        (
            "change a member's role to guest",
            lambda c: c.do("PATCH", f"/users/{c.ids[1]}", role=600),
        ),
        (
            "change the guest's role to member",
            lambda c: c.do("PATCH", f"/users/{c.ids[1]}", role=400),
        ),
        ("deactivate a user", lambda c: c.do("DELETE", f"/users/{c.ids[6]}")),
        ("reactivate a user", lambda c: c.do("POST", f"/users/{c.ids[6]}/reactivate")),
        (
            "create a user",
            lambda c: c.do(
                "POST", "/users", email="new@example.com", password="correct horse", full_name="New"
            ),
        ),
        ("remove 2,500 people from a group of 5,000", lambda c: group(c, delete=[*c.ids[:2500]])),
        ("add 2,500 people to it", lambda c: group(c, add=[*c.ids[:2500]])),
        (
            "create a group of 5,000",
            lambda c: c.do(
                *("POST", "/user_groups/create", c.owner),
                name="again",
                description="",
                members=[*c.in_large],
            ),
        ),
        (
            "deactivate a group of 5,000",
            lambda c: c.do("POST", f"/user_groups/{c.group + 1}/deactivate"),
        ),
        (
            "limit guests' access to users",
            lambda c: c.do("PATCH", "/realm", can_access_all_users_group={"new": 6}),
        ),
        ("GET /users as a limited guest", lambda c: c.do("GET", "/users", c.people[100])),
        ("POST /register as a limited guest", register(100)),
        (
            "let guests see all users",
            lambda c: c.do("PATCH", "/realm", can_access_all_users_group={"new": 7}),
        ),
        (
            "change the waiting period",
            lambda c: c.do("PATCH", "/realm", waiting_period_threshold=9),
        ),
        ("rename the organization", lambda c: c.do("PATCH", "/realm", name="Another")),
        ("expire messages of a channel", expired),
        ("prune the log", lambda c: c.server.tell("prune")),
        ("during a backup", backed_up),
        ("reload the state after a failed commit", broken),
        ("POST /register after that", register(1)),
    )


def _operations_on_bytes() -> Sequence[Operation]:
    """Operations whose work grows with the bytes of a request, or with the number of records."""

    def form(of: str, size: int) -> Callable[[Company], Any]:
        def sent(c: Company) -> None:
            body = "status_text=" + of * (size // len(of))
            head = (
                f"POST /api/v1/users/me/status HTTP/1.1\r\nHost: localhost\r\n"
                f"Authorization: {c.owner}\r\nContent-Type: application/x-www-form-urlencoded\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            asking.asked(c.server.port, head + body)

        return sent

    def long_messages(c: Company) -> None:
        for number in range(LONG_HITS):
            c.do(
                *("POST", "/messages", c.people[0]),
                type="stream",
                to=c.channel,
                topic=f"long {number}",
                content="日本語の長い文章を検索" * 900,
            )

    def narrow_of(text: str) -> Callable[[Company], Any]:
        def sent(c: Company) -> None:
            values = {"anchor": "newest", "num_before": 1, "num_after": 0, "narrow": text}
            request = asking.form(
                "POST", "/messages/flags/narrow", c.owner, {**values, "op": "add", "flag": "read"}
            )
            asking.asked(c.server.port, request)

        return sent

    def linkifiers(c: Company) -> None:
        for number in range(LINKIFIERS):
            c.do(
                *("POST", "/realm/filters", c.owner),
                pattern=f"L{number}-(?P<id>[0-9]+)",
                url_template="https://links.example/{id}",
            )

    def linked(c: Company) -> None:
        content = " ".join(f"L{number}-1" for number in range(LINKIFIERS))
        values = {"type": "stream", "to": c.channel, "topic": "links", "content": content}
        c.do("POST", "/messages", c.people[0], **values)

    def topics(c: Company) -> None:
        c.do("GET", f"/users/me/{c.channel + MANY_TOPICS}/topics", c.people[1])

    return (
        ("a form of 8 MiB, percent-encoded", form("%41", 8 * 2**20)),
        ("a form of 1 MiB, percent-encoded", form("%41", 2**20 - 100)),
        ("a form of 1 MiB of percent signs", form("%", 2**20 - 100)),
        ("a narrow of 300,000 empty lists", narrow_of("[" + "[]," * 300_000 + "[]]")),
        ("GET /users/me/…/topics, of 60,000", topics),
        ("… again", topics),
        (f"{LONG_HITS} messages of 10,000 characters, Japanese", long_messages),
        (
            "GET /messages, a search that finds them",
            lambda c: c.messages(c.people[0], ("search", "検索")),
        ),
        (f"{LINKIFIERS} linkifiers are added", linkifiers),
        ("the first message that all of them match", linked),
    )


def _measure(bench: Bench) -> Iterator[Line]:
    with bench.datasets.copied(OLD_COMPANY) as made:
        one = made.organization
        large = one.first_channel_id + one.channels + 2
        senders = range(one.first_user_id, one.first_user_id + 50)
        many = [f"one of many {number}" for number in range(60_000)]
        archive.add_topics(made.config, one.first_channel_id + MANY_TOPICS, many, 1, senders)
        ranges = archive.add_topics(made.config, large, TOPICS, LONG_TOPIC, senders)
        with measured(made) as server:
            company = Company(made, server, dict(zip(TOPICS, ranges, strict=True)))
            company.set_up()
            step = len(company.people) // LISTENERS
            with listening(server.port, [company.owner, *company.people[::step]][:LISTENERS]):
                server.longest()
                for number, (title, operation) in enumerate(
                    (*_operations(), *_operations_on_bytes())
                ):
                    yield measured_line(bench, number, title, company, operation)


def measured_line(
    bench: Bench,
    number: int,
    title: str,
    company: Company,
    operation: Callable[[Company], Any],
) -> Line:
    company.server.longest()
    try:
        with Waits(company) as others:
            operation(company)
    except BadAnswer as error:
        raise BenchError(
            f"{title}: {str(error)[-500:]}\nThe server said:\n{company.server.said()}"
        ) from None
    held = company.server.longest()
    waited = ", ".join(
        f"{what} {longest * 1000:.0f} ms" for what, longest in others.longest.items()
    )
    bench.tell(f"    others waited: {waited}")
    if held.seconds > BOUND:
        bench.tell(f"    {held.by}, collecting {held.collecting * 1000:.0f} ms")
        for place, count in held.where:
            bench.tell(f"      {count:4} {place}")
    line = Line(f"hold_{number}", title, "ms", [held.seconds], table="longest event loop holds")
    line.targets = [Target("", held.seconds, BOUND, "ms")]
    return line


CASE = Case("hold", "how long each operation holds the event loop", _measure, is_quick=False)
