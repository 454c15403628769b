"""Scheduled messages."""

import asyncio
import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from tertulia.domain.messages import scheduled as scheduled_domain
from tertulia.domain.messages import sending as messages_domain
from tertulia.domain.organization.lifecycle import NOTIFICATION_BOT
from tertulia.jobs.due import messages_to_send
from tertulia.markup.render import Renderer
from tertulia.model.changes import RealmChanged, UserDeactivated, UserReactivated
from tertulia.model.messages import LinkPreview, Rendered
from tertulia.service.config import Config
from tertulia.state.decision import CommandContext
from tests.support import Organization, Person, open_organization, row
from tests.wire.personal_data import DAY, channel_id, later, listed, timed

PATH = "/scheduled_messages"


async def scheduled(person: Person) -> list[dict[str, Any]]:
    return await listed(person, PATH, "scheduled_messages")


async def schedule(org: Organization, who: str = "ann", **more: Any) -> int:
    """A message to the lounge in a minute. Returns the scheduled message's ID."""
    sent = {
        "type": "channel",
        "to": channel_id(org, "lounge"),
        "topic": "tea",
        "content": "Is it *ready*?",
        "scheduled_delivery_timestamp": later(org),
        **more,
    }
    scheduled_id: int = (await org[who].post(PATH, **sent)).ok["scheduled_message_id"]
    return scheduled_id


async def messages(person: Person, **parameters: Any) -> list[dict[str, Any]]:
    window = {"anchor": "newest", "num_before": 100, "num_after": 0, **parameters}
    found: list[dict[str, Any]] = (await person.get("/messages", **window)).ok["messages"]
    return found


@pytest.mark.parametrize("kind", ["channel", "stream"])
async def test_a_channel_message_is_stored_as_written(org: Organization, kind: str) -> None:
    lounge = await org.channel("lounge", "ann")
    at = later(org)
    made = await schedule(org, type=kind, scheduled_delivery_timestamp=at)
    assert await scheduled(org["ann"]) == [
        {
            "scheduled_message_id": made,
            "type": "stream",
            "to": lounge,
            "topic": "tea",
            "content": "Is it *ready*?",
            "rendered_content": "<p>Is it <em>ready</em>?</p>",
            "scheduled_delivery_timestamp": at,
            "failed": False,
        }
    ]


async def test_a_person_s_scheduled_text_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_domain, "MAX_TEXT", 5000)
    await org.channel("lounge", "ann", "ben")
    made = await schedule(org, content="x" * 2000)
    refused = await org["ann"].patch(f"{PATH}/{made}", content="x" * 3000)
    assert (refused.status, "too much space" in refused.body["msg"]) == (400, True)
    (await org["ann"].patch(f"{PATH}/{made}", content="x" * 2400)).ok
    message = await org["ann"].send("lounge", "t", "hi")
    remind = {"message_id": message, "scheduled_delivery_timestamp": later(org), "note": "x" * 1000}
    replies = [await org["ben"].post("/reminders", **remind) for _ in range(3)]
    assert [reply.status for reply in replies] == [200, 200, 400]


RECIPIENTS: list[tuple[list[str], list[str]]] = [
    (["ben"], ["ben"]),
    (["cleo", "ben"], ["ben", "cleo"]),
    (["ann", "ben"], ["ben"]),
    (["ann"], ["ann"]),
]
"""The given and the shown recipients."""


async def test_a_direct_message_is_stored_with_its_recipients(org: Organization) -> None:
    await org.channel("lounge", "ann")
    for kind in ["direct", "private"]:
        for to, shown in RECIPIENTS:
            with row(kind, to, shown):
                await schedule(
                    org, type=kind, to=[org[name].user_id for name in to], topic="ignored"
                )
                (waiting,) = await scheduled(org["ann"])
                assert (waiting["type"], waiting["to"]) == (
                    "private",
                    [org[n].user_id for n in shown],
                )
                assert "topic" not in waiting
                (await org["ann"].delete(f"{PATH}/{waiting['scheduled_message_id']}")).ok


KEPT = [
    ("", ""),
    ("(no topic)", ""),
    ("general chat", ""),
    (" tea ", "tea"),
    ("x" * 60, "x" * 60),
    ("x" * 61, "x" * 57 + "..."),
]
"""A topic, and how it's stored."""


async def test_a_topic_is_normalized_like_a_message_s(org: Organization) -> None:
    await org.channel("lounge", "ann")
    for topic, kept in KEPT:
        with row(topic):
            await schedule(org, topic=topic)
            (waiting,) = await scheduled(org["ann"])
            assert waiting["topic"] == kept
            (await org["ann"].delete(f"{PATH}/{waiting['scheduled_message_id']}")).ok


@pytest.mark.parametrize("topic", ["", "(no topic)", "general chat"])
async def test_a_missing_topic_is_refused_where_one_is_required(
    org: Organization, topic: str
) -> None:
    lounge = await org.channel("lounge", "ann")
    await org.do(RealmChanged(values={"topics_policy": "disable_empty_topic"}))
    sent = {"type": "channel", "to": lounge, "topic": topic, "content": "x"}
    (await org["ann"].post(PATH, **sent, scheduled_delivery_timestamp=later(org))).refused()


@pytest.fixture(scope="module")
async def lounge(shared_org: Organization) -> int:
    """A channel of ann's."""
    return await shared_org.channel("lounge", "ann")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"type": "loud"}, "REQUEST_VARIABLE_INVALID"),
        ({"type": None}, "REQUEST_VARIABLE_MISSING"),
        ({"to": None}, "REQUEST_VARIABLE_MISSING"),
        ({"to": "lounge"}, "REQUEST_VARIABLE_INVALID"),
        ({"to": ["ben@example.com"]}, "REQUEST_VARIABLE_INVALID"),
        ({"to": 2**60}, "REQUEST_VARIABLE_INVALID"),
        ({"to": []}, "BAD_REQUEST"),
        ({"to": [1, 2]}, "BAD_REQUEST"),
        ({"topic": None}, "BAD_REQUEST"),
        ({"topic": "a\nb"}, "BAD_REQUEST"),
        ({"topic": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
        ({"content": None}, "REQUEST_VARIABLE_MISSING"),
        ({"content": " \n"}, "BAD_REQUEST"),
        ({"content": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
        ({"scheduled_delivery_timestamp": None}, "REQUEST_VARIABLE_MISSING"),
        ({"scheduled_delivery_timestamp": "soon"}, "REQUEST_VARIABLE_INVALID"),
        ({"scheduled_delivery_timestamp": 2**60}, "REQUEST_VARIABLE_INVALID"),
        ({"scheduled_delivery_timestamp": 1.5}, "REQUEST_VARIABLE_INVALID"),
        ({"scheduled_delivery_timestamp": 1_700_000_000}, "BAD_REQUEST"),
        ({"scheduled_delivery_timestamp": -1}, "BAD_REQUEST"),
        ({"read_by_sender": "perhaps"}, "REQUEST_VARIABLE_INVALID"),
        ({"type": "direct", "to": []}, "BAD_REQUEST"),
        ({"type": "direct", "to": [999_999]}, "BAD_REQUEST"),
        ({"type": "private", "to": [-1]}, "BAD_REQUEST"),
    ],
    ids=str,
)
async def test_a_message_that_could_not_be_sent_cannot_be_scheduled(
    lounge: int, readonly_org: Organization, changed: dict[str, Any], code: str
) -> None:
    good = {
        "type": "channel",
        "to": lounge,
        "topic": "tea",
        "content": "x",
        "scheduled_delivery_timestamp": later(readonly_org),
    }
    (await readonly_org["ann"].post(PATH, **{**good, **changed})).refused(code)
    assert await scheduled(readonly_org["ann"]) == []


async def test_the_time_must_be_in_the_future(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = {"type": "direct", "to": [org["ben"].user_id], "content": "x"}
    now = int(org.node.clock())
    (await org["ann"].post(PATH, **sent, scheduled_delivery_timestamp=now)).refused()
    (await org["ann"].post(PATH, **sent, scheduled_delivery_timestamp=now + 30)).ok


async def test_an_unknown_or_invisible_channel_is_named_in_the_error(
    org: Organization,
) -> None:
    secret = await org.channel("secret", "ann", is_private=True)
    for channel in (secret, 999_999):
        sent = {"type": "stream", "to": channel, "topic": "t", "content": "x"}
        reply = await org["ben"].post(PATH, **sent, scheduled_delivery_timestamp=later(org))
        assert reply.refused("STREAM_DOES_NOT_EXIST")["stream_id"] == channel


async def test_scheduling_needs_permission_to_post(org: Organization) -> None:
    news = await org.channel("news", "ann", "ben", can_send_message_group=2)
    sent = {"type": "stream", "to": news, "topic": "t", "content": "x"}
    (await org["ben"].post(PATH, **sent, scheduled_delivery_timestamp=later(org))).refused()
    (await org["ann"].post(PATH, **sent, scheduled_delivery_timestamp=later(org))).ok


async def test_scheduling_a_wildcard_mention_needs_permission(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(messages_domain, "WILDCARD_FREE", 1)
    lounge = await org.channel("lounge", "ann", "ben")
    at = later(org)
    sent = {"type": "stream", "to": lounge, "topic": "t", "scheduled_delivery_timestamp": at}
    await org["ann"].send(lounge, "t", "x")
    await org["ben"].send(lounge, "t", "x")
    for content, code in (("@**all**", "STREAM"), ("@**topic**", "TOPIC")):
        reply = await org["ben"].post(PATH, **sent, content=content)
        reply.refused(f"{code}_WILDCARD_MENTION_NOT_ALLOWED")
        (await org["ann"].post(PATH, **sent, content=content)).ok


async def test_one_recipient_may_be_given_as_a_plain_id(org: Organization) -> None:
    await org.channel("lounge", "ann")
    await schedule(org, type="direct", to=org["ben"].user_id)
    assert (await scheduled(org["ann"]))[0]["to"] == [org["ben"].user_id]


async def test_a_deactivated_recipient_is_refused(org: Organization) -> None:
    await org.do(UserDeactivated(user_id=org["cleo"].user_id))
    sent = {"type": "direct", "to": [org["cleo"].user_id], "content": "x"}
    (await org["ben"].post(PATH, **sent, scheduled_delivery_timestamp=later(org))).refused()


async def test_long_text_is_shortened_like_a_message_s(org: Organization) -> None:
    await org.channel("lounge", "ann")
    await schedule(org, content="x" * 10_001)
    content = (await scheduled(org["ann"]))[0]["content"]
    assert (len(content), content[-19:]) == (10_000, "[message truncated]")


async def test_the_number_of_scheduled_messages_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled_domain, "MAX_SCHEDULED", 1)
    lounge = await org.channel("lounge", "ann")
    await schedule(org)
    sent = {"type": "stream", "to": lounge, "topic": "t", "content": "x"}
    (await org["ann"].post(PATH, **sent, scheduled_delivery_timestamp=later(org))).refused()


async def test_scheduled_messages_are_listed_by_time_to_their_author_only(
    org: Organization,
) -> None:
    await org.channel("lounge", "ann")
    at = later(org)
    ids = [await schedule(org, scheduled_delivery_timestamp=at + n) for n in (30, 10, 20)]
    told = [one["scheduled_message_id"] for one in await scheduled(org["ann"])]
    assert told == [ids[1], ids[2], ids[0]]
    assert await scheduled(org["ben"]) == []


async def test_events_are_sent_to_the_author_only(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann", "ben")
    ann, ben = await org["ann"].register(), await org["ben"].register()
    at = later(org)
    made = await schedule(org, scheduled_delivery_timestamp=at)
    (await org["ann"].patch(f"{PATH}/{made}", content="And now?")).ok
    (await org["ann"].delete(f"{PATH}/{made}")).ok
    add, update, remove = await ann.events()
    waiting = {
        "scheduled_message_id": made,
        "type": "stream",
        "to": lounge,
        "topic": "tea",
        "content": "Is it *ready*?",
        "rendered_content": "<p>Is it <em>ready</em>?</p>",
        "scheduled_delivery_timestamp": at,
        "failed": False,
    }
    changed = {**waiting, "content": "And now?", "rendered_content": "<p>And now?</p>"}
    assert {e["type"] for e in (add, update, remove)} == {"scheduled_messages"}
    assert (add["op"], add["scheduled_messages"]) == ("add", [waiting])
    assert (update["op"], update["scheduled_message"]) == ("update", changed)
    assert (remove["op"], remove["scheduled_message_id"]) == ("remove", made)
    assert await ben.events() == []
    assert await scheduled(org["ann"]) == []


EDITS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"content": " *now*  "}, {"content": " *now*", "rendered_content": "<p><em>now</em></p>"}),
    ({"topic": "coffee"}, {"topic": "coffee"}),
    ({"topic": "(no topic)"}, {"topic": ""}),
    ({"to": "den"}, {"to": "den"}),
    ({"to": "den", "topic": "coffee"}, {"to": "den", "topic": "coffee"}),
    ({"type": "stream", "to": "den", "topic": "x"}, {"to": "den", "topic": "x"}),
    ({"type": "direct", "to": ["ben"]}, {"type": "private", "to": ["ben"], "topic": None}),
]


async def test_any_part_can_be_changed(org: Organization) -> None:
    await org.channel("lounge", "ann")
    await org.channel("den", "ann")
    for edit, shown in EDITS:
        with row(edit):
            made = await schedule(org)
            (before,) = await scheduled(org["ann"])
            (await org["ann"].patch(f"{PATH}/{made}", **_named(org, edit))).ok
            expected = {**before, **_named(org, shown)}
            expected = {name: value for name, value in expected.items() if value is not None}
            assert await scheduled(org["ann"]) == [expected]
            (await org["ann"].delete(f"{PATH}/{made}")).ok


def _named(org: Organization, values: dict[str, Any]) -> dict[str, Any]:
    """With IDs instead of names in `to`."""
    to = values.get("to")
    if isinstance(to, str):
        return {**values, "to": channel_id(org, to)}
    if isinstance(to, list):
        return {**values, "to": [org[name].user_id for name in to]}
    return values


async def test_a_direct_message_can_get_other_recipients_or_a_channel(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann")
    made = await schedule(org, type="direct", to=[org["ben"].user_id])
    (await org["ann"].patch(f"{PATH}/{made}", to=[org["cleo"].user_id], topic="ignored")).ok
    (waiting,) = await scheduled(org["ann"])
    assert (waiting["type"], waiting["to"]) == ("private", [org["cleo"].user_id])
    (await org["ann"].patch(f"{PATH}/{made}", content="x")).ok
    assert (await scheduled(org["ann"]))[0]["to"] == [org["cleo"].user_id]
    (await org["ann"].patch(f"{PATH}/{made}", type="channel", to=lounge, topic="t")).ok
    (waiting,) = await scheduled(org["ann"])
    assert (waiting["type"], waiting["to"], waiting["topic"]) == ("stream", lounge, "t")


@pytest.fixture(scope="module")
async def waiting(shared_org: Organization, lounge: int) -> int:
    """A scheduled message by ben to the lounge."""
    return await schedule(shared_org, "ben", scheduled_delivery_timestamp=later(shared_org) + DAY)


@pytest.mark.parametrize(
    ("edit", "code"),
    [
        ({}, "BAD_REQUEST"),
        ({"type": "direct"}, "BAD_REQUEST"),
        ({"type": "channel", "to": 1}, "BAD_REQUEST"),
        ({"type": "direct", "to": []}, "BAD_REQUEST"),
        ({"type": "loud", "to": 1}, "REQUEST_VARIABLE_INVALID"),
        ({"to": 999_999}, "STREAM_DOES_NOT_EXIST"),
        ({"type": "direct", "to": [999_999]}, "BAD_REQUEST"),
        ({"content": ""}, "BAD_REQUEST"),
        ({"topic": "a\nb"}, "BAD_REQUEST"),
        ({"scheduled_delivery_timestamp": 1_700_000_000}, "BAD_REQUEST"),
        ({"scheduled_delivery_timestamp": "soon"}, "REQUEST_VARIABLE_INVALID"),
    ],
    ids=str,
)
async def test_an_invalid_change_changes_nothing(
    waiting: int, readonly_org: Organization, edit: dict[str, Any], code: str
) -> None:
    before = await scheduled(readonly_org["ben"])
    assert [one["scheduled_message_id"] for one in before] == [waiting]
    (await readonly_org["ben"].patch(f"{PATH}/{waiting}", **edit)).refused(code)
    assert await scheduled(readonly_org["ben"]) == before


ASKED = [("PATCH", ""), ("DELETE", ""), ("POST", "/send")]


async def test_an_unknown_or_foreign_message_is_not_found(org: Organization) -> None:
    await org.channel("lounge", "ann")
    made = await schedule(org)
    for method, path in ASKED:
        with row(method, path):
            later_on = {"scheduled_delivery_timestamp": later(org)} if method == "PATCH" else {}
            for who, number in (("ben", made), ("ann", made + 1), ("ann", 0)):
                reply = await org[who].request(method, f"{PATH}/{number}{path}", **later_on)
                reply.refused("BAD_REQUEST", 404)
            assert len(await scheduled(org["ann"])) == 1


async def test_authentication_is_required(sqlite_org: Organization) -> None:
    (await sqlite_org.nobody.get(PATH)).refused("UNAUTHORIZED", 401)


# Sending now


async def test_a_message_is_sent_early_once(config: Config) -> None:
    async with timed(config) as (org, clock):
        made = await schedule(org, read_by_sender=True)
        ann, ben = await org["ann"].register(), await org["ben"].register()
        answer = (await org["ann"].post(f"{PATH}/{made}/send")).ok
        assert await scheduled(org["ann"]) == []
        # The response may have been lost.
        (await org["ann"].post(f"{PATH}/{made}/send")).refused("BAD_REQUEST", 404)
        clock.ahead += 61
        await org.tick()
        (message,) = await messages(org["ben"])
        assert (message["id"], message["subject"]) == (answer["id"], "tea")
        assert message["content"] == "<p>Is it <em>ready</em>?</p>"
        came, gone = await ann.events()
        assert (came["type"], came["flags"]) == ("message", ["read"])
        assert (gone["op"], gone["scheduled_message_id"]) == ("remove", made)
        assert [event["type"] for event in await ben.events()] == ["message"]


async def test_a_message_that_cannot_be_sent_now_keeps_waiting(config: Config) -> None:
    async with timed(config) as (org, clock):
        made = await schedule(org, "ben")
        await fail(org, "not allowed")
        (await org["ben"].post(f"{PATH}/{made}/send")).refused()
        assert [one["failed"] for one in await scheduled(org["ben"])] == [False]
        clock.ahead += 61
        await org.tick()
        assert [one["failed"] for one in await scheduled(org["ben"])] == [True]
        assert [m for m in await messages(org["ann"]) if m["subject"] == "tea"] == []
        lounge = channel_id(org, "lounge")
        (await org["ann"].patch(f"/streams/{lounge}", can_send_message_group={"new": 5})).ok
        (await org["ben"].post(f"{PATH}/{made}/send")).ok
        assert await scheduled(org["ben"]) == []


# Delivery


async def test_a_message_is_sent_once_when_due(config: Config) -> None:
    async with timed(config) as (org, clock):
        ann, ben = await org["ann"].register(), await org["ben"].register()
        made = await schedule(org)
        await org.tick()
        assert await messages(org["ben"]) == []
        clock.ahead += 61
        await org.tick()
        await org.tick()
        (message,) = await messages(org["ben"])
        assert (message["sender_id"], message["subject"]) == (org["ann"].user_id, "tea")
        assert message["content"] == "<p>Is it <em>ready</em>?</p>"
        assert abs(message["timestamp"] - clock()) < 30
        assert await scheduled(org["ann"]) == []
        add, came, gone = await ann.events()
        assert (add["type"], came["type"]) == ("scheduled_messages", "message")
        assert (gone["op"], gone["scheduled_message_id"]) == ("remove", made)
        assert [event["type"] for event in await ben.events()] == ["message"]


async def test_each_message_waits_for_its_own_time(config: Config) -> None:
    async with timed(config) as (org, clock):
        at = later(org)
        for n in (200, 0, 100, 0):
            await schedule(org, content=f"after {n}", scheduled_delivery_timestamp=at + n)
        told: list[list[str]] = []
        for _ in range(3):
            clock.ahead += 100
            await org.tick()
            told.append([m["content"] for m in await messages(org["ben"], apply_markdown=False)])
        assert told[0] == ["after 0", "after 0"]
        assert told[1] == [*told[0], "after 100"]
        assert told[2] == [*told[1], "after 200"]


async def test_a_message_due_while_no_server_ran_is_sent_when_one_does(config: Config) -> None:
    async with timed(config) as (org, clock):
        await schedule(org)
        clock.ahead += DAY
        async with open_organization(config, clock=clock) as again:
            await again.tick()
            assert len(await messages(again["ben"])) == 1
        async with open_organization(config, clock=clock) as again:
            await again.tick()
            assert len(await messages(again["ben"])) == 1
            assert await scheduled(again["ann"]) == []


async def test_a_scheduled_message_is_sent_like_any_other(config: Config) -> None:
    """Mentions, following by participation, new conversations, and read state."""
    async with timed(config) as (org, clock):
        ben = org["ben"].user_id
        await org["ben"].send("lounge", "tea", "I was here")
        await schedule(org, content=f"@**Ben|{ben}** and @**topic**")
        await schedule(org, type="direct", to=[ben], content="psst", read_by_sender=True)
        await schedule(org, type="direct", to=[org["ann"].user_id], content="to myself")
        clock.ahead += 61
        await org.tick()
        _, loud, whispered = await messages(org["ben"])
        assert {"mentioned", "topic_wildcard_mentioned"} <= set(loud["flags"])
        assert whispered["flags"] == []
        own = {m["content"]: m["flags"] for m in await messages(org["ann"])}
        assert own["<p>psst</p>"] == ["read"]
        assert own["<p>to myself</p>"] == []


READ_BY_SENDER: list[tuple[str, bool | None, bool, bool]] = [
    ("website", None, True, False),
    ("ZulipMobile", None, True, False),
    ("robo", None, False, False),
    ("robo", True, True, True),
    ("website", False, False, False),
]
"""The client that schedules, the parameter, and whether the message is read in a channel and if
it's only for its sender."""


async def test_a_scheduled_message_is_read_by_its_sender_as_chosen(
    config: Config,
) -> None:
    async with timed(config) as (org, clock):
        note: dict[str, Any] = {"type": "direct", "to": [org["ann"].user_id]}
        for client, asked, read, note_read in READ_BY_SENDER:
            with row(client, asked):
                await schedule(org, client=client, read_by_sender=asked)
                await schedule(org, client=client, read_by_sender=asked, **note)
                clock.ahead += 61
                await org.tick()
                *_, message, noted = await messages(org["ann"])
                assert (message["client"], "read" in message["flags"]) == (client, read)
                assert (noted["type"], "read" in noted["flags"]) == ("private", note_read)


async def test_names_are_resolved_when_the_message_is_sent(config: Config) -> None:
    async with timed(config) as (org, clock):
        ben = org["ben"].user_id
        await schedule(org, content=f"@_**|{ben}**")
        (await org["ann"].patch(f"/users/{ben}", full_name="Benjamin")).ok
        clock.ahead += 61
        await org.tick()
        assert "Benjamin" in (await messages(org["ann"]))[0]["content"]


async def fail(org: Organization, why: str) -> None:
    """Make ben's message to the lounge fail."""
    lounge, ben = channel_id(org, "lounge"), org["ben"].user_id
    if why == "archived":
        (await org["ann"].delete(f"/streams/{lounge}")).ok
    elif why == "not allowed":
        (await org["ann"].patch(f"/streams/{lounge}", can_send_message_group={"new": 2})).ok
    elif why == "out of sight":
        (await org["ann"].patch(f"/streams/{lounge}", is_private=True)).ok
        (
            await org["ann"].delete(
                "/users/me/subscriptions", subscriptions=["lounge"], principals=[ben]
            )
        ).ok


@pytest.mark.parametrize("why", ["archived", "not allowed", "out of sight"])
async def test_a_failed_message_is_reported_to_its_author(config: Config, why: str) -> None:
    async with timed(config) as (org, clock):
        made = await schedule(org, "ben", content="my secret")
        await fail(org, why)
        ben = await org["ben"].register(event_types=["message", "scheduled_messages"])
        before = len(await messages(org["ann"]))
        clock.ahead += 61
        await org.tick()
        await org.tick()
        update, told = await ben.events()
        assert (update["op"], update["scheduled_message"]["failed"]) == ("update", True)
        assert update["scheduled_message"]["scheduled_message_id"] == made
        assert told["message"]["sender_id"] == NOTIFICATION_BOT
        assert told["message"]["type"] == "private"
        assert "couldn’t be sent" in told["message"]["content"]
        assert len(await messages(org["ann"])) == before
        assert [one["failed"] for one in await scheduled(org["ben"])] == [True]


async def test_a_failed_message_is_sent_at_another_time_if_possible(config: Config) -> None:
    async with timed(config) as (org, clock):
        made = await schedule(org, "ben")
        await fail(org, "not allowed")
        clock.ahead += 61
        await org.tick()
        (await org["ben"].patch(f"{PATH}/{made}", content="again")).refused()
        lounge = channel_id(org, "lounge")
        (await org["ann"].patch(f"/streams/{lounge}", can_send_message_group={"new": 5})).ok
        again = {"content": "again", "scheduled_delivery_timestamp": later(org)}
        (await org["ben"].patch(f"{PATH}/{made}", **again)).ok
        assert [one["failed"] for one in await scheduled(org["ben"])] == [False]
        clock.ahead += 61
        await org.tick()
        sent = [m["content"] for m in await messages(org["ann"], apply_markdown=False)]
        assert sent[-1] == "again"
        assert await scheduled(org["ben"]) == []


async def test_a_new_time_is_enough_to_retry_a_failed_message(config: Config) -> None:
    async with timed(config) as (org, clock):
        made = await schedule(org, "ben")
        await fail(org, "archived")
        for _ in range(2):
            clock.ahead += 61
            await org.tick()
            (waiting,) = await scheduled(org["ben"])
            assert waiting["failed"]
            at = later(org)
            (await org["ben"].patch(f"{PATH}/{made}", scheduled_delivery_timestamp=at)).ok
            (waiting,) = await scheduled(org["ben"])
            assert (waiting["failed"], waiting["scheduled_delivery_timestamp"]) == (False, at)


async def test_a_deactivated_person_s_messages_are_not_sent(config: Config) -> None:
    async with timed(config) as (org, clock):
        await schedule(org, "ben")
        ben = org["ben"].user_id
        await org.do(UserDeactivated(user_id=ben))
        clock.ahead += 61
        await org.tick()
        assert await messages(org["ann"]) == []
        await org.do(UserReactivated(user_id=ben))
        assert [one["failed"] for one in await scheduled(org["ben"])] == [True]
        assert await messages(org["ben"]) == []


async def test_a_message_that_cannot_be_sent_does_not_block_others(config: Config) -> None:
    async with timed(config) as (org, clock):
        await schedule(org, "ben")
        await fail(org, "archived")
        await schedule(org, type="direct", to=[org["ben"].user_id], content="after it")
        clock.ahead += 61
        await org.tick()
        sent = [m["content"] for m in await messages(org["ben"], apply_markdown=False)]
        assert "after it" in sent


async def test_a_deleted_or_postponed_message_is_not_sent(config: Config) -> None:
    async with timed(config) as (org, clock):
        deleted = await schedule(org, content="deleted")
        put_off = await schedule(org, content="put off")
        (await org["ann"].delete(f"{PATH}/{deleted}")).ok
        at = later(org, 1000)
        (await org["ann"].patch(f"{PATH}/{put_off}", scheduled_delivery_timestamp=at)).ok
        clock.ahead += 500
        await org.tick()
        assert await messages(org["ben"]) == []
        clock.ahead += 501
        await org.tick()
        assert [m["content"] for m in await messages(org["ben"])] == ["<p>put off</p>"]


async def test_an_id_is_not_reused(org: Organization, config: Config) -> None:
    await org.channel("lounge", "ann")
    first = await schedule(org)
    (await org["ann"].delete(f"{PATH}/{first}")).ok
    assert await schedule(org) > first


# Concurrency


async def test_concurrent_changes_are_both_applied(org: Organization) -> None:
    await org.channel("lounge", "ann")
    made = await schedule(org)
    ann, path = org["ann"], f"{PATH}/{made}"
    edits: list[dict[str, Any]] = [{"topic": "coffee"}, {"content": "now"}, {"topic": "coffee"}]
    for reply in await asyncio.gather(*(ann.patch(path, **edit) for edit in edits)):
        assert reply.ok
    (waiting,) = await scheduled(ann)
    assert (waiting["topic"], waiting["content"]) == ("coffee", "now")


async def test_a_message_changed_after_its_preparation_is_sent_as_changed(config: Config) -> None:
    async with timed(config) as (org, clock):
        made = await schedule(org)
        clock.ahead += 61
        preparing, deleted = asyncio.Event(), asyncio.Event()

        class Slow(Renderer):
            async def rendered(
                self,
                context: CommandContext,
                content: str,
                known: Mapping[str, LinkPreview | None] | None = None,
            ) -> Rendered:
                preparing.set()
                await deleted.wait()
                return await super().rendered(context, content, known)

        node = dataclasses.replace(org.node, renderer=Slow())
        sending = asyncio.ensure_future(messages_to_send(node).once())
        await asyncio.wait_for(preparing.wait(), 60)
        (await org["ann"].delete(f"{PATH}/{made}")).ok
        deleted.set()
        await sending
        assert await messages(org["ben"]) == []


@pytest.mark.usefixtures("several_nodes")
async def test_of_two_nodes_one_sends_a_message(config: Config) -> None:
    async with timed(config) as (org, clock), open_organization(config, clock=clock) as other:
        for number in range(5):
            await schedule(org, content=str(number))
        await other.node.log.catch_up()
        clock.ahead += 61
        await asyncio.gather(org.tick(), other.tick(), org.tick())
        sent = [m["content"] for m in await messages(other["ben"], apply_markdown=False)]
        assert sent == ["0", "1", "2", "3", "4"]
        assert await scheduled(org["ann"]) == []
