"""The facts an organization's history is made of.

A change is in the past tense and complete: folding it needs nothing but the state before it, and
showing it later needs nothing that cannot be derived any more (who gained or lost sight of a
channel is written down, because nobody can tell afterwards).
"""

from typing import Any

from msgspec import Struct

from tertulia.model.channels import Channel
from tertulia.model.groups import UserGroup
from tertulia.model.messages import DirectConversation, Flag, Message
from tertulia.model.realm import Realm
from tertulia.model.users import Credential, PersonalSettings, User


class Change(Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """The base of all changes."""


class RealmCreated(Change, frozen=True, tag="realm_created"):
    """The organization began, with its system groups and the server's own bots."""

    realm: Realm
    groups: tuple[UserGroup, ...]
    bots: tuple[User, ...]


class RealmChanged(Change, frozen=True, tag="realm_changed"):
    """Settings of the organization have new values."""

    values: dict[str, Any]


class UserCreated(Change, frozen=True, tag="user_created"):
    """An account exists. `group_ids` are the system groups that it is in."""

    user: User
    credential: Credential
    settings: PersonalSettings
    group_ids: tuple[int, ...] = ()


class UserChanged(Change, frozen=True, tag="user_changed"):
    """The named fields of an account (`full_name`, `role`, `address`, `timezone`, …) are new.

    `was` holds the values before. A new role takes the account out of the system groups `left`
    and into `joined`; because of it the account can see the channels `gained`, and cannot see the
    channels `lost` any more.
    """

    user_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    left: tuple[int, ...] = ()
    joined: tuple[int, ...] = ()
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()


class Named(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The permission settings that name an account itself, beside groups."""

    channels: tuple[tuple[int, str], ...] = ()
    """Channel and setting."""
    groups: tuple[tuple[int, str], ...] = ()
    """User group and setting."""
    realm: tuple[str, ...] = ()


class UserDeactivated(Change, frozen=True, tag="user_deactivated"):
    """The account cannot be used any more. Its subscriptions and memberships stay, unseen.

    `channel_ids` are the channels it is subscribed to, `group_ids` the groups it is directly in,
    `named` the settings that show it as a holder.
    """

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()


class UserReactivated(Change, frozen=True, tag="user_reactivated"):
    """The account can be used again. The other fields are as in its deactivation."""

    user_id: int
    channel_ids: tuple[int, ...] = ()
    group_ids: tuple[int, ...] = ()
    named: Named = Named()


class CredentialChanged(Change, frozen=True, tag="credential_changed"):
    """A new password or key; the old one is void."""

    credential: Credential


class UserGroupCreated(Change, frozen=True, tag="user_group_created"):
    """A group exists."""

    group: UserGroup


class ChannelCreated(Change, frozen=True, tag="channel_created"):
    """A channel exists, as yet without subscribers."""

    channel: Channel


class ChannelChanged(Change, frozen=True, tag="channel_changed"):
    """The named fields of a channel are new; `was` holds the values before.

    `gained` and `lost` are the users who can see that the channel exists because of this, and
    those who cannot any more. `subscribers` are those of that moment, where somebody gained sight
    of it or it came back from the archive. Archiving is the field `is_archived`, and `archived` is
    what it was before; the three fields of privacy are always named together.
    """

    channel_id: int
    values: dict[str, Any]
    was: dict[str, Any]
    gained: tuple[int, ...] = ()
    lost: tuple[int, ...] = ()
    subscribers: tuple[int, ...] = ()
    archived: bool = False


class Subscribed(Change, frozen=True, tag="subscribed"):
    """Users are subscribed to a channel, each with the color the channel has for them.

    `after` is the newest message they did not receive. `gained` are those of them who could not
    see the channel before. `count` is how many active accounts are subscribed then,
    `archived` whether the channel is archived.
    """

    channel_id: int
    colors: dict[int, str]
    after: int
    gained: tuple[int, ...] = ()
    count: int | None = None
    archived: bool = False

    @property
    def user_ids(self) -> tuple[int, ...]:
        return tuple(self.colors)


class Unsubscribed(Change, frozen=True, tag="unsubscribed"):
    """Users are not subscribed to a channel any more.

    `until` is the last message they received. `lost` are those of them who cannot see the channel
    any more. `name` is the channel's at that moment, `archived` whether it is archived.
    """

    channel_id: int
    user_ids: tuple[int, ...]
    until: int
    lost: tuple[int, ...] = ()
    name: str = ""
    archived: bool = False


class SubscriptionChanged(Change, frozen=True, tag="subscription_changed"):
    """A personal setting of a channel (`color`, `is_muted`, …) has a new value.

    `archived` is whether the channel is archived.
    """

    channel_id: int
    user_id: int
    property: str
    value: bool | str | None
    archived: bool = False


class MessageSent(Change, frozen=True, tag="message_sent"):
    """A message was sent.

    Who received it follows from who was subscribed, or from the conversation. `flags` are the
    sparse ones by user. `new_conversation` is the direct conversation it began, if it did.
    `queue_id` and `local_id` are the sender's echo. The log keeps no second copy of the
    content: read back from it, the message has the content of now, and `gone` says that it has
    been deleted since.
    """

    message: Message
    flags: dict[int, Flag] = {}
    read_by_sender: bool = False
    new_conversation: DirectConversation | None = None
    queue_id: str | None = None
    local_id: str | None = None
    gone: bool = False


class FlagsChanged(Change, frozen=True, tag="flags_changed"):
    """One reader set or cleared a sparse flag on messages.

    `recorded` are those of them to which the reader had no relation before, and has now.
    """

    user_id: int
    message_ids: tuple[int, ...]
    flag: Flag
    added: bool
    recorded: tuple[int, ...] = ()


class MessagesRead(Change, frozen=True, tag="messages_read"):
    """One reader has read messages. `everything` says that it was all there was to read."""

    user_id: int
    message_ids: tuple[int, ...]
    everything: bool = False


class UnreadMessage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a client must know to show a message as unread."""

    id: int
    channel_id: int | None = None
    topic: str = ""
    others: tuple[int, ...] = ()
    """The other people of a direct conversation."""
    mentioned: bool = False


class MessagesUnread(Change, frozen=True, tag="messages_unread"):
    """One reader made messages unread again.

    `recorded` are those to which the reader had no relation before, and has now.
    """

    user_id: int
    messages: tuple[UnreadMessage, ...]
    recorded: tuple[int, ...] = ()


AnyChange = (
    RealmCreated
    | RealmChanged
    | UserCreated
    | UserChanged
    | UserDeactivated
    | UserReactivated
    | CredentialChanged
    | UserGroupCreated
    | ChannelCreated
    | ChannelChanged
    | Subscribed
    | Unsubscribed
    | SubscriptionChanged
    | MessageSent
    | FlagsChanged
    | MessagesRead
    | MessagesUnread
)


class Entry(Struct, frozen=True):
    """A change at its place in the log."""

    seq: int
    """1, 2, 3, … without a gap."""
    at: float
    """UNIX seconds."""
    actor_id: int | None
    """Who did it; None for the server itself."""
    change: AnyChange
