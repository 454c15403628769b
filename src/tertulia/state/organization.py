"""One organization in memory: its records, and the indexes that questions are answered from."""

import copy
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from pyroaring import BitMap

from tertulia.model.attachments import Attachment, AttachmentMessage, RemovedFile
from tertulia.model.changes import AnyChange
from tertulia.model.channels import Channel, Subscription, Topic
from tertulia.model.composing import SavedDraft, Snippet
from tertulia.model.counters import Counter
from tertulia.model.devices import Device, PushToken
from tertulia.model.folders import ChannelFolder
from tertulia.model.groups import GroupSetting, Members, SystemGroup, UserGroup
from tertulia.model.invitations import Confirmation, Invitation
from tertulia.model.messages import DirectConversation, Placed
from tertulia.model.navigation import NavigationView
from tertulia.model.nouns import NOUNS, Key
from tertulia.model.organization import (
    DefaultChannelGroup,
    Domain,
    Linkifier,
    OnboardingStep,
    Playground,
)
from tertulia.model.personal import AlertWords, MutedUser
from tertulia.model.previews import PendingPreview
from tertulia.model.profiles import ProfileField, ProfileValue, UserStatus
from tertulia.model.reactions import CustomEmoji
from tertulia.model.realm import Realm
from tertulia.model.scheduled import Reminder, ScheduledMessage
from tertulia.model.sessions import Session
from tertulia.model.user_topics import UserTopic, Visibility
from tertulia.model.users import Credential, PersonalSettings, Role, User
from tertulia.state.acquaintances import Acquaintances
from tertulia.state.activity import Activity
from tertulia.state.ages import Ages
from tertulia.state.alerts import Alerts
from tertulia.state.sent import SentMessages
from tertulia.state.tables import Grouped, Ordered, Shards, Table, next_version
from tertulia.state.touched import Touched
from tertulia.state.unread import UnreadIndex
from tertulia.state.uploads import Uploads

_ROLE_OF_GROUP = {
    SystemGroup.OWNERS: Role.OWNER,
    SystemGroup.ADMINISTRATORS: Role.ADMINISTRATOR,
    SystemGroup.MODERATORS: Role.MODERATOR,
    SystemGroup.MEMBERS: Role.MEMBER,
    SystemGroup.EVERYONE: Role.GUEST,
}

R = TypeVar("R", bound=Struct)


def _with(table: Table[R], records: Iterable[R]) -> Table[R]:
    """A copy of the table with these records, which is nobody's index."""
    copied = Table[R](table.noun)
    key_of = table.noun.key_of
    copied.rows = {**table.rows, **{key_of(record): record for record in records}}
    return copied


def _standing(user: User) -> tuple[Role, int, bool, int | None]:
    """What decides in which groups of the roles the account is, and whose rights it has."""
    owner_id = None if user.bot is None else user.bot.owner_id
    return user.role, user.joined_at, user.is_active, owner_id


class State:
    """The fold of the log up to `seq`.

    It is read anywhere on the event loop and written by `tertulia.state.fold` alone.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.unread = UnreadIndex()
        self.touched = Touched()
        self.sent = SentMessages()
        self.alerts = Alerts()
        self.tables: dict[str, Table[Any]] = {noun.table: Table(noun) for noun in NOUNS}
        self.realms: Table[Realm] = self.tables["realm"]
        self.users: Table[User] = self.tables["users"]
        self.credentials: Table[Credential] = self.tables["credentials"]
        self.settings: Table[PersonalSettings] = self.tables["personal_settings"]
        self.groups: Table[UserGroup] = self.tables["user_groups"]
        self.channels: Table[Channel] = self.tables["channels"]
        self.subscriptions: Table[Subscription] = self.tables["subscriptions"]
        self.topics: Table[Topic] = self.tables["topics"]
        self.directs: Table[DirectConversation] = self.tables["direct_conversations"]
        self.custom_emoji: Table[CustomEmoji] = self.tables["custom_emoji"]
        self.alert_words: Table[AlertWords] = self.tables["alert_words"]
        self.muted_users: Table[MutedUser] = self.tables["muted_users"]
        self.invitations: Table[Invitation] = self.tables["invitations"]
        self.confirmations: Table[Confirmation] = self.tables["confirmations"]
        self.counters: Table[Counter] = self.tables["counters"]
        self.folders: Table[ChannelFolder] = self.tables["channel_folders"]
        self.user_topics: Table[UserTopic] = self.tables["user_topics"]
        self.statuses: Table[UserStatus] = self.tables["user_statuses"]
        self.profile_fields: Table[ProfileField] = self.tables["profile_fields"]
        self.profile_values: Table[ProfileValue] = self.tables["profile_values"]
        self.profile_of = Grouped(self.profile_values, lambda value: value.user_id)
        self.values_of_field = Grouped(self.profile_values, lambda value: value.field_id)
        self.drafts: Table[SavedDraft] = self.tables["drafts"]
        self.snippets: Table[Snippet] = self.tables["snippets"]
        self.scheduled_messages: Table[ScheduledMessage] = self.tables["scheduled_messages"]
        self.reminders: Table[Reminder] = self.tables["reminders"]
        self.navigation_views: Table[NavigationView] = self.tables["navigation_views"]
        self.devices: Table[Device] = self.tables["devices"]
        self.push_tokens: Table[PushToken] = self.tables["push_tokens"]
        self.domains: Table[Domain] = self.tables["domains"]
        self.linkifiers: Table[Linkifier] = self.tables["linkifiers"]
        self.playgrounds: Table[Playground] = self.tables["playgrounds"]
        self.default_channel_groups: Table[DefaultChannelGroup] = self.tables[
            "default_channel_groups"
        ]
        self.onboarding_steps: Table[OnboardingStep] = self.tables["onboarding_steps"]
        self.onboarding_of_user = Grouped(self.onboarding_steps, lambda step: step.user_id)
        self.attachments: Table[Attachment] = self.tables["attachments"]
        self.attachment_messages: Table[AttachmentMessage] = self.tables["attachment_messages"]
        self.removed_files: Table[RemovedFile] = self.tables["removed_files"]
        self.pending_previews: Table[PendingPreview] = self.tables["pending_previews"]
        self.uploads = Uploads(self.attachments, self.attachment_messages)
        for waiting in (self.drafts, self.snippets, self.scheduled_messages):
            self.uploads.hold(waiting)

        self.user_by_address: dict[str, int] = {}
        self.users_by_name: dict[str, set[int]] = {}
        self.user_by_key_digest: dict[str, int] = {}
        self.active_by_role: dict[Role, set[int]] = {role: set() for role in Role}
        self.bots: set[int] = set()
        """Deactivated ones and the system's too."""
        self.guests = BitMap()
        """Deactivated ones too."""
        self._limited: tuple[int, BitMap] = (0, BitMap())
        self.channel_by_name: dict[str, int] = {}
        self.group_by_name: dict[str, int] = {}
        self.membership = next_version()
        """Another one after each change of a group, or of who is in which."""
        self.activity_of_users = next_version()
        """Another one after somebody was deactivated or came back."""
        self.members_of_group: dict[int, frozenset[int]] = {}
        """Those of the named groups, deactivated accounts too: see `direct_members`."""
        self._members: dict[int, frozenset[int]] = {}
        self.subscriptions_of_channel: dict[int, dict[int, Subscription]] = {}
        """Past ones too: see `Subscription.is_active`."""
        self.subscriptions_of_user: dict[int, dict[int, Subscription]] = {}
        self._subscribers: dict[int, tuple[int, ...]] = {}
        self.people = Shards(self.users)
        """Accounts with their settings, profiles and statuses."""
        self.people.also(self.settings, lambda settings: settings.user_id)
        self.people.also(self.profile_values, lambda value: value.user_id)
        self.people.also(self.statuses, lambda status: status.user_id)
        self.places = Shards(self.channels)
        """Channels with their subscribers."""
        self.places.also(self.subscriptions, lambda subscription: subscription.channel_id)
        self.topics_of_channel: dict[int, dict[str, Topic]] = {}
        self.message_count: dict[int, int] = {}
        """Messages of each channel."""
        self.direct_by_members: dict[tuple[int, ...], int] = {}
        self.directs_of_user: dict[int, set[int]] = {}
        self.topics_of_user = Grouped(self.user_topics, lambda topic: topic.user_id)
        """The topics of which a user said how to hear of them."""
        self.settings_of_topic = Grouped(
            self.user_topics, lambda topic: (topic.channel_id, topic.key)
        )
        """The users' settings of a topic, by channel and key."""
        self.activity = Activity()
        self.emoji_by_name: dict[str, int] = {}
        """The active ones of the organization's own."""
        self.muted_by_user = Grouped(self.muted_users, lambda muted: muted.user_id)
        self.muters_of_user = Grouped(self.muted_users, lambda muted: muted.muted_id)

        self.drafts_of_user = Grouped(self.drafts, lambda draft: draft.user_id)
        self.snippets_of_user = Grouped(self.snippets, lambda snippet: snippet.user_id)
        self.scheduled_of_user = Grouped(self.scheduled_messages, lambda message: message.user_id)
        self.scheduled_by_time = Ordered(
            self.scheduled_messages, lambda message: None if message.failed else message.deliver_at
        )
        self.reminders_of_user = Grouped(self.reminders, lambda reminder: reminder.user_id)
        self.reminders_by_time = Ordered(self.reminders, lambda reminder: reminder.deliver_at)
        self.views_of_user = Grouped(self.navigation_views, lambda view: view.user_id)
        self.devices_of_user = Grouped(self.devices, lambda device: device.user_id)
        self.push_tokens_of_user = Grouped(self.push_tokens, lambda token: token.user_id)

        self.sessions: Table[Session] = self.tables["sessions"]
        self.sessions_of_user = Grouped(self.sessions, lambda session: session.user_id)
        self.sessions_by_use = Ordered(self.sessions, lambda session: session.used_at)
        self.session_by_digest: dict[str, int] = {}

        for noun in NOUNS:
            if noun.removable:
                self.tables[noun.table].watch(self._counting(noun.table))
        self.realms.watch(self._index_realm)
        self.users.watch(self._index_user)
        self.ages = Ages(self.users)
        self.credentials.watch(self._index_credential)
        self.sessions.watch(self._index_session)
        self.channels.watch(self._index_channel)
        self.channels.watch(self.activity.note)
        self.groups.watch(self._index_group)
        self.subscriptions.watch(self._index_subscription)
        self.topics.watch(self._index_topic)
        self.directs.watch(self._index_direct)
        self.custom_emoji.watch(self._index_emoji)
        self.alert_words.watch(self.alerts.index)
        self.acquaintances = Acquaintances(
            self.subscriptions,
            self.subscriptions_of_channel,
            self.subscriptions_of_user,
            self.directs,
            self.directs_of_user,
        )

    # Loading and writing down

    @classmethod
    def load(
        cls,
        seq: int,
        records: Mapping[str, Iterable[Struct]],
        sent: Iterable[AnyChange] = (),
    ) -> "State":
        """The state as the tables have it after the log's entry `seq`. `sent` says what was sent
        of late (`SentMessages.recall`)."""
        state = cls()
        state.seq = seq
        state.touched.floor = seq
        state.sent.recall(sent)
        # The counters last: loading a record counts it, and the highest may be gone.
        for name, rows in sorted(records.items(), key=lambda item: item[0] == "counters"):
            table = state.tables[name]
            for row in rows:
                table.put(row)
            table.dirty.clear()
        state.counters.dirty.clear()
        for counter in state.counters:
            if counter.name in state.tables:
                state.tables[counter.name].highest = counter.last
        return state

    def with_changes(
        self,
        channels: Sequence[Channel] = (),
        users: Sequence[User] = (),
        *,
        group: UserGroup | None = None,
        realm: Realm | None = None,
    ) -> "State":
        """The state with channels, accounts, a group or an organization as they are about to be,
        for looking at and nothing else: what is said of a new channel is said before it exists,
        and what a change of a group shows and hides is part of the change."""
        ahead = copy.copy(self)
        ahead._members = {}
        ahead._limited = (0, BitMap())
        if channels:
            ahead.channels = _with(self.channels, channels)
            ahead.channel_by_name = {
                **self.channel_by_name,
                **{channel.name.casefold(): channel.id for channel in channels},
            }
        if users:
            ahead.users = _with(self.users, users)
        if group is not None:
            ahead.groups = _with(self.groups, [group])
            ahead.members_of_group = {**self.members_of_group, group.id: frozenset(group.members)}
        if realm is not None:
            ahead.realms = _with(self.realms, [realm])
        return ahead

    def take_dirty(self) -> dict[str, dict[Key, Any]]:
        """The records that changed since this was last asked, by table and key."""
        return {name: table.take_dirty() for name, table in self.tables.items() if table.dirty}

    # Indexes

    def _counting(self, table: str) -> Callable[[Struct | None, Struct | None], None]:
        """Write down the highest ID of records that may be gone."""

        def count(before: Struct | None, after: Struct | None) -> None:
            if before is None and after is not None:
                self.counters.put(Counter(name=table, last=self.tables[table].highest))

        return count

    def _index_user(self, before: User | None, after: User | None) -> None:
        if before is not None:
            self.user_by_address.pop(before.address.casefold(), None)
            self.active_by_role[before.role].discard(before.id)
            self.bots.discard(before.id)
            self.guests.discard(before.id)
            same_name = self.users_by_name[before.full_name]
            same_name.discard(before.id)
            if not same_name:
                del self.users_by_name[before.full_name]
        if after is not None:
            self.users_by_name.setdefault(after.full_name, set()).add(after.id)
            self.user_by_address[after.address.casefold()] = after.id
            if after.is_active and not after.is_system_bot:
                self.active_by_role[after.role].add(after.id)
            if after.is_bot:
                self.bots.add(after.id)
            if after.is_guest:
                self.guests.add(after.id)
        if before is None or after is None or _standing(before) != _standing(after):
            self._forget_members()
        if before is not None and after is not None and before.is_active is not after.is_active:
            self.activity_of_users = next_version()
            for channel_id in self.subscriptions_of_user.get(after.id, ()):
                self._subscribers.pop(channel_id, None)
                self.places.touch(channel_id)

    def _forget_members(self) -> None:
        self._members.clear()
        self.membership = next_version()

    def _index_realm(self, before: Realm | None, after: Realm | None) -> None:
        self._forget_members()

    def _index_credential(self, before: Credential | None, after: Credential | None) -> None:
        if before is not None:
            self.user_by_key_digest.pop(before.key_digest, None)
        if after is not None:
            self.user_by_key_digest[after.key_digest] = after.user_id

    def _index_session(self, before: Session | None, after: Session | None) -> None:
        if before is not None:
            self.session_by_digest.pop(before.digest, None)
        if after is not None:
            self.session_by_digest[after.digest] = after.id

    def _index_channel(self, before: Channel | None, after: Channel | None) -> None:
        if before is not None:
            self.channel_by_name.pop(before.name.casefold(), None)
        if after is not None:
            self.channel_by_name[after.name.casefold()] = after.id

    def _index_group(self, before: UserGroup | None, after: UserGroup | None) -> None:
        if before is not None:
            self.group_by_name.pop(before.name.casefold(), None)
        if after is not None:
            self.group_by_name[after.name.casefold()] = after.id
            if before is None or before.members != after.members:
                self.members_of_group[after.id] = frozenset(after.members)
        self._forget_members()

    def _index_subscription(self, before: Subscription | None, after: Subscription | None) -> None:
        if after is not None:
            self._subscribers.pop(after.channel_id, None)
            self.subscriptions_of_channel.setdefault(after.channel_id, {})[after.user_id] = after
            self.subscriptions_of_user.setdefault(after.user_id, {})[after.channel_id] = after

    def _index_topic(self, before: Topic | None, after: Topic | None) -> None:
        of = before or after
        if of is not None:
            more = (after.message_count if after else 0) - (before.message_count if before else 0)
            count = self.message_count.pop(of.channel_id, 0) + more
            if count:
                self.message_count[of.channel_id] = count
        if after is not None:
            self.topics_of_channel.setdefault(after.channel_id, {})[after.key] = after
        elif before is not None:
            del self.topics_of_channel[before.channel_id][before.key]

    def _index_direct(
        self, before: DirectConversation | None, after: DirectConversation | None
    ) -> None:
        if before is None and after is not None:
            self.direct_by_members[after.members] = after.id
            for user_id in after.members:
                self.directs_of_user.setdefault(user_id, set()).add(after.id)

    def _index_emoji(self, before: CustomEmoji | None, after: CustomEmoji | None) -> None:
        if before is not None and not before.deactivated:
            del self.emoji_by_name[before.name]
        if after is not None and not after.deactivated:
            self.emoji_by_name[after.name] = after.id

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
        """The settings that new accounts begin with: those of an account that nobody has, and
        the organization's language."""
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
        user_id = self.user_by_address.get(address.strip().casefold())
        return None if user_id is None else self.users[user_id]

    def channel_named(self, name: str) -> Channel | None:
        """The channel of this name, without regard to case; archived ones too."""
        channel_id = self.channel_by_name.get(name.strip().casefold())
        return None if channel_id is None else self.channels[channel_id]

    def subscription(self, user_id: int, channel_id: int) -> Subscription | None:
        """The user's relation to the channel, present or past."""
        return self.subscriptions_of_channel.get(channel_id, {}).get(user_id)

    def is_subscribed(self, user_id: int, channel_id: int) -> bool:
        subscription = self.subscription(user_id, channel_id)
        return subscription is not None and subscription.is_active

    def subscribers(self, channel_id: int) -> tuple[int, ...]:
        """The active accounts that are subscribed, ascending."""
        found = self._subscribers.get(channel_id)
        if found is None:
            users, ever = self.users, self.subscriptions_of_channel.get(channel_id, {})
            found = tuple(
                sorted(
                    user_id
                    for user_id, subscription in ever.items()
                    if subscription.is_active and users[user_id].is_active
                )
            )
            self._subscribers[channel_id] = found
        return found

    def channel_ids_of(self, user_id: int) -> list[int]:
        """The channels to which the user is subscribed."""
        return [
            channel_id
            for channel_id, subscription in self.subscriptions_of_user.get(user_id, {}).items()
            if subscription.is_active
        ]

    def visibility(self, user_id: int, channel_id: int, key: str) -> Visibility:
        """How the user wants to hear of the topic of that key."""
        topic = self.user_topics.get((user_id, channel_id, key))
        return Visibility.INHERIT if topic is None else topic.visibility

    def is_muted(self, user_id: int, channel_id: int, key: str) -> bool:
        """Whether the user wants to hear nothing of the topic, by itself or with its channel."""
        subscription = self.subscription(user_id, channel_id)
        return is_muted(self.visibility(user_id, channel_id, key), subscription)

    def unread_since(self, subscription: Subscription) -> int:
        """The newest message of the channel that counts as read by the subscriber, unless they
        said otherwise: that before they came, or before the channel was archived."""
        return max(subscription.since, self.channels[subscription.channel_id].read_until)

    def received(self, user_id: int, message: Placed) -> bool:
        """Whether the message was delivered to the user."""
        if message.channel_id is None:
            return message.direct_id in self.directs_of_user.get(user_id, ())
        subscription = self.subscription(user_id, message.channel_id)
        return subscription is not None and subscription.covers(message.id)

    def bots_of(self, owner_id: int) -> list[User]:
        """The active bots that the person owns, in ascending order of ID."""
        found = [
            bot
            for bot in (self.users[bot_id] for bot_id in self.bots)
            if bot.is_active and bot.bot is not None and bot.bot.owner_id == owner_id
        ]
        return sorted(found, key=lambda bot: bot.id)

    # Groups

    def direct_members(self, group: UserGroup, now: float) -> Collection[int]:
        """The users who are in the group itself, deactivated ones left out."""
        if not group.is_system:
            return [user_id for user_id in group.members if self.users[user_id].is_active]
        kind = SystemGroup(group.id)
        if kind is SystemGroup.FULL_MEMBERS:
            return [
                user_id
                for user_id in self.active_by_role[Role.MEMBER]
                if self.is_full_member(self.users[user_id])
            ]
        role = _ROLE_OF_GROUP.get(kind)
        return () if role is None else self.active_by_role[role]

    def members(self, setting: GroupSetting, now: float) -> frozenset[int]:
        """The active accounts that are in the group (or hold the permission), directly or through
        subgroups. It is remembered for each group until something changes: a large one costs
        nothing to ask for again."""
        if isinstance(setting, Members):
            people = {
                user_id for user_id in setting.direct_members if self.users[user_id].is_active
            }
            return frozenset(people).union(
                *(self.members(group_id, now) for group_id in setting.direct_subgroups)
            )
        found = self._members.get(setting)
        if found is None:
            groups = [self.groups[group_id] for group_id in (setting, *self.subgroups(setting))]
            found = frozenset().union(*(self.direct_members(group, now) for group in groups))
            self._members[setting] = found
        return found

    def subgroups(self, group_id: int) -> frozenset[int]:
        """The groups that are in the group, directly or through others."""
        found: set[int] = set()
        pending = list(self.groups[group_id].subgroups)
        while pending:
            subgroup_id = pending.pop()
            if subgroup_id not in found:
                found.add(subgroup_id)
                pending.extend(self.groups[subgroup_id].subgroups)
        return frozenset(found)

    def groups_of(self, user: User, now: float) -> tuple[int, ...]:
        """The groups whose direct member the account is while it is active, ascending."""
        of = self.members_of_group
        named = [g.id for g in self.groups if not g.is_system and user.id in of[g.id]]
        return tuple(sorted([*self.system_groups_of(user, now), *named]))

    def system_groups_of(self, user: User, now: float) -> tuple[int, ...]:
        """The system groups that an account of this role is directly in, ascending."""
        if user.is_system_bot:
            return ()
        groups = [group.value for group, role in _ROLE_OF_GROUP.items() if role is user.role]
        if user.role is Role.MEMBER and self.is_full_member(user):
            groups.append(SystemGroup.FULL_MEMBERS.value)
        return tuple(sorted(groups))

    def is_full_member(self, user: User) -> bool:
        """Whether a member's waiting period is over; everyone stricter than a member is full.

        It is over when the log says so (`FullMembersChanged`), which it does when the time has
        come: so all who look at one entry of the log agree.
        """
        if user.role is not Role.MEMBER:
            return user.role < Role.MEMBER
        joined_by = self.realm.full_members_joined_by
        return joined_by is None or user.joined_at <= joined_by

    def holds(self, user: User, setting: GroupSetting, now: float) -> bool:
        """Whether the user is in the group, directly or through subgroups."""
        if not user.is_active:
            return False
        if isinstance(setting, Members):
            if user.id in setting.direct_members:
                return True
            pending = list(setting.direct_subgroups)
        else:
            pending = [setting]
        seen: set[int] = set()
        while pending:
            group_id = pending.pop()
            if group_id in seen:
                continue
            seen.add(group_id)
            group = self.groups.get(group_id)
            if group is None:
                continue
            if group.is_system:
                if self._in_system_group(user, SystemGroup(group.id)):
                    return True
                continue
            if user.id in self.members_of_group[group.id]:
                return True
            pending.extend(group.subgroups)
        return False

    def is_limited_guest(self, user: User) -> bool:
        """Whether the account, while it is active, has the rights of a guest who may not know of
        every account: those of its owner, where it is a bot (see `permissions.role_of`)."""
        behind = [user]
        if user.bot is not None and user.bot.owner_id is not None:
            owner = self.users[user.bot.owner_id]
            if not owner.is_active:
                return True
            behind.append(owner)
        if not any(one.is_guest for one in behind):
            return False
        active = (msgspec.structs.replace(one, is_active=True) for one in behind)
        # Who holds a permission changes by entries of the log alone.
        setting = self.realm.can_access_all_users_group
        return not all(self.holds(one, setting, 0) for one in active)

    @property
    def maybe_guests(self) -> BitMap:
        """The accounts that can have no more than a guest's rights, deactivated ones too."""
        return self.guests | BitMap(self.bots)

    @property
    def limited_guests(self) -> BitMap:
        """Those of whom that is true, not to be changed. Nothing where the organization limits
        nobody."""
        version, found = self._limited
        if version != self.membership:
            users = self.users
            found = BitMap(u for u in self.maybe_guests if self.is_limited_guest(users[u]))
            self._limited = (self.membership, found)
        return found

    def _in_system_group(self, user: User, group: SystemGroup) -> bool:
        match group:
            case SystemGroup.NOBODY:
                return False
            case SystemGroup.FULL_MEMBERS:
                return self.is_full_member(user)
            case SystemGroup.INTERNET:
                return True
            case _:
                return user.role <= _ROLE_OF_GROUP[group]


def is_muted(own: Visibility, subscription: Subscription | None) -> bool:
    """Whether nothing is to be heard of a topic that its reader wants to hear of so."""
    if own is not Visibility.INHERIT:
        return own is Visibility.MUTED
    return subscription is not None and subscription.is_muted
