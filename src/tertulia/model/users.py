"""People, bots, and what belongs to one account."""

from enum import IntEnum
from typing import Annotated, Literal

from msgspec import Meta, Struct

from tertulia.model.webhooks import EmbeddedService, IncomingOptions, OutgoingService


class Role(IntEnum):
    """What an account may do; a smaller number may do more."""

    OWNER = 100
    ADMINISTRATOR = 200
    MODERATOR = 300
    MEMBER = 400
    GUEST = 600


class BotKind(IntEnum):
    """What a bot account is for."""

    GENERIC = 1
    INCOMING_WEBHOOK = 2
    OUTGOING_WEBHOOK = 3
    EMBEDDED = 4


class AddressVisibility(IntEnum):
    """Who may see an account's real address."""

    EVERYONE = 1
    MEMBERS = 2
    ADMINISTRATORS = 3
    NOBODY = 4
    MODERATORS = 5


class Bot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What makes an account a bot."""

    kind: BotKind
    owner_id: int | None = None
    """None for the system's own bots."""
    default_sending_channel_id: int | None = None
    default_events_channel_id: int | None = None
    default_all_public_channels: bool = False
    is_system: bool = False
    """One of the server's own voices: notifications, welcome, e-mail gateway."""
    incoming: IncomingOptions | None = None
    """Of incoming webhooks; None for the defaults."""
    service: OutgoingService | None = None
    """Of outgoing webhooks."""
    embedded: EmbeddedService | None = None
    """Of embedded bots."""


class User(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An account. Its password and key are in `Credential`, its settings in `PersonalSettings`."""

    id: int
    address: str
    """The real e-mail address. Compared without regard to case."""
    full_name: str
    role: Role = Role.MEMBER
    joined_at: int = 0
    """UNIX seconds."""
    awaits_arrival: bool = False
    """Somebody else made the account, and nobody has signed in to it: its person joins then."""
    is_active: bool = True
    is_deleted: bool = False
    """Deactivated for good: nothing of its person is left in the account."""
    timezone: str = ""
    """IANA name; empty when unset."""
    avatar_source: str = "G"
    """`G` the third-party default by address, `J` one that is drawn here, `U` uploaded."""
    avatar_version: int = 1
    avatar_file: str = ""
    """The name of the uploaded picture."""
    bot: Bot | None = None
    upload_quota_mib: int | None = None
    """How much the account's files may come to, in place of the organization's limit; -1 without
    one. None for the organization's."""

    @property
    def is_bot(self) -> bool:
        return self.bot is not None

    @property
    def is_system_bot(self) -> bool:
        return self.bot is not None and self.bot.is_system

    @property
    def person_id(self) -> int:
        """The account whose shares and limits apply: a bot's owner, if it has one."""
        if self.bot is None or self.bot.owner_id is None:
            return self.id
        return self.bot.owner_id

    @property
    def is_guest(self) -> bool:
        return self.role is Role.GUEST

    @property
    def is_administrator(self) -> bool:
        """Administrators and owners."""
        return self.role <= Role.ADMINISTRATOR

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER


class Credential(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What an account proves itself with. Nothing here can be read back without the secret."""

    user_id: int
    password_hash: str | None = None
    """Argon2id in its own encoded form; None for accounts that cannot sign in by password."""
    key_digest: str
    """SHA-256 of the API key, hexadecimal: what a request is looked up by."""
    key_sealed: str
    """The API key encrypted with the installation's secret, for when it must be shown again."""


class NewKey(Struct, frozen=True, kw_only=True):
    """An API key that an account is to have, as `Credential` keeps it."""

    digest: str
    sealed: str


Choice3 = Literal[1, 2, 3]
Choice4 = Literal[1, 2, 3, 4]
"""Numbered choices; what each number means is the clients' to know."""
EmojiSet = Literal["google", "twitter", "text", "google-blob"]
HomeView = Literal["inbox", "recent", "all_messages"]
AnimatePreviews = Literal["always", "on_hover", "never"]
AutoReadNotices = Literal["always", "except_followed", "never"]
BatchingSeconds = Annotated[int, Meta(ge=1, le=604800)]
FontSize = Annotated[int, Meta(ge=1, le=100)]
LineHeight = Annotated[int, Meta(ge=10, le=1000)]


class PersonalSettings(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One account's preferences; the defaults are those of a new account."""

    user_id: int
    edited_by_owner: bool = False
    """Whether the account has ever changed one of these itself."""
    automatically_follow_topics_policy: Choice4 = 3
    automatically_follow_topics_where_mentioned: bool = True
    automatically_unmute_topics_in_muted_channels_policy: Choice4 = 2
    color_scheme: Choice3 = 1
    default_language: str = "en"
    demote_inactive_channels: Choice3 = 1
    desktop_icon_count_display: Choice4 = 1
    display_emoji_reaction_users: bool = True
    email_address_visibility: AddressVisibility = AddressVisibility.EVERYONE
    email_notifications_batching_period_seconds: BatchingSeconds = 120
    emojiset: EmojiSet = "google"
    enable_desktop_notifications: bool = True
    enable_digest_emails: bool = True
    enable_drafts_synchronization: bool = True
    enable_followed_topic_audible_notifications: bool = True
    enable_followed_topic_desktop_notifications: bool = True
    enable_followed_topic_email_notifications: bool = True
    enable_followed_topic_push_notifications: bool = True
    enable_followed_topic_wildcard_mentions_notify: bool = True
    enable_login_emails: bool = True
    enable_marketing_emails: bool = True
    enable_offline_email_notifications: bool = True
    enable_offline_push_notifications: bool = True
    enable_online_push_notifications: bool = True
    enable_sounds: bool = True
    enable_channel_audible_notifications: bool = False
    enable_channel_desktop_notifications: bool = False
    enable_channel_email_notifications: bool = False
    enable_channel_push_notifications: bool = False
    enter_sends: bool = False
    fluid_layout_width: bool = False
    hide_ai_features: bool = False
    high_contrast_mode: bool = False
    left_side_userlist: bool = False
    message_content_in_email_notifications: bool = True
    notification_sound: str = "zulip"
    direct_content_in_desktop_notifications: bool = True
    presence_enabled: bool = True
    realm_name_in_email_notifications_policy: Choice3 = 1
    receives_typing_notifications: bool = True
    resolved_topic_notice_auto_read_policy: AutoReadNotices = "except_followed"
    """No setting: what older versions stored, and nothing follows."""
    send_direct_typing_notifications: bool = True
    send_read_receipts: bool = True
    send_channel_typing_notifications: bool = True
    starred_message_counts: bool = True
    translate_emoticons: bool = False
    twenty_four_hour_time: bool | None = False
    """None is as usual where the person is."""
    user_list_style: Choice3 = 2
    allow_private_data_export: bool = False
    web_animate_image_previews: AnimatePreviews = "on_hover"
    web_channel_default_view: Choice4 = 1
    web_escape_navigates_to_home_view: bool = True
    web_font_size_px: FontSize = 16
    web_home_view: HomeView = "inbox"
    web_inbox_show_channel_folders: bool = True
    web_left_sidebar_show_channel_folders: bool = True
    web_left_sidebar_unreads_count_summary: bool = True
    web_line_height_percent: LineHeight = 140
    web_mark_read_on_scroll_policy: Choice3 = 1
    web_navigate_to_sent_message: bool = True
    web_channel_unreads_count_display_policy: Choice3 = 2
    web_suggest_update_timezone: bool = True
    wildcard_mentions_notify: bool = True
