"""`tertulia settings`: those of the organization."""

from typing import Final

from tertulia.cli import assignments
from tertulia.cli.assignments import UNLIMITED, Shown
from tertulia.cli.commands import group
from tertulia.cli.errors import UsageError
from tertulia.cli.named_settings import NamedSettings, add_commands
from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.domain.organization.settings import FOR_EVER, FOR_OWNERS
from tertulia.model.organization import Realm
from tertulia.state.state import State
from tertulia.wire.api.organization.endpoints import UpdateRealm, update_realm
from tertulia.wire.api.organization.objects import SIGN_IN_SETTING, api_settings, wire_name

app = group(
    "settings",
    "Manage the organization's settings: list, show, and set them. (For server settings:"
    " `config`; for new users' settings: `defaults`.)",
)

_METHODS: Final = "authentication_methods"


def _names() -> dict[str, str]:
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


def _value(state: State, name: str) -> Shown:
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
        names=_names,
        value=_value,
        sent=_sent,
        for_owners=FOR_OWNERS,
        takes={SIGN_IN_SETTING: ("true or false", "Whether people can sign in with a password.")},
    ),
    "invite_required=false can_invite_users_group=moderators",
    "Changes apply to everyone immediately. Use names for groups and channels. Limits can be"
    " `unlimited`, and channels can be `none`.",
)
