"""`NAME=VALUE`: parsing and showing settings. The values that a setting accepts follow from the
parameters that the API declares. Only groups and channels differ: on the command line, they are
given by name."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from tertulia.cli.errors import UsageError
from tertulia.domain.groups.group_settings import CHANNEL_SETTINGS, GROUP_SETTINGS, REALM_SETTINGS
from tertulia.domain.organization.settings import NOWHERE
from tertulia.model.groups import GroupSetting, Members
from tertulia.state.state import State
from tertulia.wire.http.errors import BadParameter, MissingParameter
from tertulia.wire.http.parameters import Declaration, Parameter, declared, decode, without_unset

NONE: Final = "none"
"""Means no channel or no folder."""
UNLIMITED: Final = "unlimited"
_NUMBER: Final = re.compile(r"-?[0-9]{1,16}")
Shown = bool | int | str | list[str] | dict[str, Any] | None
"""A value to show. The value of a setting can be typed again."""


def split(typed: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """Parse `NAME=VALUE` arguments. Raise UsageError for unknown names."""
    settings: dict[str, str] = {}
    for text in typed:
        name, equals, value = text.partition("=")
        if not equals:
            raise UsageError(f"'{text}' isn't in the form NAME=VALUE.")
        require_known(name, known)
        if name in settings:
            raise UsageError(f"'{name}' is set twice.")
        settings[name] = value
    return settings


def require_known(name: str, known: Collection[str]) -> None:
    """Raise UsageError, with similar names, if a name isn't known."""
    if name in known:
        return
    import difflib  # Imported here because only typing errors need it.

    like = difflib.get_close_matches(name, known, n=3)
    hint = f" Did you mean {' or '.join(like)}?" if like else ""
    raise UsageError(f"Unknown setting '{name}'.{hint}")


def read(by: Declaration, sent: Mapping[str, str], names: Mapping[str, str]) -> dict[str, Any]:
    """Parse parameters as the API does. `names` has their names in commands, by their names in the
    API. Raise UsageError if one is invalid or missing."""
    try:
        places = {
            parameter.name: sent.get(parameter.name, "0")
            for parameter in declared(by)
            if parameter.in_path
        }
        parsed, _ = decode(by, sent, places)
    except BadParameter as error:
        name = names.get(error.name, error.name)
        taken = kind_of(parameter(by, error.name))
        raise UsageError(
            f"Invalid value '{sent[error.name][:50]}' for {name}: expected {taken}."
        ) from None
    except MissingParameter as error:
        raise UsageError(f"{names.get(error.name, error.name)} is required.") from None
    return parsed


def parameter(by: Declaration, name: str) -> Parameter:
    """The declaration of a parameter."""
    return next(parameter for parameter in declared(by) if parameter.name == name)


def kind_of(parameter: Parameter) -> str:
    """Describe the values that a parameter takes."""
    if any(parameter.name in those for those in (REALM_SETTINGS, CHANNEL_SETTINGS, GROUP_SETTINGS)):
        return "the name of a group"
    if parameter.name.endswith("_stream_id") or parameter.name.endswith("_channel_id"):
        return f"the name of a channel, or {NONE}"
    schema: Mapping[str, Any] = parameter.schema or msgspec.json.schema(
        without_unset(parameter.type)
    )
    return " or ".join(dict.fromkeys(_kinds(schema)))


def _kinds(schema: Mapping[str, Any]) -> Iterable[str]:
    for key in ("oneOf", "anyOf"):
        for option in schema.get(key, ()):
            yield from _kinds(option)
    if "enum" in schema:
        yield " or ".join(map(str, schema["enum"]))
    elif "const" in schema:
        yield str(schema["const"])
    elif schema.get("type") == "boolean":
        yield "true or false"
    elif schema.get("type") == "integer":
        least, most = schema.get("minimum"), schema.get("maximum")
        bounded = least is not None and most is not None and most < 10**12
        yield f"a number from {least} to {most}" if bounded else "a number"
    elif schema.get("type") == "string":
        yield "text"
    elif schema.get("type") == "array":
        yield "a JSON list"


# Groups


_ROLES: Final = "role:"


def group_typed(state: State, text: str) -> str:
    """Convert a group's name (or a new value in JSON) to a permission change in JSON. Raise
    UsageError if no group has this name."""
    return f'{{"new": {group_named(state, text)}}}'


def group_named(state: State, text: str) -> str:
    """Convert a group's name to its ID, and leave JSON as it is. Raise UsageError if the group
    doesn't exist."""
    text = text.strip()
    if text.startswith("{") or _NUMBER.fullmatch(text):
        return text
    by_name = state.groups.by_name
    group_id = by_name.get(text.casefold()) or by_name.get(_ROLES + text.casefold())
    if group_id is None:
        system = ", ".join(
            group.name.removeprefix(_ROLES) for group in state.groups if group.is_system
        )
        raise UsageError(f"Group '{text}' doesn't exist. The built-in groups are {system}.")
    return str(group_id)


def group_shown(state: State, setting: GroupSetting) -> Shown:
    """Return a permission's value: a group's name, or the members of an unnamed group."""
    if isinstance(setting, Members):
        shown: dict[str, Any] = msgspec.to_builtins(setting)
        return shown
    return state.groups[setting].name.removeprefix(_ROLES)


# Channels


def channel_typed(state: State, text: str) -> str:
    """Convert a channel's name, with or without `#`, to its ID. Raise UsageError if it doesn't
    exist."""
    if text.strip() == NONE:
        return str(NOWHERE)
    channel = state.channel_named(text.strip().removeprefix("#"))
    if channel is not None:
        return str(channel.id)
    if _NUMBER.fullmatch(text.strip()):
        return text.strip()
    raise UsageError(f"Channel '{text}' doesn't exist.")


def channel_shown(state: State, channel_id: int) -> str:
    """Return a channel's name, or `none`."""
    channel = state.channels.get(channel_id)
    return NONE if channel is None else channel.name


def line_of(value: Shown) -> str:
    """Return the value in a form that can be typed again."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
