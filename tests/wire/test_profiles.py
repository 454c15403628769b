"""Custom profile fields and their values."""

import json
from typing import Any

import pytest

from tests.support import Organization, Reply, open_organization, row
from tests.wire.sample_organization import LIMITED

OPTIONS = {"0": {"text": "one", "order": "1"}, "b": {"text": "two", "order": "2"}}
CUSTOM = {"subtype": "custom", "url_pattern": "https://example.com/u/%(username)s"}
KINDS: dict[int, dict[str, Any]] = {
    1: {},
    2: {},
    3: {"field_data": OPTIONS},
    4: {},
    5: {},
    6: {},
    7: {"field_data": CUSTOM},
    8: {},
}


async def field(org: Organization, kind: int = 1, **more: Any) -> int:
    """Create a field. Returns its ID."""
    values = {"name": f"Field {len(org.node.state.profile_fields)}", **KINDS[kind], **more}
    field_id: int = (await org["ann"].post("/realm/profile_fields", field_type=kind, **values)).ok[
        "id"
    ]
    return field_id


async def fields(org: Organization, who: str = "ben") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await org[who].get("/realm/profile_fields")).ok["custom_fields"]
    return found


async def fill_in(org: Organization, who: str, field_id: int, value: Any) -> Reply:
    data = [{"id": field_id, "value": value}]
    return await org[who].patch("/users/me/profile_data", data=data)


async def profile(org: Organization, name: str, viewer: str = "ann") -> dict[str, Any]:
    reply = await org[viewer].get(f"/users/{org[name].user_id}", include_custom_profile_fields=True)
    found: dict[str, Any] = reply.ok["user"]["profile_data"]
    return found


# Fields


async def test_a_field_of_every_kind_is_created_and_sent_to_everyone(org: Organization) -> None:
    listener = await org["gus"].register()
    for number, kind in enumerate(KINDS):
        with row(kind):
            field_id = await field(org, kind, name=f" Field {kind} ", hint="a hint")
            data = KINDS[kind].get("field_data")
            shown = (await fields(org))[-1]
            assert json.loads(shown.pop("field_data") or "null") == data
            assert shown == {
                "id": field_id,
                "type": kind,
                "name": f"Field {kind}",
                "hint": "a hint",
                "order": number + 1,
                "required": False,
                "editable_by_user": True,
            }
            (event,) = await listener.events()
            snapshot = (await org["gus"].register()).data
            assert event["type"] == "custom_profile_fields"
            assert event["fields"] == await fields(org) == snapshot["custom_profile_fields"]
            types = snapshot["custom_profile_field_types"]
            assert kind in {one["id"] for one in types.values()}
    async with open_organization(org.node.config) as later:
        assert await fields(later) == event["fields"]


async def test_the_properties_of_a_field_are_stored(org: Organization) -> None:
    flags = {
        "required": True,
        "editable_by_user": False,
        "use_for_user_matching": True,
        "display_in_profile_summary": True,
    }
    field_id = await field(org, **flags)
    (shown,) = await fields(org)
    assert {name: shown[name] for name in flags} == flags
    changed = {name: not value for name, value in flags.items()}
    path = f"/realm/profile_fields/{field_id}"
    assert (await org["ann"].patch(path, **changed, name="Desk", hint="where")).ok
    (shown,) = await fields(org)
    assert (shown["name"], shown["hint"], shown["required"]) == ("Desk", "where", False)
    assert shown["editable_by_user"] is True
    assert "use_for_user_matching" not in shown
    assert "display_in_profile_summary" not in shown
    assert (await org["ann"].patch(path, hint="")).ok
    assert [(one["name"], one["hint"]) for one in await fields(org)] == [("Desk", "")]


async def test_a_field_for_a_known_service_has_its_name(org: Organization) -> None:
    data = {"subtype": "github"}
    made = await org["ann"].post("/realm/profile_fields", field_type=7, field_data=data)
    (shown,) = await fields(org)
    assert (shown["name"], json.loads(shown["field_data"])) == ("GitHub", data)
    path = f"/realm/profile_fields/{made.ok['id']}"
    (await org["ann"].patch(path, name="Other")).refused()
    (await org["ann"].patch(path, field_data=CUSTOM)).refused()
    assert (await org["ann"].patch(path, required=True)).ok
    again = await org["ann"].post("/realm/profile_fields", field_type=7, field_data=data)
    again.refused()


@pytest.fixture(scope="module")
async def taken(shared_org: Organization) -> int:
    """A field whose name is taken."""
    return await field(shared_org, name="Taken")


@pytest.mark.parametrize(
    "given",
    [
        {"field_type": 1},
        {"field_type": 1, "name": ""},
        {"field_type": 1, "name": "   "},
        {"field_type": 1, "name": "x" * 41},
        {"field_type": 1, "name": "null\0"},
        {"field_type": 1, "name": "Taken"},
        {"field_type": 1, "name": "Hinted", "hint": "x" * 81},
        {"field_type": 0, "name": "Zero"},
        {"field_type": 9, "name": "Nine"},
        {"field_type": "text", "name": "Text"},
        {"name": "Untyped"},
        {"field_type": 1, "name": "Data", "field_data": {"a": "b"}},
        {"field_type": 3, "name": "None to choose"},
        {"field_type": 3, "name": "None to choose", "field_data": {}},
        {"field_type": 3, "name": "No text", "field_data": {"a": {"text": "", "order": "1"}}},
        {"field_type": 3, "name": "No order", "field_data": {"a": {"text": "x"}}},
        {"field_type": 3, "name": "No object", "field_data": {"a": "x"}},
        {"field_type": 3, "name": "A list", "field_data": ["x"]},
        {
            "field_type": 3,
            "name": "Twice",
            "field_data": {
                "a": {"text": "x", "order": "1"},
                "b": {"text": "X", "order": "2"},
            },
        },
        {"field_type": 7, "name": "No data"},
        {"field_type": 7, "name": "Unknown", "field_data": {"subtype": "myspace"}},
        {"field_type": 7, "name": "No pattern", "field_data": {"subtype": "custom"}},
        {
            "field_type": 7,
            "name": "No user",
            "field_data": {"subtype": "custom", "url_pattern": "https://example.com/"},
        },
        {
            "field_type": 7,
            "name": "No link",
            "field_data": {"subtype": "custom", "url_pattern": "javascript:%(username)s"},
        },
        {"field_type": 6, "name": "Summary", "display_in_profile_summary": True},
        *(
            {"field_type": kind, "name": "Matching", "use_for_user_matching": True}
            for kind in (2, 4, 5, 6, 8)
        ),
    ],
)
async def test_an_invalid_field_is_refused(
    taken: int, readonly_org: Organization, given: dict[str, Any]
) -> None:
    listener = await readonly_org["ben"].register()
    assert (await readonly_org["ann"].post("/realm/profile_fields", **given)).status == 400
    assert len(await fields(readonly_org)) == 1
    assert await listener.events() == []


async def test_the_summary_has_room_for_two_fields(org: Organization) -> None:
    for kind in (2, 4):
        await field(org, kind, display_in_profile_summary=True)
    third = await field(org)
    path = f"/realm/profile_fields/{third}"
    (await org["ann"].patch(path, display_in_profile_summary=True)).refused()
    more = {"name": "More", "field_type": 1, "display_in_profile_summary": True}
    (await org["ann"].post("/realm/profile_fields", **more)).refused()


@pytest.mark.parametrize("who", ["ben", "gus", "robo"])
async def test_fields_are_for_administrators(org: Organization, who: str) -> None:
    field_id = await field(org)
    person, path = org[who], f"/realm/profile_fields/{field_id}"
    code = "UNAUTHORIZED_PRINCIPAL"
    (await person.post("/realm/profile_fields", name="Mine", field_type=1)).refused(code)
    (await person.patch("/realm/profile_fields", order=[field_id])).refused(code)
    (await person.patch(path, name="Mine")).refused(code)
    (await person.delete(path)).refused(code)
    assert len(await fields(org, who)) == 1


async def test_fields_can_be_reordered(org: Organization) -> None:
    ids = [await field(org) for _ in range(3)]
    listener = await org["gus"].register()
    order = [ids[2], ids[0], ids[1]]
    assert (await org["ann"].patch("/realm/profile_fields", order=order)).ok
    assert [one["id"] for one in await fields(org)] == order
    assert [one["order"] for one in await fields(org)] == [1, 2, 3]
    (event,) = await listener.events()
    assert event["fields"] == await fields(org)
    for wrong in (ids[:2], [*ids, ids[0]], [*ids[:2], 999], []):
        (await org["ann"].patch("/realm/profile_fields", order=wrong)).refused()
    assert [one["id"] for one in await fields(org)] == order


async def test_deleting_a_field_deletes_its_values(org: Organization) -> None:
    field_id = await field(org)
    assert (await fill_in(org, "ben", field_id, "x")).ok
    listener = await org["gus"].register()
    assert (await org["ann"].delete(f"/realm/profile_fields/{field_id}")).ok
    (event,) = await listener.events()
    assert (event["type"], event["fields"]) == ("custom_profile_fields", [])
    assert await profile(org, "ben") == {}
    assert await field(org) != field_id
    assert await profile(org, "ben") == {}


@pytest.mark.parametrize("method", ["patch", "delete"])
async def test_an_unknown_field_is_refused(readonly_org: Organization, method: str) -> None:
    reply = await getattr(readonly_org["ann"], method)("/realm/profile_fields/999")
    reply.refused()


async def test_a_removed_choice_is_removed_from_profiles(org: Organization) -> None:
    field_id = await field(org, 3)
    assert (await fill_in(org, "ben", field_id, "0")).ok
    assert (await fill_in(org, "cleo", field_id, "b")).ok
    listener = await org["gus"].register()
    left = {"field_data": {"b": {"text": "second", "order": "1"}}}
    assert (await org["ann"].patch(f"/realm/profile_fields/{field_id}", **left)).ok
    emptied, told = await listener.events()
    assert emptied["person"] == {
        "user_id": org["ben"].user_id,
        "custom_profile_field": {"id": field_id, "value": None},
    }
    assert told["type"] == "custom_profile_fields"
    assert await profile(org, "ben") == {}
    assert await profile(org, "cleo") == {str(field_id): {"value": "b"}}
    gone: dict[str, dict[str, object]] = {"field_data": {}}
    (await org["ann"].patch(f"/realm/profile_fields/{field_id}", **gone)).refused()


# Values


VALUES: list[tuple[int, Any, Any, str | None]] = [
    (1, "*desk* 3", "*desk* 3", "<p><em>desk</em> 3</p>"),
    (1, "x" * 50, "x" * 50, f"<p>{'x' * 50}</p>"),
    (1, "<b>", "<b>", "<p>&lt;b&gt;</p>"),
    (2, "**long**\n\ntext", "**long**\n\ntext", "<p><strong>long</strong></p>\n<p>text</p>"),
    (3, "b", "b", None),
    (4, "2001-02-28", "2001-02-28", None),
    (5, "https://example.com/me?x=1", "https://example.com/me?x=1", None),
    (6, ["cleo", "ann", "cleo"], ["cleo", "ann"], None),
    (7, "octocat", "octocat", None),
    (8, "they/them", "they/them", None),
]
"""The kind of field, the value, and how it's shown: raw and as HTML."""


async def test_a_value_is_shown_according_to_its_field(org: Organization) -> None:
    shown: dict[str, dict[str, Any]] = {}
    """All values that ben has set so far."""
    for kind, given, value, rendered in VALUES:
        with row(kind, given):
            if kind == 6:
                given = [org[name].user_id for name in given]
                value = json.dumps([org[name].user_id for name in value]).replace(" ", "")
            field_id = await field(org, kind)
            listener = await org["gus"].register()
            assert (await fill_in(org, "ben", field_id, given)).ok
            new = {"value": value} | ({} if rendered is None else {"rendered_value": rendered})
            shown[str(field_id)] = new
            assert await profile(org, "ben") == shown
            own = (await org["ben"].get("/users/me")).ok["profile_data"]
            everybody = (await org["gus"].register()).data["realm_users"]
            (listed,) = [user for user in everybody if user["user_id"] == org["ben"].user_id]
            assert own == listed["profile_data"] == shown
            (event,) = await listener.events()
            assert (event["type"], event["op"]) == ("realm_user", "update")
            news = {"id": field_id, **new}
            assert event["person"] == {"user_id": org["ben"].user_id, "custom_profile_field": news}
            assert (await fill_in(org, "ben", field_id, given)).ok
            assert await listener.events() == []
    async with open_organization(org.node.config) as later:
        assert await profile(later, "ben") == shown


WRONG_VALUES: tuple[tuple[int, Any], ...] = (
    (1, "x" * 51),
    (1, [1]),
    (1, "two\nlines"),
    (2, "x" * 501),
    (3, "c"),
    (3, "one"),
    (4, "28.2.2001"),
    (4, "2001-02-29"),
    (4, "2001-02-28T00:00"),
    (4, "٢٠٠١-٠٢-٢٨"),
    (5, "example"),
    (5, "javascript:alert(1)"),
    (5, "https://"),
    (5, "https://a b"),
    (6, "4"),
    (6, [999]),
    (6, ["robo"]),
    (6, ["dan"]),
    (6, list(range(4, 200))),
    (7, "x" * 51),
    (8, "x" * 51),
)


async def test_an_invalid_value_is_refused(org: Organization) -> None:
    dan = await org.add("dan")
    assert (await org["ann"].delete(f"/users/{dan.user_id}")).ok
    fields_by_kind = {kind: await field(org, kind) for kind in dict(WRONG_VALUES)}
    other = await field(org, 1)
    for kind, value in WRONG_VALUES:
        if isinstance(value, list):
            value = [org[one].user_id if isinstance(one, str) else one for one in value]
        data = [{"id": other, "value": "fine"}, {"id": fields_by_kind[kind], "value": value}]
        with row(kind, value):
            (await org["ben"].patch("/users/me/profile_data", data=data)).refused()
            assert await profile(org, "ben") == {}


SHAPES: list[Any] = [
    "x",
    {"id": 1},
    [{"value": "x"}],
    [{"id": "1", "value": "x"}],
    [{"id": 1, "value": 3}],
    [1],
]


async def test_profile_data_of_another_form_is_refused(org: Organization) -> None:
    await field(org)
    for data in SHAPES:
        with row(data):
            reply = await org["ben"].patch("/users/me/profile_data", data=json.dumps(data))
            reply.refused("REQUEST_VARIABLE_INVALID")


NOTHINGS: list[Any] = [None, "", "   ", []]


async def test_an_empty_value_removes_it(org: Organization) -> None:
    for empty in NOTHINGS:
        with row(empty):
            field_id = await field(org, 6 if empty == [] else 1)
            given = [org["ann"].user_id] if empty == [] else "x"
            assert (await fill_in(org, "ben", field_id, given)).ok
            listener = await org["gus"].register()
            assert (await fill_in(org, "ben", field_id, empty)).ok
            (event,) = await listener.events()
            assert event["person"]["custom_profile_field"] == {"id": field_id, "value": None}
            assert await profile(org, "ben") == {}
            assert (await fill_in(org, "ben", field_id, empty)).ok
            assert await listener.events() == []


async def test_fields_are_cleared_by_id(org: Organization) -> None:
    first, second = await field(org), await field(org)
    assert (await fill_in(org, "ben", first, "x")).ok
    assert (await org["ben"].delete("/users/me/profile_data", data=[first, second])).ok
    assert await profile(org, "ben") == {}
    (await org["ben"].delete("/users/me/profile_data", data=[first, 999])).refused()
    reply = await org["ben"].delete("/users/me/profile_data", data="x")
    reply.refused("REQUEST_VARIABLE_INVALID")
    (await org["ben"].delete("/users/me/profile_data")).refused("REQUEST_VARIABLE_MISSING")


async def test_only_administrators_change_their_fields(org: Organization) -> None:
    field_id = await field(org, editable_by_user=False)
    ben = org["ben"].user_id
    (await fill_in(org, "ben", field_id, "x")).refused()
    (await org["ben"].delete("/users/me/profile_data", data=[field_id])).refused()
    assert (await fill_in(org, "ann", field_id, "mine")).ok
    data = [{"id": field_id, "value": "given"}]
    assert (await org["ann"].patch(f"/users/{ben}", profile_data=data)).ok
    assert (await profile(org, "ben"))[str(field_id)]["value"] == "given"
    data = [{"id": field_id, "value": ""}]
    assert (await org["ann"].patch("/users/ben@example.com", profile_data=data)).ok
    assert await profile(org, "ben") == {}


NOT_CHANGED: list[tuple[str, str, dict[str, Any]]] = [
    ("ann", "ben", {"id": 999, "value": "x"}),
    ("ann", "ben", {"value": "x" * 51}),
    ("ann", "robo", {"value": "x"}),
    ("ben", "cleo", {"value": "x"}),
    ("ben", "ben", {"value": "x"}),
]


async def test_a_locked_profile_cannot_be_changed(org: Organization) -> None:
    field_id = await field(org)
    for who, target, entry in NOT_CHANGED:
        with row(who, target, entry):
            data = [{"id": field_id, **entry}]
            path = f"/users/{org[target].user_id}"
            reply = await org[who].patch(path, profile_data=data, full_name="Changed too")
            reply.refused()
            assert (await org["ann"].get(path)).ok["user"]["full_name"] != "Changed too"


async def test_bots_have_no_profile(org: Organization) -> None:
    field_id = await field(org)
    (await fill_in(org, "robo", field_id, "x")).refused()
    shown = (await org["ann"].get("/users", include_custom_profile_fields=True)).ok["members"]
    assert ["profile_data" in user for user in shown] == [not user["is_bot"] for user in shown]
    assert "profile_data" not in (await org["ann"].get("/users")).ok["members"][0]


async def test_profiles_are_visible_to_people_who_can_see_the_account(org: Organization) -> None:
    await org.do(LIMITED)
    field_id = await field(org)
    listener = await org["gus"].register()
    assert (await fill_in(org, "ben", field_id, "x")).ok
    assert await listener.events() == []


async def test_spectators_see_no_profiles(org: Organization) -> None:
    from tertulia.model.changes import RealmChanged

    await org.do(RealmChanged(values={"enable_spectator_access": True}))
    field_id = await field(org)
    assert (await fill_in(org, "ben", field_id, "x")).ok
    members = (await org.nobody.get("/users", include_custom_profile_fields=True)).ok["members"]
    assert all(not user.get("profile_data") for user in members)
    assert (await org.nobody.register()).data["custom_profile_fields"] == []
    (await org.nobody.get("/realm/profile_fields")).refused("UNAUTHORIZED", 401)


async def test_of_two_concurrent_fields_one_gets_the_last_place(org: Organization) -> None:
    import asyncio

    await field(org, display_in_profile_summary=True)
    replies = await asyncio.gather(
        *(
            org["ann"].post(
                "/realm/profile_fields",
                name=f"Name {number}",
                field_type=1,
                display_in_profile_summary=True,
            )
            for number in range(3)
        )
    )
    assert sorted(reply.status for reply in replies) == [200, 400, 400]
