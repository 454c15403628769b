"""Two clients at the same moment: one is first, and the other is told how things are then.

Where only one can have its way, the other is refused; where both can, both are answered; and what
the organization is afterwards is one and the same in memory, in the tables and in the log.
"""

import asyncio
import io
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from msgspec import Struct
from PIL import Image

from tertulia.service.config import Config
from tests import databases
from tests.conftest import OTHERS as USUAL
from tests.property.histories import assert_folds
from tests.support import Newcomer, Organization, Reply, founded, reopened
from tests.unit.test_log import until

FAR = 4_000_000_000
ONE, BOTH, SOME = {1}, {2}, {1, 2}
"""How many of two requests are answered with success."""


class Request(Struct, frozen=True):
    """What somebody asks for."""

    who: str
    method: str
    path: str
    values: dict[str, Any] = {}
    files: dict[str, Any] = {}


class Race(Struct, frozen=True):
    """Two requests at one moment, how many of them succeed, and what is so afterwards."""

    one: Request
    other: Request
    succeed: set[int]
    after: Callable[[Organization], bool] = lambda _: True


def twice(method: str, path: str, *who: str, **values: Any) -> tuple[Request, Request]:
    """The same, by two people (or by one)."""
    one, other = who if len(who) == 2 else who * 2
    return Request(one, method, path, values), Request(other, method, path, values)


def named(table: str, name: str) -> Callable[[Organization], bool]:
    """There is exactly one of that name."""

    def check(org: Organization) -> bool:
        records = list(org.node.state.tables[table])
        return [record.name for record in records].count(name) == 1

    return check


def picture() -> dict[str, Any]:
    file = io.BytesIO()
    Image.new("RGB", (8, 8), "red").save(file, "PNG")
    return {"file": ("owl.png", file.getvalue(), "image/png")}


OTHERS = (*USUAL, Newcomer("dan"))
POLL, WORDS, NOTE = 1, 2, 3
"""Messages: a poll and a text of ben's in the topic "tea", and a text that links his file."""
LOUNGE, ATTIC = 1, 2
VOTE = '{"type":"vote","key":"canned,0","vote":1}'
RULE = {"pattern": "#(?P<id>[0-9]+)", "url_template": "https://example.com/{id}"}
CODE = {"pygments_language": "C", "url_template": "https://example.com/{code}"}
LATER = {"type": "channel", "to": LOUNGE, "topic": "tea", "content": "later"}


def moved(topic: str, **more: Any) -> Request:
    values = {"topic": topic, "propagate_mode": "change_all", **more}
    return Request("ann", "PATCH", f"/messages/{WORDS}", values)


def is_sent(org: Organization, more: int) -> bool:
    """Whether "tea" has so many messages more."""
    topic = org.node.state.topics.get((LOUNGE, "tea"))
    return topic is not None and topic.message_count == 3 + more


def gone(*message_ids: int) -> Callable[[Organization], bool]:
    """The messages of "tea" are those that are left."""

    def check(org: Organization) -> bool:
        topic = org.node.state.topics.get((LOUNGE, "tea"))
        return topic is not None and topic.message_count == 3 - len(message_ids)

    return check


DELETE = Request("ann", "DELETE", f"/messages/{WORDS}")

RACES = {
    # What has a name of its own
    "two channels of one name": Race(
        *twice("POST", "/channels/create", "ann", "ben", name="den", subscribers=[]),
        ONE,
        named("channels", "den"),
    ),
    "a channel by subscribing to it": Race(
        *twice("POST", "/users/me/subscriptions", "ann", "ben", subscriptions=[{"name": "den"}]),
        BOTH,
        named("channels", "den"),
    ),
    "two channels take one name": Race(
        Request("ann", "PATCH", f"/streams/{LOUNGE}", {"new_name": "den"}),
        Request("ann", "PATCH", f"/streams/{ATTIC}", {"new_name": "Den"}),
        ONE,
    ),
    "two folders of one name": Race(
        *twice("POST", "/channel_folders/create", "ann", name="work", description=""),
        ONE,
        named("channel_folders", "work"),
    ),
    "two groups of one name": Race(
        *twice("POST", "/user_groups/create", "ann", "ben", name="x", description="", members=[]),
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
            stream_names=["lounge"],
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
        Request("ann", "PATCH", "/users/{ben}", {"new_email": "same@example.com"}),
        Request("ann", "PATCH", "/users/{cleo}", {"new_email": "same@example.com"}),
        ONE,
    ),
    "two equal views": Race(
        *twice("POST", "/navigation_views", "ben", fragment="inbox", is_pinned=True), ONE
    ),
    # Messages
    "the same reaction twice": Race(
        *twice("POST", f"/messages/{WORDS}/reactions", "ben", emoji_name="tada"), ONE
    ),
    "the same reaction of two people": Race(
        *twice("POST", f"/messages/{WORDS}/reactions", "ben", "ann", emoji_name="tada"), BOTH
    ),
    "a reaction and a deletion": Race(
        Request("ben", "POST", f"/messages/{WORDS}/reactions", {"emoji_name": "tada"}),
        DELETE,
        SOME,
        gone(WORDS),
    ),
    "a topic goes to two places": Race(
        moved("coffee"),
        moved("cocoa"),
        BOTH,
        lambda org: (LOUNGE, "tea") not in org.node.state.topics,
    ),
    "a topic goes to one place twice": Race(moved("coffee"), moved("coffee"), ONE),
    "a topic goes to another channel and to another name": Race(
        moved("coffee"), moved("tea", stream_id=ATTIC), BOTH
    ),
    "a topic goes and one of its messages is deleted": Race(moved("coffee"), DELETE, SOME),
    "an edit and a deletion": Race(
        Request("ben", "PATCH", f"/messages/{WORDS}", {"content": "other"}),
        DELETE,
        SOME,
        gone(WORDS),
    ),
    "two edits": Race(*twice("PATCH", f"/messages/{WORDS}", "ben", content="other"), BOTH),
    "two deletions": Race(DELETE, DELETE, ONE, gone(WORDS)),
    "a deletion and that of the topic": Race(
        DELETE,
        Request("ann", "POST", f"/streams/{LOUNGE}/delete_topic", {"topic_name": "tea"}),
        SOME,
        lambda org: (LOUNGE, "tea") not in org.node.state.topics,
    ),
    "a vote and a deletion": Race(
        Request(
            "ann",
            "POST",
            "/submessage",
            {"message_id": POLL, "msg_type": "widget", "content": VOTE},
        ),
        Request("ann", "DELETE", f"/messages/{POLL}"),
        SOME,
        gone(POLL),
    ),
    "a star and a deletion": Race(
        Request(
            "ben",
            "POST",
            "/messages/flags",
            {"messages": [WORDS], "op": "add", "flag": "starred"},
        ),
        DELETE,
        SOME,
        gone(WORDS),
    ),
    "a reminder and a deletion": Race(
        Request(
            "ben",
            "POST",
            "/reminders",
            {"message_id": WORDS, "scheduled_delivery_timestamp": FAR},
        ),
        DELETE,
        SOME,
        gone(WORDS),
    ),
    "a message to a channel that is archived": Race(
        Request("ben", "POST", "/messages", {**LATER, "content": "now"}),
        Request("ann", "DELETE", f"/streams/{LOUNGE}"),
        SOME,
        lambda org: org.node.state.channels[LOUNGE].is_archived,
    ),
    "a file is deleted twice": Race(*twice("DELETE", "/attachments/1", "ben"), ONE),
    "a file is linked and deleted": Race(
        Request("ben", "POST", "/messages", {**LATER, "content": "see /user_uploads/{file}"}),
        Request("ben", "DELETE", "/attachments/1"),
        SOME,
    ),
    # People
    "one joins a group twice": Race(
        *twice("POST", "/user_groups/{group}/members", "ann", add=["{cleo}"]), ONE
    ),
    "a group is in another, and the other in it": Race(
        Request("ann", "POST", "/user_groups/{group}/subgroups", {"add": ["{other}"]}),
        Request("ann", "POST", "/user_groups/{other}/subgroups", {"add": ["{group}"]}),
        ONE,
    ),
    "one is subscribed twice": Race(
        *twice(
            "POST",
            "/users/me/subscriptions",
            "ann",
            subscriptions=[{"name": "lounge"}],
            principals=["{cleo}"],
        ),
        BOTH,
        lambda org: org.node.state.is_subscribed(org["cleo"].user_id, LOUNGE),
    ),
    "one is unsubscribed twice": Race(
        *twice(
            "DELETE",
            "/users/me/subscriptions",
            "ann",
            subscriptions=["lounge"],
            principals=["{ben}"],
        ),
        BOTH,
        lambda org: not org.node.state.is_subscribed(org["ben"].user_id, LOUNGE),
    ),
    "two owners take it from each other": Race(
        Request("ann", "PATCH", "/users/{dan}", {"role": 400}),
        Request("dan", "PATCH", "/users/{ann}", {"role": 400}),
        ONE,
        lambda org: sum(user.role == 100 for user in org.node.state.users) == 1,
    ),
    "two owners deactivate each other": Race(
        Request("ann", "DELETE", "/users/{dan}"),
        Request("dan", "DELETE", "/users/{ann}"),
        ONE,
    ),
    # What is one's own
    "two edits of what is scheduled": Race(
        Request("ben", "PATCH", "/scheduled_messages/1", {"content": "one"}),
        Request("ben", "PATCH", "/scheduled_messages/1", {"topic": "other"}),
        BOTH,
    ),
    "what is scheduled is deleted twice": Race(
        *twice("DELETE", "/scheduled_messages/1", "ben"), ONE
    ),
    "what is scheduled is sent twice": Race(
        *twice("POST", "/scheduled_messages/1/send", "ben"), ONE, lambda org: is_sent(org, 1)
    ),
    "what is scheduled is sent and deleted": Race(
        Request("ben", "POST", "/scheduled_messages/1/send"),
        Request("ben", "DELETE", "/scheduled_messages/1"),
        ONE,
    ),
    "what is scheduled is sent and edited": Race(
        Request("ben", "POST", "/scheduled_messages/1/send"),
        Request("ben", "PATCH", "/scheduled_messages/1", {"content": "one"}),
        SOME,
        lambda org: is_sent(org, 1) and not len(org.node.state.tables["scheduled_messages"]),
    ),
    "a reminder is deleted twice": Race(*twice("DELETE", "/reminders/1", "ben"), ONE),
    "a draft is deleted twice": Race(*twice("DELETE", "/drafts/1", "ben"), ONE),
    "a draft is edited and deleted": Race(
        Request(
            "ben",
            "PATCH",
            "/drafts/1",
            {"draft": {"type": "", "to": [], "topic": "", "content": "b"}},
        ),
        Request("ben", "DELETE", "/drafts/1"),
        SOME,
        lambda org: not len(org.node.state.tables["drafts"]),
    ),
    "a snippet is deleted twice": Race(*twice("DELETE", "/saved_snippets/1", "ben"), ONE),
}


async def something_of_everything(config: Config) -> None:
    """An organization in which there is something to be first at."""
    async with founded(config, others=OTHERS) as org:
        ann, ben = org["ann"], org["ben"]
        assert (await ann.patch(f"/users/{org['dan'].user_id}", role=100)).ok
        await org.channel("lounge", "ann", "ben")
        await org.channel("attic", "ann", "ben")
        path = await ben.upload()
        await ben.send("lounge", "tea", "/poll When?\n- now\n- later")
        await ben.send("lounge", "tea", "words")
        await ben.send("lounge", "tea", f"see [a file](/user_uploads/{path})")
        for name in ("cooks", "bakers"):
            assert (await ann.post("/user_groups/create", name=name, description="", members=[])).ok
        at = {"scheduled_delivery_timestamp": FAR}
        assert (await ben.post("/scheduled_messages", **LATER, **at)).ok
        assert (await ben.post("/reminders", message_id=NOTE, **at)).ok
        draft = {"type": "", "to": [], "topic": "", "content": "a"}
        assert (await ben.post("/drafts", drafts=[draft])).ok
        assert (await ben.post("/saved_snippets", title="t", content="c")).ok


@pytest.fixture
async def org(config: Config) -> AsyncIterator[Organization]:
    await databases.copied(config, something_of_everything)
    async with reopened(config) as organization:
        yield organization


def names_in(org: Organization) -> dict[str, Any]:
    """What the requests name, by the names that they call it."""
    ids = {name: person.user_id for name, person in org.people.items()}
    groups = {group.name: group.id for group in org.node.state.groups}
    (file,) = org.node.state.attachments
    return {**ids, "group": groups["cooks"], "other": groups["bakers"], "file": file.path}


def filled(value: Any, names: dict[str, Any]) -> Any:
    """The value with the names in it filled in."""
    text = json.dumps(value)
    for name, one in names.items():
        text = text.replace(f'"{{{name}}}"', json.dumps(one)).replace(f"{{{name}}}", str(one))
    return json.loads(text)


async def asked(org: Organization, request: Request, names: dict[str, Any]) -> Reply:
    person, path = org[request.who], filled(request.path, names)
    if request.files:
        return await person.raw(request.method, path, files=request.files)
    return await person.request(request.method, path, **filled(request.values, names))


@pytest.mark.parametrize("race", RACES)
@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
async def test_of_two_at_one_moment_one_is_first(
    org: Organization, race: str, turned: bool
) -> None:
    names = names_in(org)
    case = RACES[race]
    pair = [case.other, case.one] if turned else [case.one, case.other]
    replies = await asyncio.gather(*(asked(org, request, names) for request in pair))
    assert all(reply.status < 500 for reply in replies), replies
    assert sum(reply.status == 200 for reply in replies) in case.succeed, replies
    assert case.after(org)
    # The server deletes files by itself, and writes that down.
    await until(lambda: not len(org.node.state.removed_files))
    await org.node.log.settled()
    await assert_folds(org.node.log)
