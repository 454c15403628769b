"""Types of the parts of a register response that real clients read. A value of another type breaks
them."""

from typing import Any, NotRequired, TypedDict

Setting = int | dict[str, list[int]]


class Channel(TypedDict):
    stream_id: int
    name: str
    description: str
    rendered_description: str
    date_created: int
    invite_only: bool
    is_web_public: bool
    is_archived: bool
    history_public_to_subscribers: bool
    stream_post_policy: int
    topics_policy: str
    is_recently_active: bool
    first_message_id: int | None
    folder_id: int | None
    message_retention_days: int | None
    stream_weekly_traffic: int | None
    creator_id: int | None
    subscriber_count: int
    can_add_subscribers_group: Setting
    can_administer_channel_group: Setting
    can_create_topic_group: Setting
    can_delete_any_message_group: Setting
    can_delete_own_message_group: Setting
    can_move_messages_out_of_channel_group: Setting
    can_move_messages_within_channel_group: Setting
    can_remove_subscribers_group: Setting
    can_resolve_topics_group: Setting
    can_send_message_group: Setting
    can_subscribe_group: Setting


class AnySubscription(Channel):
    color: str
    is_muted: bool
    in_home_view: bool
    pin_to_top: bool
    audible_notifications: bool | None
    push_notifications: bool | None
    email_notifications: bool | None
    wildcard_mentions_notify: bool | None


class Subscription(AnySubscription):
    desktop_notifications: bool | None
    subscribers: NotRequired[list[int]]


class PlainSubscription(AnySubscription):
    """For clients that accept no nulls and want subscribers."""

    subscribers: list[int]
    desktop_notifications: bool


class User(TypedDict):
    user_id: int
    email: str
    full_name: str
    date_joined: str
    is_bot: bool
    is_owner: bool
    is_admin: bool
    is_guest: bool
    role: int
    timezone: str
    avatar_version: int
    avatar_url: str | None
    delivery_email: str | None
    bot_type: int | None
    bot_owner_id: int | None
    is_imported_stub: bool
    profile_data: NotRequired[dict[int, Any]]


class Group(TypedDict):
    id: int
    name: str
    description: str
    members: list[int]
    direct_subgroup_ids: list[int]
    is_system_group: bool
    deactivated: bool
    date_created: int | None
    creator_id: int | None
    can_add_members_group: Setting
    can_join_group: Setting
    can_leave_group: Setting
    can_manage_group: Setting
    can_mention_group: Setting
    can_remove_members_group: Setting


class Presence(TypedDict):
    active_timestamp: int
    idle_timestamp: int


class ClientPresence(TypedDict):
    client: str
    status: str
    timestamp: int


class LegacyPresence(TypedDict):
    aggregated: ClientPresence
    website: ClientPresence


class UnreadDirect(TypedDict):
    other_user_id: int
    sender_id: int
    unread_message_ids: list[int]


class UnreadTopic(TypedDict):
    stream_id: int
    topic: str
    unread_message_ids: list[int]


class UnreadGroup(TypedDict):
    user_ids_string: str
    unread_message_ids: list[int]


class Unread(TypedDict):
    count: int
    pms: list[UnreadDirect]
    streams: list[UnreadTopic]
    huddles: list[UnreadGroup]
    mentions: list[int]
    old_unreads_missing: bool


class Recent(TypedDict):
    max_message_id: int
    user_ids: list[int]


class ExternalAccount(TypedDict):
    name: str
    text: str
    hint: str
    url_pattern: str


class ReportType(TypedDict):
    key: str
    name: str


class MobileSettings(TypedDict):
    twenty_four_hour_time: bool | None
    starred_message_counts: bool
    display_emoji_reaction_users: bool
    emojiset: str
    presence_enabled: bool
    web_inbox_show_channel_folders: bool


class TerminalSettings(TypedDict):
    send_private_typing_notifications: bool
    twenty_four_hour_time: bool
    pm_content_in_desktop_notifications: bool


MOBILE_REQUEST = {
    "idle_queue_timeout": '"mobile"',
    "apply_markdown": True,
    "client_gravatar": False,
    "slim_presence": True,
    "client_capabilities": {
        "notification_settings_null": True,
        "bulk_message_deletion": True,
        "user_avatar_url_field_optional": True,
        "stream_typing_notifications": True,
        "user_settings_object": True,
        "include_deactivated_groups": True,
        "empty_topic_name": True,
        "individual_emoji_changes": True,
    },
}
MOBILE: dict[str, Any] = {
    "queue_id": str,
    "last_event_id": int,
    "zulip_feature_level": int,
    "zulip_version": str,
    "zulip_merge_base": str,
    "alert_words": list[str],
    "custom_profile_fields": list[Any],
    "max_stream_name_length": int,
    "max_topic_length": int,
    "max_file_upload_size_mib": int,
    "server_presence_ping_interval_seconds": int,
    "server_presence_offline_threshold_seconds": int,
    "server_typing_started_expiry_period_milliseconds": int,
    "server_typing_started_wait_period_milliseconds": int,
    "server_typing_stopped_wait_period_milliseconds": int,
    "muted_users": list[Any],
    "presences": dict[int, Presence],
    "realm_emoji": dict[int, Any],
    "realm_user_groups": list[Group],
    "recent_private_conversations": list[Recent],
    "subscriptions": list[Subscription],
    "streams": list[Channel],
    "unread_msgs": Unread,
    "starred_messages": list[int],
    "user_status": dict[int, Any],
    "user_settings": MobileSettings,
    "user_topics": list[Any],
    "realm_wildcard_mention_policy": int,
    "realm_name": str,
    "realm_waiting_period_threshold": int,
    "realm_allow_message_editing": bool,
    "realm_enable_read_receipts": bool,
    "realm_presence_disabled": bool,
    "realm_icon_url": str,
    "realm_default_external_accounts": dict[str, ExternalAccount],
    "server_emoji_data_url": str,
    "event_queue_longpoll_timeout_seconds": int,
    "realm_users": list[User],
    "realm_non_active_users": list[User],
    "cross_realm_bots": list[User],
    "saved_snippets": list[Any],
    "channel_folders": list[Any],
    "devices": dict[int, Any],
    "realm_can_delete_any_message_group": Setting,
    "realm_can_delete_own_message_group": Setting,
    "realm_topics_policy": str,
    "realm_mandatory_topics": bool,
    "realm_message_content_delete_limit_seconds": int | None,
    "realm_message_content_edit_limit_seconds": int | None,
    "realm_moderation_request_channel_id": int,
    "realm_empty_topic_display_name": str,
    "server_thumbnail_formats": list[Any],
    "server_report_message_types": list[ReportType],
}

TERMINAL_REQUEST = {
    "event_types": [
        *("message", "update_message", "reaction", "submessage", "subscription", "typing"),
        *("update_message_flags", "user_settings", "realm_emoji", "realm_user"),
    ],
    "fetch_event_types": [
        *("realm", "presence", "subscription", "message", "starred_messages"),
        *("update_message_flags", "muted_topics", "realm_user", "realm_user_groups"),
        *("user_settings", "realm_emoji", "custom_profile_fields", "zulip_version"),
    ],
    "client_gravatar": True,
    "apply_markdown": True,
    "include_subscribers": True,
}
TERMINAL: dict[str, Any] = {
    "queue_id": str,
    "last_event_id": int,
    "max_message_id": int,
    "zulip_version": str,
    "zulip_feature_level": int,
    "subscriptions": list[PlainSubscription],
    "unsubscribed": list[PlainSubscription],
    "never_subscribed": list[Channel],
    "muted_topics": list[list[Any]],
    "realm_user_groups": list[Group],
    "realm_emoji": dict[str, Any],
    "user_settings": TerminalSettings,
    "realm_message_retention_days": int,
    "realm_name": str,
    "user_id": int,
    "email": str,
    "full_name": str,
    "realm_users": list[User],
    "cross_realm_bots": list[User],
    "presences": dict[str, LegacyPresence],
    "custom_profile_fields": list[Any],
    "unread_msgs": Unread,
    "starred_messages": list[int],
    "max_stream_name_length": int,
    "max_topic_length": int,
    "max_message_length": int,
}
