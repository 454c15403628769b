"""Check every response in the tests against our OpenAPI document."""

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

import httpx
import jsonschema_rs
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # without types
from jsonschema.exceptions import best_match  # type: ignore[import-untyped]  # as above
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from tertulia.wire.api.openapi import document

_URN = "urn:tertulia:openapi"
_REST = {"filename"}
"""Path parameters that may contain slashes."""


@cache
def described() -> dict[str, Any]:
    """The document. Don't change it."""
    return document()


@cache
def _validator(pointer: str) -> jsonschema_rs.Draft202012Validator:
    """A validator of the schema at this place in the document."""
    schema = {"$ref": f"{_URN}#{pointer}"}
    return jsonschema_rs.Draft202012Validator(schema, registry=_registry())


@cache
def _registry() -> jsonschema_rs.Registry:
    return jsonschema_rs.Registry([(_URN, described())])


@cache
def _explainer(pointer: str) -> Draft202012Validator:
    """A validator in Python: many times slower, with better error messages."""
    resource = DRAFT202012.create_resource(described())
    registry: Registry[Any] = Registry().with_resource(_URN, resource)
    return Draft202012Validator({"$ref": f"{_URN}#{pointer}"}, registry=registry)


@cache
def _templates() -> list[tuple[re.Pattern[str], str]]:
    """Every path of the document as a pattern, the most specific first."""
    found = []
    for path, methods in described()["paths"].items():
        numbers = {
            parameter["name"]
            for operation in methods.values()
            for parameter in operation.get("parameters", ())
            if parameter["in"] == "path" and parameter["schema"].get("type") == "integer"
        }
        names = re.findall(r"\{(\w+)\}", path)
        pattern = re.escape(path).replace(r"\{", "{").replace(r"\}", "}")
        for name in names:
            part = r"\d+" if name in numbers else ".+" if name in _REST else "[^/]+"
            pattern = pattern.replace(f"{{{name}}}", part)
        found.append((len(names), len(names) - len(numbers), path, re.compile(pattern)))
    return [(pattern, path) for _, _, path, pattern in sorted(found, key=lambda one: one[:3])]


@cache
def _path_of(path: str) -> str | None:
    return next((known for pattern, known in _templates() if pattern.fullmatch(path)), None)


@cache
def _events() -> Mapping[str, tuple[str, ...]]:
    """The names of the event schemas, by type."""
    schemas = described()["components"]["schemas"]
    found: dict[str, tuple[str, ...]] = {}
    for option in schemas["Event"]["anyOf"]:
        name = option["$ref"].rpartition("/")[2]
        (tag,) = schemas[name]["properties"]["type"]["enum"]
        found[tag] = (*found.get(tag, ()), name)
    return found


def checked(method: str, path: str, response: httpx.Response) -> dict[str, Any]:
    """Return the response's JSON body, or an empty dict if it has no body. Fails if it doesn't
    match the document. Paths and methods that aren't in the document aren't checked.
    """
    if not response.content:
        return {}
    body: dict[str, Any] = response.json()
    known = _path_of(path.partition("?")[0])
    if known is not None and method.lower() in described()["paths"][known]:
        check_body(method, known, response.status_code, body)
    return body


def check_body(method: str, path: str, status: int, body: dict[str, Any]) -> None:
    """Check a response with this path template, method, status, and body."""
    operation = described()["paths"][path][method.lower()]
    assert str(status) in operation["responses"], (
        f"{method} {path} does not answer {status}: {body}"
    )
    if (method, path, status) == ("GET", "/events", 200):
        # Check each event against the schemas of its type: it's faster, and the error says more.
        for event in body["events"]:
            check_event(event)
        body = {**body, "events": []}
    place = path.replace("~", "~0").replace("/", "~1").replace("{", "%7B").replace("}", "%7D")
    pointer = f"/paths/{place}/{method.lower()}/responses/{status}/content/application~1json/schema"
    _hold(f"{method} {path} {status}", pointer, body)


def check_event(event: dict[str, Any]) -> None:
    """Fail if the document has no such event."""
    names = _events().get(event.get("type", ""), ())
    assert names, f"no event of type {event.get('type')!r}: {event}"
    pointers = [f"/components/schemas/{name}" for name in names]
    if any(_validator(pointer).is_valid(event) for pointer in pointers[1:]):
        return
    _hold(f"event {event['type']}", pointers[0], event)


def _hold(what: str, pointer: str, value: Any) -> None:
    if _validator(pointer).is_valid(value):
        return
    error = best_match(_explainer(pointer).iter_errors(value))
    assert error is not None, f"{what} is not as in the OpenAPI document: {value}"
    raise AssertionError(
        f"{what} is not as in the OpenAPI document: at {error.json_path}: {error.message}"
    )
