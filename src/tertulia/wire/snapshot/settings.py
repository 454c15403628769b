"""The viewer's own settings, and the organization's defaults of them."""

from typing import Any, Final

from tertulia.model.users import PersonalSettings
from tertulia.wire.objects.settings import settings_object
from tertulia.wire.snapshot.scene import Scene, Section, Sections

_DEFAULTS: Final = PersonalSettings(user_id=0)


def user_settings(scene: Scene) -> dict[str, Any]:
    """The viewer's settings; a spectator has the defaults."""
    viewer = scene.viewer
    own = None if viewer is None else scene.state.settings.get(viewer.id)
    return {
        "user_settings": {
            **settings_object(own or scene.state.default_settings),
            "timezone": "" if viewer is None else viewer.timezone,
        }
    }


_DISPLAY: Final = (
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
_NOTIFICATIONS: Final = (
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


def _at_top_level(names: tuple[str, ...]) -> Section:
    """Some of the viewer's settings where they were before there was an object of them."""

    def section(scene: Scene) -> dict[str, Any]:
        own = user_settings(scene)["user_settings"]
        return {name: own[name] for name in names}

    return section


LEGACY: Final[Sections] = {
    ("update_display_settings",): _at_top_level(_DISPLAY),
    ("update_global_notifications",): _at_top_level(_NOTIFICATIONS),
}
"""Fetch types that the interface dropped (level 439), and zulip-terminal 0.7 cannot start without.
They are answered only where they are named."""


def defaults(scene: Scene) -> dict[str, Any]:
    """The settings that new accounts begin with."""
    return {"realm_user_settings_defaults": settings_object(scene.state.default_settings)}


def onboarding(scene: Scene) -> dict[str, Any]:
    """The hints for beginners that the viewer has not seen. There is no tour to watch."""
    left = [] if scene.viewer is None else steps.left(scene.state, scene.viewer.id)
    return {"onboarding_steps": onboarding_objects(left), "navigation_tour_video_url": None}


SECTIONS: Final[Sections] = {
    ("user_settings",): user_settings,
    ("realm_user_settings_defaults",): defaults,
    ("onboarding_steps",): onboarding,
    ("alert_words",): lambda _: {"alert_words": []},
    ("navigation_views",): lambda _: {"navigation_views": []},
    ("device",): lambda _: {"devices": {}},
}
