"""The organization on the wire."""

import re
from collections.abc import Collection, Mapping
from functools import cache
from typing import Any, Final, Literal

from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.model.groups import GroupSetting, SystemGroup
from tertulia.model.organization import Realm, RealmPicture
from tertulia.model.settings import DeclaredSetting, declared_settings
from tertulia.state.state import State
from tertulia.wire.api.groups.objects import group_setting
from tertulia.wire.http.parameters import SAFE_INTEGER, Reads

ICON_PATH: Final = "/static/icon-192.png"
"""A bitmap: not every client can draw an SVG."""
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
"""Fields of the organization that the wire calls differently (without `realm_`)."""

PICTURES: Final = ("icon", "logo", "night_logo")
"""Fields of the organization that are shown as a URL and a source."""

SIGN_IN_SETTING: Final = "password_sign_in"
"""A setting that the wire has as one of the `authentication_methods`."""


@cache
def shown_settings() -> Mapping[str, DeclaredSetting]:
    """The organization's settings that the wire has by a name of their own."""
    settings = declared_settings(Realm)
    return {name: one for name, one in settings.items() if name != SIGN_IN_SETTING}


FOLLOWING: Final[Mapping[str, Collection[str]]] = {
    "message_edit_history_visibility_policy": ("allow_edit_history",),
    "topics_policy": ("mandatory_topics",),
    "can_create_private_channel_group": ("create_private_stream_policy",),
    "can_create_public_channel_group": ("create_public_stream_policy",),
    "can_create_web_public_channel_group": ("create_web_public_stream_policy",),
    "can_mention_many_users_group": ("wildcard_mention_policy",),
    "password_sign_in": ("email_auth_enabled", "password_auth_enabled"),
}
"""Legacy settings that follow from a field (without `realm_`); see `computed`."""


def wire_name(field: str) -> str:
    """What clients call a field of the organization, without `realm_`."""
    return WIRE_NAMES.get(field, field)


def realm_settings(state: State) -> dict[str, Any]:
    """The organization's settings by their wire names, and the legacy settings computed of them."""
    realm = state.realm
    shown: dict[str, Any] = {}
    for field, declared in shown_settings().items():
        if declared.setting.extension:
            continue
        value = getattr(realm, field)
        if field in REALM_SETTINGS:
            value = group_setting(state, value)
        shown[f"realm_{wire_name(field)}"] = value
    for name in PICTURES:
        shown |= {f"realm_{key}": value for key, value in picture_fields(realm, name).items()}
    return {**shown, **computed(realm)}


def realm_extensions(realm: Realm) -> dict[str, Any]:
    """The settings that only this server has, by their wire names."""
    return {
        f"realm_{wire_name(field)}": getattr(realm, field)
        for field, declared in sorted(shown_settings().items())
        if declared.setting.extension
    }


_CREATE_POLICY: Final = {
    SystemGroup.MEMBERS: 1,
    SystemGroup.ADMINISTRATORS: 2,
    SystemGroup.FULL_MEMBERS: 3,
    SystemGroup.MODERATORS: 4,
    SystemGroup.EVERYONE: 5,
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


def _policy(setting: GroupSetting, numbers: Mapping[SystemGroup, int], otherwise: int) -> int:
    """A permission as a legacy number. There is none for a group of its own: then it is the mildest
    number, and the server decides."""
    if isinstance(setting, int) and setting in numbers:
        return numbers[SystemGroup(setting)]
    return otherwise


def computed(realm: Realm) -> dict[str, Any]:
    """Settings that are not there any more, as they follow from those that took their place."""
    return {
        "realm_allow_edit_history": realm.message_edit_history_visibility_policy == "all",
        "realm_mandatory_topics": realm.topics_policy == "disable_empty_topic",
        "realm_email_auth_enabled": realm.password_sign_in,
        "realm_password_auth_enabled": realm.password_sign_in,
        "realm_create_private_stream_policy": _policy(
            realm.can_create_private_channel_group, _CREATE_POLICY, 1
        ),
        "realm_create_public_stream_policy": _policy(
            realm.can_create_public_channel_group, _CREATE_POLICY, 1
        ),
        "realm_create_web_public_stream_policy": _policy(
            realm.can_create_web_public_channel_group, _CREATE_POLICY, 4
        ),
        "realm_wildcard_mention_policy": _policy(
            realm.can_mention_many_users_group, _WILDCARD_POLICY, 1
        ),
    }


_DEFAULT_PATHS: Final = {"icon": ICON_PATH, "logo": LOGO_PATH, "night_logo": NIGHT_LOGO_PATH}
_DEFAULT_SOURCES: Final = {"icon": "G", "logo": "D", "night_logo": "D"}


def picture_path(realm: Realm, name: str) -> str:
    """Where one of the organization's own `PICTURES` is, without its version."""
    return f"/user_avatars/{realm.id}/realm/{name}.png"


def picture_url(realm: Realm, name: str) -> str:
    """Where one of the `PICTURES` is."""
    picture: RealmPicture = getattr(realm, name)
    path = picture_path(realm, name) if picture.file else _DEFAULT_PATHS[name]
    return f"{path}?version={picture.version}"


def picture_fields(realm: Realm, name: str) -> dict[str, str]:
    """One of the `PICTURES` (without `realm_`)."""
    picture: RealmPicture = getattr(realm, name)
    return {
        f"{name}_source": "U" if picture.file else _DEFAULT_SOURCES[name],
        f"{name}_url": picture_url(realm, name),
    }


def authentication_methods(realm: Realm, *, dev: bool) -> dict[str, dict[str, bool]]:
    """How people can sign in: by password, and on development servers without one."""
    methods = {"Email": {"enabled": realm.password_sign_in, "available": True}}
    if dev:
        methods["Dev"] = {"enabled": True, "available": True}
    return methods


AS_ALL: Final = "realm_default"
"""The word for what all have."""
UNLIMITED: Final = "unlimited"
OwnLimit = int | Literal["realm_default", "unlimited"]


def own_limit(unit: str, unlimited: int, most: int = SAFE_INTEGER - 1) -> Reads:
    """Reads a positive number of `unit`; `realm_default` as None, and `unlimited` as that number,
    which stands for it in the domain. More than `most` the domain refuses."""

    def read(text: str) -> int | None:
        word = text.strip('"')
        if word == AS_ALL:
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
    return Reads(read, {"oneOf": [number, {"enum": [AS_ALL, UNLIMITED]}]})


def own_limit_shown(limit: int | None, unlimited: int) -> OwnLimit:
    """A limit as it is sent, and typed: the other way round."""
    if limit is None:
        return "realm_default"
    return "unlimited" if limit == unlimited else limit
