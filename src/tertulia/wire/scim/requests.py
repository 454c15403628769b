"""Parsing requests of SCIM clients: filters, and bodies of POST, PUT, and PATCH.

Clients differ from the standard and from each other. Entra sends "False" as a string and operations
in upper case, Okta sends operations without a path, and both send many attributes that Tertulia
doesn't have. Those are ignored, which the standard allows.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from tertulia.wire.scim.call import ScimRefused

USER: Final = "urn:ietf:params:scim:schemas:core:2.0:User"
GROUP: Final = "urn:ietf:params:scim:schemas:core:2.0:Group"
MAX_OPERATIONS: Final = 1000
"""Operations in one PATCH."""
MAX_FILTER: Final = 1000
"""Characters in a filter."""


class AttributePath(Struct, frozen=True):
    """A path such as `emails[type eq "work"].value`, in lowercase except for the value."""

    attribute: str
    sub: str = ""
    selector: tuple[str, str] | None = None
    """The attribute and the value between brackets."""


_PATH: Final = re.compile(
    r'(?P<attribute>[A-Za-z$][\w$-]*)(?:\[\s*(?P<by>\w+)\s+eq\s+"?(?P<value>[^"\]]*)"?\s*\])?'
    r"(?:\.(?P<sub>\w+))?",
    re.IGNORECASE,
)
_COMPARISON: Final = re.compile(
    r'\s*(?P<path>[\w.:-]+(?:\[[^\]]*\])?(?:\.\w+)?)\s+eq\s+(?P<value>"(?:[^"\\]|\\["\\/])*"|\w+)\s*',
    re.IGNORECASE,
)
_AND: Final = re.compile(r"and\b", re.IGNORECASE)


def path_of(text: str) -> AttributePath | None:
    """Return the parsed path; None for an attribute of an extension, which Tertulia doesn't have.
    Raises ScimRefused if it's malformed."""
    plain = text.strip()
    for schema in (USER, GROUP):
        if plain.lower().startswith(f"{schema.lower()}:"):
            plain = plain[len(schema) + 1 :]
    if plain.lower().startswith("urn:"):
        return None
    match = _PATH.fullmatch(plain)
    if match is None:
        raise ScimRefused(400, f"The path '{text[:100]}' isn't supported.", "invalidPath")
    by = match["by"]
    return AttributePath(
        match["attribute"].lower(),
        (match["sub"] or "").lower(),
        None if by is None else (by.lower(), match["value"]),
    )


def conditions_of(text: str) -> dict[str, str]:
    """Return a filter's values by attribute in lowercase. A filter consists of comparisons with
    `eq`, joined by `and`. Raises ScimRefused for other filters."""
    result: dict[str, str] = {}
    at = 0
    while match := _COMPARISON.match(text[:MAX_FILTER], at):
        path = path_of(match["path"])
        value = match["value"]
        if path is None:
            break
        name = f"{path.attribute}.{path.sub}" if path.sub else path.attribute
        result[name] = re.sub(r"\\(.)", r"\1", value[1:-1]) if value.startswith('"') else value
        at = match.end()
        if at == len(text):
            return result
        joined = _AND.match(text, at)
        if joined is None:
            break
        at = joined.end()
    raise ScimRefused(
        400, "Filters must compare attributes with eq, such as userName eq \"june@example.com\".",
        "invalidFilter",
    )  # fmt: skip


def operations_of(body: Mapping[str, Any]) -> Iterator[tuple[str, AttributePath, Any]]:
    """Yield the operations of a PATCH: `add`, `replace`, or `remove`, a path, and a value. An
    operation without a path is split into one for each attribute."""
    operations = {name.lower(): value for name, value in body.items()}.get("operations")
    if not isinstance(operations, list) or len(operations) > MAX_OPERATIONS:
        raise ScimRefused(
            400, f"A PATCH needs a list of up to {MAX_OPERATIONS} Operations.", "invalidSyntax"
        )
    for operation in operations:
        if not isinstance(operation, dict):
            raise ScimRefused(400, "An operation must be an object.", "invalidSyntax")
        kind = str(operation.get("op", "")).lower()
        if kind not in {"add", "replace", "remove"}:
            raise ScimRefused(
                400, "An operation's op must be add, replace, or remove.", "invalidSyntax"
            )
        path, value = operation.get("path"), operation.get("value")
        if isinstance(path, str) and path.strip():
            if (parsed := path_of(path)) is not None:
                yield kind, parsed, value
        elif isinstance(value, dict) and kind != "remove":
            for parsed, single in attributes_of(value):
                yield kind, parsed, single
        else:
            raise ScimRefused(
                400, "An operation without a path needs an object as value.", "noTarget"
            )


def attributes_of(body: Mapping[str, Any]) -> Iterator[tuple[AttributePath, Any]]:
    """Yield the attributes of a resource that Tertulia may have."""
    for name, value in body.items():
        if name.lower() in {"schemas", "id", "meta"}:
            continue
        if (path := path_of(name)) is not None:
            yield path, value


def text_of(value: Any, name: str) -> str:
    """Return a text; empty for null. Raises ScimRefused for other values."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ScimRefused(400, f"The value of {name} must be a string.", "invalidValue")
    return value.strip()


def flag_of(value: Any, name: str) -> bool:
    """Return a Boolean, which Entra sends as "True" and "False"."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    raise ScimRefused(400, f"The value of {name} must be true or false.", "invalidValue")


def items_of(value: Any, name: str) -> Sequence[Mapping[str, Any]]:
    """Return the items of a multi-valued attribute, each with its attributes in lowercase. A single
    item, and items that are only texts, are also accepted."""
    result = []
    for item in value if isinstance(value, list) else [] if value is None else [value]:
        if isinstance(item, str):
            item = {"value": item}
        if not isinstance(item, dict):
            raise ScimRefused(400, f"The items of {name} must be objects.", "invalidValue")
        result.append({key.lower(): item for key, item in item.items()})
    return result
