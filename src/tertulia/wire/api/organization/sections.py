"""The organization's settings in the initial data that POST /register returns."""

from functools import partial
from typing import Any, Final

from tertulia.delivery.presence import OFFLINE_SECONDS, PING_SECONDS
from tertulia.domain import names
from tertulia.domain.accounts.signup import MAX_LENGTH
from tertulia.domain.channels.subscriptions import MAX_BULK_NEW_SUBSCRIPTION_MESSAGES
from tertulia.domain.groups import group_settings
from tertulia.domain.organization.settings import VIDEO_CALLS
from tertulia.embedded.catalog import offered
from tertulia.model.organization import Realm
from tertulia.service import calls, gifs, summaries
from tertulia.service.config import Config
from tertulia.service.files.pictures import MAX_PICTURE_MIB
from tertulia.service.files.uploads import FORMATS
from tertulia.service.gifs import GifService
from tertulia.texts import texts
from tertulia.wire.api.banners import banner_objects
from tertulia.wire.api.emoji import emoji_url
from tertulia.wire.api.organization.objects import (
    authentication_methods,
    realm_extensions,
    realm_settings,
    server_methods,
)
from tertulia.wire.api.profiles import EXTERNAL_ACCOUNTS
from tertulia.wire.api.section import SectionContext, Sections
from tertulia.wire.http.responses import Fragment, object_fields

JITSI_URL: Final = "https://meet.jit.si"
"""The server of video calls if the organization doesn't have one."""

TYPING_STARTED_WAIT_MILLISECONDS: Final = 30_000
TYPING_STOPPED_WAIT_MILLISECONDS: Final = 12_000
TYPING_EXPIRY_MILLISECONDS: Final = 45_000

GIF_RATINGS: Final = {
    "disabled": {"id": 0, "name": "GIF integration disabled"},
    "g": {"id": 2, "name": "Rated G (general audience)"},
    "pg": {"id": 3, "name": "Rated PG (parental guidance)"},
    "pg-13": {"id": 4, "name": "Rated PG-13 (parental guidance - under 13)"},
    "r": {"id": 5, "name": "Rated R (restricted)"},
}

REPORT_TYPES: Final = tuple(
    {"key": kind, "name": name}
    for kind, name in texts("en", "bot_messages").texts["report_kinds"].items()
)


def realm(context: SectionContext) -> Fragment:
    """The settings of the organization and of the server."""
    state = context.state
    config = context.node.config

    def settings() -> bytes:
        return object_fields(
            {
                **realm_settings(state),
                **_organization(context, state.realm),
                **_limits(config),
                **_server(context, config),
                "server_supported_permission_settings": {
                    "realm": group_settings.REALM_SETTINGS,
                    "stream": group_settings.CHANNEL_SETTINGS,
                    "group": group_settings.GROUP_SETTINGS,
                },
            }
        )

    stamp = (state.realms.version, state.users.activity.number)
    return context.node.fragments.get(("realm", context.url), stamp, settings)


def _organization(context: SectionContext, realm: Realm) -> dict[str, Any]:
    """Facts about the organization that aren't settings."""
    return {
        "realm_authentication_methods": authentication_methods(
            realm, server_methods(context.node.config)
        ),
        "realm_available_video_chat_providers": {
            key: {"id": number, "name": name}
            for number, (key, name) in VIDEO_CALLS.items()
            if calls.is_offered(context.node.config, number)
        },
        "realm_bot_domain": context.host,
        "realm_default_external_accounts": EXTERNAL_ACCOUNTS,
        "realm_empty_topic_display_name": names.EMPTY_TOPIC_NAME,
        "realm_owner_full_content_access": False,
        "realm_plan_type": 1,
        "realm_push_notifications_enabled": bool(context.node.config.push_bouncer_url),
        "realm_push_notifications_enabled_end_timestamp": None,
        "realm_upload_quota_mib": context.node.config.upload_quota_mib or None,
        "realm_uri": context.url,
        "realm_url": context.url,
        "upgrade_text_for_wide_organization_logo": "",
        "zulip_plan_is_not_limited": True,
    }


def _limits(config: Config) -> dict[str, Any]:
    return {
        "max_avatar_file_size_mib": MAX_PICTURE_MIB,
        "max_bulk_new_subscription_messages": MAX_BULK_NEW_SUBSCRIPTION_MESSAGES,
        "max_channel_folder_description_length": names.MAX_FOLDER_DESCRIPTION,
        "max_channel_folder_name_length": names.MAX_FOLDER_NAME,
        "max_file_upload_size_mib": config.max_file_upload_size_mib,
        "max_icon_file_size_mib": MAX_PICTURE_MIB,
        "max_logo_file_size_mib": MAX_PICTURE_MIB,
        "max_message_length": names.MAX_MESSAGE,
        "max_reminder_note_length": names.MAX_REMINDER_NOTE,
        "max_stream_description_length": names.MAX_CHANNEL_DESCRIPTION,
        "max_stream_name_length": names.MAX_CHANNEL_NAME,
        "max_topic_length": names.MAX_TOPIC,
        "password_max_length": MAX_LENGTH,
        "password_min_guesses": config.password_min_guesses,
        "password_min_length": config.password_min_length,
    }


def _server(context: SectionContext, config: Config) -> dict[str, Any]:
    return {
        "development_environment": config.dev,
        "event_queue_longpoll_timeout_seconds": config.event_queue_longpoll_timeout_seconds,
        "gif_rating_policy_options": GIF_RATINGS,
        "jitsi_server_url": context.state.realm.jitsi_server_url or JITSI_URL,
        "server_avatar_changes_disabled": False,
        "server_can_summarize_topics": summaries.is_offered(config),
        # Mobile clients don't resolve a relative URL.
        "server_emoji_data_url": context.url + emoji_url(),
        "server_generation": int(context.node.started),
        "server_inline_image_preview": True,
        "server_inline_url_embed_preview": config.external_content and config.link_previews,
        "server_jitsi_server_url": JITSI_URL,
        "server_max_deactivated_realm_deletion_days": None,
        "server_min_deactivated_realm_deletion_days": None,
        "server_name_changes_disabled": False,
        "server_needs_upgrade": False,
        "server_presence_offline_threshold_seconds": OFFLINE_SECONDS,
        "server_presence_ping_interval_seconds": PING_SECONDS,
        "server_report_message_types": REPORT_TYPES,
        "server_thumbnail_formats": FORMATS,
        "server_typing_started_expiry_period_milliseconds": TYPING_EXPIRY_MILLISECONDS,
        "server_typing_started_wait_period_milliseconds": TYPING_STARTED_WAIT_MILLISECONDS,
        "server_typing_stopped_wait_period_milliseconds": TYPING_STOPPED_WAIT_MILLISECONDS,
        "server_web_public_streams_enabled": config.web_public_streams_enabled,
        "settings_send_digest_emails": config.sends_notification_emails,
    }


def extensions(context: SectionContext) -> dict[str, Any]:
    """Tertulia's own fields, for clients that support them."""
    if not context.registration.capabilities.server_extensions or context.viewer is None:
        return {}
    return {"realm_banners": banner_objects(context.state), **realm_extensions(context.state.realm)}


def _gif_key(service: GifService, context: SectionContext) -> dict[str, Any]:
    """The key for GIF search, unless it's disabled. Spectators can't write messages."""
    enabled = context.viewer is not None and context.state.realm.gif_rating_policy
    return {f"{service.name}_api_key": service.key(context.node.config) if enabled else ""}


def embedded_bots(context: SectionContext) -> dict[str, Any]:
    """The bots that the server can run, with their configuration."""
    bots = offered(context.node.config.embedded_bots).values()
    return {"realm_embedded_bots": [{"name": bot.name, "config": bot.settings} for bot in bots]}


SECTIONS: Final[Sections] = {
    ("realm",): realm,
    ("realm_embedded_bots",): embedded_bots,
    ("server_extensions",): extensions,
    ("realm_billing",): lambda _: {"realm_billing": {"has_pending_sponsorship_request": False}},
    ("stop_words",): lambda _: {"stop_words": []},
    **{(service.name,): partial(_gif_key, service) for service in gifs.SERVICES},
    ("tenor",): lambda _: {"tenor_api_key": ""},  # Tenor has shut down its service.
}
