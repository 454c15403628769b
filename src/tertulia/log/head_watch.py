"""Looking at the log's head every few seconds, whatever other nodes announce or do not."""

import asyncio
import logging
import time

from tertulia.log.errors import described
from tertulia.log.freshness import LOOK_SECONDS, Freshness
from tertulia.log.recovery import PositionFile
from tertulia.log.replica import Replica, Subscribers
from tertulia.log.requests import Inbox
from tertulia.store.database import DatabaseReplaced
from tertulia.store.installation import NewerDatabase
from tertulia.store.store import Store

logger = logging.getLogger("tertulia.log")


class HeadWatch:
    """Sees whether a node's state is up to date, and says when that is not known any more."""

    def __init__(
        self,
        store: Store,
        freshness: Freshness,
        replica: Replica,
        inbox: Inbox,
        subscribers: Subscribers,
        position_file: PositionFile | None,
    ) -> None:
        self._store = store
        self._freshness = freshness
        self._replica = replica
        self._inbox = inbox
        self._subscribers = subscribers
        self._position_file = position_file
        self._looked_at = time.monotonic()
        self._look: asyncio.Task[None] | None = None
        self._is_stale = False

    def tick(self) -> None:
        """Begin to look where it is time, and no look is under way. To be called every second."""
        now = time.monotonic()
        is_free = self._look is None or self._look.done()
        if is_free and now - self._looked_at >= LOOK_SECONDS:
            self._looked_at = now
            self._look = asyncio.create_task(self.look(), name="log-look")
        was_stale, self._is_stale = self._is_stale, self._freshness.is_stale
        if self._is_stale and not was_stale:
            logger.error(
                "the node cannot see whether it is up to date, and answers nothing: %s",
                self._freshness.look_trouble or "it heard nothing",
            )
            self._subscribers.stale()
        elif was_stale and not self._is_stale:
            logger.warning("the node is up to date again")

    async def look(self) -> None:
        """See whether the log goes on from where this node is."""
        began, known = time.monotonic(), self._replica.position
        try:
            head = await self._store.look()
        except NewerDatabase:
            self._inbox.add_growth()  # The writer meets it too.
            return
        except DatabaseReplaced as error:
            self._freshness.doubted(str(error))
            return
        except Exception as error:  # The next look comes soon; for how long they fail counts.
            self._freshness.look_trouble = described(error)
            return
        self._freshness.heard(head.seq)
        self._store.hear()
        # (Where others commit all the time, what they tell brings the node there meanwhile.)
        if head.position in (known, self._replica.position):
            self._freshness.verified(began)
        else:
            self._inbox.add_growth()
        if self._position_file is not None:
            await asyncio.to_thread(self._position_file.write, self._replica.position)

    async def close(self) -> None:
        """Look no more, and write the node's position."""
        if self._look is not None:
            self._look.cancel()
            await asyncio.wait([self._look])
        if self._position_file is not None:
            self._position_file.write(self._replica.position)
