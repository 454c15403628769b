"""Changing the organization's settings."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from tertulia.domain import names, permissions
from tertulia.domain.accounts import full_members, personal_settings
from tertulia.domain.channels import channels
from tertulia.domain.groups import group_settings
from tertulia.domain.groups.group_settings import REALM_SETTINGS, PermissionUpdate
from tertulia.domain.messages.bot_messages import Render
from tertulia.domain.organization.lifecycle import LANGUAGES
from tertulia.model.changes import AnyChange, RealmChanged, RealmDefaultsChanged
from tertulia.model.errors import Refused
from tertulia.model.groups import normalized
from tertulia.model.organization import Realm, RealmPicture
from tertulia.model.settings import declared_settings
from tertulia.state.decision import CommandContext, Decision

NOWHERE: Final = -1
"""Means no channel, in place of a channel's ID."""
FOR_EVER: Final = -1
"""The value of `message_retention_days` that keeps messages forever."""
MAX_URL: Final = 200

VIDEO_CALLS: Final[Mapping[int, tuple[str, str]]] = {
    0: ("disabled", "None"),
    1: ("jitsi_meet", "Jitsi Meet"),
    3: ("zoom", "Zoom"),
    4: ("big_blue_button", "BigBlueButton"),
    5: ("zoom_server_to_server", "Zoom"),
    7: ("nextcloud_talk", "Nextcloud Talk"),
    100: ("hosted", "Call server of this organization"),
}
"""Video call providers by number, with key and name. The last one is an extension."""
ZOOM: Final = 3
"""Providers from this number on are only offered if the operator configures them."""
BIG_BLUE_BUTTON: Final = 4
ZOOM_FOR_ALL: Final = 5
NEXTCLOUD_TALK: Final = 7
HOSTED_CALLS: Final = 100

_SETTINGS: Final = declared_settings(Realm)
CHECKED: Final = frozenset(
    name
    for name, setting in _SETTINGS.items()
    if not setting.setting.read_only and name not in REALM_SETTINGS
)
"""The settings that `checked_value` accepts."""
FOR_OWNERS: Final = frozenset(
    name for name, setting in _SETTINGS.items() if setting.setting.owners_only
)
"""Settings that only owners can change: who can join, and when messages are deleted."""


class OrganizationUpdate(Struct, frozen=True, kw_only=True):
    """New values for settings, which are fields of `Realm` by name, and for permissions."""

    values: Mapping[str, Any] = {}
    groups: Mapping[str, PermissionUpdate] = {}


def check_may_change(context: CommandContext, fields: frozenset[str]) -> Decision[None]:
    """Raise NotPermitted unless the actor can change all of these settings."""
    permissions.require_administrator(context.state, context.actor)
    if fields & FOR_OWNERS:
        permissions.require_owner(context.state, context.actor)
    return Decision(None)


def change(context: CommandContext, edit: OrganizationUpdate, render: Render) -> Decision[None]:
    """Change the organization's settings, all or none.

    Raise NotPermitted without permission; Refused for invalid values, including channels that the
    actor can't see; StaleExpectation and SystemGroupRequired for permissions.
    """
    state = context.state
    check_may_change(context, frozenset([*edit.values, *edit.groups]))
    values = {name: _checked(context, name, value) for name, value in edit.values.items()}
    if "description" in values:
        values["rendered_description"] = render(context, values["description"]).html
    for name, given in edit.groups.items():
        values[name] = group_settings.updated_setting(
            state, name, REALM_SETTINGS[name], getattr(state.realm, name), given
        )
    return Decision(None, setting_changes(context, values))


def _checked(context: CommandContext, name: str, value: Any) -> Any:
    checked = checked_value(name, value)
    return _channel(context, name, checked) if name.endswith("_channel_id") else checked


def checked_value(name: str, value: Any) -> Any:
    """Return the setting's value with the type that `Realm` declares. Raise Refused if it's
    invalid. The caller checks channels and permissions."""
    try:
        converted = msgspec.convert(value, _SETTINGS[name].type)
    except msgspec.ValidationError as error:
        raise Refused(f"Invalid value for '{name}': {error}") from None
    rule = _RULES.get(name)
    return converted if rule is None else rule(converted)


def _channel(context: CommandContext, name: str, channel_id: int) -> int:
    """Return the channel's ID. Raise Refused if it's archived, the actor can't see it, or it's
    public and the setting needs a private one."""
    if channel_id == NOWHERE:
        return NOWHERE
    channel = channels.existing_channel(context.state, context.actor, channel_id)
    if channel.is_archived:
        raise Refused("This channel is archived.")
    if name == "moderation_request_channel_id" and not channel.is_private:
        raise Refused(channels.REPORTS_NOT_PUBLIC)
    return channel.id


def _language(code: str) -> str:
    if code not in LANGUAGES:
        raise Refused("This language isn't available.")
    return code


def _code_language(name: str) -> str:
    return names.code_language(name) if name.strip() else ""


def _retention(days: int) -> int:
    if days < 1 and days != FOR_EVER:
        raise Refused("Messages must be kept for at least one day.")
    return days


def _video_calls(number: int) -> int:
    if number not in VIDEO_CALLS:
        raise Refused("This server doesn't offer this video call provider.")
    return number


def _call_server(url: str | None) -> str | None:
    if url is None:
        return None
    address = url.strip()
    try:
        parts = urlsplit(address)
    except ValueError:
        raise Refused("This isn't a valid URL.") from None
    if len(address) > MAX_URL or not names.is_printable(address) or " " in address:
        raise Refused(
            f"A URL can have at most {MAX_URL} characters and can't contain spaces or invisible"
            " characters."
        )
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise Refused("The URL must begin with http:// or https://.")
    return address


def _welcome(text: str) -> str:
    stripped = text.strip()
    if len(stripped) > names.MAX_WELCOME_TEXT:
        raise Refused(f"The text can have at most {names.MAX_WELCOME_TEXT} characters.")
    return stripped


_RULES: Final[Mapping[str, Callable[[Any], Any]]] = {
    "default_code_block_language": _code_language,
    "default_language": _language,
    "description": names.realm_description,
    "jitsi_server_url": _call_server,
    "message_retention_days": _retention,
    "name": names.realm_name,
    "video_chat_provider": _video_calls,
    "welcome_message_custom_text": _welcome,
}
"""Rules for values in addition to their types."""


def setting_changes(context: CommandContext, values: Mapping[str, Any]) -> list[AnyChange]:
    """Return the changes that set these values, if they differ."""
    state, realm, now = context.state, context.state.realm, context.now
    new = {name: value for name, value in values.items() if _differs(realm, name, value)}
    if not new:
        return []
    if "second_factor_required_for" in new:
        new["second_factor_required_since"] = int(now)
    change = RealmChanged(values=new)
    if "waiting_period_threshold" in new:
        return [
            change,
            full_members.full_members_change(state, now, new["waiting_period_threshold"]),
        ]
    return [change]


def _differs(realm: Realm, name: str, value: Any) -> bool:
    present = getattr(realm, name)
    if name in REALM_SETTINGS:
        return bool(normalized(present) != value)
    return bool(present != value)


def set_picture(context: CommandContext, name: str, file: str) -> Decision[RealmPicture]:
    """Replace one of the organization's pictures with the given file, or with the default if it's
    empty. `name` is a field of `Realm`. Return the previous picture. For administrators."""
    permissions.require_administrator(context.state, context.actor)
    before: RealmPicture = getattr(context.state.realm, name)
    if before.file == file:
        return Decision(before)
    after = RealmPicture(file=file, version=before.version + 1)
    return Decision(before, setting_changes(context, {name: after}))


def change_defaults(context: CommandContext, values: Mapping[str, Any]) -> Decision[None]:
    """Change the default settings of new accounts. For administrators. Raise Refused for invalid
    values."""
    permissions.require_administrator(context.state, context.actor)
    before = context.state.default_settings
    checked = personal_settings.all_checked(values)
    new = {name: value for name, value in checked.items() if getattr(before, name) != value}
    return Decision(None, (RealmDefaultsChanged(values=new),) if new else ())
