"""The organization's settings, and what the server can do and allows."""

from collections.abc import Mapping
from typing import Any, Final

from tertulia.delivery.presence import OFFLINE_SECONDS, PING_SECONDS
from tertulia.domain import names
from tertulia.domain.accounts.signup import MAX_LENGTH
from tertulia.domain.channels.subscriptions import MAX_BULK_NEW_SUBSCRIPTION_MESSAGES
from tertulia.domain.groups import group_settings
from tertulia.domain.groups.group_settings import PermissionSetting
from tertulia.domain.messages.reporting import KINDS
from tertulia.domain.organization.settings import BIG_BLUE_BUTTON, VIDEO_CALLS
from tertulia.model.organization import Realm
from tertulia.service import video_calls
from tertulia.service.config import Config
from tertulia.service.files.pictures import MAX_PICTURE_MIB
from tertulia.service.files.uploads import FORMATS
from tertulia.wire.api.emoji import emoji_url
from tertulia.wire.api.organization.objects import authentication_methods, realm_settings
from tertulia.wire.api.profiles import EXTERNAL_ACCOUNTS
from tertulia.wire.api.snapshot.context import Sections, SnapshotContext
from tertulia.wire.http.fragments import Fragment, object_fields

JITSI_URL: Final = "https://meet.jit.si"
"""Where video calls are held unless the organization names another place."""

TYPING_STARTED_WAIT_MILLISECONDS: Final = 30_000
TYPING_STOPPED_WAIT_MILLISECONDS: Final = 12_000
TYPING_EXPIRY_MILLISECONDS: Final = 45_000

GIF_RATINGS: Final = {
    "disabled": {"id": 0, "name": "No animated pictures"},
    "g": {"id": 2, "name": "Rated G, for everybody"},
    "pg": {"id": 3, "name": "Rated PG, with parental guidance"},
    "pg13": {"id": 4, "name": "Rated PG-13, from thirteen years"},
    "r": {"id": 5, "name": "Rated R, restricted"},
}

REPORT_TYPES: Final = tuple({"key": kind, "name": name} for kind, name in KINDS.items())


def realm(context: SnapshotContext) -> Fragment:
    """All settings of the organization and of the server."""
    state = context.state
    config = context.node.config

    def settings() -> bytes:
        return object_fields(
            {
                **realm_settings(state),
                **_organization(context, state.realm),
                **_limits(config),
                **_server(context, config),
                "server_supported_permission_settings": permission_settings(),
            }
        )

    stamp = (state.realms.version, state.users.activity.number)
    return context.node.fragments.get(("realm", context.url), stamp, settings)


def _organization(context: SnapshotContext, found: Realm) -> dict[str, Any]:
    """What is the organization's and no setting of it."""
    return {
        "realm_authentication_methods": authentication_methods(found, dev=context.node.config.dev),
        "realm_available_video_chat_providers": {
            key: {"id": number, "name": name}
            for number, (key, name) in VIDEO_CALLS.items()
            if number != BIG_BLUE_BUTTON or video_calls.is_offered(context.node.config)
        },
        "realm_bot_domain": context.host,
        "realm_default_external_accounts": EXTERNAL_ACCOUNTS,
        "realm_empty_topic_display_name": names.EMPTY_TOPIC_NAME,
        "realm_owner_full_content_access": False,
        "realm_plan_type": 1,
        "realm_push_notifications_enabled": False,
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


def _server(context: SnapshotContext, config: Config) -> dict[str, Any]:
    return {
        "development_environment": config.dev,
        "event_queue_longpoll_timeout_seconds": config.event_queue_longpoll_timeout_seconds,
        "gif_rating_policy_options": GIF_RATINGS,
        "jitsi_server_url": context.state.realm.jitsi_server_url or JITSI_URL,
        "server_avatar_changes_disabled": False,
        "server_can_summarize_topics": False,
        # Mobile clients take this address as it is, so it is a whole one.
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
        "settings_send_digest_emails": config.tells_by_mail,
    }


def permission_settings() -> Mapping[str, Mapping[str, PermissionSetting]]:
    """What each permission setting takes: of the organization, of channels, of groups."""
    return {
        "realm": group_settings.REALM_SETTINGS,
        "stream": group_settings.CHANNEL_SETTINGS,
        "group": group_settings.GROUP_SETTINGS,
    }


SECTIONS: Final[Sections] = {("realm",): realm}
