"""The organization and its settings."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from tertulia.model.groups import GroupSetting, SystemGroup

_EVERYONE = SystemGroup.EVERYONE.value
_MEMBERS = SystemGroup.MEMBERS.value
_MODERATORS = SystemGroup.MODERATORS.value
_ADMINISTRATORS = SystemGroup.ADMINISTRATORS.value
_OWNERS = SystemGroup.OWNERS.value

Weekday = Annotated[int, Meta(ge=0, le=6)]
"""0 is Monday."""
GifRating = Literal[0, 2, 3, 4, 5]
PreviewSize = Literal[100, 150, 200]
"""Pixels."""
AvatarSource = Literal["G", "J"]
"""`G` the third-party default by address, `J` drawn from the name."""
HistoryVisibility = Literal["all", "moves", "none"]
"""What of a message's edits everybody may look at."""
TopicsPolicyOfRealm = Literal["allow_empty_topic", "disable_empty_topic"]
OrganizationType = Literal[0, 10, 20, 30, 35, 40, 50, 60, 70, 80, 90, 100, 1000]
Days = Annotated[int, Meta(ge=0, le=36_500)]
Seconds = Annotated[int, Meta(ge=1, le=10_000_000_000)]
MAX_MEBIBYTES: Final = 1_000_000_000
Mebibytes = Annotated[int, Meta(ge=1, le=MAX_MEBIBYTES)]
MAX_QUOTA: Final = 1_000_000
Quota = Annotated[int, Meta(ge=1, le=MAX_QUOTA)]
"""How many things one person can have; see `tertulia.domain.quotas`."""


class Picture(Struct, frozen=True, omit_defaults=True):
    """One of the organization's pictures."""

    file: str = ""
    """Its path among the files; empty for the picture that comes with the program."""
    version: int = 1
    """Counts its changes, so that clients know when their copy is old."""


class Realm(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The organization. A setting here is the organization's; the server's are in its
    configuration file. Durations are in seconds unless named otherwise, and None is unlimited.
    """

    id: int = 1
    uuid: str
    name: str
    description: str = ""
    rendered_description: str = ""
    """The description as HTML."""
    created_at: int
    """UNIX seconds."""
    deactivated: bool = False
    """Whether nobody may do anything here, until somebody at the command line reactivates it."""
    icon: Picture = Picture()
    logo: Picture = Picture()
    night_logo: Picture = Picture()
    allow_message_editing: bool = True
    password_sign_in: bool = True
    avatar_changes_disabled: bool = False
    default_avatar_source: AvatarSource = "G"
    default_code_block_language: str = ""
    default_language: str = "en"
    digest_emails_enabled: bool = False
    digest_weekday: Weekday = 1
    disallow_disposable_email_addresses: bool = True
    email_changes_disabled: bool = False
    emails_restricted_to_domains: bool = False
    enable_guest_user_dm_warning: bool = True
    enable_guest_user_indicator: bool = True
    enable_read_receipts: bool = True
    enable_spectator_access: bool = False
    gif_rating_policy: GifRating = 2
    inline_image_preview: bool = True
    inline_url_embed_preview: bool = False
    invite_required: bool = True
    jitsi_server_url: str | None = None
    media_preview_size: PreviewSize = 100
    message_content_allowed_in_email_notifications: bool = True
    message_content_delete_limit_seconds: Seconds | None = 600
    message_content_edit_limit_seconds: Seconds | None = 600
    message_edit_history_visibility_policy: HistoryVisibility = "all"
    message_retention_days: int = -1
    """-1 keeps messages for ever."""
    moderation_request_channel_id: int = -1
    move_messages_between_channels_limit_seconds: Seconds | None = 604800
    move_messages_within_channel_limit_seconds: Seconds | None = 604800
    name_changes_disabled: bool = False
    new_channel_announcements_channel_id: int = -1
    org_type: OrganizationType = 0
    presence_disabled: bool = False
    require_e2ee_push_notifications: bool = False
    require_unique_names: bool = False
    send_channel_events_messages: bool = True
    send_welcome_emails: bool = True
    signup_announcements_channel_id: int = -1
    topics_policy: TopicsPolicyOfRealm = "allow_empty_topic"
    video_chat_provider: int = 1
    waiting_period_threshold: Days = 0
    """Days until a new member counts as a full one."""
    waiting_period_applied: int = 0
    """The days by which it was last decided who is a full member."""
    full_members_joined_by: int | None = None
    """UNIX seconds: members who joined later are no full ones yet. None where all are."""
    want_advertise_in_communities_directory: bool = False
    welcome_message_custom_text: str = ""
    updates_announcements_channel_id: int = -1
    upload_quota_per_user_mib: Mebibytes | None = None
    """How much the files of one person, and of their bots, may come to; see `User`. Organizations
    that were founded before there was a limit have none."""
    max_bots_per_user: Quota | None = 100
    max_channels_per_user: Quota | None = 500
    max_drafts_per_user: Quota | None = 1000
    max_groups_per_user: Quota | None = 200
    max_unfinished_uploads_per_user: Quota | None = 50
    can_access_all_users_group: GroupSetting = _EVERYONE
    can_add_custom_emoji_group: GroupSetting = _MEMBERS
    can_add_subscribers_group: GroupSetting = _MEMBERS
    can_create_bots_group: GroupSetting = _MEMBERS
    can_create_groups: GroupSetting = _MEMBERS
    can_create_private_channel_group: GroupSetting = _MEMBERS
    can_create_public_channel_group: GroupSetting = _MEMBERS
    can_create_users_group: GroupSetting = _ADMINISTRATORS
    can_create_web_public_channel_group: GroupSetting = _OWNERS
    can_create_write_only_bots_group: GroupSetting = _MEMBERS
    can_delete_any_message_group: GroupSetting = _ADMINISTRATORS
    can_delete_own_message_group: GroupSetting = _EVERYONE
    can_invite_users_group: GroupSetting = _MEMBERS
    can_manage_all_groups: GroupSetting = _OWNERS
    can_manage_billing_group: GroupSetting = _ADMINISTRATORS
    can_mention_many_users_group: GroupSetting = _ADMINISTRATORS
    can_move_messages_between_channels_group: GroupSetting = _MEMBERS
    can_move_messages_between_topics_group: GroupSetting = _EVERYONE
    can_resolve_topics_group: GroupSetting = _EVERYONE
    can_set_delete_message_policy_group: GroupSetting = _MODERATORS
    can_set_topics_policy_group: GroupSetting = _MEMBERS
    can_summarize_topics_group: GroupSetting = _EVERYONE
    create_multiuse_invite_group: GroupSetting = _ADMINISTRATORS
    direct_message_initiator_group: GroupSetting = _EVERYONE
    direct_message_permission_group: GroupSetting = _EVERYONE
    workplace_users_group: GroupSetting = _EVERYONE
