"""Drafts."""

from typing import Any

import pytest

from tertulia.domain.messages import drafts as drafts_domain
from tertulia.service.config import Config
from tests.support import Organization, Person, open_organization, row, rows
from tests.wire.personal_data import add_with, listed

PATH = "/drafts"
NOTE = {"type": "", "to": [], "topic": "", "content": "a note"}


async def drafts(person: Person) -> list[dict[str, Any]]:
    found = await listed(person, PATH, "drafts")
    assert (await person.get(PATH)).ok["count"] == len(found)
    return found


async def create(person: Person, *contents: dict[str, Any]) -> list[int]:
    ids: list[int] = (await person.post(PATH, drafts=list(contents))).ok["ids"]
    return ids


async def test_drafts_to_nobody_a_channel_and_people_are_stored(org: Organization) -> None:
    lounge = await org.channel("lounge", "ann")
    people = [org["cleo"].user_id, org["ben"].user_id]
    written = [
        {"type": "", "to": [], "topic": "", "content": "a note", "timestamp": 30},
        {"type": "stream", "to": [lounge], "topic": "tea", "content": "is", "timestamp": 20},
        {"type": "private", "to": people, "topic": "", "content": "psst", "timestamp": 10},
    ]
    ids = await create(org["ann"], *written)
    assert ids == sorted(set(ids))
    kept = [{"id": made, **draft} for made, draft in zip(ids, written, strict=True)]
    assert await drafts(org["ann"]) == kept
    assert await drafts(org["ben"]) == []


async def test_an_empty_list_of_drafts_is_accepted(org: Organization) -> None:
    assert (await org["ann"].post(PATH, drafts=[])).ok["ids"] == []
    assert (await org["ann"].post(PATH)).ok["ids"] == []


KEPT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "", "to": [1, 2], "topic": "ignored"}, {"to": [], "topic": ""}),
    ({"type": "private", "to": [], "topic": "ignored"}, {"to": [], "topic": ""}),
    ({"content": "x" * 10_000}, {"content": "x" * 10_000}),
    ({"content": "x" * 10_001}, {"content": "x" * 9980 + "\n[message truncated]"}),
    ({"content": "\n 🦆 \n"}, {"content": " 🦆"}),
    ({"timestamp": 1_600_000_000.9}, {"timestamp": 1_600_000_000}),
    ({"timestamp": 0}, {"timestamp": 0}),
    ({"id": 7}, {}),
]
"""What is sent, and what is stored differently."""


async def test_the_content_of_a_draft_is_normalized(org: Organization) -> None:
    for sent, kept in KEPT:
        with row(sent):
            whole = {**NOTE, "timestamp": 5, **sent}
            (made,) = await create(org["ann"], whole)
            assert await drafts(org["ann"]) == [{**whole, **kept, "id": made}]
            assert (await org["ann"].delete(f"{PATH}/{made}")).ok


@pytest.mark.parametrize(
    ("topic", "kept"),
    [("", ""), ("(no topic)", ""), (" tea ", "tea"), ("x" * 61, "x" * 57 + "...")],
)
async def test_a_draft_s_topic_is_normalized_like_a_message_s(
    org: Organization, topic: str, kept: str
) -> None:
    lounge = await org.channel("lounge", "ann")
    await create(org["ann"], {**NOTE, "type": "stream", "to": [lounge], "topic": topic})
    assert (await drafts(org["ann"]))[0]["topic"] == kept


async def test_without_a_timestamp_the_server_sets_it(
    org: Organization,
) -> None:
    before = int(org.node.clock())
    (made,) = await create(org["ann"], NOTE)
    (draft,) = await drafts(org["ann"])
    assert before <= draft["timestamp"] <= org.node.clock()
    (await org["ann"].patch(f"{PATH}/{made}", draft={**NOTE, "timestamp": 5})).ok
    assert (await drafts(org["ann"]))[0]["timestamp"] == 5
    (await org["ann"].patch(f"{PATH}/{made}", draft=NOTE)).ok
    assert (await drafts(org["ann"]))[0]["timestamp"] >= before


async def test_the_most_recently_edited_drafts_come_first(org: Organization) -> None:
    ids = await create(org["ann"], *({**NOTE, "timestamp": at} for at in (5, 9, 7, 7)))
    told = [draft["id"] for draft in await drafts(org["ann"])]
    assert told == [ids[1], ids[3], ids[2], ids[0]]


BAD: list[tuple[dict[str, Any], str]] = [
    ({"type": "loud"}, "REQUEST_VARIABLE_INVALID"),
    ({"type": None}, "REQUEST_VARIABLE_INVALID"),
    ({"to": "ben"}, "REQUEST_VARIABLE_INVALID"),
    ({"to": ["ben@example.com"]}, "REQUEST_VARIABLE_INVALID"),
    ({"to": [2**60]}, "REQUEST_VARIABLE_INVALID"),
    ({"topic": 5}, "REQUEST_VARIABLE_INVALID"),
    ({"topic": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
    ({"content": None}, "REQUEST_VARIABLE_INVALID"),
    ({"content": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
    ({"content": " \n "}, "BAD_REQUEST"),
    ({"timestamp": "now"}, "REQUEST_VARIABLE_INVALID"),
    ({"timestamp": 1e300}, "REQUEST_VARIABLE_INVALID"),
    ({"timestamp": -1}, "BAD_REQUEST"),
    ({"type": "stream", "to": []}, "BAD_REQUEST"),
    ({"type": "stream", "to": [1, 2]}, "BAD_REQUEST"),
    ({"type": "stream", "to": [999_999]}, "BAD_REQUEST"),
    ({"type": "private", "to": [999_999]}, "BAD_REQUEST"),
]


@rows(("changed", "code"), BAD)
async def test_an_invalid_draft_refuses_the_whole_request(
    sqlite_org: Organization, changed: dict[str, Any], code: str
) -> None:
    bad = {**NOTE, **changed}
    (await sqlite_org["ann"].post(PATH, drafts=[NOTE, bad])).refused(code)
    assert (await sqlite_org["ann"].get(PATH)).ok["count"] == 0
    (made,) = await create(sqlite_org["ann"], {**NOTE, "timestamp": 5})
    (await sqlite_org["ann"].patch(f"{PATH}/{made}", draft=bad)).refused(code)
    (kept,) = (await sqlite_org["ann"].get(PATH)).ok["drafts"]
    assert kept == {**NOTE, "timestamp": 5, "id": made}
    (await sqlite_org["ann"].delete(f"{PATH}/{made}")).ok


@rows("field", ["type", "to", "topic", "content"])
async def test_every_field_but_the_timestamp_is_required(
    sqlite_org: Organization, field: str
) -> None:
    part = {name: value for name, value in NOTE.items() if name != field}
    (await sqlite_org["ann"].post(PATH, drafts=[part])).refused("REQUEST_VARIABLE_INVALID")


@rows("sent", ["not JSON", "{}", "null and void", '[{"type": ""'])
async def test_an_invalid_list_of_drafts_is_refused(sqlite_org: Organization, sent: str) -> None:
    (await sqlite_org["ann"].post(PATH, drafts=sent)).refused("REQUEST_VARIABLE_INVALID")


async def test_the_draft_is_required_for_editing(sqlite_org: Organization) -> None:
    (await sqlite_org["ann"].patch(f"{PATH}/1")).refused("REQUEST_VARIABLE_MISSING")


async def test_an_invisible_channel_looks_like_an_unknown_one(
    org: Organization,
) -> None:
    secret = await org.channel("secret", "ann", is_private=True)
    told = []
    for channel in (secret, 999_999):
        reply = await org["ben"].post(PATH, drafts=[{**NOTE, "type": "stream", "to": [channel]}])
        told.append(reply.refused()["msg"].replace(str(channel), "?"))
    assert told[0] == told[1]


async def test_events_are_sent_to_the_author_only(org: Organization) -> None:
    ann, ben = await org["ann"].register(), await org["ben"].register()
    first = {**NOTE, "timestamp": 5}
    ids = await create(org["ann"], first, {**first, "content": "another"})
    changed = {**first, "content": "a longer note"}
    (await org["ann"].patch(f"{PATH}/{ids[0]}", draft=changed)).ok
    (await org["ann"].delete(f"{PATH}/{ids[1]}")).ok
    add, update, remove = await ann.events()
    assert {e["type"] for e in (add, update, remove)} == {"drafts"}
    assert add["op"] == "add"
    assert add["drafts"] == [
        {**first, "id": ids[0]},
        {**first, "id": ids[1], "content": "another"},
    ]
    assert (update["op"], update["draft"]) == ("update", {**changed, "id": ids[0]})
    assert (remove["op"], remove["draft_id"]) == ("remove", ids[1])
    assert await ben.events() == []
    assert await drafts(org["ann"]) == [{**changed, "id": ids[0]}]


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_an_unknown_or_foreign_draft_is_not_found(org: Organization, method: str) -> None:
    (made,) = await create(org["ann"], NOTE)
    sent = {"draft": NOTE} if method == "PATCH" else {}
    for who, number in (("ben", made), ("ann", made + 1), ("ann", 0)):
        reply = await org[who].request(method, f"{PATH}/{number}", **sent)
        reply.refused("BAD_REQUEST", 404)
    assert len(await drafts(org["ann"])) == 1


async def test_with_drafts_disabled_none_are_stored(org: Organization) -> None:
    dora = await add_with(org, "dora", enable_drafts_synchronization=False)
    (await dora.get(PATH)).refused()
    (await dora.post(PATH, drafts=[NOTE])).refused()
    (await dora.patch(f"{PATH}/1", draft=NOTE)).refused()
    (await dora.delete(f"{PATH}/1")).refused()
    assert (await dora.register()).data["drafts"] == []


async def test_disabling_drafts_deletes_them_with_only_a_setting_event(
    org: Organization,
) -> None:
    await create(org["ann"], NOTE, NOTE)
    await create(org["ben"], NOTE)
    ann = await org["ann"].register()
    await org.do(*drafts_domain.deletion_changes(org.node.state, org["ann"].user_id))
    assert await ann.events() == []
    assert await drafts(org["ann"]) == []
    assert len(await drafts(org["ben"])) == 1


async def test_an_id_is_not_reused_even_after_a_restart(org: Organization, config: Config) -> None:
    (first,) = await create(org["ann"], NOTE)
    (await org["ann"].delete(f"{PATH}/{first}")).ok
    async with open_organization(config) as again:
        (second,) = await create(again["ann"], NOTE)
    assert second > first
