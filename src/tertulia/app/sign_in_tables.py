"""Reading the declarations of sign-in methods: the tables `[[sign_in]]` of the settings file, or
JSON in `TERTULIA_SIGN_IN`."""

import json
import re
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from tertulia.service.directory_methods import HeaderMethod, LdapMethod
from tertulia.service.provider_methods import (
    AppleMethod,
    GithubMethod,
    GitlabMethod,
    GoogleMethod,
    OidcMethod,
    SamlMethod,
)
from tertulia.service.sign_in_methods import RoleName, SignInMethod

RESERVED: Final = frozenset({"code", "link", "passkey", "password", "scim", "token"})
"""Names of other ways to sign in, in logs and sessions."""
KINDS: Final[Mapping[str, type[SignInMethod]]] = {
    str(kind.__struct_config__.tag): kind
    for kind in (
        OidcMethod,
        GoogleMethod,
        GitlabMethod,
        GithubMethod,
        AppleMethod,
        HeaderMethod,
        LdapMethod,
        SamlMethod,
    )
}
_PLACE: Final = re.compile(r" - at `(key` in `)?\$\.?([^`]*)`$")


def methods_from(value: Any) -> tuple[SignInMethod, ...]:
    """Return the methods from TOML tables, or from their JSON. Raise ValueError with a sentence
    that names the wrong key."""
    if isinstance(value, str):
        try:
            value = json.loads(value) if value.strip() else []
        except (json.JSONDecodeError, RecursionError) as error:
            raise ValueError(f"sign_in: it isn't valid JSON: {error}") from None
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ValueError("sign_in: it must be a list of tables, each beginning with [[sign_in]]")
    methods = tuple(_method(number, table) for number, table in enumerate(value, 1))
    names = [method.name for method in methods]
    for name in names:
        if name in RESERVED:
            raise ValueError(f"sign_in ({name}): name can't be {_either(sorted(RESERVED))}")
        if names.count(name) > 1:
            raise ValueError(f"sign_in: two methods have the name '{name}'")
    return methods


def _method(number: int, table: dict[str, Any]) -> SignInMethod:
    name = table.get("name")
    which = f"sign_in ({name})" if isinstance(name, str) and name else f"sign_in (table {number})"
    kind = KINDS.get(str(table.get("kind")))
    if kind is None:
        raise ValueError(f"{which}: kind must be {_either(KINDS)}")
    try:
        method = msgspec.convert(table, kind)
        method.check()
        if method.icon_file:
            method.icon()
        for key in ("roles", "groups"):
            if getattr(method, key) and not method.HAS_GROUPS:
                raise ValueError(f"{key}: kind {method.kind} doesn't say who is in which group")
        if method.single_logout and not method.HAS_LOGOUT:
            raise ValueError(f"single_logout: kind {method.kind} has no sign-out at the provider")
    except msgspec.ValidationError as error:
        raise ValueError(f"{which}: {_reason(kind, str(error))}") from None
    except ValueError as error:
        raise ValueError(f"{which}: {error}") from None
    return method


def _reason(kind: type[SignInMethod], error: str) -> str:
    """Return msgspec's message, beginning with the key."""
    message = _PLACE.sub("", error)
    place = _PLACE.search(error)
    key = place[2].partition("[")[0] if place is not None else ""
    if missing := re.search(r"missing required field `(\w+)`", message):
        return f"{missing[1]} is missing"
    if unknown := re.search(r"unknown field `([^`]+)`", message):
        known = (field.name for field in msgspec.structs.fields(kind))
        tag = kind.__struct_config__.tag
        return f"{unknown[1]} isn't a setting of kind {tag}, which has {', '.join(known)}"
    if key == "name":
        return "name must be up to 30 characters of a-z, 0-9, and -"
    if key == "accounts":
        return "accounts must be create or match"
    if key == "roles" and place is not None and place[1]:
        return f"roles: its keys must be {_either(typing.get_args(RoleName))}"
    if "regex" in message and key.endswith("_header"):
        return f"{key} must be the name of a header"
    if "regex" in message and key == "metadata_url":
        return "metadata_url must be an HTTPS URL"
    if "regex" in message and kind is LdapMethod:
        shape = "ldaps://host or ldap://host" if key == "url" else "a filter in parentheses"
        return f"{key} must be {shape}"
    if "regex" in message:
        return f"{key} must be an http:// or https:// URL"
    if "length" in message:
        return f"{key} can't be empty"
    return f"{key}: {message[:1].lower()}{message[1:]}"


def _either(names: Iterable[str]) -> str:
    *first, last = names
    return f"{', '.join(first)}, or {last}"
