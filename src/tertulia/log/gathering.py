"""Where a node writes for others: waiting a moment until all are there who write all the time.

What it answers comes to its neighbours, and from them to those who ask; what these ask next comes
back one after the other, and a group that does not wait for it has half of it. Each group costs
each node a wake-up, and the database two exchanges.
"""

import asyncio
import math
import time
from typing import Final

from tertulia.log.inbox import Inbox
from tertulia.log.requests import Group

GATHERED_SECONDS: Final = 0.001
"""How long a group waits at most. (The event loop counts in milliseconds.)"""
LULL_SECONDS: Final = 0.003
"""After so long without a group nobody writes all the time."""


class Gathering:
    """Used by the writer alone."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._last: frozenset[int | None] = frozenset()
        self._before: frozenset[int | None] = frozenset()
        """Whose commands the last group had, and the one before."""
        self._ordered_at = -math.inf
        """When there were last commands of other nodes in a group."""
        self._ended = -math.inf
        """When the last one was committed."""

    async def wait(self, group: Group) -> None:
        """Return when all who had a command in the last two groups have one in this one or waiting,
        or a moment later; at once where this node writes for itself alone, or now and then."""
        now = time.monotonic()
        if not group.commands or now - self._ended > LULL_SECONDS:
            return
        if now - self._ordered_at > LULL_SECONDS * 2:
            return
        missing = (self._last | self._before) - {one.actor_id for one in group.commands}
        missing -= self._inbox.actors
        if not missing:
            return
        is_over = False

        def give_up() -> None:
            nonlocal is_over
            is_over = True
            self._inbox.wake()

        timer = asyncio.get_running_loop().call_later(GATHERED_SECONDS, give_up)
        try:
            while missing and not is_over:
                await self._inbox.wait()
                missing -= self._inbox.actors
        finally:
            timer.cancel()

    def committed(self, group: Group) -> None:
        """The group is on disk."""
        self._ended = time.monotonic()
        self._before, self._last = self._last, frozenset(one.actor_id for one in group.commands)
        if any(one.until < math.inf for one in group.commands):
            self._ordered_at = self._ended
