"""Who shares a channel or a direct conversation with whom: what guests see of the other accounts
where the organization limits that."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyroaring import BitMap

from tertulia.model.channels import Subscription
from tertulia.model.messages import DirectConversation
from tertulia.state.tables import Table

REMEMBERED = 1024
"""Gains of sight that are remembered."""


class Gain(NamedTuple):
    """That some accounts came to know of others at an entry of the log."""

    seq: int
    viewers: BitMap
    user_ids: BitMap


class Acquaintances:
    """For each account that is asked about, whom it shares something with, as a bitmap.

    Bitmaps are made when they are first asked for and then kept in step, so an organization that
    limits nobody pays nothing. Whoever gets one must not change it. Deactivated accounts are
    acquaintances as they were before, and the subscribers of an archived channel still share it.
    """

    def __init__(
        self,
        subscriptions: Table[Subscription],
        of_channel: Mapping[int, Mapping[int, Subscription]],
        of_user: Mapping[int, Mapping[int, Subscription]],
        directs: Table[DirectConversation],
        directs_of_user: Mapping[int, Iterable[int]],
    ) -> None:
        self._of_channel = of_channel
        self._of_user = of_user
        self._directs = directs
        self._directs_of_user = directs_of_user
        self._subscribers: dict[int, BitMap] = {}
        self._shared: dict[int, BitMap] = {}
        self._asked = BitMap()
        """Whose bitmaps there are."""
        self._joined: dict[int, BitMap] = {}
        """Who came into channels since somebody asked: they are added when somebody asks again,
        at once for however many there are."""
        self._left: set[int] = set()
        """Channels that somebody left since then: whoever is in one of them is looked at anew."""
        self._gains: deque[Gain] = deque(maxlen=REMEMBERED)
        self.gainers = BitMap()
        """Who came to know of somebody since this was made: each of them may have been shown less
        than they would be now."""
        self.merged = 0
        """How many bitmaps were put together, for those who want to see what it costs."""
        subscriptions.watch(self._index_subscription)
        directs.watch(self._index_direct)

    def subscribers(self, channel_id: int) -> BitMap:
        """Who is subscribed to the channel, deactivated accounts too."""
        found = self._subscribers.get(channel_id)
        if found is None:
            ever = self._of_channel.get(channel_id, {})
            found = BitMap(user_id for user_id, one in ever.items() if one.is_active)
            self._subscribers[channel_id] = found
        return found

    def of(self, user_id: int) -> BitMap:
        """Whom the account shares a channel or a direct conversation with; itself, where there is
        one."""
        self._keep_up()
        found = self._shared.get(user_id)
        if found is None:
            found = self._shared[user_id] = self.apart_from(user_id, {})
            self._asked.add(user_id)
        return found

    def apart_from(self, user_id: int, left: Mapping[int, BitMap]) -> BitMap:
        """The same if those accounts were not subscribed to those channels."""
        found = BitMap()
        for channel_id, subscription in self._of_user.get(user_id, {}).items():
            gone = left.get(channel_id)
            if not subscription.is_active or (gone is not None and user_id in gone):
                continue
            subscribers = self.subscribers(channel_id)
            found |= subscribers if gone is None else subscribers - gone
            self.merged += 1
        for direct_id in self._directs_of_user.get(user_id, ()):
            found.update(self._directs[direct_id].members)
        return found

    def gained(self, seq: int, viewers: Iterable[int], user_ids: BitMap) -> None:
        """Remember that these viewers came to know of these accounts at that entry."""
        gain = Gain(seq, BitMap(viewers), user_ids)
        self._gains.append(gain)
        self.gainers |= gain.viewers

    def gained_since(self, seq: int, viewer_id: int, user_id: int) -> bool:
        """Whether the viewer came to know of the account after that entry, as far as is
        remembered."""
        for gain in reversed(self._gains):
            if gain.seq <= seq:
                return False
            if viewer_id in gain.viewers and user_id in gain.user_ids:
                return True
        return False

    def _keep_up(self) -> None:
        for channel_id, user_ids in self._joined.items():
            for one in self.subscribers(channel_id) & self._asked:
                self._shared[one] |= user_ids
        for channel_id in self._left:
            for one in self.subscribers(channel_id) & self._asked:
                self._forget(one)
        self._joined.clear()
        self._left.clear()

    def _forget(self, user_id: int) -> None:
        self._shared.pop(user_id, None)
        self._asked.discard(user_id)

    def _index_subscription(self, before: Subscription | None, after: Subscription | None) -> None:
        if after is None or (before is not None and before.is_active) is after.is_active:
            return
        subscribers = self._subscribers.get(after.channel_id)
        if subscribers is not None:
            (subscribers.add if after.is_active else subscribers.discard)(after.user_id)
        self._forget(after.user_id)
        if not self._asked:
            return
        if after.is_active:
            self._joined.setdefault(after.channel_id, BitMap()).add(after.user_id)
        else:
            self._left.add(after.channel_id)

    def _index_direct(
        self, before: DirectConversation | None, after: DirectConversation | None
    ) -> None:
        if before is None and after is not None:
            for user_id in after.members:
                self._forget(user_id)
