"""The OpenAPI document: the whole interface, described from the table of endpoints alone.

Responses and events are described strictly, as closed sets of fields of which all are sent but
those that may be unset; the tests hold everything they see against it.
"""

import re
import sys
from collections.abc import Iterator, Sequence
from typing import Any, Final, get_args

import msgspec
from msgspec import UNSET, Struct

import tertulia
from tertulia.wire.api import projections, transients
from tertulia.wire.api.events import Event
from tertulia.wire.api.routes import ROUTES
from tertulia.wire.api.schemas import REF, Json, Schemas
from tertulia.wire.api.versions import FEATURE_LEVEL
from tertulia.wire.http.authentication import CSRF_COOKIE, SESSION_COOKIE
from tertulia.wire.http.parameters import Parameter, declared
from tertulia.wire.http.routing import PREFIX, Access, Answer, OpenAnswer, Redirect, Route

_JSON: Final = "application/json"
_FORMS: Final = ("application/x-www-form-urlencoded", "multipart/form-data")
_EVENT_MODULES: Final = (projections, transients)
"""Events are found because these, which declare them, are loaded."""

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
"""The body of an endpoint that takes a file. Its field may have any name."""

_CONVENTIONS: Final = """\
Paths are relative to `/api/v1`. Parameters are sent in the query for GET, and otherwise as a form,
`application/x-www-form-urlencoded` or `multipart/form-data`. A parameter that is no string is
written as JSON within it. Every response is a JSON object with `result` and `msg`; errors have a
`code` to decide by, and `msg` is for people. Parameters that are not known are ignored, and named
in `ignored_parameters_unsupported`. Timestamps are UNIX seconds.

Requests are counted for each account, GET /events apart, and for each address where there is no
account. A response tells of the count in its headers: `X-RateLimit-Limit` requests may be made at
once and again in each minute, `X-RateLimit-Remaining` are left, and at `X-RateLimit-Reset` (UNIX
seconds) there are all again. What is more is not done and answered with status 429, the code
RATE_LIMIT_HIT, and how many seconds to wait: `retry-after`, in whole ones in the header
`Retry-After`."""

_TOO_OFTEN: Final = "There were too many requests; nothing was done. Wait and try again."
_NOT_NOW: Final = (
    "The server has too much to do, or cannot write at the moment; nothing was done. Try again"
    " after the seconds of Retry-After."
)

_ENVELOPE: Final[Json] = {
    "result": {"const": "success"},
    "msg": {"const": ""},
    "ignored_parameters_unsupported": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "description": "Parameters that were sent and are not known; absent where there are none.",
    },
}

_ERROR_FIELDS: Final[Json] = {
    "var_name": {"type": "string", "description": "Of REQUEST_VARIABLE_MISSING and _INVALID."},
    "var_name1": {"type": "string", "description": "Of REQUEST_CONFUSING_VAR."},
    "var_name2": {"type": "string", "description": "Of REQUEST_CONFUSING_VAR."},
    "allowed_methods": {"type": "array", "items": {"type": "string"}},
    "stream": {"type": "string", "description": "Of STREAM_DOES_NOT_EXIST, when asked by name."},
    "stream_id": {"type": "integer", "description": "Of STREAM_DOES_NOT_EXIST, when asked by ID."},
    "queue_id": {"type": "string", "description": "Of BAD_EVENT_QUEUE_ID."},
    "desc": {"type": "string", "description": "Of BAD_NARROW: what is wrong with it."},
    "is_last_owner": {"type": "boolean", "description": "Of CANNOT_DEACTIVATE_LAST_USER."},
    "entity": {"type": "string", "description": "Of CANNOT_DEACTIVATE_LAST_USER."},
    "first_message_id_allowed_to_move": {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "description": "Of MOVE_MESSAGES_TIME_LIMIT_EXCEEDED.",
    },
    "total_messages_in_topic": {"type": "integer"},
    "total_messages_allowed_to_move": {"type": "integer"},
    "retry-after": {"type": "number", "description": "Of RATE_LIMIT_HIT: seconds to wait."},
    "setting_name": {"type": "string", "description": "Of SYSTEM_GROUP_REQUIRED."},
    "objections": {
        "type": "array",
        "description": "Of CANNOT_DEACTIVATE_GROUP_IN_USE: where the group is in use.",
        "items": {
            "type": "object",
            "additionalProperties": False,
            "required": ["type"],
            "properties": {
                "type": {"enum": ["realm", "channel", "user_group", "subgroup"]},
                "settings": {"type": "array", "items": {"type": "string"}},
                "channel_id": {"type": "integer"},
                "group_id": {"type": "integer"},
                "supergroup_ids": {"type": "array", "items": {"type": "integer"}},
            },
        },
    },
    "errors": {
        "type": "array",
        "items": {
            "type": "array",
            "prefixItems": [{"type": "string"}, {"type": "string"}, {"type": "boolean"}],
            "minItems": 3,
            "maxItems": 3,
        },
        "description": "Of INVITATION_FAILED: each address that was not invited, why, and whether"
        " it has a deactivated account.",
    },
    "sent_invitations": {
        "type": "boolean",
        "description": "Of INVITATION_FAILED: whether the others were invited.",
    },
    "daily_limit_reached": {"type": "boolean", "description": "Of INVITATION_FAILED."},
    "license_limit_reached": {
        "type": "boolean",
        "description": "Of INVITATION_FAILED; there is no such limit here.",
    },
}
"""What errors have beside `msg` and `code`; see `tertulia.wire.http.errors.error_response`."""


def document(routes: Sequence[Route] = ROUTES) -> Json:
    """The OpenAPI 3.1 document of these endpoints."""
    schemas = Schemas()
    components = schemas.components
    bodies = [_answered(route.answer, schemas) for route in routes]
    events = sorted(set(_event_types(Event)), key=lambda event: (_tag(event), event.__name__))
    for event in events:
        _number(components[schemas.name_of(event, sent=True)])
    components["Event"] = {
        "description": "What happened; each has its `id`, by which the next ones are asked for.",
        "anyOf": [schemas.of(event, sent=True) for event in events],
    }
    components["Error"] = _error()
    inputs = _inputs(routes, schemas)
    paths: dict[str, Json] = {}
    used: set[str] = set()
    for route, body in zip(routes, bodies, strict=True):
        operation = _operation(route, body, inputs)
        if operation["operationId"] in used:
            operation["operationId"] = _unique(route)
        used.add(operation["operationId"])
        paths.setdefault(_template(route.path), {})[route.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tertulia",
            "version": tertulia.__version__,
            "summary": f"Zulip's HTTP interface at feature level {FEATURE_LEVEL}.",
            "description": _CONVENTIONS,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "tags": _tags(routes),
        "paths": paths,
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The account's e-mail address, and its API key as password.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": SESSION_COOKIE,
                    "description": "A browser's session, begun at `/login` or by `POST /sessions`.",
                },
                "csrf": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-CSRF-Token",
                    "description": f"The value of the cookie `{CSRF_COOKIE}`, beside a session.",
                },
            },
        },
    }


def _event_types(base: type[Event]) -> Iterator[type[Event]]:
    for event in base.__subclasses__():
        # The tag of a class that declares none is its name: it is but a base of others.
        if _tag(event) != event.__name__:
            yield event
        yield from _event_types(event)


def _tag(event: type[Event]) -> str:
    return str(event.__struct_config__.tag)


# Schemas


def _answered(answer: Any, schemas: Schemas) -> Json:
    """The schema of a success response: the answer's, with the fields that all have."""
    schema = schemas.of(answer, sent=True)
    answers = [kind for kind in get_args(answer) or [answer] if isinstance(kind, type)]
    structs = [kind for kind in answers if issubclass(kind, Struct)]
    if not structs:
        open_object: Json = {"type": "object", "properties": {}, "additionalProperties": True}
        _envelop(open_object)
        return open_object
    for struct in structs:
        component = schemas.components[schemas.name_of(struct, sent=True)]
        _envelop(component)
        if issubclass(struct, OpenAnswer):
            component["additionalProperties"] = True
        if struct is Answer:
            component["description"] = "Done; there is nothing to tell."
    return schema


def _envelop(component: Json) -> None:
    # An answer may have words of its own in place of the empty `msg`.
    own = component["properties"].get("msg")
    fields = {n: f for n, f in component["properties"].items() if n not in _ENVELOPE}
    component["properties"] = {**_ENVELOPE, **({"msg": own} if own else {}), **fields}
    required = [name for name in component.get("required", ()) if name not in _ENVELOPE]
    component["required"] = ["result", "msg", *required]


def _number(component: Json) -> None:
    component["properties"] = {"id": {"type": "integer"}, **component["properties"]}
    component["required"] = ["id", *component["required"]]


def _error() -> Json:
    return {
        "title": "Error",
        "type": "object",
        "description": "Why the request was not done. What further fields there are follows from"
        " the code.",
        "properties": {
            "result": {"const": "error"},
            "msg": {"type": "string", "minLength": 1, "description": "For people."},
            "code": {"type": "string", "pattern": "^[A-Z_]+$", "description": "For programs."},
            **_ERROR_FIELDS,
        },
        "required": ["result", "msg", "code"],
        "additionalProperties": False,
    }


# Parameters


def _inputs(routes: Sequence[Route], schemas: Schemas) -> dict[Parameter, Json]:
    """The schema of every parameter."""
    found: dict[Parameter, Json] = {}
    for parameter in dict.fromkeys(p for route in routes for p in declared(route.params)):
        if parameter.schema is not None:
            found[parameter] = dict(parameter.schema)
            continue
        schema = schemas.of(parameter.type, sent=False)
        found[parameter] = dict(schema if parameter.is_json else _as_text(schema))
    for parameter, schema in found.items():
        if parameter.description:
            schema["description"] = parameter.description
        # What has a reader of its own may have a default that is not as it is written.
        if parameter.schema is None and parameter.default not in (None, UNSET):
            schema["default"] = msgspec.to_builtins(parameter.default)
        if parameter.aliases:
            schema["x-aliases"] = list(parameter.aliases)
    return found


def _as_text(schema: Json) -> Json:
    """Without null, which as text would be a word like any other: it is left out instead."""
    options = [one for one in schema.get("anyOf", ()) if one != {"type": "null"}]
    if len(options) != 1:
        return schema
    return {**{key: value for key, value in schema.items() if key != "anyOf"}, **options[0]}


def _as_json(parameter: Parameter) -> bool:
    """Whether the parameter's text is JSON, as a list or an object among strings must be."""
    if parameter.schema is not None:
        return parameter.schema.get("type") in {"array", "object"}
    return parameter.is_json


def _operation(route: Route, body: Json, inputs: dict[Parameter, Json]) -> Json:
    parameters = declared(route.params)
    described = [
        _described(p, "path" if p.in_path else "query", inputs[p])
        for p in parameters
        if p.in_path or route.method == "GET"
    ]
    operation: Json = {
        "operationId": route.name,
        "tags": [_module(route)],
        "summary": route.summary,
        "description": _description(route),
        "security": _security(route),
    }
    if described:
        operation["parameters"] = described
    form = [p for p in parameters if not p.in_path]
    if route.file:
        operation["requestBody"] = _FILE
    elif form and route.method != "GET":
        operation["requestBody"] = _form(form, inputs)
    operation["responses"] = {
        **_done(route, body),
        **{
            status: {
                "description": reason,
                "content": {_JSON: {"schema": {"$ref": REF + "Error"}}},
            }
            for status, reason in _refusals(route)
        },
    }
    return operation


def _done(route: Route, body: Json) -> Json:
    if route.answer is Redirect:
        return {"302": {"description": "What was asked for is at the address in `Location`."}}
    return {"200": {"description": "Done.", "content": {_JSON: {"schema": body}}}}


def _described(parameter: Parameter, place: str, schema: Json) -> Json:
    described: Json = {"name": parameter.name, "in": place}
    if parameter.description:
        described["description"] = parameter.description
    described["required"] = parameter.in_path or parameter.required
    if place == "query" and _as_json(parameter):
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


def _description(route: Route) -> str:
    lines = [(route.handler.__doc__ or "").strip().replace("\n    ", "\n")]
    if route.webhooks:
        lines.append("Incoming webhook bots may call it.")
    if route.dev:
        lines.append("On development servers only.")
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


def _refusals(route: Route) -> Iterator[tuple[str, str]]:
    yield "400", "The request cannot be done as asked."
    if route.access is not Access.ANYONE or route.method == "POST":
        yield "401", "The credentials are missing or wrong, or the account is deactivated."
    if route.forbids:
        yield "403", "It is there, and not for the caller."
    elif route.method != "GET" and (route.access is not Access.ANYONE or route.limits_guesses):
        yield "403", "A browser's session is used without its X-CSRF-Token, or by a foreign page."
    if "{" in route.path:
        yield "404", "There is nothing at this path."
    if route.method != "GET":
        yield "413", "The request is too large."
    yield (
        "429",
        _TOO_OFTEN if not route.limits_guesses else f"{_TOO_OFTEN} Or it was tried too often.",
    )
    yield "503", _NOT_NOW


# Names


def _template(path: str) -> str:
    """The path without its parts' converters."""
    return re.sub(r"\{(\w+):\w+\}", r"{\1}", path)


def _unique(route: Route) -> str:
    """A name for an endpoint whose handler has several."""
    return re.sub(r"\W+", "_", f"{route.method.lower()}{_template(route.path)}").strip("_")


_TAGS: Final = {"history": "fetching"}
"""Tags that have another name than their module: generated clients are built on them."""


def _module(route: Route) -> str:
    module = route.handler.__module__.rpartition(".")[2]
    return _TAGS.get(module, module)


def _tags(routes: Sequence[Route]) -> list[Json]:
    tags: dict[str, Json] = {}
    for route in routes:
        name = _module(route)
        doc = (sys.modules[route.handler.__module__].__doc__ or "").strip()
        tags.setdefault(name, {"name": name, "description": doc.splitlines()[0] if doc else ""})
    return list(tags.values())
