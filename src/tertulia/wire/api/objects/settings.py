"""Personal settings on the wire."""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta

from tertulia.domain.accounts.personal_settings import NOTIFICATION_SOUNDS, RULES
from tertulia.model.settings import declared_settings
from tertulia.model.users import PersonalSettings
from tertulia.wire.http.parameters import Params, with_optional

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


@with_optional(
    {
        wire_name(field): Annotated[one.type, Meta(description=one.description or None)]
        for field, one in sorted(declared_settings(PersonalSettings).items())
    }
)
class SettingParams(Params, kw_only=True, frozen=True):
    """Personal settings as parameters: those that are not sent stay as they are."""


def settings_sent(params: SettingParams) -> dict[str, Any]:
    """The settings that were sent, by their own names."""
    sent = ((field, getattr(params, name)) for name, field in field_names().items())
    return {field: value for field, value in sent if value is not UNSET}
