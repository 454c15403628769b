"""The operations of the OpenAPI document: each endpoint's name, parameters, and access."""

import re
import sys
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from tertulia.wire.api.openapi.responses import responses
from tertulia.wire.api.openapi.schemas import Json, Schemas
from tertulia.wire.http.parameters import Parameter, declared
from tertulia.wire.http.routing import Access, Route

_JSON: Final = "application/json"
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")

_API_KEY: Final[Json] = {
    "name": "api_key",
    "in": "query",
    "required": False,
    "description": "The bot's API key, instead of HTTP Basic authentication.",
    "schema": {"type": "string"},
}
_PAYLOAD: Final[Json] = {
    "description": "The payload of the service.",
    "content": {
        _JSON: {"schema": {}},
        "application/x-www-form-urlencoded": {"schema": {"type": "object"}},
    },
}

_FILE: Final[Json] = {
    "required": True,
    "content": {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
                "required": ["file"],
            }
        }
    },
}
"""The body of a file upload. The field can have any name."""


def operations(
    routes: Sequence[Route], bodies: Sequence[Json], inputs: dict[Parameter, Json]
) -> dict[str, Json]:
    """Return the operations by path and method. `bodies` are the schemas of responses, `inputs`
    those of parameters."""
    paths: dict[str, Json] = {}
    used: set[str] = set()
    for route, body in zip(routes, bodies, strict=True):
        operation = _operation(route, body, inputs)
        if operation["operationId"] in used:
            operation["operationId"] = _unique(route)
        used.add(operation["operationId"])
        paths.setdefault(_template(route.path), {})[route.method.lower()] = operation
    return paths


def _operation(route: Route, body: Json, inputs: dict[Parameter, Json]) -> Json:
    parameters = declared(route.params)
    described = [
        _described(p, "path" if p.in_path else "query", inputs[p])
        for p in parameters
        if p.in_path or route.method == "GET" or route.payload
    ]
    operation: Json = {
        "operationId": route.name,
        "tags": [_module(route)],
        "summary": route.summary,
        "description": _description(route),
        "security": _security(route),
    }
    if route.payload:
        described.append(_API_KEY)
    if described:
        operation["parameters"] = described
    form = [p for p in parameters if not p.in_path]
    if route.file:
        operation["requestBody"] = _FILE
    elif route.payload and route.method != "GET":
        operation["requestBody"] = _PAYLOAD
    elif form and route.method != "GET":
        operation["requestBody"] = _form(form, inputs)
    operation["responses"] = responses(route, body)
    return operation


def inputs_of(routes: Sequence[Route], schemas: Schemas) -> dict[Parameter, Json]:
    """Return the schema of every parameter."""
    inputs: dict[Parameter, Json] = {}
    for parameter in dict.fromkeys(p for route in routes for p in declared(route.params)):
        if parameter.schema is not None:
            inputs[parameter] = dict(parameter.schema)
            continue
        schema = schemas.of(parameter.type, sent=False)
        inputs[parameter] = dict(schema if parameter.is_json else _as_text(schema))
    for parameter, schema in inputs.items():
        if parameter.description:
            schema["description"] = parameter.description
        # The default of a parameter with a custom reader may not be in the form that is sent.
        if parameter.schema is None and parameter.default not in (None, UNSET):
            schema["default"] = msgspec.to_builtins(parameter.default)
        if parameter.aliases:
            schema["x-aliases"] = list(parameter.aliases)
    return inputs


def _as_text(schema: Json) -> Json:
    """Return the schema without null: in text, `null` would be an ordinary word, so the parameter
    is left out instead."""
    options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _described(parameter: Parameter, location: str, schema: Json) -> Json:
    described: Json = {"name": parameter.name, "in": location}
    if parameter.description:
        described["description"] = parameter.description
    described["required"] = parameter.in_path or parameter.required
    if location == "query" and _as_json(parameter):
        described["content"] = {_JSON: {"schema": schema}}
    else:
        described["schema"] = schema
    return described


def _form(parameters: Sequence[Parameter], inputs: dict[Parameter, Json]) -> Json:
    schema: Json = {"type": "object", "properties": {p.name: inputs[p] for p in parameters}}
    required = [p.name for p in parameters if p.required]
    if required:
        schema["required"] = required
    content: Json = {"schema": schema}
    encoding = {p.name: {"contentType": _JSON} for p in parameters if _as_json(p)}
    if encoding:
        content["encoding"] = encoding
    return {"required": bool(required), "content": dict.fromkeys(_FORMS, content)}


def _as_json(parameter: Parameter) -> bool:
    """Whether the parameter is sent as JSON, like lists and objects."""
    if parameter.schema is not None:
        return parameter.schema.get("type") in {"array", "object"}
    return parameter.is_json


def _description(route: Route) -> str:
    lines = [(route.handler.__doc__ or "").strip().replace("\n    ", "\n")]
    if route.webhooks:
        lines.append("Incoming webhook bots can use this endpoint.")
    if route.dev:
        lines.append("Available only on development servers.")
    return "\n\n".join(lines)


def _security(route: Route) -> list[Json]:
    match route.access:
        case Access.ANYONE:
            return []
        case Access.SPECTATOR:
            return [*_accounts(route), {}]
        case _:
            return _accounts(route)


def _accounts(route: Route) -> list[Json]:
    session: Json = {"session": []} if route.method == "GET" else {"session": [], "csrf": []}
    return [{"basic": []}, session]


def _template(path: str) -> str:
    """Return the path without converters."""
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _unique(route: Route) -> str:
    """Return a name for an endpoint whose handler has several routes."""
    return re.sub(r"\W+", "_", f"{route.method.lower()}{_template(route.path)}").strip("_")


_TAGS: Final = {"register": "events"}
"""Tags that aren't the name of their module. Generated clients depend on tags."""


_NOUNS: Final = "tertulia.wire.api"


def _module(route: Route) -> str:
    module = route.handler.__module__.removeprefix(f"{_NOUNS}.").partition(".")[0]
    return _TAGS.get(module, module)


def tags(routes: Sequence[Route]) -> list[Json]:
    """Return a tag for each noun, described by the first line of its module's or package's
    docstring."""
    tags: dict[str, Json] = {}
    for route in routes:
        package = route.handler.__module__.rpartition(".")[0]
        noun = sys.modules[route.handler.__module__ if package == _NOUNS else package]
        description = (noun.__doc__ or "").strip().partition("\n")[0]
        tags.setdefault(_module(route), {"name": _module(route), "description": description})
    return list(tags.values())
