"""When channels fall quiet, and when they wake up again."""

import heapq
from collections.abc import Callable

from tertulia.model.channels import Channel

RECENTLY = 180 * 86400
"""Seconds without a message, after which a channel is not recently active any more."""


def is_active(channel: Channel, now: float) -> bool:
    """Whether the channel was created, or had a message, not too long before `now`."""
    return now - max(channel.created_at, channel.last_message_at or 0) < RECENTLY


class Activity:
    """An index of channels: when each may have to be called active or quiet.

    It is asked after every commit, so it keeps the times in a heap, the passed and mistaken ones
    too until they come up.
    """

    def __init__(self) -> None:
        self._times: list[tuple[float, int]] = []

    def note(self, before: Channel | None, after: Channel | None) -> None:
        """A channel is new or changed."""
        if after is None or (before is not None and _facts(before) == _facts(after)):
            return
        newest = max(after.created_at, after.last_message_at or 0)
        # A quiet one that has just heard something is due at once.
        time = newest + RECENTLY if after.is_recently_active else 0
        heapq.heappush(self._times, (time, after.id))

    def next(self, channel_of: Callable[[int], Channel], now: float) -> float | None:
        """When a channel is to be called otherwise than it is, in UNIX seconds."""
        while self._times and self._times[0][0] <= now:
            time, channel_id = self._times[0]
            channel = channel_of(channel_id)
            if channel.is_recently_active != is_active(channel, now):
                return time
            heapq.heappop(self._times)
        return self._times[0][0] if self._times else None


def _facts(channel: Channel) -> tuple[int | None, bool]:
    return channel.last_message_at, channel.is_recently_active
