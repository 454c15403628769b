"""The SCIM resources by name: users, groups, and descriptions of what is supported."""

from collections.abc import Mapping
from typing import Any, Final

from tertulia.wire.scim import groups, people
from tertulia.wire.scim.call import Handler, ScimAnswer, ScimCall, ScimRefused
from tertulia.wire.scim.lists import MAX_COUNT, listed
from tertulia.wire.scim.requests import GROUP, USER

_CORE: Final = "urn:ietf:params:scim:schemas:core:2.0"


def _attribute(name: str, kind: str = "string", **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "multiValued": False,
        "required": False,
        "caseExact": False,
        "mutability": "readWrite",
        "returned": "default",
        "uniqueness": "none",
        **more,
    }


_SCHEMAS: Final = (
    {
        "schemas": [f"{_CORE}:Schema"],
        "id": USER,
        "name": "User",
        "description": "A person's account",
        "attributes": [
            _attribute("userName", required=True, uniqueness="server"),
            _attribute("externalId", caseExact=True),
            _attribute("displayName"),
            _attribute(
                "name",
                "complex",
                subAttributes=[
                    _attribute("formatted"),
                    _attribute("givenName"),
                    _attribute("familyName"),
                ],
            ),
            _attribute(
                "emails",
                "complex",
                multiValued=True,
                subAttributes=[
                    _attribute("value"),
                    _attribute("type"),
                    _attribute("primary", "boolean"),
                ],
            ),
            _attribute("active", "boolean"),
        ],
    },
    {
        "schemas": [f"{_CORE}:Schema"],
        "id": GROUP,
        "name": "Group",
        "description": "A user group",
        "attributes": [
            _attribute("displayName", required=True, uniqueness="server"),
            _attribute(
                "members",
                "complex",
                multiValued=True,
                subAttributes=[_attribute("value"), _attribute("display", mutability="readOnly")],
            ),
        ],
    },
)

_TYPES: Final = (
    {"id": "User", "name": "User", "endpoint": "/Users", "schema": USER},
    {"id": "Group", "name": "Group", "endpoint": "/Groups", "schema": GROUP},
)

_CONFIG: Final = {
    "schemas": [f"{_CORE}:ServiceProviderConfig"],
    "patch": {"supported": True},
    "bulk": {"supported": False, "maxOperations": 0, "maxPayloadSize": 0},
    "filter": {"supported": True, "maxResults": MAX_COUNT},
    "changePassword": {"supported": False},
    "sort": {"supported": False},
    "etag": {"supported": False},
    "authenticationSchemes": [
        {
            "type": "oauthbearertoken",
            "name": "Bearer token",
            "description": "The token of the server's setting scim_token",
            "primary": True,
        }
    ],
}


def _described(call: ScimCall, kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    location = f"{call.base}/{kind}s/{fields['id']}"
    return {
        "schemas": [f"{_CORE}:{kind}"],
        **fields,
        "meta": {"resourceType": kind, "location": location},
    }


async def _schemas(call: ScimCall, resource_id: str) -> ScimAnswer:
    return _descriptions(call, "Schema", _SCHEMAS, resource_id)


async def _resource_types(call: ScimCall, resource_id: str) -> ScimAnswer:
    return _descriptions(call, "ResourceType", _TYPES, resource_id)


def _descriptions(
    call: ScimCall, kind: str, all_of_them: tuple[Mapping[str, Any], ...], resource_id: str
) -> ScimAnswer:
    results = [_described(call, kind, fields) for fields in all_of_them]
    if not resource_id:
        return ScimAnswer(listed(results, len(results)))
    for fields in results:
        if fields["id"] == resource_id:
            return ScimAnswer(fields)
    raise ScimRefused(404, "This resource doesn't exist.")


async def _config(call: ScimCall, _: str) -> ScimAnswer:
    location = f"{call.base}/ServiceProviderConfig"
    meta = {"resourceType": "ServiceProviderConfig", "location": location}
    return ScimAnswer({**_CONFIG, "meta": meta})


_ALL: Final[Mapping[str, Mapping[str, Handler]]] = {
    "Users": {"GET": people.find, "POST": people.create},
    "Groups": {"GET": groups.find, "POST": groups.create},
    "ServiceProviderConfig": {"GET": _config},
    "Schemas": {"GET": _schemas},
    "ResourceTypes": {"GET": _resource_types},
}
_ONE: Final[Mapping[str, Mapping[str, Handler]]] = {
    "Users": {
        "GET": people.read,
        "PUT": people.replace,
        "PATCH": people.update,
        "DELETE": people.delete,
    },
    "Groups": {
        "GET": groups.read,
        "PUT": groups.replace,
        "PATCH": groups.update,
        "DELETE": groups.delete,
    },
    "Schemas": {"GET": _schemas},
    "ResourceTypes": {"GET": _resource_types},
}


def handler_of(name: str, *, is_one: bool) -> Mapping[str, Handler]:
    """Return the handlers of a resource by method. Raises ScimRefused if it doesn't exist."""
    handlers = (_ONE if is_one else _ALL).get(name)
    if handlers is None:
        raise ScimRefused(404, "This resource doesn't exist.")
    return handlers
