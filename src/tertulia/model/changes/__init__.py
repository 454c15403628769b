"""The facts an organization's history is made of, by noun.

A change is in the past tense and complete: folding it needs nothing but the state before it, and
showing it later needs nothing that cannot be derived any more (who gained or lost sight of a
channel is written down, because nobody can tell afterwards).
"""

from msgspec import Struct

from tertulia.model.changes.base import Change
from tertulia.model.changes.channels import (
    ChannelChanged,
    ChannelCreated,
    Subscribed,
    SubscriptionChanged,
    Unsubscribed,
)
from tertulia.model.changes.folders import (
    ChannelFolderChanged,
    ChannelFolderCreated,
    ChannelFoldersReordered,
)
from tertulia.model.changes.groups import UserGroupCreated
from tertulia.model.changes.invitations import (
    ConfirmationAsked,
    ConfirmationsEnded,
    InvitationsEnded,
    InvitationSentAgain,
    InvitationsMade,
)
from tertulia.model.changes.messages import (
    FlagsChanged,
    MessageSent,
    MessagesRead,
    MessagesUnread,
    UnreadMessage,
)
from tertulia.model.changes.organization import (
    DefaultChannelGroupRemoved,
    DefaultChannelGroupSet,
    DomainAdded,
    DomainChanged,
    DomainRemoved,
    LinkifierRemoved,
    LinkifierSet,
    LinkifiersOrdered,
    OnboardingStepTaken,
    PlaygroundAdded,
    PlaygroundRemoved,
    RealmDefaultsChanged,
)
from tertulia.model.changes.profiles import (
    ProfileChanged,
    ProfileFieldChanged,
    ProfileFieldCreated,
    ProfileFieldDeleted,
    ProfileFieldsOrdered,
    StatusChanged,
)
from tertulia.model.changes.realm import (
    RealmChanged,
    RealmCreated,
    RealmDeactivated,
    RealmReactivated,
)
from tertulia.model.changes.user_topics import UserTopicChanged
from tertulia.model.changes.users import (
    CredentialChanged,
    Named,
    SettingsChanged,
    UserChanged,
    UserCreated,
    UserDeactivated,
    UserReactivated,
)

__all__ = [
    "AnyChange",
    "Change",
    "ChannelChanged",
    "ChannelCreated",
    "ChannelFolderChanged",
    "ChannelFolderCreated",
    "ChannelFoldersReordered",
    "ConfirmationAsked",
    "ConfirmationsEnded",
    "CredentialChanged",
    "DefaultChannelGroupRemoved",
    "DefaultChannelGroupSet",
    "DomainAdded",
    "DomainChanged",
    "DomainRemoved",
    "Entry",
    "FlagsChanged",
    "InvitationSentAgain",
    "InvitationsEnded",
    "InvitationsMade",
    "LinkifierRemoved",
    "LinkifierSet",
    "LinkifiersOrdered",
    "MessageSent",
    "MessagesRead",
    "MessagesUnread",
    "Named",
    "OnboardingStepTaken",
    "PlaygroundAdded",
    "PlaygroundRemoved",
    "ProfileChanged",
    "ProfileFieldChanged",
    "ProfileFieldCreated",
    "ProfileFieldDeleted",
    "ProfileFieldsOrdered",
    "RealmChanged",
    "RealmCreated",
    "RealmDeactivated",
    "RealmDefaultsChanged",
    "RealmReactivated",
    "SettingsChanged",
    "StatusChanged",
    "Subscribed",
    "SubscriptionChanged",
    "UnreadMessage",
    "Unsubscribed",
    "UserChanged",
    "UserCreated",
    "UserDeactivated",
    "UserGroupCreated",
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
    | SettingsChanged
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
    | ChannelFolderCreated
    | ChannelFolderChanged
    | ChannelFoldersReordered
    | UserTopicChanged
    | StatusChanged
    | ProfileFieldCreated
    | ProfileFieldChanged
    | ProfileFieldsOrdered
    | ProfileFieldDeleted
    | ProfileChanged
    | DefaultChannelGroupRemoved
    | DefaultChannelGroupSet
    | DomainAdded
    | DomainChanged
    | DomainRemoved
    | LinkifierRemoved
    | LinkifierSet
    | LinkifiersOrdered
    | OnboardingStepTaken
    | PlaygroundAdded
    | PlaygroundRemoved
    | RealmDefaultsChanged
    | RealmDeactivated
    | RealmReactivated
    | InvitationsMade
    | InvitationSentAgain
    | InvitationsEnded
    | ConfirmationAsked
    | ConfirmationsEnded
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
