"""What endpoints answer: the fields that all answers have, and errors."""

from collections.abc import Iterator
from typing import Any, Final, get_args

from msgspec import Struct

from tertulia.wire.api.openapi.schemas import REF, Json, Schemas
from tertulia.wire.http.routing import Access, ApiResponse, OpenAnswer, Redirect, Route

_JSON: Final = "application/json"

_TOO_OFTEN: Final = "Too many requests. Nothing was changed. Wait and try again."

_NOT_NOW: Final = (
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
    "quota": {"type": "string", "description": "Of QUOTA_REACHED: the setting with the limit."},
    "limit": {"type": "integer", "description": "Of QUOTA_REACHED."},
    "webhook_name": {"type": "string", "description": "Of UNSUPPORTED_WEBHOOK_EVENT_TYPE."},
    "event_type": {"type": "string", "description": "Of UNSUPPORTED_WEBHOOK_EVENT_TYPE."},
    "license_limit_reached": {
        "type": "boolean",
        "description": "Of INVITATION_FAILED; there is no such limit here.",
    },
}
"""What errors have beside `msg` and `code`; see `tertulia.wire.http.errors`."""


def answered(answer: Any, schemas: Schemas) -> Json:
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
        if struct is ApiResponse:
            component["description"] = "Done; there is nothing to tell."
    return schema


def error() -> Json:
    """The schema of all errors."""
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


def responses(route: Route, body: Json) -> Json:
    """All that the endpoint answers, by status. `body` is the schema of its success."""
    return {
        **_done(route, body),
        **{
            status: {
                "description": reason,
                "content": {_JSON: {"schema": {"$ref": REF + "Error"}}},
            }
            for status, reason in _refusals(route)
        },
    }


def _done(route: Route, body: Json) -> Json:
    if route.answer is Redirect:
        return {"302": {"description": "What was asked for is at the address in `Location`."}}
    if route.payload and route.method == "POST":
        # Services turn off what answers their events with failures.
        body = {"anyOf": [body, {"$ref": REF + "Error"}]}
    return {"200": {"description": "Done.", "content": {_JSON: {"schema": body}}}}


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


def _envelop(component: Json) -> None:
    # An answer may have words of its own in place of the empty `msg`.
    own = component["properties"].get("msg")
    fields = {n: f for n, f in component["properties"].items() if n not in _ENVELOPE}
    component["properties"] = {**_ENVELOPE, **({"msg": own} if own else {}), **fields}
    required = [name for name in component.get("required", ()) if name not in _ENVELOPE]
    component["required"] = ["result", "msg", *required]
