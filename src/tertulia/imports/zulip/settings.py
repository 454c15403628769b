"""Converting settings and permissions of Zulip's exports.

Newer exports have a group for each permission, older ones a number: a policy.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec.structs import fields

from tertulia.imports.records import Holders
from tertulia.model.channels import Channel
from tertulia.model.groups import UserGroup
from tertulia.model.organization import Realm
from tertulia.model.users import PersonalSettings

Group = Callable[[Any], Holders | None]
"""Returns the members of the group with this ID, or None if it doesn't exist."""
Row = Mapping[str, Any]

_COMMON: Final = {
    1: "members",
    2: "administrators",
    3: "fullmembers",
    4: "moderators",
    5: "everyone",
    6: "nobody",
    7: "owners",
}
_WILDCARDS: Final = {
    1: "everyone",
    2: "members",
    3: "fullmembers",
    4: "administrators",
    5: "administrators",
    6: "nobody",
    7: "moderators",
}
_BOTS: Final = {1: "members", 2: "administrators", 3: "administrators"}
_WEBHOOKS: Final = {1: "members", 2: "members", 3: "administrators"}
_POSTING: Final = {1: "everyone", 2: "administrators", 3: "fullmembers", 4: "moderators"}
_MANAGING: Final = {
    1: "moderators",
    2: "administrators",
    3: "moderators",
    4: "moderators",
}
"""Moderators could edit all groups unless only administrators could edit any."""

_POLICIES: Final[Mapping[str, tuple[tuple[str, Mapping[int, str]], ...]]] = {
    "add_custom_emoji_policy": (("can_add_custom_emoji_group", _COMMON),),
    "bot_creation_policy": (
        ("can_create_bots_group", _BOTS),
        ("can_create_write_only_bots_group", _WEBHOOKS),
    ),
    "create_private_stream_policy": (("can_create_private_channel_group", _COMMON),),
    "create_public_stream_policy": (("can_create_public_channel_group", _COMMON),),
    "create_stream_policy": (
        ("can_create_private_channel_group", _COMMON),
        ("can_create_public_channel_group", _COMMON),
    ),
    "create_web_public_stream_policy": (("can_create_web_public_channel_group", _COMMON),),
    "delete_own_message_policy": (("can_delete_own_message_group", _COMMON),),
    "edit_topic_policy": (("can_move_messages_between_topics_group", _COMMON),),
    "invite_to_realm_policy": (("can_invite_users_group", _COMMON),),
    "invite_to_stream_policy": (("can_add_subscribers_group", _COMMON),),
    "move_messages_between_streams_policy": (
        ("can_move_messages_between_channels_group", _COMMON),
    ),
    "private_message_policy": (("direct_message_permission_group", {1: "everyone", 2: "nobody"}),),
    "user_group_edit_policy": (
        ("can_create_groups", _COMMON),
        ("can_manage_all_groups", _MANAGING),
    ),
    "wildcard_mention_policy": (("can_mention_many_users_group", _WILDCARDS),),
}
_REALM_NAMES: Final = {
    "giphy_rating": "gif_rating_policy",
    "moderation_request_channel": "moderation_request_channel_id",
    "move_messages_between_streams_limit_seconds": "move_messages_between_channels_limit_seconds",
    "move_messages_within_stream_limit_seconds": "move_messages_within_channel_limit_seconds",
    "new_stream_announcements_stream": "new_channel_announcements_channel_id",
    "notifications_stream": "new_channel_announcements_channel_id",
    "signup_announcements_stream": "signup_announcements_channel_id",
    "signup_notifications_stream": "signup_announcements_channel_id",
    "zulip_update_announcements_stream": "updates_announcements_channel_id",
}
_NOT_REALM_SETTINGS: Final = frozenset(
    {
        *("id", "name", "description", "rendered_description", "string_id", "uuid"),
        *("uuid_owner_secret", "date_created", "deactivated", "deactivated_redirect"),
        *("_max_invites", "max_invites", "plan_type", "custom_upload_quota_gb"),
        *("push_notifications_enabled", "push_notifications_enabled_end_timestamp"),
        *("demo_organization_scheduled_deletion_date", "scheduled_deletion_date"),
        *("icon_source", "icon_version", "logo_source", "logo_version"),
        *("night_logo_source", "night_logo_version", "message_visibility_limit"),
        *("first_visible_message_id", "zulip_update_announcements_level"),
        # Replaced long ago, or by personal settings:
        *("authentication_methods", "email_address_visibility", "google_hangouts_domain"),
        *("default_twenty_four_hour_time", "allow_community_topic_editing"),
        *("upload_quota_gb", "has_seat_based_plan"),
    }
)
_USER_NAMES: Final = {
    "automatically_unmute_topics_in_muted_streams_policy": (
        "automatically_unmute_topics_in_muted_channels_policy"
    ),
    "default_view": "web_home_view",
    "demote_inactive_streams": "demote_inactive_channels",
    "enable_stream_audible_notifications": "enable_channel_audible_notifications",
    "enable_stream_desktop_notifications": "enable_channel_desktop_notifications",
    "enable_stream_email_notifications": "enable_channel_email_notifications",
    "enable_stream_push_notifications": "enable_channel_push_notifications",
    "escape_navigates_to_default_view": "web_escape_navigates_to_home_view",
    "pm_content_in_desktop_notifications": "direct_content_in_desktop_notifications",
    "send_private_typing_notifications": "send_direct_typing_notifications",
    "send_stream_typing_notifications": "send_channel_typing_notifications",
    "web_stream_unreads_count_display_policy": "web_channel_unreads_count_display_policy",
}
_NOT_USER_SETTINGS: Final = frozenset(
    {
        *("id", "realm", "dense_mode", "resolved_topic_notice_auto_read_policy"),
        *("default_color_scheme", "user_id", "edited_by_owner"),
    }
)
_DEFAULTS: Final = {field.name: field.default for field in fields(PersonalSettings)}
USER_SETTINGS: Final = frozenset({*_DEFAULTS, *_USER_NAMES, *_NOT_USER_SETTINGS})
"""The names of personal settings in exports."""
_CHANNEL_PERMISSIONS: Final = tuple(
    name for name in Channel.__struct_fields__ if name.startswith("can_")
)
_GROUP_PERMISSIONS: Final = tuple(
    name for name in UserGroup.__struct_fields__ if name.startswith("can_")
)
_REALM_PERMISSIONS: Final = frozenset(
    field.name for field in fields(Realm) if field.name.endswith(("_group", "_groups"))
)
_EDIT_HISTORY: Final = {1: "all", 2: "moves", 3: "none"}
_TOPICS: Final = {2: "allow_empty_topic", 3: "disable_empty_topic"}


def role_group(name: str) -> Holders:
    """Return the system group with that name, such as `members`."""
    return Holders(groups=(f"role:{name}",))


def realm_settings(row: Row, group: Group) -> dict[str, Any]:
    """Return the organization's settings by their names in `Realm`. Unknown settings keep their
    names."""
    realm_settings: dict[str, Any] = {}
    for name, value in row.items():
        if name in _NOT_REALM_SETTINGS:
            continue
        if name in _POLICIES:
            for permission, policies in _POLICIES[name]:
                if _is_number(value) and value in policies:
                    realm_settings.setdefault(permission, role_group(policies[value]))
        elif name in _REALM_PERMISSIONS:
            holders = group(value)
            if holders is not None:
                realm_settings[name] = holders
        elif name in _REALM_NAMES:
            renamed = _REALM_NAMES[name]
            is_channel = renamed.endswith("_channel_id")
            realm_settings[renamed] = -1 if is_channel and value is None else value
        elif name == "allow_edit_history":
            realm_settings["message_edit_history_visibility_policy"] = "all" if value else "none"
        elif name == "message_edit_history_visibility_policy":
            realm_settings[name] = _EDIT_HISTORY.get(value, value) if _is_number(value) else value
        elif name == "mandatory_topics":
            if value is True:
                realm_settings["topics_policy"] = "disable_empty_topic"
        elif name == "topics_policy":
            realm_settings[name] = _TOPICS.get(value, value) if _is_number(value) else value
        elif name == "message_retention_days":
            realm_settings[name] = -1 if value is None else value
        else:
            realm_settings[name] = value
    return realm_settings


def user_settings(row: Row) -> dict[str, Any]:
    """Return the personal settings that differ from the defaults, by their names in
    `PersonalSettings`."""
    user_settings = {}
    for name, value in row.items():
        renamed = _USER_NAMES.get(name, name)
        if renamed in _DEFAULTS and renamed not in _NOT_USER_SETTINGS:
            if renamed == "web_home_view" and value == "recent_topics":
                value = "recent"
            if value != _DEFAULTS[renamed]:
                user_settings[renamed] = value
    return user_settings


def channel_permissions(row: Row, group: Group) -> dict[str, Holders]:
    """Return the holders of permissions in a channel, by the fields of `Channel`."""
    result = _permissions(row, _CHANNEL_PERMISSIONS, group)
    policy = row.get("stream_post_policy")
    if "can_send_message_group" not in result and _is_number(policy) and policy in _POSTING:
        result["can_send_message_group"] = role_group(_POSTING[policy])
    return result


def group_permissions(row: Row, group: Group) -> dict[str, Holders]:
    """Return the holders of permissions in a group, by the fields of `UserGroup`."""
    return _permissions(row, _GROUP_PERMISSIONS, group)


def _permissions(row: Row, names: tuple[str, ...], group: Group) -> dict[str, Holders]:
    given = {name: group(row[name]) for name in names if name in row}
    return {name: holders for name, holders in given.items() if holders is not None}


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
