"""`tertulia settings` and `tertulia defaults`: settings of the organization and of new users."""

from enum import Enum
from typing import Final

from tertulia.cli import assignments
from tertulia.cli.assignments import UNLIMITED, Shown
from tertulia.cli.commands import group
from tertulia.cli.errors import UsageError
from tertulia.cli.named_settings import NamedSettings, add_commands
from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.domain.organization import settings
from tertulia.domain.organization.settings import FOR_EVER, FOR_OWNERS
from tertulia.model.organization import Realm
from tertulia.service.node import Caller
from tertulia.state.state import State
from tertulia.wire.api.organization.endpoints import UpdateRealm, update_realm
from tertulia.wire.api.organization.objects import SIGN_IN_SETTING, api_settings, wire_name
from tertulia.wire.api.settings import SettingParams, field_names, settings_sent

app = group(
    "settings",
    "Manage the organization's settings: list, show, and set them. (For server settings:"
    " `config`; for new users' settings: `defaults`.)",
)

_METHODS: Final = "authentication_methods"


def _organization_names() -> dict[str, str]:
    settings = api_settings().items()
    found = {field: wire_name(field) for field, one in settings if not one.setting.read_only}
    return dict(sorted({**found, SIGN_IN_SETTING: _METHODS}.items()))


def _sent(state: State, name: str, text: str) -> str:
    if name in REALM_SETTINGS:
        return assignments.group_typed(state, text)
    if name.endswith("_channel_id"):
        return assignments.channel_typed(state, text)
    if name == SIGN_IN_SETTING:
        if text not in {"true", "false"}:
            raise UsageError(f"Invalid value '{text[:50]}' for {name}: expected true or false.")
        return f'{{"Email": {text}}}'
    return text


def _organization_value(state: State, name: str) -> Shown:
    realm: Realm = state.realm
    value = getattr(realm, name)
    if name in REALM_SETTINGS:
        return assignments.group_shown(state, value)
    if name.endswith("_channel_id"):
        return assignments.channel_shown(state, value)
    if name == "jitsi_server_url":
        return "default" if value is None else str(value)
    if value is None or (name == "message_retention_days" and value == FOR_EVER):
        return UNLIMITED
    found: Shown = value
    return found


add_commands(
    app,
    NamedSettings(
        whose="the organization's settings",
        params=UpdateRealm,
        change=update_realm,
        names=_organization_names,
        value=_organization_value,
        sent=_sent,
        for_owners=FOR_OWNERS,
        takes={SIGN_IN_SETTING: ("true or false", "Whether people can sign in with a password.")},
    ),
    "invite_required=false can_invite_users_group=moderators",
    "Changes apply to everyone immediately. Use names for groups and channels. Limits can be"
    " `unlimited`, and channels can be `none`.",
)

defaults = group(
    "defaults",
    "Manage default settings for new users: list, show, and set them. (For default channels:"
    " `channels change NAME is_default=true`.)",
)

_AUTOMATIC: Final = "null"
"""The value of a setting that follows the user's language or region."""
_OF_THE_ORGANIZATION: Final = "default_language"
"""A setting of the organization: see `tertulia settings`."""


def _default_names() -> dict[str, str]:
    found = {field: there for there, field in field_names().items()}
    del found[_OF_THE_ORGANIZATION]
    return dict(sorted(found.items()))


def _default_value(state: State, name: str) -> Shown:
    value = getattr(state.default_settings, name)
    found: Shown = value.value if isinstance(value, Enum) else value
    return _AUTOMATIC if found is None else found


async def _change_defaults(caller: Caller, params: SettingParams) -> None:
    await caller.submit(settings.change_defaults, settings_sent(params))


add_commands(
    defaults,
    NamedSettings(
        whose="the default settings for new users",
        params=SettingParams,
        change=_change_defaults,
        names=_default_names,
        value=_default_value,
    ),
    "enter_sends=true color_scheme=2",
    "Existing users keep their settings. `show` explains the values of a setting.",
)
