"""`tertulia defaults`: default personal settings for new users."""

from enum import Enum
from typing import Final

from tertulia.cli.assignments import Shown
from tertulia.cli.commands import group
from tertulia.cli.named_settings import NamedSettings, add_commands
from tertulia.domain.organization import settings
from tertulia.service.caller import Caller
from tertulia.state.state import State
from tertulia.wire.api.settings import SettingParams, field_names, settings_sent

app = group(
    "defaults",
    "Manage default settings for new users: list, show, and set them. (For default channels:"
    " `channels change NAME is_default=true`.)",
)

_AUTOMATIC: Final = "null"
"""The value of a setting that follows the user's language or region."""
_OF_THE_ORGANIZATION: Final = "default_language"
"""A setting of the organization: see `tertulia settings`."""


def _names() -> dict[str, str]:
    found = {field: there for there, field in field_names().items()}
    del found[_OF_THE_ORGANIZATION]
    return dict(sorted(found.items()))


def _value(state: State, name: str) -> Shown:
    value = getattr(state.default_settings, name)
    found: Shown = value.value if isinstance(value, Enum) else value
    return _AUTOMATIC if found is None else found


async def _change(caller: Caller, params: SettingParams) -> None:
    await caller.submit(settings.change_defaults, settings_sent(params))


add_commands(
    app,
    NamedSettings(
        whose="the default settings for new users",
        params=SettingParams,
        change=_change,
        names=_names,
        value=_value,
    ),
    "enter_sends=true color_scheme=2",
    "Existing users keep their settings. `show` explains the values of a setting.",
)
