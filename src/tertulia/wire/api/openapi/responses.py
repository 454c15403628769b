"""The responses of the OpenAPI document, and errors."""

from collections.abc import Iterator
from typing import Any, Final, get_args

from msgspec import Struct

from tertulia.wire.api.openapi.schemas import REF, Json, Schemas
from tertulia.wire.http.routing import Access, ApiResponse, OpenApiResponse, Redirect, Route

_JSON: Final = "application/json"

_RATE_LIMITED: Final = "Too many requests. Nothing was changed. Wait and try again."

_UNAVAILABLE: Final = (
    "The server is overloaded or can't write at the moment. Nothing was changed. Try again after"
    " the number of seconds in Retry-After."
)

_ENVELOPE: Final[Json] = {
    "result": {"const": "success"},
    "msg": {"const": ""},
    "ignored_parameters_unsupported": {
        "type": "array",
        "items": {"type": "string"},
        "minItems": 1,
        "description": "Unknown parameters of the request; absent if all are known.",
    },
}

_STRING: Final[Json] = {"type": "string"}
_INTEGER: Final[Json] = {"type": "integer"}
_BOOLEAN: Final[Json] = {"type": "boolean"}


def _list_of(items: Json) -> Json:
    return {"type": "array", "items": items}


def _with(code: str, schema: Json) -> Json:
    return {**schema, "description": f"With {code}."}


_OBJECTION: Final[Json] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["type"],
    "properties": {
        "type": {"enum": ["realm", "channel", "user_group", "subgroup"]},
        "settings": _list_of(_STRING),
        "channel_id": _INTEGER,
        "group_id": _INTEGER,
        "supergroup_ids": _list_of(_INTEGER),
    },
}
_FAILED_ADDRESS: Final[Json] = {
    "type": "array",
    "prefixItems": [_STRING, _STRING, _BOOLEAN],
    "minItems": 3,
    "maxItems": 3,
}
_ERROR_FIELDS: Final[Json] = {
    "var_name": _with("REQUEST_VARIABLE_MISSING and REQUEST_VARIABLE_INVALID", _STRING),
    "var_name1": _with("REQUEST_CONFUSING_VAR", _STRING),
    "var_name2": _with("REQUEST_CONFUSING_VAR", _STRING),
    "allowed_methods": _list_of(_STRING),
    "channel_name": _with("CHANNEL_ALREADY_EXISTS", _STRING),
    "stream": _with("STREAM_DOES_NOT_EXIST, if the request had a name", _STRING),
    "stream_id": _with("STREAM_DOES_NOT_EXIST, if the request had an ID", _INTEGER),
    "queue_id": _with("BAD_EVENT_QUEUE_ID", _STRING),
    "desc": _with("BAD_NARROW: the reason", _STRING),
    "is_last_owner": _with("CANNOT_DEACTIVATE_LAST_USER", _BOOLEAN),
    "entity": _with("CANNOT_DEACTIVATE_LAST_USER", _STRING),
    "first_message_id_allowed_to_move": _with(
        "MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", {"anyOf": [_INTEGER, {"type": "null"}]}
    ),
    "total_messages_in_topic": _with("MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", _INTEGER),
    "total_messages_allowed_to_move": _with("MOVE_MESSAGES_TIME_LIMIT_EXCEEDED", _INTEGER),
    "retry-after": _with("RATE_LIMIT_HIT: seconds to wait", {"type": "number"}),
    "setting_name": _with("SYSTEM_GROUP_REQUIRED", _STRING),
    "objections": _with(
        "CANNOT_DEACTIVATE_GROUP_IN_USE: where the group is used", _list_of(_OBJECTION)
    ),
    "errors": _with(
        "INVITATION_FAILED: each address that wasn't invited, the reason, and whether it has a"
        " deactivated account",
        _list_of(_FAILED_ADDRESS),
    ),
    "sent_invitations": _with(
        "INVITATION_FAILED: whether the other addresses were invited", _BOOLEAN
    ),
    "daily_limit_reached": _with("INVITATION_FAILED", _BOOLEAN),
    "license_limit_reached": _with("INVITATION_FAILED; always false", _BOOLEAN),
    "proofs": _with(
        "PASSWORD_CONFIRMATION_REQUIRED: `password`, `passkey`, and `code`, as far as"
        " the account has them",
        _list_of(_STRING),
    ),
    "quota": _with("QUOTA_REACHED: the setting of the limit", _STRING),
    "limit": _with("QUOTA_REACHED", _INTEGER),
    "webhook_name": _with("UNSUPPORTED_WEBHOOK_EVENT_TYPE", _STRING),
    "event_type": _with("UNSUPPORTED_WEBHOOK_EVENT_TYPE", _STRING),
}
"""The fields of errors other than `msg` and `code`; see `tertulia.wire.http.errors`."""


def success_schema(answer: Any, schemas: Schemas) -> Json:
    """Return the schema of a success response, including the fields that all responses have."""
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
        if issubclass(struct, OpenApiResponse):
            component["additionalProperties"] = True
        if struct is ApiResponse:
            component["description"] = "Success, without further fields."
    return schema


def error_schema() -> Json:
    """Return the schema of all errors."""
    return {
        "title": "Error",
        "type": "object",
        "description": "Why the request failed. The code determines the other fields.",
        "properties": {
            "result": {"const": "error"},
            "msg": {"type": "string", "minLength": 1, "description": "For people."},
            "code": {"type": "string", "pattern": "^[A-Z_]+$", "description": "For programs."},
            **_ERROR_FIELDS,
        },
        "required": ["result", "msg", "code"],
        "additionalProperties": False,
    }


def responses(route: Route, body: Json) -> Json:
    """Return the endpoint's responses by status. `body` is the schema of its success."""
    return {
        **_done(route, body),
        **{
            status: {
                "description": reason,
                "content": {_JSON: {"schema": {"$ref": REF + "Error"}}},
            }
            for status, reason in _errors(route)
        },
    }


def _done(route: Route, body: Json) -> Json:
    if route.answer is Redirect:
        return {"302": {"description": "The result is at the URL in `Location`."}}
    if route.payload and route.method == "POST":
        # Services disable webhooks that respond with failures, so some errors have status 200.
        body = {"anyOf": [body, {"$ref": REF + "Error"}]}
    return {"200": {"description": "Success.", "content": {_JSON: {"schema": body}}}}


def _errors(route: Route) -> Iterator[tuple[str, str]]:
    yield "400", "The request is invalid or was refused."
    if route.access is not Access.ANYONE or route.method == "POST":
        yield "401", "The credentials are missing or wrong, or the account is deactivated."
    if route.forbids:
        yield "403", "You don't have access."
    elif route.access is not Access.ANYONE or route.limits_guesses:
        of_session = (
            " Or a session was used without its X-CSRF-Token, or from another site."
            if route.method != "GET"
            else ""
        )
        yield "403", f"The access key isn't allowed to do this.{of_session}"
    if "{" in route.path:
        yield "404", "This path doesn't exist."
    if route.creates_once:
        yield "409", "It already exists."
    if route.method != "GET":
        yield "413", "The request is too large."
    guesses = " Also after too many failed attempts." if route.limits_guesses else ""
    yield "429", f"{_RATE_LIMITED}{guesses}"
    if route.asks_bouncer:
        yield "502", "The push bouncer can't be reached, or failed."
    yield "503", _UNAVAILABLE


def _envelop(component: Json) -> None:
    # Some responses have a `msg` that isn't empty.
    message = component["properties"].get("msg")
    fields = {n: f for n, f in component["properties"].items() if n not in _ENVELOPE}
    component["properties"] = {**_ENVELOPE, **({"msg": message} if message else {}), **fields}
    required = [name for name in component.get("required", ()) if name not in _ENVELOPE]
    component["required"] = ["result", "msg", *required]
