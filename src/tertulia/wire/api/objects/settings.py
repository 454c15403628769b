"""Personal settings on the wire."""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain.accounts.personal_settings import NOTIFICATION_SOUNDS, RULES
from tertulia.model.users import (
    AddressVisibility,
    AnimatePreviews,
    BatchingSeconds,
    Choice3,
    Choice4,
    EmojiSet,
    FontSize,
    HomeView,
    LineHeight,
    PersonalSettings,
)
from tertulia.wire.http.parameters import Params

WIRE_NAMES: Final[Mapping[str, str]] = {
    "automatically_unmute_topics_in_muted_channels_policy": (
        "automatically_unmute_topics_in_muted_streams_policy"
    ),
    "demote_inactive_channels": "demote_inactive_streams",
    "direct_content_in_desktop_notifications": "pm_content_in_desktop_notifications",
    "enable_channel_audible_notifications": "enable_stream_audible_notifications",
    "enable_channel_desktop_notifications": "enable_stream_desktop_notifications",
    "enable_channel_email_notifications": "enable_stream_email_notifications",
    "enable_channel_push_notifications": "enable_stream_push_notifications",
    "send_channel_typing_notifications": "send_stream_typing_notifications",
    "send_direct_typing_notifications": "send_private_typing_notifications",
    "web_channel_unreads_count_display_policy": "web_stream_unreads_count_display_policy",
}
"""Settings that the wire calls differently."""

EMOJI_SETS: Final[Mapping[str, str]] = {
    "google": "Google",
    "twitter": "Twitter",
    "text": "Plain text",
    "google-blob": "Google blobs",
}
"""How emoji can look, and what people call it."""


FIXED: Final[Mapping[str, str]] = {"resolved_topic_notice_auto_read_policy": "never"}
"""What is a setting elsewhere, and is as it is here: the notice that a topic was resolved is unread
like any other message."""

LEGACY_DISPLAY: Final = (
    "color_scheme",
    "default_language",
    "demote_inactive_streams",
    "display_emoji_reaction_users",
    "emojiset",
    "emojiset_choices",
    "enable_drafts_synchronization",
    "enter_sends",
    "fluid_layout_width",
    "high_contrast_mode",
    "left_side_userlist",
    "starred_message_counts",
    "timezone",
    "translate_emoticons",
    "twenty_four_hour_time",
    "web_home_view",
)
LEGACY_NOTIFICATIONS: Final = (
    "available_notification_sounds",
    "desktop_icon_count_display",
    "email_notifications_batching_period_seconds",
    "enable_desktop_notifications",
    "enable_digest_emails",
    "enable_login_emails",
    "enable_marketing_emails",
    "enable_offline_email_notifications",
    "enable_offline_push_notifications",
    "enable_online_push_notifications",
    "enable_sounds",
    "enable_stream_audible_notifications",
    "enable_stream_desktop_notifications",
    "enable_stream_email_notifications",
    "enable_stream_push_notifications",
    "message_content_in_email_notifications",
    "notification_sound",
    "pm_content_in_desktop_notifications",
    "presence_enabled",
    "realm_name_in_email_notifications_policy",
    "receives_typing_notifications",
    "wildcard_mentions_notify",
)
"""The settings that the legacy events and fields have: of display, and of notifications."""


def wire_name(field: str) -> str:
    """What clients call a setting."""
    return WIRE_NAMES.get(field, field)


@cache
def field_names() -> Mapping[str, str]:
    """The setting by the name that clients call it."""
    return {wire_name(field): field for field in RULES}


def settings_object(settings: PersonalSettings) -> dict[str, Any]:
    """All settings by their wire names, with the choices that there are for two of them, and those
    that nobody can change."""
    shown: dict[str, Any] = {}
    for name, field in field_names().items():
        value = getattr(settings, field)
        shown[name] = value.value if isinstance(value, Enum) else value
    shown |= FIXED
    shown["emojiset_choices"] = [{"key": key, "text": text} for key, text in EMOJI_SETS.items()]
    shown["available_notification_sounds"] = list(NOTIFICATION_SOUNDS)
    return shown


class SettingParams(Params, kw_only=True, frozen=True):
    """Personal settings as parameters: those that are not sent stay as they are."""

    allow_private_data_export: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether an export of the organization can include the person's"
            " private data."
        ),
    ] = UNSET
    automatically_follow_topics_policy: Annotated[
        Choice4 | UnsetType,
        Meta(
            description="1: topics you participate in; 2: topics you send a message to; 3:"
            " topics you start; 4: never."
        ),
    ] = UNSET
    automatically_follow_topics_where_mentioned: bool | UnsetType = UNSET
    automatically_unmute_topics_in_muted_streams_policy: Annotated[
        Choice4 | UnsetType,
        Meta(
            description="1: topics you participate in; 2: topics you send a message to; 3:"
            " topics you start; 4: never."
        ),
    ] = UNSET
    color_scheme: Annotated[
        Choice3 | UnsetType, Meta(description="1: match the system; 2: dark; 3: light.")
    ] = UNSET
    default_language: Annotated[
        str | UnsetType, Meta(description="Language code, such as `de`.")
    ] = UNSET
    demote_inactive_streams: Annotated[
        Choice3 | UnsetType, Meta(description="1: automatic; 2: always; 3: never.")
    ] = UNSET
    desktop_icon_count_display: Annotated[
        Choice4 | UnsetType,
        Meta(
            description="1: all unread messages; 2: direct messages, mentions, and followed"
            " topics; 3: direct messages and mentions; 4: nothing."
        ),
    ] = UNSET
    display_emoji_reaction_users: bool | UnsetType = UNSET
    email_address_visibility: Annotated[
        AddressVisibility | UnsetType,
        Meta(description="1: everyone; 2: members; 3: administrators; 4: no one; 5: moderators."),
    ] = UNSET
    email_notifications_batching_period_seconds: BatchingSeconds | UnsetType = UNSET
    emojiset: EmojiSet | UnsetType = UNSET
    enable_desktop_notifications: bool | UnsetType = UNSET
    enable_digest_emails: bool | UnsetType = UNSET
    enable_drafts_synchronization: Annotated[
        bool | UnsetType,
        Meta(description="Turning this off deletes the drafts stored on the server."),
    ] = UNSET
    enable_followed_topic_audible_notifications: bool | UnsetType = UNSET
    enable_followed_topic_desktop_notifications: bool | UnsetType = UNSET
    enable_followed_topic_email_notifications: bool | UnsetType = UNSET
    enable_followed_topic_push_notifications: bool | UnsetType = UNSET
    enable_followed_topic_wildcard_mentions_notify: bool | UnsetType = UNSET
    enable_login_emails: bool | UnsetType = UNSET
    enable_marketing_emails: bool | UnsetType = UNSET
    enable_offline_email_notifications: bool | UnsetType = UNSET
    enable_offline_push_notifications: bool | UnsetType = UNSET
    enable_online_push_notifications: bool | UnsetType = UNSET
    enable_sounds: bool | UnsetType = UNSET
    enable_stream_audible_notifications: bool | UnsetType = UNSET
    enable_stream_desktop_notifications: bool | UnsetType = UNSET
    enable_stream_email_notifications: bool | UnsetType = UNSET
    enable_stream_push_notifications: bool | UnsetType = UNSET
    enter_sends: bool | UnsetType = UNSET
    fluid_layout_width: bool | UnsetType = UNSET
    hide_ai_features: bool | UnsetType = UNSET
    high_contrast_mode: bool | UnsetType = UNSET
    left_side_userlist: bool | UnsetType = UNSET
    message_content_in_email_notifications: bool | UnsetType = UNSET
    notification_sound: Annotated[
        str | UnsetType, Meta(description="One of available_notification_sounds, or `none`.")
    ] = UNSET
    pm_content_in_desktop_notifications: bool | UnsetType = UNSET
    presence_enabled: Annotated[
        bool | UnsetType, Meta(description="False makes the person invisible.")
    ] = UNSET
    realm_name_in_email_notifications_policy: Annotated[
        Choice3 | UnsetType, Meta(description="1: automatic; 2: always; 3: never.")
    ] = UNSET
    receives_typing_notifications: bool | UnsetType = UNSET
    send_private_typing_notifications: bool | UnsetType = UNSET
    send_read_receipts: bool | UnsetType = UNSET
    send_stream_typing_notifications: bool | UnsetType = UNSET
    starred_message_counts: bool | UnsetType = UNSET
    translate_emoticons: bool | UnsetType = UNSET
    twenty_four_hour_time: Annotated[
        bool | UnsetType | None, Meta(description="Null: the default of the person's locale.")
    ] = UNSET
    user_list_style: Annotated[
        Choice3 | UnsetType,
        Meta(description="1: compact; 2: with status; 3: with status and avatar."),
    ] = UNSET
    web_animate_image_previews: AnimatePreviews | UnsetType = UNSET
    web_channel_default_view: Annotated[
        Choice4 | UnsetType,
        Meta(description="1: top topic; 2: channel feed; 3: list of topics; 4: top unread topic."),
    ] = UNSET
    web_escape_navigates_to_home_view: bool | UnsetType = UNSET
    web_font_size_px: FontSize | UnsetType = UNSET
    web_home_view: HomeView | UnsetType = UNSET
    web_inbox_show_channel_folders: bool | UnsetType = UNSET
    web_left_sidebar_show_channel_folders: bool | UnsetType = UNSET
    web_left_sidebar_unreads_count_summary: bool | UnsetType = UNSET
    web_line_height_percent: LineHeight | UnsetType = UNSET
    web_mark_read_on_scroll_policy: Annotated[
        Choice3 | UnsetType, Meta(description="1: always; 2: only in conversation views; 3: never.")
    ] = UNSET
    web_navigate_to_sent_message: bool | UnsetType = UNSET
    web_stream_unreads_count_display_policy: Annotated[
        Choice3 | UnsetType,
        Meta(description="1: all channels; 2: unmuted channels and topics; 3: no channels."),
    ] = UNSET
    web_suggest_update_timezone: bool | UnsetType = UNSET
    wildcard_mentions_notify: bool | UnsetType = UNSET


def settings_sent(params: SettingParams) -> dict[str, Any]:
    """The settings that were sent, by their own names."""
    sent = ((field, getattr(params, name)) for name, field in field_names().items())
    return {field: value for field, value in sent if value is not UNSET}
