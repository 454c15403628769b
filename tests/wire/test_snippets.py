"""Saved snippets."""

from typing import Any

import pytest

from tertulia.domain.messages import drafts
from tests.support import Organization, Person
from tests.wire.personal_data import listed

PATH = "/saved_snippets"


async def snippets(person: Person) -> list[dict[str, Any]]:
    return await listed(person, PATH, "saved_snippets")


async def create(person: Person, title: str = "Hello", content: str = "*Hi* all") -> int:
    made: int = (await person.post(PATH, title=title, content=content)).ok["saved_snippet_id"]
    return made


async def test_a_snippet_is_stored_for_its_owner_only(org: Organization) -> None:
    before = int(org.node.clock())
    made = await create(org["ann"], " Hello ", "  *Hi* all\n")
    (snippet,) = await snippets(org["ann"])
    assert before <= snippet.pop("date_created") <= org.node.clock()
    assert snippet == {"id": made, "title": "Hello", "content": "*Hi* all"}
    assert await snippets(org["ben"]) == []


async def test_snippets_are_listed_in_the_order_of_creation(org: Organization) -> None:
    ids = [await create(org["ann"], title) for title in ("b", "a", "c")]
    assert [snippet["id"] for snippet in await snippets(org["ann"])] == ids


BAD: list[tuple[dict[str, Any], str]] = [
    ({"title": "  "}, "BAD_REQUEST"),
    ({"title": "x" * 61}, "BAD_REQUEST"),
    ({"title": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
    ({"content": " \n"}, "BAD_REQUEST"),
    ({"content": "x" * 10_001}, "BAD_REQUEST"),
    ({"content": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
]


@pytest.mark.parametrize(("changed", "code"), BAD, ids=lambda value: str(value)[:40])
async def test_blank_or_too_long_text_is_refused(
    sqlite_org: Organization, changed: dict[str, Any], code: str
) -> None:
    made = await create(sqlite_org["ann"])
    (await sqlite_org["ann"].post(PATH, **{"title": "t", "content": "c", **changed})).refused(code)
    (await sqlite_org["ann"].patch(f"{PATH}/{made}", **changed)).refused(code)
    (kept,) = await snippets(sqlite_org["ann"])
    assert (kept["title"], kept["content"]) == ("Hello", "*Hi* all")
    (await sqlite_org["ann"].delete(f"{PATH}/{made}")).ok


@pytest.mark.parametrize("missing", ["title", "content"])
async def test_title_and_content_are_required(sqlite_org: Organization, missing: str) -> None:
    sent = {"title": "t", "content": "c", missing: None}
    (await sqlite_org["ann"].post(PATH, **sent)).refused("REQUEST_VARIABLE_MISSING")


async def test_the_longest_allowed_text_is_stored_completely(org: Organization) -> None:
    await create(org["ann"], "ü" * 60, "🦆" * 10_000)
    (snippet,) = await snippets(org["ann"])
    assert (snippet["title"], snippet["content"]) == ("ü" * 60, "🦆" * 10_000)


@pytest.mark.parametrize(
    ("edit", "shown"),
    [
        ({"title": " Bye "}, ("Bye", "*Hi* all")),
        ({"content": "Bye"}, ("Hello", "Bye")),
        ({"title": "Bye", "content": "Bye all"}, ("Bye", "Bye all")),
    ],
)
async def test_either_part_can_be_changed(
    org: Organization, edit: dict[str, str], shown: tuple[str, str]
) -> None:
    made = await create(org["ann"])
    (await org["ann"].patch(f"{PATH}/{made}", **edit)).ok
    (snippet,) = await snippets(org["ann"])
    assert (snippet["id"], snippet["title"], snippet["content"]) == (made, *shown)


async def test_an_empty_change_is_refused(org: Organization) -> None:
    made = await create(org["ann"])
    (await org["ann"].patch(f"{PATH}/{made}")).refused()


async def test_events_are_sent_to_the_owner_only(org: Organization) -> None:
    ann, ben = await org["ann"].register(), await org["ben"].register()
    made = await create(org["ann"])
    (first,) = await snippets(org["ann"])
    (await org["ann"].patch(f"{PATH}/{made}", title="Bye")).ok
    (await org["ann"].delete(f"{PATH}/{made}")).ok
    add, update, remove = await ann.events()
    assert {e["type"] for e in (add, update, remove)} == {"saved_snippets"}
    assert (add["op"], add["saved_snippet"]) == ("add", first)
    assert (update["op"], update["saved_snippet"]) == ("update", {**first, "title": "Bye"})
    assert (remove["op"], remove["saved_snippet_id"]) == ("remove", made)
    assert await ben.events() == []
    assert await snippets(org["ann"]) == []


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_an_unknown_or_foreign_snippet_is_not_found(org: Organization, method: str) -> None:
    made = await create(org["ann"])
    sent = {"title": "x"} if method == "PATCH" else {}
    for who, number in (("ben", made), ("ann", made + 1), ("ann", 0)):
        reply = await org[who].request(method, f"{PATH}/{number}", **sent)
        reply.refused("BAD_REQUEST", 404)
    assert len(await snippets(org["ann"])) == 1


async def test_the_number_of_snippets_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafts, "MAX_SNIPPETS", 1)
    await create(org["ann"])
    (await org["ann"].post(PATH, title="t", content="c")).refused()
