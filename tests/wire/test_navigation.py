"""Navigation views in the left sidebar."""

from typing import Any
from urllib.parse import quote

import pytest

from tertulia.domain.accounts import navigation
from tests.support import Organization, Person, row
from tests.wire.personal_data import listed

PATH = "/navigation_views"
OWN = "narrow/channel/1-lounge/topic/tea"


async def views(person: Person) -> list[dict[str, Any]]:
    return await listed(person, PATH, "navigation_views")


def at(fragment: str) -> str:
    return f"{PATH}/{quote(fragment, safe='')}"


async def test_a_built_in_view_has_a_state_and_no_name(org: Organization) -> None:
    assert navigation.BUILT_IN
    for fragment in sorted(navigation.BUILT_IN):
        with row(fragment):
            (await org["ann"].post(PATH, fragment=fragment, is_pinned=False)).ok
            assert await views(org["ann"]) == [{"fragment": fragment, "is_pinned": False}]
            reply = await org["ann"].patch(at(fragment), name="mine", is_pinned=True)
            reply.refused()
            assert await views(org["ann"]) == [{"fragment": fragment, "is_pinned": False}]
            (await org["ben"].post(PATH, fragment=fragment, is_pinned=True, name="mine")).refused()
            (await org["ann"].delete(at(fragment))).ok


async def test_a_built_in_view_without_settings_takes_no_name(
    org: Organization,
) -> None:
    (await org["ann"].patch(at("inbox"), name="mine")).refused()
    (await org["ann"].patch(at("inbox"), is_pinned=True)).refused("NOT_FOUND", 404)
    for name in ("mine", " "):
        (await org["ann"].patch(at("no/such/view"), name=name)).refused("NOT_FOUND", 404)


async def test_a_custom_view_has_a_name(org: Organization) -> None:
    (await org["ann"].post(PATH, fragment=f" {OWN} ", is_pinned=True, name=" Tea ")).ok
    assert await views(org["ann"]) == [{"fragment": OWN, "is_pinned": True, "name": "Tea"}]
    assert await views(org["ben"]) == []


@pytest.mark.parametrize(
    ("changed", "code"),
    [
        ({"fragment": None}, "REQUEST_VARIABLE_MISSING"),
        ({"fragment": ""}, "BAD_REQUEST"),
        ({"fragment": "  \t"}, "BAD_REQUEST"),
        ({"fragment": "x" * 1001}, "BAD_REQUEST"),
        ({"fragment": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
        ({"is_pinned": None}, "REQUEST_VARIABLE_MISSING"),
        ({"is_pinned": "perhaps"}, "REQUEST_VARIABLE_INVALID"),
        ({"name": None}, "BAD_REQUEST"),
        ({"name": " "}, "BAD_REQUEST"),
        ({"name": "x" * 101}, "BAD_REQUEST"),
        ({"name": "a\0b"}, "REQUEST_VARIABLE_INVALID"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_an_invalid_view_is_refused(
    sqlite_org: Organization, changed: dict[str, Any], code: str
) -> None:
    good = {"fragment": OWN, "is_pinned": True, "name": "Tea"}
    (await sqlite_org["ann"].post(PATH, **{**good, **changed})).refused(code)
    assert await views(sqlite_org["ann"]) == []


async def test_fragment_and_name_are_unique_per_account(org: Organization) -> None:
    for who in ("ann", "ben"):
        (await org[who].post(PATH, fragment=OWN, is_pinned=True, name="Tea")).ok
    ann = org["ann"]
    (await ann.post(PATH, fragment=OWN, is_pinned=True, name="Coffee")).refused()
    (await ann.post(PATH, fragment="narrow/is/dm", is_pinned=True, name="Tea")).refused()
    (await ann.post(PATH, fragment="narrow/is/dm", is_pinned=True, name="DMs")).ok
    (await ann.patch(at("narrow/is/dm"), name="Tea")).refused()
    (await ann.patch(at("narrow/is/dm"), name="DMs")).ok


@pytest.mark.parametrize(
    ("edit", "shown"),
    [
        ({"is_pinned": False}, {"is_pinned": False}),
        ({"name": " Coffee "}, {"name": "Coffee"}),
        ({"name": "Coffee", "is_pinned": False}, {"name": "Coffee", "is_pinned": False}),
    ],
)
async def test_state_and_name_can_be_changed(
    org: Organization, edit: dict[str, Any], shown: dict[str, Any]
) -> None:
    (await org["ann"].post(PATH, fragment=OWN, is_pinned=True, name="Tea")).ok
    (await org["ann"].patch(at(OWN), **edit)).ok
    before = {"fragment": OWN, "is_pinned": True, "name": "Tea"}
    assert await views(org["ann"]) == [{**before, **shown}]


SENSELESS: list[tuple[dict[str, Any], str]] = [
    ({"name": " "}, "BAD_REQUEST"),
    ({"name": "x" * 101}, "BAD_REQUEST"),
    ({"is_pinned": "perhaps"}, "REQUEST_VARIABLE_INVALID"),
]


async def test_an_invalid_change_is_refused(org: Organization) -> None:
    (await org["ann"].post(PATH, fragment=OWN, is_pinned=True, name="Tea")).ok
    for edit, code in SENSELESS:
        with row(edit):
            (await org["ann"].patch(at(OWN), **edit)).refused(code)
            assert await views(org["ann"]) == [{"fragment": OWN, "is_pinned": True, "name": "Tea"}]


async def test_slashes_in_the_fragment_need_no_escaping(org: Organization) -> None:
    (await org["ann"].post(PATH, fragment="narrow/is/starred", is_pinned=True)).ok
    (await org["ann"].patch(f"{PATH}/narrow/is/starred", is_pinned=False)).ok
    assert await views(org["ann"]) == [{"fragment": "narrow/is/starred", "is_pinned": False}]
    (await org["ann"].delete(f"{PATH}/narrow/is/starred")).ok
    assert await views(org["ann"]) == []


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
async def test_an_unknown_or_foreign_view_is_not_found(org: Organization, method: str) -> None:
    (await org["ann"].post(PATH, fragment=OWN, is_pinned=True, name="Tea")).ok
    sent = {"is_pinned": False} if method == "PATCH" else {}
    for who, fragment in (("ben", OWN), ("ann", "inbox"), ("ann", "no/such/view"), ("ann", " ")):
        (await org[who].request(method, at(fragment), **sent)).refused("NOT_FOUND", 404)
    assert await views(org["ann"]) == [{"fragment": OWN, "is_pinned": True, "name": "Tea"}]


async def test_events_are_sent_to_the_owner_only(org: Organization) -> None:
    ann, ben = await org["ann"].register(), await org["ben"].register()
    (await org["ann"].post(PATH, fragment=OWN, is_pinned=True, name="Tea")).ok
    (await org["ann"].patch(at(OWN), is_pinned=False)).ok
    (await org["ann"].patch(at(OWN), is_pinned=False, name="Coffee")).ok
    (await org["ann"].patch(at(OWN), name="Coffee")).ok
    (await org["ann"].patch(at(OWN))).ok
    (await org["ann"].delete(at(OWN))).ok
    events = await ann.events()
    assert {event.pop("type") for event in events} == {"navigation_view"}
    for event in events:
        event.pop("id")
    shown = {"fragment": OWN, "is_pinned": True, "name": "Tea"}
    assert events == [
        {"op": "add", "navigation_view": shown},
        {"op": "update", "fragment": OWN, "data": {"is_pinned": False}},
        {"op": "update", "fragment": OWN, "data": {"name": "Coffee"}},
        {"op": "remove", "fragment": OWN},
    ]
    assert await ben.events() == []
    assert await views(org["ann"]) == []


async def test_the_number_of_views_is_limited(
    org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(navigation, "MAX_VIEWS", 1)
    (await org["ann"].post(PATH, fragment="inbox", is_pinned=True)).ok
    (await org["ann"].post(PATH, fragment="feed", is_pinned=True)).refused()
