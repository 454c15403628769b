"""How long requests hold the event loop: every kind of operation in an organization with 5,200
people and 1,000,000 messages, while 300 clients wait."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from bench import api, archive, serving
from bench.api import BadAnswer
from bench.cases import Case
from bench.company import Company, measured, measured_line
from bench.context import Bench
from bench.datasets import OLD_COMPANY
from bench.listeners import listening
from bench.organization import LARGE
from bench.report import Line

LISTENERS = 300
LONG_TOPIC = 10_000
TOPICS = ("to public", "to private", "renamed", "resolved", "deleted", "read", "later")
"""Topics of this many messages in the channel of 5,000."""
MANY_TOPICS = 30
"""The distance of the channel with 60,000 topics from the first channel."""
LONG_HITS = 60
LINKIFIERS = 200

Operation = tuple[str, Callable[[], Any]]


def _register(c: Company, person: int, **values: Any) -> Callable[[], Any]:
    common = {"apply_markdown": True, "client_gravatar": True, "slim_presence": True}
    return partial(c.do, "POST /register", person, **common, **values)


def _reading(c: Company) -> Iterator[Operation]:
    def compressed() -> None:
        request = api.register(c.people[2601])
        api.asked(c.server.port, request.replace("\r\n", "\r\nAccept-Encoding: gzip\r\n", 1))

    get = partial(partial, c.do)
    page = partial(partial, c.page)
    avatars = {"include_custom_profile_fields": True, "client_gravatar": False}
    topics = f"GET /users/me/{c.channel}/topics"
    yield "POST /register", _register(c, 2600)
    yield "… subscribed to all channels, all unread", _register(c, 1)
    yield "… with all subscribers", _register(c, 1, include_subscribers=True)
    yield "… as a guest", _register(c, 100)
    yield "… compressed", compressed
    yield "GET /users", get("GET /users", 5)
    yield "… with profiles and avatars", get("GET /users", 5, **avatars)
    yield "… as a guest", get("GET /users", 100)
    yield (
        "GET /users/me/subscriptions with subscribers",
        get("GET /users/me/subscriptions", 1, include_subscribers=True),
    )
    yield "GET /streams", get("GET /streams", 1)
    yield "GET /user_groups", get("GET /user_groups", 1)
    yield (
        "GET /streams/…/members, 5,000 subscribers",
        get(f"GET /streams/{c.large}/members", 1),
    )
    yield "GET /users/me/…/topics", get(topics, 1)
    yield from _sending(c)
    yield "GET /messages, newest 1,000", page(0)
    yield "… in a channel", page(0, ("channel", "channel 0"))
    yield "… in a topic", page(0, ("channel", LARGE), ("topic", "later"))
    yield "… from a sender", page(0, ("sender", "p5@example.com"))
    yield "… direct messages", page(0, ("is", "dm"))
    yield "… direct messages with one person", page(0, ("dm", [c.ids[1]]))
    yield "… unread", page(0, ("is", "unread"))
    yield "… unread, all unread", page(1, ("is", "unread"))
    yield "… starred", page(0, ("is", "starred"))
    yield "… mentions", page(0, ("is", "mentioned"))
    yield "… in resolved topics", page(0, ("is", "resolved"))
    yield "… in followed topics", page(0, ("is", "followed"))
    yield "… with a link", page(0, ("has", "link"))
    yield "… with a reaction", page(0, ("has", "reaction"))
    yield "… in all public channels", page(0, ("channels", "public"))
    yield "… first unread", page(0, anchor="first_unread")
    yield "… first unread, all unread", page(1, anchor="first_unread")
    yield "… search, rare word", page(0, ("search", archive.RARE))
    yield "… search, common word", page(0, ("search", archive.COMMON))
    yield "… as a guest", page(100)
    yield "… search as a guest", page(100, ("search", archive.COMMON))


def _sending(c: Company) -> Iterator[Operation]:
    def alert_words() -> None:
        for person in range(500):
            c.do("POST /users/me/alert_words", person, alert_words=["supper"])

    mention = "@**all** @*everybody* yes, supper"
    edit = partial(c.do, "PATCH /messages/{last}", 0)
    yield "POST /messages, channel of 5,000", partial(c.send, "How is everybody?")
    yield "… mentioning everyone", partial(c.send, "@**all** supper is ready")
    yield "… mentioning the topic's participants", partial(c.send, "@**topic** supper is ready")
    yield "… mentioning a group of 5,000", partial(c.send, "@*everybody* it is ready")
    yield "… with an alert word of 500 people", partial(c.send, "supper is ready")
    yield "PATCH /messages, content", partial(edit, content="No.")
    yield "… adding mentions of everyone and a group", partial(edit, content=mention)
    yield "DELETE /messages", partial(c.do, "DELETE /messages/{last}")
    yield "set alert words of 500 people", alert_words


def _marking(c: Company) -> Iterator[Operation]:
    later = c.topics["later"]

    def flag(flag: str, op: str, count: int) -> Callable[[], Any]:
        ids = [*later[:count]]
        return partial(c.do, "POST /messages/flags", 0, messages=ids, flag=flag, op=op)

    def by_narrow() -> None:
        anchor = "oldest"
        narrow = [{"operator": "channel", "operand": c.channel}]
        size = {"num_before": 0, "num_after": 5000, "include_anchor": False}
        flag = {"op": "add", "flag": "read"}
        for _ in range(30):
            answer = c.do(
                "POST /messages/flags/narrow", 3, anchor=anchor, narrow=narrow, **size, **flag
            )
            if answer["found_newest"]:
                break
            anchor = str(answer["last_processed_id"])

    def by_many(count: int, request: str, **values: Any) -> Callable[[], Any]:
        def each() -> None:
            for person in range(count):
                formatted = {k: v.format(person) for k, v in values.items()}
                c.do(request, person, **formatted)

        return each

    def upload() -> None:
        part = 'Content-Disposition: form-data; name="file"; filename="a.bin"'
        kind = "Content-Type: application/octet-stream"
        body = f"--frontier\r\n{part}\r\n{kind}\r\n\r\n{'x' * 10_000_000}\r\n--frontier--\r\n"
        _post(c, "/user_uploads", "multipart/form-data; boundary=frontier", body)

    typing = {"op": "start", "type": "channel", "stream_id": c.large, "topic": "holding"}
    yield "star 5,000 messages", flag("starred", "add", 5000)
    yield "mark 5,000 messages as read", flag("read", "add", 5000)
    yield "mark 5,000 messages as unread", flag("read", "remove", 5000)
    yield "mark 10,000 messages as read", flag("read", "add", 10000)
    yield "mark a channel of 200,000 messages as read by narrow, 5,000 per request", by_narrow
    yield (
        "POST /mark_topic_as_read, 10,000 messages",
        partial(c.do, "POST /mark_topic_as_read", 2, stream_id=c.large, topic_name="read"),
    )
    yield (
        "POST /mark_stream_as_read, 200,000 messages",
        partial(c.do, "POST /mark_stream_as_read", 4, stream_id=c.channel),
    )
    yield (
        "POST /mark_all_as_read, 1,000,000 messages",
        partial(c.repeat, "POST /mark_all_as_read", 5),
    )
    yield "read receipts", partial(c.do, f"GET /messages/{later[5]}/read_receipts", 0)
    reaction = by_many(200, f"POST /messages/{later[5]}/reactions", emoji_name="tada")
    yield "200 reactions to a message", reaction
    presence = by_many(500, "POST /users/me/presence", status="active", ping_only="true")
    yield "presence of 500 people", presence
    yield "GET /realm/presence", partial(c.do, "GET /realm/presence", 1)
    yield "set 200 statuses", by_many(200, "POST /users/me/status", status_text="busy {}")
    yield "typing notification to 5,000 people", partial(c.do, "POST /typing", 0, **typing)
    yield "POST /user_uploads, 10 MB", upload


def _moving(c: Company) -> Iterator[Operation]:
    later = f"PATCH /messages/{c.topics['later'][5000]}"
    half = {"propagate_mode": "change_later", "stream_id": c.public}
    delete = f"POST /streams/{c.large}/delete_topic"
    yield "move 10,000 messages to another topic", partial(c.move, "renamed", topic="renamed so")
    yield "resolve a topic of 10,000 messages", partial(c.move, "resolved", topic="✔ resolved")
    for title, topic, to in (
        ("to a public channel", "to public", c.public),
        ("to a private channel", "to private", c.private),
        ("back to a public channel", "to private", c.large),
    ):
        yield f"move 10,000 messages {title}", partial(c.move, topic, stream_id=to)
    yield "move 5,000 of 10,000 messages", partial(c.do, later, **half)
    yield "delete a topic of 10,000 messages", partial(c.repeat, delete, topic_name="deleted")


def _administering(c: Company) -> Iterator[Operation]:
    def subscribe(names: str, numbers: range, people: list[int]) -> Callable[[], Any]:
        channels = [{"name": f"{names} {number}"} for number in numbers]
        values = {"subscriptions": channels, "principals": people}
        return partial(c.do, "POST /users/me/subscriptions", **values)

    def change(target: str, **values: Any) -> Callable[[], Any]:
        return partial(c.do, f"PATCH {target}", **values)

    large, user, members = f"/streams/{c.large}", f"/users/{c.ids[1]}", [*c.ids[:2500]]
    group = f"/user_groups/{c.group}/members"
    hundred = [{"name": f"channel {number}"} for number in range(300, 400)]
    unsubscribe = {"subscriptions": ["channel 200"], "principals": c.in_large}
    secret = {"name": "secret", "subscribers": c.in_large, "invite_only": True}
    again = {"name": "again", "description": "", "members": c.in_large}
    new = {"email": "new@example.com", "password": "correct horse", "full_name": "New"}
    yield "subscribe 5,000 people", subscribe("channel", range(200, 201), c.in_large)
    yield "subscribe 5,000 people to 5 channels", subscribe("channel", range(210, 215), c.in_large)
    yield "subscribe 200 people to 500 new channels", subscribe("bulk", range(500), members[:200])
    yield "unsubscribe 5,000 people", partial(c.do, "DELETE /users/me/subscriptions", **unsubscribe)
    yield (
        "subscribe one person to 100 channels",
        partial(c.do, "POST /users/me/subscriptions", 5000, subscriptions=hundred),
    )
    yield (
        "create a private channel with 5,000 subscribers",
        partial(c.do, "POST /channels/create", **secret),
    )
    yield "make a channel with 5,000 subscribers private", change(large, is_private=True)
    yield "make it public", change(large, is_private=False)
    yield "rename a channel with 5,000 subscribers", change(large, new_name="great")
    yield (
        "let a group of 5,000 administer a private channel",
        change(f"/streams/{c.private}", can_administer_channel_group={"new": c.group}),
    )
    yield "archive a channel with 5,000 subscribers", partial(c.do, f"DELETE {large}")
    yield "unarchive it", change(large, is_archived=False)
    yield "rename a user", change(user, full_name="Somebody Else")
    yield "change a member's role to guest", change(user, role=600)
    yield "change the guest's role to member", change(user, role=400)
    yield "deactivate a user", partial(c.do, f"DELETE /users/{c.ids[6]}")
    yield "reactivate a user", partial(c.do, f"POST /users/{c.ids[6]}/reactivate")
    yield "create a user", partial(c.do, "POST /users", **new)
    yield (
        "remove 2,500 people from a group of 5,000",
        partial(c.do, f"POST {group}", delete=members),
    )
    yield "add 2,500 people to it", partial(c.do, f"POST {group}", add=members)
    yield "create a group of 5,000", partial(c.do, "POST /user_groups/create", **again)
    yield (
        "deactivate a group of 5,000",
        partial(c.do, f"POST /user_groups/{c.group + 1}/deactivate"),
    )
    yield "limit guests' access to users", change("/realm", can_access_all_users_group={"new": 6})
    yield "GET /users as a limited guest", partial(c.do, "GET /users", 100)
    yield "POST /register as a limited guest", _register(c, 100)
    yield "let guests see all users", change("/realm", can_access_all_users_group={"new": 7})
    yield "change the waiting period", change("/realm", waiting_period_threshold=9)
    yield "rename the organization", change("/realm", name="Another")


def _running(c: Company) -> Iterator[Operation]:
    def expire() -> None:
        c.do(f"PATCH /streams/{c.channel + 20}", message_retention_days=1)
        c.server.tell("expire")

    def back_up() -> None:
        path = Path(c.made.config.data_dir)
        command = [sys.executable, "-m", "tertulia", "backup", "--data-dir", str(path)]
        if c.made.config.database_url:
            command += ["--database-url", c.made.config.database_url]
        command.append(str(path / "backup.tar"))
        subprocess.run(command, env=serving.environment(), check=True, capture_output=True)

    def fail() -> None:
        c.server.tell("break")
        with suppress(BadAnswer):
            c.do("POST /users/me/status", status_text="never")

    yield "expire messages of a channel", expire
    yield "prune the log", partial(c.server.tell, "prune")
    yield "during a backup", back_up
    yield "reload the state after a failed commit", fail
    yield "POST /register after that", _register(c, 1)


def _bytes(c: Company) -> Iterator[Operation]:
    """Yield the operations whose work grows with the bytes of a request, or with the number of
    records."""

    def refused(operation: Callable[..., Any], *arguments: Any, **values: Any) -> None:
        with suppress(BadAnswer):  # The time that the server takes to refuse it counts.
            operation(*arguments, **values)

    def form(of: str, size: int) -> Callable[[], Any]:
        body = "status_text=" + of * (size // len(of))
        media_type = "application/x-www-form-urlencoded"
        return partial(refused, _post, c, "/users/me/status", media_type, body)

    def long_messages() -> None:
        for number in range(LONG_HITS):
            c.send("日本語の長い文章を検索" * 900, c.channel, f"long {number}")

    def linkifiers() -> None:
        for number in range(LINKIFIERS):
            pattern, url = f"L{number}-(?P<id>[0-9]+)", "https://links.example/{id}"
            c.do("POST /realm/filters", pattern=pattern, url_template=url)

    lists = {"anchor": "newest", "num_before": 1, "num_after": 0, "op": "add", "flag": "read"}
    narrow = "[" + "[]," * 300_000 + "[]]"
    topics = partial(c.do, f"GET /users/me/{c.channel + MANY_TOPICS}/topics", 1)
    links = " ".join(f"L{number}-1" for number in range(LINKIFIERS))
    yield "a form of 8 MiB, percent-encoded", form("%41", 8 * 2**20)
    yield "a form of 1 MiB, percent-encoded", form("%41", 2**20 - 100)
    yield "a form of 1 MiB of percent signs", form("%", 2**20 - 100)
    yield (
        "a narrow of 300,000 empty lists",
        partial(refused, c.do, "POST /messages/flags/narrow", narrow=narrow, **lists),
    )
    yield "GET /users/me/…/topics, of 60,000", topics
    yield "… again", topics
    yield f"{LONG_HITS} messages of 10,000 characters, Japanese", long_messages
    yield "GET /messages, a search that finds them", partial(c.page, 0, ("search", "検索"))
    yield f"{LINKIFIERS} linkifiers are added", linkifiers
    yield "the first message that all of them match", partial(c.send, links, c.channel, "links")


def _post(c: Company, target: str, media_type: str, body: str) -> None:
    """Send a large body as the owner."""
    api.asked(
        c.server.port,
        f"POST /api/v1{target} HTTP/1.1\r\nHost: localhost\r\nAuthorization: {c.owner}\r\n"
        f"Content-Type: {media_type}\r\nContent-Length: {len(body)}\r\n\r\n{body}",
    )


def _measure(bench: Bench) -> Iterator[Line]:
    with bench.datasets.copied(OLD_COMPANY) as made:
        organization = made.organization
        large = organization.first_channel_id + organization.channels + 2
        senders = range(organization.first_user_id, organization.first_user_id + 50)
        many = [f"one of many {number}" for number in range(60_000)]
        archive.add_topics(
            made.config, organization.first_channel_id + MANY_TOPICS, many, 1, senders
        )
        ranges = archive.add_topics(made.config, large, TOPICS, LONG_TOPIC, senders)
        with measured(made) as server:
            c = Company(made, server, dict(zip(TOPICS, ranges, strict=True)))
            step = len(c.people) // LISTENERS
            with listening(server.port, [c.owner, *c.people[::step]][:LISTENERS]):
                parts = (_reading, _marking, _moving, _administering, _running, _bytes)
                operations = (operation for part in parts for operation in part(c))
                for number, (title, operation) in enumerate(operations):
                    yield measured_line(bench, number, title, c, operation)


CASE = Case("hold", "how long each operation holds the event loop", _measure, is_quick=False)
