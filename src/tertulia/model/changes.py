"""All changes, and entries of the log.

A change is a fact in the past tense. Folding it needs only the state before it. It may be projected
later, from a later state, so it contains what can't be derived then, such as users who gained or
lost sight of a channel.
"""

from msgspec import Struct

from tertulia.model.agents import AgentKeyMade, AgentKeysEnded, AgentKeyUsed
from tertulia.model.attachments import AttachmentAdded, AttachmentRemoved, FilesDeleted
from tertulia.model.banners import BannerPosted, BannersEnded
from tertulia.model.channels import (
    ChannelChanged,
    ChannelCreated,
    Subscribed,
    SubscriptionChanged,
    Unsubscribed,
)
from tertulia.model.devices import (
    DeviceAdded,
    DeviceRemoved,
    PushSubscribed,
    PushTokenAdded,
    PushTokensRemoved,
    PushUnsubscribed,
)
from tertulia.model.drafts import (
    DraftChanged,
    DraftDeleted,
    DraftsCreated,
    SnippetChanged,
    SnippetCreated,
    SnippetDeleted,
)
from tertulia.model.edits import (
    MessageEdited,
    MessagesDeleted,
    MessagesMoved,
    PreviewsGivenUp,
    TopicMoveEnded,
    TopicMoveStarted,
)
from tertulia.model.feeds import FeedAdded, FeedChanged, FeedRead, FeedRemoved
from tertulia.model.folders import (
    ChannelFolderChanged,
    ChannelFolderCreated,
    ChannelFoldersReordered,
)
from tertulia.model.groups import (
    FullMembersChanged,
    UserGroupChanged,
    UserGroupCreated,
    UserGroupMembersChanged,
)
from tertulia.model.invitations import (
    ConfirmationAsked,
    ConfirmationsEnded,
    InvitationsEnded,
    InvitationSentAgain,
    InvitationsMade,
    InvitationsRedacted,
)
from tertulia.model.messages import (
    FlagsChanged,
    MessageSent,
    MessagesRead,
    MessagesUnread,
    ReadStateImported,
)
from tertulia.model.organization import (
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
    RealmChanged,
    RealmCreated,
    RealmDeactivated,
    RealmDefaultsChanged,
    RealmReactivated,
)
from tertulia.model.personal import (
    AlertWordsChanged,
    NavigationViewAdded,
    NavigationViewChanged,
    NavigationViewRemoved,
    QuietTimesChanged,
    UserMuted,
    UserUnmuted,
)
from tertulia.model.pins import MessagePinned, MessageUnpinned
from tertulia.model.profiles import (
    ProfileChanged,
    ProfileFieldChanged,
    ProfileFieldCreated,
    ProfileFieldDeleted,
    ProfileFieldsOrdered,
    StatusChanged,
)
from tertulia.model.queues import EventIdsUsedUp
from tertulia.model.reactions import (
    CustomEmojiAdded,
    CustomEmojiDeactivated,
    ReactionAdded,
    ReactionRemoved,
    SubmessageAdded,
)
from tertulia.model.scheduled import (
    MessageScheduled,
    ReminderRemoved,
    ReminderSet,
    ScheduledMessageChanged,
    ScheduledMessageRemoved,
)
from tertulia.model.sessions import SessionBegun, SessionConfirmed, SessionsEnded, SessionUsed
from tertulia.model.user_topics import UserTopicChanged
from tertulia.model.users import (
    CredentialChanged,
    SettingsChanged,
    UserChanged,
    UserCreated,
    UserDeactivated,
    UserReactivated,
    UserVisibilityChanged,
)

AnyChange = (
    AttachmentAdded
    | AttachmentRemoved
    | FilesDeleted
    | ChannelCreated
    | ChannelChanged
    | Subscribed
    | Unsubscribed
    | SubscriptionChanged
    | DraftsCreated
    | DraftChanged
    | DraftDeleted
    | SnippetCreated
    | SnippetChanged
    | SnippetDeleted
    | DeviceAdded
    | DeviceRemoved
    | PushTokenAdded
    | PushTokensRemoved
    | MessageEdited
    | MessagesMoved
    | PreviewsGivenUp
    | TopicMoveStarted
    | TopicMoveEnded
    | MessagesDeleted
    | ChannelFolderCreated
    | ChannelFolderChanged
    | ChannelFoldersReordered
    | UserGroupCreated
    | UserGroupChanged
    | UserGroupMembersChanged
    | FullMembersChanged
    | InvitationsMade
    | InvitationsRedacted
    | InvitationSentAgain
    | InvitationsEnded
    | ConfirmationAsked
    | ConfirmationsEnded
    | MessageSent
    | FlagsChanged
    | MessagesRead
    | MessagesUnread
    | ReadStateImported
    | NavigationViewAdded
    | NavigationViewChanged
    | NavigationViewRemoved
    | DomainAdded
    | DomainChanged
    | DomainRemoved
    | LinkifierSet
    | LinkifierRemoved
    | LinkifiersOrdered
    | PlaygroundAdded
    | PlaygroundRemoved
    | DefaultChannelGroupSet
    | DefaultChannelGroupRemoved
    | RealmDefaultsChanged
    | OnboardingStepTaken
    | AlertWordsChanged
    | UserMuted
    | UserUnmuted
    | StatusChanged
    | ProfileFieldCreated
    | ProfileFieldChanged
    | ProfileFieldsOrdered
    | ProfileFieldDeleted
    | ProfileChanged
    | ReactionAdded
    | ReactionRemoved
    | SubmessageAdded
    | CustomEmojiAdded
    | CustomEmojiDeactivated
    | RealmCreated
    | RealmChanged
    | RealmDeactivated
    | RealmReactivated
    | MessageScheduled
    | ScheduledMessageChanged
    | ScheduledMessageRemoved
    | ReminderSet
    | ReminderRemoved
    | UserTopicChanged
    | UserCreated
    | UserChanged
    | UserDeactivated
    | UserReactivated
    | UserVisibilityChanged
    | CredentialChanged
    | SessionBegun
    | SessionConfirmed
    | SessionUsed
    | SessionsEnded
    | AgentKeyMade
    | AgentKeyUsed
    | AgentKeysEnded
    | PushSubscribed
    | PushUnsubscribed
    | QuietTimesChanged
    | FeedAdded
    | FeedChanged
    | FeedRead
    | FeedRemoved
    | BannerPosted
    | BannersEnded
    | MessagePinned
    | MessageUnpinned
    | SettingsChanged
    | EventIdsUsedUp
)

OnMessage = ReactionAdded | ReactionRemoved | SubmessageAdded | MessagePinned | MessageUnpinned
"""Additions to a message, with its `place`. In an entry that is read from the database, `gone` and
`moved_to` say what has happened to the message since."""


class Entry(Struct, frozen=True):
    """A change with its sequence number in the log."""

    seq: int
    """1, 2, 3, … without gaps."""
    at: float
    """UNIX seconds."""
    actor_id: int | None
    """None for the server itself."""
    change: AnyChange
