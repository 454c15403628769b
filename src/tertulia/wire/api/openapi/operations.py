"""The operations of the OpenAPI document: each endpoint's name, parameters, and access."""

import re
import sys
from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec import UNSET

from tertulia.wire.api.openapi.responses import responses
from tertulia.wire.api.openapi.schemas import Json, Schemas
from tertulia.wire.http.parameters import Parameter
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

_PERMISSION: Final = "The group with the permission: its ID, or its members and subgroups."
_DESCRIPTIONS: Final = {
    "all_public_streams": "Also receive messages of public channels you aren't subscribed to.",
    "allow_empty_topic_name": (
        "Return the general chat's topic as an empty string, and not by its display name."
    ),
    "apply_markdown": "Return message content as HTML instead of Markdown.",
    "client_gravatar": "Return null as `avatar_url` of a Gravatar that you can compute.",
    "exclude_archived": "Leave out archived channels.",
    "folder_id": "The ID of the channel's folder.",
    "history_public_to_subscribers": "Let new subscribers read earlier messages.",
    "include_anchor": "Include the message at the anchor.",
    "include_public": "Include public channels.",
    "include_subscribed": "Include channels you're subscribed to.",
    "include_subscribers": "Include the subscribers of channels.",
    "include_web_public": "Include channels that are public on the web.",
    "invite_only": "Make the channel private.",
    "is_default_stream": "Subscribe new users to the channel.",
    "is_private": "Make the channel private.",
    "is_web_public": "Let anyone read the channel without an account.",
    "message_id": "The ID of a message.",
    "message_retention_days": "The number of days after which messages are deleted.",
    "num_after": "The maximum number of messages after the anchor.",
    "num_before": "The maximum number of messages before the anchor.",
    "presence_history_limit_days": "The age in days of the oldest presence to return.",
    "queue_id": "The ID of your event queue.",
    "send_new_subscription_messages": "Notify people whom you subscribe.",
    "send_notification_to_new_thread": "Post a message about the move to the new topic.",
    "send_notification_to_old_thread": "Post a message about the move to the old topic.",
    "slim_presence": "Identify users by ID instead of email address in presence data.",
    "stream_id": "The ID of a channel.",
    "topics_policy": "Whether messages can or have to be sent to the general chat.",
    "user_group_id": "The ID of a user group.",
    "user_id": "The ID of a user.",
}
"""Descriptions of parameters that are the same in every endpoint."""

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
    parameters = route.parameters
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
    if route.access is not Access.ANYONE:
        operation["x-access-key"] = route.key_use.value
        operation["x-access-key-limited"] = route.reached
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
    for parameter in dict.fromkeys(p for route in routes for p in route.parameters):
        if parameter.schema is not None:
            inputs[parameter] = dict(parameter.schema)
            continue
        schema = schemas.of(parameter.type, sent=False)
        inputs[parameter] = dict(schema if parameter.is_json else _as_text(schema))
    for parameter, schema in inputs.items():
        permission = _PERMISSION if re.fullmatch(r"can_\w+_group", parameter.name) else None
        if description := (
            parameter.description or _DESCRIPTIONS.get(parameter.name) or permission
        ):
            schema["description"] = description
        # The default of a parameter with a custom reader may not be in the format that is sent.
        if parameter.schema is None and parameter.default not in (None, UNSET, ()):
            schema["default"] = msgspec.to_builtins(parameter.default)
        if parameter.aliases:
            schema["x-aliases"] = list(parameter.aliases)
    return inputs


def _as_text(schema: Json) -> Json:
    """Return the schema without null. In plain text, `null` would be an ordinary word, so the
    parameter is left out instead."""
    options = [value for value in schema.get("anyOf", ()) if value != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _described(parameter: Parameter, location: str, schema: Json) -> Json:
    described: Json = {"name": parameter.name, "in": location}
    if "description" in schema:
        described["description"] = schema["description"]
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
    """Whether the parameter is sent as JSON, as lists and objects are."""
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
    """Return a unique name for an endpoint whose handler has several routes."""
    return re.sub(r"\W+", "_", f"{route.method.lower()}{_template(route.path)}").strip("_")


_TAGS: Final = {"register": "events"}
"""Tags that differ from the name of their module. Generated clients depend on tags."""


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
