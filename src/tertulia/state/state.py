"""The organization in memory: its tables, and indexes over several of them."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, get_origin

import msgspec
from msgspec import Struct

from tertulia.model.attachments import Attachment, AttachmentMessage, RemovedFile
from tertulia.model.banners import Banner
from tertulia.model.call_accounts import CallAccount
from tertulia.model.changes import AnyChange, Entry, UserVisibilityChanged
from tertulia.model.channels import Channel, Subscription
from tertulia.model.devices import PushToken
from tertulia.model.drafts import SavedDraft, Snippet
from tertulia.model.edits import TopicMove
from tertulia.model.exports import DataExport
from tertulia.model.folders import ChannelFolder
from tertulia.model.imports import DataImport
from tertulia.model.invitations import Confirmation
from tertulia.model.messages import PendingPreview, Placed
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
from tertulia.model.personal import AlertWords, NavigationView, QuietTimes
from tertulia.model.profiles import ProfileField
from tertulia.model.second_factors import RecoveryCodes
from tertulia.model.user_topics import Visibility
from tertulia.model.users import PersonalSettings, User
from tertulia.state import organization  # noqa: F401 (declares folds)
from tertulia.state.attachments import AttachmentIndex
from tertulia.state.channels import (
    ActiveSubscribers,
    ChannelShards,
    ChannelTable,
    SubscriptionTable,
)
from tertulia.state.contacts import Contacts
from tertulia.state.feeds import FeedTable
from tertulia.state.groups import GroupTable, Memberships
from tertulia.state.messages import DirectConversationTable, RecentWrites, SentMessages
from tertulia.state.notification_choices import ChannelChoices, PersonalChoices, TopicChoices
from tertulia.state.personal import (
    AlertWordIndex,
    DeviceTable,
    MutedUserTable,
    PersonalTable,
    PushSubscriptionTable,
    ReminderTable,
    ScheduledMessageTable,
    UserTopicTable,
)
from tertulia.state.pins import PinTable
from tertulia.state.profiles import ProfileValueTable, StatusTable
from tertulia.state.reactions import CustomEmojiTable
from tertulia.state.recent_gains import GAINING, RecentGains, channels_gained, new_administrators
from tertulia.state.shards import Shards
from tertulia.state.tables import Index, StaleIndexError, Table
from tertulia.state.topics import TopicTable
from tertulia.state.unread import UnreadIndex
from tertulia.state.user_visibility import bitmap
from tertulia.state.users import (
    AccessKeyTable,
    CredentialTable,
    IdentityTable,
    InvitationTable,
    SecondFactorTable,
    SessionTable,
    UserTable,
)

_ATTRIBUTES: Final = {
    "realm": "realms",
    "personal_settings": "settings",
    "user_groups": "groups",
    "direct_conversations": "directs",
    "channel_folders": "folders",
    "user_statuses": "statuses",
    "agent_keys": "access_keys",
}
"""Attributes whose name differs from their table's. A table keeps its name when its noun is
renamed, because older nodes still use it during an upgrade."""
_NOT_OF_TABLES: Final = {
    *("seq", "unread", "recent_writes", "sent", "_changed"),
    *("channel_gains", "administrator_gains"),
}
"""Attributes that aren't tables or indexes. A copy with changes shares them."""


class State:
    """The fold of the log up to `seq`.

    Anything on the event loop can read it, and only `tertulia.state.folds` writes to it. Every
    attribute except those in `_NOT_OF_TABLES` is a table or an index.
    """

    realms: Table[Realm]
    users: UserTable
    credentials: CredentialTable
    sessions: SessionTable
    access_keys: AccessKeyTable
    identities: IdentityTable
    second_factors: SecondFactorTable
    recovery_codes: Table[RecoveryCodes]
    call_accounts: Table[CallAccount]
    feeds: FeedTable
    settings: Table[PersonalSettings]
    groups: GroupTable
    channels: ChannelTable
    subscriptions: SubscriptionTable
    topics: TopicTable
    directs: DirectConversationTable
    custom_emoji: CustomEmojiTable
    alert_words: Table[AlertWords]
    muted_users: MutedUserTable
    invitations: InvitationTable
    confirmations: Table[Confirmation]
    counters: Table[Counter]
    folders: Table[ChannelFolder]
    user_topics: UserTopicTable
    quiet_times: Table[QuietTimes]
    statuses: StatusTable
    profile_fields: Table[ProfileField]
    profile_values: ProfileValueTable
    drafts: PersonalTable[SavedDraft]
    snippets: PersonalTable[Snippet]
    scheduled_messages: ScheduledMessageTable
    reminders: ReminderTable
    navigation_views: PersonalTable[NavigationView]
    devices: DeviceTable
    push_tokens: PersonalTable[PushToken]
    push_subscriptions: PushSubscriptionTable
    domains: Table[Domain]
    linkifiers: Table[Linkifier]
    playgrounds: Table[Playground]
    banners: Table[Banner]
    pins: PinTable
    topic_moves: Table[TopicMove]
    data_exports: PersonalTable[DataExport]
    data_imports: Table[DataImport]
    default_channel_groups: Table[DefaultChannelGroup]
    onboarding_steps: PersonalTable[OnboardingStep]
    attachments: Table[Attachment]
    attachment_messages: Table[AttachmentMessage]
    removed_files: Table[RemovedFile]
    pending_previews: Table[PendingPreview]

    def __init__(self) -> None:
        self.seq = 0
        self.unread = UnreadIndex()
        self.recent_writes = RecentWrites()

        self.tables: dict[str, Any] = {}
        self._changed: set[str] = set()
        """Tables that may have changed since `take_dirty`."""
        for noun in NOUNS:
            attribute = _ATTRIBUTES.get(noun.table, noun.table)
            declared: Any = State.__annotations__.get(attribute, Table)
            kind: type[Table[Any]] = get_origin(declared) or declared
            table = self.tables[noun.table] = kind(noun)
            table.changed = self._changed
            setattr(self, attribute, table)
        self.sent = SentMessages(self.directs)

        for noun in NOUNS:
            if noun.removable:
                self.tables[noun.table].watch(self._counting(noun.table))

        # Indexes over several tables.
        self.memberships = Memberships(self.users, self.groups, self.realms)
        self.active_subscribers = ActiveSubscribers(self.users, self.subscriptions)
        self.contacts = Contacts(self.subscriptions, self.directs)
        self.channel_gains = RecentGains()
        """The channels that people can see only since a recent entry."""
        self.administrator_gains = RecentGains()
        """The accounts that became administrators with a recent entry, as viewers of themselves."""
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
        """Return a watcher that stores the highest ID of removable records."""

        def count(before: Struct | None, after: Struct | None) -> None:
            if before is None and after is not None:
                self.counters.put(Counter(name=table, last=self.tables[table].highest))

        return count

    # Loading and storing

    @classmethod
    def load(
        cls,
        seq: int,
        records: Mapping[str, Iterable[Struct]],
        sent: Iterable[AnyChange] = (),
        gaining: Iterable[Entry] = (),
    ) -> "State":
        """Load the state as of the log's entry `seq` from the database's records. `sent` are the
        changes of the newest entries (`SentMessages.recall`), and `gaining` the entries that can
        have gains."""
        state = cls()
        state.seq = seq
        state.recent_writes.floor = seq
        state.unread.settle(seq)
        # Counters come last: loading records counts them, and the highest may have been removed.
        for name, rows in sorted(records.items(), key=lambda item: item[0] == "counters"):
            table = state.tables[name]
            for row in rows:
                table.put(row)
                table.dirty.clear()
        state.sent.recall(sent)
        for entry in gaining:
            state.remember_gains(entry)
        state.counters.dirty.clear()
        for counter in state.counters:
            if counter.name in state.tables:
                state.tables[counter.name].highest = counter.last
        return state

    def remember_gains(self, entry: Entry) -> None:
        """Record the things that viewers can see only since the entry."""
        if not isinstance(entry.change, GAINING):
            return
        for viewers, channel_ids in channels_gained(entry):
            self.channel_gains.add(entry.seq, viewers, channel_ids)
        for user_id in new_administrators(entry):
            self.administrator_gains.add(entry.seq, (user_id,), (user_id,))
        if isinstance(entry.change, UserVisibilityChanged):
            for choice in entry.change.gained:
                self.contacts.gained(entry.seq, choice.viewers, bitmap(choice.users))

    def take_dirty(self) -> dict[str, dict[Key, Any]]:
        """Return the records that changed since the last call, by table and key."""
        tables = [self.tables[name] for name in self._changed]
        self._changed.clear()
        return {table.noun.table: table.take_dirty() for table in tables if table.dirty}

    # Copies with changes

    def with_changes(self, *records: Struct) -> "State":
        """Return a read-only copy of the state with these records added or replaced, to derive the
        effects of a change before it is folded.

        It's valid until an entry is folded. It shares unchanged tables. An index over changed
        tables is copied on first use, or raises StaleIndexError.
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
    """The state that this is a copy of."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            # Python calls this only for attributes that the copy doesn't have yet.
            original = self._original
            if original is None or name.startswith("__"):
                raise AttributeError(f"State has no attribute {name}")
            result = getattr(original, name)
            if original.seq != self.seq:
                raise StaleIndexError("An entry was folded since this copy was made")
            if isinstance(result, Table):
                result = self._instead_of(result)
            elif isinstance(result, Index):
                if any(self._instead_of(table) is not table for table in result.tables):
                    result = result.with_tables(self._instead_of)
            elif name not in _NOT_OF_TABLES:
                raise AttributeError(f"{name} isn't available in a copy of the state")
            setattr(self, name, result)
            return result

    def _instead_of(self, table: Table[Any]) -> Any:
        return self.tables[table.noun.table]

    # Queries

    @property
    def realm(self) -> Realm:
        """The organization. It exists once the log's first entry is folded."""
        return self.realms[1]

    @property
    def is_empty(self) -> bool:
        return not len(self.realms)

    @property
    def is_closed(self) -> bool:
        """Whether the organization is deactivated."""
        return not self.is_empty and self.realm.deactivated

    @property
    def default_settings(self) -> PersonalSettings:
        """The default settings of new accounts: those stored under the user ID 0, with the
        organization's language."""
        kept = self.settings.get(0) or PersonalSettings(user_id=0)
        return msgspec.structs.replace(kept, default_language=self.realm.default_language)

    @property
    def linkifiers_in_order(self) -> list[Linkifier]:
        return sorted(self.linkifiers, key=lambda linkifier: (linkifier.order, linkifier.id))

    @property
    def last_message_id(self) -> int:
        """The newest message ID; 0 before the first message."""
        counter = self.counters.get("messages")
        return counter.last if counter else 0

    def user_with_address(self, address: str) -> User | None:
        """Return the account with that real address, ignoring case."""
        user_id = self.users.by_address.get(address.strip().casefold())
        return None if user_id is None else self.users[user_id]

    def channel_named(self, name: str) -> Channel | None:
        """Return the channel with that name, archived or not, ignoring case."""
        channel_id = self.channels.by_name.get(name.strip().casefold())
        return None if channel_id is None else self.channels[channel_id]

    def subscription(self, user_id: int, channel_id: int) -> Subscription | None:
        """Return the user's subscription, present or past."""
        return self.subscriptions.get((channel_id, user_id))

    def is_subscribed(self, user_id: int, channel_id: int) -> bool:
        subscription = self.subscription(user_id, channel_id)
        return subscription is not None and subscription.is_active

    def subscribers(self, channel_id: int) -> tuple[int, ...]:
        """Return the IDs of the channel's active subscribers, ascending."""
        return self.active_subscribers[channel_id]

    def channel_ids_of(self, user_id: int) -> list[int]:
        """Return the IDs of the channels that the user is subscribed to."""
        return [
            channel_id
            for channel_id, subscription in self.subscriptions.of_user[user_id].items()
            if subscription.is_active
        ]

    def visibility(self, user_id: int, channel_id: int, key: str) -> Visibility:
        """Return the user's visibility policy for the topic with that key."""
        topic = self.user_topics.get((user_id, channel_id, key))
        return Visibility.INHERIT if topic is None else topic.visibility

    def unread_since(self, subscription: Subscription) -> int:
        """Return the ID up to which the channel's messages count as read unless the subscriber
        marked them as unread: the last message before the subscription, or before the channel was
        archived."""
        return max(subscription.since, self.channels[subscription.channel_id].read_until)

    def received(self, user_id: int, message: Placed) -> bool:
        """Whether the message was delivered to the user."""
        if message.channel_id is None:
            return message.direct_id in self.directs.of_user[user_id]
        subscription = self.subscription(user_id, message.channel_id)
        return subscription is not None and subscription.covers(message.id)
