"""Channels, their subscribers and topics: the tables and their indexes."""

from collections.abc import Callable, Collection, Mapping
from typing import Any

from pyroaring import BitMap

from tertulia.model.channels import Channel, Subscription, Topic
from tertulia.model.nouns import Noun
from tertulia.model.users import User
from tertulia.state.channel_activity import ChannelActivity
from tertulia.state.indexes import Nested, TableIndex, Unique
from tertulia.state.shards import Shards
from tertulia.state.tables import Index, Table


class Channels(Table[Channel]):
    """The channels, archived ones too."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_name = Unique(self, lambda channel: channel.name.casefold())
        self.activity = ChannelActivity(self)


class Subscriptions(Table[Subscription]):
    """Who is subscribed to what, and who was: see `Subscription.is_active`."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_channel = Nested(self, "channel_id", "user_id")
        """By channel ID, then user ID."""
        self.of_user = Nested(self, "user_id", "channel_id")
        """By user ID, then channel ID."""


class Topics(Table[Topic]):
    """The topics that have messages."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_channel = Nested(self, "channel_id", "key")
        """By channel ID, then topic key."""
        self.message_counts = MessageCounts(self)


class MessageCounts(TableIndex[Topic]):
    """How many messages each channel has, by its ID."""

    def __init__(self, topics: Table[Topic]) -> None:
        self._counts: dict[int, int] = {}
        super().__init__(topics)

    def _update(self, before: Topic | None, after: Topic | None) -> None:
        for topic, sign in ((before, -1), (after, 1)):
            if topic is not None:
                count = self._counts.pop(topic.channel_id, 0) + sign * topic.message_count
                if count:
                    self._counts[topic.channel_id] = count

    def _detach(self, records: Collection[Topic]) -> None:
        self._counts = {**self._counts}

    @property
    def by_channel(self) -> Mapping[int, int]:
        """The channels that have any, not to be changed."""
        return self._counts


class ActiveSubscribers(Index):
    """The active accounts that are subscribed to each channel: found when they are first asked for,
    and then kept in step."""

    def __init__(self, users: Table[User], subscriptions: Subscriptions) -> None:
        self._users, self._subscriptions = users, subscriptions
        self._found: dict[int, tuple[int, ...]] = {}
        self._sets: dict[int, BitMap] = {}
        self._newest: dict[int, int] = {}
        """Of the channels in `_sets`, see `newest_since`."""
        self.follow(users, self._user_changed)
        self.follow(subscriptions, self._subscription_changed)

    def with_tables(self, instead: Callable[[Any], Any]) -> "ActiveSubscribers":
        made = self._copy_over(instead)
        made._users, made._subscriptions = instead(self._users), instead(self._subscriptions)
        made._found, made._sets, made._newest = {}, {}, {}
        return made

    def __getitem__(self, channel_id: int) -> tuple[int, ...]:
        """Their IDs, ascending."""
        found = self._found.get(channel_id)
        if found is None:
            found = self._found[channel_id] = tuple(self.as_set(channel_id))
        return found

    def as_set(self, channel_id: int) -> BitMap:
        """The same as a set, not to be changed nor to be kept: it changes with the state."""
        found = self._sets.get(channel_id)
        if found is None:
            users, people, newest = self._users.rows, [], 0
            # Without a call for each of them: after a start all channels are asked for.
            for user_id, subscription in self._subscriptions.of_channel[channel_id].items():
                spans = subscription.spans
                if spans and spans[-1][1] is None and users[user_id].is_active:
                    people.append(user_id)
                    newest = spans[-1][0] if spans[-1][0] > newest else newest
            found = self._sets[channel_id] = BitMap(people)
            self._newest[channel_id] = newest
        return found

    def newest_since(self, channel_id: int) -> int:
        """A message after which nobody was subscribed who is so now: all of them received what
        came later."""
        self.as_set(channel_id)
        return self._newest[channel_id]

    def _user_changed(self, before: User | None, after: User | None) -> None:
        if before is not None and after is not None and before.is_active is not after.is_active:
            for subscription in self._subscriptions.of_user[after.id].values():
                self._put(subscription)

    def _subscription_changed(
        self, before: Subscription | None, after: Subscription | None
    ) -> None:
        if after is not None:
            self._put(after)

    def _put(self, subscription: Subscription) -> None:
        channel_id = subscription.channel_id
        self._found.pop(channel_id, None)
        subscribers = self._sets.get(channel_id)
        if subscribers is None:
            return
        user_id = subscription.user_id
        if subscription.is_active and self._users[user_id].is_active:
            subscribers.add(user_id)
            self._newest[channel_id] = max(self._newest[channel_id], subscription.since)
        else:
            subscribers.discard(user_id)


class ChannelShards(Shards[Channel]):
    """The channels with their subscribers, in shards of channel IDs."""

    def __init__(
        self, channels: Table[Channel], users: Table[User], subscriptions: Subscriptions
    ) -> None:
        super().__init__(channels)
        self._subscriptions = subscriptions
        self.also(subscriptions, lambda subscription: subscription.channel_id)
        self.follow(users, self._user_changed)

    def _user_changed(self, before: User | None, after: User | None) -> None:
        if before is not None and after is not None and before.is_active is not after.is_active:
            for channel_id in self._subscriptions.of_user[after.id]:
                self.touch(channel_id)
