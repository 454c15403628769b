"""The organization: its settings, those that new accounts begin with, and its end."""

import re
from typing import Annotated, Any, Final

from msgspec import UNSET, Meta, UnsetType

from tertulia.domain import permissions
from tertulia.domain.accounts import signup
from tertulia.domain.groups.group_settings import REALM_SETTINGS
from tertulia.domain.organization import realms, settings
from tertulia.domain.organization.settings import BIG_BLUE_BUTTON, FOR_EVER, Edit
from tertulia.model.errors import Refused
from tertulia.model.realm import (
    AvatarSource,
    Days,
    GifRating,
    HistoryVisibility,
    OrganizationType,
    PreviewSize,
    TopicsPolicyOfRealm,
    Weekday,
)
from tertulia.service.caller import Caller
from tertulia.service.video_calls import is_offered
from tertulia.wire.api.objects.groups import GivenChange, given_change
from tertulia.wire.api.objects.realm import (
    QUOTAS,
    authentication_methods,
    shown_fields,
    wire_name,
)
from tertulia.wire.api.objects.settings import SettingParams, settings_sent
from tertulia.wire.http import sign_in
from tertulia.wire.http.call import Call
from tertulia.wire.http.parameters import SAFE_INTEGER, Int, Params, Reads
from tertulia.wire.http.routing import Answer

UNLIMITED: Final = -1
"""How a limit that is none is read, before it is given its place."""


def _read_limit(text: str) -> int:
    if text.strip('"') == "unlimited":
        return UNLIMITED
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise ValueError("it must be a number or unlimited")
    limit = int(text)
    if not 0 < limit < SAFE_INTEGER:
        raise ValueError("it must be positive")
    return limit


LIMIT = Reads(_read_limit, {"oneOf": [{"type": "integer"}, {"const": "unlimited"}]})


def _read_quoted(text: str) -> str:
    return text[1:-1] if len(text) >= 2 and text[0] == text[-1] == '"' else text


QUOTED = Reads(_read_quoted, {"type": "string"})
"""A string that clients send as JSON, with its quotes."""

Limit = Annotated[int | UnsetType, LIMIT]


def _quota(what: str) -> Meta:
    return Meta(
        description=f"Maximum number of {what}, or `unlimited`. Existing ones are kept if you lower"
        " it. An extension of this server."
    )


class UpdateRealm(Params, kw_only=True, frozen=True):
    """New values for settings of the organization; what is not sent stays."""

    name: str | UnsetType = UNSET
    description: Annotated[str | UnsetType, Meta(description="Markdown.")] = UNSET
    string_id: Annotated[
        str | UnsetType,
        Meta(description="Not supported: the organization doesn't have a subdomain."),
    ] = UNSET
    allow_message_editing: bool | UnsetType = UNSET
    authentication_methods: Annotated[
        dict[str, bool] | UnsetType,
        Meta(
            description="Methods from realm_authentication_methods; at least one must stay"
            " enabled. Owners only."
        ),
    ] = UNSET
    avatar_changes_disabled: bool | UnsetType = UNSET
    default_avatar_source: AvatarSource | UnsetType = UNSET
    default_code_block_language: Annotated[
        str | UnsetType, Meta(description="A language, as named by Pygments. Empty: none.")
    ] = UNSET
    default_language: str | UnsetType = UNSET
    digest_emails_enabled: bool | UnsetType = UNSET
    digest_weekday: Annotated[Weekday | UnsetType, Meta(description="0 is Monday.")] = UNSET
    disallow_disposable_email_addresses: Annotated[
        bool | UnsetType, Meta(description="Owners only.")
    ] = UNSET
    email_changes_disabled: bool | UnsetType = UNSET
    emails_restricted_to_domains: Annotated[bool | UnsetType, Meta(description="Owners only.")] = (
        UNSET
    )
    enable_guest_user_dm_warning: bool | UnsetType = UNSET
    enable_guest_user_indicator: bool | UnsetType = UNSET
    enable_read_receipts: bool | UnsetType = UNSET
    enable_spectator_access: bool | UnsetType = UNSET
    gif_rating_policy: GifRating | UnsetType = UNSET
    inline_image_preview: bool | UnsetType = UNSET
    inline_url_embed_preview: bool | UnsetType = UNSET
    invite_required: Annotated[bool | UnsetType, Meta(description="Owners only.")] = UNSET
    jitsi_server_url: Annotated[
        str | UnsetType,
        QUOTED,
        Meta(
            description="Jitsi Meet server for video calls, or `default` for the server's default."
        ),
    ] = UNSET
    max_bots_per_user: Annotated[
        int | UnsetType,
        LIMIT,
        _quota("bots of one person, including deactivated ones, except for administrators"),
    ] = UNSET
    max_channels_per_user: Annotated[
        int | UnsetType,
        LIMIT,
        _quota("channels that one person can create, except for administrators"),
    ] = UNSET
    max_drafts_per_user: Annotated[
        int | UnsetType, LIMIT, _quota("drafts of one person on the server")
    ] = UNSET
    max_groups_per_user: Annotated[
        int | UnsetType,
        LIMIT,
        _quota("user groups that one person can create, except for administrators"),
    ] = UNSET
    max_unfinished_uploads_per_user: Annotated[
        int | UnsetType, LIMIT, _quota("unfinished resumable uploads of one person")
    ] = UNSET
    media_preview_size: PreviewSize | UnsetType = UNSET
    message_content_allowed_in_email_notifications: bool | UnsetType = UNSET
    message_content_delete_limit_seconds: Limit = UNSET
    message_content_edit_limit_seconds: Limit = UNSET
    message_edit_history_visibility_policy: HistoryVisibility | UnsetType = UNSET
    message_retention_days: Annotated[
        int | UnsetType, LIMIT, Meta(description="Days, or `unlimited`. Owners only.")
    ] = UNSET
    moderation_request_channel_id: Annotated[
        Int | UnsetType, Meta(description="Channel ID, or -1 for none.")
    ] = UNSET
    move_messages_between_streams_limit_seconds: Limit = UNSET
    move_messages_within_stream_limit_seconds: Limit = UNSET
    name_changes_disabled: bool | UnsetType = UNSET
    new_stream_announcements_stream_id: Annotated[
        Int | UnsetType, Meta(description="Channel ID, or -1 for none.")
    ] = UNSET
    org_type: OrganizationType | UnsetType = UNSET
    require_e2ee_push_notifications: bool | UnsetType = UNSET
    require_unique_names: bool | UnsetType = UNSET
    send_channel_events_messages: bool | UnsetType = UNSET
    send_welcome_emails: bool | UnsetType = UNSET
    signup_announcements_stream_id: Annotated[
        Int | UnsetType, Meta(description="Channel ID, or -1 for none.")
    ] = UNSET
    topics_policy: TopicsPolicyOfRealm | UnsetType = UNSET
    upload_quota_per_user_mib: Annotated[
        int | UnsetType,
        LIMIT,
        Meta(
            description="Maximum size of the files of one person and their bots in MiB, or"
            " `unlimited`. Existing files are kept if you lower it."
        ),
    ] = UNSET
    video_chat_provider: Annotated[
        Int | UnsetType, Meta(description="An ID from realm_available_video_chat_providers.")
    ] = UNSET
    waiting_period_threshold: Annotated[
        Days | UnsetType,
        Meta(description="Days until a new member becomes a full member. Owners only."),
    ] = UNSET
    want_advertise_in_communities_directory: bool | UnsetType = UNSET
    welcome_message_custom_text: str | UnsetType = UNSET
    zulip_update_announcements_stream_id: Annotated[
        Int | UnsetType, Meta(description="Channel ID, or -1 for none.")
    ] = UNSET
    can_access_all_users_group: GivenChange | UnsetType = UNSET
    can_add_custom_emoji_group: GivenChange | UnsetType = UNSET
    can_add_subscribers_group: GivenChange | UnsetType = UNSET
    can_create_bots_group: GivenChange | UnsetType = UNSET
    can_create_groups: Annotated[GivenChange | UnsetType, Meta(description="Owners only.")] = UNSET
    can_create_private_channel_group: GivenChange | UnsetType = UNSET
    can_create_public_channel_group: GivenChange | UnsetType = UNSET
    can_create_web_public_channel_group: GivenChange | UnsetType = UNSET
    can_create_write_only_bots_group: GivenChange | UnsetType = UNSET
    can_delete_any_message_group: GivenChange | UnsetType = UNSET
    can_delete_own_message_group: GivenChange | UnsetType = UNSET
    can_invite_users_group: Annotated[GivenChange | UnsetType, Meta(description="Owners only.")] = (
        UNSET
    )
    can_manage_all_groups: Annotated[GivenChange | UnsetType, Meta(description="Owners only.")] = (
        UNSET
    )
    can_manage_billing_group: GivenChange | UnsetType = UNSET
    can_mention_many_users_group: GivenChange | UnsetType = UNSET
    can_move_messages_between_channels_group: GivenChange | UnsetType = UNSET
    can_move_messages_between_topics_group: GivenChange | UnsetType = UNSET
    can_resolve_topics_group: GivenChange | UnsetType = UNSET
    can_set_delete_message_policy_group: GivenChange | UnsetType = UNSET
    can_set_topics_policy_group: GivenChange | UnsetType = UNSET
    can_summarize_topics_group: GivenChange | UnsetType = UNSET
    create_multiuse_invite_group: Annotated[
        GivenChange | UnsetType, Meta(description="Owners only.")
    ] = UNSET
    direct_message_initiator_group: GivenChange | UnsetType = UNSET
    direct_message_permission_group: GivenChange | UnsetType = UNSET
    workplace_users_group: GivenChange | UnsetType = UNSET


_READ_ONLY: Final = frozenset({"uuid", "created_at", "presence_disabled"})
"""Fields of the organization that clients are told and cannot set."""


async def update_realm(call: Caller, params: UpdateRealm) -> Answer:
    """Change the organization's settings, for administrators; all that is sent, or nothing."""
    permissions.require_administrator(call.state, call.user)
    if params.string_id is not UNSET:
        raise Refused("This server hosts a single organization, so its subdomain can't be changed.")
    sent = {
        field: value
        for field in shown_fields()
        if field not in _READ_ONLY and (value := getattr(params, wire_name(field))) is not UNSET
    }
    groups = {field: given_change(sent.pop(field)) for field in REALM_SETTINGS if field in sent}
    values = {field: _placed(field, value) for field, value in sent.items()}
    if values.get("enable_spectator_access") and not call.node.config.web_public_streams_enabled:
        raise Refused("This server doesn't allow public access without an account.")
    if params.video_chat_provider == BIG_BLUE_BUTTON and not is_offered(call.node.config):
        raise Refused("BigBlueButton isn't set up on this server.")
    if params.authentication_methods is not UNSET:
        values["password_sign_in"] = _password_sign_in(call, params.authentication_methods)
    edit = Edit(values=values, groups=groups)
    await call.prepare(params.description)
    await call.submit(settings.change, edit, call.render)
    return Answer()


def _placed(field: str, value: Any) -> Any:
    """A value as the organization has it."""
    if field == "message_retention_days":
        return FOR_EVER if value == UNLIMITED else value
    if field.endswith("_limit_seconds") or field in QUOTAS:
        return None if value == UNLIMITED else value
    if field == "jitsi_server_url":
        return None if value == "default" else value
    return value


def _password_sign_in(call: Caller, methods: dict[str, bool]) -> bool:
    """Whether people shall sign in by password. Refused for methods that there are not, and where
    none would be left; signing in without a password is the server's own decision."""
    realm = call.state.realm
    known = authentication_methods(realm, dev=call.node.config.dev)
    for name, enabled in methods.items():
        if name not in known:
            raise Refused(f"The sign-in method '{name[:50]}' doesn't exist.")
        if name != "Email" and not enabled:
            raise Refused(
                f"'{name}' is enabled by the server, so the organization can't turn it off."
            )
    if not any(methods.values()):
        raise Refused("At least one sign-in method must be enabled.")
    return methods.get("Email", realm.password_sign_in)


async def update_default_settings(call: Call, params: SettingParams) -> Answer:
    """Change the settings that new accounts begin with, for administrators. Their language is a
    setting of the organization."""
    sent = settings_sent(params)
    if sent.pop("default_language", None) is not None:
        call.ignored.append("default_language")
    await call.submit(settings.change_defaults, sent)
    return Answer()


class ShowWelcome(Params, kw_only=True, frozen=True):
    """Words of the organization's own for newcomers."""

    welcome_message_custom_text: str


class WelcomeShown(Answer, kw_only=True):
    """The message's ID."""

    message_id: int


async def show_welcome(call: Call, params: ShowWelcome) -> WelcomeShown:
    """Send the caller, an administrator, what the Welcome Bot would say with these words."""
    text = params.welcome_message_custom_text
    await call.prepare(text)
    return WelcomeShown(message_id=await call.submit(signup.show_welcome, call.render, text))


class DeactivateRealm(Params, kw_only=True, frozen=True):
    """What becomes of the organization's data."""

    deletion_delay_days: Annotated[
        Int | None, Meta(description="Null keeps the data. This server does not delete it.")
    ] = None


async def deactivate_realm(call: Call, params: DeactivateRealm) -> Answer:
    """Deactivate the organization, for owners: nobody can use it until its operator reactivates it
    with `tertulia reactivate`."""
    permissions.require_owner(call.state, call.user)
    sign_in.require_confirmed(call)
    if params.deletion_delay_days is not None:
        raise Refused(
            "Organizations can't be deleted here. Ask the server's operator, who can delete the"
            " database."
        )
    await call.submit(realms.deactivate)
    return Answer()
