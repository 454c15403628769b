"""Reminders: messages that return at a set time."""

from typing import Any

import pytest

from tertulia.domain.messages import scheduled
from tertulia.domain.organization.lifecycle import NOTIFICATION_BOT
from tertulia.model.changes import UserDeactivated, UserReactivated
from tertulia.service.config import Config
from tests.support import Organization, Person, open_organization
from tests.wire.personal_data import DAY, later, listed, timed

PATH = "/reminders"


async def reminders(person: Person) -> list[dict[str, Any]]:
    return await listed(person, PATH, "reminders")


async def remind(org: Organization, who: str, message_id: int, **more: Any) -> int:
    """Create a reminder due in a minute. Returns its ID."""
    sent = {"message_id": message_id, "scheduled_delivery_timestamp": later(org), **more}
    reminder_id: int = (await org[who].post(PATH, **sent)).ok["reminder_id"]
    return reminder_id


async def told_by_bot(person: Person) -> list[str]:
    """The Notification Bot's messages to someone, as Markdown."""
    window = {"anchor": "newest", "num_before": 50, "num_after": 0, "apply_markdown": False}
    narrow = [{"operator": "dm", "operand": [NOTIFICATION_BOT]}]
    found = (await person.get("/messages", **window, narrow=narrow)).ok["messages"]
    assert all(message["sender_id"] == NOTIFICATION_BOT for message in found)
    return [message["content"] for message in found]


async def test_a_reminder_is_stored_like_a_direct_message_to_oneself(org: Organization) -> None:
    await org.channel("lounge", "ann", "ben")
    message = await org["ann"].send("lounge", "tea", "Buy milk")
    at = later(org)
    made = await remind(org, "ben", message, scheduled_delivery_timestamp=at, note="*two* bottles")
    (reminder,) = await reminders(org["ben"])
    content, rendered = reminder.pop("content"), reminder.pop("rendered_content")
    assert reminder == {
        "reminder_id": made,
        "type": "private",
        "to": [org["ben"].user_id],
        "scheduled_delivery_timestamp": at,
        "failed": False,
        "reminder_target_message_id": message,
    }
    assert f"#**lounge>tea@{message}**" in content
    assert "*two* bottles" in content
    assert rendered.startswith("<p>")
    assert await reminders(org["ann"]) == []


async def test_the_server_s_messages_are_in_their_reader_s_language(config: Config) -> None:
    """Those to a channel are in the organization's."""
    async with timed(config) as (org, clock):
        await org["ann"].patch("/realm", default_language="fr")
        await org["ben"].patch("/settings", default_language="de")
        await org.channel("lounge", "ann")
        message = await org["ann"].send("lounge", "tea", "Buy milk")
        await org["ann"].patch(f"/messages/{message}", topic="coffee", propagate_mode="change_all")
        await org["ann"].post(
            "/users/me/subscriptions",
            subscriptions=[{"name": "lounge"}],
            principals=[org["ben"].user_id],
        )
        await remind(org, "ben", message)
        clock.ahead += 61
        await org.tick()
        told = "\n".join(await told_by_bot(org["ben"]))
        assert "hat dich zum Kanal #**lounge** hinzugefügt." in told
        assert f"Du wolltest an #**lounge>coffee@{message}** erinnert werden." in told
        window = {"anchor": "newest", "num_before": 1, "num_after": 0}
        narrow = [{"operator": "channel", "operand": "lounge"}]
        (last,) = (await org["ann"].get("/messages", **window, narrow=narrow)).ok["messages"]
        assert "a déplacé ce sujet" in last["content"]


async def test_reminders_are_listed_by_time(org: Organization) -> None:
    await org.channel("lounge", "ann")
    message, at = await org["ann"].send("lounge", "t", "x"), later(org)
    ids = [
        await remind(org, "ann", message, scheduled_delivery_timestamp=at + n) for n in (9, 3, 6)
    ]
    told = [one["reminder_id"] for one in await reminders(org["ann"])]
    assert told == [ids[1], ids[2], ids[0]]


@pytest.fixture(scope="module")
async def message(shared_org: Organization) -> int:
    """A message of ann's, in a channel."""
    await shared_org.channel("lounge", "ann")
    return await shared_org["ann"].send("lounge", "t", "x")


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"message_id": None}, "REQUEST_VARIABLE_MISSING"),
        ({"message_id": "first"}, "REQUEST_VARIABLE_INVALID"),
        ({"message_id": 999_999}, "BAD_REQUEST"),
        ({"message_id": -1}, "BAD_REQUEST"),
        ({"scheduled_delivery_timestamp": None}, "REQUEST_VARIABLE_MISSING"),
        ({"scheduled_delivery_timestamp": "soon"}, "REQUEST_VARIABLE_INVALID"),
        ({"scheduled_delivery_timestamp": 1_700_000_000}, "BAD_REQUEST"),
        ({"note": "x" * 1001}, "BAD_REQUEST"),
        ({"note": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_an_invalid_reminder_is_refused(
    message: int, readonly_org: Organization, changed: dict[str, Any], code: str
) -> None:
    good = {"message_id": message, "scheduled_delivery_timestamp": later(readonly_org)}
    (await readonly_org["ann"].post(PATH, **{**good, **changed})).refused(code)
    assert await reminders(readonly_org["ann"]) == []


async def test_a_note_is_limited_to_the_length_in_register(org: Organization) -> None:
    await org.channel("lounge", "ann")
    limit = (await org["ann"].register()).data["max_reminder_note_length"]
    await remind(org, "ann", await org["ann"].send("lounge", "t", "x"), note="ü" * limit)


async def test_an_unreadable_message_cannot_have_a_reminder(org: Organization) -> None:
    await org.channel("secret", "ann", is_private=True)
    hidden = await org["ann"].send("secret", "t", "x")
    direct = await org["ann"].write([org["cleo"].user_id], "x")
    for message in (hidden, direct):
        sent = {"message_id": message, "scheduled_delivery_timestamp": later(org)}
        unread = (await org["ben"].post(PATH, **sent)).refused()
        nothing = (await org["ben"].post(PATH, **{**sent, "message_id": 999_999})).refused()
        assert unread["msg"] == nothing["msg"].replace("999999", str(message))


async def test_the_number_of_reminders_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduled, "MAX_REMINDERS", 1)
    message = await org["ann"].write([org["ben"].user_id], "x")
    await remind(org, "ann", message)
    sent = {"message_id": message, "scheduled_delivery_timestamp": later(org)}
    (await org["ann"].post(PATH, **sent)).refused()


async def test_events_are_sent_to_the_owner_only(org: Organization) -> None:
    message = await org["ann"].write([org["ben"].user_id], "x")
    ann, ben = await org["ann"].register(), await org["ben"].register()
    made = await remind(org, "ann", message)
    waiting = await reminders(org["ann"])
    (await org["ann"].delete(f"{PATH}/{made}")).ok
    add, remove = await ann.events()
    assert (add["type"], add["op"], add["reminders"]) == ("reminders", "add", waiting)
    assert (remove["op"], remove["reminder_id"]) == ("remove", made)
    assert await ben.events() == []
    assert await reminders(org["ann"]) == []


async def test_an_unknown_or_foreign_reminder_is_not_found(org: Organization) -> None:
    made = await remind(org, "ann", await org["ann"].write([org["ben"].user_id], "x"))
    for who, number in (("ben", made), ("ann", made + 1), ("ann", 0)):
        (await org[who].delete(f"{PATH}/{number}")).refused("BAD_REQUEST", 404)
    assert len(await reminders(org["ann"])) == 1


# Delivery


async def test_a_reminder_is_sent_once_by_the_bot_with_message_and_note(config: Config) -> None:
    async with timed(config) as (org, clock):
        message = await org["ann"].send("lounge", "tea", "Buy ```milk```")
        made = await remind(org, "ben", message, note="two bottles")
        ben = await org["ben"].register()
        await org.tick()
        assert await told_by_bot(org["ben"]) == []
        clock.ahead += 61
        await org.tick()
        await org.tick()
        (text,) = await told_by_bot(org["ben"])
        assert f"#**lounge>tea@{message}**" in text
        assert "two bottles" in text
        assert "Buy ```milk```" in text
        came, gone = await ben.events()
        assert (came["type"], came["flags"]) == ("message", [])
        assert (gone["type"], gone["reminder_id"]) == ("reminders", made)
        assert await reminders(org["ben"]) == []


async def test_a_direct_message_is_quoted_without_a_mention(config: Config) -> None:
    async with timed(config) as (org, clock):
        ben = org["ben"].user_id
        message = await org["ann"].write([ben], f"@**Ben|{ben}** hear")
        await remind(org, "ben", message)
        clock.ahead += 61
        ben_hears = await org["ben"].register(event_types=["message"])
        await org.tick()
        (event,) = await ben_hears.events()
        assert "hear" in event["message"]["content"]
        assert event["flags"] == []


async def test_a_reminder_due_while_no_server_ran_is_sent_when_one_does(config: Config) -> None:
    async with timed(config) as (org, clock):
        await remind(org, "ben", await org["ann"].send("lounge", "tea", "x"))
        clock.ahead += DAY
        for _ in range(2):
            async with open_organization(config, clock=clock) as again:
                await again.tick()
                assert len(await told_by_bot(again["ben"])) == 1


async def test_a_message_no_longer_readable_is_not_quoted(config: Config) -> None:
    async with timed(config) as (org, clock):
        cave = await org.channel("cave", "ann", "ben", is_private=True)
        await remind(org, "ben", await org["ann"].send("cave", "t", "a secret"), note="look")
        await org["ann"].delete(
            "/users/me/subscriptions", subscriptions=["cave"], principals=[org["ben"].user_id]
        )
        clock.ahead += 61
        await org.tick()
        (text,) = await told_by_bot(org["ben"])
        assert "a secret" not in text
        assert "cave" not in text
        assert "look" in text
        assert cave


async def test_a_long_message_is_quoted_in_part(config: Config) -> None:
    async with timed(config) as (org, clock):
        message = await org["ann"].send("lounge", "t", "begin " + "`" * 5 + "x" * 9000)
        await remind(org, "ben", message, note="n" * 1000)
        clock.ahead += 61
        await org.tick()
        (text,) = await told_by_bot(org["ben"])
        assert "begin" in text
        assert len(text) < 10_000
        assert text.endswith("`" * 6)


async def test_a_deactivated_person_gets_no_reminder(config: Config) -> None:
    async with timed(config) as (org, clock):
        await remind(org, "ben", await org["ann"].send("lounge", "t", "x"))
        await org.do(UserDeactivated(user_id=org["ben"].user_id))
        clock.ahead += 61
        await org.tick()
        await org.do(UserReactivated(user_id=org["ben"].user_id))
        assert await told_by_bot(org["ben"]) == []
        assert await reminders(org["ben"]) == []
