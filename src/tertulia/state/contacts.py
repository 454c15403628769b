"""Contacts: people who share a channel or a direct conversation, which are the accounts that
limited guests see."""

from collections.abc import Iterable, Mapping

from pyroaring import BitMap

from tertulia.model.channels import Subscription
from tertulia.model.messages import DirectConversation
from tertulia.state.channels import SubscriptionTable
from tertulia.state.messages import DirectConversationTable
from tertulia.state.recent_gains import RecentGains
from tertulia.state.tables import Index


class Contacts(Index):
    """The accounts that each requested account shares a channel or direct conversation with, as a
    bitmap. Don't change it.

    Bitmaps are built on first use and then kept current, so that organizations without limited
    guests don't pay for them. Deactivated accounts remain contacts, and subscribers of archived
    channels remain contacts of each other.
    """

    def __init__(self, subscriptions: SubscriptionTable, directs: DirectConversationTable) -> None:
        self._subscriptions = subscriptions
        self._directs = directs
        self._subscribers: dict[int, BitMap] = {}
        self._shared: dict[int, BitMap] = {}
        self._kept = BitMap()
        """Accounts that have a bitmap in `_shared`."""
        self._joined: dict[int, BitMap] = {}
        """New subscribers by channel. They're added to others' bitmaps together, on the next
        use."""
        self._left: set[int] = set()
        """Channels that someone left. Their subscribers' bitmaps are dropped on the next use."""
        self._gains = RecentGains()
        self.gainers = BitMap()
        """Accounts that have gained sight of accounts since the state was loaded."""
        self.merged = 0
        """The number of merged bitmaps, for tests."""
        self.follow(subscriptions, self._subscription_changed)
        self.follow(directs, self._direct_changed)

    def subscribers(self, channel_id: int) -> BitMap:
        """Return the channel's subscribers, including deactivated accounts."""
        bitmap = self._subscribers.get(channel_id)
        if bitmap is None:
            ever = self._subscriptions.of_channel[channel_id]
            bitmap = BitMap(
                user_id for user_id, subscription in ever.items() if subscription.is_active
            )
            self._subscribers[channel_id] = bitmap
        return bitmap

    def of(self, user_id: int) -> BitMap:
        """Return the accounts that share a channel or a direct conversation with this one,
        including itself."""
        self._apply_changes()
        bitmap = self._shared.get(user_id)
        if bitmap is None:
            bitmap = self._shared[user_id] = self.apart_from(user_id, {})
            self._kept.add(user_id)
        return bitmap

    def apart_from(self, user_id: int, left: Mapping[int, BitMap]) -> BitMap:
        """Return what `of` would return if those accounts weren't subscribed to those channels."""
        bitmap = BitMap()
        for channel_id, subscription in self._subscriptions.of_user[user_id].items():
            gone = left.get(channel_id)
            if not subscription.is_active or (gone is not None and user_id in gone):
                continue
            subscribers = self.subscribers(channel_id)
            bitmap |= subscribers if gone is None else subscribers - gone
            self.merged += 1
        for direct_id in self._directs.of_user[user_id]:
            bitmap.update(self._directs[direct_id].members)
        return bitmap

    def gained(self, seq: int, viewers: Iterable[int], user_ids: BitMap) -> None:
        """Record that these viewers see these accounts since that entry."""
        self._gains.add(seq, viewers, user_ids)
        self.gainers.update(viewers)

    def gained_since(self, seq: int, viewer_id: int, user_id: int) -> bool:
        """Whether the viewer sees the account only since an entry after `seq`, according to the
        remembered gains."""
        return self._gains.since(seq, viewer_id, user_id)

    def _apply_changes(self) -> None:
        for channel_id, user_ids in self._joined.items():
            for subscriber_id in self.subscribers(channel_id) & self._kept:
                self._shared[subscriber_id] |= user_ids
        for channel_id in self._left:
            for subscriber_id in self.subscribers(channel_id) & self._kept:
                self._forget(subscriber_id)
        self._joined.clear()
        self._left.clear()

    def _forget(self, user_id: int) -> None:
        self._shared.pop(user_id, None)
        self._kept.discard(user_id)

    def _subscription_changed(
        self, before: Subscription | None, after: Subscription | None
    ) -> None:
        if after is None or (before is not None and before.is_active) is after.is_active:
            return
        subscribers = self._subscribers.get(after.channel_id)
        if subscribers is not None:
            (subscribers.add if after.is_active else subscribers.discard)(after.user_id)
        self._forget(after.user_id)
        if not self._kept:
            return
        if after.is_active:
            self._joined.setdefault(after.channel_id, BitMap()).add(after.user_id)
        else:
            self._left.add(after.channel_id)

    def _direct_changed(
        self, before: DirectConversation | None, after: DirectConversation | None
    ) -> None:
        if before is None and after is not None:
            for user_id in after.members:
                self._forget(user_id)
