"""Waiting a moment until all are there who write all the time.

Who was answered by the last group asks again, one shortly after the other. A group that begins with
the first of them has half of what it could have, and each costs a transaction with all that belongs
to it: a commit to the disk, or two exchanges with the database; a turn of a thread; a wake-up of
each other node.
"""

import asyncio
import math
import time
from collections import Counter, deque
from itertools import chain, islice
from typing import Final

from tertulia.log.requests import Group, Inbox

GATHERED_SECONDS: Final = 0.001
"""How long a group waits for the next of them. (The event loop counts in milliseconds.)"""
MOST_SECONDS: Final = 0.005
"""How long it waits at most for all of them: their requests are read and prepared meanwhile."""
LULL_SECONDS: Final = 0.003
"""After so long without a group no other node writes all the time."""
OWN_LULL_SECONDS: Final = 0.02
"""The same of those who ask this node: of all that they ask at once, the first command is there
when the others are read and prepared."""
_LOOKED_BACK: Final = 4
"""Groups by which one sees who asks this node all the time..."""
_OFTEN: Final = 2
"""... having had a command in so many of them: in each, or in every other one. Who writes now and
then is not waited for, however many of them there are."""


class Gathering:
    """Used by the writer alone."""

    def __init__(self, inbox: Inbox) -> None:
        self._inbox = inbox
        self._groups: deque[frozenset[int | None]] = deque(maxlen=_LOOKED_BACK)
        """Whose commands the last groups had, the newest first."""
        self._ordered_at = -math.inf
        """When there were last commands of other nodes in a group."""
        self._ended = -math.inf
        """When the last one was committed."""

    async def wait(self, group: Group) -> None:
        """Return when all who write all the time have a command in this group or waiting, or none
        of them comes for a moment; at once where there is a group now and then."""
        if not group.commands:
            return
        missing = self._regulars(time.monotonic()) - {one.actor_id for one in group.commands}
        missing -= self._inbox.actors
        if not missing:
            return
        is_over = False

        def give_up() -> None:
            nonlocal is_over
            is_over = True
            self._inbox.wake()

        loop = asyncio.get_running_loop()
        until = loop.time() + MOST_SECONDS
        timer = loop.call_later(GATHERED_SECONDS, give_up)
        try:
            while missing and not is_over:
                await self._inbox.wait()
                if not missing.isdisjoint(self._inbox.actors):
                    missing -= self._inbox.actors
                    timer.cancel()
                    timer = loop.call_at(min(loop.time() + GATHERED_SECONDS, until), give_up)
        finally:
            timer.cancel()

    def _regulars(self, now: float) -> set[int | None]:
        """Those who write all the time."""
        since = now - self._ended
        if since <= LULL_SECONDS and now - self._ordered_at <= LULL_SECONDS * 2:
            # What comes from other nodes comes one after the other, in any group.
            return set[int | None]().union(*islice(self._groups, 2))
        if since > OWN_LULL_SECONDS:
            return set()
        counts = Counter(chain.from_iterable(self._groups))
        return {one for one, groups in counts.items() if groups >= _OFTEN}

    def committed(self, group: Group) -> None:
        """The group is on disk."""
        self._ended = time.monotonic()
        if group.commands:
            self._groups.appendleft(frozenset(one.actor_id for one in group.commands))
        if any(one.until < math.inf for one in group.commands):
            self._ordered_at = self._ended
