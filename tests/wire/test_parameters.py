"""Parsing parameters into values."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

import pytest
from msgspec import UNSET, Meta, Struct, UnsetType

from tertulia.wire.http.errors import BadParameter, ConfusingParameters, MissingParameter
from tertulia.wire.http.parameters import Alias, Int, Params, Path, Reads, decode
from tests.support import Organization

pytestmark = pytest.mark.usefixtures("no_logged_errors")

LARGEST = 2**53


class Inner(Struct, kw_only=True, frozen=True):
    """An object as a parameter."""

    name: str
    size: int = 0


def _read_sign(text: str) -> int:
    if text not in {"+", "-"}:
        raise ValueError("it is neither + nor -")
    return 1 if text == "+" else -1


def _read_words(text: str) -> str:
    return text


class Everything(Params, kw_only=True, frozen=True):
    """An optional parameter of each kind."""

    text: str = "default"
    optional_text: str | None = None
    short: Annotated[str, Meta(max_length=3)] = ""
    number: Int = 5
    optional_number: Int | None = 5
    changed_number: Int | UnsetType | None = UNSET
    unset_number: Int | UnsetType = UNSET
    flag: bool = False
    decimal: float = 0.0
    kind: Literal["add", "remove"] = "add"
    level: Literal[1, 2] = 1
    numbers: list[Int] = []
    texts: list[str] = []
    pairs: list[tuple[str, str]] = []
    inner: Inner = Inner(name="none")
    table: dict[str, bool] = {}
    either: int | str = 0
    sign: Annotated[int | None, Reads(_read_sign, {"type": "string"})] = 1
    words: Annotated[str, Reads(_read_words, {"type": "string"}, text=True)] = ""


class Needed(Params, kw_only=True, frozen=True):
    """Required parameters, with other names, and one in the path."""

    item_id: Annotated[Int, Path()]
    topic: Annotated[str, Alias("subject", "thread")]
    count: Int
    limit: Int | None


P = TypeVar("P", bound=Params)


def _decoded(
    params: type[P], sent: Mapping[str, str], path: Mapping[str, str]
) -> tuple[P, Sequence[str]]:
    values, ignored = decode(params, sent, path)
    return params(**values), ignored


async def endpoint(call: object, number: Int, words: Sequence[str] = ()) -> None:
    """An endpoint that takes its parameters as arguments."""


def test_arguments_of_an_endpoint_are_parameters() -> None:
    assert decode(endpoint, {"number": "7", "other": ""}, {}) == ({"number": 7}, ["other"])
    assert decode(endpoint, {"number": "7", "words": '["tea"]'}, {})[0]["words"] == ["tea"]
    with pytest.raises(MissingParameter):
        decode(endpoint, {}, {})


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("text", "plain", "plain"),
        ("text", "", ""),
        ("text", '"quoted"', '"quoted"'),
        ("text", "null", "null"),
        ("text", "12", "12"),
        ("text", " spaces \n", " spaces \n"),
        ("text", "naïve 😀 ‮", "naïve 😀 ‮"),
        ("text", "\\u0000", "\\u0000"),
        ("optional_text", "null", "null"),
        ("short", "😀😀😀", "😀😀😀"),
        ("number", "7", 7),
        ("number", "-7", -7),
        ("number", " 7 ", 7),
        ("number", str(LARGEST), LARGEST),
        ("number", str(-LARGEST), -LARGEST),
        ("number", "null", 5),
        ("optional_number", "null", None),
        ("changed_number", "null", None),
        ("unset_number", "null", UNSET),
        ("flag", "true", True),
        ("flag", "false", False),
        ("flag", "null", False),
        ("decimal", "1.5", 1.5),
        ("decimal", "2", 2.0),
        ("kind", "remove", "remove"),
        ("kind", '"remove"', "remove"),
        ("level", "2", 2),
        ("numbers", "[]", []),
        ("numbers", "[3, 1, 3]", [3, 1, 3]),
        ("texts", '["a", "é", "\\ud83d\\ude00"]', ["a", "é", "😀"]),
        ("texts", '["\\\\u0000"]', ["\\u0000"]),
        ("pairs", '[["channel", "lounge"]]', [("channel", "lounge")]),
        ("inner", '{"name": "x", "unknown": 1}', Inner(name="x")),
        ("inner", "null", Inner(name="none")),
        ("table", '{"a": true}', {"a": True}),
        ("either", "3", 3),
        ("either", '"3"', "3"),
        ("sign", "-", -1),
        ("sign", "null", None),
        ("words", "null", "null"),
    ],
)
def test_text_is_read_by_the_type(name: str, text: str, value: Any) -> None:
    params, ignored = _decoded(Everything, {name: text}, {})
    assert getattr(params, name) == value
    assert type(getattr(params, name)) is type(value)
    assert ignored == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("text", "a\0b"),
        ("short", "four"),
        ("number", ""),
        ("number", "seven"),
        ("number", '"7"'),
        ("number", "7.5"),
        ("number", "7.0"),
        ("number", "1e3"),
        ("number", "true"),
        ("number", "0x10"),
        ("number", "07"),
        ("number", "٣"),
        ("number", str(LARGEST + 1)),
        ("number", str(-LARGEST - 1)),
        ("number", "9" * 5000),
        ("flag", "True"),
        ("flag", "FALSE"),
        ("flag", "1"),
        ("flag", "0"),
        ("flag", '"true"'),
        ("flag", ""),
        ("decimal", "NaN"),
        ("decimal", "Infinity"),
        ("decimal", "1e999"),
        ("kind", "ADD"),
        ("kind", ""),
        ("kind", '"add'),
        ("kind", "null"),
        ("level", "3"),
        ("level", '"1"'),
        ("numbers", "3"),
        ("numbers", "3,4"),
        ("numbers", '["3"]'),
        ("numbers", "[3, null]"),
        ("numbers", "[true]"),
        ("numbers", f"[{LARGEST + 1}]"),
        ("numbers", "[1, 2"),
        ("numbers", "[1,]"),
        ("numbers", "[" * 100_000),
        ("texts", '["a\\u0000b"]'),
        ("texts", '["\\\\\\u0000"]'),
        ("texts", '["a\0b"]'),
        ("texts", '["\\ud800 alone"]'),
        ("texts", '["\\udc00 alone"]'),
        ("texts", "['single']"),
        ("pairs", '[["channel"]]'),
        ("pairs", '[["channel", "a", "b"]]'),
        ("inner", "{}"),
        ("inner", '{"name": null}'),
        ("inner", '["name"]'),
        ("inner", '{"name": "\\u0000"}'),
        ("table", '{"a": 1}'),
        ("table", '{"a\\u0000": true}'),
        ("either", "[]"),
        ("sign", "plus"),
    ],
)
def test_text_that_does_not_fit_the_type_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(BadParameter) as refused:
        decode(Everything, {name: text}, {})
    assert refused.value.name == name


def test_a_missing_parameter_has_its_default() -> None:
    params, _ = _decoded(Everything, {}, {})
    assert params == Everything()


NEEDED = {"topic": "tea", "count": "2", "limit": "null"}


def test_a_required_parameter_may_be_null_if_its_type_says_so() -> None:
    params, ignored = _decoded(Needed, NEEDED, {"item_id": "9"})
    assert params == Needed(item_id=9, topic="tea", count=2, limit=None)
    assert ignored == []


@pytest.mark.parametrize("name", ["topic", "count", "limit"])
def test_a_missing_required_parameter_is_named(name: str) -> None:
    sent = {key: text for key, text in NEEDED.items() if key != name}
    with pytest.raises(MissingParameter) as refused:
        decode(Needed, sent, {"item_id": "9"})
    assert refused.value.name == name


def test_null_for_a_required_parameter_counts_as_missing() -> None:
    with pytest.raises(BadParameter) as refused:
        decode(Needed, {**NEEDED, "count": "null"}, {"item_id": "9"})
    assert refused.value.name == "count"


@pytest.mark.parametrize("alias", ["subject", "thread"])
def test_an_alias_means_the_same(alias: str) -> None:
    sent = {alias: "tea", "count": "2", "limit": "3"}
    params, ignored = _decoded(Needed, sent, {"item_id": "9"})
    assert params.topic == "tea"
    assert ignored == []


@pytest.mark.parametrize(
    ("first", "second"), [("topic", "subject"), ("topic", "thread"), ("subject", "thread")]
)
def test_two_names_of_one_parameter_are_refused(first: str, second: str) -> None:
    sent = {first: "tea", second: "tea", "count": "2", "limit": "3"}
    with pytest.raises(ConfusingParameters) as refused:
        decode(Needed, sent, {"item_id": "9"})
    assert (refused.value.first, refused.value.second) == (first, second)


def test_a_path_parameter_is_not_taken_from_elsewhere() -> None:
    params, ignored = _decoded(Needed, {**NEEDED, "item_id": "1"}, {"item_id": "9"})
    assert params.item_id == 9
    assert ignored == ["item_id"]


def test_unknown_parameters_are_reported_in_their_order() -> None:
    _, ignored = decode(Everything, {"zeta": "1", "number": "1", "alpha": "\0"}, {})
    assert ignored == ["zeta", "alpha"]


# Over HTTP


SEND = {"type": "stream", "to": "lounge", "topic": "tea", "content": "hello"}
FORM = "application/x-www-form-urlencoded"


def _multipart(fields: dict[str, str]) -> dict[str, tuple[None, str]]:
    return {name: (None, text) for name, text in fields.items()}


async def test_forms_of_both_kinds_are_read(org: Organization) -> None:
    await org.channel("lounge", "ann")
    ann = org["ann"]
    (await ann.raw("POST", "/messages", data=SEND)).ok
    (await ann.raw("POST", "/messages", files=_multipart(SEND))).ok
    (await ann.raw("POST", "/messages", params=SEND)).ok
    raw = "type=stream&to=lounge&topic=caf\u00e9+%C3%A9&content=r\u00f4le".encode()
    (await ann.raw("POST", "/messages", content=raw, headers={"Content-Type": FORM})).ok
    (await ann.raw("POST", "/messages", content=raw)).ok
    page = (
        await ann.get("/messages", anchor="newest", num_before=9, num_after=0, apply_markdown=False)
    ).ok
    assert [(m["subject"], m["content"]) for m in page["messages"]] == [
        ("tea", "hello"),
        ("tea", "hello"),
        ("tea", "hello"),
        ("café é", "rôle"),
        ("café é", "rôle"),
    ]


async def test_json_with_very_many_values_is_not_decoded(org: Organization) -> None:
    ann = org["ann"]
    ids = list(range(1, 100_002))
    given = {"messages": ids, "op": "add", "flag": "starred"}
    msg = (await ann.post("/messages/flags", **given)).refused("REQUEST_VARIABLE_INVALID")["msg"]
    assert "more than 100,000 values" in msg
    given["messages"] = ids[:100_000]
    msg = (await ann.post("/messages/flags", **given)).refused("REQUEST_VARIABLE_INVALID")["msg"]
    assert "length <= 10000" in msg
    empty = "[" + "[]," * 60_000 + "[]]"
    narrow: dict[str, Any] = {"narrow": empty, "anchor": "newest", "num_before": 1, "num_after": 0}
    given = {**narrow, "op": "add", "flag": "read"}
    (await ann.post("/messages/flags/narrow", **given)).refused("REQUEST_VARIABLE_INVALID")
    given["narrow"] = "[" + "[]," * 30_000 + "[]]"
    (await ann.post("/messages/flags/narrow", **given)).refused("BAD_NARROW")
    data = [1] * 1001
    (await ann.delete("/users/me/profile_data", data=data)).refused("REQUEST_VARIABLE_INVALID")


async def test_commas_in_json_strings_are_not_counted_as_values(org: Organization) -> None:
    draft = {"type": "", "to": [], "topic": "", "content": 'a\\",[{' * 1600 + "\\", "timestamp": 1}
    (await org["ann"].post("/drafts", drafts=[draft] * 21)).ok
    values = '["\\\\",' + "{}," * 99_999 + "1]"
    msg = (await org["ann"].post("/drafts", drafts=values)).refused("REQUEST_VARIABLE_INVALID")[
        "msg"
    ]
    assert "more than 100,000 values" in msg


async def test_the_body_takes_precedence_over_the_query(org: Organization) -> None:
    await org.channel("lounge", "ann")
    ann = org["ann"]
    for how in ({"data": {"content": "from the body"}}, {"files": _multipart({"content": "it"})}):
        query = {**SEND, "content": "from the query"}
        sent = (await ann.raw("POST", "/messages", params=query, **how)).ok["id"]
        message = (await ann.get(f"/messages/{sent}", apply_markdown=False)).ok["message"]
        assert message["content"] in {"from the body", "it"}


@pytest.mark.parametrize("place", ["params", "data", "files"])
async def test_delete_takes_parameters_from_body_and_query(org: Organization, place: str) -> None:
    queue = await org["ann"].register()
    sent: Any = {"queue_id": queue.queue_id}
    how = {place: _multipart(sent) if place == "files" else sent}
    (await org["ann"].raw("DELETE", "/events", **how)).ok
    await org.do()  # Earlier records are on disk after it.
    (await org["ann"].get("/events", queue_id=queue.queue_id, last_event_id=-1)).refused(
        "BAD_EVENT_QUEUE_ID"
    )


async def test_the_last_of_several_equal_names_counts(org: Organization) -> None:
    reply = await org["ann"].raw("GET", "/messages?num_before=x&num_before=1&num_after=0&anchor=0")
    assert reply.ok["messages"] == []


async def test_ignored_parameters_are_reported_only_on_success(org: Organization) -> None:
    page = {"anchor": "newest", "num_before": 1, "num_after": 0}
    reply = await org["ann"].get("/messages", **page, odd="1", client="test", other="x")
    assert reply.ok["ignored_parameters_unsupported"] == ["odd", "other"]
    reply = await org["ann"].get("/messages", **page)
    assert "ignored_parameters_unsupported" not in reply.ok
    reply = await org["ann"].get("/messages", odd="1")
    assert "ignored_parameters_unsupported" not in reply.refused()


@pytest.mark.parametrize(
    ("sent", "code", "extra"),
    [
        ({"content": None}, "REQUEST_VARIABLE_MISSING", {"var_name": "content"}),
        ({"type": None}, "REQUEST_VARIABLE_MISSING", {"var_name": "type"}),
        ({"type": "loud"}, "REQUEST_VARIABLE_INVALID", {"var_name": "type"}),
        ({"read_by_sender": "True"}, "REQUEST_VARIABLE_INVALID", {"var_name": "read_by_sender"}),
        ({"content": "a\0b"}, "REQUEST_VARIABLE_INVALID", {"var_name": "content"}),
        (
            {"subject": "tea"},
            "REQUEST_CONFUSING_VAR",
            {"var_name1": "topic", "var_name2": "subject"},
        ),
    ],
)
async def test_errors_have_the_parameter_s_name(
    readonly_org: Organization, sent: dict[str, Any], code: str, extra: dict[str, str]
) -> None:
    body = (await readonly_org["ann"].post("/messages", **{**SEND, **sent})).refused(code)
    assert {name: body[name] for name in extra} == extra


async def test_an_invalid_alias_is_reported_by_the_name_sent(org: Organization) -> None:
    sent = {"type": "stream", "to": "lounge", "content": "x", "subject": "a\0b"}
    body = (await org["ann"].post("/messages", **sent)).refused("REQUEST_VARIABLE_INVALID")
    assert body["var_name"] == "subject"


async def test_a_client_s_name_is_stored_without_invisible_characters(org: Organization) -> None:
    await org.channel("lounge", "ann")
    sent = (await org["ann"].post("/messages", **SEND, client="  ro\0bo\u200e\n" + "x" * 99)).ok
    message = (await org["ann"].get(f"/messages/{sent['id']}")).ok["message"]
    assert message["client"] == ("robo" + "x" * 99)[:30]
