"""How much an import writes in one commit."""

import asyncio
import math
from collections.abc import Sequence
from typing import Final

from tertulia.log.log import Log
from tertulia.model.changes import Entry

SHARED_SECONDS: Final = 10.0
"""How long the import makes room for others after someone has changed something."""
SHARE: Final = 5
"""The factor by which commits are smaller in that time."""
PAUSE_SECONDS: Final = 0.03
"""The pause after each commit in that time: longer than other writers wait between two attempts to
lock an SQLite file."""


class Pace:
    """Limits an import's commits. While other people use the organization, their changes wait for
    the import's commits, so it writes less in each and pauses after it. Otherwise, it writes at
    full speed."""

    def __init__(self, log: Log) -> None:
        self._elapsed = log.elapsed
        self._others_wrote = -math.inf
        log.subscribers.followers.append(self._follow)

    def _follow(self, entries: Sequence[Entry]) -> None:
        # The import's own entries have no actor.
        if any(entry.actor_id is not None for entry in entries):
            self._others_wrote = self._elapsed()

    @property
    def is_shared(self) -> bool:
        """Whether someone has changed something recently."""
        return self._elapsed() - self._others_wrote < SHARED_SECONDS

    def most(self, alone: int) -> int:
        """Return the most messages to write in one commit: `alone` if nobody else writes."""
        return max(1, alone // SHARE) if self.is_shared else alone

    async def pause(self) -> None:
        """Pause after a commit if others use the organization."""
        if self.is_shared:
            await asyncio.sleep(PAUSE_SECONDS)
