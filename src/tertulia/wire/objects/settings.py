"""Personal settings on the wire."""

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from tertulia.model.users import PersonalSettings

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

NOTIFICATION_SOUNDS: Final = ("ding", "zulip")
"""The sounds that there are by name. Clients bring the sounds themselves."""


def wire_name(field: str) -> str:
    """What clients call a setting."""
    return WIRE_NAMES.get(field, field)


@cache
def field_names() -> Mapping[str, str]:
    """The setting by the name that clients call it."""
    return {
        wire_name(field): field
        for field in PersonalSettings.__struct_fields__
        if field != "user_id"
    }


def settings_object(settings: PersonalSettings) -> dict[str, Any]:
    """All settings by their wire names, with the choices that there are for two of them."""
    shown: dict[str, Any] = {}
    for name, field in field_names().items():
        value = getattr(settings, field)
        shown[name] = value.value if isinstance(value, Enum) else value
    shown["emojiset_choices"] = [{"key": key, "text": text} for key, text in EMOJI_SETS.items()]
    shown["available_notification_sounds"] = list(NOTIFICATION_SOUNDS)
    return shown
