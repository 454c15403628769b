"""The OpenAPI document, its page, and checking responses against it."""

import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import pytest

from tertulia.wire.api.openapi import document
from tertulia.wire.api.routes import ROUTES
from tests import contract
from tests.support import Organization

SENT = {"result": "success", "msg": "", "id": 7}
HEARTBEAT = {"id": 3, "type": "heartbeat"}
TYPING = {
    "id": 4,
    "type": "typing",
    "op": "start",
    "message_type": "stream",
    "sender": {"user_id": 9, "email": "ben@example.com"},
    "stream_id": 1,
    "topic": "tea",
}
ERROR = {"result": "error", "msg": "No.", "code": "BAD_REQUEST"}


def test_the_document_is_valid_openapi() -> None:
    # (Imported here, because only one process needs it.)
    from openapi_spec_validator import validate

    validate(document())


def test_every_endpoint_is_in_the_document_once() -> None:
    operations = [
        operation for methods in document()["paths"].values() for operation in methods.values()
    ]
    assert len(operations) == len(ROUTES)
    assert len({operation["operationId"] for operation in operations}) == len(ROUTES)


def test_everything_is_described() -> None:
    made = document()
    for methods in made["paths"].values():
        for operation in methods.values():
            assert operation["summary"], operation["operationId"]
    for name, schema in made["components"]["schemas"].items():
        assert schema.get("description"), name


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ({**SENT, "id": "7"}, "is not of type 'integer'"),
        ({**SENT, "extra": 1}, "'extra' was unexpected"),
        ({"result": "success", "msg": ""}, "'id' is a required property"),
        ({**SENT, "msg": "well done"}, "'' was expected"),
        ({**SENT, "ignored_parameters_unsupported": []}, "should be non-empty"),
        ({**SENT, "ignored_parameters_unsupported": [1]}, "is not of type 'string'"),
    ],
)
def test_an_undocumented_response_fails(body: dict[str, Any], error: str) -> None:
    contract.check_body("POST", "/messages", 200, SENT)
    with pytest.raises(AssertionError, match=re.escape(error)):
        contract.check_body("POST", "/messages", 200, body)


@pytest.mark.parametrize(
    "body",
    [
        {**ERROR, "result": "success"},
        {**ERROR, "msg": ""},
        {"result": "error", "msg": "No."},
        {**ERROR, "surprise": True},
    ],
)
def test_an_undocumented_error_fails(body: dict[str, Any]) -> None:
    contract.check_body("POST", "/messages", 400, ERROR)
    with pytest.raises(AssertionError):
        contract.check_body("POST", "/messages", 400, body)


def test_an_undocumented_status_fails() -> None:
    with pytest.raises(AssertionError, match="does not answer 500"):
        contract.check_body("POST", "/messages", 500, ERROR)


def _without(name: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda event: {key: value for key, value in event.items() if key != name}


@pytest.mark.parametrize(
    "spoil",
    [
        _without("id"),
        _without("type"),
        _without("topic"),
        lambda event: {**event, "type": "unheard"},
        lambda event: {**event, "extra": None},
        lambda event: {**event, "stream_id": "1"},
        lambda event: {**event, "sender": {"user_id": 9}},
    ],
)
def test_an_undocumented_event_fails(
    spoil: Callable[[dict[str, Any]], dict[str, Any]],
) -> None:
    answer = {"result": "success", "msg": "", "queue_id": "q"}
    contract.check_body("GET", "/events", 200, {**answer, "events": [HEARTBEAT, TYPING]})
    with pytest.raises(AssertionError):
        contract.check_body("GET", "/events", 200, {**answer, "events": [HEARTBEAT, spoil(TYPING)]})


async def test_people_check_their_responses(
    sqlite_org: Organization, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tertulia.wire.http.responses.SUCCESS", b'{"result":"success","msg":"","odd":1'
    )
    with pytest.raises(AssertionError, match="'odd' was unexpected"):
        await sqlite_org["ann"].get("/messages", anchor="newest", num_before=1, num_after=0)


async def test_the_document_is_served_and_cached(sqlite_org: Organization) -> None:
    first = await sqlite_org.http.get("/api/v1/openapi.json")
    assert first.status_code == 200
    assert first.headers["content-type"] == "application/json"
    assert first.headers["access-control-allow-origin"] == "*"
    assert first.headers.get_list("cache-control") == ["no-cache"]
    assert first.json() == json.loads(json.dumps(document()))
    again = await sqlite_org.http.get(
        "/api/v1/openapi.json", headers={"If-None-Match": f'"other", W/{first.headers["etag"]}'}
    )
    assert (again.status_code, again.content) == (304, b"")
    other = await sqlite_org.http.get("/api/v1/openapi.json", headers={"If-None-Match": '"other"'})
    assert other.status_code == 200


class _Page(HTMLParser):
    """The anchors, links, and elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.elements: list[str] = []
        self.attributes: list[str] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        if tag not in {"meta", "link"}:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.append(name)
            if name == "id":
                self.ids.append(value or "")
            if name in {"href", "src"}:
                self.links.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_shows_every_endpoint_and_stands_alone(sqlite_org: Organization) -> None:
    response = await sqlite_org.http.get("/api")
    assert response.headers["content-type"].startswith("text/html")
    page = _Page(response.text)
    assert page.open == []
    assert len(page.ids) == len(set(page.ids))
    for methods in document()["paths"].values():
        for operation in methods.values():
            assert operation["operationId"] in page.ids
    assert {">bot storage<", ">user topics<"} <= set(re.findall(">[^<>]+<", response.text))
    within = {link for link in page.links if link.startswith("#")}
    assert within <= {f"#{anchor}" for anchor in page.ids}
    outside = {link for link in page.links if not link.startswith("#")}
    assert outside == {"/api/style.css", "/api/v1/openapi.json"}
    assert not {"script", "style", "iframe", "img"} & set(page.elements)
    assert not any(name == "style" or name.startswith("on") for name in page.attributes)
    policy = response.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    styles = await sqlite_org.http.get("/api/style.css")
    assert styles.headers["content-type"].startswith("text/css")
    assert "light-dark(" in styles.text
    assert not re.search(r"@import|https?:", styles.text)
    # It needs nothing but the client's fonts.
    assert set(re.findall(r"url\((.*?)\)", styles.text)) == {
        f'"/app/assets/{name}-v1.woff2"' for name in ("figtree", "fraunces")
    }
