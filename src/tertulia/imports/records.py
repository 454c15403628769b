"""What every source of an import yields, in terms that don't depend on the other server.

A `Key` identifies a record within its source. If the source keeps IDs (`Source.keeps_ids`), integer
keys become the IDs here, unless they are taken. Texts are Markdown as Tertulia has it: the source
has converted formatting, and has written mentions and links with `tertulia.imports.references`, or
by the names that people and channels have here.
"""

from collections.abc import Mapping
from typing import Any

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
    """Who has a permission: people and groups. A system group has its name, such as
    `role:members`, as key."""

    people: tuple[Key, ...] = ()
    groups: tuple[Key, ...] = ()


class SourceFile(Struct, frozen=True, kw_only=True):
    """A file of the source. `place` is what `Source.open` takes: a path in the export, or a URL."""

    place: str
    name: str = ""
    media_type: str = ""
    size: int = 0
    """Bytes; 0 if unknown."""


class SourceBot(Struct, frozen=True, kw_only=True):
    kind: BotKind = BotKind.GENERIC
    owner: Key | None = None
    service_url: str = ""
    """Of an outgoing webhook."""
    service_is_slack: bool = False
    program: str = ""
    """Of an embedded bot."""
    default_channel: Key | None = None
    default_events_channel: Key | None = None
    default_all_public_channels: bool = False
    token: str = ""
    """What identifies this server to the service; a new one if it's empty."""
    config: Mapping[str, str] = {}
    """Settings of an embedded bot's program."""
    storage: Mapping[str, str] = {}


class SourceStatus(Struct, frozen=True, kw_only=True):
    text: str = ""
    emoji: str = ""
    """Name of an emoji."""
    kind: EmojiKind = EmojiKind.UNICODE
    code: str = ""
    """As in `Reaction`; the key of a custom emoji. Empty if only the name is known."""


class SourceUser(Struct, frozen=True, kw_only=True):
    """A person or bot."""

    key: Key
    full_name: str
    address: str = ""
    """Empty if unknown: the account gets an address that can't receive mail."""
    role: Role = Role.MEMBER
    is_active: bool = True
    is_placeholder: bool = False
    """Whether the account only stands for someone whose data didn't come along."""
    joined_at: UnixSeconds = 0
    timezone: str = ""
    avatar: SourceFile | None = None
    uses_gravatar: bool = False
    """Without an avatar: whether clients show the address's Gravatar."""
    bot: SourceBot | None = None
    settings: Mapping[str, Any] = {}
    """Personal settings by their names in `PersonalSettings`. Unknown ones are reported."""
    profile: Mapping[Key, str] = {}
    """Values by profile field. For a PEOPLE field, keys as a JSON list."""
    alert_words: tuple[str, ...] = ()
    muted: Mapping[Key, UnixSeconds] = {}
    """Other people, and since when; 0 if that is unknown."""
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
    """By the fields of `UserGroup`, such as `can_mention_group`."""


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
    """By the fields of `Channel`, such as `can_send_message_group`."""


class SourceSubscription(Struct, frozen=True, kw_only=True):
    """A subscription, present or past."""

    channel: Key
    user: Key
    spans: tuple[tuple[int, int | None], ...] = ((0, None),)
    """As in `Subscription`, by the source's message IDs. Sources without message IDs have one span
    from 0, open if it's present. Only messages in the spans count as received."""
    color: str = ""
    is_muted: bool = False
    pin_to_top: bool = False
    settings: Mapping[str, bool | None] = {}
    """`desktop_notifications`, … by their names in `Subscription`."""


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
    """`ProfileField`'s other fields, by name (`choices`, `account`, `url_pattern`, …)."""


class SourceLinkifier(Struct, frozen=True, kw_only=True):
    key: Key
    pattern: str
    url_template: str
    order: int = 0
    data: Mapping[str, Any] = {}
    """`Linkifier`'s other fields, by name."""


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
    """A scheduled message that wasn't sent yet."""

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
    """An open invitation of an address."""

    address: str
    inviter: Key
    role: Role = Role.MEMBER
    channels: tuple[Key, ...] = ()
    expires_at: UnixSeconds | None = None


class SourceAttachment(Struct, frozen=True, kw_only=True):
    """An uploaded file that messages link as `/user_uploads/PATH`. The path stays, so links and
    bots go on working."""

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
    """Everything but messages. It's held in memory."""

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
    """Files that no message links, but drafts or scheduled messages do."""


class SourceReaction(Struct, frozen=True):
    user: Key
    kind: EmojiKind
    code: str
    """As in `Reaction`; the key of a custom emoji."""
    name: str


class SourceNames(Struct, frozen=True, kw_only=True):
    """What a text mentioned and linked when it was written, as it called them: people, groups, and
    channels may have other names now. A group of a role has its key or 0."""

    users: tuple[tuple[str, Key], ...] = ()
    groups: tuple[tuple[str, Key], ...] = ()
    channels: tuple[tuple[str, Key], ...] = ()
    emoji: tuple[str, ...] = ()
    """Custom ones."""


class SourceEdit(Struct, frozen=True, kw_only=True):
    """An edit of a message: the values before. A field that didn't change is None. If all are, the
    text was edited, and the previous one isn't known."""

    at: UnixSeconds
    user: Key | None
    was_content: str | None = None
    was_names: SourceNames | None = None
    """As `SourceMessage.names`."""
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
    """A reminder of a message that wasn't delivered yet."""

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
    """Of a direct message: everyone in the conversation, the sender among them."""
    content: str
    names: SourceNames | None = None
    """What the names in the content meant; None for what they mean here now."""
    client: str = ""
    edits: tuple[SourceEdit, ...] = ()
    """Oldest first."""
    reactions: tuple[SourceReaction, ...] = ()
    submessages: tuple[SourceSubmessage, ...] | None = None
    """None if the source doesn't tell: polls and to-do lists then begin as the content says."""
    flags: Mapping[Key, Flag] = {}
    """Sparse flags by user: starred, mentioned, …"""
    flags_wildcards: bool = False
    """Whether `flags` has everyone whom a mention of the whole channel reached."""
    unread_by: tuple[Key, ...] = ()
    """Recipients who haven't read it. Everyone else has."""
    attachments: tuple[SourceAttachment, ...] = ()
    """Files that it links. Those that earlier messages brought along may be left out if their
    owner is the sender."""
    has_attachment: bool = False
    """Whether it linked files that are gone."""
    is_pinned: bool = False
    reminders: tuple[SourceReminder, ...] = ()
    is_linked: bool = False
    """Whether a later message may link it by `references.message_url`."""
