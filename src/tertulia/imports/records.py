"""The records that every source of an import yields, independent of the other server.

A `Key` identifies a record within its source. If the source keeps IDs (`Source.keeps_ids`), integer
keys become the IDs here unless they're taken. Texts are Tertulia's Markdown: the source has
converted formatting, and has written mentions and links with `tertulia.imports.references` or with
the names that people and channels have here.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from tertulia.model.channels import TopicsPolicy
from tertulia.model.drafts import DraftKind
from tertulia.model.messages import Flag
from tertulia.model.numbers import UnixSeconds
from tertulia.model.profiles import FieldKind
from tertulia.model.reactions import EmojiKind
from tertulia.model.user_topics import Visibility
from tertulia.model.users import BotKind, Role

Key = int | str
"""Identifies a record within its source."""


class Holders(Struct, frozen=True):
    """The people and groups that hold a permission. The key of a system group is its name, such as
    `role:members`."""

    people: tuple[Key, ...] = ()
    groups: tuple[Key, ...] = ()


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of the source. `place` is the argument of `Source.open`: a path in the export, or a
    URL."""

    place: str
    name: str = ""
    media_type: str = ""
    size: int = 0
    """Bytes; 0 if unknown."""


class SourceBot(Struct, frozen=True, kw_only=True):
    kind: BotKind = BotKind.GENERIC
    owner: Key | None = None
    service_url: str = ""
    """Only for outgoing webhook bots."""
    service_is_slack: bool = False
    program: str = ""
    """Only for embedded bots."""
    default_channel: Key | None = None
    default_events_channel: Key | None = None
    default_all_public_channels: bool = False
    token: str = ""
    """The token that identifies this server to the service. If it's empty, a new one is created."""
    config: Mapping[str, str] = {}
    """Settings of an embedded bot's program."""
    storage: Mapping[str, str] = {}


class SourceStatus(Struct, frozen=True, kw_only=True):
    text: str = ""
    emoji: str = ""
    """The name of an emoji."""
    kind: EmojiKind = EmojiKind.UNICODE
    code: str = ""
    """As in `Reaction`; the key of a custom emoji. Empty if only the name is known."""


class SourceUser(Struct, frozen=True, kw_only=True):
    """A person or bot."""

    key: Key
    full_name: str
    address: str = ""
    """Empty if unknown. The account then gets an address that can't receive email."""
    role: Role = Role.MEMBER
    is_active: bool = True
    is_placeholder: bool = False
    """Whether the account only stands for someone whose data wasn't imported."""
    joined_at: UnixSeconds = 0
    timezone: str = ""
    avatar: SourceFile | None = None
    uses_gravatar: bool = False
    """Whether clients show the address's Gravatar if there's no avatar."""
    bot: SourceBot | None = None
    settings: Mapping[str, Any] = {}
    """Personal settings by their names in `PersonalSettings`. Unknown ones are reported."""
    profile: Mapping[Key, str] = {}
    """Values by profile field. For a PEOPLE field, keys as a JSON list."""
    alert_words: tuple[str, ...] = ()
    muted: Mapping[Key, UnixSeconds] = {}
    """The muted people, and the time since when; 0 if that isn't known."""
    status: SourceStatus | None = None
    onboarding_steps: tuple[str, ...] = ()
    invitable: bool = True
    """Whether the address may be invited to set a password."""


class SourceGroup(Struct, frozen=True, kw_only=True):
    """A named user group, not a system group."""

    key: Key
    name: str
    description: str = ""
    created_at: UnixSeconds | None = None
    creator: Key | None = None
    members: tuple[Key, ...] = ()
    subgroups: tuple[Key, ...] = ()
    """Keys of groups, or names of system groups."""
    deactivated: bool = False
    permissions: Mapping[str, Holders] = {}
    """Permissions by field of `UserGroup`, such as `can_mention_group`."""


class SourceFolder(Struct, frozen=True, kw_only=True):
    key: Key
    name: str
    description: str = ""
    order: int = 0
    created_at: UnixSeconds | None = None
    creator: Key | None = None
    is_archived: bool = False


class SourceChannel(Struct, frozen=True, kw_only=True):
    key: Key
    name: str
    description: str = ""
    created_at: UnixSeconds = 0
    creator: Key | None = None
    is_private: bool = False
    is_web_public: bool = False
    is_archived: bool = False
    is_default: bool = False
    history_public: bool = True
    retention_days: int | None = None
    topics_policy: TopicsPolicy = TopicsPolicy.INHERIT
    folder: Key | None = None
    permissions: Mapping[str, Holders] = {}
    """Permissions by field of `Channel`, such as `can_send_message_group`."""


NO_SETTINGS: Final[Mapping[str, bool | None]] = {}
"""The settings of most subscriptions: one object, to save memory."""


class SourceSubscription(Struct, frozen=True, kw_only=True):
    """A subscription, present or past."""

    channel: Key
    user: Key
    spans: tuple[tuple[int, int | None], ...] = ((0, None),)
    """As in `Subscription`, but with the source's message IDs. Sources without message IDs have one
    span from 0, which is open if the subscription is present. Only messages in the spans count as
    received."""
    color: str = ""
    is_muted: bool = False
    pin_to_top: bool = False
    settings: Mapping[str, bool | None] = {}
    """Settings by their names in `Subscription`, such as `desktop_notifications`."""


class SourceEmoji(Struct, frozen=True, kw_only=True):
    key: Key
    name: str
    file: SourceFile
    author: Key | None = None
    deactivated: bool = False


class SourceProfileField(Struct, frozen=True, kw_only=True):
    key: Key
    kind: FieldKind
    name: str
    hint: str = ""
    order: int = 0
    data: Mapping[str, Any] = {}
    """The other fields of `ProfileField`, by name (`choices`, `account`, `url_pattern`, …)."""


class SourceLinkifier(Struct, frozen=True, kw_only=True):
    key: Key
    pattern: str
    url_template: str
    order: int = 0
    data: Mapping[str, Any] = {}
    """The other fields of `Linkifier`, by name."""


class SourcePlayground(Struct, frozen=True, kw_only=True):
    key: Key
    name: str
    language: str
    url_template: str


class SourceDraft(Struct, frozen=True, kw_only=True):
    key: Key
    user: Key
    kind: DraftKind = DraftKind.NOTHING
    to: tuple[Key, ...] = ()
    topic: str = ""
    content: str = ""
    edited_at: UnixSeconds = 0


class SourceSnippet(Struct, frozen=True, kw_only=True):
    key: Key
    user: Key
    title: str
    content: str
    created_at: UnixSeconds = 0


class SourceView(Struct, frozen=True, kw_only=True):
    """A view in the navigation of its user."""

    key: Key
    user: Key
    fragment: str
    is_pinned: bool = False
    name: str | None = None
    """None for built-in views."""


class SourceScheduled(Struct, frozen=True, kw_only=True):
    """A scheduled message that isn't sent yet."""

    key: Key
    user: Key
    channel: Key | None = None
    topic: str = ""
    people: tuple[Key, ...] = ()
    content: str
    deliver_at: UnixSeconds
    client: str = ""
    read_by_sender: bool = False
    failed: bool = False


class SourceUserTopic(Struct, frozen=True, kw_only=True):
    user: Key
    channel: Key
    topic: str
    visibility: Visibility
    changed_at: UnixSeconds = 0


class SourceInvitation(Struct, frozen=True, kw_only=True):
    """An open invitation of an email address."""

    address: str
    inviter: Key
    role: Role = Role.MEMBER
    channels: tuple[Key, ...] = ()
    expires_at: UnixSeconds | None = None


class SourceAttachment(Struct, frozen=True, kw_only=True):
    """An uploaded file that messages link as `/user_uploads/PATH`. The path stays, so links and
    bots keep working."""

    key: Key
    owner: Key
    path: str
    """`realm/two digits/key/name`. Sources that convert links make one up with
    `attachments.new_path`."""
    file: SourceFile
    created_at: UnixSeconds = 0
    otherwise: str = ""
    """The URL that messages link instead if the file isn't available."""


class SourceOrganization(Struct, frozen=True, kw_only=True):
    """Everything except messages, held in memory."""

    name: str
    description: str = ""
    created_at: UnixSeconds = 0
    settings: Mapping[str, Any] = {}
    """Settings by their names in `Realm`; permissions as `Holders`, channels as keys. Unknown ones
    are reported."""
    user_defaults: Mapping[str, Any] = {}
    """Default personal settings of new accounts."""
    icon: SourceFile | None = None
    logo: SourceFile | None = None
    night_logo: SourceFile | None = None
    domains: tuple[tuple[str, bool], ...] = ()
    """Email domains, and whether subdomains are allowed."""
    users: tuple[SourceUser, ...] = ()
    system_bots: Mapping[Key, str] = {}
    """Keys of the other server's own bots: `notification`, `welcome`, or `email`."""
    groups: tuple[SourceGroup, ...] = ()
    folders: tuple[SourceFolder, ...] = ()
    channels: tuple[SourceChannel, ...] = ()
    subscriptions: tuple[SourceSubscription, ...] = ()
    emoji: tuple[SourceEmoji, ...] = ()
    profile_fields: tuple[SourceProfileField, ...] = ()
    linkifiers: tuple[SourceLinkifier, ...] = ()
    playgrounds: tuple[SourcePlayground, ...] = ()
    drafts: tuple[SourceDraft, ...] = ()
    snippets: tuple[SourceSnippet, ...] = ()
    scheduled: tuple[SourceScheduled, ...] = ()
    user_topics: tuple[SourceUserTopic, ...] = ()
    invitations: tuple[SourceInvitation, ...] = ()
    views: tuple[SourceView, ...] = ()
    attachments: tuple[SourceAttachment, ...] = ()
    """Files that drafts or scheduled messages link, but no messages do."""


MAX_REACTIONS: Final = 10_000
"""The most reactions that are imported for one message."""


class SourceReaction(Struct, frozen=True):
    user: Key
    kind: EmojiKind
    code: str
    """As in `Reaction`; the key of a custom emoji."""
    name: str


class SourceNames(Struct, frozen=True, kw_only=True):
    """The people, groups, and channels that a text mentioned and linked when it was written, by
    their names at that time. A group for a role has its key or 0."""

    users: tuple[tuple[str, Key], ...] = ()
    groups: tuple[tuple[str, Key], ...] = ()
    channels: tuple[tuple[str, Key], ...] = ()
    emoji: tuple[str, ...] = ()
    """Custom emoji."""


class SourceEdit(Struct, frozen=True, kw_only=True):
    """An edit of a message, with the previous values. A field that didn't change is None. If all
    fields are None, the text was edited, but the previous one isn't known."""

    at: UnixSeconds
    user: Key | None
    was_content: str | None = None
    was_names: SourceNames | None = None
    """The names in the previous content, as in `SourceMessage.names`."""
    was_topic: str | None = None
    topic: str | None = None
    was_channel: Key | None = None
    channel: Key | None = None


class SourceSubmessage(Struct, frozen=True):
    user: Key
    kind: str
    content: str
    """JSON text."""


class SourceReminder(Struct, frozen=True, kw_only=True):
    """A reminder of a message that isn't delivered yet."""

    user: Key
    note: str = ""
    content: str
    """The reminder's text."""
    deliver_at: UnixSeconds


class SourceMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A message, in a channel or between people."""

    key: Key
    """If the source keeps IDs: an integer, ascending from message to message."""
    sender: Key
    sent_at: UnixSeconds
    channel: Key | None = None
    topic: str = ""
    people: tuple[Key, ...] = ()
    """Everyone in the conversation of a direct message, including the sender."""
    content: str
    names: SourceNames | None = None
    """What the names in the content referred to when it was written; None for what they refer to
    here now."""
    client: str = ""
    edits: tuple[SourceEdit, ...] = ()
    """Oldest first."""
    reactions: tuple[SourceReaction, ...] = ()
    submessages: tuple[SourceSubmessage, ...] | None = None
    """None if the source doesn't have them. Polls and to-do lists then start as their content
    says."""
    flags: Mapping[Key, Flag] = {}
    """Sparse flags by user: starred, mentioned, …"""
    flags_wildcards: bool = False
    """Whether `flags` has everyone whom a mention of the whole channel reached."""
    unread_by: tuple[Key, ...] = ()
    """Recipients who haven't read it. Everyone else has."""
    attachments: tuple[SourceAttachment, ...] = ()
    """The files that the message links. Files of earlier messages may be left out if the sender
    owns them."""
    has_attachment: bool = False
    """Whether the message linked files that no longer exist."""
    is_pinned: bool = False
    reminders: tuple[SourceReminder, ...] = ()
    is_linked: bool = False
    """Whether a later message may link it by `references.message_url`."""
