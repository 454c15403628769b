"""The OpenAPI document: the whole interface, described from the table of endpoints alone.

Responses and events are described strictly, as closed sets of fields of which all are sent but
those that may be unset; the tests hold everything they see against it.
"""

from collections.abc import Iterator, Sequence
from typing import Final

import tertulia
from tertulia.wire.api import projections, transients
from tertulia.wire.api.events import Event
from tertulia.wire.api.openapi.operations import inputs_of, operations, tags
from tertulia.wire.api.openapi.responses import answered, error
from tertulia.wire.api.openapi.schemas import Json, Schemas
from tertulia.wire.api.routes import ROUTES
from tertulia.wire.api.versions import FEATURE_LEVEL
from tertulia.wire.http.request_head import CSRF_COOKIE, SESSION_COOKIE
from tertulia.wire.http.routing import PREFIX, Route

_EVENT_MODULES: Final = (projections, transients)
"""Events are found because these, which declare them, are loaded."""

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
`Retry-After`.

Where several nodes may answer, a response to an account has the header `Tertulia-Position`. Send
the newest one back with each request, and whichever node answers, it has all that the client has
seen and done until then; it waits for it up to two seconds, and otherwise says 503 with
`Retry-After`. Clients that keep cookies need not do anything for what they have done themselves:
after each change the position is also in a cookie. Of two positions that are equal up to the dot,
that with the greater number is newer; they mean nothing else to a client. Positions that cannot be
read, are of another database or were never given out are ignored."""


def document(routes: Sequence[Route] = ROUTES) -> Json:
    """The OpenAPI 3.1 document of these endpoints."""
    schemas = Schemas()
    components = schemas.components
    bodies = [answered(route.answer, schemas) for route in routes]
    events = sorted(set(_event_types(Event)), key=lambda event: (_tag(event), event.__name__))
    for event in events:
        _number(components[schemas.name_of(event, sent=True)])
    components["Event"] = {
        "description": "What happened; each has its `id`, by which the next ones are asked for.",
        "anyOf": [schemas.of(event, sent=True) for event in events],
    }
    components["Error"] = error()
    inputs = inputs_of(routes, schemas)
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
        "tags": tags(routes),
        "paths": operations(routes, bodies, inputs),
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


def _number(component: Json) -> None:
    component["properties"] = {"id": {"type": "integer"}, **component["properties"]}
    component["required"] = ["id", *component["required"]]


def _event_types(base: type[Event]) -> Iterator[type[Event]]:
    for event in base.__subclasses__():
        # The tag of a class that declares none is its name: it is but a base of others.
        if _tag(event) != event.__name__:
            yield event
        yield from _event_types(event)


def _tag(event: type[Event]) -> str:
    return str(event.__struct_config__.tag)
