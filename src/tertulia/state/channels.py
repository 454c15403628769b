"""Channels, subscriptions, topics, and channel folders: tables, indexes, and folds."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec
from pyroaring import BitMap

from tertulia.model import changes
from tertulia.model.channels import Channel, Subscription
from tertulia.model.nouns import Noun
from tertulia.model.users import User
from tertulia.state.folds import FOLDS, revised
from tertulia.state.shards import Shards
from tertulia.state.tables import (
    Grouped,
    Index,
    Nested,
    PairTable,
    Table,
    Unique,
)

if TYPE_CHECKING:
    from tertulia.state.state import State

RECENTLY = 180 * 86400
"""The number of seconds without a message after which a channel is no longer recently active."""


def is_active(channel: Channel, now: float) -> bool:
    """Whether the channel was recently created or recently had a message."""
    return now < _end_of(channel)


class ChannelActivity(Index):
    """The times when channels' `is_recently_active` may have to change. They're checked after every
    commit, so they are in a heap. It keeps the earliest time of each channel: a new message only
    makes it later, which is looked up when the time comes."""

    def __init__(self, channels: Table[Channel]) -> None:
        self._channels = channels
        self._times: list[tuple[float, int]] = []
        """The heap. Times that aren't in `_earliest` are outdated."""
        self._earliest: dict[int, float] = {}
        self.follow(channels, self._channel_changed)

    def _channel_changed(self, before: Channel | None, after: Channel | None) -> None:
        if after is None or (before is not None and _facts(before) == _facts(after)):
            return
        # An inactive channel with a new message is due immediately.
        self._put(after.id, _end_of(after) if after.is_recently_active else 0)

    def __len__(self) -> int:
        return len(self._times)

    def _put(self, channel_id: int, time: float) -> None:
        if time < self._earliest.get(channel_id, math.inf):
            self._earliest[channel_id] = time
            heapq.heappush(self._times, (time, channel_id))

    def next(self, now: float) -> float | None:
        """Return when a channel's `is_recently_active` may have to change next, in UNIX seconds. If
        it's not after `now`, one has to."""
        while self._times and self._times[0][0] <= now:
            time, channel_id = self._times[0]
            channel = self._channels[channel_id]
            if channel.is_recently_active != is_active(channel, now):
                return time
            heapq.heappop(self._times)
            if self._earliest.get(channel_id) == time:
                del self._earliest[channel_id]
                if channel.is_recently_active:
                    self._put(channel_id, _end_of(channel))
        return self._times[0][0] if self._times else None


def _end_of(channel: Channel) -> float:
    """Return when a channel without newer messages is no longer recently active."""
    return max(channel.created_at, channel.last_message_at or 0) + RECENTLY


def _facts(channel: Channel) -> tuple[int | None, bool]:
    return channel.last_message_at, channel.is_recently_active


class ChannelTable(Table[Channel]):
    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.by_name = Unique(self, lambda channel: channel.name.casefold())
        self.of_creator = Grouped(self, lambda channel: channel.creator_id)
        self.activity = ChannelActivity(self)


class SubscriptionTable(PairTable[Subscription]):
    """Present and past subscriptions: see `Subscription.is_active`."""

    def __init__(self, noun: Noun) -> None:
        super().__init__(noun)
        self.of_user = Nested(self, "user_id", "channel_id")
        """By user ID, then channel ID."""

    @property
    def of_channel(self) -> Mapping[int, Mapping[int, Subscription]]:
        """By channel ID, then user ID."""
        return self.rows.groups


class ActiveSubscribers(Index):
    """The active accounts that are subscribed to each channel. They're collected on first use and
    then kept current."""

    def __init__(self, users: Table[User], subscriptions: SubscriptionTable) -> None:
        self._users, self._subscriptions = users, subscriptions
        self._found: dict[int, tuple[int, ...]] = {}
        self._sets: dict[int, BitMap] = {}
        self._newest: dict[int, int] = {}
        """The result of `newest_since` for the channels in `_sets`."""
        self.follow(users, self._user_changed)
        self.follow(subscriptions, self._subscription_changed)

    def with_tables(self, instead: Callable[[Any], Any]) -> ActiveSubscribers:
        made = self._copy_over(instead)
        made._users, made._subscriptions = instead(self._users), instead(self._subscriptions)
        made._found, made._sets, made._newest = {}, {}, {}
        return made

    def __getitem__(self, channel_id: int) -> tuple[int, ...]:
        """Return the IDs of the channel's active subscribers, ascending."""
        result = self._found.get(channel_id)
        if result is None:
            result = self._found[channel_id] = tuple(self.as_set(channel_id))
        return result

    def as_set(self, channel_id: int) -> BitMap:
        """Return the channel's active subscribers as a set. Don't change or keep it."""
        bitmap = self._sets.get(channel_id)
        if bitmap is None:
            users, people, newest = self._users.rows, [], 0
            # This avoids calls for speed: after a start, it runs for all channels.
            for user_id, subscription in self._subscriptions.of_channel[channel_id].items():
                spans = subscription.spans
                if spans and spans[-1][1] is None and users[user_id].is_active:
                    people.append(user_id)
                    newest = spans[-1][0] if spans[-1][0] > newest else newest
            bitmap = self._sets[channel_id] = BitMap(people)
            self._newest[channel_id] = newest
        return bitmap

    def newest_since(self, channel_id: int) -> int:
        """Return the ID of a message after which all present subscribers received everything."""
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
    """Channels with their subscribers, in shards of channel IDs."""

    def __init__(
        self, channels: Table[Channel], users: Table[User], subscriptions: SubscriptionTable
    ) -> None:
        super().__init__(channels)
        self._subscriptions = subscriptions
        self.also(subscriptions, lambda subscription: subscription.channel_id)
        self.follow(users, self._user_changed)

    def _user_changed(self, before: User | None, after: User | None) -> None:
        if before is not None and after is not None and before.is_active is not after.is_active:
            for channel_id in self._subscriptions.of_user[after.id]:
                self.touch(channel_id)


FOLDS.puts(changes.ChannelCreated, "channels", "channel")
FOLDS.revises(changes.ChannelChanged, "channels", "channel_id")


@FOLDS.of(changes.Subscribed)
def _(state: State, change: changes.Subscribed) -> None:
    ever = state.subscriptions.of_channel[change.channel_id]
    span = ((change.after, None),)
    # The entry that is being folded is the next one.
    began = state.seq + 1
    for user_id, color in change.colors.items():
        past = ever.get(user_id)
        if past is None:
            fresh = Subscription(
                channel_id=change.channel_id,
                user_id=user_id,
                color=color,
                spans=span,
                began=began,
            )
        else:
            spans = (*past.spans, *span)
            fresh = msgspec.structs.replace(past, color=color, spans=spans, began=began)
        state.subscriptions.put(fresh)


@FOLDS.of(changes.Unsubscribed)
def _(state: State, change: changes.Unsubscribed) -> None:
    for user_id in change.user_ids:
        present = state.subscriptions[(change.channel_id, user_id)]
        *before, (after, _until) = present.spans
        span = [(after, change.until)] if change.until > after else []
        state.subscriptions.put(msgspec.structs.replace(present, spans=(*before, *span)))


@FOLDS.of(changes.SubscriptionChanged)
def _(state: State, change: changes.SubscriptionChanged) -> None:
    present = state.subscriptions[(change.channel_id, change.user_id)]
    state.subscriptions.put(revised(present, {change.property: change.value}))


FOLDS.puts(changes.ChannelFolderCreated, "folders", "folder")
FOLDS.revises(changes.ChannelFolderChanged, "folders", "folder_id")


@FOLDS.of(changes.ChannelFoldersReordered)
def _(state: State, change: changes.ChannelFoldersReordered) -> None:
    for place, folder_id in enumerate(change.order):
        state.folders.put(msgspec.structs.replace(state.folders[folder_id], order=place))
