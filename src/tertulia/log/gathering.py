"""Waiting a moment until all are there who write all the time.

Who was answered by the last group asks again, one shortly after the other. A group that begins with
the first of them has half of what it could have, and each costs a transaction with all that belongs
to it: a commit to the disk, or two exchanges with the database; a turn of a thread; a wake-up of
each other node.
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
"""After so long without a group no other node writes all the time."""
OWN_LULL_SECONDS: Final = 0.02
"""The same of those who ask this node: of all that they ask at once the first command is there when
most of the others are almost there too."""
OWN_SECONDS: Final = 0.002
"""How long a group waits at most for what this node is just being asked."""
_IDLE_TURNS: Final = 2
"""Turns of the event loop: one reads what was asked, and with the next it is a command."""


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
        or a moment later: where this node writes for itself alone, as soon as there is nothing else
        to do. At once where there is a group now and then."""
        now = time.monotonic()
        if not group.commands or now - self._ended > OWN_LULL_SECONDS:
            return
        missing = {*self._last, *self._before} - {one.actor_id for one in group.commands}
        missing -= self._inbox.actors
        if not missing:
            return
        if now - self._ended > LULL_SECONDS or now - self._ordered_at > LULL_SECONDS * 2:
            await self._take_turns(missing, now + OWN_SECONDS)
        else:
            await self._wait_for(missing)

    async def _take_turns(self, missing: set[int | None], until: float) -> None:
        """Let the event loop do what there is to do, as long as commands come of it."""
        idle = 0
        while missing and idle < _IDLE_TURNS and time.monotonic() < until:
            before = len(self._inbox)
            await asyncio.sleep(0)
            idle += 1
            if len(self._inbox) > before:
                missing -= self._inbox.actors
                idle = 0

    async def _wait_for(self, missing: set[int | None]) -> None:
        """Wait for commands of these, wherever they come from."""
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
