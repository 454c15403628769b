"""Personal settings: what each may be, and how they are changed."""

import typing
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from tertulia.model.errors import Refused
from tertulia.model.users import PersonalSettings

NOTIFICATION_SOUNDS: Final = ("ding", "zulip")
"""The sounds that there are by name. Clients bring the sounds themselves."""
SILENCE: Final = "none"
"""What stands for no sound at all."""

_CODES: Final = """
    ar be bg bn ca cs cy da de el en en-gb eo es fa fi fr gl gu hi hr hu id it ja ka ko lt lv ml mn
    nl nn no pl pt pt-br pt-pt ro ru si sk sl sr sv ta te tl tr uk ur uz vi zh-hans zh-hant zh-tw
"""
LANGUAGES: Final = frozenset(_CODES.split())
"""The languages that clients speak, by their codes."""

_NO_SETTINGS: Final = frozenset({"user_id", "edited_by_owner"})

RULES: Final[Mapping[str, Any]] = {
    name: kind
    for name, kind in typing.get_type_hints(PersonalSettings, include_extras=True).items()
    if name not in _NO_SETTINGS
}
"""Every personal setting, and the type of its values. Two have a list of their own beside it:
`default_language` (LANGUAGES) and `notification_sound`."""


def checked(name: str, value: Any) -> Any:
    """The setting's value, as the type of `PersonalSettings` has it. Refused for one that it
    cannot have; KeyError for no setting."""
    kind = RULES[name]
    try:
        found = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise Refused(f"Bad value for a setting: {error}") from None
    if name == "default_language" and found not in LANGUAGES:
        raise Refused("Clients do not speak this language.")
    if name == "notification_sound" and found not in {*NOTIFICATION_SOUNDS, SILENCE}:
        raise Refused("There is no such sound.")
    return found


def all_checked(values: Mapping[str, Any]) -> dict[str, Any]:
    """Several of them, as `checked`."""
    return {name: checked(name, value) for name, value in values.items()}
