"""When channels become inactive, and when they are active again."""

import heapq

from tertulia.model.channels import Channel
from tertulia.state.tables import Index, Table

RECENTLY = 180 * 86400
"""Seconds without a message, after which a channel is not recently active any more."""


def is_active(channel: Channel, now: float) -> bool:
    """Whether the channel was created, or had a message, not too long before `now`."""
    return now - max(channel.created_at, channel.last_message_at or 0) < RECENTLY


class ChannelActivity(Index):
    """An index of channels: when the `is_recently_active` of each may have to change.

    It is asked after every commit, so it keeps the times in a heap: times that are over or do not
    hold any more are removed when they come to its top.
    """

    def __init__(self, channels: Table[Channel]) -> None:
        self._channels = channels
        self._times: list[tuple[float, int]] = []
        self.follow(channels, self._channel_changed)

    def _channel_changed(self, before: Channel | None, after: Channel | None) -> None:
        if after is None or (before is not None and _facts(before) == _facts(after)):
            return
        newest = max(after.created_at, after.last_message_at or 0)
        # An inactive one with a new message is due at once.
        time = newest + RECENTLY if after.is_recently_active else 0
        heapq.heappush(self._times, (time, after.id))

    def next(self, now: float) -> float | None:
        """When the `is_recently_active` of a channel is to change, in UNIX seconds."""
        while self._times and self._times[0][0] <= now:
            time, channel_id = self._times[0]
            channel = self._channels[channel_id]
            if channel.is_recently_active != is_active(channel, now):
                return time
            heapq.heappop(self._times)
        return self._times[0][0] if self._times else None


def _facts(channel: Channel) -> tuple[int | None, bool]:
    return channel.last_message_at, channel.is_recently_active
