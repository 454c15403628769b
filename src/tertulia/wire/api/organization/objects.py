"""The organization's settings as JSON."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from typing import Any, Final, Literal

from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.model.groups import GroupSetting, SystemGroup
from tertulia.model.organization import Realm, RealmPicture
from tertulia.model.settings import DeclaredSetting, declared_settings
from tertulia.service.config import Config
from tertulia.state.state import State
from tertulia.wire.api.groups.objects import group_setting
from tertulia.wire.http.parameters import SAFE_INTEGER, Reads

ICON_PATH: Final = "/static/icon-192.png"
"""A PNG, since not every client can display SVG."""
LOGO_PATH: Final = "/static/logo.svg"
NIGHT_LOGO_PATH: Final = "/static/logo-night.svg"

WIRE_NAMES: Final[Mapping[str, str]] = {
    "created_at": "date_created",
    "move_messages_between_channels_limit_seconds": "move_messages_between_streams_limit_seconds",
    "move_messages_within_channel_limit_seconds": "move_messages_within_stream_limit_seconds",
    "new_channel_announcements_channel_id": "new_stream_announcements_stream_id",
    "signup_announcements_channel_id": "signup_announcements_stream_id",
    "updates_announcements_channel_id": "zulip_update_announcements_stream_id",
}
"""Fields whose name in the API (without `realm_`) differs."""

PICTURES: Final = ("icon", "logo", "night_logo")
"""Fields that the API returns as a URL and a source."""

SIGN_IN_SETTING: Final = "password_sign_in"
"""The setting that the API returns as one of the `authentication_methods`."""


@cache
def api_settings() -> Mapping[str, DeclaredSetting]:
    """Return the settings that have a name in the API."""
    settings = declared_settings(Realm)
    return {name: setting for name, setting in settings.items() if name != SIGN_IN_SETTING}


def wire_name(field: str) -> str:
    """Return a field's name in the API, without `realm_`."""
    return WIRE_NAMES.get(field, field)


def realm_settings(state: State) -> dict[str, Any]:
    """Return the settings by their API names, including legacy settings."""
    realm = state.realm
    fields: dict[str, Any] = {}
    for field, declared in api_settings().items():
        if declared.setting.extension:
            continue
        value = getattr(realm, field)
        if field in REALM_SETTINGS:
            value = group_setting(state, value)
        fields[f"realm_{wire_name(field)}"] = value
    for name in PICTURES:
        fields |= {f"realm_{key}": value for key, value in picture_fields(realm, name).items()}
    return fields | {f"realm_{name}": value for name, value in legacy_settings(realm).items()}


def realm_extensions(realm: Realm) -> dict[str, Any]:
    """Return the settings that only Tertulia has, by their API names."""
    return {
        f"realm_{wire_name(field)}": getattr(realm, field)
        for field, declared in sorted(api_settings().items())
        if declared.setting.extension
    }


_CREATE_POLICY: Final = {
    SystemGroup.MEMBERS: 1,
    SystemGroup.ADMINISTRATORS: 2,
    SystemGroup.FULL_MEMBERS: 3,
    SystemGroup.MODERATORS: 4,
}
_CREATE_WEB_PUBLIC_POLICY: Final = {
    SystemGroup.ADMINISTRATORS: 2,
    SystemGroup.MODERATORS: 4,
    SystemGroup.NOBODY: 6,
    SystemGroup.OWNERS: 7,
}
_WILDCARD_POLICY: Final = {
    SystemGroup.EVERYONE: 1,
    SystemGroup.MEMBERS: 2,
    SystemGroup.FULL_MEMBERS: 3,
    SystemGroup.ADMINISTRATORS: 5,
    SystemGroup.OWNERS: 5,
    SystemGroup.NOBODY: 6,
    SystemGroup.MODERATORS: 7,
}


def _policy(numbers: Mapping[SystemGroup, int], custom: int) -> Callable[[GroupSetting], int]:
    """Convert a permission to a legacy number. Other groups get the most permissive one, and the
    server enforces the permission."""

    def number(setting: GroupSetting) -> int:
        if isinstance(setting, int) and setting in numbers:
            return numbers[SystemGroup(setting)]
        return custom

    return number


_LEGACY: Final[Mapping[str, tuple[str, Callable[[Any], Any]]]] = {
    "allow_edit_history": ("message_edit_history_visibility_policy", lambda it: it == "all"),
    "mandatory_topics": ("topics_policy", lambda it: it == "disable_empty_topic"),
    "email_auth_enabled": (SIGN_IN_SETTING, bool),
    "password_auth_enabled": (SIGN_IN_SETTING, bool),
    "create_private_stream_policy": (
        "can_create_private_channel_group",
        _policy(_CREATE_POLICY, 1),
    ),
    "create_public_stream_policy": ("can_create_public_channel_group", _policy(_CREATE_POLICY, 1)),
    "create_web_public_stream_policy": (
        "can_create_web_public_channel_group",
        _policy(_CREATE_WEB_PUBLIC_POLICY, 4),
    ),
    "wildcard_mention_policy": ("can_mention_many_users_group", _policy(_WILDCARD_POLICY, 1)),
}
"""Legacy settings: the field that replaced each, and the function that converts its value."""


def legacy_settings(realm: Realm, fields: Collection[str] | None = None) -> dict[str, Any]:
    """Return the legacy settings (without `realm_`) for these fields (None: all)."""
    return {
        name: convert(getattr(realm, field))
        for name, (field, convert) in _LEGACY.items()
        if fields is None or field in fields
    }


_DEFAULT_PATHS: Final = {"icon": ICON_PATH, "logo": LOGO_PATH, "night_logo": NIGHT_LOGO_PATH}
_DEFAULT_SOURCES: Final = {"icon": "G", "logo": "D", "night_logo": "D"}


def picture_path(realm: Realm, name: str) -> str:
    """Return the path of an uploaded picture, without its version."""
    return f"/user_avatars/{realm.id}/realm/{name}.png"


def picture_url(realm: Realm, name: str) -> str:
    picture: RealmPicture = getattr(realm, name)
    path = picture_path(realm, name) if picture.file else _DEFAULT_PATHS[name]
    return f"{path}?version={picture.version}"


def picture_fields(realm: Realm, name: str) -> dict[str, str]:
    """Return the fields of a picture (without `realm_`)."""
    picture: RealmPicture = getattr(realm, name)
    return {
        f"{name}_source": "U" if picture.file else _DEFAULT_SOURCES[name],
        f"{name}_url": picture_url(realm, name),
    }


_METHODS: Final = {
    "oidc": "OpenID Connect",
    "google": "Google",
    "gitlab": "GitLab",
    "github": "GitHub",
    "apple": "Apple",
    "saml": "SAML",
    "ldap": "LDAP",
    "header": "RemoteUser",
}
"""Names of kinds of sign-in methods, of which the operator may have set up several."""


def server_methods(config: Config) -> tuple[str, ...]:
    """Return the names of sign-in methods that the server's operator has enabled."""
    names = [
        *(["Dev"] if config.dev else []),
        *(_METHODS[method.kind] for method in config.sign_in),
    ]
    return tuple(dict.fromkeys(names))


def authentication_methods(realm: Realm, by_server: Iterable[str]) -> dict[str, dict[str, bool]]:
    """Return the sign-in methods and whether they're enabled: password, and those that the server's
    operator has configured."""
    methods = {"Email": {"enabled": realm.password_sign_in, "available": True}}
    return methods | {name: {"enabled": True, "available": True} for name in by_server}


REALM_DEFAULT: Final = "realm_default"
"""The word that clients send for the default."""
UNLIMITED: Final = "unlimited"
OptionalLimit = int | Literal["realm_default", "unlimited"]


def optional_limit(unit: str, unlimited: int, most: int = SAFE_INTEGER - 1) -> Reads:
    """Return a reader for a positive number of `unit`, `realm_default` (None), or `unlimited` (the
    number for it in the domain). The domain refuses numbers above `most`."""

    def read(text: str) -> int | None:
        word = text.strip('"')
        if word == REALM_DEFAULT:
            return None
        if word == UNLIMITED:
            return unlimited
        if not re.fullmatch("-?[0-9]{1,20}", word):
            raise ValueError(f"it must be a number of {unit}, realm_default, or unlimited")
        number = int(word)
        if not 0 < number < SAFE_INTEGER:
            raise ValueError(f"it must be a number of {unit} from 1 to {most}")
        return number

    number = {"type": "integer", "minimum": 1, "maximum": most}
    return Reads(read, {"oneOf": [number, {"enum": [REALM_DEFAULT, UNLIMITED]}]})


def limit_json(limit: int | None, unlimited: int) -> OptionalLimit:
    """Return a limit in the API's format, the reverse of `optional_limit`."""
    if limit is None:
        return "realm_default"
    return "unlimited" if limit == unlimited else limit
