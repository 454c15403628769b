"""Concurrent requests: one is first, and the other sees the result.

If only one can succeed, the other is refused; if both can, both succeed. Afterwards memory, the
tables, and the log agree.
"""

import asyncio
import io
import json
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import replace
from PIL import Image

from tertulia.model.users import Role
from tests.property.histories import assert_folds
from tests.support import Organization, Reply, row, until

FAR = 4_000_000_000
ONE, BOTH, SOME = {1}, {2}, {1, 2}
"""How many of two requests succeed."""

Names = dict[str, Any]
"""The objects named in a race's requests."""


class Request(Struct, frozen=True):
    """A request. Names in braces are those of `Stage`."""

    who: str
    method: str
    path: str
    values: dict[str, Any] = {}
    files: dict[str, Any] = {}


class Race(Struct, frozen=True):
    """Two concurrent requests, how many of them succeed, and what holds afterwards."""

    one: Request
    other: Request
    succeed: set[int]
    after: Callable[[Organization, Names], bool] = lambda *_: True


def twice(method: str, path: str, *who: str, **values: Any) -> tuple[Request, Request]:
    """The same request, by two people or by one."""
    one, other = who if len(who) == 2 else who * 2
    return Request(one, method, path, values), Request(other, method, path, values)


def named(table: str, name: str) -> Callable[[Organization, Names], bool]:
    """Exactly one has this name."""

    def check(org: Organization, _: Names) -> bool:
        records = list(org.node.state.tables[table])
        return [record.name for record in records].count(name) == 1

    return check


def picture() -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(file, "PNG")
    return {"file": ("owl.png", file.getvalue(), "image/png")}


VOTE = '{"type":"vote","key":"canned,0","vote":1}'
RULE = {"pattern": "#(?P<id>[0-9]+)", "url_template": "https://example.com/{id}"}
CODE = {"pygments_language": "C", "url_template": "https://example.com/{code}"}
LATER = {"type": "channel", "to": "{lounge}", "topic": "tea", "content": "later"}


def moved(topic: str, **more: Any) -> Request:
    values = {"topic": topic, "propagate_mode": "change_all", **more}
    return Request("ann", "PATCH", "/messages/{words}", values)


def counted(more: int) -> Callable[[Organization, Names], bool]:
    """Whether "tea" has this many more messages than `messages` created."""

    def check(org: Organization, names: Names) -> bool:
        topic = org.node.state.topics.get((names["lounge"], "tea"))
        return topic is not None and topic.message_count == 3 + more

    return check


def is_left(org: Organization, names: Names) -> bool:
    """Whether no message is in "tea"."""
    return (names["lounge"], "tea") not in org.node.state.topics


def removed(table: str, name: str) -> Callable[[Organization, Names], bool]:
    """The subject of the race is gone."""
    return lambda org, names: names[name] not in org.node.state.tables[table]


def sent_and_removed(org: Organization, names: Names) -> bool:
    return counted(1)(org, names) and removed("scheduled_messages", "scheduled")(org, names)


DELETE = Request("ann", "DELETE", "/messages/{words}")

RACES: dict[str, dict[str, Race]] = {
    "names": {
        "two channels of one name": Race(
            *twice("POST", "/channels/create", "ann", "ben", name="den", subscribers=[]),
            ONE,
            named("channels", "den"),
        ),
        "a channel by subscribing to it": Race(
            *twice(
                "POST", "/users/me/subscriptions", "ann", "ben", subscriptions=[{"name": "cave"}]
            ),
            BOTH,
            named("channels", "cave"),
        ),
        "two channels take one name": Race(
            Request("ann", "PATCH", "/streams/{lounge}", {"new_name": "hut"}),
            Request("ann", "PATCH", "/streams/{attic}", {"new_name": "Hut"}),
            ONE,
        ),
        "two folders of one name": Race(
            *twice("POST", "/channel_folders/create", "ann", name="work", description=""),
            ONE,
            named("channel_folders", "work"),
        ),
        "two groups of one name": Race(
            *twice(
                "POST", "/user_groups/create", "ann", "ben", name="x", description="", members=[]
            ),
            ONE,
            named("user_groups", "x"),
        ),
        "two default groups of one name": Race(
            *twice(
                "POST",
                "/default_stream_groups/create",
                "ann",
                group_name="x",
                description="",
                stream_names=["{Lounge}"],
            ),
            ONE,
            named("default_channel_groups", "x"),
        ),
        "two profile fields of one name": Race(
            *twice("POST", "/realm/profile_fields", "ann", name="Desk", field_type=1),
            ONE,
            named("profile_fields", "Desk"),
        ),
        "two emoji of one name": Race(
            Request("ann", "POST", "/realm/emoji/owl", files=picture()),
            Request("ben", "POST", "/realm/emoji/owl", files=picture()),
            ONE,
            named("custom_emoji", "owl"),
        ),
        "two equal linkifiers": Race(*twice("POST", "/realm/filters", "ann", **RULE), ONE),
        "two equal playgrounds": Race(
            *twice("POST", "/realm/playgrounds", "ann", name="x", **CODE), ONE
        ),
        "two equal domains": Race(
            *twice("POST", "/realm/domains", "ann", domain="a.com", allow_subdomains=True), ONE
        ),
        "two accounts of one address": Race(
            *twice(
                "POST",
                "/users",
                "ann",
                email="new@example.com",
                full_name="New",
                password="correct horse battery",
            ),
            ONE,
        ),
        "two bots of one address": Race(
            *twice("POST", "/bots", "ann", "ben", full_name="Robo", short_name="robo"), ONE
        ),
        "one address for two accounts": Race(
            Request("ann", "PATCH", "/users/{eve}", {"new_email": "same@example.com"}),
            Request("ann", "PATCH", "/users/{fay}", {"new_email": "same@example.com"}),
            ONE,
        ),
        "two equal views": Race(
            *twice("POST", "/navigation_views", "ben", fragment="inbox", is_pinned=True), ONE
        ),
    },
    "messages": {
        "the same reaction twice": Race(
            *twice("POST", "/messages/{words}/reactions", "ben", emoji_name="tada"), ONE
        ),
        "the same reaction of two people": Race(
            *twice("POST", "/messages/{words}/reactions", "ben", "ann", emoji_name="tada"), BOTH
        ),
        "a reaction and a deletion": Race(
            Request("ben", "POST", "/messages/{words}/reactions", {"emoji_name": "tada"}),
            DELETE,
            SOME,
            counted(-1),
        ),
        "a topic goes to two places": Race(
            moved("coffee"),
            moved("cocoa"),
            BOTH,
            is_left,
        ),
        "a topic goes to one place twice": Race(moved("coffee"), moved("coffee"), ONE),
        "a topic goes to another channel and to another name": Race(
            moved("coffee"), moved("tea", stream_id="{attic}"), BOTH
        ),
        "a topic goes and one of its messages is deleted": Race(moved("coffee"), DELETE, SOME),
        "an edit and a deletion": Race(
            Request("ben", "PATCH", "/messages/{words}", {"content": "other"}),
            DELETE,
            SOME,
            counted(-1),
        ),
        "two edits": Race(*twice("PATCH", "/messages/{words}", "ben", content="other"), BOTH),
        "two deletions": Race(DELETE, DELETE, ONE, counted(-1)),
        "a deletion and that of the topic": Race(
            DELETE,
            Request("ann", "POST", "/streams/{lounge}/delete_topic", {"topic_name": "tea"}),
            SOME,
            is_left,
        ),
        "a vote and a deletion": Race(
            Request(
                "ann",
                "POST",
                "/submessage",
                {"message_id": "{poll}", "msg_type": "widget", "content": VOTE},
            ),
            Request("ann", "DELETE", "/messages/{poll}"),
            SOME,
            counted(-1),
        ),
        "a star and a deletion": Race(
            Request(
                "ben",
                "POST",
                "/messages/flags",
                {"messages": ["{words}"], "op": "add", "flag": "starred"},
            ),
            DELETE,
            SOME,
            counted(-1),
        ),
        "a reminder and a deletion": Race(
            Request(
                "ben",
                "POST",
                "/reminders",
                {"message_id": "{words}", "scheduled_delivery_timestamp": FAR},
            ),
            DELETE,
            SOME,
            counted(-1),
        ),
        "a message to a channel that is archived": Race(
            Request("ben", "POST", "/messages", {**LATER, "content": "now"}),
            Request("ann", "DELETE", "/streams/{lounge}"),
            SOME,
            lambda org, names: org.node.state.channels[names["lounge"]].is_archived,
        ),
        "a file is deleted twice": Race(*twice("DELETE", "/attachments/{attachment}", "ben"), ONE),
        "a file is linked and deleted": Race(
            Request("ben", "POST", "/messages", {**LATER, "content": "see /user_uploads/{file}"}),
            Request("ben", "DELETE", "/attachments/{attachment}"),
            SOME,
        ),
    },
    "people": {
        "one joins a group twice": Race(
            *twice("POST", "/user_groups/{cooks}/members", "ann", add=["{cleo}"]), ONE
        ),
        "a group is in another, and the other in it": Race(
            Request("ann", "POST", "/user_groups/{cooks}/subgroups", {"add": ["{bakers}"]}),
            Request("ann", "POST", "/user_groups/{bakers}/subgroups", {"add": ["{cooks}"]}),
            ONE,
        ),
        "one is subscribed twice": Race(
            *twice(
                "POST",
                "/users/me/subscriptions",
                "ann",
                subscriptions=[{"name": "{Lounge}"}],
                principals=["{cleo}"],
            ),
            BOTH,
            lambda org, names: org.node.state.is_subscribed(names["cleo"], names["lounge"]),
        ),
        "one is unsubscribed twice": Race(
            *twice(
                "DELETE",
                "/users/me/subscriptions",
                "ann",
                subscriptions=["{Lounge}"],
                principals=["{ben}"],
            ),
            BOTH,
            lambda org, names: not org.node.state.is_subscribed(names["ben"], names["lounge"]),
        ),
        "two owners take it from each other": Race(
            Request("ann", "PATCH", "/users/{dan}", {"role": 400}),
            Request("dan", "PATCH", "/users/{ann}", {"role": 400}),
            ONE,
            lambda org, _: sum(user.role == 100 for user in org.node.state.users) == 1,
        ),
        # The last race: one of the owners is deactivated.
        "two owners deactivate each other": Race(
            Request("ann", "DELETE", "/users/{dan}"),
            Request("dan", "DELETE", "/users/{ann}"),
            ONE,
        ),
    },
    "own": {
        "two edits of what is scheduled": Race(
            Request("ben", "PATCH", "/scheduled_messages/{scheduled}", {"content": "one"}),
            Request("ben", "PATCH", "/scheduled_messages/{scheduled}", {"topic": "other"}),
            BOTH,
        ),
        "what is scheduled is deleted twice": Race(
            *twice("DELETE", "/scheduled_messages/{scheduled}", "ben"), ONE
        ),
        "what is scheduled is sent twice": Race(
            *twice("POST", "/scheduled_messages/{scheduled}/send", "ben"), ONE, counted(1)
        ),
        "what is scheduled is sent and deleted": Race(
            Request("ben", "POST", "/scheduled_messages/{scheduled}/send"),
            Request("ben", "DELETE", "/scheduled_messages/{scheduled}"),
            ONE,
        ),
        "what is scheduled is sent and edited": Race(
            Request("ben", "POST", "/scheduled_messages/{scheduled}/send"),
            Request("ben", "PATCH", "/scheduled_messages/{scheduled}", {"content": "one"}),
            SOME,
            sent_and_removed,
        ),
        "a reminder is deleted twice": Race(*twice("DELETE", "/reminders/{reminder}", "ben"), ONE),
        "a draft is deleted twice": Race(*twice("DELETE", "/drafts/{draft}", "ben"), ONE),
        "a draft is edited and deleted": Race(
            Request(
                "ben",
                "PATCH",
                "/drafts/{draft}",
                {"draft": {"type": "", "to": [], "topic": "", "content": "b"}},
            ),
            Request("ben", "DELETE", "/drafts/{draft}"),
            SOME,
            removed("drafts", "draft"),
        ),
        "a snippet is deleted twice": Race(
            *twice("DELETE", "/saved_snippets/{snippet}", "ben"), ONE
        ),
    },
}
"""Each group is one test, which runs its races in turn in the same organization."""


@dataclass
class Stage:
    """Objects for one race, created when a request names them."""

    org: Organization
    names: Names

    async def filled(self, value: Any) -> Any:
        """The value with its names filled in."""
        text = json.dumps(value)
        for name in re.findall(r"\{(\w+)\}", text):
            if name not in self.names and name not in MAKERS:
                continue  # A template's own braces.
            one = json.dumps(await self.of(name))
            text = text.replace(f'"{{{name}}}"', one).replace(f"{{{name}}}", one.strip('"'))
        return json.loads(text)

    async def of(self, name: str) -> Any:
        if name not in self.names:
            await MAKERS[name](self)
        return self.names[name]


async def channels(stage: Stage) -> None:
    org = stage.org
    stage.names["Lounge"] = name = f"lounge {org.node.state.channels.next_id()}"
    stage.names["lounge"] = await org.channel(name, "ann", "ben")
    stage.names["attic"] = await org.channel(f"attic of {name}", "ann", "ben")


async def messages(stage: Stage) -> None:
    """A poll and a text by ben in the topic "tea", and a text that links his file."""
    names, ben = stage.names, stage.org["ben"]
    to = await stage.of("lounge")
    names["file"] = path = await ben.upload()
    names["poll"] = await ben.send(to, "tea", "/poll When?\n- now\n- later")
    names["words"] = await ben.send(to, "tea", "words")
    names["note"] = await ben.send(to, "tea", f"see [a file](/user_uploads/{path})")
    (names["attachment"],) = (
        file.id for file in stage.org.node.state.attachments if file.path == path
    )


async def groups(stage: Stage) -> None:
    number = len(stage.org.node.state.groups)
    for name in ("cooks", "bakers"):
        values = {"name": f"{name} {number}", "description": "", "members": []}
        reply = await stage.org["ann"].post("/user_groups/create", **values)
        stage.names[name] = reply.ok["group_id"]


async def accounts(stage: Stage) -> None:
    for name in ("eve", "fay"):
        stage.names[name] = (await stage.org.add(name)).user_id


async def owners(stage: Stage) -> None:
    """Ann and dan, and nobody else."""
    org = stage.org
    if "dan" not in org.people:
        await org.add("dan")
    ann, dan = org["ann"].user_id, org["dan"].user_id
    (owner,) = (user.id for user in org.node.state.users if user.role == Role.OWNER)
    one, other = (org["ann"], dan) if owner == ann else (org["dan"], ann)
    assert (await one.patch(f"/users/{other}", role=100)).ok
    stage.names["dan"] = dan


AT = {"scheduled_delivery_timestamp": FAR}


async def scheduled(stage: Stage) -> None:
    await stage.of("words")
    reply = await stage.org["ben"].post("/scheduled_messages", **await stage.filled(LATER), **AT)
    stage.names["scheduled"] = reply.ok["scheduled_message_id"]


async def reminder(stage: Stage) -> None:
    reply = await stage.org["ben"].post("/reminders", message_id=await stage.of("note"), **AT)
    stage.names["reminder"] = reply.ok["reminder_id"]


async def draft(stage: Stage) -> None:
    content = {"type": "", "to": [], "topic": "", "content": "a"}
    (stage.names["draft"],) = (await stage.org["ben"].post("/drafts", drafts=[content])).ok["ids"]


async def snippet(stage: Stage) -> None:
    reply = await stage.org["ben"].post("/saved_snippets", title="t", content="c")
    stage.names["snippet"] = reply.ok["saved_snippet_id"]


MAKERS: dict[str, Callable[[Stage], Awaitable[None]]] = {
    **dict.fromkeys(("lounge", "Lounge", "attic"), channels),
    **dict.fromkeys(("file", "attachment", "poll", "words", "note"), messages),
    **dict.fromkeys(("cooks", "bakers"), groups),
    **dict.fromkeys(("eve", "fay"), accounts),
    "dan": owners,
    "scheduled": scheduled,
    "reminder": reminder,
    "draft": draft,
    "snippet": snippet,
}


async def send_request(org: Organization, request: Request) -> Reply:
    if request.files:
        return await org[request.who].raw(request.method, request.path, files=request.files)
    return await org[request.who].request(request.method, request.path, **request.values)


async def staged(stage: Stage, request: Request) -> Request:
    path, values = await stage.filled([request.path, request.values])
    return replace(request, path=path, values=values)


@pytest.mark.parametrize("group", RACES)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
async def test_of_two_concurrent_requests_one_is_first(
    org: Organization, group: str, turned: bool
) -> None:
    people = {name: person.user_id for name, person in org.people.items()}
    for name, race in RACES[group].items():
        with row(name):
            stage = Stage(org, dict(people))
            pair = [await staged(stage, request) for request in (race.one, race.other)]
            if turned:
                pair.reverse()
            replies = await asyncio.gather(*(send_request(org, request) for request in pair))
            assert all(reply.status < 500 for reply in replies), replies
            assert sum(reply.status == 200 for reply in replies) in race.succeed, replies
            assert race.after(org, stage.names)
            # The server deletes files by itself and records that.
            await until(lambda: not len(org.node.state.removed_files))
            await org.node.log.durability.settled()
            await assert_folds(org.node.log)
