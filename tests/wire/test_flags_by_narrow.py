"""Matching messages against a narrow, and flagging many messages."""

import asyncio
from typing import Any

import pytest

from tertulia.domain.messages import flags
from tertulia.model.changes import Subscribed, Unsubscribed
from tertulia.service.config import Config
from tertulia.state import unread
from tertulia.wire.api.messages import flags as wire_flags
from tests.support import Organization, Person, open_organization, row, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")


async def unread_now(who: Person) -> dict[str, Any]:
    found: dict[str, Any] = (await who.register()).data["unread_msgs"]
    return found


def term(operator: str, operand: Any, *, negated: bool = False) -> dict[str, Any]:
    return {"operator": operator, "operand": operand, "negated": negated}


# Matching


async def test_messages_are_matched_against_a_narrow(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    first = await org["ann"].send("lounge", "tea & cake", "green **tea** <i>")
    second = await org["ann"].send("lounge", "other", "coffee")
    ids = [first, second, 999_999]

    async def matches(*narrow: dict[str, Any]) -> dict[str, Any]:
        reply = await org["ben"].get("/messages/matches_narrow", msg_ids=ids, narrow=list(narrow))
        found: dict[str, Any] = reply.ok["messages"]
        return found

    assert await matches(term("topic", "other")) == {
        str(second): {"match_content": "<p>coffee</p>", "match_subject": "other"}
    }
    found = await matches(term("search", "tea"))
    assert list(found) == [str(first)]
    marked = '<span class="highlight">tea</span>'
    assert marked in found[str(first)]["match_content"]
    assert found[str(first)]["match_subject"] == f"{marked} &amp; cake"
    assert list(await matches()) == [str(first), str(second)]
    assert await matches(term("is", "starred")) == {}


async def test_inaccessible_messages_match_no_narrow(org: Organization) -> None:
    await org.channel("den", "ann", is_private=True)
    hidden = [await org["ann"].send("den", "t", "x"), await org["ann"].write([1], "x")]
    open_ = await org.channel("lounge", "ann")
    shown = await org["ann"].send(open_, "t", "x")
    reply = await org["ben"].get(
        "/messages/matches_narrow",
        msg_ids=[*hidden, shown],
        narrow=[term("sender", "ann@example.com")],
    )
    assert list(reply.ok["messages"]) == [str(shown)]


@rows(
    ("sent", "code"),
    [
        ({"narrow": []}, "REQUEST_VARIABLE_MISSING"),
        ({"msg_ids": [1]}, "REQUEST_VARIABLE_MISSING"),
        ({"msg_ids": "1", "narrow": []}, "REQUEST_VARIABLE_INVALID"),
        ({"msg_ids": ["x"], "narrow": []}, "REQUEST_VARIABLE_INVALID"),
        ({"msg_ids": [2**60], "narrow": []}, "REQUEST_VARIABLE_INVALID"),
        ({"msg_ids": [1], "narrow": "x"}, "REQUEST_VARIABLE_INVALID"),
        ({"msg_ids": [1], "narrow": [["none", "x"]]}, "BAD_NARROW"),
        ({"msg_ids": list(range(5001)), "narrow": []}, "BAD_REQUEST"),
    ],
)
async def test_matching_needs_ids_and_a_narrow(
    sqlite_org: Organization, sent: dict[str, Any], code: str
) -> None:
    (await sqlite_org["ann"].get("/messages/matches_narrow", **sent)).refused(code)


# Flags for all messages of a narrow


async def test_a_flag_is_set_on_a_page_of_a_narrow(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ids = [await org["ann"].send("lounge", "t", str(n)) for n in range(5)]
    await org["ann"].send("lounge", "other", "x")
    ben = org["ben"]
    listener = await ben.register()
    sent = {"narrow": [term("topic", "t")], "op": "add", "flag": "read"}
    page = {"anchor": ids[1], "num_before": 0, "num_after": 2}
    answer = (await ben.post("/messages/flags/narrow", **page, **sent)).ok
    expected = {
        "processed_count": 3,
        "updated_count": 3,
        "first_processed_id": ids[1],
        "last_processed_id": ids[3],
        "found_oldest": False,
        "found_newest": False,
        "ignored_because_not_subscribed_channels": [],
    }
    assert {name: answer[name] for name in expected} == expected
    (event,) = await listener.events()
    assert (event["messages"], event["flag"], event["all"]) == (ids[1:4], "read", False)
    page = {"anchor": ids[1], "num_before": 9, "num_after": 9, "include_anchor": True}
    answer = (await ben.post("/messages/flags/narrow", **page, **sent)).ok
    assert (answer["processed_count"], answer["updated_count"]) == (5, 2)
    assert (answer["found_oldest"], answer["found_newest"]) == (True, True)
    assert (await unread_now(ben))["count"] == 1
    sent["op"] = "remove"
    newest = {"anchor": "newest", "num_before": 2, "num_after": 0}
    answer = (await ben.post("/messages/flags/narrow", **newest, **sent)).ok
    assert (answer["updated_count"], answer["last_processed_id"]) == (2, ids[4])
    assert (await unread_now(ben))["count"] == 3


PAGES: list[tuple[dict[str, Any], list[int]]] = [
    ({"anchor": "oldest", "num_before": 0, "num_after": 2}, [0, 1]),
    ({"anchor": "newest", "num_before": 2, "num_after": 0}, [2, 3]),
    ({"anchor": "first_unread", "num_before": 0, "num_after": 1}, [1, 2]),
    ({"anchor": "@1", "num_before": 1, "num_after": 0}, [0, 1]),
    ({"anchor": "@1", "num_before": 1, "num_after": 0, "include_anchor": False}, [0]),
    ({"anchor": "@1", "num_before": 0, "num_after": 1, "include_anchor": False}, [2]),
    ({"anchor": "date", "anchor_date": "2000-01-01", "num_before": 0, "num_after": 0}, [0]),
    ({"anchor": 10**17, "num_before": 1, "num_after": 1}, [3]),
    ({"anchor": 0, "num_before": 5, "num_after": 0}, []),
]
"""Pages, and the numbers of their messages."""


async def test_a_page_is_around_an_anchor(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    ids = [await org["ann"].send("lounge", "t", str(n)) for n in range(4)]
    ben, star = org["ben"], {"op": "add", "flag": "starred"}
    assert (await ben.post("/messages/flags", messages=ids[:1], op="add", flag="read")).ok
    for page, processed in PAGES:
        with row(page):
            anchor = str(page["anchor"])
            named = {"anchor": ids[int(anchor[1:])]} if anchor.startswith("@") else {}
            answer = (
                await ben.post("/messages/flags/narrow", **page | named, narrow=[], **star)
            ).ok
            expected = [ids[index] for index in processed]
            assert answer["processed_count"] == answer["updated_count"] == len(expected)
            assert answer["first_processed_id"] == (expected[0] if expected else None)
            assert answer["last_processed_id"] == (expected[-1] if expected else None)
            assert (await ben.register()).data["starred_messages"] == expected
            unstar = {**star, "op": "remove", "messages": ids}
            assert (await ben.post("/messages/flags", **unstar)).ok


async def test_pages_cover_everything_unread(org: Organization) -> None:
    """As clients mark a narrow as read: page by page, until the newest message."""
    await org.channel("lounge", "ann", "ben")
    ids = [await org["ann"].send("lounge", "t", str(n)) for n in range(5)]
    narrow = [term("is", "unread"), term("channel", "lounge")]
    anchor: Any = "oldest"
    rounds = 0
    while True:
        answer = (
            await org["ben"].post(
                "/messages/flags/narrow",
                anchor=anchor,
                include_anchor=anchor == "oldest",
                num_before=0,
                num_after=2,
                narrow=narrow,
                op="add",
                flag="read",
            )
        ).ok
        rounds += 1
        if answer["found_newest"]:
            break
        anchor = answer["last_processed_id"]
    assert rounds == 3
    assert anchor in ids
    assert (await unread_now(org["ben"]))["count"] == 0


async def test_unsubscribed_channels_stay_read(org: Organization) -> None:
    channel = await org.channel("lounge", "ann")
    sent = await org["ann"].send("lounge", "t", "x")
    page = {"anchor": sent, "num_before": 0, "num_after": 0, "narrow": [term("channel", channel)]}
    answer = (await org["ben"].post("/messages/flags/narrow", **page, op="remove", flag="read")).ok
    assert answer["ignored_because_not_subscribed_channels"] == [channel]
    assert (answer["processed_count"], answer["updated_count"]) == (1, 0)


async def test_archived_channels_stay_read(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben")
    sent = await org["ann"].send("lounge", "t", "x")
    assert (await org["ben"].post("/mark_all_as_read")).ok
    assert (await org["ann"].delete(f"/streams/{channel}")).ok
    listener = await org["ben"].register()
    answer = (
        await org["ben"].post("/messages/flags", messages=[sent], op="remove", flag="read")
    ).ok
    assert answer["ignored_because_not_subscribed_channels"] == [channel]
    assert await listener.events() == []


PAGE: dict[str, Any] = {
    "anchor": "newest",
    "num_before": 1,
    "num_after": 0,
    "narrow": [],
    "op": "add",
    "flag": "read",
}


@rows("name", PAGE)
async def test_every_page_parameter_is_required(sqlite_org: Organization, name: str) -> None:
    sent = {key: value for key, value in PAGE.items() if key != name}
    reply = await sqlite_org["ann"].post("/messages/flags/narrow", **sent)
    assert reply.refused("REQUEST_VARIABLE_MISSING")["var_name"] == name


@rows(
    ("sent", "code"),
    [
        ({"anchor": "middle"}, "BAD_REQUEST"),
        ({"anchor": "date"}, "BAD_REQUEST"),
        ({"num_before": 1, "num_after": 1, "include_anchor": False}, "BAD_REQUEST"),
        ({"num_before": -1}, "REQUEST_VARIABLE_INVALID"),
        ({"num_after": "x"}, "REQUEST_VARIABLE_INVALID"),
        ({"op": "toggle"}, "REQUEST_VARIABLE_INVALID"),
        ({"include_anchor": "x"}, "REQUEST_VARIABLE_INVALID"),
        ({"narrow": {}}, "BAD_NARROW"),
        ({"narrow": [["none", "x"]]}, "BAD_NARROW"),
        ({"flag": "mentioned"}, "BAD_REQUEST"),
        ({"flag": "has_alert_word"}, "BAD_REQUEST"),
        ({"flag": "none"}, "BAD_REQUEST"),
    ],
)
async def test_an_invalid_page_is_refused(
    sqlite_org: Organization, sent: dict[str, Any], code: str
) -> None:
    (await sqlite_org["ann"].post("/messages/flags/narrow", **{**PAGE, **sent})).refused(code)


async def test_a_page_that_is_too_large_is_shortened(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire_flags, "MAX_PAGE", 4)
    await org.channel("lounge", "ann", "ben")
    sent = [await org["ann"].send("lounge", "t", str(n)) for n in range(9)]
    star = {"narrow": [["topic", "t"]], "op": "add", "flag": "starred"}
    for before, after, first, last in [(9, 9, 2, 6), (9, 1, 1, 5), (1, 2**31, 3, 7), (9, 0, 0, 4)]:
        page = {"anchor": str(sent[4]), "num_before": before, "num_after": after}
        done = (await org["ben"].post("/messages/flags/narrow", **page, **star)).ok
        assert (done["first_processed_id"], done["last_processed_id"]) == (sent[first], sent[last])
        assert (done["found_oldest"], done["found_newest"]) == (first == 0, False)
    whole = {"anchor": "newest", "num_before": 2**31, "num_after": 2**31, "narrow": []}
    assert (await org["ben"].post("/messages/flags/narrow", **whole, op="add", flag="read")).ok


# Everything


async def some_messages(org: Organization) -> tuple[int, int]:
    """Ben's unread messages, in two channels and direct."""
    lounge = await org.channel("lounge", "ann", "ben")
    garden = await org.channel("garden", "ann", "ben")
    for topic in ("tea", "TEA", "", "cake"):
        await org["ann"].send("lounge", topic, "x")
    await org["ann"].send("garden", "tea", "x @**all**")
    await org["ann"].write([org["ben"].user_id], "psst")
    return lounge, garden


async def test_everything_is_marked_as_read(org: Organization, config: Config) -> None:
    await some_messages(org)
    ben = org["ben"]
    listener, other = await ben.register(), await org["ann"].register()
    assert (await ben.post("/mark_all_as_read")).ok["complete"] is True
    (event,) = await listener.events()
    assert (event["op"], event["operation"], event["flag"]) == ("add", "add", "read")
    assert (event["messages"], event["all"]) == ([], True)
    assert await other.events() == []
    assert (await unread_now(ben))["count"] == 0
    await org["ann"].write([ben.user_id], "one more")
    async with open_organization(config) as later:
        assert (await unread_now(later["ben"]))["count"] == 1
        assert (await later["ben"].post("/mark_all_as_read")).ok["complete"] is True
        assert (await unread_now(later["ben"]))["count"] == 0


async def test_very_many_messages_are_marked_in_several_steps(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flags, "MAX_MARKED", 4)
    await some_messages(org)
    ben = org["ben"]
    listener = await ben.register()
    assert (await ben.post("/mark_all_as_read")).ok["complete"] is False
    left = await unread_now(ben)
    assert left["count"] == 2
    assert (await ben.post("/mark_all_as_read")).ok["complete"] is True
    first, second = await listener.events()
    assert (len(first["messages"]), first["all"]) == (4, False)
    oldest = [ids for kind in ("pms", "huddles", "streams") for ids in left[kind]]
    remaining = [number for one in oldest for number in one["unread_message_ids"]]
    assert max(remaining) < min(first["messages"])
    assert (second["messages"], second["all"]) == ([], True)


async def test_messages_that_arrive_while_all_are_marked_are_alike_for_all_clients(
    org: Organization,
) -> None:
    """A client that gets an event for `all` marks what it has by then, and so does the server."""
    await org.channel("lounge", "ann", "ben")
    for n in range(10):
        await org["ann"].send("lounge", "t", str(n))
    ben = org["ben"]
    listener = await ben.register()
    await asyncio.gather(
        *(org["ann"].send("lounge", "t", "more") for _ in range(5)),
        ben.post("/mark_all_as_read"),
        *(org["ann"].send("lounge", "t", "later") for _ in range(5)),
    )
    kept: set[int] = set()
    for event in await listener.events():
        if event["type"] == "message":
            kept.add(event["message"]["id"])
        else:
            kept.clear()
    told = (await unread_now(ben))["streams"]
    assert kept == {m for topic in told for m in topic["unread_message_ids"]}


async def test_a_channel_is_marked_as_read(org: Organization) -> None:
    lounge, garden = await some_messages(org)
    ben = org["ben"]
    listener = await ben.register()
    assert (await ben.post("/mark_stream_as_read", stream_id=lounge)).ok
    (event,) = await listener.events()
    assert (len(event["messages"]), event["all"]) == (4, False)
    told = await unread_now(ben)
    assert [topic["stream_id"] for topic in told["streams"]] == [garden]
    assert told["count"] == 2
    assert (await ben.post("/mark_stream_as_read", stream_id=lounge)).ok
    assert await listener.events() == []


async def test_a_topic_is_marked_as_read(org: Organization) -> None:
    lounge, _ = await some_messages(org)
    ben = org["ben"]
    table = (("tea", 2), ("Tea", 2), (" tea ", 2), ("", 1), ("general chat", 1))
    for topic, count in table:
        with row(topic):
            listener = await ben.register()
            assert (await ben.post("/mark_topic_as_read", stream_id=lounge, topic_name=topic)).ok
            (event,) = await listener.events()
            assert len(event["messages"]) == count
            assert (await unread_now(ben))["count"] == 6 - count
            again = {"messages": event["messages"], "op": "remove", "flag": "read"}
            assert (await ben.post("/messages/flags", **again)).ok


async def test_an_unknown_topic_or_channel_cannot_be_marked(org: Organization) -> None:
    lounge, _ = await some_messages(org)
    den = await org.channel("den", "ann", is_private=True)
    await org["ann"].send("den", "secret", "x")
    ben = org["ben"]
    (await ben.post("/mark_topic_as_read", stream_id=lounge, topic_name="none")).refused()
    for path, more in (
        ("/mark_stream_as_read", {}),
        ("/mark_topic_as_read", {"topic_name": "secret"}),
    ):
        for channel in (den, 999_999):
            reply = await ben.post(path, stream_id=channel, **more)
            reply.refused("STREAM_DOES_NOT_EXIST")
        (await ben.post(path, **more)).refused("REQUEST_VARIABLE_MISSING")
        (await ben.post(path, stream_id="x", **more)).refused("REQUEST_VARIABLE_INVALID")
        (await org.nobody.post(path, stream_id=lounge, **more)).refused("UNAUTHORIZED", 401)
    (await org.nobody.post("/mark_all_as_read")).refused("UNAUTHORIZED", 401)


async def test_a_topic_of_a_protected_history_exists_for_its_recipients(
    org: Organization,
) -> None:
    den = await org.channel("den", "ann", is_private=True, history_public=False)
    early = await org["ann"].send("den", "early", "x")
    joined = Subscribed(
        channel_id=den,
        colors={org["ben"].user_id: "#76ce90"},
        after=early,
        gained=(org["ben"].user_id,),
    )
    await org.do(joined)
    await org["ann"].send("den", "later", "x")
    reply = await org["ben"].post("/mark_topic_as_read", stream_id=den, topic_name="early")
    reply.refused()
    assert (await org["ben"].post("/mark_topic_as_read", stream_id=den, topic_name="later")).ok


async def test_marking_a_left_channel_changes_nothing(org: Organization) -> None:
    lounge, _ = await some_messages(org)
    ben = org["ben"]
    left = Unsubscribed(channel_id=lounge, user_ids=(ben.user_id,), until=99, name="lounge")
    await org.do(left)
    listener = await ben.register()
    assert (await ben.post("/mark_stream_as_read", stream_id=lounge)).ok
    assert await listener.events() == []


# Eviction of unused read state


async def test_read_state_unused_for_a_long_time_is_evicted(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unread, "ROOM", 0)
    lounge = await org.channel("lounge", "ann", "ben")
    for name in ("ann", "ben", "cleo", "gus"):
        await org.channel(name, name)
    await org["ann"].send("lounge", "tea", "hello")
    await unread_now(org["ben"])
    kept, ben = org.node.state.unread, org["ben"].user_id
    assert ben in kept.readers
    assert lounge in kept.channels
    for _ in range(8):
        await unread_now(org["gus"])
    assert set(kept.readers) == {org["gus"].user_id}
    assert lounge not in kept.channels
    # Messages that arrive in the meantime are unread anyway.
    await org["ann"].send("lounge", "tea", "again")
    assert (await unread_now(org["ben"]))["count"] == 2


async def test_read_state_needed_by_a_waiting_command_is_kept_or_loaded_again(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command's load evicts what another one is about to use."""
    monkeypatch.setattr(unread, "ROOM", 0)
    people = [org[name] for name in ("ann", "ben", "cleo")]
    await org.channel("lounge", "ann", "ben", "cleo")
    for person in people:
        await person.send("lounge", "tea", "hello")
        await person.write([people[0].user_id, people[1].user_id], "hello")
    counts = [(await unread_now(person))["count"] for person in people]
    assert all(counts)
    replies: list[Any] = await asyncio.gather(
        *(person.post("/mark_all_as_read") for person in people),
        *(person.register() for person in people),
    )
    for reply in replies[: len(people)]:
        assert reply.ok["complete"]
    assert [(await unread_now(person))["count"] for person in people] == [0, 0, 0]
