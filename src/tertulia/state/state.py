"""One organization in memory: its tables, and the indexes that questions are answered from."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from tertulia.model.attachments import Attachment, AttachmentMessage, RemovedFile
from tertulia.model.banners import Banner
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel, Subscription
from tertulia.model.devices import Device, PushToken
from tertulia.model.drafts import SavedDraft, Snippet
from tertulia.model.edits import TopicMove
from tertulia.model.folders import ChannelFolder
from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.messages import PendingPreview, Placed
from tertulia.model.navigation import NavigationView
from tertulia.model.nouns import NOUNS, Key
from tertulia.model.numbers import Counter
from tertulia.model.organization import (
    DefaultChannelGroup,
    Domain,
    Linkifier,
    OnboardingStep,
    Playground,
    Realm,
)
from tertulia.model.personal import AlertWords, QuietTimes
from tertulia.model.profiles import ProfileField
from tertulia.model.user_topics import Visibility
from tertulia.model.users import PersonalSettings, User
from tertulia.state.attachments import AttachmentIndex
from tertulia.state.channels import (
    ActiveSubscribers,
    ChannelShards,
    ChannelTable,
    SubscriptionTable,
    TopicTable,
)
from tertulia.state.contacts import Contacts
from tertulia.state.feeds import FeedTable
from tertulia.state.groups import GroupTable, Memberships
from tertulia.state.idempotency import SentMessages
from tertulia.state.messages import DirectConversationTable
from tertulia.state.notification_choices import ChannelChoices, PersonalChoices, TopicChoices
from tertulia.state.personal import (
    AlertWordIndex,
    MutedUserTable,
    PersonalTable,
    ProfileValueTable,
    PushSubscriptionTable,
    ReminderTable,
    ScheduledMessageTable,
    StatusTable,
    UserTopicTable,
)
from tertulia.state.pins import PinTable
from tertulia.state.reactions import CustomEmojiTable
from tertulia.state.recent_writes import RecentWrites
from tertulia.state.shards import Shards
from tertulia.state.tables import Index, StaleIndexError, Table
from tertulia.state.unread import UnreadIndex
from tertulia.state.users import AgentKeyTable, CredentialTable, SessionTable, UserTable

_TABLES: Final[Mapping[str, type[Table[Any]]]] = {
    "agent_keys": AgentKeyTable,
    "channels": ChannelTable,
    "credentials": CredentialTable,
    "custom_emoji": CustomEmojiTable,
    "devices": PersonalTable,
    "direct_conversations": DirectConversationTable,
    "drafts": PersonalTable,
    "feeds": FeedTable,
    "muted_users": MutedUserTable,
    "navigation_views": PersonalTable,
    "onboarding_steps": PersonalTable,
    "pins": PinTable,
    "profile_values": ProfileValueTable,
    "push_subscriptions": PushSubscriptionTable,
    "push_tokens": PersonalTable,
    "reminders": ReminderTable,
    "scheduled_messages": ScheduledMessageTable,
    "sessions": SessionTable,
    "snippets": PersonalTable,
    "subscriptions": SubscriptionTable,
    "topics": TopicTable,
    "user_groups": GroupTable,
    "user_statuses": StatusTable,
    "user_topics": UserTopicTable,
    "users": UserTable,
}
"""The tables that have indexes, with them."""
_NOT_OF_TABLES: Final = {"seq", "unread", "recent_writes", "sent", "_changed"}
"""What a state has besides its tables and indexes: a copy with changes shares it."""


class State:
    """The fold of the log up to `seq`.

    It is read anywhere on the event loop and written by `tertulia.state.fold` alone. Every
    attribute but those of `_NOT_OF_TABLES` is a table or an index over tables.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.unread = UnreadIndex()
        self.recent_writes = RecentWrites()

        self.tables: dict[str, Any] = {
            noun.table: _TABLES.get(noun.table, Table)(noun) for noun in NOUNS
        }
        self._changed: set[str] = set()
        """The tables that may have changed since they were last asked: there are many more."""
        for table in self.tables.values():
            table.changed = self._changed
        self.realms: Table[Realm] = self.tables["realm"]
        self.users: UserTable = self.tables["users"]
        self.credentials: CredentialTable = self.tables["credentials"]
        self.sessions: SessionTable = self.tables["sessions"]
        self.agent_keys: AgentKeyTable = self.tables["agent_keys"]
        self.feeds: FeedTable = self.tables["feeds"]
        self.settings: Table[PersonalSettings] = self.tables["personal_settings"]
        self.groups: GroupTable = self.tables["user_groups"]
        self.channels: ChannelTable = self.tables["channels"]
        self.subscriptions: SubscriptionTable = self.tables["subscriptions"]
        self.topics: TopicTable = self.tables["topics"]
        self.directs: DirectConversationTable = self.tables["direct_conversations"]
        self.sent = SentMessages(self.directs)
        self.custom_emoji: CustomEmojiTable = self.tables["custom_emoji"]
        self.alert_words: Table[AlertWords] = self.tables["alert_words"]
        self.muted_users: MutedUserTable = self.tables["muted_users"]
        self.invitations: Table[Invitation] = self.tables["invitations"]
        self.confirmations: Table[Confirmation] = self.tables["confirmations"]
        self.counters: Table[Counter] = self.tables["counters"]
        self.folders: Table[ChannelFolder] = self.tables["channel_folders"]
        self.user_topics: UserTopicTable = self.tables["user_topics"]
        self.quiet_times: Table[QuietTimes] = self.tables["quiet_times"]
        self.statuses: StatusTable = self.tables["user_statuses"]
        self.profile_fields: Table[ProfileField] = self.tables["profile_fields"]
        self.profile_values: ProfileValueTable = self.tables["profile_values"]
        self.drafts: PersonalTable[SavedDraft] = self.tables["drafts"]
        self.snippets: PersonalTable[Snippet] = self.tables["snippets"]
        self.scheduled_messages: ScheduledMessageTable = self.tables["scheduled_messages"]
        self.reminders: ReminderTable = self.tables["reminders"]
        self.navigation_views: PersonalTable[NavigationView] = self.tables["navigation_views"]
        self.devices: PersonalTable[Device] = self.tables["devices"]
        self.push_tokens: PersonalTable[PushToken] = self.tables["push_tokens"]
        self.push_subscriptions: PushSubscriptionTable = self.tables["push_subscriptions"]
        self.domains: Table[Domain] = self.tables["domains"]
        self.linkifiers: Table[Linkifier] = self.tables["linkifiers"]
        self.playgrounds: Table[Playground] = self.tables["playgrounds"]
        self.banners: Table[Banner] = self.tables["banners"]
        self.pins: PinTable = self.tables["pins"]
        self.topic_moves: Table[TopicMove] = self.tables["topic_moves"]
        self.default_channel_groups: Table[DefaultChannelGroup] = self.tables[
            "default_channel_groups"
        ]
        self.onboarding_steps: PersonalTable[OnboardingStep] = self.tables["onboarding_steps"]
        self.attachments: Table[Attachment] = self.tables["attachments"]
        self.attachment_messages: Table[AttachmentMessage] = self.tables["attachment_messages"]
        self.removed_files: Table[RemovedFile] = self.tables["removed_files"]
        self.pending_previews: Table[PendingPreview] = self.tables["pending_previews"]

        for noun in NOUNS:
            if noun.removable:
                self.tables[noun.table].watch(self._counting(noun.table))

        # Indexes over several tables.
        self.memberships = Memberships(self.users, self.groups, self.realms)
        self.active_subscribers = ActiveSubscribers(self.users, self.subscriptions)
        self.contacts = Contacts(self.subscriptions, self.directs)
        self.alerts = AlertWordIndex(self.alert_words)
        self.personal_choices = PersonalChoices(self.settings)
        self.channel_choices = ChannelChoices(self.subscriptions, self.settings)
        self.topic_choices = TopicChoices(self.user_topics)
        self.uploads = AttachmentIndex(
            self.attachments,
            self.attachment_messages,
            unsent=(self.drafts, self.snippets, self.scheduled_messages),
        )
        self.user_shards = Shards(self.users)
        """Accounts with their settings, profiles and statuses."""
        for table in (self.settings, self.profile_values, self.statuses):
            self.user_shards.also(table, lambda record: record.user_id)
        self.channel_shards = ChannelShards(self.channels, self.users, self.subscriptions)
        """Channels with their subscribers."""

    def _counting(self, table: str) -> Callable[[Struct | None, Struct | None], None]:
        """Write down the highest ID of records that may be gone."""

        def count(before: Struct | None, after: Struct | None) -> None:
            if before is None and after is not None:
                self.counters.put(Counter(name=table, last=self.tables[table].highest))

        return count

    # Loading and writing down

    @classmethod
    def load(
        cls,
        seq: int,
        records: Mapping[str, Iterable[Struct]],
        sent: Iterable[AnyChange] = (),
    ) -> "State":
        """The state as the database's tables have it after the log's entry `seq`. `sent` are the
        changes of the newest entries (`SentMessages.recall`)."""
        state = cls()
        state.seq = seq
        state.recent_writes.floor = seq
        state.unread.settle(seq)
        # The counters last: loading a record counts it, and the highest may be gone.
        for name, rows in sorted(records.items(), key=lambda item: item[0] == "counters"):
            table = state.tables[name]
            for row in rows:
                table.put(row)
            table.dirty.clear()
        state.sent.recall(sent)
        state.counters.dirty.clear()
        for counter in state.counters:
            if counter.name in state.tables:
                state.tables[counter.name].highest = counter.last
        return state

    def take_dirty(self) -> dict[str, dict[Key, Any]]:
        """The records that changed since this was last asked, by table and key."""
        tables = [self.tables[name] for name in self._changed]
        self._changed.clear()
        return {table.noun.table: table.take_dirty() for table in tables if table.dirty}

    # Copies with changes

    def with_changes(self, *records: Struct) -> "State":
        """The state with these records added or replaced, as a change is about to make them: what
        follows from a change is found before it is folded.

        The copy is for reading, and only until an entry is folded. Tables without changes are
        shared; an index over tables with changes is made from the original's when it is first
        asked for, or raises StaleIndexError.
        """
        by_type = defaultdict(list)
        for record in records:
            by_type[type(record)].append(record)
        copied = object.__new__(State)
        copied.seq, copied._original = self.seq, self
        copied.tables = {
            name: table.with_records(by_type[table.noun.type])
            if table.noun.type in by_type
            else table
            for name, table in self.tables.items()
        }
        return copied

    _original: "State | None" = None
    """What this is a copy of."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Only what a copy does not have yet comes here.
            original = self._original
            if original is None or name.startswith("__"):
                raise AttributeError(f"State has no attribute {name}")
            found = getattr(original, name)
            if original.seq != self.seq:
                raise StaleIndexError("An entry was folded since this copy was made")
            if isinstance(found, Table):
                found = self._instead_of(found)
            elif isinstance(found, Index):
                if any(self._instead_of(table) is not table for table in found.tables):
                    found = found.with_tables(self._instead_of)
            elif name not in _NOT_OF_TABLES:
                raise AttributeError(f"{name} is not there in a copy of the state")
            setattr(self, name, found)
            return found

    def _instead_of(self, table: Table[Any]) -> Any:
        return self.tables[table.noun.table]

    # Questions

    @property
    def realm(self) -> Realm:
        """The organization. There is one once its first entry is folded."""
        return self.realms[1]

    @property
    def is_empty(self) -> bool:
        """Whether no organization has been created yet."""
        return not len(self.realms)

    @property
    def is_closed(self) -> bool:
        """Whether the organization is deactivated: nothing is done in it then."""
        return not self.is_empty and self.realm.deactivated

    @property
    def default_settings(self) -> PersonalSettings:
        """The settings of new accounts: those kept under the user ID 0, and the organization's
        language."""
        kept = self.settings.get(0) or PersonalSettings(user_id=0)
        return msgspec.structs.replace(kept, default_language=self.realm.default_language)

    @property
    def linkifiers_in_order(self) -> list[Linkifier]:
        """The linkifiers, the one that wins over the others first."""
        return sorted(self.linkifiers, key=lambda linkifier: (linkifier.order, linkifier.id))

    @property
    def last_message_id(self) -> int:
        """The newest ID given to a message; 0 before the first."""
        counter = self.counters.get("messages")
        return counter.last if counter else 0

    def user_with_address(self, address: str) -> User | None:
        """The account with this real address, without regard to case."""
        user_id = self.users.by_address.get(address.strip().casefold())
        return None if user_id is None else self.users[user_id]

    def channel_named(self, name: str) -> Channel | None:
        """The channel of this name, without regard to case; archived ones too."""
        channel_id = self.channels.by_name.get(name.strip().casefold())
        return None if channel_id is None else self.channels[channel_id]

    def subscription(self, user_id: int, channel_id: int) -> Subscription | None:
        """The user's relation to the channel, present or past."""
        return self.subscriptions.get((channel_id, user_id))

    def is_subscribed(self, user_id: int, channel_id: int) -> bool:
        subscription = self.subscription(user_id, channel_id)
        return subscription is not None and subscription.is_active

    def subscribers(self, channel_id: int) -> tuple[int, ...]:
        """The active accounts that are subscribed, ascending."""
        return self.active_subscribers[channel_id]

    def channel_ids_of(self, user_id: int) -> list[int]:
        """The channels to which the user is subscribed."""
        return [
            channel_id
            for channel_id, subscription in self.subscriptions.of_user[user_id].items()
            if subscription.is_active
        ]

    def visibility(self, user_id: int, channel_id: int, key: str) -> Visibility:
        """Whether the user follows, mutes or unmutes the topic of that key."""
        topic = self.user_topics.get((user_id, channel_id, key))
        return Visibility.INHERIT if topic is None else topic.visibility

    def unread_since(self, subscription: Subscription) -> int:
        """The newest message of the channel that counts as read unless the subscriber marked it as
        unread: those before the subscription, or before the channel was archived."""
        return max(subscription.since, self.channels[subscription.channel_id].read_until)

    def received(self, user_id: int, message: Placed) -> bool:
        """Whether the message was delivered to the user."""
        if message.channel_id is None:
            return message.direct_id in self.directs.of_user[user_id]
        subscription = self.subscription(user_id, message.channel_id)
        return subscription is not None and subscription.covers(message.id)
