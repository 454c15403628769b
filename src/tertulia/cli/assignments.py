"""`NAME=VALUE`: settings of the organization, of channels and of what else there are several of, as
they are typed and shown.

What a value may be, the declarations of the interface say, and the verbs behind it. Here is only
what is nicer to type than the interface's JSON: groups and channels by their names.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from tertulia.cli.errors import UsageError
from tertulia.domain.groups.group_settings import (
    CHANNEL_SETTINGS,
    GROUP_SETTINGS,
    REALM_SETTINGS,
)
from tertulia.domain.organization.settings import NOWHERE
from tertulia.model.groups import GroupSetting, Members
from tertulia.state.organization import State
from tertulia.wire.http.errors import BadParameter, MissingParameter
from tertulia.wire.http.parameters import P, Parameter, declared, decode, without_unset

NONE: Final = "none"
"""The word for no channel and no folder."""
UNLIMITED: Final = "unlimited"
_NUMBER: Final = re.compile(r"-?[0-9]{1,16}")
Shown = bool | int | str | list[str] | dict[str, Any]
"""A value that can be typed again."""


def split(typed: Sequence[str], known: Collection[str]) -> dict[str, str]:
    """The names and values of `NAME=VALUE`s. UsageError for what is none of the known names."""
    found: dict[str, str] = {}
    for one in typed:
        name, equals, value = one.partition("=")
        if not equals:
            raise UsageError(f"'{one}' isn't in the form NAME=VALUE.")
        require_known(name, known)
        if name in found:
            raise UsageError(f"'{name}' is set twice.")
        found[name] = value
    return found


def require_known(name: str, known: Collection[str]) -> None:
    """UsageError for what is none of the known names; it says which are like it."""
    if name in known:
        return
    import difflib  # Only for those who mistyped.

    like = difflib.get_close_matches(name, known, n=3)
    hint = f" Did you mean {' or '.join(like)}?" if like else ""
    raise UsageError(f"Unknown setting '{name}'.{hint}")


def read(params: type[P], sent: Mapping[str, str], names: Mapping[str, str]) -> P:
    """The parameters as the interface reads them. `names` are what they are called here. UsageError
    for what they cannot be, and for what is missing."""
    try:
        places = {one.name: sent.get(one.name, "0") for one in declared(params) if one.in_path}
        found, _ = decode(params, sent, places)
    except BadParameter as error:
        name = names.get(error.name, error.name)
        taken = kind_of(parameter(params, error.name))
        raise UsageError(
            f"Invalid value '{sent[error.name][:50]}' for {name}: expected {taken}."
        ) from None
    except MissingParameter as error:
        raise UsageError(f"{names.get(error.name, error.name)} is required.") from None
    return found


def parameter(params: type[P], name: str) -> Parameter:
    """The declaration of a parameter."""
    return next(one for one in declared(params) if one.name == name)


def kind_of(one: Parameter) -> str:
    """What the parameter takes, in words."""
    if any(one.name in those for those in (REALM_SETTINGS, CHANNEL_SETTINGS, GROUP_SETTINGS)):
        return "the name of a group"
    if one.name.endswith("_stream_id") or one.name.endswith("_channel_id"):
        return f"the name of a channel, or {NONE}"
    schema: Mapping[str, Any] = one.schema or msgspec.json.schema(without_unset(one.type))
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
    """A change of a permission in JSON, of a group's name; what is JSON already is the new value.
    UsageError where no group has the name."""
    return f'{{"new": {group_named(state, text)}}}'


def group_named(state: State, text: str) -> str:
    """A group's ID, of its name; what is JSON already stays. UsageError where none has it."""
    text = text.strip()
    if text.startswith("{") or _NUMBER.fullmatch(text):
        return text
    by_name = state.groups.by_name
    found = by_name.get(text.casefold()) or by_name.get(_ROLES + text.casefold())
    if found is None:
        system = ", ".join(one.name.removeprefix(_ROLES) for one in state.groups if one.is_system)
        raise UsageError(f"Group '{text}' doesn't exist. The built-in groups are {system}.")
    return str(found)


def group_shown(state: State, setting: GroupSetting) -> Shown:
    """A permission's holder: the group's name, or who is in it."""
    if isinstance(setting, Members):
        shown: dict[str, Any] = msgspec.to_builtins(setting)
        return shown
    return state.groups[setting].name.removeprefix(_ROLES)


# Channels


def channel_typed(state: State, text: str) -> str:
    """A channel's ID, of its name, with or without `#`. UsageError where none has it."""
    if text.strip() == NONE:
        return str(NOWHERE)
    channel = state.channel_named(text.strip().removeprefix("#"))
    if channel is not None:
        return str(channel.id)
    if _NUMBER.fullmatch(text.strip()):
        return text.strip()
    raise UsageError(f"Channel '{text}' doesn't exist.")


def channel_shown(state: State, channel_id: int) -> str:
    """A channel's name; `none` for none."""
    channel = state.channels.get(channel_id)
    return NONE if channel is None else channel.name


def line_of(value: Shown) -> str:
    """A value on one line, as it can be typed again."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
