"""The facts an organization's history is made of, by noun.

A change is in the past tense and complete: folding it needs nothing but the state before it, and
showing it later needs nothing that cannot be derived any more (who gained or lost sight of a
channel is written down, because nobody can tell afterwards).
"""

from msgspec import Struct

from tertulia.model.changes.attachments import AttachmentAdded, AttachmentRemoved, FilesDeleted
from tertulia.model.changes.base import Change
from tertulia.model.changes.channels import (
    ChannelChanged,
    ChannelCreated,
    Subscribed,
    SubscriptionChanged,
    Unsubscribed,
)
from tertulia.model.changes.composing import (
    DraftChanged,
    DraftDeleted,
    DraftsCreated,
    SnippetChanged,
    SnippetCreated,
    SnippetDeleted,
)
from tertulia.model.changes.devices import (
    DeviceAdded,
    DeviceRemoved,
    PushTokenAdded,
    PushTokensRemoved,
)
from tertulia.model.changes.editing import MessageEdited, MessagesDeleted, MessagesMoved
from tertulia.model.changes.folders import (
    ChannelFolderChanged,
    ChannelFolderCreated,
    ChannelFoldersReordered,
)
from tertulia.model.changes.groups import (
    ChannelSight,
    FullMembersChanged,
    UserGroupChanged,
    UserGroupCreated,
    UserGroupMembersChanged,
)
from tertulia.model.changes.messages import (
    FlagsChanged,
    MessageSent,
    MessagesRead,
    MessagesUnread,
    UnreadMessage,
)
from tertulia.model.changes.navigation import (
    NavigationViewAdded,
    NavigationViewChanged,
    NavigationViewRemoved,
)
from tertulia.model.changes.realm import RealmChanged, RealmCreated
from tertulia.model.changes.scheduled import (
    MessageScheduled,
    ReminderRemoved,
    ReminderSet,
    ScheduledMessageChanged,
    ScheduledMessageRemoved,
)
from tertulia.model.changes.user_topics import UserTopicChanged
from tertulia.model.changes.users import (
    CredentialChanged,
    Named,
    UserChanged,
    UserCreated,
    UserDeactivated,
    UserReactivated,
)

__all__ = [
    "AnyChange",
    "AttachmentAdded",
    "AttachmentRemoved",
    "Change",
    "ChannelChanged",
    "ChannelCreated",
    "ChannelFolderChanged",
    "ChannelFolderCreated",
    "ChannelFoldersReordered",
    "ChannelSight",
    "CredentialChanged",
    "DeviceAdded",
    "DeviceRemoved",
    "DraftChanged",
    "DraftDeleted",
    "DraftsCreated",
    "Entry",
    "FilesDeleted",
    "FlagsChanged",
    "FullMembersChanged",
    "MessageEdited",
    "MessageScheduled",
    "MessageSent",
    "MessagesDeleted",
    "MessagesMoved",
    "MessagesRead",
    "MessagesUnread",
    "Named",
    "NavigationViewAdded",
    "NavigationViewChanged",
    "NavigationViewRemoved",
    "PushTokenAdded",
    "PushTokensRemoved",
    "RealmChanged",
    "RealmCreated",
    "ReminderRemoved",
    "ReminderSet",
    "ScheduledMessageChanged",
    "ScheduledMessageRemoved",
    "SnippetChanged",
    "SnippetCreated",
    "SnippetDeleted",
    "Subscribed",
    "SubscriptionChanged",
    "UnreadMessage",
    "Unsubscribed",
    "UserChanged",
    "UserCreated",
    "UserDeactivated",
    "UserGroupChanged",
    "UserGroupCreated",
    "UserGroupMembersChanged",
    "UserReactivated",
    "UserTopicChanged",
]

AnyChange = (
    RealmCreated
    | RealmChanged
    | UserCreated
    | UserChanged
    | UserDeactivated
    | UserReactivated
    | CredentialChanged
    | UserGroupCreated
    | UserGroupChanged
    | UserGroupMembersChanged
    | FullMembersChanged
    | ChannelCreated
    | ChannelChanged
    | Subscribed
    | Unsubscribed
    | SubscriptionChanged
    | MessageSent
    | FlagsChanged
    | MessagesRead
    | MessagesUnread
    | DraftsCreated
    | DraftChanged
    | DraftDeleted
    | SnippetCreated
    | SnippetChanged
    | SnippetDeleted
    | MessageScheduled
    | ScheduledMessageChanged
    | ScheduledMessageRemoved
    | ReminderSet
    | ReminderRemoved
    | NavigationViewAdded
    | NavigationViewChanged
    | NavigationViewRemoved
    | DeviceAdded
    | DeviceRemoved
    | PushTokenAdded
    | PushTokensRemoved
    | MessageEdited
    | MessagesMoved
    | MessagesDeleted
    | ChannelFolderCreated
    | ChannelFolderChanged
    | ChannelFoldersReordered
    | UserTopicChanged
    | AttachmentAdded
    | AttachmentRemoved
    | FilesDeleted
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
