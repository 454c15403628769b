"""Alert words."""

import asyncio
from typing import Any

import pytest

from tertulia.model.changes import Unsubscribed
from tertulia.service.config import Config
from tests.support import Organization, Person, open_organization, row, rows

pytestmark = pytest.mark.usefixtures("no_logged_errors")


async def own(who: Person) -> list[str]:
    words: list[str] = (await who.get("/users/me/alert_words")).ok["alert_words"]
    return words


async def alert(who: Person, *words: str) -> list[str]:
    reply = await who.post("/users/me/alert_words", alert_words=list(words))
    found: list[str] = reply.ok["alert_words"]
    return found


async def test_words_are_added_listed_and_removed(org: Organization, config: Config) -> None:
    ben = org["ben"]
    assert await own(ben) == []
    mine, other = await ben.register(), await org["ann"].register()
    assert await alert(ben, "deploy", "coffee break") == ["deploy", "coffee break"]
    assert await alert(ben, "Straße") == ["deploy", "coffee break", "Straße"]
    assert (await ben.register()).data["alert_words"] == ["deploy", "coffee break", "Straße"]
    reply = await ben.delete("/users/me/alert_words", alert_words=["DEPLOY", "unknown", "STRASSE"])
    assert reply.ok["alert_words"] == ["coffee break"]
    assert await own(ben) == ["coffee break"]
    assert [event["alert_words"] for event in await mine.events()] == [
        ["deploy", "coffee break"],
        ["deploy", "coffee break", "Straße"],
        ["coffee break"],
    ]
    assert await other.events() == []
    assert await own(org["ann"]) == []
    async with open_organization(config) as later:
        assert await own(later["ben"]) == ["coffee break"]
        sent = await later["ann"].write([ben.user_id], "coffee break!")
        assert "has_alert_word" in await flags(later["ben"], sent)


async def test_a_word_is_stored_once_in_any_letter_case(org: Organization) -> None:
    ben = org["ben"]
    await alert(ben, "Deploy")
    listener = await ben.register()
    assert await alert(ben, "deploy", " DEPLOY ", "", "  ") == ["Deploy"]
    assert (await ben.delete("/users/me/alert_words", alert_words=["x"])).ok
    assert await listener.events() == []


async def test_words_added_concurrently_are_all_stored(org: Organization) -> None:
    await asyncio.gather(*(alert(org["ben"], f"word{n}", "both") for n in range(5)))
    assert sorted(await own(org["ben"])) == ["both", *(f"word{n}" for n in range(5))]


@rows(
    ("words", "code"),
    [
        (None, "REQUEST_VARIABLE_MISSING"),
        ("deploy", "REQUEST_VARIABLE_INVALID"),
        ('"deploy"', "REQUEST_VARIABLE_INVALID"),
        ([1], "REQUEST_VARIABLE_INVALID"),
        ([None], "REQUEST_VARIABLE_INVALID"),
        (["a\0b"], "REQUEST_VARIABLE_INVALID"),
        (["w"] * 1001, "REQUEST_VARIABLE_INVALID"),
        (["x" * 101], "BAD_REQUEST"),
    ],
)
async def test_invalid_words_are_refused(sqlite_org: Organization, words: Any, code: str) -> None:
    (await sqlite_org["ann"].post("/users/me/alert_words", alert_words=words)).refused(code)
    assert await own(sqlite_org["ann"]) == []


async def test_a_word_has_at_most_100_characters_and_there_are_at_most_1000(
    org: Organization,
) -> None:
    assert await alert(org["ben"], "ä" * 100) == ["ä" * 100]
    words = [f"word{n}" for n in range(999)]
    assert len(await alert(org["ben"], *words)) == 1000
    (await org["ben"].post("/users/me/alert_words", alert_words=["one more"])).refused()


async def test_alert_words_require_authentication(org: Organization) -> None:
    for method in ("GET", "POST", "DELETE"):
        reply = await org.nobody.request(method, "/users/me/alert_words", alert_words=["x"])
        reply.refused("UNAUTHORIZED", 401)


# Effects


async def flags(who: Person, message_id: int) -> list[str]:
    found: list[str] = (await who.get(f"/messages/{message_id}")).ok["message"]["flags"]
    return found


SAID = [
    ("deploy", "time to deploy", True),
    ("deploy", "DEPLOY!", True),
    ("Deploy", "(deploy)", True),
    ("deploy", "deployment", False),
    ("deploy", "redeploy", False),
    ("deploy", "pre_deploy", False),
    ("deploy", "pre-deploy", True),
    ("deploy", "deployment, then deploy", True),
    ("deploy", "> quoted: deploy", True),
    ("deploy", "```\ndeploy\n```", True),
    ("coffee break", "a coffee  break", False),
    ("coffee break", "Coffee break?", True),
    ("c++", "we write C++ here", True),
    ("c++", "c+", False),
    ("🐙", "look: 🐙", True),
    ("straße", "in der STRASSE", True),
    ("Ärger", "ärger", True),
]
"""A word, a message, and whether it alerts."""


async def test_a_message_with_the_word_is_flagged(org: Organization) -> None:
    """In any letter case, as a whole word, also in quotes and code."""
    await org.channel("lounge", "ann", "ben", "cleo")
    ben = org["ben"]
    page = {"anchor": "newest", "num_before": 99, "num_after": 0}
    narrow = [{"operator": "is", "operand": "alerted"}]
    alerting = []
    for word, content, alerted in SAID:
        with row(word, content):
            await alert(ben, word)
            listener, other = await ben.register(), await org["cleo"].register()
            sent = await org["ann"].send("lounge", "t", content)
            (event,), (others,) = await listener.events(), await other.events()
            assert event["flags"] == (["has_alert_word"] if alerted else [])
            assert others["flags"] == []
            assert ("has_alert_word" in await flags(ben, sent)) is alerted
            alerting += [sent] * alerted
            found = (await ben.get("/messages", **page, narrow=narrow)).ok["messages"]
            assert [message["id"] for message in found] == alerting
            assert (await ben.delete("/users/me/alert_words", alert_words=[word])).ok


async def test_only_recipients_are_alerted(org: Organization) -> None:
    channel = await org.channel("lounge", "ann", "ben", "cleo")
    for name in ("ann", "ben", "cleo", "gus"):
        await alert(org[name], "tea")
    left = Unsubscribed(channel_id=channel, user_ids=(org["cleo"].user_id,), until=0, name="lounge")
    await org.do(left)
    sent = await org["ann"].send("lounge", "t", "tea?")
    assert "has_alert_word" in await flags(org["ann"], sent)
    assert "has_alert_word" in await flags(org["ben"], sent)
    assert "has_alert_word" not in await flags(org["cleo"], sent)
    direct = await org["ann"].write([org["gus"].user_id], "@**Gus** tea")
    assert await flags(org["gus"], direct) == ["mentioned", "has_alert_word"]


async def test_a_removed_word_no_longer_alerts(org: Organization) -> None:
    ben, cleo = org["ben"], org["cleo"]
    for who in (ben, cleo):
        await alert(who, "tea")
    assert (await ben.delete("/users/me/alert_words", alert_words=["Tea"])).ok
    sent = await org["ann"].write([ben.user_id, cleo.user_id], "tea")
    assert "has_alert_word" not in await flags(ben, sent)
    assert "has_alert_word" in await flags(cleo, sent)


async def test_a_queue_narrowed_to_alerted_messages_has_no_others(org: Organization) -> None:
    await alert(org["ben"], "tea")
    listener = await org["ben"].register(narrow=[["is", "alerted"]])
    await org["ann"].write([org["ben"].user_id], "coffee")
    sent = await org["ann"].write([org["ben"].user_id], "tea")
    assert [event["message"]["id"] for event in await listener.events()] == [sent]
