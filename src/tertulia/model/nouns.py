"""The nouns of an organization's state. The database's tables and the state's tables in memory are
derived from this list."""

from typing import Any, NamedTuple

from msgspec import Struct

from tertulia.model.access_keys import AccessKey
from tertulia.model.attachments import Attachment, AttachmentMessage, RemovedFile
from tertulia.model.banners import Banner
from tertulia.model.call_accounts import CallAccount
from tertulia.model.channels import Channel, Subscription, Topic
from tertulia.model.devices import Device, PushSubscription, PushToken
from tertulia.model.drafts import SavedDraft, Snippet
from tertulia.model.edits import TopicMove
from tertulia.model.exports import DataExport
from tertulia.model.feeds import Feed
from tertulia.model.folders import ChannelFolder
from tertulia.model.groups import UserGroup
from tertulia.model.identities import Identity
from tertulia.model.imports import DataImport
from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.messages import DirectConversation, PendingPreview
from tertulia.model.numbers import Counter
from tertulia.model.organization import (
    DefaultChannelGroup,
    Domain,
    Linkifier,
    OnboardingStep,
    Playground,
    Realm,
)
from tertulia.model.personal import AlertWords, MutedUser, NavigationView, QuietTimes
from tertulia.model.pins import Pin
from tertulia.model.profiles import ProfileField, ProfileValue, UserStatus
from tertulia.model.reactions import CustomEmoji
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.second_factors import RecoveryCodes, SecondFactor
from tertulia.model.sessions import Session
from tertulia.model.user_topics import UserTopic
from tertulia.model.users import Credential, PersonalSettings, User

Key = Any
"""A noun's key: an int, or a tuple if it has several fields."""


class Noun(NamedTuple):
    """A kind of record: its table's name, its type, and its key fields."""

    table: str
    type: type[Struct]
    key: tuple[str, ...]
    removable: bool = False
    """Whether records can be removed. The IDs of removed records are never reused."""

    def key_of(self, record: Any) -> Key:
        if len(self.key) == 1:
            return getattr(record, self.key[0])
        return tuple(getattr(record, field) for field in self.key)


NOUNS: tuple[Noun, ...] = (
    Noun("realm", Realm, ("id",)),
    Noun("users", User, ("id",)),
    Noun("credentials", Credential, ("user_id",)),
    Noun("personal_settings", PersonalSettings, ("user_id",)),
    Noun("user_groups", UserGroup, ("id",)),
    Noun("channels", Channel, ("id",)),
    Noun("subscriptions", Subscription, ("channel_id", "user_id")),
    Noun("topics", Topic, ("channel_id", "key")),
    Noun("direct_conversations", DirectConversation, ("id",)),
    Noun("invitations", Invitation, ("id",)),
    Noun("confirmations", Confirmation, ("id",), removable=True),
    Noun("custom_emoji", CustomEmoji, ("id",)),
    Noun("alert_words", AlertWords, ("user_id",)),
    Noun("muted_users", MutedUser, ("user_id", "muted_id")),
    Noun("counters", Counter, ("name",)),
    Noun("channel_folders", ChannelFolder, ("id",)),
    Noun("user_topics", UserTopic, ("user_id", "channel_id", "key")),
    Noun("user_statuses", UserStatus, ("user_id",)),
    Noun("profile_fields", ProfileField, ("id",), removable=True),
    Noun("profile_values", ProfileValue, ("user_id", "field_id")),
    Noun("drafts", SavedDraft, ("id",), removable=True),
    Noun("snippets", Snippet, ("id",), removable=True),
    Noun("scheduled_messages", ScheduledMessage, ("id",), removable=True),
    Noun("reminders", Reminder, ("id",), removable=True),
    Noun("navigation_views", NavigationView, ("id",), removable=True),
    Noun("devices", Device, ("id",), removable=True),
    Noun("push_tokens", PushToken, ("id",), removable=True),
    Noun("attachments", Attachment, ("id",), removable=True),
    Noun("attachment_messages", AttachmentMessage, ("attachment_id", "message_id")),
    Noun("removed_files", RemovedFile, ("id",)),
    Noun("domains", Domain, ("id",), removable=True),
    Noun("linkifiers", Linkifier, ("id",), removable=True),
    Noun("playgrounds", Playground, ("id",), removable=True),
    Noun("default_channel_groups", DefaultChannelGroup, ("id",), removable=True),
    Noun("onboarding_steps", OnboardingStep, ("user_id", "name")),
    Noun("sessions", Session, ("id",), removable=True),
    Noun("pending_previews", PendingPreview, ("message_id",)),
    Noun("agent_keys", AccessKey, ("id",), removable=True),
    Noun("push_subscriptions", PushSubscription, ("id",), removable=True),
    Noun("feeds", Feed, ("id",), removable=True),
    Noun("banners", Banner, ("id",), removable=True),
    Noun("quiet_times", QuietTimes, ("user_id",)),
    Noun("pins", Pin, ("message_id",)),
    Noun("topic_moves", TopicMove, ("id",), removable=True),
    Noun("data_exports", DataExport, ("id",), removable=True),
    Noun("identities", Identity, ("id",), removable=True),
    Noun("second_factors", SecondFactor, ("id",), removable=True),
    Noun("recovery_codes", RecoveryCodes, ("user_id",)),
    Noun("data_imports", DataImport, ("id",), removable=True),
    Noun("call_accounts", CallAccount, ("user_id",)),
)
