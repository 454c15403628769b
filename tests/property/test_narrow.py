"""Narrows, compared with a plain filter over all messages that the reader can fetch."""

import json
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given

from tertulia.domain import channel_access, permissions
from tertulia.model.messages import Flag
from tertulia.model.user_topics import Visibility
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.store import message_marks, queries
from tests.property.histories import PEOPLE, TOPICS, History, on_a_new_database, picture
from tests.property.test_state import both, examples, new_database, seeds
from tests.support import Listener, Person

VIEWERS = ("ann", "cleo", "gus", "robo")
WORDS = ("tea", "teapot", "Tea", "café", "cafe", "host.example.com", "東京タワー", "東京", "green")
SEARCHES = (
    "tea",
    '"tea"',
    "CAFE",
    "example.com",
    "東京",
    "京タ",
    "green tea",
    '"green tea"',
    "xyz",
)
LINK = re.compile(r'<a (?!class="(stream|message-link))')


async def talk(history: History) -> None:
    """Someone sends a message that can be searched for or has an attachment, link, or reaction."""
    rng, org = history.rng, history.org
    author = history.who()
    text = " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))
    kind = rng.random()
    if kind < 0.2:
        path = await org[author].upload("red.png", picture(), "image/png")
        text += f"\n\n[red](/user_uploads/{path})"
    elif kind < 0.3:
        text += f" @**{rng.choice(['Ann', 'Cleo', 'Gus'])}**"
    elif kind < 0.4:
        text += " https://example.com/pictures/a.png"
    channel = history.channel()
    where: dict[str, Any] = {"type": "channel", "to": channel and channel.id}
    where["topic"] = rng.choice([*TOPICS, "green tea"])
    if rng.random() < 0.3:
        where = {"type": "direct", "to": [org[n].user_id for n in rng.sample(PEOPLE, 2)]}
    reply = await org[author].post("/messages", **where, content=text)
    if history.accepted(reply):
        history.sent.append(reply.body["id"])


async def attend(history: History) -> None:
    """Someone stars, reacts to, marks as unread, mutes, or follows something."""
    rng, org = history.rng, history.org
    who, mid = org[history.who()], rng.choice(history.sent or [1])
    flag = {"messages": [mid], "op": rng.choice(["add", "remove"])}
    match rng.randint(0, 3):
        case 0:
            history.accepted(await who.post("/messages/flags", **flag, flag="starred"))
        case 1:
            history.accepted(await who.post("/messages/flags", **flag, flag="read"))
        case 2:
            history.accepted(await who.post(f"/messages/{mid}/reactions", emoji_name="tada"))
        case _:
            words = {"alert_words": ["tea", "lunch"]}
            history.accepted(await who.post("/users/me/alert_words", **words))


# The plain filter


@dataclass
class Reader:
    """A person and all messages that they can read, fetched one by one."""

    history: History
    person: Person
    messages: dict[int, dict[str, Any]] = field(default_factory=dict)
    sources: dict[int, str] = field(default_factory=dict)
    flags: dict[int, dict[int, Flag]] = field(default_factory=dict)
    """Everyone's flags, by user and message."""
    opening: set[int] = field(default_factory=set)
    """Messages that gave their readers access to a file, which may have been deleted since."""

    @property
    def state(self) -> State:
        return self.history.state

    async def look(self) -> None:
        ids = range(1, self.state.last_message_id + 1)
        for mid in ids:
            reply = await self.person.get(f"/messages/{mid}", allow_empty_topic_name=True)
            if reply.status == 200:
                self.messages[mid] = reply.body["message"]
                self.sources[mid] = reply.body["raw_content"]
        store = self.history.org.node.store
        stored = await store.read(queries.messages, ids)
        self.opening = {message.id for message in stored if message.has_attachment}
        for user in self.state.users:
            relations = await store.read(message_marks.relations, user.id, ids)
            self.flags[user.id] = {mid: one.flags for mid, one in relations.items()}

    def received(self, message: dict[str, Any]) -> bool:
        has_record = self.flags[self.person.user_id][message["id"]] & Flag.RECORD
        return "historical" not in message["flags"] or bool(has_record)

    def visibility(self, message: dict[str, Any]) -> Visibility:
        """The reader's visibility policy for the message's topic."""
        for topic in self.state.user_topics.of_user[self.person.user_id]:
            if (topic.channel_id, topic.key) == (channel_of(message), key_of(message)):
                return topic.visibility
        return Visibility.INHERIT

    def is_muted(self, message: dict[str, Any]) -> bool:
        said = self.visibility(message)
        subscription = self.state.subscription(self.person.user_id, channel_of(message) or 0)
        if said is Visibility.MUTED or subscription is None or not subscription.is_active:
            return said is Visibility.MUTED
        heard = said in {Visibility.UNMUTED, Visibility.FOLLOWED}
        return subscription.is_muted and not heard


Message = dict[str, Any]
Holds = Callable[[Message], bool]


def channel_of(message: Message) -> int | None:
    return message.get("stream_id")


def key_of(message: Message) -> str:
    return str(message["subject"]).casefold()


def people_of(message: Message) -> set[int]:
    """The participants of a direct message; empty for a channel message."""
    if message["type"] == "stream":
        return set()
    return {one["id"] for one in message["display_recipient"]}


def has_any(message: Message, *flags: str) -> bool:
    return bool(set(message["flags"]) & set(flags))


def says(text: str, phrase: str) -> bool:
    """Whether the text contains the phrase at the start of a word. A quoted phrase matches whole
    words."""
    bare = phrase.strip('"')
    plain, wanted = (one.casefold().replace("é", "e") for one in (text, bare))
    if not wanted.isascii():
        return wanted in plain
    end = r"(?![a-z0-9])" if phrase != bare else ""
    return re.search(rf"(?<![a-z0-9]){re.escape(wanted)}{end}", plain) is not None


def terms_at_random(reader: Reader, rng: random.Random) -> list[tuple[str, Any, Holds | None]]:
    """A term of every kind: its operator, operand, and predicate, which is None if the term is
    refused."""
    state, me = reader.state, reader.person.user_id
    user = state.users[me]
    other = reader.history.org[rng.choice(PEOPLE)].user_id
    mid = rng.randint(1, state.last_message_id + 1)
    channel = rng.choice(list(state.channels))
    topic, search = rng.choice([*TOPICS, "green tea", "none"]), rng.choice(SEARCHES)
    own = {me, other}
    three = [reader.history.org[name].user_id for name in rng.sample(PEOPLE, 2)]
    phrases = re.findall(r'"[^"]*"|\S+', search)

    def channels(wanted: Callable[[Any], bool]) -> Holds:
        ids = {
            one.id
            for one in state.channels
            if wanted(one) and channel_access.reads_whole_history(state, user, one)
        }
        return lambda m: channel_of(m) in ids

    def named(m: Message) -> bool:
        return channel_of(m) == channel.id

    sees = channel_access.sees_channel(state, user, channel)

    def about(*user_ids: int, holds: Holds) -> Holds | None:
        """Refused if the reader may not see one of these people."""
        knows_all = all(permissions.sees_user(state, user, state.users[one]) for one in user_ids)
        return holds if knows_all else None

    return [
        ("channel", rng.choice([channel.id, channel.name]), named if sees else None),
        ("channels", "public", channels(lambda one: not one.is_private)),
        ("channels", "web-public", channels(lambda one: one.is_web_public)),
        ("channels", "archived", channels(lambda one: one.is_archived)),
        ("topic", topic, lambda m: m["type"] == "stream" and key_of(m) == topic.casefold()),
        ("sender", other, about(other, holds=lambda m: m["sender_id"] == other)),
        ("dm", [other], about(other, holds=lambda m: people_of(m) == own)),
        ("dm", three, about(*three, holds=lambda m: people_of(m) == {me, *three})),
        ("dm-including", other, about(other, holds=lambda m: other in people_of(m))),
        (
            "group-pm-with",
            other,
            about(other, holds=lambda m: other in people_of(m) and len(people_of(m)) > 2),
        ),
        ("is", "dm", lambda m: m["type"] == "private"),
        ("is", "starred", lambda m: has_any(m, "starred")),
        ("is", "unread", lambda m: not has_any(m, "read")),
        (
            "is",
            "mentioned",
            lambda m: has_any(
                m, "mentioned", "stream_wildcard_mentioned", "topic_wildcard_mentioned"
            ),
        ),
        ("is", "alerted", lambda m: has_any(m, "has_alert_word")),
        ("is", "resolved", lambda m: m["type"] == "stream" and key_of(m).startswith("✔ ")),
        ("is", "followed", lambda m: reader.visibility(m) is Visibility.FOLLOWED),
        ("is", "muted", reader.is_muted),
        ("has", "link", lambda m: LINK.search(m["content"]) is not None),
        ("has", "image", lambda m: "message_inline_image" in m["content"]),
        ("has", "attachment", lambda m: m["id"] in reader.opening),
        ("has", "reaction", lambda m: bool(m["reactions"])),
        ("in", "home", lambda m: not reader.is_muted(m)),
        ("in", "all", lambda m: True),
        ("near", mid, lambda m: True),
        ("id", mid, lambda m: m["id"] == mid),
        (
            "search",
            search,
            lambda m: all(says(f"{m['subject']}\n{source(reader, m)}", one) for one in phrases),
        ),
        (
            "mentions",
            other,
            about(other, holds=lambda m: bool(reader.flags[other][m["id"]] & Flag.MENTIONED)),
        ),
        ("unheard", "of", None),
        ("is", "odd", None),
    ]


def source(reader: Reader, message: Message) -> str:
    return reader.sources[message["id"]]


@dataclass
class Narrow:
    """Terms, and what a plain filter finds with them."""

    terms: list[dict[str, Any]]
    expected: list[int] | None
    """None if refused."""
    readable: list[int] | None
    """The expected messages among all that can be read, received or not."""


def unless(negated: bool, holds: Holds) -> Holds:
    return lambda m: holds(m) is not negated


def narrow_at_random(reader: Reader, rng: random.Random, chosen: Sequence[Any]) -> Narrow:
    """The terms, some of them negated."""
    terms: list[dict[str, Any]] = []
    tests: list[Holds] = []
    is_refused = opens_channels = opens_all = False
    for operator, operand, holds in chosen:
        negated = rng.random() < 0.35
        terms.append({"operator": operator, "operand": operand, "negated": negated})
        if holds is None:
            is_refused = True
        elif operator in {"in", "near"}:
            tests.append(holds)
        else:
            tests.append(unless(negated, holds))
        if not negated:
            opens_channels |= operator in {"channel", "channels"}
            opens_all |= operator == "id"
    if is_refused:
        return Narrow(terms, None, None)
    readable = [mid for mid, m in sorted(reader.messages.items()) if all(one(m) for one in tests)]
    expected = [
        mid
        for mid in readable
        if opens_channels or opens_all or reader.received(reader.messages[mid])
    ]
    return Narrow(terms, expected, readable)


async def assert_found(reader: Reader, narrow: Narrow) -> None:
    person, text = reader.person, json.dumps(narrow.terms)
    ids = list(range(1, reader.state.last_message_id + 1))
    page = {"anchor": "newest", "num_before": 5000, "num_after": 0}
    reply = await person.get("/messages", **page, narrow=text)
    matches = await person.get("/messages/matches_narrow", msg_ids=ids, narrow=text)
    if narrow.expected is None:
        reply.refused("BAD_NARROW")
        matches.refused("BAD_NARROW")
        return
    found = [message["id"] for message in reply.ok["messages"]]
    assert found == narrow.expected, (person.email, text)
    among = sorted(int(mid) for mid in matches.ok["messages"])
    assert among == narrow.readable, (person.email, text)


async def assert_narrows(history: History) -> None:
    """Check every kind of term alone and some combinations, for every reader."""
    rng = random.Random(history.rng.random())
    for name in VIEWERS:
        reader = Reader(history, history.org[name])
        await reader.look()
        everything = Narrow(
            [],
            [mid for mid, m in sorted(reader.messages.items()) if reader.received(m)],
            sorted(reader.messages),
        )
        await assert_found(reader, everything)
        for term in terms_at_random(reader, rng):
            await assert_found(reader, narrow_at_random(reader, rng, [term]))
        for _ in range(12):
            terms = [t for t in terms_at_random(reader, rng) if t[2] is not None]
            chosen = rng.sample(terms, rng.randint(2, 4))
            await assert_found(reader, narrow_at_random(reader, rng, chosen))
        await assert_conversations(reader, rng)


async def assert_conversations(reader: Reader, rng: random.Random) -> None:
    """Check that `with` finds the conversation where its message is now."""
    page = {"anchor": "newest", "num_before": 5000, "num_after": 0}
    for mid in rng.sample(range(1, reader.state.last_message_id + 2), 3):
        reply = await reader.person.get("/messages", **page, narrow=[["with", str(mid)]])
        here = reader.messages.get(mid)
        if here is None:
            reply.refused("BAD_NARROW")
            continue
        place = (channel_of(here), key_of(here), people_of(here))
        expected = [
            m["id"]
            for m in reader.messages.values()
            if (channel_of(m), key_of(m), people_of(m)) == place
        ]
        assert [m["id"] for m in reply.ok["messages"]] == expected, (reader.person.email, mid)


@both
@examples(4)
@given(seed=seeds)
def test_every_narrow_finds_what_a_plain_filter_finds(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    async def check(history: History, config: Config) -> None:
        for _ in range(2):
            for _ in range(20):
                await history.run(1)
                await talk(history)
                await attend(history)
            await assert_narrows(history)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)


QUEUE_NARROWS: tuple[list[list[str]], ...] = (
    [["channel", "lounge"]],
    [["topic", "LUNCH"]],
    [["sender", "ben@example.com"]],
    [["is", "dm"]],
    [["is", "mentioned"]],
    [["is", "alerted"]],
    [["is", "unread"]],
    [["is", "resolved"]],
    [["channel", "lounge"], ["topic", "lunch"]],
    [["is", "dm"], ["is", "mentioned"]],
)


@both
@examples(2)
@given(seed=seeds)
def test_a_queue_s_narrow_passes_what_the_same_narrow_finds(
    request: pytest.FixtureRequest, kind: str, seed: int
) -> None:
    """While only messages are sent."""

    async def check(history: History, config: Config) -> None:
        for _ in range(10):
            await attend(history)
        queues: list[tuple[list[list[str]], Listener]] = [
            (narrow, await history.org[name].register(narrow=narrow, event_types=["message"]))
            for name in VIEWERS
            for narrow in QUEUE_NARROWS
            if name != "robo" and (name != "cleo" or narrow[0][0] != "channel")
        ]
        after = history.state.last_message_id
        for _ in range(25):
            await talk(history)
        for narrow, listener in queues:
            heard = {event["message"]["id"] for event in await listener.events()}
            page = {"anchor": after, "num_before": 0, "num_after": 5000, "include_anchor": False}
            reply = await listener.person.get("/messages", **page, narrow=narrow)
            found = {message["id"] for message in reply.ok["messages"]}
            assert heard == found, (listener.person.email, narrow)

    with new_database(request, kind) as url:
        on_a_new_database(url, seed, check)
