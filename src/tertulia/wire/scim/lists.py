"""Lists of resources, in pages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tertulia.wire.scim.call import ScimRefused

LIST: Final = "urn:ietf:params:scim:api:messages:2.0:ListResponse"
MAX_COUNT: Final = 200
"""The most resources in one response."""


def listed(resources: Sequence[Any], total: int, start: int = 0) -> dict[str, Any]:
    """Return the response with these resources, which follow `start` others."""
    return {
        "schemas": [LIST],
        "totalResults": total,
        "startIndex": start + 1,
        "itemsPerPage": len(resources),
        "Resources": resources,
    }


def page_of(query: Mapping[str, str]) -> slice:
    """Return the slice of the results that the client wants."""
    start = max(1, _number(query, "startIndex", 1)) - 1
    count = min(max(0, _number(query, "count", MAX_COUNT)), MAX_COUNT)
    return slice(start, start + count)


def _number(query: Mapping[str, str], name: str, default: int) -> int:
    text = query.get(name, "")
    if not text:
        return default
    try:
        return int(text[:20])
    except ValueError:
        raise ScimRefused(400, f"{name} must be a number.", "invalidValue") from None


def wants(query: Mapping[str, str], attribute: str) -> bool:
    """Whether the client wants this attribute, by `attributes` and `excludedAttributes`."""
    excluded = {text.strip().lower() for text in query.get("excludedAttributes", "").split(",")}
    included = {text.strip().lower() for text in query.get("attributes", "").split(",")} - {""}
    name = attribute.lower()
    is_included = not included or any(text.partition(".")[0] == name for text in included)
    return name not in excluded and is_included
