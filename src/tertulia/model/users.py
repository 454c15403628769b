"""Accounts of people and bots, their credentials and settings."""

from enum import IntEnum
from typing import Annotated, Any, ClassVar, Final, Literal

from msgspec import Meta, Struct

from tertulia.model.access_keys import Reach
from tertulia.model.change import Change
from tertulia.model.groups import ChannelSight
from tertulia.model.numbers import UnixSeconds
from tertulia.model.settings import Setting
from tertulia.model.webhooks import EmbeddedService, IncomingOptions, OutgoingService


class Role(IntEnum):
    """A role in the organization. A smaller number has more permissions."""

    OWNER = 100
    ADMINISTRATOR = 200
    MODERATOR = 300
    MEMBER = 400
    GUEST = 600


class BotKind(IntEnum):
    GENERIC = 1
    INCOMING_WEBHOOK = 2
    OUTGOING_WEBHOOK = 3
    EMBEDDED = 4


class AddressVisibility(IntEnum):
    """The people who can see an account's real email address."""

    EVERYONE = 1
    MEMBERS = 2
    ADMINISTRATORS = 3
    NOBODY = 4
    MODERATORS = 5


class Bot(Struct, frozen=True, kw_only=True, omit_defaults=True):
    kind: BotKind
    owner_id: int | None = None
    """None for the server's own bots."""
    default_sending_channel_id: int | None = None
    default_events_channel_id: int | None = None
    default_all_public_channels: bool = False
    is_system: bool = False
    """Whether it's one of the server's bots: notification bot, welcome bot, email gateway."""
    incoming: IncomingOptions | None = None
    """Incoming webhook bots only; None for the defaults."""
    service: OutgoingService | None = None
    """Outgoing webhook bots only."""
    embedded: EmbeddedService | None = None
    """Embedded bots only."""


class User(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An account. Its password and API key are in `Credential`, its settings in
    `PersonalSettings`."""

    id: int
    address: str
    """The real email address. Compared ignoring case."""
    full_name: str
    role: Role = Role.MEMBER
    invited_role: Role | None = None
    """The role that the person's invitation granted."""
    invited_group_ids: tuple[int, ...] = ()
    """The user groups that the person's invitation granted."""
    joined_at: UnixSeconds = 0
    awaits_arrival: bool = False
    """Whether someone else created the account and nobody has signed in yet. Its person joins at
    the first sign-in."""
    joined_elsewhere: bool = False
    """Whether the account was imported, so its person joined another server at `joined_at`."""
    is_active: bool = True
    is_deleted: bool = False
    """Whether the account is deactivated permanently and its personal data is erased."""
    is_placeholder: bool = False
    """Whether an import created it for someone whose data wasn't imported."""
    timezone: str = ""
    """IANA name; empty if unset."""
    avatar_source: str = "G"
    """`G`: Gravatar; `J`: generated here; `U`: uploaded."""
    avatar_version: int = 1
    avatar_file: str = ""
    """The file name of the uploaded avatar."""
    bot: Bot | None = None
    upload_quota_mib: int | None = None
    """The account's own storage limit in MiB; -1 for no limit. None uses the organization's."""
    reach: ClassVar[Reach | None] = None
    """The part of the account's access that the request's key has; None for all of it. See
    `ReachedUser`."""

    def reaches(self, channel_id: int | None) -> bool:
        """Whether this channel, or direct messages (None), are within the reach."""
        return self.reach is None or self.reach.reaches(channel_id)

    @property
    def is_bot(self) -> bool:
        return self.bot is not None

    @property
    def is_system_bot(self) -> bool:
        return self.bot is not None and self.bot.is_system

    @property
    def person_id(self) -> int:
        """The account whose quotas apply: a bot's owner, if it has one."""
        if self.bot is None or self.bot.owner_id is None:
            return self.id
        return self.bot.owner_id

    @property
    def is_guest(self) -> bool:
        return self.role is Role.GUEST

    @property
    def is_administrator(self) -> bool:
        """Whether the role is administrator or owner."""
        return self.role <= Role.ADMINISTRATOR

    @property
    def is_owner(self) -> bool:
        return self.role is Role.OWNER


class ReachedUser(User, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An account limited to the reach of an access key. Never stored: only the person who reads or
    acts in a request is represented this way."""

    reach: Reach  # type: ignore[misc]  # A class attribute of `User`, and a field here.

    @classmethod
    def of(cls, user: User, reach: Reach | None) -> User:
        """Return the account limited to the reach, or the account itself if the reach isn't
        limited."""
        if reach is None or not reach.is_limited:
            return user
        values = {name: getattr(user, name) for name in User.__struct_fields__}
        return cls(**values, reach=reach)


def as_present(user: User, present: User) -> User:
    """Return the account's present record, limited to the reach of `user`."""
    return ReachedUser.of(present, user.reach)


class Credential(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An account's password and API key, in forms that don't reveal them."""

    user_id: int
    password_hash: str | None = None
    """The encoded Argon2id hash; None for accounts that can't sign in with a password."""
    key_digest: str
    """SHA-256 of the API key in hexadecimal. Requests are looked up by it."""
    key_sealed: str
    """The API key, encrypted with the server's secret, so that it can be shown again."""
    adopts_key: bool = False
    """Whether the account was imported, so that its API key on the previous server can replace this
    one."""
    adopts_password: bool = False
    """Whether the account was imported, so that it can adopt its password on the previous server if
    it has none."""


class NewApiKey(Struct, frozen=True, kw_only=True):
    """A new API key, as in `Credential`."""

    digest: str
    sealed: str


Choice3 = Literal[1, 2, 3]
Choice4 = Literal[1, 2, 3, 4]
"""Numbered choices."""
EmojiSet = Literal["google", "twitter", "text", "google-blob"]
HomeView = Literal["inbox", "recent", "all_messages"]
AnimatePreviews = Literal["always", "on_hover", "never"]
AutoReadNotices = Literal["always", "except_followed", "never"]
BatchingSeconds = Annotated[int, Meta(ge=1, le=604800)]
FontSize = Annotated[int, Meta(ge=1, le=100)]
LineHeight = Annotated[int, Meta(ge=10, le=1000)]


_STARTED_BY: Final = (
    "1: topics you participate in; 2: topics you send a message to; 3: topics you start; 4: never."
)
_ALWAYS_OR_NEVER: Final = "1: automatic; 2: always; 3: never."


class PersonalSettings(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """An account's settings, with the defaults for new accounts.

    The web client shows the settings of a section in the order that they have here.
    """

    user_id: int
    edited_by_owner: bool = False
    """Whether the account has ever changed a setting itself."""
    resolved_topic_notice_auto_read_policy: AutoReadNotices = "except_followed"
    """Unused: older versions stored it."""

    # Preferences
    color_scheme: Annotated[
        Choice3, Setting("appearance", "1: match the system; 2: dark; 3: light.")
    ] = 1
    web_font_size_px: Annotated[FontSize, Setting("appearance")] = 16
    web_line_height_percent: Annotated[LineHeight, Setting("appearance")] = 140
    high_contrast_mode: Annotated[bool, Setting("appearance")] = False
    fluid_layout_width: Annotated[bool, Setting("appearance")] = False
    web_animate_image_previews: Annotated[AnimatePreviews, Setting("appearance")] = "on_hover"
    user_list_style: Annotated[
        Choice3, Setting("appearance", "1: compact; 2: with status; 3: with status and avatar.")
    ] = 2
    default_language: Annotated[str, Setting("language", "Language code, such as `de`.")] = "en"
    twenty_four_hour_time: Annotated[
        bool | None, Setting("language", "Null: the default of the person's locale.")
    ] = False
    web_suggest_update_timezone: Annotated[bool, Setting("language")] = True
    web_home_view: Annotated[HomeView, Setting("reading")] = "inbox"
    web_escape_navigates_to_home_view: Annotated[bool, Setting("reading")] = True
    web_mark_read_on_scroll_policy: Annotated[
        Choice3, Setting("reading", "1: always; 2: only in conversation views; 3: never.")
    ] = 1
    web_channel_default_view: Annotated[
        Choice4,
        Setting(
            "reading", "1: top topic; 2: channel feed; 3: list of topics; 4: top unread topic."
        ),
    ] = 1
    demote_inactive_channels: Annotated[Choice3, Setting("reading", _ALWAYS_OR_NEVER)] = 1
    web_channel_unreads_count_display_policy: Annotated[
        Choice3,
        Setting("reading", "1: all channels; 2: unmuted channels and topics; 3: no channels."),
    ] = 2
    web_left_sidebar_unreads_count_summary: Annotated[bool, Setting("reading")] = True
    web_left_sidebar_show_channel_folders: Annotated[bool, Setting("reading")] = True
    starred_message_counts: Annotated[bool, Setting("reading")] = True
    display_emoji_reaction_users: Annotated[bool, Setting("reading")] = True
    enter_sends: Annotated[bool, Setting("writing")] = False
    web_navigate_to_sent_message: Annotated[bool, Setting("writing")] = True
    translate_emoticons: Annotated[bool, Setting("writing")] = False
    enable_drafts_synchronization: Annotated[
        bool, Setting("writing", "Turning this off deletes the drafts stored on the server.")
    ] = True

    # Privacy
    presence_enabled: Annotated[bool, Setting("presence", "False makes the person invisible.")] = (
        True
    )
    send_read_receipts: Annotated[bool, Setting("presence")] = True
    send_direct_typing_notifications: Annotated[bool, Setting("presence")] = True
    send_channel_typing_notifications: Annotated[bool, Setting("presence")] = True
    receives_typing_notifications: Annotated[bool, Setting("presence")] = True
    email_address_visibility: Annotated[
        AddressVisibility,
        Setting("address", "1: everyone; 2: members; 3: administrators; 4: no one; 5: moderators."),
    ] = AddressVisibility.EVERYONE

    # Notifications
    wildcard_mentions_notify: Annotated[bool, Setting("mentions")] = True
    enable_followed_topic_wildcard_mentions_notify: Annotated[bool, Setting("mentions")] = True
    notification_sound: Annotated[
        str, Setting("desktop", "One of available_notification_sounds, or `none`.")
    ] = "zulip"
    direct_content_in_desktop_notifications: Annotated[bool, Setting("desktop")] = True
    desktop_icon_count_display: Annotated[
        Choice4,
        Setting(
            "desktop",
            "1: all unread messages; 2: direct messages, mentions, and followed"
            " topics; 3: direct messages and mentions; 4: nothing.",
        ),
    ] = 1
    enable_online_push_notifications: Annotated[bool, Setting("desktop")] = True
    email_notifications_batching_period_seconds: Annotated[BatchingSeconds, Setting("email")] = 120
    message_content_in_email_notifications: Annotated[bool, Setting("email")] = True
    realm_name_in_email_notifications_policy: Annotated[
        Choice3, Setting("email", _ALWAYS_OR_NEVER)
    ] = 1
    enable_login_emails: Annotated[bool, Setting("email")] = True
    enable_digest_emails: Annotated[bool, Setting("email")] = True
    automatically_follow_topics_policy: Annotated[Choice4, Setting("topics", _STARTED_BY)] = 3
    automatically_unmute_topics_in_muted_channels_policy: Annotated[
        Choice4, Setting("topics", _STARTED_BY)
    ] = 2
    automatically_follow_topics_where_mentioned: Annotated[bool, Setting("topics")] = True

    # Notifications by kind of message, which the web client shows in its own table
    enable_desktop_notifications: Annotated[bool, Setting()] = True
    enable_followed_topic_audible_notifications: Annotated[bool, Setting()] = True
    enable_followed_topic_desktop_notifications: Annotated[bool, Setting()] = True
    enable_followed_topic_email_notifications: Annotated[bool, Setting()] = True
    enable_followed_topic_push_notifications: Annotated[bool, Setting()] = True
    enable_offline_email_notifications: Annotated[bool, Setting()] = True
    enable_offline_push_notifications: Annotated[bool, Setting()] = True
    enable_sounds: Annotated[bool, Setting()] = True
    enable_channel_audible_notifications: Annotated[bool, Setting()] = False
    enable_channel_desktop_notifications: Annotated[bool, Setting()] = False
    enable_channel_email_notifications: Annotated[bool, Setting()] = False
    enable_channel_push_notifications: Annotated[bool, Setting()] = False

    # Not in the web client
    emojiset: Annotated[EmojiSet, Setting()] = "google"
    enable_marketing_emails: Annotated[bool, Setting()] = True
    hide_ai_features: Annotated[bool, Setting()] = False
    left_side_userlist: Annotated[bool, Setting()] = False
    allow_private_data_export: Annotated[
        bool,
        Setting("", "Whether an export of the organization can include the person's private data."),
    ] = False
    web_inbox_show_channel_folders: Annotated[bool, Setting()] = True


class UserCreated(Change, frozen=True, tag="user_created"):
    """An account was created. `group_ids` are the groups that it's directly in: its role's system
    groups, and others."""

    user: User
    credential: Credential
    settings: PersonalSettings
    group_ids: tuple[int, ...] = ()


class UserChanged(Change, frozen=True, tag="user_changed"):
    """Fields of an account (`full_name`, `role`, `address`, `timezone`, …) have new values; `was`
    has the old ones.

    A new role takes the account out of the system groups `left` and into `joined`; it gains sight
    of the channels `gained`, and loses sight of `lost`. `subscribers` are those of each channel
    gained, then.

    `rights` are bots whose rights changed (the account itself, or its bots), with the roles whose
    rights they had before and have afterwards. `sight` are channels that its bots gained and lost
    sight of.
    """

    user_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    left: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: dict[int, tuple[int, ...]] = {}
    rights: dict[int, tuple[int, int]] = {}
    sight: tuple[ChannelSight, ...] = ()


class Named(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Permission settings that include an account itself, not only through groups."""

    channels: tuple[tuple[int, str], ...] = ()
    """Channel ID and setting."""
    groups: tuple[tuple[int, str], ...] = ()
    """User group ID and setting."""
    realm: tuple[str, ...] = ()


class UserDeactivated(Change, frozen=True, tag="user_deactivated"):
    """An account was deactivated. Its subscriptions and memberships stay, hidden.

    `channel_ids` are the channels it's subscribed to, `group_ids` the groups it's directly in,
    `named` the settings that name it. `deactivated_groups` are the groups that are
    deactivated.
    """

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()
    deactivated_groups: tuple[int, ...] = ()


class UserReactivated(Change, frozen=True, tag="user_reactivated"):
    """An account was reactivated. The other fields are as in `UserDeactivated`."""

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()
    deactivated_groups: tuple[int, ...] = ()


class UserVisibility(Struct, frozen=True, kw_only=True):
    """Accounts that become visible or invisible to the same viewers: ranges of IDs, each with its
    first and its last. Both are ascending; viewers may be among the accounts."""

    viewers: tuple[int, ...]
    users: tuple[tuple[int, int], ...]


class UserVisibilityChanged(Change, frozen=True, tag="user_visibility_changed"):
    """Accounts became visible to limited guests (`gained`, in the log before the change that causes
    it), or invisible (`lost`, after that change)."""

    gained: tuple[UserVisibility, ...] = ()
    lost: tuple[UserVisibility, ...] = ()


class CredentialChanged(Change, frozen=True, tag="credential_changed"):
    """An account has a new password or API key; the old one no longer works."""

    credential: Credential
    same_key: bool = False
    """Whether only the password is new."""


class SettingsChanged(Change, frozen=True, tag="settings_changed"):
    """Personal settings have new values; `was` has the old ones. `by_owner`: whether the account
    changed them itself."""

    user_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    by_owner: bool = False
