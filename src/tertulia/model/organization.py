"""The organization: its settings, domains, linkifiers, playgrounds, and default channel groups."""

from typing import Annotated, Any, Final, Literal

from msgspec import Meta, Struct

from tertulia.model.change import Change
from tertulia.model.groups import GroupSetting, SystemGroup, UserGroup
from tertulia.model.settings import Permission, Setting
from tertulia.model.users import User

_EVERYONE = SystemGroup.EVERYONE.value
_MEMBERS = SystemGroup.MEMBERS.value
_MODERATORS = SystemGroup.MODERATORS.value
_ADMINISTRATORS = SystemGroup.ADMINISTRATORS.value
_OWNERS = SystemGroup.OWNERS.value

Weekday = Annotated[int, Meta(ge=0, le=6)]
"""0 is Monday."""
GifRating = Literal[0, 2, 3, 4, 5]
PreviewSize = Literal[100, 150, 200]
"""Percent."""
AvatarSource = Literal["G", "J"]
"""`G` is the third-party avatar by address, `J` one generated from the name."""
HistoryVisibility = Literal["all", "moves", "none"]
"""The part of a message's edit history that people can see."""
TopicsPolicyOfRealm = Literal["allow_empty_topic", "disable_empty_topic"]
PublicArchive = Literal["off", "readable", "indexed"]
SecondFactorRequired = Literal["nobody", "administrators", "members", "everyone"]
SignInLinks = Literal["nobody", "guests", "everyone"]
GraceDays = Annotated[int, Meta(ge=0, le=90)]
OrganizationType = Literal[0, 10, 20, 30, 35, 40, 50, 60, 70, 80, 90, 100, 1000]
Days = Annotated[int, Meta(ge=0, le=36_500)]
Seconds = Annotated[int, Meta(ge=1, le=10_000_000_000)]
MAX_MEBIBYTES: Final = 1_000_000_000
Mebibytes = Annotated[int, Meta(ge=1, le=MAX_MEBIBYTES)]
MAX_QUOTA: Final = 1_000_000
Quota = Annotated[int, Meta(ge=1, le=MAX_QUOTA)]
"""A quota per person; see `tertulia.domain.quotas`."""


class RealmPicture(Struct, frozen=True, omit_defaults=True):
    """One of the organization's pictures."""

    file: str = ""
    """Its path in the file storage; empty for the default."""
    version: int = 1
    """The number of changes, so that clients know when their copy is outdated."""


_ANNOUNCED_IN: Final = Setting("announcements", "Channel ID, or -1 for none.")
_OF_JOINING: Final = Permission("joining", owners_only=True)
_OF_CHANNELS: Final = Permission("channelPermissions")
_OF_MESSAGES: Final = Permission("messagePermissions")
_OF_MESSAGES_OPEN: Final = Permission("messagePermissions", everyone=True)
_OF_DIRECT_MESSAGES: Final = Permission("directPermissions", everyone=True)


def _quota(what: str) -> Setting:
    about = f"Maximum number of {what}, or `unlimited`. Existing ones are kept if you lower it."
    return Setting("limits", about, extension=True, since="0.2.0")


class Realm(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The organization and its settings; the server's settings are in its configuration file.
    Durations are in seconds unless their names have another unit, and None is unlimited. The web
    client shows the settings of a section in the order that they have here."""

    id: int = 1
    uuid: Annotated[str, Setting(read_only=True)]
    created_at: Annotated[int, Setting(read_only=True)]
    """UNIX seconds."""
    deactivated: bool = False
    """Whether the organization is deactivated: nobody can use it until the operator reactivates
    it."""
    moving_from: str = ""
    """The URL of the server that the organization is being moved from; empty otherwise. Until the
    move ends, only the import writes here."""
    icon: RealmPicture = RealmPicture()
    logo: RealmPicture = RealmPicture()
    night_logo: RealmPicture = RealmPicture()

    # Profile
    name: Annotated[str, Setting("profile")]
    description: Annotated[str, Setting("profile", "Markdown.")] = ""
    rendered_description: str = ""
    """The description as HTML."""
    org_type: Annotated[OrganizationType, Setting("profile")] = 0
    default_language: Annotated[str, Setting("profile")] = "en"

    # Messages
    allow_message_editing: Annotated[bool, Setting("editing")] = True
    message_content_edit_limit_seconds: Annotated[Seconds | None, Setting("editing")] = 600
    message_edit_history_visibility_policy: Annotated[HistoryVisibility, Setting("editing")] = "all"
    message_content_delete_limit_seconds: Annotated[Seconds | None, Setting("editing")] = 600
    message_retention_days: Annotated[
        int, Setting("editing", "Days, or `unlimited`.", owners_only=True)
    ] = -1
    """-1 keeps messages forever."""
    topics_policy: Annotated[TopicsPolicyOfRealm, Setting("moving")] = "allow_empty_topic"
    move_messages_within_channel_limit_seconds: Annotated[Seconds | None, Setting("moving")] = (
        604800
    )
    move_messages_between_channels_limit_seconds: Annotated[Seconds | None, Setting("moving")] = (
        604800
    )
    send_channel_events_messages: Annotated[bool, Setting("moving")] = True
    enable_read_receipts: Annotated[bool, Setting("display")] = True
    inline_image_preview: Annotated[bool, Setting("display")] = True
    inline_url_embed_preview: Annotated[bool, Setting("display")] = False
    media_preview_size: Annotated[PreviewSize, Setting("display")] = 100
    gif_rating_policy: Annotated[GifRating, Setting("display")] = 2
    default_code_block_language: Annotated[
        str, Setting("display", "A language, as named by Pygments. Empty: none.")
    ] = ""
    new_channel_announcements_channel_id: Annotated[int, _ANNOUNCED_IN] = -1
    signup_announcements_channel_id: Annotated[int, _ANNOUNCED_IN] = -1
    updates_announcements_channel_id: Annotated[int, _ANNOUNCED_IN] = -1
    moderation_request_channel_id: Annotated[int, _ANNOUNCED_IN] = -1
    video_chat_provider: Annotated[
        int, Setting("calls", "An ID from realm_available_video_chat_providers.")
    ] = 1
    jitsi_server_url: Annotated[
        str | None,
        Setting(
            "calls", "Jitsi Meet server for video calls, or `default` for the server's default."
        ),
    ] = None
    message_content_allowed_in_email_notifications: Annotated[bool, Setting("email")] = True
    send_welcome_emails: Annotated[bool, Setting("email")] = True
    digest_emails_enabled: Annotated[bool, Setting("email")] = False
    digest_weekday: Annotated[Weekday, Setting("email", "0 is Monday.")] = 1

    # Joining
    invite_required: Annotated[bool, Setting("joining", owners_only=True)] = True
    can_invite_users_group: Annotated[GroupSetting, _OF_JOINING] = _MEMBERS
    create_multiuse_invite_group: Annotated[GroupSetting, _OF_JOINING] = _ADMINISTRATORS
    emails_restricted_to_domains: Annotated[bool, Setting("joining", owners_only=True)] = False
    disallow_disposable_email_addresses: Annotated[bool, Setting("joining", owners_only=True)] = (
        True
    )
    waiting_period_threshold: Annotated[
        Days, Setting("joining", "Days until a new member becomes a full member.", owners_only=True)
    ] = 0
    waiting_period_applied: int = 0
    """The waiting period, in days, for which full members were last determined."""
    full_members_joined_by: int | None = None
    """The time in UNIX seconds until which full members joined. Later members aren't full members
    yet. None: all are."""
    enable_spectator_access: Annotated[bool, Setting("joining", owners_only=True)] = False
    public_archive: Annotated[
        PublicArchive,
        Setting(
            "joining",
            "Web-public channels as HTML pages at /archive, if enable_spectator_access is on."
            " `off`; `readable`: not for search engines; `indexed`: also for search engines.",
            owners_only=True,
            extension=True,
            since="0.2.0",
        ),
    ] = "off"
    second_factor_required_for: Annotated[
        SecondFactorRequired,
        Setting(
            "joining",
            "Who needs a second factor to sign in with a password: `nobody`, `administrators`,"
            " `members` (everyone except guests), or `everyone`.",
            owners_only=True,
            extension=True,
            since="0.2.0",
        ),
    ] = "nobody"
    second_factor_grace_days: Annotated[
        GraceDays,
        Setting(
            "joining",
            "Days that people have for setting up a second factor.",
            owners_only=True,
            extension=True,
            since="0.2.0",
        ),
    ] = 7
    second_factor_required_since: int = 0
    """The time in UNIX seconds since which a second factor is required of existing members."""
    sign_in_links: Annotated[
        SignInLinks,
        Setting(
            "joining",
            "Who can sign in with a link by email: `nobody`, `guests`, or `everyone`.",
            owners_only=True,
            extension=True,
            since="0.2.0",
        ),
    ] = "nobody"
    password_sign_in: Annotated[bool, Setting(owners_only=True)] = True
    account_api_keys: Annotated[
        bool,
        Setting(
            "joining",
            "Whether personal API keys are accepted. If not, each program needs an access key,"
            " and gets one when someone signs in with it. Bots aren't affected.",
            owners_only=True,
            extension=True,
            since="0.2.0",
        ),
    ] = True
    welcome_message_custom_text: Annotated[str, Setting()] = ""

    # Permissions
    can_create_public_channel_group: Annotated[GroupSetting, _OF_CHANNELS] = _MEMBERS
    can_create_private_channel_group: Annotated[GroupSetting, _OF_CHANNELS] = _MEMBERS
    can_create_web_public_channel_group: Annotated[
        GroupSetting,
        Permission("channelPermissions", only=("moderators", "administrators", "owners", "nobody")),
    ] = _OWNERS
    can_add_subscribers_group: Annotated[GroupSetting, _OF_CHANNELS] = _MEMBERS
    can_set_topics_policy_group: Annotated[
        GroupSetting, Permission("channelPermissions", everyone=True)
    ] = _MEMBERS
    can_set_delete_message_policy_group: Annotated[GroupSetting, _OF_CHANNELS] = _MODERATORS
    can_mention_many_users_group: Annotated[GroupSetting, _OF_MESSAGES_OPEN] = _ADMINISTRATORS
    can_resolve_topics_group: Annotated[GroupSetting, _OF_MESSAGES_OPEN] = _EVERYONE
    can_move_messages_between_topics_group: Annotated[GroupSetting, _OF_MESSAGES_OPEN] = _EVERYONE
    can_move_messages_between_channels_group: Annotated[GroupSetting, _OF_MESSAGES] = _MEMBERS
    can_delete_own_message_group: Annotated[GroupSetting, _OF_MESSAGES_OPEN] = _EVERYONE
    can_delete_any_message_group: Annotated[GroupSetting, _OF_MESSAGES] = _ADMINISTRATORS
    direct_message_initiator_group: Annotated[GroupSetting, _OF_DIRECT_MESSAGES] = _EVERYONE
    direct_message_permission_group: Annotated[GroupSetting, _OF_DIRECT_MESSAGES] = _EVERYONE
    can_create_groups: Annotated[
        GroupSetting, Permission("peoplePermissions", owners_only=True)
    ] = _MEMBERS
    can_manage_all_groups: Annotated[
        GroupSetting, Permission("peoplePermissions", nobody=False, owners_only=True)
    ] = _OWNERS
    can_access_all_users_group: Annotated[
        GroupSetting,
        Permission("peoplePermissions", everyone=True, nobody=False, only=("everyone", "members")),
    ] = _EVERYONE
    require_unique_names: Annotated[bool, Setting("peoplePermissions")] = False
    name_changes_disabled: Annotated[bool, Setting("peoplePermissions")] = False
    email_changes_disabled: Annotated[bool, Setting("peoplePermissions")] = False
    avatar_changes_disabled: Annotated[bool, Setting("peoplePermissions")] = False
    enable_guest_user_indicator: Annotated[bool, Setting("peoplePermissions")] = True
    enable_guest_user_dm_warning: Annotated[bool, Setting("peoplePermissions")] = True
    can_create_bots_group: Annotated[GroupSetting, Permission("botPermissions")] = _MEMBERS
    can_create_write_only_bots_group: Annotated[GroupSetting, Permission("botPermissions")] = (
        _MEMBERS
    )
    can_add_custom_emoji_group: Annotated[GroupSetting, Permission("botPermissions")] = _MEMBERS
    can_manage_billing_group: Annotated[GroupSetting, Permission(nobody=False)] = _ADMINISTRATORS
    can_summarize_topics_group: Annotated[GroupSetting, Permission(everyone=True)] = _EVERYONE
    workplace_users_group: Annotated[GroupSetting, Permission(everyone=True)] = _EVERYONE
    can_create_users_group: GroupSetting = _ADMINISTRATORS

    # Quotas per person
    max_channels_per_user: Annotated[
        Quota | None,
        _quota("channels that one person can create, except for administrators"),
    ] = 500
    max_groups_per_user: Annotated[
        Quota | None,
        _quota("user groups that one person can create, except for administrators"),
    ] = 200
    max_bots_per_user: Annotated[
        Quota | None,
        _quota("bots of one person, including deactivated ones, except for administrators"),
    ] = 100
    max_drafts_per_user: Annotated[
        Quota | None,
        _quota("drafts of one person on the server"),
    ] = 1000
    max_unfinished_uploads_per_user: Annotated[
        Quota | None,
        _quota("unfinished resumable uploads of one person"),
    ] = 50
    upload_quota_per_user_mib: Annotated[
        Mebibytes | None,
        Setting(
            "",
            "Maximum size of the files of one person and their bots in MiB, or `unlimited`."
            " Existing files are kept if you lower it.",
            extension=True,
            since="0.2.0",
        ),
    ] = None
    """Organizations that were created before this setting existed have no limit."""

    # Not in the web client
    default_avatar_source: Annotated[AvatarSource, Setting()] = "G"
    require_e2ee_push_notifications: Annotated[bool, Setting()] = False
    want_advertise_in_communities_directory: Annotated[bool, Setting()] = False
    presence_disabled: Annotated[bool, Setting(read_only=True)] = False


class Domain(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An email domain that new accounts can have."""

    id: int
    name: str
    """The domain in lowercase."""
    allow_subdomains: bool = False


class Linkifier(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Turns text such as `#123` into links."""

    id: int
    order: int
    """The order of precedence: if several match, the smallest number wins."""
    pattern: str
    """A regular expression in RE2's syntax. Its named groups are the templates' variables."""
    url_template: str
    """A URL template (RFC 6570)."""
    example_input: str | None = None
    reverse_template: str | None = None
    """The text that a pasted link becomes: `{name}` is a variable, `{{` and `}}` are braces."""
    alternative_url_templates: tuple[str, ...] = ()
    """Templates of other links that `reverse_template` also applies to."""


class Playground(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A website that runs code in a language."""

    id: int
    name: str
    language: str
    """The name of the language in Pygments."""
    url_template: str
    """A URL template (RFC 6570) with the variable `code`."""


class DefaultChannelGroup(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group of channels that new users can choose."""

    id: int
    name: str
    description: str = ""
    channel_ids: tuple[int, ...] = ()
    """Ascending."""


class OnboardingStep(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An onboarding step that a user has seen."""

    user_id: int
    name: str


class DomainAdded(Change, frozen=True, tag="domain_added"):
    domain: Domain


class DomainChanged(Change, frozen=True, tag="domain_changed"):
    """Whether a domain's subdomains are allowed was changed."""

    domain: Domain


class DomainRemoved(Change, frozen=True, tag="domain_removed"):
    domain_id: int
    name: str


class LinkifierSet(Change, frozen=True, tag="linkifier_set"):
    """A linkifier was added or changed."""

    linkifier: Linkifier


class LinkifierRemoved(Change, frozen=True, tag="linkifier_removed"):
    linkifier_id: int


class LinkifiersOrdered(Change, frozen=True, tag="linkifiers_ordered"):
    """`linkifier_ids` has all of them."""

    linkifier_ids: tuple[int, ...]


class PlaygroundAdded(Change, frozen=True, tag="playground_added"):
    playground: Playground


class PlaygroundRemoved(Change, frozen=True, tag="playground_removed"):
    playground_id: int


class DefaultChannelGroupSet(Change, frozen=True, tag="default_channel_group_set"):
    """A default channel group was added or changed."""

    group: DefaultChannelGroup


class DefaultChannelGroupRemoved(Change, frozen=True, tag="default_channel_group_removed"):
    group_id: int


class RealmDefaultsChanged(Change, frozen=True, tag="realm_defaults_changed"):
    """Default settings of new accounts have new values."""

    values: dict[str, Any]


class OnboardingStepTaken(Change, frozen=True, tag="onboarding_step_taken"):
    """A user has seen an onboarding step."""

    user_id: int
    name: str


class RealmCreated(Change, frozen=True, tag="realm_created"):
    """The organization was founded, with its system groups and bots."""

    realm: Realm
    groups: tuple[UserGroup, ...]
    bots: tuple[User, ...]


class RealmChanged(Change, frozen=True, tag="realm_changed"):
    """Settings of the organization have new values.

    `gained` and `lost` are only in entries of version 0.1.0, which had no `UserVisibilityChanged`:
    accounts that became visible or invisible to guests, by guest.
    """

    values: dict[str, Any]
    gained: dict[int, tuple[int, ...]] = {}
    lost: dict[int, tuple[int, ...]] = {}


class RealmDeactivated(Change, frozen=True, tag="realm_deactivated"):
    pass


class RealmReactivated(Change, frozen=True, tag="realm_reactivated"):
    pass
