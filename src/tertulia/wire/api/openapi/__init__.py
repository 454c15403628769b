"""The OpenAPI document, generated from the table of endpoints.

Responses and events are described strictly: as closed sets of fields that are always present,
unless they're UNSET by default. Tests validate all responses and events against it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import tertulia
from tertulia.wire.api import projections, transients
from tertulia.wire.api.events import FEATURE_LEVEL, Event
from tertulia.wire.api.openapi.operations import inputs_of, operations, tags
from tertulia.wire.api.openapi.responses import error_schema, success_schema
from tertulia.wire.api.openapi.schemas import Json, Schemas
from tertulia.wire.api.routes import ROUTES
from tertulia.wire.http.request_head import CSRF_COOKIE, PREFIX, SESSION_COOKIE
from tertulia.wire.http.routing import Route

_EVENT_MODULES: Final = (projections, transients)
"""Importing these modules loads all subclasses of `Event`."""

_CONVENTIONS: Final = """\
Paths are relative to `/api/v1`. Send parameters in the query for GET requests, and otherwise as a
form (`application/x-www-form-urlencoded` or `multipart/form-data`). Parameters that aren't strings
are encoded as JSON. Every response is a JSON object with `result` and `msg`. Errors also have a
`code` for programs; their `msg` is for people. Unknown parameters are ignored and listed in
`ignored_parameters_unsupported`. Timestamps are UNIX seconds.

Requests are limited per account, not counting GET /events, and per IP address for requests without
an account. Response headers tell the state of the limit: you can make up to `X-RateLimit-Limit`
requests in a burst and as many in each minute, `X-RateLimit-Remaining` are left, and at
`X-RateLimit-Reset` (UNIX seconds) the full number is available again. Further requests fail with
status 429 and the code RATE_LIMIT_HIT. The field `retry-after` is the number of seconds to wait;
the header `Retry-After` has it rounded up.

If the server has several nodes, responses to an account have the header `Tertulia-Position`. Send
the newest position back with each request, so that any node that handles it has everything you have
seen and done so far. A node that is behind waits for up to two seconds, and then responds with
status 503 and `Retry-After`. Clients that keep cookies don't need to do this for their own changes:
after each change, the position is also in a cookie. If two positions are equal up to the dot, the
one with the greater number is newer; otherwise, treat positions as opaque. The server ignores
positions that are malformed, from another database, or not issued by it."""


def document(routes: Sequence[Route] = ROUTES) -> Json:
    """Return the OpenAPI 3.1 document of these endpoints."""
    schemas = Schemas()
    components = schemas.components
    bodies = [success_schema(route.answer, schemas) for route in routes]
    events = sorted(set(_event_types(Event)), key=lambda event: (_tag(event), event.__name__))
    for event in events:
        _number(components[schemas.name_of(event, sent=True)])
    components["Event"] = {
        "description": "Something that happened. Pass the `id` of the last event you handled as"
        " `last_event_id` to get the next ones.",
        "anyOf": [schemas.of(event, sent=True) for event in events],
    }
    components["Error"] = error_schema()
    inputs = inputs_of(routes, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Tertulia",
            "version": tertulia.__version__,
            "summary": f"Zulip's HTTP API at feature level {FEATURE_LEVEL}.",
            "description": _CONVENTIONS,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": PREFIX}],
        "tags": tags(routes),
        "paths": operations(routes, bodies, inputs),
        "components": {
            "schemas": dict(sorted(components.items())),
            "securitySchemes": {
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "The account's email address, with its API key as the password.",
                },
                "session": {
                    "type": "apiKey",
                    "in": "cookie",
                    "name": SESSION_COOKIE,
                    "description": "A browser session, started at `/login` or with POST /sessions.",
                },
                "csrf": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "X-CSRF-Token",
                    "description": f"The value of the cookie `{CSRF_COOKIE}`, required with a"
                    " session.",
                },
            },
        },
    }


def _number(component: Json) -> None:
    component["properties"] = {"id": {"type": "integer"}, **component["properties"]}
    component["required"] = ["id", *component["required"]]


def _event_types(base: type[Event]) -> Iterator[type[Event]]:
    for event in base.__subclasses__():
        # A class without a declared tag has its name as the tag. It's only a base class.
        if _tag(event) != event.__name__:
            yield event
        yield from _event_types(event)


def _tag(event: type[Event]) -> str:
    return str(event.__struct_config__.tag)
